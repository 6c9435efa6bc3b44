/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out, at every allocation there is: the answer is an error or the same
 * fingerprint as ever, never another one, and nothing leaks. The linker puts these functions in
 * front of the allocator for everything of ours; libcrypto keeps its own.
 */
#include "support.h"

#include <stdlib.h>

static long allocations_left = -1; /* -1: as many as wanted */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static bool allocation_fails(void)
{
    if (allocations_left < 0) {
        return false;
    }
    if (allocations_left == 0) {
        return true;
    }
    allocations_left--;
    return false;
}

void *__wrap_malloc(size_t bytes)
{
    return allocation_fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return allocation_fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return allocation_fails() ? NULL : __real_realloc(old, bytes);
}

/* A body that makes every array of the workspace grow. */
static char *greedy_body(size_t *bytes)
{
    enum { MEMBERS = 3000 };
    char *body = malloc(MEMBERS * 24);
    assert_non_null(body);
    size_t used = 0;
    for (unsigned i = 0; i < MEMBERS; i++) {
        char member[24] = "{\"____\":1e20";
        for (int k = 0; k < 4; k++) {
            member[2 + k] = (char)('a' + (i >> (4 * k) & 15));
        }
        member[0] = i == 0 ? '{' : ',';
        memcpy(body + used, member, 12);
        used += 12;
    }
    body[used++] = '}';
    *bytes = used;
    return body;
}

static enum cfoil_error fingerprint_with(long allocations, const char *body, size_t bytes,
                                         struct cfoil_fingerprint *fingerprint)
{
    static const char *const pointers[] = {"/a/b", "/*/c"};
    static const char *const headers[] = {"X-A"};
    const struct cfoil_rules_source source = {pointers, 2, pointers, 2, true, headers, 1};
    const struct cfoil_bytes value = {NULL, 0};
    const struct cfoil_request_view request = {.method = cfoil_bytes_text("POST"),
                                               .path = cfoil_bytes_text("/"),
                                               .content_type = cfoil_bytes_text("application/json"),
                                               .header_values = &value};
    struct cfoil_rules *rules = NULL;
    struct cfoil_fingerprinter *fingerprinter = NULL;
    allocations_left = allocations;
    enum cfoil_error error = cfoil_rules_create(&source, &rules, NULL, 0);
    if (error == CFOIL_OK) {
        error = cfoil_fingerprinter_create(&fingerprinter);
    }
    if (error == CFOIL_OK) {
        cfoil_fingerprint_begin(fingerprinter, rules, &request);
        cfoil_fingerprint_body(fingerprinter, body, bytes / 2);
        cfoil_fingerprint_body(fingerprinter, body + bytes / 2, bytes - bytes / 2);
        error = cfoil_fingerprint_end(fingerprinter, fingerprint, NULL);
    }
    allocations_left = -1;
    cfoil_fingerprinter_free(fingerprinter);
    cfoil_rules_free(rules);
    return error;
}

static void a_failed_allocation_is_an_error_and_never_another_fingerprint(void **state)
{
    (void)state;
    size_t bytes = 0;
    char *body = greedy_body(&bytes);
    struct cfoil_fingerprint whole;
    struct cfoil_fingerprint print;
    assert_int_equal(fingerprint_with(-1, body, bytes, &whole), CFOIL_OK);
    long allocations = 0;
    while (fingerprint_with(allocations, body, bytes, &print) != CFOIL_OK) {
        assert_int_equal(fingerprint_with(allocations, body, bytes, &print), CFOIL_E_NO_MEMORY);
        allocations++;
    }
    assert_true(allocations > 20);
    assert_memory_equal(&whole, &print, sizeof(whole));
    free(body);
}

static void a_failed_allocation_leaves_no_canonical_text(void **state)
{
    (void)state;
    size_t bytes = 0;
    char *body = greedy_body(&bytes);
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    char *whole = canonical_of(rules, body, bytes);
    long allocations = 0;
    assert_non_null(whole);
    for (;; allocations++) {
        uint8_t *text = NULL;
        size_t text_bytes = 0;
        const char *reason = NULL;
        allocations_left = allocations;
        enum cfoil_error error =
            cfoil_json_canonical(rules, cfoil_bytes_of(body, bytes), &text, &text_bytes, &reason);
        allocations_left = -1;
        if (error == CFOIL_OK) {
            assert_int_equal(text_bytes, strlen(whole));
            assert_memory_equal(text, whole, text_bytes);
            free(text);
            break;
        }
        assert_int_equal(error, CFOIL_E_NO_MEMORY);
        assert_null(text);
        assert_null(reason);
    }
    assert_true(allocations > 5);
    free(whole);
    cfoil_rules_free(rules);
    free(body);
}

static void a_fingerprinter_recovers_from_a_failed_allocation(void **state)
{
    (void)state;
    size_t bytes = 0;
    char *body = greedy_body(&bytes);
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    const struct cfoil_request_view request = {.content_type =
                                                   cfoil_bytes_text("application/json")};
    struct cfoil_fingerprinter *fingerprinter = NULL;
    struct cfoil_fingerprint first;
    struct cfoil_fingerprint second;
    assert_int_equal(cfoil_fingerprinter_create(&fingerprinter), CFOIL_OK);
    cfoil_fingerprint_begin(fingerprinter, rules, &request);
    allocations_left = 1;
    cfoil_fingerprint_body(fingerprinter, body, bytes);
    enum cfoil_error error = cfoil_fingerprint_end(fingerprinter, &first, NULL);
    allocations_left = -1;
    assert_int_equal(error, CFOIL_E_NO_MEMORY);

    cfoil_fingerprint_begin(fingerprinter, rules, &request);
    cfoil_fingerprint_body(fingerprinter, body, bytes);
    assert_int_equal(cfoil_fingerprint_end(fingerprinter, &first, NULL), CFOIL_OK);
    second = fingerprint_request(rules, &request, body, bytes, SIZE_MAX);
    assert_memory_equal(&first, &second, sizeof(first));
    cfoil_fingerprinter_free(fingerprinter);
    cfoil_rules_free(rules);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_allocation_is_an_error_and_never_another_fingerprint),
        cmocka_unit_test(a_failed_allocation_leaves_no_canonical_text),
        cmocka_unit_test(a_fingerprinter_recovers_from_a_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
