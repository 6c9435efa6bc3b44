/* SPDX-License-Identifier: Apache-2.0 */
/* Profile, tenant, defaults and route laid over one another, member by member. */
#include "support.h"

#define SECOND INT64_C(1000)
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)

static void a_route_overrides_defaults_member_by_member(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {key: {header: X-Key, required: true}, retention: {tombstone: 1d}, "
                   "lease: 20s}\n",
                   "    key: {format: ulid}\n    retention: {failed: 1m}\n");
    const struct cfoil_route *route = only_route(policy);
    assert_string_equal(route->key_header, "X-Key");
    assert_true(route->key_required);
    assert_int_equal(route->key_format, CFOIL_KEY_FORMAT_ULID);
    assert_int_equal(route->terms.tombstone_ms, DAY);
    assert_int_equal(route->terms.failed_ms, 60 * SECOND);
    assert_int_equal(route->terms.lease_ms, 20 * SECOND);
    cfoil_policy_free(policy);
}

static void defaults_lie_over_the_profiles_values(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {retention: {ttl: 5h}}\n", "    profile: payment\n");
    assert_int_equal(only_route(policy)->terms.ttl_ms, 5 * HOUR);
    assert_int_equal(only_route(policy)->terms.tombstone_ms, 7 * DAY);
    cfoil_policy_free(policy);
}

static void a_profile_may_come_from_defaults(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_good("version: 1\n"
                                            "defaults: {profile: payment}\n"
                                            "routes:\n"
                                            "  - {match: POST /a}\n"
                                            "  - {match: POST /b, profile: standard}\n");
    assert_int_equal(cfoil_policy_route(policy, 0)->profile, CFOIL_PROFILE_PAYMENT);
    assert_true(cfoil_policy_route(policy, 0)->key_required);
    assert_int_equal(cfoil_policy_route(policy, 1)->profile, CFOIL_PROFILE_STANDARD);
    assert_false(cfoil_policy_route(policy, 1)->key_required);
    cfoil_policy_free(policy);
}

static void lists_replace_lists(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {outcome: {failed: [500, 501], in_doubt: [504]}}\n",
                   "    outcome: {failed: [502]}\n");
    const struct cfoil_outcome_rules *rules = &only_route(policy)->outcome;
    assert_int_equal(rules->exact[500], CFOIL_STATE_ABSENT);
    assert_int_equal(rules->exact[502], CFOIL_STATE_FAILED);
    assert_int_equal(rules->exact[504], CFOIL_STATE_IN_DOUBT);
    cfoil_policy_free(policy);
}

static void one_route_leaves_no_trace_in_the_next(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_good(
        "version: 1\n"
        "routes:\n"
        "  - {match: POST /a, lease: 5s, outcome: {failed: [404]}, in_doubt: retry, tenant: none}\n"
        "  - {match: POST /b}\n");
    const struct cfoil_route *second = cfoil_policy_route(policy, 1);
    assert_int_equal(second->terms.lease_ms, 15 * SECOND);
    assert_int_equal(second->outcome.exact[404], CFOIL_STATE_ABSENT);
    assert_int_equal(second->terms.in_doubt, CFOIL_IN_DOUBT_HOLD);
    assert_int_equal(second->tenant.source, CFOIL_TENANT_FROM_AUTHORIZATION);
    cfoil_policy_free(policy);
}

static void a_routes_ttl_replaces_the_defaults_sum(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {retention: {retry_window: 24h, observation: 1h}}\n",
                   "    retention: {ttl: 3h}\n");
    assert_int_equal(only_route(policy)->terms.ttl_ms, 3 * HOUR);
    cfoil_policy_free(policy);
}

static void a_routes_term_replaces_the_defaults_ttl(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {retention: {ttl: 3h}}\n", "    retention: {retry_window: 5h}\n");
    assert_int_equal(only_route(policy)->terms.ttl_ms, 5 * HOUR);
    cfoil_policy_free(policy);
}

static void terms_of_the_sum_merge_one_by_one(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {retention: {retry_window: 24h, observation: 1h}}\n",
                   "    retention: {observation: 2h}\n");
    assert_int_equal(only_route(policy)->terms.ttl_ms, 26 * HOUR);
    cfoil_policy_free(policy);
}

