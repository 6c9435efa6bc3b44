/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields the design names and this version does not have are refused where they stand, never
 * ignored; and their shape is checked all the same.
 */
#include "support.h"

#include <stdio.h>

struct row {
    const char *name;
    const char *fields; /* line 4 of the policy */
    unsigned column;
    const char *what;
};

static const struct row rows[] = {
    {"key in a form", "    key: {form: k}\n", 11, "`key.form`"},
    {"key in the body", "    key: {body: /k}\n", 11, "`key.body`"},
    {"key by token", "    key: {token: {ttl: 30m}}\n", 11, "`key.token`"},
    {"business key", "    key: {fields: [/a, {header: X-B}]}\n", 11, "`key.fields`"},
    {"a guard", "    guard: {fields: [/u, {header: X-U}], window: 5m, override: X-C}\n", 5,
     "`guard`"},
    {"an archive", "    archive: true\n", 14, "archive: true"},
};

static void is_refused(void **state)
{
    const struct row *row = *state;
    char text[512];
    (void)snprintf(text, sizeof(text), "version: 1\nroutes:\n  - match: POST /x\n%s", row->fields);
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    enum cfoil_error error = cfoil_policy_load_text(cfoil_bytes_text(text), &policy, problems);
    assert_int_equal(error, CFOIL_E_POLICY);
    assert_int_equal(problems->item[0].line, 4);
    assert_int_equal(problems->item[0].column, row->column);
    assert_non_null(strstr(problems->item[0].text, row->what));
    assert_non_null(strstr(problems->item[0].text, "not available in this version"));
    assert_int_equal(problems->count, 1);
    test_free(problems);
}

static void expect_two(const char *text, const char *second, unsigned column)
{
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    assert_int_equal(cfoil_policy_load_text(cfoil_bytes_text(text), &policy, problems),
                     CFOIL_E_POLICY);
    assert_int_equal(problems->count, 2);
    assert_non_null(strstr(problems->item[0].text, "not available"));
    assert_int_equal(problems->item[1].column, column);
    assert_non_null(strstr(problems->item[1].text, second));
    test_free(problems);
}

static void a_refused_field_is_checked_all_the_same(void **state)
{
    (void)state;
    expect_two("version: 1\nroutes: [{match: POST /x, guard: {window: 5}}]\n", "5 has no unit", 43);
    expect_two("version: 1\nroutes: [{match: POST /x, guard: {feilds: [/a]}}]\n", "`fields`", 35);
}

/*
 * DESIGN.md's own example: every field is known, and only what this version lacks is refused. Its
 * `window`, which contradicts the `strict` beside it, is in test_window.c.
 */
static const char design_example[] =
    "version: 1\n"
    "tenant: {header: X-Tenant-Id, otherwise: authorization}\n"
    "defaults:\n"
    "  retention: {retry_window: 24h}\n"
    "routes:\n"
    "  - name: order.create\n"
    "    match: POST /api/orders\n"
    "    profile: standard\n"
    "    key: {header: Idempotency-Key, required: true, format: uuid}\n"
    "    semantics: strict\n"
    "    fingerprint: {ignore: [/client_time, /retry_count, /trace_id], unordered: [/items], "
    "query: "
    "true, headers: []}\n"
    "    guard: {fields: [/user_id, /sku_id, {header: X-User-Id}], window: 5m, override: "
    "X-Confirm-Repeat}\n"
    "    client: {max_attempts: 3, max_retry_interval: 30s}\n"
    "    retention: {retry_window: 24h, delay_bound: 1h, observation: 48h, tombstone: 7d, failed: "
    "10m}\n"
    "    lease: 15s\n"
    "    while_pending: reject\n"
    "    retry_after: 2s\n"
    "    outcome: {failed_final: [4xx], failed: [401, 403, 408, 425, 429, 500], in_doubt: [502, "
    "504],\n"
    "              body: {at: /code, succeeded: [0], failed: [50001], otherwise: failed_final}}\n"
    "    in_doubt: {probe: \"GET /api/orders/by-key/{key}\", replay_status: 201, "
    "trust_absent_after: 60s, timeout: 5s}\n"
    "    snapshot: {max_body: 1MiB, drop_headers: [Set-Cookie], redact: [/card/number]}\n"
    "    resource: {type: order, id: /data/order_id}\n"
    "    store_unavailable: closed\n"
    "    answers: problem\n"
    "    archive: true\n"
    "    messages: {on_replay: false, zh-CN: {IDEMPOTENCY_PENDING: 处理中，请稍后重试}}\n";

static void the_designs_example_has_no_other_problem(void **state)
{
    (void)state;
    static const struct {
        unsigned line;
        unsigned column;
        const char *what;
    } wanted[] = {
        {12, 5, "`guard`"},
        {25, 14, "archive: true"},
    };
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    assert_int_equal(cfoil_policy_load_text(cfoil_bytes_text(design_example), &policy, problems),
                     CFOIL_E_POLICY);
    assert_int_equal(problems->count, sizeof(wanted) / sizeof(wanted[0]));
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        assert_int_equal(problems->item[i].line, wanted[i].line);
        assert_int_equal(problems->item[i].column, wanted[i].column);
        assert_non_null(strstr(problems->item[i].text, wanted[i].what));
        assert_non_null(strstr(problems->item[i].text, "not available in this version"));
    }
    test_free(problems);
}

static void archive_false_is_accepted_and_payment_is_usable(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "    archive: false\n    profile: payment\n");
    assert_false(only_route(policy)->archive);
    cfoil_policy_free(policy);
    policy = load_route("", "    profile: payment\n");
    assert_false(only_route(policy)->archive);
    cfoil_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_field_is_checked_all_the_same),
        cmocka_unit_test(the_designs_example_has_no_other_problem),
        cmocka_unit_test(archive_false_is_accepted_and_payment_is_usable),
    };
    const struct row_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]),
                                    is_refused};
    return run_rows("policy/unavailable", &table, tests, sizeof(tests) / sizeof(tests[0]));
}
