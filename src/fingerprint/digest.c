/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 and HMAC-SHA-256 over libcrypto, hex and randomness. Owns every call into libcrypto and
 * the only getrandom of the room; does not own what is hashed.
 *
 * Lifecycle of a digester: create -> (begin -> update* -> end)* -> free. It uses libcrypto's SHA256_*
 * functions and its HMAC context, which OpenSSL 3 calls deprecated: its EVP ones allocate, wipe and free
 * a context for every digest, which costs several times what hashing a small request does.
 *
 * Invariant: bytes that are given out as a digest are one. A failure since begin is remembered and
 * told by end, instead of a digest of something else being handed out.
 */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "fingerprint/digest.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/random.h>

struct cfoil_digester {
    SHA256_CTX context;
    bool failed; /* since the last begin */
};

_Static_assert(SHA256_DIGEST_LENGTH == CFOIL_DIGEST_BYTES, "a digest is a SHA-256");

enum cfoil_error cfoil_digester_create(struct cfoil_digester **digester)
{
    struct cfoil_digester *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    made->failed = true; /* an end without a begin must not succeed */
    *digester = made;
    return CFOIL_OK;
}

void cfoil_digester_free(struct cfoil_digester *digester)
{
    free(digester);
}

void cfoil_digest_begin(struct cfoil_digester *digester)
{
    digester->failed = SHA256_Init(&digester->context) != 1;
}

void cfoil_digest_update(struct cfoil_digester *digester, const void *data, size_t len)
{
    if (len == 0 || digester->failed) {
        return;
    }
    digester->failed = SHA256_Update(&digester->context, data, len) != 1;
}

enum cfoil_error cfoil_digest_end(struct cfoil_digester *digester, uint8_t out[CFOIL_DIGEST_BYTES])
{
    if (digester->failed) {
        return CFOIL_E_SYSTEM;
    }
    digester->failed = true; /* a second end must not repeat the first one's digest */
    return SHA256_Final(out, &digester->context) == 1 ? CFOIL_OK : CFOIL_E_SYSTEM;
}

static void scope_sink(void *context, const void *data, size_t len)
{
    cfoil_digest_update(context, data, len);
}

enum cfoil_error cfoil_scope_id(struct cfoil_digester *digester, const struct cfoil_scope *scope,
                                uint8_t id[CFOIL_DIGEST_BYTES])
{
    cfoil_digest_begin(digester);
    enum cfoil_error error = cfoil_scope_frame(scope, scope_sink, digester);
    if (error != CFOIL_OK) {
        return error;
    }
    return cfoil_digest_end(digester, id);
}

struct cfoil_hmac_key {
    HMAC_CTX *context;
};

enum cfoil_error cfoil_hmac_key_create(struct cfoil_bytes secret, struct cfoil_hmac_key **key)
{
    if (secret.len == 0 || secret.len > INT_MAX) {
        return CFOIL_E_INVALID;
    }
    struct cfoil_hmac_key *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    made->context = HMAC_CTX_new();
    if (made->context == NULL ||
        HMAC_Init_ex(made->context, secret.data, (int)secret.len, EVP_sha256(), NULL) != 1) {
        cfoil_hmac_key_free(made);
        return CFOIL_E_SYSTEM;
    }
    *key = made;
    return CFOIL_OK;
}

void cfoil_hmac_key_free(struct cfoil_hmac_key *key)
{
    if (key == NULL) {
        return;
    }
    HMAC_CTX_free(key->context);
    free(key);
}

/* An init without a key takes the one of before, and what was already hashed of it. */
enum cfoil_error cfoil_hmac(struct cfoil_hmac_key *key, struct cfoil_bytes data,
                            uint8_t out[CFOIL_DIGEST_BYTES])
{
    unsigned int written = 0;

    if (HMAC_Init_ex(key->context, NULL, 0, NULL, NULL) != 1 ||
        HMAC_Update(key->context, data.data, data.len) != 1 ||
        HMAC_Final(key->context, out, &written) != 1) {
        return CFOIL_E_SYSTEM;
    }
    return written == CFOIL_DIGEST_BYTES ? CFOIL_OK : CFOIL_E_SYSTEM;
}

void cfoil_hex(const uint8_t *data, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * len] = '\0';
}

/* The value of a hex digit, either case; -1 if it is none. */
static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

bool cfoil_unhex(struct cfoil_bytes text, uint8_t *out, size_t out_bytes)
{
    if (text.len % 2 != 0 || text.len / 2 != out_bytes) {
        return false;
    }
    for (size_t i = 0; i < out_bytes; i++) {
        int high = hex_value(text.data[2 * i]);
        int low = hex_value(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

enum cfoil_error cfoil_random(void *out, size_t len)
{
    uint8_t *at = out;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return CFOIL_E_SYSTEM;
        }
        at += got;
        len -= (size_t)got;
    }
    return CFOIL_OK;
}
