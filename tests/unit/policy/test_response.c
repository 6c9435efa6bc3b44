/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy reads of a response: the body rule and the resource, as a file gives them. */
#include "support.h"

#include <stdio.h>
#include <string.h>

static struct cfoil_value value(enum cfoil_value_kind kind, const char *text)
{
    struct cfoil_value made = {kind, cfoil_bytes_text(text)};
    return made;
}

static const struct cfoil_value absent = {.kind = CFOIL_VALUE_ABSENT};

static struct cfoil_policy *load_body(const char *rule)
{
    char fields[1024];
    (void)snprintf(fields, sizeof(fields), "    outcome: {body: {%s}}\n", rule);
    return load_route("", fields);
}

static void plain_items_have_the_types_of_json_and_quoted_ones_are_text(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_body("at: /code, succeeded: [0, true, ok], failed: [\"0\", 1.50, \"true\"]");
    const struct cfoil_body_rule *rule = &only_route(policy)->body;
    assert_string_equal(rule->at, "/code");
    assert_int_equal(rule->value_count, 6);
    assert_int_equal(cfoil_body_outcome(rule, 200, value(CFOIL_VALUE_NUMBER, "0")),
                     CFOIL_STATE_SUCCEEDED);
    assert_int_equal(cfoil_body_outcome(rule, 200, value(CFOIL_VALUE_TRUE, "true")),
                     CFOIL_STATE_SUCCEEDED);
    assert_int_equal(cfoil_body_outcome(rule, 200, value(CFOIL_VALUE_STRING, "ok")),
                     CFOIL_STATE_SUCCEEDED);
    assert_int_equal(cfoil_body_outcome(rule, 200, value(CFOIL_VALUE_STRING, "0")),
                     CFOIL_STATE_FAILED);
    assert_int_equal(cfoil_body_outcome(rule, 200, value(CFOIL_VALUE_STRING, "true")),
                     CFOIL_STATE_FAILED);
    cfoil_policy_free(policy);
}

static void what_is_not_listed_is_otherwise_or_nothing(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_body("at: /code, failed: [1]");
    const struct cfoil_body_rule *rule = &only_route(policy)->body;
    assert_int_equal(cfoil_body_outcome(rule, 200, value(CFOIL_VALUE_NUMBER, "2")),
                     CFOIL_STATE_ABSENT);
    assert_int_equal(cfoil_body_outcome(rule, 200, absent), CFOIL_STATE_ABSENT);
    cfoil_policy_free(policy);

    policy = load_body("at: /code, failed: [1], otherwise: in_doubt");
    rule = &only_route(policy)->body;
    assert_int_equal(cfoil_body_outcome(rule, 200, value(CFOIL_VALUE_NUMBER, "2")),
                     CFOIL_STATE_IN_DOUBT);
    assert_int_equal(cfoil_body_outcome(rule, 200, absent), CFOIL_STATE_IN_DOUBT);
    assert_int_equal(cfoil_body_outcome(rule, 200, value(CFOIL_VALUE_NUMBER, "1")),
                     CFOIL_STATE_FAILED);
    cfoil_policy_free(policy);
}

static void a_gateway_error_without_the_value_says_nothing(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_body("at: /code, otherwise: failed");
    const struct cfoil_body_rule *rule = &only_route(policy)->body;
    assert_int_equal(cfoil_body_outcome(rule, 502, absent), CFOIL_STATE_ABSENT);
    assert_int_equal(cfoil_body_outcome(rule, 504, absent), CFOIL_STATE_ABSENT);
    assert_int_equal(cfoil_body_outcome(rule, 503, absent), CFOIL_STATE_FAILED);
    assert_int_equal(cfoil_body_outcome(rule, 502, value(CFOIL_VALUE_NUMBER, "1")),
                     CFOIL_STATE_FAILED);
    cfoil_policy_free(policy);
}

static void a_route_without_the_rules_has_none(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "    outcome: {failed: [401]}\n");
    assert_null(only_route(policy)->body.at);
    assert_null(only_route(policy)->resource.id);
    cfoil_policy_free(policy);
}

