/* SPDX-License-Identifier: Apache-2.0 */
/* Every field that works, in the shape the design gives it, and the defaults where it is not said. */
#include "support.h"

#include <stdio.h>

#define SECOND INT64_C(1000)
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)

static void defaults_of_standard(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "");
    const struct cfoil_route *route = only_route(policy);
    assert_int_equal(route->profile, CFOIL_PROFILE_STANDARD);
    assert_string_equal(route->key_header, "Idempotency-Key");
    assert_false(route->key_required);
    assert_int_equal(route->key_format, CFOIL_KEY_FORMAT_ANY);
    assert_int_equal(route->terms.semantics, CFOIL_SEMANTICS_STRICT);
    assert_int_equal(route->terms.ttl_ms, DAY);
    assert_int_equal(route->terms.tombstone_ms, 0);
    assert_int_equal(route->terms.failed_ms, 600 * SECOND);
    assert_int_equal(route->terms.lease_ms, 15 * SECOND);
    assert_int_equal(route->terms.retry_after_ms, 2 * SECOND);
    assert_int_equal(route->terms.in_doubt, CFOIL_IN_DOUBT_HOLD);
    assert_int_equal(route->terms.trust_absent_after_ms, -1);
    assert_int_equal(route->outcome.other_5xx, CFOIL_STATE_FAILED);
    assert_int_equal(route->snapshot_body_bytes_max, 1048576);
    assert_false(route->store_open);
    assert_false(route->archive);
    assert_int_equal(route->tenant.source, CFOIL_TENANT_FROM_AUTHORIZATION);
    assert_int_equal(route->tenant.otherwise, CFOIL_TENANT_FROM_NONE);
    assert_string_equal(route->name, "route-1");
    cfoil_policy_free(policy);
}

static void defaults_of_payment(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "    profile: payment\n");
    const struct cfoil_route *route = only_route(policy);
    assert_int_equal(route->profile, CFOIL_PROFILE_PAYMENT);
    assert_true(route->key_required);
    assert_int_equal(route->key_format, CFOIL_KEY_FORMAT_UUID);
    assert_int_equal(route->terms.ttl_ms, 72 * HOUR);
    assert_int_equal(route->terms.tombstone_ms, 7 * DAY);
    assert_int_equal(route->terms.failed_ms, 600 * SECOND);
    assert_int_equal(route->terms.in_doubt, CFOIL_IN_DOUBT_HOLD);
    assert_int_equal(route->outcome.other_5xx, CFOIL_STATE_IN_DOUBT);
    cfoil_policy_free(policy);
}

static void ietf_differs_in_its_answers_only(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "    profile: ietf\n");
    assert_int_equal(only_route(policy)->profile, CFOIL_PROFILE_IETF);
    assert_false(only_route(policy)->key_required);
    assert_int_equal(only_route(policy)->terms.ttl_ms, DAY);
    cfoil_policy_free(policy);
}

static void key_fields(void **state)
{
    (void)state;
    const char *formats[] = {"any", "uuid", "uuid4", "ulid"};
    const enum cfoil_key_format wanted[] = {CFOIL_KEY_FORMAT_ANY, CFOIL_KEY_FORMAT_UUID,
                                            CFOIL_KEY_FORMAT_UUID4, CFOIL_KEY_FORMAT_ULID};
    for (size_t i = 0; i < 4; i++) {
        char fields[128];
        (void)snprintf(fields, sizeof(fields),
                       "    key: {header: X-Request-Key, required: true, format: %s}\n",
                       formats[i]);
        struct cfoil_policy *policy = load_route("", fields);
        assert_string_equal(only_route(policy)->key_header, "X-Request-Key");
        assert_true(only_route(policy)->key_required);
        assert_int_equal(only_route(policy)->key_format, wanted[i]);
        cfoil_policy_free(policy);
    }
}

static void key_required_can_be_taken_from_payment(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("", "    profile: payment\n    key: {required: false, format: any}\n");
    assert_false(only_route(policy)->key_required);
    assert_int_equal(only_route(policy)->key_format, CFOIL_KEY_FORMAT_ANY);
    cfoil_policy_free(policy);
}

static void every_unit_of_time(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("", "    lease: 1500ms\n    retry_after: 3s\n"
                       "    retention: {ttl: 73h, tombstone: 7d, failed: 10m}\n");
    const struct cfoil_terms *terms = &only_route(policy)->terms;
    assert_int_equal(terms->lease_ms, 1500);
    assert_int_equal(terms->retry_after_ms, 3 * SECOND);
    assert_int_equal(terms->ttl_ms, 73 * HOUR);
    assert_int_equal(terms->tombstone_ms, 7 * DAY);
    assert_int_equal(terms->failed_ms, 600 * SECOND);
    cfoil_policy_free(policy);
}

