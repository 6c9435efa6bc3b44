/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is not canonicalised but hashed as raw bytes, and that this is told apart from JSON that is.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

static void what_is_not_json_is_hashed_raw(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "{",      "}",        "[",       "]",         "[1",        "[1,",        "[1,]",
        "[,1]",   "{\"a\"",   "{\"a\":", "{\"a\":1",  "{\"a\":1,", "{\"a\":1,}", "{,}",
        "{a:1}",  "{'a':1}",  "[1 2]",   "{\"a\" 1}", "[1}",       "{\"a\":1]",  "nul",
        "nulll",  "True",     "NaN",     "Infinity",  "-Infinity", "undefined",  "{1:2}",
        "\"",     "\"a",      "\"a\\",   "\"a\\\"",   ":",         ",",          "/**/1",
        "[1]//x", "{\"a\":}", "tru",     "-",         "falsy",     "[\"a\",,]",  "{\"a\"::1}",
    };
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        assert_raw(documents[i], "");
    }
}

static void misspelled_numbers_are_hashed_raw(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "01",  "-01", "00",    "+1",    ".5", "5.",   "-.5", "1.e5", "1e", "1e+", "1E-", "--1",
        "0x1", "1_0", "1e5.5", "1.2.3", "-",  "1 .5", "- 1", "1e 5", "0e", "1,5", "١",
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_raw(numbers[i], "");
    }
}

static void an_exponent_over_the_limit_is_hashed_raw(void **state)
{
    (void)state;
    assert_raw("1e100000001", "exponent");
    assert_raw("10e100000000", "exponent");
    assert_raw("-1e-100000002", "exponent");
    assert_raw("[1e99999999999999999999999999]", "exponent");
    assert_raw("1e18446744073709551617", "exponent"); /* 2^64 + 1 */
    assert_raw("1e4294967297", "exponent");           /* 2^32 + 1 */
    assert_null(raw_reason_of("1e99999999", 10));
}

static void two_members_of_one_name_are_hashed_raw(void **state)
{
    (void)state;
    assert_raw("{\"a\":1,\"a\":1}", "same name");
    assert_raw("{\"a\":1,\"b\":2,\"\\u0061\":3}", "same name");
    assert_raw("{\"\":1,\"\":2}", "same name");
    assert_raw("[{\"x\":{\"long-member-name\":1,\"b\":2,\"long-member-name\":3}}]", "same name");
    assert_null(raw_reason_of("[{\"a\":1},{\"a\":1}]", 17));
    assert_null(raw_reason_of("{\"a\":{\"a\":1}}", 13));
}

static void a_repeated_name_among_many_is_found(void **state)
{
    (void)state;
    enum { MEMBERS = 1000 };
    char json[MEMBERS * 16 + 16];
    for (unsigned twin = 0; twin < MEMBERS - 1; twin += 37) {
        size_t used = 0;
        for (unsigned i = 0; i < MEMBERS; i++) {
            bool twins = i == twin || i == MEMBERS - 1;
            used += (size_t)snprintf(json + used, 16, "%c\"%x\":%u", i == 0 ? '{' : ',',
                                     twins ? 0xF00000 : i * 7919 % 1009, i);
        }
        json[used++] = '}';
        assert_raw_bytes(json, used, "same name");
    }
}

static void lone_surrogates_are_hashed_raw(void **state)
{
    (void)state;
    assert_raw("\"\\ud800\"", "surrogate");
    assert_raw("\"\\udc00\"", "surrogate");
    assert_raw("\"\\ud800x\"", "surrogate");
    assert_raw("\"\\ud800\\n\"", "surrogate");
    assert_raw("\"\\ud800\\u0041\"", "surrogate");
    assert_raw("\"\\ud800\\ud800\"", "surrogate");
    assert_raw("\"\\udc00\\ud800\"", "surrogate");
    assert_raw("\"\\uDBFF\\uE000\"", "surrogate");
    assert_raw("{\"\\udfff\":1}", "surrogate");
}

static void ill_formed_utf8_is_hashed_raw(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\"\x80\"", /* a continuation alone */
        "\"\xBF\"",
        "\"\xC0\x80\"",     /* overlong NUL */
        "\"\xC1\xBF\"",     /* overlong */
        "\"\xC3\"",         /* cut */
        "\"\xE0\x9F\xBF\"", /* overlong */
        "\"\xE2\x82\"",     /* cut */
        "\"\xE2\x28\xA1\"", /* no continuation */
        "\"\xED\xA0\x80\"", /* a surrogate */
        "\"\xED\xBF\xBF\"",
        "\"\xF0\x8F\xBF\xBF\"", /* overlong */
        "\"\xF0\x9F\x98\"",     /* cut */
        "\"\xF4\x90\x80\x80\"", /* over U+10FFFF */
        "\"\xF5\x80\x80\x80\"",
        "\"\xFE\"",
        "\"\xFF\"",
        "{\"\xC3\x28\":1}",
        "\"\\n\xC3\x28\"", /* behind an escape */
        "\"long enough to be scanned in blocks \xC3\x28\"",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_raw(texts[i], "UTF-8");
    }
}

static void the_ends_of_utf8_are_accepted(void **state)
{
    (void)state;
    static const char text[] =
        "\"\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"
        "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"";
    assert_canonical(text, text);
}