static void members_of_defaults_and_route_merge(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("defaults: {outcome: {body: {at: /code, succeeded: [0]}}, resource: {type: "
                   "order, id: /i}}\n",
                   "    outcome: {body: {at: /status}}\n    resource: {id: /data/id}\n");
    const struct cfoil_route *route = only_route(policy);
    assert_string_equal(route->body.at, "/status");
    assert_int_equal(route->body.value_count, 1);
    assert_string_equal(route->resource.type, "order");
    assert_string_equal(route->resource.id, "/data/id");
    cfoil_policy_free(policy);
}

/* n values in two lists: up to the limit they load, beyond it they are one problem. */
static void the_limit_on_values(void **state)
{
    (void)state;
    for (int count = CFOIL_BODY_VALUES_MAX - 1; count <= CFOIL_BODY_VALUES_MAX + 1; count++) {
        char text[4096];
        size_t len = (size_t)snprintf(text, sizeof(text),
                                      "version: 1\nroutes:\n  - match: POST /x\n"
                                      "    outcome: {body: {at: /c, failed: [0");
        for (int i = 1; i < count; i++) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d",
                                    i == 100 ? "], failed_final: [" : ", ", i);
        }
        (void)snprintf(text + len, sizeof(text) - len, "]}}\n");
        struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
        struct cfoil_policy *policy = NULL;
        enum cfoil_error error = cfoil_policy_load_text(cfoil_bytes_text(text), &policy, problems);
        if (count <= CFOIL_BODY_VALUES_MAX) {
            assert_int_equal(error, CFOIL_OK);
            cfoil_policy_free(policy);
        } else {
            assert_int_equal(error, CFOIL_E_POLICY);
            assert_int_equal(problems->count, 1);
            assert_non_null(strstr(problems->item[0].text, "at most 256"));
        }
        test_free(problems);
    }
}

static void a_resource_is_text_or_a_number_within_the_limit(void **state)
{
    static const struct cfoil_resource_rule rule = {"order", "/id"};
    char text[CFOIL_RESOURCE_ID_BYTES_MAX + 2];
    (void)state;

    memset(text, 'x', sizeof(text));
    for (size_t len = CFOIL_RESOURCE_ID_BYTES_MAX - 1; len <= CFOIL_RESOURCE_ID_BYTES_MAX + 1;
         len++) {
        struct cfoil_value long_text = {CFOIL_VALUE_STRING, cfoil_bytes_of(text, len)};
        assert_int_equal(cfoil_resource_of(&rule, long_text).id.len,
                         len <= CFOIL_RESOURCE_ID_BYTES_MAX ? len : 0);
    }
    struct cfoil_resource resource = cfoil_resource_of(&rule, value(CFOIL_VALUE_NUMBER, "17"));
    assert_true(cfoil_bytes_equal(resource.type, cfoil_bytes_text("order")));
    assert_true(cfoil_bytes_equal(resource.id, cfoil_bytes_text("17")));
    assert_int_equal(cfoil_resource_of(&rule, value(CFOIL_VALUE_TRUE, "true")).type.len, 0);
    assert_int_equal(cfoil_resource_of(&rule, value(CFOIL_VALUE_STRING, "")).type.len, 0);
    assert_int_equal(cfoil_resource_of(&rule, absent).type.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_items_have_the_types_of_json_and_quoted_ones_are_text),
        cmocka_unit_test(what_is_not_listed_is_otherwise_or_nothing),
        cmocka_unit_test(a_gateway_error_without_the_value_says_nothing),
        cmocka_unit_test(a_route_without_the_rules_has_none),
        cmocka_unit_test(members_of_defaults_and_route_merge),
        cmocka_unit_test(the_limit_on_values),
        cmocka_unit_test(a_resource_is_text_or_a_number_within_the_limit),
    };

    return cmocka_run_group_tests_name("response", tests, NULL, NULL);
}
