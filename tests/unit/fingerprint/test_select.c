/* SPDX-License-Identifier: Apache-2.0 */
/* One value out of a JSON text, by pointer: which one it is, what it is, and when there is none. */
#include "support.h"

#include <stdlib.h>

#include "fingerprint/select.h"

static struct cfoil_selector *selector;

static int make_selector(void **state)
{
    (void)state;
    return cfoil_selector_create(&selector) == CFOIL_OK ? 0 : -1;
}

static int free_selector(void **state)
{
    (void)state;
    cfoil_selector_free(selector);
    return 0;
}

static void read(const char *json)
{
    const char *reason = "unset";
    assert_int_equal(cfoil_selector_read(selector, cfoil_bytes_text(json), &reason), CFOIL_OK);
    assert_null(reason);
}

static void expect(const char *pointer, enum cfoil_value_kind kind, const char *text)
{
    struct cfoil_value value = cfoil_selector_at(selector, pointer);
    assert_int_equal(value.kind, kind);
    assert_int_equal(value.text.len, strlen(text));
    assert_memory_equal(value.text.data != NULL ? value.text.data : (const uint8_t *)"", text,
                        strlen(text));
}

static void every_kind_is_found_with_its_text(void **state)
{
    (void)state;
    read("{\"n\": null, \"f\": false, \"t\": true, \"i\": 0, \"s\": \"a\\u00e9\\n\", \"l\": [1],"
         " \"o\": {}, \"e\": \"\"}");
    expect("/n", CFOIL_VALUE_NULL, "null");
    expect("/f", CFOIL_VALUE_FALSE, "false");
    expect("/t", CFOIL_VALUE_TRUE, "true");
    expect("/i", CFOIL_VALUE_NUMBER, "0");
    expect("/s", CFOIL_VALUE_STRING, "a\xc3\xa9\n");
    expect("/e", CFOIL_VALUE_STRING, "");
    expect("/l", CFOIL_VALUE_ARRAY, "");
    expect("/o", CFOIL_VALUE_OBJECT, "");
}

static void numbers_of_one_value_have_one_text(void **state)
{
    (void)state;
    read("[1, 1.0, 1e0, 10e-1, -0, 0.0, 9007199254740993, 0.5, 5e-1]");
    for (const char *const *at = (const char *const[]){"/0", "/1", "/2", "/3", NULL}; *at; at++) {
        expect(*at, CFOIL_VALUE_NUMBER, "1");
    }
    expect("/4", CFOIL_VALUE_NUMBER, "0");
    expect("/5", CFOIL_VALUE_NUMBER, "0");
    expect("/6", CFOIL_VALUE_NUMBER, "9007199254740993");
    struct cfoil_value half = cfoil_selector_at(selector, "/7");
    struct cfoil_value other = cfoil_selector_at(selector, "/8");
    assert_true(cfoil_bytes_equal(half.text, other.text));
}

static void tokens_name_members_and_count_elements(void **state)
{
    (void)state;
    read("{\"a/b\": 1, \"m~n\": 2, \"\": 3, \"~1\": 4, \"0\": 5, \"*\": 6, \"l\": [{\"x\": 7}, 8],"
         " \"a\": {\"b\": 9}, \"k\\u0065y\": 10}");
    expect("/a~1b", CFOIL_VALUE_NUMBER, "1");
    expect("/m~0n", CFOIL_VALUE_NUMBER, "2");
    expect("/", CFOIL_VALUE_NUMBER, "3");
    expect("/~01", CFOIL_VALUE_NUMBER, "4");
    expect("/0", CFOIL_VALUE_NUMBER, "5");
    expect("/*", CFOIL_VALUE_NUMBER, "6");
    expect("/l/0/x", CFOIL_VALUE_NUMBER, "7");
    expect("/l/1", CFOIL_VALUE_NUMBER, "8");
    expect("/a/b", CFOIL_VALUE_NUMBER, "9");
    expect("/key", CFOIL_VALUE_NUMBER, "10");
    expect("", CFOIL_VALUE_OBJECT, "");
}

static void what_is_not_there_is_absent_on_every_level(void **state)
{
    static const char *const pointers[] = {
        "/b",   "/a/x",  "/a/b/c", "/l/2",          "/l/01",
        "/l/-", "/l/+1", "/l/x",   "/l/",           "/e/0",
        "/o/x", "/a/bb", "/a/",    "/l/4294967295", "/l/99999999999999999999"};
    (void)state;
    read("{\"a\": {\"b\": 1}, \"l\": [1, 2], \"e\": [], \"o\": {}}");
    for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
        expect(pointers[i], CFOIL_VALUE_ABSENT, "");
    }
}

static void the_whole_document_may_be_a_scalar(void **state)
{
    (void)state;
    read(" \"x\" ");
    expect("", CFOIL_VALUE_STRING, "x");
    expect("/x", CFOIL_VALUE_ABSENT, "");
}

static void what_has_no_canonical_form_has_no_values(void **state)
{
    static const char *const texts[] = {"",
                                        "{",
                                        "{\"a\": 1, \"a\": 1}",
                                        "[1,]",
                                        "\"\\ud800\"",
                                        "\xEF\xBB\xBF{\"a\": 1}",
                                        "{\"a\": 1} x",
                                        "a=1"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *reason = NULL;
        read("{\"a\": 1}");
        assert_int_equal(cfoil_selector_read(selector, cfoil_bytes_text(texts[i]), &reason),
                         CFOIL_E_SYNTAX);
        assert_non_null(reason);
        expect("/a", CFOIL_VALUE_ABSENT, "");
        expect("", CFOIL_VALUE_ABSENT, "");
    }
}

/* A string of that many bytes, its quotes among them. */
static void the_limit_on_bytes_is_that_of_fingerprints(void **state)
{
    (void)state;
    for (size_t len = CFOIL_JSON_BYTES_MAX - 1; len <= CFOIL_JSON_BYTES_MAX + 1; len++) {
        char *text = malloc(len);
        assert_non_null(text);
        memset(text, 'x', len);
        text[0] = '"';
        text[len - 1] = '"';
        enum cfoil_error expected = len <= CFOIL_JSON_BYTES_MAX ? CFOIL_OK : CFOIL_E_SYNTAX;
        assert_int_equal(cfoil_selector_read(selector, cfoil_bytes_of(text, len), NULL), expected);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_found_with_its_text),
        cmocka_unit_test(numbers_of_one_value_have_one_text),
        cmocka_unit_test(tokens_name_members_and_count_elements),
        cmocka_unit_test(what_is_not_there_is_absent_on_every_level),
        cmocka_unit_test(the_whole_document_may_be_a_scalar),
        cmocka_unit_test(what_has_no_canonical_form_has_no_values),
        cmocka_unit_test(the_limit_on_bytes_is_that_of_fingerprints),
    };

    return cmocka_run_group_tests_name("select", tests, make_selector, free_selector);
}
