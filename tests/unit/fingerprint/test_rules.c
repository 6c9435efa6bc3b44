/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fingerprint rules: what compiles, what they are called, what ignore and unordered pointers do.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

static enum cfoil_error compile(const struct cfoil_rules_source *source, char problem[256])
{
    struct cfoil_rules *rules = NULL;
    enum cfoil_error error = cfoil_rules_create(source, &rules, problem, 256);
    if (error == CFOIL_OK) {
        assert_string_equal(problem, "");
        cfoil_rules_free(rules);
    }
    return error;
}

static void assert_pointer_refused(const char *pointer, bool unordered, enum cfoil_error expected)
{
    char problem[256];
    struct cfoil_rules_source source = {0};
    if (unordered) {
        source.unordered = &pointer;
        source.unordered_count = 1;
    } else {
        source.ignore = &pointer;
        source.ignore_count = 1;
    }
    assert_int_equal(compile(&source, problem), expected);
    assert_non_null(strstr(problem, unordered ? "unordered" : "ignore"));
}

static void what_is_no_pointer_is_refused_with_the_fix(void **state)
{
    (void)state;
    char problem[256];
    static const char *const bare = "client_time";
    const struct cfoil_rules_source source = {.ignore = &bare, .ignore_count = 1};
    assert_int_equal(compile(&source, problem), CFOIL_E_SYNTAX);
    assert_non_null(strstr(problem, "\"/client_time\""));
    assert_pointer_refused("a/b", true, CFOIL_E_SYNTAX);
    assert_pointer_refused("#/a", false, CFOIL_E_SYNTAX);
    assert_pointer_refused("/a~", false, CFOIL_E_SYNTAX);
    assert_pointer_refused("/a~2", false, CFOIL_E_SYNTAX);
    assert_pointer_refused("/~~0", true, CFOIL_E_SYNTAX);
    assert_pointer_refused("/\xC3(", false, CFOIL_E_SYNTAX);
}

static void ignoring_the_whole_body_is_refused(void **state)
{
    (void)state;
    assert_pointer_refused("", false, CFOIL_E_SYNTAX);
}

static void pointers_and_headers_over_their_limits_are_refused(void **state)
{
    (void)state;
    char problem[256];
    static char long_pointer[CFOIL_POINTER_BYTES_MAX + 2];
    memset(long_pointer, '/', CFOIL_POINTER_BYTES_MAX + 1);
    assert_pointer_refused(long_pointer, false, CFOIL_E_LIMIT);
    long_pointer[CFOIL_POINTER_BYTES_MAX] = '\0';
    const char *fits = long_pointer;
    struct cfoil_rules_source source = {.ignore = &fits, .ignore_count = 1};
    assert_int_equal(compile(&source, problem), CFOIL_OK);

    static const char *many[CFOIL_RULES_POINTERS_MAX + 1];
    for (size_t i = 0; i <= CFOIL_RULES_POINTERS_MAX; i++) {
        many[i] = "/a";
    }
    source =
        (struct cfoil_rules_source){.ignore = many, .ignore_count = CFOIL_RULES_POINTERS_MAX + 1};
    assert_int_equal(compile(&source, problem), CFOIL_E_LIMIT);
    source.ignore_count--;
    assert_int_equal(compile(&source, problem), CFOIL_OK);
    source =
        (struct cfoil_rules_source){.headers = many, .header_count = CFOIL_RULES_HEADERS_MAX + 1};
    assert_int_equal(compile(&source, problem), CFOIL_E_LIMIT);
}

static void what_is_no_header_name_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", "X Y", "X:", "X-\xC3\xA9", "a,b", "\"a\"", "X\t"};
    char problem[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct cfoil_rules_source source = {.headers = &names[i], .header_count = 1};
        assert_int_equal(compile(&source, problem), CFOIL_E_SYNTAX);
        assert_non_null(strstr(problem, "header name"));
    }
}

