/* SPDX-License-Identifier: Apache-2.0 */
/* Our own answers, byte by byte, in each shape; and which profile has which status and shape. */
#include "support.h"

#include <stdio.h>

#include "policy/answer.h"
#include "policy/profiles.h"

static void is_written(const struct cfoil_document *document, const char *wanted)
{
    char text[1024];
    size_t len = cfoil_document_write(document, text, sizeof(text) - 1);
    assert_in_range(len, 1, sizeof(text) - 1);
    text[len] = '\0';
    assert_string_equal(text, wanted);
}

static struct cfoil_document pending(enum cfoil_answers shape)
{
    struct cfoil_document document = {shape, CFOIL_ANSWER_PENDING, 409, "处理中", NULL};
    return document;
}

static void a_problem_has_its_members(void **state)
{
    (void)state;
    struct cfoil_document document = pending(CFOIL_ANSWERS_PROBLEM);
    is_written(&document, "{\"type\": \"about:blank\", \"title\": \"Conflict\", \"status\": 409, "
                          "\"code\": \"IDEMPOTENCY_PENDING\", \"message\": \"处理中\"}\n");
    assert_string_equal(cfoil_document_type(CFOIL_ANSWERS_PROBLEM), "application/problem+json");
}

static void an_envelope_has_number_message_and_null(void **state)
{
    (void)state;
    struct cfoil_document document = pending(CFOIL_ANSWERS_ENVELOPE);
    is_written(&document, "{\"code\": 4090, \"message\": \"处理中\", \"data\": null}\n");
    assert_string_equal(cfoil_document_type(CFOIL_ANSWERS_ENVELOPE), "application/json");
}

static void stripes_shape_is_an_error_object(void **state)
{
    (void)state;
    struct cfoil_document document = pending(CFOIL_ANSWERS_STRIPE);
    is_written(&document, "{\"error\": {\"type\": \"idempotency_error\", \"code\": "
                          "\"IDEMPOTENCY_PENDING\", \"message\": \"处理中\"}}\n");
    assert_string_equal(cfoil_document_type(CFOIL_ANSWERS_STRIPE), "application/json");
}

static void a_known_resource_is_pointed_at(void **state)
{
    (void)state;
    struct cfoil_resource resource = {cfoil_bytes_text("order"), cfoil_bytes_text("o-1")};
    struct cfoil_document document = pending(CFOIL_ANSWERS_PROBLEM);
    document.resource = &resource;
    is_written(&document, "{\"type\": \"about:blank\", \"title\": \"Conflict\", \"status\": 409, "
                          "\"code\": \"IDEMPOTENCY_PENDING\", \"message\": \"处理中\", "
                          "\"resource\": {\"type\": \"order\", \"id\": \"o-1\"}}\n");
    document.shape = CFOIL_ANSWERS_STRIPE;
    is_written(&document, "{\"error\": {\"type\": \"idempotency_error\", \"code\": "
                          "\"IDEMPOTENCY_PENDING\", \"message\": \"处理中\", "
                          "\"resource\": {\"type\": \"order\", \"id\": \"o-1\"}}}\n");
    document.shape = CFOIL_ANSWERS_ENVELOPE;
    is_written(&document, "{\"code\": 4090, \"message\": \"处理中\", \"data\": null}\n");
}

static void what_json_cannot_hold_is_escaped(void **state)
{
    (void)state;
    struct cfoil_resource resource = {cfoil_bytes_text("a\"b\\c"), cfoil_bytes_text("\x01\n\x7f/")};
    struct cfoil_document document = pending(CFOIL_ANSWERS_PROBLEM);
    document.message = "say \"now\" \\ later";
    document.resource = &resource;
    is_written(&document, "{\"type\": \"about:blank\", \"title\": \"Conflict\", \"status\": 409, "
                          "\"code\": \"IDEMPOTENCY_PENDING\", "
                          "\"message\": \"say \\\"now\\\" \\\\ later\", "
                          "\"resource\": {\"type\": \"a\\\"b\\\\c\", "
                          "\"id\": \"\\u0001\\u000a\\u007f/\"}}\n");
}

static void a_buffer_too_small_is_filled_and_the_length_told(void **state)
{
    (void)state;
    struct cfoil_document document = pending(CFOIL_ANSWERS_ENVELOPE);
    size_t len = cfoil_document_write(&document, NULL, 0);
    char text[128];
    for (size_t bytes = 0; bytes <= len; bytes++) {
        memset(text, '#', sizeof(text));
        assert_int_equal(cfoil_document_write(&document, text, bytes), len);
        assert_int_equal(text[bytes], '#');
        assert_true(bytes == 0 || text[bytes - 1] != '#');
    }
}

static void a_header_is_exposed_by_its_name_or_by_a_star(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool exposed;
    } values[] = {
        {"", false},
        {"Retry-After", true},
        {"retry-after", true},
        {"X, Retry-After", true},
        {"X,Retry-After ,Y", true},
        {"X-Retry-After", false},
        {"Retry-Afte", false},
        {"Retry-After-X", false},
        {"*", true},
        {"X,\t* ", true},
        {"X*", false},
        {" , ,", false},
        {"Retry After", false},
        {"X,Y,retry-AFTER", true},
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_int_equal(
            cfoil_exposes(cfoil_bytes_text(values[i].value), cfoil_bytes_text("Retry-After")),
            values[i].exposed);
    }
}

