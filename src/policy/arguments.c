/* SPDX-License-Identifier: Apache-2.0 */
/* See arguments.h. */
#include "policy/arguments.h"

/* Takes the bytes up to the next `separator`, which is skipped; false at the end. */
static bool take_part(struct cfoil_bytes *rest, char separator, struct cfoil_bytes *part)
{
    if (rest->data == NULL) {
        return false;
    }
    const uint8_t *end = rest->len > 0 ? memchr(rest->data, separator, rest->len) : NULL;
    if (end == NULL) {
        *part = *rest;
        *rest = cfoil_bytes_of(NULL, 0);
        return true;
    }
    *part = cfoil_bytes_of(rest->data, (size_t)(end - rest->data));
    *rest = cfoil_bytes_of(end + 1, rest->len - part->len - 1);
    return true;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at *at, decoded; *at moves behind it. */
static uint8_t decode(struct cfoil_bytes text, size_t *at)
{
    uint8_t c = text.data[(*at)++];
    if (c == '+') {
        return ' ';
    }
    if (c != '%' || text.len - *at < 2) {
        return c;
    }
    int high = hex_digit(text.data[*at]);
    int low = hex_digit(text.data[*at + 1]);
    if (high < 0 || low < 0) {
        return c;
    }
    *at += 2;
    return (uint8_t)(high * 16 + low);
}

static bool is_named(struct cfoil_bytes encoded, const char *name)
{
    size_t at = 0;
    while (at < encoded.len) {
        uint8_t c = decode(encoded, &at);
        if (*name == '\0' || (uint8_t)*name++ != c) {
            return false;
        }
    }
    return *name == '\0';
}

/* Adds or compares one byte of a value at its place. */
static void take_byte(struct cfoil_finding *finding, bool first, size_t place, uint8_t c)
{
    if (!first) {
        bool same = place < finding->len && (uint8_t)finding->out[place] == c;
        finding->found = same ? finding->found : CFOIL_FOUND_SEVERAL;
        return;
    }
    if (place == finding->out_bytes) {
        finding->found = CFOIL_FOUND_TOO_LONG;
        return;
    }
    finding->out[place] = (char)c;
    finding->len = place + 1;
}

/* One value more; an empty one is none. */
static void take_value(struct cfoil_finding *finding, struct cfoil_bytes value, bool encoded)
{
    bool first = finding->found == CFOIL_FOUND_NONE;
    size_t place = 0;
    size_t at = 0;

    if (value.len == 0) {
        return;
    }
    finding->found = first ? CFOIL_FOUND_ONE : finding->found;
    while (at < value.len && finding->found == CFOIL_FOUND_ONE) {
        uint8_t c = encoded ? decode(value, &at) : value.data[at++];
        take_byte(finding, first, place++, c);
    }
    if (finding->found == CFOIL_FOUND_ONE && place != finding->len) {
        finding->found = CFOIL_FOUND_SEVERAL;
    }
}

void cfoil_query_find(struct cfoil_bytes query, const char *name, struct cfoil_finding *finding)
{
    struct cfoil_bytes part;
    while (take_part(&query, '&', &part)) {
        struct cfoil_bytes argument;
        (void)take_part(&part, '=', &argument);
        if (part.data != NULL && is_named(argument, name)) {
            take_value(finding, part, true);
        }
    }
}

static struct cfoil_bytes unquoted(struct cfoil_bytes text)
{
    if (text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"') {
        return cfoil_bytes_of(text.data + 1, text.len - 2);
    }
    return text;
}

void cfoil_cookie_find(struct cfoil_bytes header, const char *name, struct cfoil_finding *finding)
{
    struct cfoil_bytes part;
    while (take_part(&header, ';', &part)) {
        struct cfoil_bytes cookie;
        (void)take_part(&part, '=', &cookie);
        if (part.data != NULL &&
            cfoil_bytes_equal(cfoil_bytes_trimmed(cookie), cfoil_bytes_text(name))) {
            take_value(finding, unquoted(cfoil_bytes_trimmed(part)), false);
        }
    }
}
