/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scope: what a record belongs to. Framed here, hashed by fingerprint/digest.h into the record
 * id. Invariant: two scopes that differ in any part have different frames, because every part is
 * length-prefixed and none is joined by a delimiter (R10 stands on it).
 *
 *   u8 scope version (1) · u8 layer length, layer · u8 kind · u8 tenant class ·
 *   u32 tenant length, tenant · u32 endpoint length, endpoint · u32 key length, key   (big-endian)
 */
#ifndef CFOIL_CORE_SCOPE_H
#define CFOIL_CORE_SCOPE_H

#include "core/bytes.h"
#include "core/error.h"

#define CFOIL_SCOPE_VERSION      1
#define CFOIL_LAYER_BYTES_MAX    32
#define CFOIL_TENANT_BYTES_MAX   1024
#define CFOIL_ENDPOINT_BYTES_MAX 16384
#define CFOIL_KEY_BYTES_MAX      255
#define CFOIL_SCOPE_ID_BYTES     32

/* Kind of key. The numbers are in the frame: never renumber. */
enum cfoil_kind {
    CFOIL_KIND_KEY = 1,
    CFOIL_KIND_BUSINESS = 2,
    CFOIL_KIND_GUARD = 3,
    CFOIL_KIND_TOKEN = 4,
    CFOIL_KIND_DRY_RUN = 5
};

/* Class of tenant. The numbers are in the frame: never renumber. */
enum cfoil_tenant_class {
    CFOIL_TENANT_NAMED = 1,
    CFOIL_TENANT_AUTHORIZATION = 2, /* tenant is the hex HMAC of the header */
    CFOIL_TENANT_NONE = 3           /* tenant is empty */
};

struct cfoil_scope {
    struct cfoil_bytes layer; /* "http", "app" or another label */
    enum cfoil_kind kind;
    enum cfoil_tenant_class tenant_class;
    struct cfoil_bytes tenant;
    struct cfoil_bytes endpoint;
    struct cfoil_bytes key;
};

/* Receives the frame in pieces. */
typedef void (*cfoil_scope_sink)(void *context, const void *data, size_t len);

/*
 * Hands the scope's frame to the sink. Errors: LIMIT (a part over its maximum), INVALID (empty
 * layer or key, kind or class out of range). Nothing is handed over on error.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_scope_frame(const struct cfoil_scope *scope,
                                                    cfoil_scope_sink sink, void *context);

/* Names as they are shown: "key", "named", ... Static; "?" for a value out of range. */
const char *cfoil_kind_name(enum cfoil_kind kind);
const char *cfoil_tenant_class_name(enum cfoil_tenant_class tenant_class);

#endif
