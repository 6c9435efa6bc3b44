/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical text: JSON without white space, members in order, numbers in their one spelling,
 * strings in UTF-8 with as few escapes as JSON allows. Walks the threaded tree of json.h, so it
 * needs no stack; most strings and numbers are copied as they stand in the text.
 */
#include "fingerprint/json.h"

/* What a node may add to its name and text: two pairs of quotes, colon, comma, brackets. */
#define NODE_EXTRA 8U
#define SHORT_COPY 32U

_Static_assert(SHORT_COPY <= CFOIL_SINK_SLACK && SHORT_COPY <= CFOIL_JSON_PAD_BYTES,
               "a short copy overshoots into slack on both sides");

/* Copies a fixed 32 bytes where it can: a few instructions, unlike a copy of any length. */
static inline uint8_t *copy(uint8_t *out, const uint8_t *from, uint32_t bytes)
{
    if (bytes <= SHORT_COPY) {
        memcpy(out, from, SHORT_COPY);
    } else {
        memcpy(out, from, bytes);
    }
    return out + bytes;
}

/* The escape of a character that needs one; returns its length. */
static size_t escape(uint8_t c, uint8_t out[6])
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    static const char hex[] = "0123456789abcdef";
    const char *known = c != 0 ? strchr(plain, c) : NULL;
    if (known != NULL) {
        out[0] = '\\';
        out[1] = (uint8_t)letters[known - plain];
        return 2;
    }
    memcpy(out, "\\u00", 4);
    out[4] = (uint8_t)hex[c >> 4];
    out[5] = (uint8_t)hex[c & 15];
    return 6;
}

static void write_escaped(struct cfoil_sink *sink, const uint8_t *text, uint32_t bytes)
{
    uint8_t sequence[6];
    uint32_t plain = 0;
    cfoil_sink_put(sink, "\"", 1);
    for (uint32_t i = 0; i < bytes; i++) {
        if (text[i] >= 0x20 && text[i] != '"' && text[i] != '\\') {
            continue;
        }
        cfoil_sink_put(sink, text + plain, i - plain);
        cfoil_sink_put(sink, sequence, escape(text[i], sequence));
        plain = i + 1;
    }
    cfoil_sink_put(sink, text + plain, bytes - plain);
    cfoil_sink_put(sink, "\"", 1);
}

/* A node that does not fit the sink in one piece, or has characters to escape. */
static void write_slowly(const struct cfoil_json *json, const struct cfoil_json_node *node,
                         struct cfoil_sink *sink)
{
    if ((node->flags & CFOIL_JSON_NAMED) != 0) {
        if ((node->flags & CFOIL_JSON_ESCAPE_NAME) != 0) {
            write_escaped(sink, json->text + node->name_at, node->name_bytes);
        } else {
            cfoil_sink_put(sink, json->text + node->name_at - 1, node->name_bytes + 2);
        }
        cfoil_sink_put(sink, ":", 1);
    }
    if (node->kind >= CFOIL_JSON_ARRAY) {
        cfoil_sink_put(sink, node->kind == CFOIL_JSON_OBJECT ? "{" : "[", 1);
    } else if ((node->flags & CFOIL_JSON_ESCAPE_TEXT) != 0) {
        write_escaped(sink, json->text + node->text_at, node->text_bytes);
    } else {
        uint32_t quote = node->kind == CFOIL_JSON_STRING ? 1 : 0;
        cfoil_sink_put(sink, json->text + node->text_at - quote, node->text_bytes + 2 * quote);
    }
}

/* Writes name, colon and scalar, or name, colon and opening bracket, where there is room. */
static inline uint8_t *write_head(const uint8_t *text, const struct cfoil_json_node *node,
                                  uint8_t *out)
{
    if ((node->flags & CFOIL_JSON_NAMED) != 0) {
        out = copy(out, text + node->name_at - 1, node->name_bytes + 2);
        *out++ = ':';
    }
    if (node->kind < CFOIL_JSON_STRING) {
        return copy(out, text + node->text_at, node->text_bytes);
    }
    if (node->kind == CFOIL_JSON_STRING) {
        return copy(out, text + node->text_at - 1, node->text_bytes + 2);
    }
    *out++ = node->kind == CFOIL_JSON_OBJECT ? '{' : '[';
    return out;
}

/* The sink's free bytes, while they are written without telling it. */
struct window {
    uint8_t *out;
    uint8_t *end;
};

static struct window open_window(struct cfoil_sink *sink)
{
    return (struct window){sink->bytes + sink->used, sink->bytes + sink->capacity};
}

static void close_window(struct cfoil_sink *sink, struct window window)
{
    sink->used = (size_t)(window.out - sink->bytes);
}

static struct window write_node_slowly(const struct cfoil_json *json,
                                       const struct cfoil_json_node *node, struct cfoil_sink *sink,
                                       struct window window)
{
    close_window(sink, window);
    write_slowly(json, node, sink);
    return open_window(sink);
}

static inline struct window write_node(const struct cfoil_json *json,
                                       const struct cfoil_json_node *node, struct cfoil_sink *sink,
                                       struct window window)
{
    uint32_t escapes = node->flags & (CFOIL_JSON_ESCAPE_NAME | CFOIL_JSON_ESCAPE_TEXT);
    size_t text_bytes = node->kind < CFOIL_JSON_ARRAY ? node->text_bytes : 0;
    size_t need = node->name_bytes + text_bytes + NODE_EXTRA;
    if (escapes != 0 || need > (size_t)(window.end - window.out)) {
        return write_node_slowly(json, node, sink, window);
    }
    window.out = write_head(json->text, node, window.out);
    return window;
}

static inline struct window write_byte(struct cfoil_sink *sink, struct window window, char byte)
{
    if (window.out == window.end) {
        close_window(sink, window);
        cfoil_sink_put(sink, &byte, 1);
        return open_window(sink);
    }
    *window.out++ = (uint8_t)byte;
    return window;
}

static char end_of(const struct cfoil_json_node *container)
{
    return container->kind == CFOIL_JSON_OBJECT ? '}' : ']';
}

void cfoil_json_write(const struct cfoil_json *json, struct cfoil_sink *sink)
{
    const struct cfoil_json_node *nodes = json->nodes;
    struct window window = open_window(sink);
    uint32_t at = 0;
    for (;;) {
        window = write_node(json, &nodes[at], sink, window);
        if (nodes[at].first != 0) {
            at = nodes[at].first;
            continue;
        }
        if (nodes[at].kind >= CFOIL_JSON_ARRAY) {
            window = write_byte(sink, window, end_of(&nodes[at]));
        }
        while (at != 0 && (nodes[at].flags & CFOIL_JSON_LAST) != 0) {
            at = nodes[at].next;
            window = write_byte(sink, window, end_of(&nodes[at]));
        }
        if (at == 0) {
            break;
        }
        window = write_byte(sink, window, ',');
        at = nodes[at].next;
    }
    close_window(sink, window);
}