static void retention_is_the_sum_of_its_three_terms(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("", "    retention: {retry_window: 24h, delay_bound: 1h, observation: 48h}\n");
    assert_int_equal(only_route(policy)->terms.ttl_ms, 73 * HOUR);
    cfoil_policy_free(policy);
    policy = load_route("", "    retention: {retry_window: 24h}\n");
    assert_int_equal(only_route(policy)->terms.ttl_ms, 24 * HOUR);
    cfoil_policy_free(policy);
}

static void a_zero_needs_no_unit(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("", "    retry_after: 0\n    retention: {tombstone: 0}\n");
    assert_int_equal(only_route(policy)->terms.retry_after_ms, 0);
    assert_int_equal(only_route(policy)->terms.tombstone_ms, 0);
    cfoil_policy_free(policy);
}

static void the_ends_of_each_range_are_in_it(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route(
        "", "    lease: 100ms\n    retention: {ttl: 3650d}\n    snapshot: {max_body: 32MiB}\n");
    assert_int_equal(only_route(policy)->terms.lease_ms, 100);
    assert_int_equal(only_route(policy)->terms.ttl_ms, 3650 * DAY);
    assert_int_equal(only_route(policy)->snapshot_body_bytes_max, 33554432);
    cfoil_policy_free(policy);
    policy = load_route("", "    lease: 1h\n    retention: {ttl: 60m}\n");
    assert_int_equal(only_route(policy)->terms.lease_ms, HOUR);
    assert_int_equal(only_route(policy)->terms.ttl_ms, HOUR);
    cfoil_policy_free(policy);
}

static void every_unit_of_size(void **state)
{
    (void)state;
    const char *sizes[] = {"512B", "64KiB", "2MiB", "0"};
    const size_t wanted[] = {512, 65536, 2097152, 0};
    for (size_t i = 0; i < 4; i++) {
        char fields[64];
        (void)snprintf(fields, sizeof(fields), "    snapshot: {max_body: %s}\n", sizes[i]);
        struct cfoil_policy *policy = load_route("", fields);
        assert_int_equal(only_route(policy)->snapshot_body_bytes_max, wanted[i]);
        cfoil_policy_free(policy);
    }
}

static void semantics_loose(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "    semantics: loose\n");
    assert_int_equal(only_route(policy)->terms.semantics, CFOIL_SEMANTICS_LOOSE);
    cfoil_policy_free(policy);
}

static void outcomes_by_status_and_class(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("", "    outcome: {succeeded: [409], failed_final: [4xx], failed: [401, 500], "
                       "in_doubt: [502, 3xx]}\n");
    const struct cfoil_outcome_rules *rules = &only_route(policy)->outcome;
    assert_int_equal(rules->exact[409], CFOIL_STATE_SUCCEEDED);
    assert_int_equal(rules->exact[401], CFOIL_STATE_FAILED);
    assert_int_equal(rules->exact[500], CFOIL_STATE_FAILED);
    assert_int_equal(rules->exact[502], CFOIL_STATE_IN_DOUBT);
    assert_int_equal(rules->exact[404], CFOIL_STATE_ABSENT);
    assert_int_equal(rules->by_class[4], CFOIL_STATE_FAILED_FINAL);
    assert_int_equal(rules->by_class[3], CFOIL_STATE_IN_DOUBT);
    assert_int_equal(rules->by_class[5], CFOIL_STATE_ABSENT);
    cfoil_policy_free(policy);
}

static void an_exact_status_beside_its_class_is_no_contradiction(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("", "    outcome: {failed: [401], failed_final: [4xx]}\n");
    struct cfoil_exchange exchange = {.sent = true, .complete = true, .status = 401};
    enum cfoil_cause cause;
    const struct cfoil_outcome_rules *rules = &only_route(policy)->outcome;
    assert_int_equal(cfoil_outcome_of(rules, &exchange, &cause), CFOIL_STATE_FAILED);
    exchange.status = 403;
    assert_int_equal(cfoil_outcome_of(rules, &exchange, &cause), CFOIL_STATE_FAILED_FINAL);
    cfoil_policy_free(policy);
}

