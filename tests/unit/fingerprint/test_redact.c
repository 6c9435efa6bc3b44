/* SPDX-License-Identifier: Apache-2.0 */
/* Values cut out of a JSON text: the named ones and nothing else, byte for byte. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#include "fingerprint/redact.h"

static struct cfoil_redactor *redactor;

static int make_redactor(void **state)
{
    (void)state;
    return cfoil_redactor_create(&redactor) == CFOIL_OK ? 0 : -1;
}

static int free_redactor(void **state)
{
    (void)state;
    cfoil_redactor_free(redactor);
    return 0;
}

static struct cfoil_rules *redacting(const char *const *pointers)
{
    struct cfoil_rules_source source = {.ignore = pointers};
    struct cfoil_rules *rules = NULL;
    while (pointers[source.ignore_count] != NULL) {
        source.ignore_count++;
    }
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    return rules;
}

#define POINTERS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void expect(const char *const *pointers, const char *json, const char *redacted)
{
    struct cfoil_rules *rules = redacting(pointers);
    size_t cuts = 99;
    size_t len = 0;
    assert_int_equal(cfoil_redactor_read(redactor, rules, cfoil_bytes_text(json), &cuts, &len),
                     CFOIL_OK);
    assert_int_equal(len, strlen(redacted));
    uint8_t *out = malloc(len + 1);
    assert_non_null(out);
    out[len] = 0xAA;
    cfoil_redactor_write(redactor, cfoil_bytes_text(json), out);
    assert_memory_equal(out, redacted, len);
    assert_int_equal(out[len], 0xAA);
    assert_int_equal(cuts == 0, strcmp(json, redacted) == 0);
    free(out);
    cfoil_rules_free(rules);
}

static void every_kind_of_value_is_cut(void **state)
{
    static const char *const values[] = {"null", "true", "-1.50e+3", "\"a\\\"b\\u00e9\"",
                                         "[]",   "{}",   "[1, [2]]", "{\"x\": {\"y\": [1]}}",
                                         "0",    "\"\""};
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char json[128];
        (void)snprintf(json, sizeof(json), " { \"a\" : 1.0 , \"card\" :  %s , \"z\":[ ] } ",
                       values[i]);
        expect(POINTERS("/card"), json,
               " { \"a\" : 1.0 , \"card\" :  \"[redacted]\" , \"z\":[ ] } ");
    }
}

static void everything_else_stays_as_it_is_spelled(void **state)
{
    (void)state;
    expect(POINTERS("/b"), "{\"c\":1e0,\t\"b\":\"s\",\r\n\"a\":\"\\u0041\\/\"}\n",
           "{\"c\":1e0,\t\"b\":\"[redacted]\",\r\n\"a\":\"\\u0041\\/\"}\n");
}

static void pointers_reach_into_arrays_and_under_stars(void **state)
{
    (void)state;
    expect(
        POINTERS("/items/*/card"),
        "{\"items\": [{\"card\": 1, \"n\": 2}, {\"card\": \"x\"}, {}, 3]}",
        "{\"items\": [{\"card\": \"[redacted]\", \"n\": 2}, {\"card\": \"[redacted]\"}, {}, 3]}");
    expect(POINTERS("/l/1"), "{\"l\": [1, 2, 3]}", "{\"l\": [1, \"[redacted]\", 3]}");
    expect(POINTERS("/a~1b", "/m~0n"), "{\"a/b\": 1, \"m~n\": 2}",
           "{\"a/b\": \"[redacted]\", \"m~n\": \"[redacted]\"}");
    expect(POINTERS("/*"), "{\"a\": 1, \"b\": {\"c\": 2}}",
           "{\"a\": \"[redacted]\", \"b\": \"[redacted]\"}");
}

/* A name that is spelled with escapes is the same name. */
static void names_are_compared_unescaped(void **state)
{
    (void)state;
    expect(POINTERS("/card/number"), "{\"c\\u0061rd\": {\"\\u006eumber\": \"4242\"}}",
           "{\"c\\u0061rd\": {\"\\u006eumber\": \"[redacted]\"}}");
}

static void a_value_inside_of_one_that_is_cut_is_gone_with_it(void **state)
{
    (void)state;
    expect(POINTERS("/a", "/a/b", "/a/*/c", "/d"), "{\"a\": {\"b\": [1, {\"c\": 2}]}, \"d\": 3}",
           "{\"a\": \"[redacted]\", \"d\": \"[redacted]\"}");
}

static void what_is_not_there_is_not_cut(void **state)
{
    (void)state;
    expect(POINTERS("/card/number", "/x/0"), "{\"card\": \"none\", \"x\": {}, \"number\": 1}",
           "{\"card\": \"none\", \"x\": {}, \"number\": 1}");
    expect(POINTERS("/a"), "[1]", "[1]");
    expect(POINTERS("/a"), "\"a\"", "\"a\"");
}

static void many_values_are_cut(void **state)
{
    static const char one[] = "{\"c\":1},";
    static const char cut[] = "{\"c\":\"[redacted]\"},";
    char json[400 * sizeof(one)];
    char redacted[400 * sizeof(cut)];
    size_t len = 0;
    size_t redacted_len = 0;
    (void)state;

    json[len++] = '[';
    redacted[redacted_len++] = '[';
    for (int i = 0; i < 399; i++) {
        memcpy(json + len, one, sizeof(one) - 1);
        len += sizeof(one) - 1;
        memcpy(redacted + redacted_len, cut, sizeof(cut) - 1);
        redacted_len += sizeof(cut) - 1;
    }
    memcpy(json + len, "0]", 3);
    memcpy(redacted + redacted_len, "0]", 3);
    expect(POINTERS("/*/c"), json, redacted);
}

static void what_has_no_canonical_form_cannot_be_redacted(void **state)
{
    static const char *const texts[] = {"",
                                        "card=4242",
                                        "{\"card\": 1, \"card\": 2}",
                                        "{\"card\": 1",
                                        "{\"card\": \"\\ud800\"}",
                                        "{\"card\": 1}}"};
    (void)state;
    struct cfoil_rules *rules = redacting(POINTERS("/card"));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t cuts;
        size_t len;
        assert_int_equal(
            cfoil_redactor_read(redactor, rules, cfoil_bytes_text(texts[i]), &cuts, &len),
            CFOIL_E_SYNTAX);
    }
    cfoil_rules_free(rules);
    expect(POINTERS("/card"), "{\"card\": 1}", "{\"card\": \"[redacted]\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_cut),
        cmocka_unit_test(everything_else_stays_as_it_is_spelled),
        cmocka_unit_test(pointers_reach_into_arrays_and_under_stars),
        cmocka_unit_test(names_are_compared_unescaped),
        cmocka_unit_test(a_value_inside_of_one_that_is_cut_is_gone_with_it),
        cmocka_unit_test(what_is_not_there_is_not_cut),
        cmocka_unit_test(many_values_are_cut),
        cmocka_unit_test(what_has_no_canonical_form_cannot_be_redacted),
    };

    return cmocka_run_group_tests_name("redact", tests, make_redactor, free_redactor);
}
