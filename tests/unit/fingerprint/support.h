/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fingerprint tests share: compact ways to ask for a canonical form or a fingerprint.
 * Everything here fails the running test on an error it does not return.
 */
#ifndef TESTS_FINGERPRINT_SUPPORT_H
#define TESTS_FINGERPRINT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fingerprint/fingerprint.h"

/* Rules from space-separated lists of pointers; NULL: none. The query counts. The caller frees. */
struct cfoil_rules *rules_of(const char *ignore, const char *unordered);

/* The canonical text, NUL-ended and malloc'd; NULL if the document is hashed raw. */
char *canonical_of(const struct cfoil_rules *rules, const void *json, size_t bytes);

/* Why a document is hashed raw; NULL if it is not. */
const char *raw_reason_of(const void *json, size_t bytes);

/* The fingerprint of POST /orders with a body of a type, handed over in pieces of `piece` bytes. */
struct cfoil_fingerprint fingerprint_of(const struct cfoil_rules *rules, const char *content_type,
                                        const void *body, size_t bytes, size_t piece);

/* The same for any request. */
struct cfoil_fingerprint fingerprint_request(const struct cfoil_rules *rules,
                                             const struct cfoil_request_view *request,
                                             const void *body, size_t bytes, size_t piece);

bool same_digest(const uint8_t a[CFOIL_DIGEST_BYTES], const uint8_t b[CFOIL_DIGEST_BYTES]);

/*
 * Two texts are, or are not, the same request as JSON bodies under these rules. Both must be
 * canonicalised; a failure prints them.
 */
void assert_same(const struct cfoil_rules *rules, const char *a, const char *b);
void assert_differ(const struct cfoil_rules *rules, const char *a, const char *b);

/* The document's canonical text without rules is this. */
void assert_canonical(const char *json, const char *expected);

/* The document is hashed raw, and the reason contains these words. */
void assert_raw(const char *json, const char *words);
void assert_raw_bytes(const void *json, size_t bytes, const char *words);

/* xorshift64*, so that a printed seed repeats a run anywhere. */
uint64_t next_random(uint64_t *state);
uint32_t random_below(uint64_t *state, uint32_t limit);

/* A seed from TEST_SEED or the clock, printed. */
uint64_t take_seed(void);

#endif