static void in_doubt_retry_and_hold(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "    in_doubt: retry\n");
    assert_int_equal(only_route(policy)->terms.in_doubt, CFOIL_IN_DOUBT_RETRY);
    cfoil_policy_free(policy);
    policy = load_route("", "    in_doubt: hold\n");
    assert_int_equal(only_route(policy)->terms.in_doubt, CFOIL_IN_DOUBT_HOLD);
    cfoil_policy_free(policy);
}

static void in_doubt_probe_in_full(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route(
        "", "    in_doubt: {probe: \"GET /api/orders/by-key/{key}\", replay_status: 201, "
            "trust_absent_after: 60s, timeout: 7s}\n");
    const struct cfoil_route *route = only_route(policy);
    assert_int_equal(route->terms.in_doubt, CFOIL_IN_DOUBT_PROBE);
    assert_string_equal(route->probe.method, "GET");
    assert_string_equal(route->probe.path, "/api/orders/by-key/{key}");
    assert_int_equal(route->probe.replay_status, 201);
    assert_int_equal(route->probe.timeout_ms, 7 * SECOND);
    assert_int_equal(route->terms.trust_absent_after_ms, 60 * SECOND);
    assert_true(route->terms.probe_lease_ms > route->probe.timeout_ms);
    cfoil_policy_free(policy);
}

static void in_doubt_probe_by_default(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "    in_doubt: {probe: \"GET /o?key={key}\"}\n");
    const struct cfoil_route *route = only_route(policy);
    assert_int_equal(route->probe.replay_status, 200);
    assert_int_equal(route->probe.timeout_ms, 5 * SECOND);
    assert_int_equal(route->terms.trust_absent_after_ms, -1);
    cfoil_policy_free(policy);
}

static void tenants_in_each_form(void **state)
{
    (void)state;
    const struct {
        const char *head;
        enum cfoil_tenant_source source;
        enum cfoil_tenant_source otherwise;
        const char *header;
    } forms[] = {
        {"tenant: authorization\n", CFOIL_TENANT_FROM_AUTHORIZATION, CFOIL_TENANT_FROM_NONE, NULL},
        {"tenant: none\n", CFOIL_TENANT_FROM_NONE, CFOIL_TENANT_FROM_NONE, NULL},
        {"tenant: {header: X-Tenant-Id}\n", CFOIL_TENANT_FROM_HEADER, CFOIL_TENANT_FROM_NONE,
         "X-Tenant-Id"},
        {"tenant: {header: X-T, otherwise: none}\n", CFOIL_TENANT_FROM_HEADER,
         CFOIL_TENANT_FROM_NONE, "X-T"},
        {"tenant: {header: X-T, otherwise: authorization}\n", CFOIL_TENANT_FROM_HEADER,
         CFOIL_TENANT_FROM_AUTHORIZATION, "X-T"},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct cfoil_policy *policy = load_route(forms[i].head, "");
        const struct cfoil_tenant_rule *rule = &only_route(policy)->tenant;
        assert_int_equal(rule->source, forms[i].source);
        assert_int_equal(rule->otherwise, forms[i].otherwise);
        if (forms[i].header != NULL) {
            assert_string_equal(rule->name, forms[i].header);
        }
        cfoil_policy_free(policy);
    }
}

static void fingerprint_rules_reach_the_fingerprint(void **state)
{
    (void)state;
    struct cfoil_policy *plain = load_route("", "    fingerprint: {query: true, headers: []}\n");
    struct cfoil_policy *same = load_route("", "");
    struct cfoil_policy *other = load_route(
        "", "    fingerprint: {ignore: [/client_time, /a/*/b], unordered: [/items], query: false, "
            "headers: [X-B, x-a]}\n");
    uint64_t plain_version = cfoil_rules_version(only_route(plain)->rules);
    assert_int_equal(plain_version, cfoil_rules_version(only_route(same)->rules));
    assert_int_not_equal(plain_version, cfoil_rules_version(only_route(other)->rules));
    assert_int_equal(cfoil_rules_header_count(only_route(other)->rules), 2);
    cfoil_policy_free(plain);
    cfoil_policy_free(same);
    cfoil_policy_free(other);
}

static void what_only_lint_and_people_read_is_accepted(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route(
        "", "    name: order.create\n    client: {max_attempts: 3, max_retry_interval: 30s}\n"
            "    while_pending: reject\n    answers: problem\n    archive: false\n"
            "    store_unavailable: open\n");
    assert_string_equal(only_route(policy)->name, "order.create");
    assert_true(only_route(policy)->store_open);
    cfoil_policy_free(policy);
}

