/* SPDX-License-Identifier: Apache-2.0 */
/* `while_pending`: how it is read and merged, the place to look, and what is refused. */
#include "support.h"

#include <stdio.h>

struct row {
    const char *name;
    const char *match;
    const char *pending;
    unsigned column; /* on line 4 */
    const char *what;
};

static const struct row rows[] = {
    {"a parameter the pattern lacks", "POST /orders", "{accept: \"/s/{id}\"}", 29,
     "while_pending.accept: {id} is not a parameter"},
    {"a parameter one pattern lacks", "[\"POST /orders/{id}\", POST /orders]",
     "{accept: \"/s/{id}\"}", 29, "while_pending.accept: {id} is not a parameter"},
    {"a key that means two things", "\"POST /orders/{key}\"", "{accept: \"/s/{key}\"}", 29,
     "while_pending.accept: {key} is the idempotency key"},
    {"no path", "POST /orders", "{accept: \"orders/{key}\"}", 29, "while_pending.accept"},
    {"no place in the path", "POST /orders", "{accept: /status}", 29, "while_pending.accept"},
    {"a place on a host of the client's choice", "POST /orders", "{accept: \"//{key}/\"}", 29,
     "begins with a host"},
    {"both ways at once", "POST /orders", "{wait: 5s, accept: \"/s/{key}\"}", 31,
     "while_pending.accept (line 4): contradicts `wait` (line 4)"},
    {"no time at all", "POST /orders", "{wait: 0}", 27, "while_pending.wait"},
    {"longer than the limit", "POST /orders", "{wait: 11m}", 27, "while_pending.wait"},
    {"a misspelt word", "POST /orders", "rejct", 20, "`reject`"},
};

static void is_refused(void **state)
{
    const struct row *row = *state;
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "version: 1\nroutes:\n  - match: %s\n    while_pending: %s\n", row->match,
                   row->pending);
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    assert_int_equal(cfoil_policy_load_text(cfoil_bytes_text(text), &policy, problems),
                     CFOIL_E_POLICY);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->item[0].line, 4);
    assert_int_equal(problems->item[0].column, row->column);
    assert_non_null(strstr(problems->item[0].text, row->what));
    test_free(problems);
}

static void a_duplicate_is_refused_at_once_by_default(void **state)
{
    static const char *const fields[] = {"", "    while_pending: reject\n",
                                         "    profile: payment\n"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct cfoil_policy *policy = load_route("", fields[i]);
        assert_int_equal(only_route(policy)->wait_ms, 0);
        assert_null(only_route(policy)->accept_path);
        cfoil_policy_free(policy);
    }
}

static void the_place_is_filled_as_a_probes_path(void **state)
{
    (void)state;
    char out[128];
    struct cfoil_policy *policy =
        load_good("version: 1\nroutes:\n  - match: \"POST /shops/{shop}/orders\"\n"
                  "    while_pending: {accept: \"/shops/{shop}/status/{key}\"}\n");
    size_t len = cfoil_accept_path(only_route(policy), cfoil_bytes_text("POST"),
                                   cfoil_bytes_text("/shops/a b/orders"), cfoil_bytes_text("k/1"),
                                   out, sizeof(out) - 1);
    out[len] = '\0';
    assert_string_equal(out, "/shops/a%20b/status/k%2F1");
    assert_int_equal(cfoil_accept_path(only_route(policy), cfoil_bytes_text("POST"),
                                       cfoil_bytes_text("/shops/a b/orders"),
                                       cfoil_bytes_text("k/1"), out, len - 1),
                     0);
    assert_int_equal(cfoil_probe_path(only_route(policy), cfoil_bytes_text("POST"),
                                      cfoil_bytes_text("/shops/a b/orders"),
                                      cfoil_bytes_text("k/1"), out, sizeof(out)),
                     0);
    cfoil_policy_free(policy);
}

static void a_wait_is_read_and_the_routes_way_counts(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_good("version: 1\ndefaults: {while_pending: {wait: 5s}}\nroutes:\n"
                  "  - {match: POST /x}\n"
                  "  - {match: POST /y, while_pending: {wait: 10m}}\n"
                  "  - {match: POST /z, while_pending: {accept: \"/s/{key}\"}}\n"
                  "  - {match: POST /r, while_pending: reject}\n");
    static const int64_t wanted_ms[] = {5000, 600000, 0, 0};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(cfoil_policy_route(policy, i)->wait_ms, wanted_ms[i]);
        assert_true((cfoil_policy_route(policy, i)->accept_path != NULL) == (i == 2));
    }
    cfoil_policy_free(policy);
    policy = load_good("version: 1\ndefaults: {while_pending: {accept: \"/s/{key}\"}}\nroutes:\n"
                       "  - {match: POST /x, while_pending: {wait: 1ms}}\n");
    assert_int_equal(only_route(policy)->wait_ms, 1);
    assert_null(only_route(policy)->accept_path);
    cfoil_policy_free(policy);
}

static void reject_in_a_route_ends_what_defaults_say(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_good("version: 1\ndefaults: {while_pending: {accept: \"/s/{key}\"}}\nroutes:\n"
                  "  - {match: POST /x, while_pending: reject}\n  - {match: POST /y}\n");
    assert_null(cfoil_policy_route(policy, 0)->accept_path);
    assert_string_equal(cfoil_policy_route(policy, 1)->accept_path, "/s/{key}");
    cfoil_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duplicate_is_refused_at_once_by_default),
        cmocka_unit_test(the_place_is_filled_as_a_probes_path),
        cmocka_unit_test(a_wait_is_read_and_the_routes_way_counts),
        cmocka_unit_test(reject_in_a_route_ends_what_defaults_say),
    };
    const struct row_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]),
                                    is_refused};
    return run_rows("policy/pending", &table, tests, sizeof(tests) / sizeof(tests[0]));
}
