/* SPDX-License-Identifier: Apache-2.0 */
/* Which response headers go into a snapshot, by the built-in list and what a policy adds to it. */
#include "support.h"

static bool keeps(const struct cfoil_policy *policy, const char *name)
{
    return cfoil_route_keeps_header(only_route(policy), cfoil_bytes_text(name));
}

static void the_designs_list_is_dropped_by_default(void **state)
{
    (void)state;
    static const char *const dropped[] = {
        "Set-Cookie",
        "WWW-Authenticate",
        "Date",
        "Server",
        "Age",
        "Alt-Svc",
        "RateLimit-Limit",
        "ratelimit-reset",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Proxy-Authenticate",
        "SET-COOKIE",
    };
    struct cfoil_policy *policy = load_route("", "");
    for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
        assert_false(keeps(policy, dropped[i]));
    }
    cfoil_policy_free(policy);
}

static void everything_else_is_kept(void **state)
{
    (void)state;
    static const char *const kept[] = {"Location",    "Content-Type",  "Link",
                                       "ETag",        "X-RateLimit-A", "Dates",
                                       "Set-Cookie2", "RateLimit",     "X-Date"};
    struct cfoil_policy *policy = load_route("", "");
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        assert_true(keeps(policy, kept[i]));
    }
    cfoil_policy_free(policy);
}

static void drop_headers_extends_the_list(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {snapshot: {drop_headers: [X-A]}}\n",
                   "    snapshot: {drop_headers: [X-B, \"x-trace-*\"]}\n");
    assert_false(keeps(policy, "x-a"));
    assert_false(keeps(policy, "X-B"));
    assert_false(keeps(policy, "X-Trace-Id"));
    assert_false(keeps(policy, "Set-Cookie"));
    assert_true(keeps(policy, "X-C"));
    cfoil_policy_free(policy);
}

static void keep_headers_takes_from_it(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("", "    snapshot: {keep_headers: [Date, RateLimit-Policy]}\n");
    assert_true(keeps(policy, "date"));
    assert_true(keeps(policy, "ratelimit-policy"));
    assert_false(keeps(policy, "RateLimit-Limit"));
    assert_false(keeps(policy, "Server"));
    cfoil_policy_free(policy);
}

static void a_route_has_the_last_word(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {snapshot: {keep_headers: [Date], drop_headers: [X-A]}}\n",
                   "    snapshot: {drop_headers: [Date], keep_headers: [X-A]}\n");
    assert_false(keeps(policy, "Date"));
    assert_true(keeps(policy, "X-A"));
    cfoil_policy_free(policy);
}

static void no_wildcard_keeps_a_hop_by_hop_header(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "    snapshot: {keep_headers: [\"Con*\"]}\n");
    assert_false(keeps(policy, "Connection"));
    assert_false(keeps(policy, "Content-Length"));
    assert_true(keeps(policy, "Content-Type"));
    cfoil_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_designs_list_is_dropped_by_default),
        cmocka_unit_test(everything_else_is_kept),
        cmocka_unit_test(drop_headers_extends_the_list),
        cmocka_unit_test(keep_headers_takes_from_it),
        cmocka_unit_test(a_route_has_the_last_word),
        cmocka_unit_test(no_wildcard_keeps_a_hop_by_hop_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