static void headers_are_listed_in_lower_case_once_and_in_order(void **state)
{
    (void)state;
    static const char *const names[] = {"X-Zone", "accept", "x-zone", "X-Currency"};
    const struct cfoil_rules_source source = {.headers = names, .header_count = 4};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    assert_int_equal(cfoil_rules_header_count(rules), 3);
    assert_string_equal(cfoil_rules_header(rules, 0), "accept");
    assert_string_equal(cfoil_rules_header(rules, 1), "x-currency");
    assert_string_equal(cfoil_rules_header(rules, 2), "x-zone");
    assert_null(cfoil_rules_header(rules, 3));
    cfoil_rules_free(rules);
}

static uint64_t version_of(const struct cfoil_rules_source *source)
{
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(source, &rules, NULL, 0), CFOIL_OK);
    uint64_t version = cfoil_rules_version(rules);
    cfoil_rules_free(rules);
    return version;
}

static void rules_that_mean_the_same_have_one_version(void **state)
{
    (void)state;
    static const char *const ab[] = {"/a", "/b"};
    static const char *const bab[] = {"/b", "/a", "/b"};
    static const char *const xy[] = {"X-A", "X-B"};
    static const char *const yx[] = {"x-b", "x-A", "X-a"};
    const struct cfoil_rules_source one = {ab, 2, ab, 2, true, xy, 2};
    const struct cfoil_rules_source other = {bab, 3, bab, 3, true, yx, 3};
    assert_int_equal(version_of(&one), version_of(&other));
}

static void rules_that_differ_have_different_versions(void **state)
{
    (void)state;
    static const char *const a[] = {"/a"};
    static const char *const ab[] = {"/a", "/b"};
    static const char *const a_b[] = {"/a/b"};
    static const char *const x[] = {"x-a"};
    static const char *const ax[] = {"a"};
    const struct cfoil_rules_source sources[] = {
        {NULL, 0, NULL, 0, true, NULL, 0}, {NULL, 0, NULL, 0, false, NULL, 0},
        {a, 1, NULL, 0, true, NULL, 0},    {NULL, 0, a, 1, true, NULL, 0},
        {a, 1, a, 1, true, NULL, 0},       {ab, 2, NULL, 0, true, NULL, 0},
        {a_b, 1, NULL, 0, true, NULL, 0},  {NULL, 0, NULL, 0, true, x, 1},
        {NULL, 0, NULL, 0, true, ax, 1},
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        for (size_t k = i + 1; k < sizeof(sources) / sizeof(sources[0]); k++) {
            assert_true(version_of(&sources[i]) != version_of(&sources[k]));
        }
    }
}

static void a_fingerprint_names_its_rules(void **state)
{
    (void)state;
    struct cfoil_rules *rules = rules_of("/a", NULL);
    struct cfoil_fingerprint print = fingerprint_of(rules, "text/plain", "x", 1, 1);
    assert_true(print.rules == cfoil_rules_version(rules));
    cfoil_rules_free(rules);
}

/* Documents equal (or not) under one list of ignore pointers. */
static void ignoring(const char *pointers, const char *a, const char *b, bool same)
{
    struct cfoil_rules *rules = rules_of(pointers, NULL);
    if (same) {
        assert_same(rules, a, b);
    } else {
        assert_differ(rules, a, b);
    }
    cfoil_rules_free(rules);
}

static void ignored_members_do_not_count(void **state)
{
    (void)state;
    ignoring("/t", "{\"a\":1,\"t\":5}", "{\"t\":[{}],\"a\":1}", true);
    ignoring("/t", "{\"a\":1,\"t\":5}", "{\"a\":1}", true);
    ignoring("/t", "{\"a\":1,\"t\":5}", "{\"a\":2,\"t\":5}", false);
    ignoring("/t", "{\"t\":1}", "{}", true);
    ignoring("/a /b /c", "{\"a\":1,\"b\":2,\"c\":3}", "{}", true);
}

static void only_the_named_level_is_ignored(void **state)
{
    (void)state;
    ignoring("/t", "{\"a\":{\"t\":1}}", "{\"a\":{\"t\":2}}", false);
    ignoring("/a/t", "{\"a\":{\"t\":1}}", "{\"a\":{\"t\":2}}", true);
    ignoring("/a/t", "{\"b\":{\"t\":1}}", "{\"b\":{\"t\":2}}", false);
    ignoring("/a/t", "{\"a\":{\"t\":1}}", "{\"a\":{}}", true);
    ignoring("/a/t", "{\"a\":{\"x\":{\"t\":1}}}", "{\"a\":{\"x\":{\"t\":2}}}", false);
    ignoring("/a/t", "{\"a\":1}", "{\"a\":2}", false);
}

