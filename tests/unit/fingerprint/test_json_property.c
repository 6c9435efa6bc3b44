/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random documents: every spelling of a document has one fingerprint, and a document that means
 * something else has another. TEST_SEED repeats a run.
 */
#include "generator.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 3000

static uint64_t seed;

/* Every level a generated document has. */
static const char every_level[] = "/* /*/* /*/*/* /*/*/*/* /*/*/*/*/* /*/*/*/*/*/*";
static const char every_noise[] = "/noise /*/noise /*/*/noise /*/*/*/noise /*/*/*/*/noise "
                                  "/*/*/*/*/*/noise /*/*/*/*/*/*/noise";

/* Rules that make every array a multiset, the root too. */
static struct cfoil_rules *all_unordered(void)
{
    static const char *const pointers[] = {
        "", "/*", "/*/*", "/*/*/*", "/*/*/*/*", "/*/*/*/*/*", "/*/*/*/*/*/*",
    };
    const struct cfoil_rules_source source = {.unordered = pointers, .unordered_count = 7};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    return rules;
}

static void spellings_agree(const struct cfoil_rules *rules, enum spelling spelling)
{
    uint64_t random = seed;
    static struct doc doc;
    for (int round = 0; round < ROUNDS; round++) {
        doc_generate(&doc, &random);
        char *a = doc_spell(&doc, &random, SPELL_ORDERED);
        char *b = doc_spell(&doc, &random, spelling);
        assert_same(rules, a, b);
        free(a);
        free(b);
    }
}

static void changes_show(const struct cfoil_rules *rules, enum spelling spelling)
{
    uint64_t random = seed + 1;
    static struct doc doc;
    for (int round = 0; round < ROUNDS; round++) {
        doc_generate(&doc, &random);
        char *a = doc_spell(&doc, &random, spelling);
        doc_mutate(&doc, &random);
        char *b = doc_spell(&doc, &random, spelling);
        assert_differ(rules, a, b);
        free(a);
        free(b);
    }
}

static void every_spelling_of_a_document_is_the_same_request(void **state)
{
    (void)state;
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    spellings_agree(rules, SPELL_ORDERED);
    cfoil_rules_free(rules);
}

static void every_change_of_a_document_is_another_request(void **state)
{
    (void)state;
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    changes_show(rules, SPELL_ORDERED);
    cfoil_rules_free(rules);
}

static void the_order_of_multisets_never_matters(void **state)
{
    (void)state;
    struct cfoil_rules *rules = all_unordered();
    spellings_agree(rules, SPELL_SHUFFLED_ARRAYS);
    cfoil_rules_free(rules);
}

static void every_change_inside_multisets_shows(void **state)
{
    (void)state;
    struct cfoil_rules *rules = all_unordered();
    changes_show(rules, SPELL_SHUFFLED_ARRAYS);
    cfoil_rules_free(rules);
}

static void ignored_noise_never_matters(void **state)
{
    (void)state;
    struct cfoil_rules *rules = rules_of(every_noise, NULL);
    spellings_agree(rules, SPELL_NOISE);
    cfoil_rules_free(rules);
}

static void noise_in_multisets_never_matters(void **state)
{
    (void)state;
    struct cfoil_rules *rules = rules_of(every_noise, every_level);
    uint64_t random = seed + 2;
    static struct doc doc;
    for (int round = 0; round < ROUNDS; round++) {
        doc_generate(&doc, &random);
        doc.values[0].kind = DOC_OBJECT; /* the root itself is not listed here */
        char *a = doc_spell(&doc, &random, SPELL_NOISE | SPELL_SHUFFLED_ARRAYS);
        char *b = doc_spell(&doc, &random, SPELL_NOISE | SPELL_SHUFFLED_ARRAYS);
        assert_same(rules, a, b);
        free(a);
        free(b);
    }
    cfoil_rules_free(rules);
}

