/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request as the handlers see it: method, raw target, the one decoded path parameter, the key,
 * the headers as they arrived and the whole body. Does not know how bytes travel: http.c does.
 * Lifecycle: made when the request line is known, grown while the body arrives, freed when the
 * answer has been sent or the connection is gone.
 * Invariant: every byte of target, key and body is exactly what arrived.
 */
#ifndef SHOP_REQUEST_H
#define SHOP_REQUEST_H

#include "shop.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHOP_BODY_BYTES_MAX = 256 * 1024 * 1024,
    SHOP_PARAM_BYTES_MAX = 4096,
    SHOP_ROUTE_NAME_BYTES_MAX = 96,
    SHOP_SHA256_HEX_BYTES = 64,
};

struct MHD_Connection;

struct shop_request {
    struct MHD_Connection *connection; /* Borrowed; valid for as long as the request is. */
    char *target;                      /* Path and query, undecoded. Owned. */
    size_t path_bytes;                 /* The length of the path part of target. */
    const char *method;                /* Borrowed from the connection. */
    const char *key; /* The Idempotency-Key header, "" if there is none. Borrowed. */
    size_t key_bytes;
    char *body; /* Owned; NULL while there is no byte. */
    size_t body_bytes;
    size_t body_capacity_bytes;
    bool body_too_long;
    bool started;                     /* The server library announced the headers. */
    char param[SHOP_PARAM_BYTES_MAX]; /* The decoded {…} of the route's path, set by routes.c. */
    size_t param_bytes;
    char route_name[SHOP_ROUTE_NAME_BYTES_MAX]; /* "POST /api/orders", set by routes.c. */
    char body_sha256[SHOP_SHA256_HEX_BYTES + 1];
};

/* Makes a request for a raw target; NULL when memory is short. Free with shop_request_free. */
struct shop_request *shop_request_new(const char *target,
                                      struct MHD_Connection *connection) SHOP_MUST_CHECK;

/* Frees the request and its body; NULL is allowed. */
void shop_request_free(struct shop_request *request);

/* Appends body bytes. A body above SHOP_BODY_BYTES_MAX sets body_too_long and drops the bytes.
 * False when memory is short. */
bool shop_request_append(struct shop_request *request, const char *bytes,
                         size_t byte_count) SHOP_MUST_CHECK;

/* Reads the method and the key, and digests the complete body. False when hashing is impossible. */
bool shop_request_complete(struct shop_request *request, const char *method) SHOP_MUST_CHECK;

/* The first value of a header, or NULL. Borrowed from the connection. */
const char *shop_request_header(const struct shop_request *request, const char *name);

/* All request headers in their order as a JSON list of [name, value]. New reference, or NULL. */
json_t *shop_request_headers(const struct shop_request *request) SHOP_MUST_CHECK;

/* Decodes %XX of byte_count bytes into out, which has room for SHOP_PARAM_BYTES_MAX bytes, and sets
 * *out_bytes. An invalid escape stays as it is. False when the result does not fit. */
bool shop_percent_decode(const char *bytes, size_t byte_count, char *out,
                         size_t *out_bytes) SHOP_MUST_CHECK;

/* A JSON string of arbitrary bytes: as they are if they are UTF-8, else read as Latin-1.
 * New reference, or NULL. */
json_t *shop_json_text(const char *bytes, size_t byte_count) SHOP_MUST_CHECK;

#endif