static void a_star_stands_for_one_level(void **state)
{
    (void)state;
    ignoring("/*/t", "{\"a\":{\"t\":1},\"b\":{\"t\":2}}", "{\"a\":{},\"b\":{}}", true);
    ignoring("/*/t", "[{\"t\":1},{\"t\":2,\"x\":0}]", "[{},{\"x\":0}]", true);
    ignoring("/*/t", "{\"t\":1}", "{\"t\":2}", false);
    ignoring("/*/t", "{\"a\":{\"b\":{\"t\":1}}}", "{\"a\":{\"b\":{\"t\":2}}}", false);
    ignoring("/items/*/price", "{\"items\":[{\"price\":1},{\"price\":2}]}", "{\"items\":[{},{}]}",
             true);
    ignoring("/*", "{\"a\":1}", "{}", true);
    ignoring("/*", "[1,2]", "[]", true);
    ignoring("/*", "1", "2", false);
    ignoring("/*", "[]", "{}", false);
    ignoring("/*/*", "{\"a\":[1]}", "{\"a\":[]}", true);
    ignoring("/a*", "{\"ab\":1}", "{\"ab\":2}", false);
    ignoring("/a*", "{\"a*\":1}", "{\"a*\":2}", true);
    ignoring("/*a", "{\"ba\":1}", "{\"ba\":2}", false);
    ignoring("/*a", "{\"*a\":1}", "{\"*a\":2}", true);
}

static void star_and_name_can_meet_on_one_value(void **state)
{
    (void)state;
    ignoring("/*/x /a/y", "{\"a\":{\"x\":1,\"y\":2,\"z\":3}}", "{\"a\":{\"z\":3}}", true);
    ignoring("/*/x /a/y", "{\"b\":{\"y\":2}}", "{\"b\":{\"y\":3}}", false);
    ignoring("/*/*/c /a/*/d /*/b/e", "{\"a\":{\"b\":{\"c\":1,\"d\":2,\"e\":3}}}",
             "{\"a\":{\"b\":{}}}", true);
    ignoring("/a /a/b", "{\"a\":{\"b\":1,\"c\":2}}", "{}", true);
}

static void pointers_unescape_as_rfc_6901_says(void **state)
{
    (void)state;
    ignoring("/a~1b", "{\"a/b\":1}", "{\"a/b\":2}", true);
    ignoring("/m~0n", "{\"m~n\":1}", "{\"m~n\":2}", true);
    ignoring("/~01", "{\"~1\":1}", "{\"~1\":2}", true);
    ignoring("/~01", "{\"/\":1}", "{\"/\":2}", false);
    ignoring("/", "{\"\":1}", "{\"\":2}", true);
    ignoring("/", "{\"a\":1}", "{\"a\":2}", false);
    ignoring("//", "{\"\":{\"\":1}}", "{\"\":{\"\":2}}", true);
    ignoring("/\xC3\xA9", "{\"\\u00e9\":1}", "{\"\xC3\xA9\":2}", true);
    ignoring("/a%25", "{\"a%25\":1}", "{\"a%25\":2}", true);
}

static void elements_are_named_by_their_index(void **state)
{
    (void)state;
    ignoring("/1", "[1,2,3]", "[1,9,3]", true);
    ignoring("/1", "[1,2,3]", "[1,3]", false);
    ignoring("/1", "[1,2]", "[1]", true);
    ignoring("/0 /1", "[1,2,3]", "[8,9,3]", true);
    ignoring("/01", "[1,2]", "[1,3]", false);
    ignoring("/-", "[1]", "[2]", false);
    ignoring("/1", "{\"1\":5}", "{\"1\":6}", true);
    ignoring("/10", "[0,1,2,3,4,5,6,7,8,9,10]", "[0,1,2,3,4,5,6,7,8,9,11]", true);
    ignoring("/10", "[0,1,2,3,4,5,6,7,8,9,10]", "[0,1,2,3,4,5,6,7,8,8,10]", false);
    ignoring("/a/0/b", "{\"a\":[{\"b\":1},{\"b\":2}]}", "{\"a\":[{},{\"b\":2}]}", true);
}

