/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which JSON documents mean the same without any rules, and how values are spelled canonically.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

static struct cfoil_rules *plain;

static int set_up(void **state)
{
    (void)state;
    plain = rules_of(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cfoil_rules_free(plain);
    return 0;
}

static void white_space_does_not_matter(void **state)
{
    (void)state;
    assert_same(plain, "{\"a\":[1,2],\"b\":{}}",
                " \r\n\t{ \"a\" :\t[ 1 ,\n2 ]\r, \"b\" : { } } \n");
    assert_same(plain, "[]", "[ ]");
    assert_same(plain, "7", "\n7\n");
    assert_differ(plain, "\"a b\"", "\"a  b\"");
}

static void member_order_does_not_matter(void **state)
{
    (void)state;
    assert_same(plain, "{\"a\":1,\"b\":{\"x\":1,\"y\":2}}", "{\"b\":{\"y\":2,\"x\":1},\"a\":1}");
    assert_differ(plain, "{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}");
}

static void members_are_sorted_by_the_bytes_of_their_unescaped_names(void **state)
{
    (void)state;
    assert_canonical("{\"b\":1,\"a\":2,\"\":3,\"aa\":4,\"B\":5}",
                     "{\"\":3,\"B\":5,\"a\":2,\"aa\":4,\"b\":1}");
    /* U+FFFD before U+10000 by UTF-8, the other way round by UTF-16. */
    assert_canonical("{\"\\ud800\\udc00\":1,\"\\ufffd\":2,\"z\":3}",
                     "{\"z\":3,\"\xEF\xBF\xBD\":2,\"\xF0\x90\x80\x80\":1}");
    assert_canonical("{\"prefix-of-a-name-2\":1,\"prefix-of-a-name-10\":2,\"prefix-of-a-name\":3}",
                     "{\"prefix-of-a-name\":3,\"prefix-of-a-name-10\":2,\"prefix-of-a-name-2\":1}");
}

static void names_that_share_eight_bytes_or_hold_nul_stay_apart(void **state)
{
    (void)state;
    assert_canonical("{\"a\\u0000\":1,\"a\":2}", "{\"a\":2,\"a\\u0000\":1}");
    assert_canonical("{\"a\\u0000\\u0000b\":1,\"a\\u0000\":2,\"a\":3}",
                     "{\"a\":3,\"a\\u0000\":2,\"a\\u0000\\u0000b\":1}");
    assert_canonical("{\"12345678b\":1,\"12345678\":2,\"12345678a\":3}",
                     "{\"12345678\":2,\"12345678a\":3,\"12345678b\":1}");
}

static void escapes_do_not_matter(void **state)
{
    (void)state;
    assert_same(plain, "\"A/\\u00e9\"", "\"\\u0041\\/\xC3\xA9\"");
    assert_same(plain, "{\"key\":1}", "{\"\\u006bey\":1}");
    assert_same(plain, "\"\\uD83D\\uDE00\"", "\"\xF0\x9F\x98\x80\"");
    assert_same(plain, "\"\\b\\f\\n\\r\\t\\\"\\\\\"",
                "\"\\u0008\\u000c\\u000A\\u000d\\u0009\\u0022\\u005C\"");
    assert_differ(plain, "\"\\\\n\"", "\"\\n\"");
    assert_differ(plain, "\"\\u0000\"", "\"\"");
}

static void only_necessary_escapes_are_written(void **state)
{
    (void)state;
    assert_canonical("\"\\u0041\\/\\u007f\\u00fC\\u20AC\"", "\"A/\x7F\xC3\xBC\xE2\x82\xAC\"");
    assert_canonical("\"\\u0000\\u001f\\u000b\\n\\\"\\\\x\"",
                     "\"\\u0000\\u001f\\u000b\\n\\\"\\\\x\"");
    assert_canonical("{\"\\n\":\"plain\",\"plain\":\"\\n\"}",
                     "{\"\\n\":\"plain\",\"plain\":\"\\n\"}");
}

static void text_is_not_unicode_normalised(void **state)
{
    (void)state;
    assert_differ(plain, "\"\xC3\xA9\"", "\"e\xCC\x81\"");
    assert_differ(plain, "\"\xE2\x84\xAA\"", "\"K\"");
}

static void array_order_matters(void **state)
{
    (void)state;
    assert_differ(plain, "[1,2]", "[2,1]");
    assert_differ(plain, "[1,1]", "[1]");
    assert_differ(plain, "[[1],2]", "[1,[2]]");
    assert_differ(plain, "[[]]", "[]");
    assert_differ(plain, "[[],[]]", "[[[]]]");
}

static void the_kinds_of_values_stay_apart(void **state)
{
    (void)state;
    static const char *const values[] = {"null", "false",  "true",       "0",     "1",
                                         "\"\"", "[]",     "{}",         "\"1\"", "\"null\"",
                                         "[1]",  "[null]", "{\"\":null}"};
    const size_t count = sizeof(values) / sizeof(values[0]);
    for (size_t a = 0; a < count; a++) {
        for (size_t b = a + 1; b < count; b++) {
            assert_differ(plain, values[a], values[b]);
        }
    }
}

static void an_absent_member_is_not_null(void **state)
{
    (void)state;
    assert_differ(plain, "{\"a\":null}", "{}");
}

static void numbers_beyond_a_double_stay_apart(void **state)
{
    (void)state;
    assert_differ(plain, "9007199254740993", "9007199254740992");
    assert_differ(plain, "0.1", "0.1000000000000000055511151231257827");
    assert_differ(plain, "1e400", "1e401");
    assert_differ(plain, "1e-400", "0");
    assert_differ(plain, "123456789012345678901234567890", "123456789012345678901234567891");
    assert_differ(plain, "1e99999999", "1e99999998");
}

static void equal_numbers_are_equal_however_spelled(void **state)
{
    (void)state;
    static const char *const groups[][8] = {
        {"1", "1.0", "1e0", "10e-1", "1.000", "0.1e1", "1E+0", "100e-002"},
        {"0", "-0", "0.0", "0e5", "-0.000e-7", "0E+99999999999999999999", "0.0e-999999999999",
         NULL},
        {"-12.5", "-1.25e1", "-125e-1", "-12.50", "-0.125E2", "-1250e-2", NULL},
        {"100", "1e2", "100.0", "1.00E+2", "0.1e3", NULL},
        {"1e21", "1000000000000000000000", "10e20", "1000000000000000000000.0", NULL},
        {"100000000000000000000", "1e20", "0.1e21", NULL},
        {"0.000001", "1e-6", "0.1e-5", "10e-7", NULL},
        {"0.0000001", "1e-7", "0.10e-6", NULL},
        {"123456789012345678901234567890", "1.2345678901234567890123456789e29", NULL},
        {"123456789012345678901234567891", "1.23456789012345678901234567891e29", NULL},
        {"1e100000000", "10e99999999", "0.1e100000001", "0.001e100000003", NULL},
        {"1e-99999999", "0.1e-99999998", "1000e-100000002", NULL},
    };
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
        for (size_t i = 1; i < 8 && groups[g][i] != NULL; i++) {
            assert_same(plain, groups[g][0], groups[g][i]);
            if (g > 0) {
                assert_differ(plain, groups[g][i], groups[g - 1][0]);
            }
        }
    }
}