static void a_canonical_text_is_its_own_canonical_text(void **state)
{
    (void)state;
    uint64_t random = seed + 3;
    static struct doc doc;
    for (int round = 0; round < ROUNDS; round++) {
        doc_generate(&doc, &random);
        char *a = doc_spell(&doc, &random, SPELL_ORDERED);
        struct cfoil_rules *rules = rules_of(NULL, NULL);
        char *canonical = canonical_of(rules, a, strlen(a));
        assert_non_null(canonical);
        assert_canonical(canonical, canonical);
        cfoil_rules_free(rules);
        free(canonical);
        free(a);
    }
}

static void a_cut_anywhere_changes_nothing(void **state)
{
    (void)state;
    uint64_t random = seed + 4;
    static struct doc doc;
    struct cfoil_rules *rules = rules_of("/*/Aa", every_level);
    for (int round = 0; round < ROUNDS; round++) {
        doc_generate(&doc, &random);
        char *json = doc_spell(&doc, &random, SPELL_ORDERED);
        size_t bytes = strlen(json);
        size_t piece = 1 + random_below(&random, (uint32_t)bytes);
        struct cfoil_fingerprint whole =
            fingerprint_of(rules, "application/json", json, bytes, SIZE_MAX);
        struct cfoil_fingerprint cut =
            fingerprint_of(rules, "application/json", json, bytes, piece);
        assert_memory_equal(&whole, &cut, sizeof(whole));
        free(json);
    }
    cfoil_rules_free(rules);
}

static void damaged_documents_never_crash_and_never_equal_the_whole_one(void **state)
{
    (void)state;
    uint64_t random = seed + 5;
    static struct doc doc;
    struct cfoil_rules *rules = rules_of("/*/Aa", every_level);
    for (int round = 0; round < 4 * ROUNDS; round++) {
        doc_generate(&doc, &random);
        char *json = doc_spell(&doc, &random, SPELL_ORDERED);
        size_t bytes = strlen(json);
        struct cfoil_fingerprint whole =
            fingerprint_of(rules, "application/json", json, bytes, SIZE_MAX);
        size_t place = random_below(&random, (uint32_t)bytes);
        json[place] = (char)(json[place] + 1 + (int)random_below(&random, 255));
        struct cfoil_fingerprint damaged =
            fingerprint_of(rules, "application/json", json, bytes, SIZE_MAX);
        assert_false(same_digest(whole.raw_hash, damaged.raw_hash));
        assert_true(same_digest(whole.target_hash, damaged.target_hash));
        free(json);
    }
    cfoil_rules_free(rules);
}

static void random_bytes_never_crash(void **state)
{
    (void)state;
    static const char likely[] = "{}[]\",:\\u0d8e+-.19 tnfalsr\xC3\xED\xF0\x9F\x80\xBF";
    uint64_t random = seed + 6;
    struct cfoil_rules *rules = rules_of("/a /*/0", every_level);
    for (int round = 0; round < 20 * ROUNDS; round++) {
        char bytes[64];
        size_t count = random_below(&random, sizeof(bytes));
        for (size_t i = 0; i < count; i++) {
            bytes[i] = likely[random_below(&random, sizeof(likely))];
        }
        struct cfoil_fingerprint whole =
            fingerprint_of(rules, "application/json", bytes, count, SIZE_MAX);
        struct cfoil_fingerprint cut = fingerprint_of(rules, "application/json", bytes, count, 5);
        assert_memory_equal(&whole, &cut, sizeof(whole));
    }
    cfoil_rules_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_of_a_document_is_the_same_request),
        cmocka_unit_test(every_change_of_a_document_is_another_request),
        cmocka_unit_test(the_order_of_multisets_never_matters),
        cmocka_unit_test(every_change_inside_multisets_shows),
        cmocka_unit_test(ignored_noise_never_matters),
        cmocka_unit_test(noise_in_multisets_never_matters),
        cmocka_unit_test(a_canonical_text_is_its_own_canonical_text),
        cmocka_unit_test(a_cut_anywhere_changes_nothing),
        cmocka_unit_test(damaged_documents_never_crash_and_never_equal_the_whole_one),
        cmocka_unit_test(random_bytes_never_crash),
    };
    seed = take_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
