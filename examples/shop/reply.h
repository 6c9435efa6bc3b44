/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One answer while it is being made: status, headers, body. Does not send it: http.c does.
 * Lifecycle: zeroed, filled by one handler, changed by the switches, sent or freed.
 * Invariant: body is NULL or holds exactly body_bytes owned bytes.
 */
#ifndef SHOP_REPLY_H
#define SHOP_REPLY_H

#include "shop.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { SHOP_REPLY_HEADERS_MAX = 8 };

struct shop_reply_header {
    const char *name; /* A string constant. */
    char *value;      /* Owned. */
};

struct shop_reply {
    unsigned int status;
    const char *content_type; /* A string constant, or NULL for none. */
    char *body;
    size_t body_bytes;
    struct shop_reply_header headers[SHOP_REPLY_HEADERS_MAX];
    size_t header_count;
    bool broken; /* Memory was short: there is no honest answer, so the connection is closed. */
};

/* Frees what the reply owns and zeroes it. */
void shop_reply_clear(struct shop_reply *reply);

/* Sets status and body {"code":0,"data":…}. Takes the reference; NULL makes the reply broken. */
void shop_reply_data(struct shop_reply *reply, unsigned int status, json_t *data);

/* Sets status and a bare JSON body. Takes the reference; NULL makes the reply broken. */
void shop_reply_json(struct shop_reply *reply, unsigned int status, json_t *body);

/* Sets an error: {"code":status*10,"message":…,"data":null}. The message says what is wrong, where,
 * and what would be right. Replaces whatever the reply held. */
void shop_reply_error(struct shop_reply *reply, unsigned int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets a body of raw bytes, which are copied. */
void shop_reply_bytes(struct shop_reply *reply, unsigned int status, const char *content_type,
                      const char *bytes, size_t byte_count);

/* Adds a header line; the name must be a string constant. */
void shop_reply_header(struct shop_reply *reply, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Grows the body to body_bytes with data that depends only on the position: a JSON object gains a
 * "padding" member and stays JSON, anything else is appended to. A longer body, or one that cannot
 * take the member in the room left, stays as it is. */
void shop_reply_pad(struct shop_reply *reply, size_t body_bytes);

#endif