static void a_pointer_that_matches_nothing_is_fine(void **state)
{
    (void)state;
    ignoring("/nowhere /a/b/c/d /*/x/*/y", "{\"a\":[1,{\"b\":2}]}", "{ \"a\" : [1, {\"b\":2.0}]}",
             true);
}

static void ignored_values_must_still_be_json(void **state)
{
    (void)state;
    struct cfoil_rules *rules = rules_of("/t", NULL);
    static const char *const documents[] = {"{\"t\":01}", "{\"t\":\"\xFF\"}", "{\"t\":1,\"t\":2}",
                                            "{\"t\":{\"a\":1,\"a\":2}}", "{\"t\":}"};
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        assert_null(canonical_of(rules, documents[i], strlen(documents[i])));
    }
    cfoil_rules_free(rules);
}

/* Documents equal (or not) under one list of unordered pointers; "\"\"" cannot be listed here. */
static void unordered(const char *pointers, const char *a, const char *b, bool same)
{
    struct cfoil_rules *rules = rules_of(NULL, pointers);
    if (same) {
        assert_same(rules, a, b);
    } else {
        assert_differ(rules, a, b);
    }
    cfoil_rules_free(rules);
}

static void an_unordered_array_is_a_multiset(void **state)
{
    (void)state;
    unordered("/a", "{\"a\":[1,2,3]}", "{\"a\":[3,1,2]}", true);
    unordered("/a", "{\"a\":[1,1,2]}", "{\"a\":[1,2,2]}", false);
    unordered("/a", "{\"a\":[1,1]}", "{\"a\":[1]}", false);
    unordered("/a", "{\"a\":[1,\"1\",null,true,[],{}]}", "{\"a\":[{},[],true,null,\"1\",1]}", true);
    unordered("/a", "{\"a\":[[1,2],3]}", "{\"a\":[3,[1,2]]}", true);
    unordered("/a", "{\"a\":[[1,2],3]}", "{\"a\":[[2,1],3]}", false);
    unordered("/a", "{\"b\":[1,2]}", "{\"b\":[2,1]}", false);
    unordered("/a", "{\"a\":{\"x\":[1,2]}}", "{\"a\":{\"x\":[2,1]}}", false);
    unordered("/a", "{\"a\":[]}", "{\"a\":{}}", false);
}

static void elements_of_a_multiset_are_compared_by_canonical_form(void **state)
{
    (void)state;
    unordered("/a", "{\"a\":[{\"x\":1,\"y\":2},{\"x\":1,\"y\":3}]}",
              "{\"a\":[{\"y\":3.0,\"x\":1},{ \"y\":2,\"x\":1e0}]}", true);
    unordered("/a", "{\"a\":[\"same start, long text 1\",\"same start, long text 2\"]}",
              "{\"a\":[\"same start, long text \\u0032\",\"same start, long text 1\"]}", true);
    unordered("/a", "{\"a\":[{\"x\":[1]},{\"x\":[1,2]}]}", "{\"a\":[{\"x\":[1,2]},{\"x\":[1]}]}",
              true);
    unordered("/a", "{\"a\":[{\"x\":1},{\"y\":1}]}", "{\"a\":[{\"y\":1},{\"x\":1}]}", true);
    unordered("/a", "{\"a\":[{\"x\":1},{\"y\":1}]}", "{\"a\":[{\"x\":1},{\"x\":1}]}", false);
}

