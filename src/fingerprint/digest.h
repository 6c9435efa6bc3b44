/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 and HMAC-SHA-256 over OpenSSL, with contexts that are made once and reused, and the
 * record id of a scope.
 *
 * Threads: a digester belongs to one thread.
 */
#ifndef CFOIL_FINGERPRINT_DIGEST_H
#define CFOIL_FINGERPRINT_DIGEST_H

#include "core/record.h"

struct cfoil_digester; /* a reusable SHA-256 context */

/* Errors: NO_MEMORY. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_digester_create(struct cfoil_digester **digester);
void cfoil_digester_free(struct cfoil_digester *digester);

/*
 * One digest: begin, update any number of times, end. A begin throws away an unfinished one. An
 * update without bytes is nothing. Error of end: SYSTEM (libcrypto failed since begin, or there was
 * no begin); `out` is undefined then.
 */
void cfoil_digest_begin(struct cfoil_digester *digester);
void cfoil_digest_update(struct cfoil_digester *digester, const void *data, size_t len);
CFOIL_MUST_CHECK enum cfoil_error cfoil_digest_end(struct cfoil_digester *digester,
                                                   uint8_t out[CFOIL_DIGEST_BYTES]);

/* The record id. Errors: those of cfoil_scope_frame and of cfoil_digest_end. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_scope_id(struct cfoil_digester *digester,
                                                 const struct cfoil_scope *scope,
                                                 uint8_t id[CFOIL_DIGEST_BYTES]);

/*
 * HMAC-SHA-256 under one secret, for the authorization tenant; the secret is copied, and wiped by free.
 * Errors of create: INVALID (a secret that is empty or over INT_MAX bytes: an empty one would be no
 * secret), NO_MEMORY, SYSTEM. Of cfoil_hmac: SYSTEM; `out` is undefined then.
 *
 * Threads: as a digester.
 */
struct cfoil_hmac_key;
CFOIL_MUST_CHECK enum cfoil_error cfoil_hmac_key_create(struct cfoil_bytes secret,
                                                        struct cfoil_hmac_key **key);
void cfoil_hmac_key_free(struct cfoil_hmac_key *key);
CFOIL_MUST_CHECK enum cfoil_error cfoil_hmac(struct cfoil_hmac_key *key, struct cfoil_bytes data,
                                             uint8_t out[CFOIL_DIGEST_BYTES]);

/* Lower-case hex, 2 * len + 1 bytes with its NUL; and back, from either case (false: not hex of
 * that length; `out` is undefined then). */
void cfoil_hex(const uint8_t *data, size_t len, char *out);
bool cfoil_unhex(struct cfoil_bytes text, uint8_t *out, size_t out_bytes);

/* Random bytes from the kernel, for owners and generations. Any thread. Errors: SYSTEM. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_random(void *out, size_t len);

#endif
