/* SPDX-License-Identifier: Apache-2.0 */
/* Values by name out of queries and Cookie headers: the one there is, or why it is not one. */
#include "support.h"

#include <string.h>

#include "policy/arguments.h"

struct row {
    const char *name;
    const char *text;
    enum cfoil_found found;
    const char *value;
};

#define ROOM 8

static void check(const struct row *row, struct cfoil_finding finding)
{
    assert_int_equal(finding.found, row->found);
    if (row->found == CFOIL_FOUND_ONE) {
        assert_int_equal(finding.len, strlen(row->value));
        assert_memory_equal(finding.out, row->value, finding.len);
    }
}

/* The argument is "k-1" in every query. */
static const struct row queries[] = {
    {"alone", "k-1=abc", CFOIL_FOUND_ONE, "abc"},
    {"among others", "a=1&k-1=abc&z", CFOIL_FOUND_ONE, "abc"},
    {"its name encoded", "%6b%2D1=abc", CFOIL_FOUND_ONE, "abc"},
    {"its value encoded", "k-1=%61+b%2b", CFOIL_FOUND_ONE, "a b+"},
    {"with an equals sign", "k-1=a=b", CFOIL_FOUND_ONE, "a=b"},
    {"a stray percent", "k-1=5%&a", CFOIL_FOUND_ONE, "5%"},
    {"a percent before no hex", "k-1=%zz%4", CFOIL_FOUND_ONE, "%zz%4"},
    {"twice the same", "k-1=abc&k-1=%61bc", CFOIL_FOUND_ONE, "abc"},
    {"twice, once empty", "k-1=&k-1=abc&k-1", CFOIL_FOUND_ONE, "abc"},
    {"twice different", "k-1=abc&k-1=abd", CFOIL_FOUND_SEVERAL, NULL},
    {"the second longer", "k-1=abc&k-1=abcd", CFOIL_FOUND_SEVERAL, NULL},
    {"the second shorter", "k-1=abc&k-1=ab", CFOIL_FOUND_SEVERAL, NULL},
    {"three, the third different", "k-1=a&k-1=a&k-1=b", CFOIL_FOUND_SEVERAL, NULL},
    {"absent", "k=abc&k-11=abc&K-1=abc", CFOIL_FOUND_NONE, NULL},
    {"no query", "", CFOIL_FOUND_NONE, NULL},
    {"empty", "k-1=", CFOIL_FOUND_NONE, NULL},
    {"without a sign", "k-1", CFOIL_FOUND_NONE, NULL},
    {"one byte below the room", "k-1=1234567", CFOIL_FOUND_ONE, "1234567"},
    {"as long as the room", "k-1=%31234567%38", CFOIL_FOUND_ONE, "12345678"},
    {"one byte over the room", "k-1=123456789", CFOIL_FOUND_TOO_LONG, NULL},
};

static void a_query_has_it(void **state)
{
    const struct row *row = *state;
    char out[ROOM];
    struct cfoil_finding finding = {.out = out, .out_bytes = sizeof(out)};
    cfoil_query_find(cfoil_bytes_text(row->text), "k-1", &finding);
    check(row, finding);
}

/* The cookie is "sid". */
static const struct row cookies[] = {
    {"alone", "sid=abc", CFOIL_FOUND_ONE, "abc"},
    {"among others", "a=1; sid=abc; z=2", CFOIL_FOUND_ONE, "abc"},
    {"without spaces", "a=1;sid=abc;z=2", CFOIL_FOUND_ONE, "abc"},
    {"in quotes", "sid=\"abc\"", CFOIL_FOUND_ONE, "abc"},
    {"not decoded", "sid=a%62+", CFOIL_FOUND_ONE, "a%62+"},
    {"with an equals sign", "sid=a==", CFOIL_FOUND_ONE, "a=="},
    {"another case", "SID=abc", CFOIL_FOUND_NONE, NULL},
    {"part of a name", "xsid=1; sidx=2", CFOIL_FOUND_NONE, NULL},
    {"no value", "sid", CFOIL_FOUND_NONE, NULL},
    {"twice different", "sid=a; sid=b", CFOIL_FOUND_SEVERAL, NULL},
    {"twice the same", "sid=a; sid=\"a\"", CFOIL_FOUND_ONE, "a"},
    {"too long", "sid=123456789", CFOIL_FOUND_TOO_LONG, NULL},
};

static void a_cookie_header_has_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cookies) / sizeof(cookies[0]); i++) {
        char out[ROOM];
        struct cfoil_finding finding = {.out = out, .out_bytes = sizeof(out)};
        cfoil_cookie_find(cfoil_bytes_text(cookies[i].text), "sid", &finding);
        check(&cookies[i], finding);
    }
}

static void several_headers_are_one_list(void **state)
{
    (void)state;
    char out[ROOM];
    struct cfoil_finding finding = {.out = out, .out_bytes = sizeof(out)};
    cfoil_cookie_find(cfoil_bytes_text("a=1"), "sid", &finding);
    cfoil_cookie_find(cfoil_bytes_text("sid=x"), "sid", &finding);
    assert_int_equal(finding.found, CFOIL_FOUND_ONE);
    cfoil_cookie_find(cfoil_bytes_text("sid=y"), "sid", &finding);
    assert_int_equal(finding.found, CFOIL_FOUND_SEVERAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cookie_header_has_it),
        cmocka_unit_test(several_headers_are_one_list),
    };
    const struct row_table table = {queries, sizeof(queries) / sizeof(queries[0]),
                                    sizeof(queries[0]), a_query_has_it};
    return run_rows("policy/arguments", &table, tests, sizeof(tests) / sizeof(tests[0]));
}