static void the_files_tenant_is_every_routes(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_good("version: 1\n"
                                            "tenant: {header: X-T, otherwise: authorization}\n"
                                            "routes:\n"
                                            "  - {match: POST /a}\n"
                                            "  - {match: POST /b, tenant: none}\n"
                                            "  - {match: POST /c, tenant: {header: X-U}}\n");
    assert_string_equal(cfoil_policy_route(policy, 0)->tenant.name, "X-T");
    assert_int_equal(cfoil_policy_route(policy, 0)->tenant.otherwise,
                     CFOIL_TENANT_FROM_AUTHORIZATION);
    assert_int_equal(cfoil_policy_route(policy, 1)->tenant.source, CFOIL_TENANT_FROM_NONE);
    assert_string_equal(cfoil_policy_route(policy, 2)->tenant.name, "X-U");
    assert_int_equal(cfoil_policy_route(policy, 2)->tenant.otherwise,
                     CFOIL_TENANT_FROM_AUTHORIZATION);
    cfoil_policy_free(policy);
}

static void a_tenant_under_defaults_overrides_the_files(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("tenant: {header: X-T}\ndefaults: {tenant: none}\n", "");
    assert_int_equal(only_route(policy)->tenant.source, CFOIL_TENANT_FROM_NONE);
    cfoil_policy_free(policy);
}

static void a_single_value_clears_the_mapping_below_it(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("tenant: {header: X-T, otherwise: authorization}\n"
                                             "defaults: {tenant: none}\n",
                                             "    tenant: {header: X-U}\n");
    assert_int_equal(only_route(policy)->tenant.source, CFOIL_TENANT_FROM_HEADER);
    assert_int_equal(only_route(policy)->tenant.otherwise, CFOIL_TENANT_FROM_NONE);
    cfoil_policy_free(policy);
}

static void a_plain_hold_replaces_a_probe(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {in_doubt: {probe: \"GET /p/{key}\"}}\n", "    in_doubt: hold\n");
    assert_int_equal(only_route(policy)->terms.in_doubt, CFOIL_IN_DOUBT_HOLD);
    assert_null(only_route(policy)->probe.path);
    cfoil_policy_free(policy);
}

static void a_probe_takes_its_times_from_defaults(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_good("version: 1\n"
                  "defaults: {in_doubt: {probe: \"GET /p/{key}\", timeout: 9s}}\n"
                  "routes:\n"
                  "  - match: POST /x\n"
                  "    in_doubt: {probe: \"GET /q/{key}\"}\n");
    assert_string_equal(only_route(policy)->probe.path, "/q/{key}");
    assert_int_equal(only_route(policy)->probe.timeout_ms, 9 * SECOND);
    cfoil_policy_free(policy);
}

/* A place is not added to another one: the route's counts, `otherwise` stays. */
static void one_place_of_a_tenant_replaces_another(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("tenant: {header: X-T, otherwise: authorization}\n"
                                             "defaults: {tenant: {query: shop}}\n",
                                             "    tenant: {cookie: sid}\n");
    const struct cfoil_tenant_rule *rule = &only_route(policy)->tenant;
    assert_int_equal(rule->source, CFOIL_TENANT_FROM_COOKIE);
    assert_string_equal(rule->name, "sid");
    assert_int_equal(rule->otherwise, CFOIL_TENANT_FROM_AUTHORIZATION);
    cfoil_policy_free(policy);
}

static void one_place_of_a_key_replaces_another(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {key: {header: X-K, required: true}}\n", "    key: {query: idem}\n");
    const struct cfoil_route *route = only_route(policy);
    assert_string_equal(route->key_query, "idem");
    assert_string_equal(route->key_header, "Idempotency-Key");
    assert_true(route->key_required);
    cfoil_policy_free(policy);

    policy = load_route("defaults: {key: {query: idem}}\n", "    key: {header: X-K}\n");
    route = only_route(policy);
    assert_null(route->key_query);
    assert_string_equal(route->key_header, "X-K");
    cfoil_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_place_of_a_key_replaces_another),
        cmocka_unit_test(one_place_of_a_tenant_replaces_another),
        cmocka_unit_test(a_route_overrides_defaults_member_by_member),
        cmocka_unit_test(defaults_lie_over_the_profiles_values),
        cmocka_unit_test(a_profile_may_come_from_defaults),
        cmocka_unit_test(lists_replace_lists),
        cmocka_unit_test(one_route_leaves_no_trace_in_the_next),
        cmocka_unit_test(a_routes_ttl_replaces_the_defaults_sum),
        cmocka_unit_test(a_routes_term_replaces_the_defaults_ttl),
        cmocka_unit_test(terms_of_the_sum_merge_one_by_one),
        cmocka_unit_test(the_files_tenant_is_every_routes),
        cmocka_unit_test(a_tenant_under_defaults_overrides_the_files),
        cmocka_unit_test(a_single_value_clears_the_mapping_below_it),
        cmocka_unit_test(a_plain_hold_replaces_a_probe),
        cmocka_unit_test(a_probe_takes_its_times_from_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