static void comments_and_block_style_read_like_flow_style(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_good("# a policy\n"
                                            "---\n"
                                            "version: 1 # the only one\n"
                                            "routes:\n"
                                            "- match:\n"
                                            "  - POST /a\n"
                                            "  - \"PUT /a/{id}\"\n"
                                            "  retention:\n"
                                            "    ttl: '2h'\n");
    assert_int_equal(only_route(policy)->terms.ttl_ms, 2 * HOUR);
    cfoil_policy_free(policy);
}

static void a_policy_without_a_last_newline_and_with_crlf(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_good("version: 1\r\nroutes:\r\n  - match: POST /x\r\n"
                                            "    lease: 5s");
    assert_int_equal(only_route(policy)->terms.lease_ms, 5 * SECOND);
    cfoil_policy_free(policy);
}

static void the_built_in_policy_is_the_one_the_design_names(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_good(cfoil_policy_default_text);
    const struct cfoil_route *route = only_route(policy);
    char endpoint[256];
    assert_string_equal(matched(policy, "POST", "/a/b", endpoint), "default");
    assert_string_equal(endpoint, "POST /a/b");
    assert_string_equal(matched(policy, "PATCH", "/", endpoint), "default");
    assert_string_equal(endpoint, "PATCH /");
    assert_string_equal(matched(policy, "PUT", "/a", endpoint), "-");
    assert_string_equal(route->key_header, "Idempotency-Key");
    assert_false(route->key_required);
    assert_int_equal(route->terms.semantics, CFOIL_SEMANTICS_STRICT);
    assert_int_equal(route->tenant.source, CFOIL_TENANT_FROM_AUTHORIZATION);
    assert_int_equal(route->tenant.otherwise, CFOIL_TENANT_FROM_NONE);
    cfoil_policy_free(policy);
}

static void tenant_rules_in_words(void **state)
{
    (void)state;
    char text[128];
    struct cfoil_tenant_rule rule = {CFOIL_TENANT_FROM_HEADER, "X-Tenant-Id",
                                     CFOIL_TENANT_FROM_AUTHORIZATION};
    cfoil_tenant_rule_text(&rule, text, sizeof(text));
    assert_non_null(strstr(text, "header X-Tenant-Id, otherwise authorization"));
    rule.otherwise = CFOIL_TENANT_FROM_NONE;
    cfoil_tenant_rule_text(&rule, text, sizeof(text));
    assert_non_null(strstr(text, "header X-Tenant-Id, otherwise none"));
    rule.source = CFOIL_TENANT_FROM_COOKIE;
    rule.name = "sid";
    cfoil_tenant_rule_text(&rule, text, sizeof(text));
    assert_non_null(strstr(text, "cookie sid, otherwise none"));
    rule.source = CFOIL_TENANT_FROM_PATH;
    cfoil_tenant_rule_text(&rule, text, sizeof(text));
    assert_non_null(strstr(text, "path parameter sid, otherwise none"));
    rule.source = CFOIL_TENANT_FROM_NONE;
    cfoil_tenant_rule_text(&rule, text, sizeof(text));
    assert_ptr_equal(strstr(text, "none"), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_of_standard),
        cmocka_unit_test(defaults_of_payment),
        cmocka_unit_test(ietf_differs_in_its_answers_only),
        cmocka_unit_test(key_fields),
        cmocka_unit_test(key_required_can_be_taken_from_payment),
        cmocka_unit_test(every_unit_of_time),
        cmocka_unit_test(retention_is_the_sum_of_its_three_terms),
        cmocka_unit_test(a_zero_needs_no_unit),
        cmocka_unit_test(the_ends_of_each_range_are_in_it),
        cmocka_unit_test(every_unit_of_size),
        cmocka_unit_test(semantics_loose),
        cmocka_unit_test(outcomes_by_status_and_class),
        cmocka_unit_test(an_exact_status_beside_its_class_is_no_contradiction),
        cmocka_unit_test(in_doubt_retry_and_hold),
        cmocka_unit_test(in_doubt_probe_in_full),
        cmocka_unit_test(in_doubt_probe_by_default),
        cmocka_unit_test(tenants_in_each_form),
        cmocka_unit_test(fingerprint_rules_reach_the_fingerprint),
        cmocka_unit_test(what_only_lint_and_people_read_is_accepted),
        cmocka_unit_test(comments_and_block_style_read_like_flow_style),
        cmocka_unit_test(a_policy_without_a_last_newline_and_with_crlf),
        cmocka_unit_test(the_built_in_policy_is_the_one_the_design_names),
        cmocka_unit_test(tenant_rules_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