static void numbers_have_one_spelling(void **state)
{
    (void)state;
    static const char *const spelled[][2] = {
        {"-0.0", "0"},
        {"1000", "1000"},
        {"1e3", "1000"},
        {"12.50", "12.5"},
        {"0.5", "0.5"},
        {"-5e-1", "-0.5"},
        {"0.00000125", "0.00000125"},
        {"0.000000125", "1.25e-7"},
        {"100000000000000000000", "100000000000000000000"},
        {"1000000000000000000000", "1e21"},
        {"1200000000000000000000", "1.2e21"},
        {"1234567890123456789012", "1234567890123456789012"},
        {"-1.5E+300", "-1.5e300"},
        {"1234567890123456789012345.5", "1234567890123456789012345.5"},
    };
    for (size_t i = 0; i < sizeof(spelled) / sizeof(spelled[0]); i++) {
        assert_canonical(spelled[i][0], spelled[i][1]);
    }
}

static void many_respelled_numbers_keep_their_places(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    char *respelled = malloc(COUNT * 16);
    char *plainly = malloc(COUNT * 16);
    assert_true(respelled != NULL && plainly != NULL);
    size_t a = 0;
    size_t b = 0;
    for (unsigned i = 1; i <= COUNT; i++) {
        a += (size_t)snprintf(respelled + a, 16, "%c%ue1", i == 1 ? '[' : ',', i);
        b += (size_t)snprintf(plainly + b, 16, "%c%u", i == 1 ? '[' : ',', i * 10);
    }
    memcpy(respelled + a, "]", 2);
    memcpy(plainly + b, "]", 2);
    assert_same(plain, respelled, plainly);
    free(respelled);
    free(plainly);
}

static void long_texts_pass_through_unharmed(void **state)
{
    (void)state;
    enum { BYTES = 100000 };
    char *json = malloc(BYTES + 16);
    assert_non_null(json);
    memcpy(json, "{\"", 2);
    memset(json + 2, 'n', BYTES / 2);
    memcpy(json + 2 + BYTES / 2, "\":\"", 3);
    memset(json + 5 + BYTES / 2, 'v', BYTES / 2);
    memcpy(json + 5 + BYTES, "\"}", 3);
    assert_canonical(json, json);
    char *other = strdup(json);
    assert_non_null(other);
    other[4 + BYTES] = 'w';
    assert_differ(plain, json, other);
    free(other);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_does_not_matter),
        cmocka_unit_test(member_order_does_not_matter),
        cmocka_unit_test(members_are_sorted_by_the_bytes_of_their_unescaped_names),
        cmocka_unit_test(names_that_share_eight_bytes_or_hold_nul_stay_apart),
        cmocka_unit_test(escapes_do_not_matter),
        cmocka_unit_test(only_necessary_escapes_are_written),
        cmocka_unit_test(text_is_not_unicode_normalised),
        cmocka_unit_test(array_order_matters),
        cmocka_unit_test(the_kinds_of_values_stay_apart),
        cmocka_unit_test(an_absent_member_is_not_null),
        cmocka_unit_test(numbers_beyond_a_double_stay_apart),
        cmocka_unit_test(equal_numbers_are_equal_however_spelled),
        cmocka_unit_test(numbers_have_one_spelling),
        cmocka_unit_test(many_respelled_numbers_keep_their_places),
        cmocka_unit_test(long_texts_pass_through_unharmed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