static void control_characters_and_bad_escapes_are_hashed_raw(void **state)
{
    (void)state;
    char text[] = "\"abcdefghijklmnopqrstuvw?yz\"";
    char *place = strchr(text, '?');
    for (char c = 0; c < 0x20; c++) {
        *place = c;
        assert_raw_bytes(text, sizeof(text) - 1, "control character");
    }
    *place = 0x20;
    assert_null(raw_reason_of(text, sizeof(text) - 1));
    assert_raw("\"\\x41\"", "escape");
    assert_raw("\"\\'\"", "escape");
    assert_raw("\"\\U0041\"", "escape");
    assert_raw("\"\\u004\"", "hex");
    assert_raw("\"\\u004g\"", "hex");
    assert_raw("\"\\u 041\"", "hex");
    assert_raw("\"\\u", "hex");
}

static void bytes_behind_the_value_are_hashed_raw(void **state)
{
    (void)state;
    assert_raw("1 1", "bytes follow");
    assert_raw("{} {}", "bytes follow");
    assert_raw("[]]", "bytes follow");
    assert_raw("\"a\"\"b\"", "bytes follow");
    assert_raw_bytes("{}\0", 3, "bytes follow");
    assert_raw_bytes("1\0", 2, "bytes follow");
    assert_raw_bytes("\0", 1, "");
    assert_raw_bytes("[1,\0]", 5, "");
}

static void nothing_at_all_is_hashed_raw(void **state)
{
    (void)state;
    assert_raw("", "empty");
    assert_raw(" \n\t ", "");
}

static void a_byte_order_mark_is_hashed_raw(void **state)
{
    (void)state;
    assert_raw("\xEF\xBB\xBF{}", "byte order mark");
    assert_raw_bytes("\xFF\xFE{\0}\0", 6, "");
    assert_raw_bytes("{\0\"\0", 4, "");
}

static void other_white_space_is_hashed_raw(void **state)
{
    (void)state;
    assert_raw("\f1", "");
    assert_raw("\v1", "");
    assert_raw("[1,\xC2\xA0"
               "2]",
               "");
    assert_raw("\xE2\x80\x83{}", "");
}

static size_t nested(char *out, size_t depth)
{
    memset(out, '[', depth);
    memset(out + depth, ']', depth);
    return 2 * depth;
}

static void depth_is_accepted_up_to_its_limit(void **state)
{
    (void)state;
    char json[2 * (CFOIL_JSON_DEPTH_MAX + 1)];
    assert_null(raw_reason_of(json, nested(json, CFOIL_JSON_DEPTH_MAX)));
    assert_raw_bytes(json, nested(json, CFOIL_JSON_DEPTH_MAX + 1), "deep");
}

static void values_are_accepted_up_to_their_limit(void **state)
{
    (void)state;
    const size_t values = CFOIL_JSON_VALUES_MAX; /* the array is one of them */
    char *json = malloc(2 * values + 2);
    assert_non_null(json);
    json[0] = '[';
    for (size_t i = 0; i < values; i++) {
        memcpy(json + 1 + 2 * i, "0,", 2);
    }
    json[2 * (values - 1)] = ']';
    assert_null(raw_reason_of(json, 2 * (values - 1) + 1));
    json[2 * (values - 1)] = ',';
    json[2 * values] = ']';
    assert_raw_bytes(json, 2 * values + 1, "too many");
    free(json);
}

static void raw_and_canonical_never_hash_alike(void **state)
{
    (void)state;
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    static const char body[] = "{\"a\":1}";
    struct cfoil_fingerprint json =
        fingerprint_of(rules, "application/json", body, sizeof(body) - 1, SIZE_MAX);
    struct cfoil_fingerprint text =
        fingerprint_of(rules, "text/plain", body, sizeof(body) - 1, SIZE_MAX);
    assert_false(same_digest(json.request_hash, text.request_hash));
    assert_false(
        same_digest(json.raw_hash, text.raw_hash)); /* or it would tell nothing of the other */
    cfoil_rules_free(rules);
}

static void refused_documents_are_compared_byte_by_byte(void **state)
{
    (void)state;
    struct cfoil_rules *rules = rules_of(NULL, NULL);
    static const char a[] = "{\"a\":1,\"a\":2}";
    static const char b[] = "{\"a\":1, \"a\":2}";
    struct cfoil_fingerprint first =
        fingerprint_of(rules, "application/json", a, sizeof(a) - 1, SIZE_MAX);
    struct cfoil_fingerprint again = fingerprint_of(rules, "application/json", a, sizeof(a) - 1, 3);
    struct cfoil_fingerprint spaced =
        fingerprint_of(rules, "application/json", b, sizeof(b) - 1, SIZE_MAX);
    assert_true(same_digest(first.request_hash, again.request_hash));
    assert_false(same_digest(first.request_hash, spaced.request_hash));
    cfoil_rules_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_json_is_hashed_raw),
        cmocka_unit_test(misspelled_numbers_are_hashed_raw),
        cmocka_unit_test(an_exponent_over_the_limit_is_hashed_raw),
        cmocka_unit_test(two_members_of_one_name_are_hashed_raw),
        cmocka_unit_test(a_repeated_name_among_many_is_found),
        cmocka_unit_test(lone_surrogates_are_hashed_raw),
        cmocka_unit_test(ill_formed_utf8_is_hashed_raw),
        cmocka_unit_test(the_ends_of_utf8_are_accepted),
        cmocka_unit_test(control_characters_and_bad_escapes_are_hashed_raw),
        cmocka_unit_test(bytes_behind_the_value_are_hashed_raw),
        cmocka_unit_test(nothing_at_all_is_hashed_raw),
        cmocka_unit_test(a_byte_order_mark_is_hashed_raw),
        cmocka_unit_test(other_white_space_is_hashed_raw),
        cmocka_unit_test(depth_is_accepted_up_to_its_limit),
        cmocka_unit_test(values_are_accepted_up_to_their_limit),
        cmocka_unit_test(raw_and_canonical_never_hash_alike),
        cmocka_unit_test(refused_documents_are_compared_byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