static const struct cfoil_route *load(struct cfoil_policy **policy, const char *fields)
{
    *policy = load_route("", fields);
    return only_route(*policy);
}

/* DESIGN.md, "Answers": ietf's column, and stripe's "400 for a conflict, else as default". */
static void statuses_follow_the_profile(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        uint16_t conflict;
        enum cfoil_answers shape;
    } profiles[] = {
        {"", 409, CFOIL_ANSWERS_PROBLEM},
        {"    profile: standard\n", 409, CFOIL_ANSWERS_PROBLEM},
        {"    profile: payment\n", 409, CFOIL_ANSWERS_PROBLEM},
        {"    profile: ietf\n", 422, CFOIL_ANSWERS_PROBLEM},
        {"    profile: stripe\n", 400, CFOIL_ANSWERS_STRIPE},
        {"    profile: stripe\n    answers: envelope\n", 400, CFOIL_ANSWERS_ENVELOPE},
        {"    profile: stripe\n    answers: problem\n", 400, CFOIL_ANSWERS_PROBLEM},
        {"    answers: envelope\n", 409, CFOIL_ANSWERS_ENVELOPE},
    };
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        struct cfoil_policy *policy;
        const struct cfoil_route *route = load(&policy, profiles[i].fields);
        assert_int_equal(cfoil_answer_status(route, CFOIL_ANSWER_KEY_CONFLICT),
                         profiles[i].conflict);
        assert_int_equal(cfoil_answer_status(route, CFOIL_ANSWER_PENDING), 409);
        assert_int_equal(cfoil_answer_status(route, CFOIL_ANSWER_KEY_MISSING), 400);
        assert_int_equal(cfoil_answer_status(route, CFOIL_ANSWER_STORE_UNAVAILABLE), 503);
        assert_int_equal(route->answers, profiles[i].shape);
        cfoil_policy_free(policy);
    }
}

/* Stripe keeps the first answer of a key, a 500 too, for a day, and asks for no key. */
static void defaults_of_stripe(void **state)
{
    (void)state;
    struct cfoil_policy *policy;
    const struct cfoil_route *route = load(&policy, "    profile: stripe\n");
    assert_int_equal(route->profile, CFOIL_PROFILE_STRIPE);
    assert_string_equal(route->key_header, "Idempotency-Key");
    assert_false(route->key_required);
    assert_int_equal(route->key_format, CFOIL_KEY_FORMAT_ANY);
    assert_int_equal(route->terms.ttl_ms, 24 * 3600 * INT64_C(1000));
    assert_int_equal(route->terms.tombstone_ms, 0);
    assert_int_equal(route->outcome.other_5xx, CFOIL_STATE_FAILED_FINAL);
    assert_false(route->archive);
    cfoil_policy_free(policy);
}

static void defaults_can_name_the_shape(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_good(
        "version: 1\ndefaults: {answers: envelope}\nroutes:\n  - match: POST /a\n"
        "  - {match: POST /b, answers: problem}\n  - {match: POST /c, profile: stripe}\n");
    assert_int_equal(cfoil_policy_route(policy, 0)->answers, CFOIL_ANSWERS_ENVELOPE);
    assert_int_equal(cfoil_policy_route(policy, 1)->answers, CFOIL_ANSWERS_PROBLEM);
    assert_int_equal(cfoil_policy_route(policy, 2)->answers, CFOIL_ANSWERS_ENVELOPE);
    cfoil_policy_free(policy);
}

/* The place of a value in fields.def is the number of its row in profiles.def. */
static void the_rows_stand_in_the_order_of_the_field(void **state)
{
    (void)state;
    assert_int_equal(CFOIL_PROFILE_COUNT, 4);
    for (int i = 0; i < CFOIL_PROFILE_COUNT; i++) {
        char fields[64];
        (void)snprintf(fields, sizeof(fields), "    profile: %s\n",
                       cfoil_profile_row((enum cfoil_profile)i)->name);
        struct cfoil_policy *policy;
        assert_int_equal(load(&policy, fields)->profile, i);
        cfoil_policy_free(policy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_problem_has_its_members),
        cmocka_unit_test(an_envelope_has_number_message_and_null),
        cmocka_unit_test(stripes_shape_is_an_error_object),
        cmocka_unit_test(a_known_resource_is_pointed_at),
        cmocka_unit_test(what_json_cannot_hold_is_escaped),
        cmocka_unit_test(a_buffer_too_small_is_filled_and_the_length_told),
        cmocka_unit_test(a_header_is_exposed_by_its_name_or_by_a_star),
        cmocka_unit_test(statuses_follow_the_profile),
        cmocka_unit_test(defaults_of_stripe),
        cmocka_unit_test(defaults_can_name_the_shape),
        cmocka_unit_test(the_rows_stand_in_the_order_of_the_field),
    };
    return cmocka_run_group_tests_name("policy/answer", tests, NULL, NULL);
}
