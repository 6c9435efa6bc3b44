/* SPDX-License-Identifier: Apache-2.0 */
/* Shared helpers of the fingerprint tests; support.h says what each does. */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIST_MAX 64

/* Splits a copy of `list` at its spaces; returns how many there are. */
static size_t split(char *list, const char *items[LIST_MAX])
{
    size_t count = 0;
    char *rest = NULL;
    for (char *item = strtok_r(list, " ", &rest); item != NULL; item = strtok_r(NULL, " ", &rest)) {
        assert_true(count < LIST_MAX);
        items[count++] = item;
    }
    return count;
}

struct cfoil_rules *rules_of(const char *ignore, const char *unordered)
{
    const char *ignored[LIST_MAX];
    const char *sets[LIST_MAX];
    char problem[256];
    char *ignore_copy = strdup(ignore != NULL ? ignore : "");
    char *unordered_copy = strdup(unordered != NULL ? unordered : "");
    assert_true(ignore_copy != NULL && unordered_copy != NULL);
    struct cfoil_rules_source source = {.ignore = ignored, .unordered = sets, .query = true};
    source.ignore_count = split(ignore_copy, ignored);
    source.unordered_count = split(unordered_copy, sets);

    struct cfoil_rules *rules = NULL;
    enum cfoil_error error = cfoil_rules_create(&source, &rules, problem, sizeof(problem));
    free(ignore_copy);
    free(unordered_copy);
    if (error != CFOIL_OK) {
        fail_msg("rules do not compile: %s", problem);
    }
    return rules;
}

char *canonical_of(const struct cfoil_rules *rules, const void *json, size_t bytes)
{
    uint8_t *out = NULL;
    size_t out_bytes = 0;
    const char *reason = NULL;
    enum cfoil_error error =
        cfoil_json_canonical(rules, cfoil_bytes_of(json, bytes), &out, &out_bytes, &reason);
    if (error == CFOIL_E_SYNTAX) {
        assert_non_null(reason);
        return NULL;
    }
    assert_int_equal(error, CFOIL_OK);
    assert_null(reason);
    char *text = realloc(out, out_bytes + 1);
    assert_non_null(text);
    text[out_bytes] = '\0';
    return text;
}

const char *raw_reason_of(const void *json, size_t bytes)
{
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    uint8_t *out = NULL;
    size_t out_bytes = 0;
    const char *reason = NULL;
    enum cfoil_error error =
        cfoil_json_canonical(rules, cfoil_bytes_of(json, bytes), &out, &out_bytes, &reason);
    assert_true(error == CFOIL_OK || error == CFOIL_E_SYNTAX);
    assert_true((error == CFOIL_E_SYNTAX) == (reason != NULL));
    free(out);
    cfoil_rules_free(rules);
    return reason;
}

struct cfoil_fingerprint fingerprint_request(const struct cfoil_rules *rules,
                                             const struct cfoil_request_view *request,
                                             const void *body, size_t bytes, size_t piece)
{
    struct cfoil_fingerprinter *fingerprinter = NULL;
    struct cfoil_fingerprint fingerprint;
    const uint8_t *at = body;
    assert_int_equal(cfoil_fingerprinter_create(&fingerprinter), CFOIL_OK);
    cfoil_fingerprint_begin(fingerprinter, rules, request);
    for (size_t sent = 0; sent < bytes;) {
        size_t len = bytes - sent < piece ? bytes - sent : piece;
        cfoil_fingerprint_body(fingerprinter, at + sent, len);
        sent += len;
    }
    assert_int_equal(cfoil_fingerprint_end(fingerprinter, &fingerprint, NULL), CFOIL_OK);
    cfoil_fingerprinter_free(fingerprinter);
    return fingerprint;
}

struct cfoil_fingerprint fingerprint_of(const struct cfoil_rules *rules, const char *content_type,
                                        const void *body, size_t bytes, size_t piece)
{
    const struct cfoil_request_view request = {
        .method = cfoil_bytes_text("POST"),
        .path = cfoil_bytes_text("/orders"),
        .content_type = cfoil_bytes_text(content_type),
    };
    return fingerprint_request(rules, &request, body, bytes, piece);
}

bool same_digest(const uint8_t a[CFOIL_DIGEST_BYTES], const uint8_t b[CFOIL_DIGEST_BYTES])
{
    return memcmp(a, b, CFOIL_DIGEST_BYTES) == 0;
}

/* Whether canonical texts are equal; checks that the digests agree with them. */
static bool are_same(const struct cfoil_rules *rules, const char *a, const char *b)
{
    char *a_text = canonical_of(rules, a, strlen(a));
    char *b_text = canonical_of(rules, b, strlen(b));
    if (a_text == NULL || b_text == NULL) {
        fail_msg("hashed raw: %s", a_text == NULL ? a : b);
    }
    bool same = strcmp(a_text, b_text) == 0;
    struct cfoil_fingerprint a_print =
        fingerprint_of(rules, "application/json", a, strlen(a), SIZE_MAX);
    struct cfoil_fingerprint b_print =
        fingerprint_of(rules, "application/json", b, strlen(b), SIZE_MAX);
    assert_true(same == same_digest(a_print.request_hash, b_print.request_hash));
    assert_true((strcmp(a, b) == 0) == same_digest(a_print.raw_hash, b_print.raw_hash));
    free(a_text);
    free(b_text);
    return same;
}

void assert_same(const struct cfoil_rules *rules, const char *a, const char *b)
{
    if (!are_same(rules, a, b)) {
        fail_msg("should be the same: %s and %s", a, b);
    }
}

void assert_differ(const struct cfoil_rules *rules, const char *a, const char *b)
{
    if (are_same(rules, a, b)) {
        fail_msg("should differ: %s and %s", a, b);
    }
}

void assert_canonical(const char *json, const char *expected)
{
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    char *text = canonical_of(rules, json, strlen(json));
    if (text == NULL) {
        fail_msg("hashed raw: %s", json);
    }
    assert_string_equal(text, expected);
    free(text);
    cfoil_rules_free(rules);
}

void assert_raw_bytes(const void *json, size_t bytes, const char *words)
{
    const char *reason = raw_reason_of(json, bytes);
    if (reason == NULL) {
        fail_msg("should be hashed raw: %.*s", (int)bytes, (const char *)json);
    }
    if (strstr(reason, words) == NULL) {
        fail_msg("\"%.*s\": the reason is \"%s\", not \"%s\"", (int)bytes, (const char *)json,
                 reason, words);
    }
}

void assert_raw(const char *json, const char *words)
{
    assert_raw_bytes(json, strlen(json), words);
}

uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1DULL;
}

uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)((next_random(state) >> 32) % limit);
}

uint64_t take_seed(void)
{
    const char *given = getenv("TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("# TEST_SEED=%" PRIu64 "\n", seed);
    return seed * 2654435761U + 1;
}
