/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view of bytes somebody else owns. It never owns, never ends in NUL, and {NULL, 0} means "none".
 */
#ifndef CFOIL_CORE_BYTES_H
#define CFOIL_CORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cfoil_bytes {
    const uint8_t *data;
    size_t len;
};

/* A view of a string literal or any NUL-ended text, without its NUL. NULL gives {NULL, 0}. */
static inline struct cfoil_bytes cfoil_bytes_text(const char *text)
{
    struct cfoil_bytes view = {(const uint8_t *)text, text != NULL ? strlen(text) : 0};
    return view;
}

static inline struct cfoil_bytes cfoil_bytes_of(const void *data, size_t len)
{
    struct cfoil_bytes view = {data, len};
    return view;
}

static inline bool cfoil_bytes_equal(struct cfoil_bytes a, struct cfoil_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Without the spaces and tabs at its ends. */
static inline struct cfoil_bytes cfoil_bytes_trimmed(struct cfoil_bytes text)
{
    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t')) {
        text.len--;
    }
    return text;
}

#endif
