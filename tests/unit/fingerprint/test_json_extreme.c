/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies made to exhaust a stack or the processor. Each case finishes in a blink with sorting by
 * comparison and no copies; with recursion it crashes, with anything quadratic it runs into the
 * time limit of the test.
 */
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL_STACK_BYTES (256 * 1024)

struct job {
    const struct cfoil_rules *rules;
    const char *body;
    size_t bytes;
    const char *raw_reason;
    enum cfoil_error error;
    struct cfoil_fingerprint fingerprint;
};

/* No assertion of cmocka in here: it may not jump out of a thread. */
static void *fingerprint_job(void *argument)
{
    struct job *job = argument;
    const struct cfoil_request_view request = {.method = cfoil_bytes_text("POST"),
                                               .path = cfoil_bytes_text("/"),
                                               .content_type =
                                                   cfoil_bytes_text("application/json")};
    struct cfoil_fingerprinter *fingerprinter = NULL;
    job->error = cfoil_fingerprinter_create(&fingerprinter);
    if (job->error != CFOIL_OK) {
        return NULL;
    }
    cfoil_fingerprint_begin(fingerprinter, job->rules, &request);
    cfoil_fingerprint_body(fingerprinter, job->body, job->bytes);
    job->error = cfoil_fingerprint_end(fingerprinter, &job->fingerprint, &job->raw_reason);
    cfoil_fingerprinter_free(fingerprinter);
    return NULL;
}

static void run_on_small_stack(struct job *job)
{
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, fingerprint_job, job), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    assert_int_equal(job->error, CFOIL_OK);
}

static struct cfoil_rules *root_unordered(void)
{
    static const char *const root = "";
    const struct cfoil_rules_source source = {.unordered = &root, .unordered_count = 1};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    return rules;
}

static void two_hundred_thousand_nested_arrays_fit_a_small_stack(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    char *body = malloc(2 * DEPTH);
    assert_non_null(body);
    memset(body, '[', DEPTH);
    memset(body + DEPTH, ']', DEPTH);
    struct cfoil_rules *rules = rules_of("/0/0/0", "/*/*");
    struct job job = {.rules = rules, .body = body, .bytes = 2 * DEPTH};
    run_on_small_stack(&job);
    assert_non_null(job.raw_reason);
    assert_non_null(strstr(job.raw_reason, "deep"));
    struct job other = job;
    other.bytes--;
    run_on_small_stack(&other);
    assert_false(same_digest(job.fingerprint.request_hash, other.fingerprint.request_hash));
    cfoil_rules_free(rules);
    free(body);
}

static void objects_at_the_depth_limit_fit_a_small_stack(void **state)
{
    (void)state;
    char body[CFOIL_JSON_DEPTH_MAX * 6 + 8];
    size_t used = 0;
    for (unsigned i = 0; i < CFOIL_JSON_DEPTH_MAX; i++) {
        memcpy(body + used, "{\"a\":", 5);
        used += 5;
    }
    body[used++] = '1';
    memset(body + used, '}', CFOIL_JSON_DEPTH_MAX);
    used += CFOIL_JSON_DEPTH_MAX;
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    struct job job = {.rules = rules, .body = body, .bytes = used};
    run_on_small_stack(&job);
    assert_null(job.raw_reason);
    cfoil_rules_free(rules);
}

/* An object of `count` members whose names come in an order given by a multiplier. */
static char *object_of(size_t count, const char *prefix, size_t multiplier, size_t *bytes)
{
    size_t room = count * (strlen(prefix) + 16) + 16;
    char *body = malloc(room);
    assert_non_null(body);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(body + used, room - used, "%c\"%s%zx\":1", i == 0 ? '{' : ',',
                                 prefix, i * multiplier % count);
    }
    body[used++] = '}';
    *bytes = used;
    return body;
}

static void assert_canonicalised(const struct cfoil_rules *rules, const char *body, size_t bytes)
{
    struct job job = {.rules = rules, .body = body, .bytes = bytes};
    run_on_small_stack(&job);
    if (job.raw_reason != NULL) {
        fail_msg("hashed raw: %s", job.raw_reason);
    }
}

static void half_a_million_members_are_sorted_in_time(void **state)
{
    (void)state;
    static const size_t multipliers[] = {1, 499978, 7919, 250001}; /* prime to the count */
    struct cfoil_rules *rules = rules_of("/1", NULL);
    for (size_t i = 0; i < 4; i++) {
        size_t bytes = 0;
        char *body = object_of(499979, "", multipliers[i], &bytes);
        assert_canonicalised(rules, body, bytes);
        free(body);
    }
    cfoil_rules_free(rules);
}

