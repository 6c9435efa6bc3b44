/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the making of answers. Invariant: whatever fails on the way, the reply is either complete or
 * marked broken, never half filled.
 */
#include "reply.h"

#include "request.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char JSON_TYPE[] = "application/json";
static const char PADDING_OPEN[] = ",\"padding\":\"";
static const char PADDING_CLOSE[] = "\"}";

void shop_reply_clear(struct shop_reply *reply)
{
    free(reply->body);
    for (size_t i = 0; i < reply->header_count; i++) {
        free(reply->headers[i].value);
    }
    memset(reply, 0, sizeof(*reply));
}

void shop_reply_json(struct shop_reply *reply, unsigned int status, json_t *body)
{
    char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);

    json_decref(body);
    free(reply->body);
    reply->status = status;
    reply->content_type = JSON_TYPE;
    reply->body = text;
    reply->body_bytes = text == NULL ? 0 : strlen(text);
    reply->broken = text == NULL;
}

void shop_reply_data(struct shop_reply *reply, unsigned int status, json_t *data)
{
    json_t *body = data == NULL ? NULL : json_pack("{s:i, s:o}", "code", 0, "data", data);

    shop_reply_json(reply, status, body);
}

void shop_reply_error(struct shop_reply *reply, unsigned int status, const char *format, ...)
{
    char message[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);

    shop_reply_clear(reply);
    shop_reply_json(reply, status,
                    json_pack("{s:i, s:o, s:n}", "code", (int)status * 10, "message",
                              shop_json_text(message, strlen(message)), "data"));
}

void shop_reply_bytes(struct shop_reply *reply, unsigned int status, const char *content_type,
                      const char *bytes, size_t byte_count)
{
    char *copy = malloc(byte_count + 1);

    free(reply->body);
    reply->status = status;
    reply->content_type = content_type;
    reply->body = copy;
    reply->body_bytes = copy == NULL ? 0 : byte_count;
    reply->broken = copy == NULL;
    if (copy != NULL && byte_count > 0) {
        memcpy(copy, bytes, byte_count);
    }
}

void shop_reply_header(struct shop_reply *reply, const char *name, const char *format, ...)
{
    char *value = NULL;
    va_list arguments;
    int written;

    va_start(arguments, format);
    written = vasprintf(&value, format, arguments);
    va_end(arguments);

    if (written < 0) {
        reply->broken = true;
        return;
    }
    if (reply->header_count == SHOP_REPLY_HEADERS_MAX) {
        free(value);
        reply->broken = true;
        return;
    }
    reply->headers[reply->header_count].name = name;
    reply->headers[reply->header_count].value = value;
    reply->header_count++;
}

/* A generator without a short period, so that a lost or doubled block cannot look right. */
static void padding_fill(char *out, size_t byte_count)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t state = 2463534242U;

    for (size_t i = 0; i < byte_count; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        out[i] = alphabet[state & 63];
    }
}

void shop_reply_pad(struct shop_reply *reply, size_t body_bytes)
{
    bool is_object = reply->content_type == JSON_TYPE;
    size_t kept = is_object ? reply->body_bytes - 1 : reply->body_bytes;
    size_t open = is_object ? strlen(PADDING_OPEN) : 0;
    size_t close = is_object ? strlen(PADDING_CLOSE) : 0;
    char *grown;

    if (reply->broken || kept + open + close > body_bytes) {
        return;
    }
    grown = realloc(reply->body, body_bytes + 1);
    if (grown == NULL) {
        reply->broken = true;
        return;
    }
    memcpy(grown + kept, PADDING_OPEN, open);
    padding_fill(grown + kept + open, body_bytes - kept - open - close);
    memcpy(grown + body_bytes - close, PADDING_CLOSE, close);
    reply->body = grown;
    reply->body_bytes = body_bytes;
}