static void multisets_nest(void **state)
{
    (void)state;
    unordered("/a /a/*", "{\"a\":[[1,2],[3]]}", "{\"a\":[[3],[2,1]]}", true);
    unordered("/a /a/*", "{\"a\":[[1,2],[3]]}", "{\"a\":[[1],[2,3]]}", false);
    unordered("/a /a/*/tags", "{\"a\":[{\"tags\":[\"x\",\"y\"]},{\"tags\":[\"y\",\"z\"]}]}",
              "{\"a\":[{\"tags\":[\"z\",\"y\"]},{\"tags\":[\"y\",\"x\"]}]}", true);
    unordered("/a/*", "{\"a\":[[1,2],[3]]}", "{\"a\":[[2,1],[3]]}", true);
    unordered("/a/*", "{\"a\":[[1,2],[3]]}", "{\"a\":[[3],[1,2]]}", false);
    unordered("/a/1", "{\"a\":[[1,2],[3,4]]}", "{\"a\":[[1,2],[4,3]]}", true);
    unordered("/a/1", "{\"a\":[[1,2],[3,4]]}", "{\"a\":[[2,1],[3,4]]}", false);
}

static void the_whole_body_can_be_a_multiset(void **state)
{
    (void)state;
    static const char *const root = "";
    const struct cfoil_rules_source source = {.unordered = &root, .unordered_count = 1};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    assert_same(rules, "[1,2,[3,4]]", "[[3,4],2,1]");
    assert_differ(rules, "[1,2,[3,4]]", "[[4,3],2,1]");
    assert_same(rules, "{\"a\":1}", "{ \"a\":1}");
    cfoil_rules_free(rules);
}

static void large_multisets_are_sorted_too(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    char *forward = malloc(COUNT * 32);
    char *shuffled = malloc(COUNT * 32);
    assert_true(forward != NULL && shuffled != NULL);
    size_t a = 0;
    size_t b = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        char mark = i == 0 ? '[' : ',';
        a += (size_t)snprintf(forward + a, 32, "%c{\"n\":%u}", mark, i / 2);
        b += (size_t)snprintf(shuffled + b, 32, "%c{\"n\":%u}", mark, i * 1009 % COUNT / 2);
    }
    memcpy(forward + a, "]", 2);
    memcpy(shuffled + b, "]", 2);
    static const char *const root = "";
    const struct cfoil_rules_source source = {.unordered = &root, .unordered_count = 1};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    assert_same(rules, forward, shuffled);
    cfoil_rules_free(rules);
    free(forward);
    free(shuffled);
}

static void ignored_elements_leave_a_multiset(void **state)
{
    (void)state;
    struct cfoil_rules *rules = rules_of("/a/*/t /a/0", "/a");
    assert_same(rules, "{\"a\":[9,{\"t\":1,\"x\":1},{\"x\":2}]}",
                "{\"a\":[8,{\"x\":2,\"t\":4},{\"t\":7,\"x\":1}]}");
    assert_same(rules, "{\"a\":[9]}", "{\"a\":[]}");
    assert_differ(rules, "{\"a\":[1,2]}", "{\"a\":[2,1]}");
    cfoil_rules_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_pointer_is_refused_with_the_fix),
        cmocka_unit_test(ignoring_the_whole_body_is_refused),
        cmocka_unit_test(pointers_and_headers_over_their_limits_are_refused),
        cmocka_unit_test(what_is_no_header_name_is_refused),
        cmocka_unit_test(headers_are_listed_in_lower_case_once_and_in_order),
        cmocka_unit_test(rules_that_mean_the_same_have_one_version),
        cmocka_unit_test(rules_that_differ_have_different_versions),
        cmocka_unit_test(a_fingerprint_names_its_rules),
        cmocka_unit_test(ignored_members_do_not_count),
        cmocka_unit_test(only_the_named_level_is_ignored),
        cmocka_unit_test(a_star_stands_for_one_level),
        cmocka_unit_test(star_and_name_can_meet_on_one_value),
        cmocka_unit_test(pointers_unescape_as_rfc_6901_says),
        cmocka_unit_test(elements_are_named_by_their_index),
        cmocka_unit_test(a_pointer_that_matches_nothing_is_fine),
        cmocka_unit_test(ignored_values_must_still_be_json),
        cmocka_unit_test(an_unordered_array_is_a_multiset),
        cmocka_unit_test(elements_of_a_multiset_are_compared_by_canonical_form),
        cmocka_unit_test(multisets_nest),
        cmocka_unit_test(the_whole_body_can_be_a_multiset),
        cmocka_unit_test(large_multisets_are_sorted_too),
        cmocka_unit_test(ignored_elements_leave_a_multiset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