static void names_with_a_long_common_start_are_sorted_in_time(void **state)
{
    (void)state;
    char prefix[401];
    memset(prefix, 'p', 400);
    prefix[400] = '\0';
    size_t bytes = 0;
    char *body = object_of(19997, prefix, 7919, &bytes);
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    assert_canonicalised(rules, body, bytes);
    cfoil_rules_free(rules);
    free(body);
}

static void a_multiset_of_equal_large_elements_is_sorted_in_time(void **state)
{
    (void)state;
    enum { ELEMENTS = 700 };
    size_t one_bytes = 0;
    char *one = object_of(997, "", 7, &one_bytes);
    char *body = malloc(ELEMENTS * (one_bytes + 1) + 2);
    assert_non_null(body);
    size_t used = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        body[used++] = i == 0 ? '[' : ',';
        memcpy(body + used, one, one_bytes);
        used += one_bytes;
    }
    body[used++] = ']';
    struct cfoil_rules *rules = root_unordered();
    assert_canonicalised(rules, body, used);
    cfoil_rules_free(rules);
    free(body);
    free(one);
}

static void half_a_million_elements_of_a_multiset_are_sorted_in_time(void **state)
{
    (void)state;
    enum { ELEMENTS = 499979 };
    char *body = malloc(ELEMENTS * 20 + 2);
    assert_non_null(body);
    size_t used = 0;
    for (size_t i = 0; i < ELEMENTS; i++) {
        used +=
            (size_t)snprintf(body + used, 20, "%c[%zu]", i == 0 ? '[' : ',', i * 7919 % ELEMENTS);
    }
    body[used++] = ']';
    struct cfoil_rules *rules = root_unordered();
    assert_canonicalised(rules, body, used);
    cfoil_rules_free(rules);
    free(body);
}

#define NESTED_SETS 200

/* Multisets within multisets: "", "/0", "/0/0" and so on. */
static struct cfoil_rules *nested_sets(void)
{
    static char texts[NESTED_SETS][2 * NESTED_SETS + 1];
    static const char *pointers[NESTED_SETS];
    for (size_t depth = 0; depth < NESTED_SETS; depth++) {
        for (size_t i = 0; i < depth; i++) {
            memcpy(texts[depth] + 2 * i, "/*", 3);
        }
        pointers[depth] = texts[depth];
    }
    const struct cfoil_rules_source source = {.unordered = pointers,
                                              .unordered_count = NESTED_SETS};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    return rules;
}

static void deeply_nested_multisets_are_sorted_in_time(void **state)
{
    (void)state;
    const size_t text_bytes = 4 << 20; /* at the bottom; copied at each level it would be 800 MiB */
    char *body = malloc(text_bytes + NESTED_SETS * 8 + 16);
    assert_non_null(body);
    size_t used = 0;
    memset(body, '[', NESTED_SETS);
    used += NESTED_SETS;
    body[used++] = '"';
    memset(body + used, 'x', text_bytes);
    used += text_bytes;
    body[used++] = '"';
    for (int i = 0; i < NESTED_SETS; i++) {
        memcpy(body + used, ",[1]]", 5);
        used += 5;
    }
    struct cfoil_rules *rules = nested_sets();
    assert_canonicalised(rules, body, used);
    cfoil_rules_free(rules);
    free(body);
}

static void binary_trees_of_multisets_are_sorted_in_time(void **state)
{
    (void)state;
    enum { LEVELS = 17 };
    size_t room = (size_t)4 << LEVELS;
    char *tree = malloc(room);
    char *next = malloc(room);
    assert_true(tree != NULL && next != NULL);
    size_t bytes = 1;
    tree[0] = '1';
    for (int level = 0; level < LEVELS; level++) {
        next[0] = '[';
        memcpy(next + 1, tree, bytes);
        next[1 + bytes] = ',';
        memcpy(next + 2 + bytes, tree, bytes);
        next[2 + 2 * bytes] = ']';
        bytes = 3 + 2 * bytes;
        char *swap = tree;
        tree = next;
        next = swap;
    }
    struct cfoil_rules *rules = nested_sets();
    assert_canonicalised(rules, tree, bytes);
    cfoil_rules_free(rules);
    free(tree);
    free(next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hundred_thousand_nested_arrays_fit_a_small_stack),
        cmocka_unit_test(objects_at_the_depth_limit_fit_a_small_stack),
        cmocka_unit_test(half_a_million_members_are_sorted_in_time),
        cmocka_unit_test(names_with_a_long_common_start_are_sorted_in_time),
        cmocka_unit_test(a_multiset_of_equal_large_elements_is_sorted_in_time),
        cmocka_unit_test(half_a_million_elements_of_a_multiset_are_sorted_in_time),
        cmocka_unit_test(deeply_nested_multisets_are_sorted_in_time),
        cmocka_unit_test(binary_trees_of_multisets_are_sorted_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
