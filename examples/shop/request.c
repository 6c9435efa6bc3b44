/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the memory of one request and the reading of its headers. Does not answer anything.
 * Invariant: body_bytes <= body_capacity_bytes, and the body is never shortened or changed.
 */
#include "request.h"

#include <ctype.h>
#include <microhttpd.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shop_request *shop_request_new(const char *target, struct MHD_Connection *connection)
{
    struct shop_request *request = calloc(1, sizeof(*request));

    if (request == NULL) {
        return NULL;
    }
    request->target = strdup(target);
    if (request->target == NULL) {
        free(request);
        return NULL;
    }
    request->connection = connection;
    request->path_bytes = strcspn(request->target, "?");
    request->key = "";
    return request;
}

void shop_request_free(struct shop_request *request)
{
    if (request == NULL) {
        return;
    }
    free(request->target);
    free(request->body);
    free(request);
}

/* Makes room for byte_count more bytes, doubling so that a large body is copied a few times only.
 */
static bool request_reserve(struct shop_request *request, size_t byte_count)
{
    size_t needed = request->body_bytes + byte_count;
    size_t capacity = request->body_capacity_bytes == 0 ? 4096 : request->body_capacity_bytes;
    char *grown;

    if (needed <= request->body_capacity_bytes) {
        return true;
    }
    while (capacity < needed) {
        capacity *= 2;
    }
    grown = realloc(request->body, capacity);
    if (grown == NULL) {
        return false;
    }
    request->body = grown;
    request->body_capacity_bytes = capacity;
    return true;
}

bool shop_request_append(struct shop_request *request, const char *bytes, size_t byte_count)
{
    if (request->body_too_long) {
        return true;
    }
    if (byte_count > SHOP_BODY_BYTES_MAX - request->body_bytes) {
        request->body_too_long = true;
        return true;
    }
    if (!request_reserve(request, byte_count)) {
        return false;
    }
    memcpy(request->body + request->body_bytes, bytes, byte_count);
    request->body_bytes += byte_count;
    return true;
}

bool shop_request_complete(struct shop_request *request, const char *method)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int digest_bytes = 0;
    const char *key = NULL;
    size_t key_bytes = 0;
    const void *body = request->body == NULL ? "" : request->body;

    request->method = method;
    if (MHD_lookup_connection_value_n(request->connection, MHD_HEADER_KIND, "Idempotency-Key",
                                      strlen("Idempotency-Key"), &key, &key_bytes) == MHD_YES &&
        key != NULL) {
        request->key = key;
        request->key_bytes = key_bytes;
    }
    if (EVP_Digest(body, request->body_bytes, digest, &digest_bytes, EVP_sha256(), NULL) != 1) {
        return false;
    }
    for (unsigned int i = 0; i < digest_bytes && 2 * i < SHOP_SHA256_HEX_BYTES; i++) {
        (void)snprintf(request->body_sha256 + 2 * (size_t)i, 3, "%02x", digest[i]);
    }
    return true;
}

const char *shop_request_header(const struct shop_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result headers_add(void *list, enum MHD_ValueKind kind, const char *name,
                                   size_t name_bytes, const char *value, size_t value_bytes)
{
    json_t *pair = json_array();
    const char *text = value == NULL ? "" : value;

    (void)kind;
    if (pair == NULL || json_array_append_new(pair, shop_json_text(name, name_bytes)) != 0 ||
        json_array_append_new(pair, shop_json_text(text, value_bytes)) != 0) {
        json_decref(pair);
        return MHD_NO;
    }
    return json_array_append_new(list, pair) == 0 ? MHD_YES : MHD_NO;
}

json_t *shop_request_headers(const struct shop_request *request)
{
    json_t *list = json_array();

    if (list != NULL) {
        (void)MHD_get_connection_values_n(request->connection, MHD_HEADER_KIND, headers_add, list);
    }
    return list;
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (!isxdigit((unsigned char)digit)) {
        return -1;
    }
    return tolower((unsigned char)digit) - 'a' + 10;
}

bool shop_percent_decode(const char *bytes, size_t byte_count, char *out, size_t *out_bytes)
{
    size_t used = 0;

    for (size_t i = 0; i < byte_count; i++) {
        char byte = bytes[i];

        if (used == SHOP_PARAM_BYTES_MAX) {
            return false;
        }
        if (byte == '%' && i + 2 < byte_count && hex_value(bytes[i + 1]) >= 0 &&
            hex_value(bytes[i + 2]) >= 0) {
            byte = (char)(hex_value(bytes[i + 1]) * 16 + hex_value(bytes[i + 2]));
            i += 2;
        }
        out[used] = byte;
        used++;
    }
    *out_bytes = used;
    return true;
}

json_t *shop_json_text(const char *bytes, size_t byte_count)
{
    json_t *text = json_stringn(bytes, byte_count);
    char *wide;
    size_t used = 0;

    if (text != NULL) {
        return text;
    }
    wide = malloc(2 * byte_count + 1);
    if (wide == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < byte_count; i++) {
        unsigned char byte = (unsigned char)bytes[i];

        if (byte >= 0x80) {
            wide[used] = (char)(0xC0 | (byte >> 6));
            used++;
            byte = (unsigned char)(0x80 | (byte & 0x3F));
        }
        wide[used] = (char)byte;
        used++;
    }
    text = json_stringn(wide, used);
    free(wide);
    return text;
}
