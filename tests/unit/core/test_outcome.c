/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Outcome of an execution" of DESIGN.md, row by row and over every status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/outcome.h"

/* Rules of a route that says nothing, in the standard profile. */
static struct cfoil_outcome_rules silent(void)
{
    struct cfoil_outcome_rules rules = {.other_5xx = CFOIL_STATE_FAILED};

    memset(rules.exact, CFOIL_STATE_ABSENT, sizeof(rules.exact));
    memset(rules.by_class, CFOIL_STATE_ABSENT, sizeof(rules.by_class));
    return rules;
}

static struct cfoil_exchange complete(unsigned status)
{
    struct cfoil_exchange exchange = {.sent = true, .complete = true, .status = (uint16_t)status};
    return exchange;
}

static void expect(const struct cfoil_outcome_rules *rules, const struct cfoil_exchange *exchange,
                   enum cfoil_state outcome, enum cfoil_cause cause)
{
    enum cfoil_cause got = CFOIL_CAUSE_COUNT;

    assert_int_equal(cfoil_outcome_of(rules, exchange, &got), outcome);
    assert_int_equal(got, cause);
}

/* The table's lower half, as a reader of the design would say it. */
static enum cfoil_state plain_outcome(unsigned status, bool retry_after)
{
    if (status == 502 || status == 504)
        return CFOIL_STATE_IN_DOUBT;
    if (status == 401 || status == 403 || status == 408 || status == 425 || status == 429)
        return CFOIL_STATE_FAILED;
    if (status == 503 && retry_after)
        return CFOIL_STATE_FAILED;
    if (status < 400)
        return CFOIL_STATE_SUCCEEDED;
    return status < 500 ? CFOIL_STATE_FAILED_FINAL : CFOIL_STATE_FAILED;
}

static void every_status_of_a_silent_route(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    unsigned status, retry_after;

    (void)state;
    for (status = 200; status < 600; status++) {
        for (retry_after = 0; retry_after < 2; retry_after++) {
            struct cfoil_exchange exchange = complete(status);
            enum cfoil_state outcome = plain_outcome(status, retry_after != 0);

            exchange.has_retry_after = retry_after != 0;
            expect(&rules, &exchange, outcome,
                   outcome == CFOIL_STATE_IN_DOUBT ? CFOIL_CAUSE_BAD_GATEWAY : CFOIL_CAUSE_NONE);
        }
    }
}

/* RFC 9110, 15.2: a 1xx is interim, a final response must follow; only 101 ends the exchange. */
static void an_interim_status_is_no_answer(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange switching = complete(101);
    unsigned status;

    (void)state;
    expect(&rules, &switching, CFOIL_STATE_SUCCEEDED, CFOIL_CAUSE_NONE);
    for (status = 100; status < 200; status++) {
        struct cfoil_exchange exchange = complete(status);

        if (status != 101)
            expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_OWNER_LOST);
    }
}

static void nothing_sent_is_failed_whatever_came_back(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    unsigned flags;

    (void)state;
    rules.exact[502] = CFOIL_STATE_SUCCEEDED;
    rules.by_class[5] = CFOIL_STATE_IN_DOUBT;
    for (flags = 0; flags < 16; flags++) {
        struct cfoil_exchange exchange = {.sent = false,
                                          .complete = (flags & 1) != 0,
                                          .backend_closed = (flags & 2) != 0,
                                          .timed_out = (flags & 4) != 0,
                                          .status = (flags & 8) != 0 ? 502 : 0};

        expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    }
}

static void a_reset_after_a_byte_was_sent_is_in_doubt(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = {.sent = true, .backend_closed = true};

    (void)state;
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_BACKEND_CLOSED);
}

static void a_time_out_after_a_byte_was_sent_is_in_doubt(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = {.sent = true, .timed_out = true};

    (void)state;
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
}

/* Two attempts, one timed out: that one may still be running, so nothing is trusted at once. */
static void a_time_out_beside_a_reset_is_not_trusted_at_once(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = {.sent = true, .backend_closed = true, .timed_out = true};

    (void)state;
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
}

/* The proxy writes 502 or 504 itself then; a route that names them must not hide what happened. */
static void a_time_out_comes_before_the_routes_rules(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = complete(504);

    (void)state;
    rules.exact[504] = CFOIL_STATE_FAILED;
    rules.by_class[5] = CFOIL_STATE_FAILED;
    exchange.timed_out = true;
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    exchange = complete(502);
    exchange.backend_closed = true;
    rules.exact[502] = CFOIL_STATE_FAILED;
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_BACKEND_CLOSED);
}

static void a_truncated_response_is_in_doubt_even_with_a_good_status(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = {.sent = true, .complete = false, .status = 201};
    enum cfoil_cause cause = CFOIL_CAUSE_NONE;

    (void)state;
    rules.exact[201] = CFOIL_STATE_SUCCEEDED;
    assert_int_equal(cfoil_outcome_of(&rules, &exchange, &cause), CFOIL_STATE_IN_DOUBT);
    /* Nobody saw the backend close, so a probe's "not found" must wait. */
    assert_int_not_equal(cause, CFOIL_CAUSE_NONE);
    assert_int_not_equal(cause, CFOIL_CAUSE_BACKEND_CLOSED);
}

static void a_status_out_of_range_is_a_truncated_exchange(void **state)
{
    static const unsigned bad[] = {0, 1, 99, 600, 999, 65535};
    struct cfoil_outcome_rules rules = silent();
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cfoil_exchange exchange = complete(bad[i]);
        enum cfoil_cause cause = CFOIL_CAUSE_NONE;

        assert_int_equal(cfoil_outcome_of(&rules, &exchange, &cause), CFOIL_STATE_IN_DOUBT);
        assert_int_not_equal(cause, CFOIL_CAUSE_NONE);
        assert_int_not_equal(cause, CFOIL_CAUSE_BACKEND_CLOSED);
    }
}

static void the_exact_status_comes_before_its_class_and_the_table(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = complete(404);
    unsigned status;

    (void)state;
    rules.exact[404] = CFOIL_STATE_FAILED;
    rules.by_class[4] = CFOIL_STATE_SUCCEEDED;
    expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    exchange = complete(429);
    expect(&rules, &exchange, CFOIL_STATE_SUCCEEDED, CFOIL_CAUSE_NONE);
    for (status = 200; status < 600; status++) {
        rules.exact[status] = CFOIL_STATE_FAILED_FINAL;
        exchange = complete(status);
        expect(&rules, &exchange, CFOIL_STATE_FAILED_FINAL, CFOIL_CAUSE_NONE);
    }
}

static void the_class_comes_before_502_and_504(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = complete(502);

    (void)state;
    rules.by_class[5] = CFOIL_STATE_FAILED;
    expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
}

static void a_class_touches_no_other_class(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    unsigned status;

    (void)state;
    rules.by_class[3] = CFOIL_STATE_FAILED_FINAL;
    for (status = 200; status < 600; status++) {
        struct cfoil_exchange exchange = complete(status);
        enum cfoil_state outcome =
            status / 100 == 3 ? CFOIL_STATE_FAILED_FINAL : plain_outcome(status, false);

        expect(&rules, &exchange, outcome,
               outcome == CFOIL_STATE_IN_DOUBT ? CFOIL_CAUSE_BAD_GATEWAY : CFOIL_CAUSE_NONE);
    }
}

static void a_rule_that_says_in_doubt_names_the_status_as_cause(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = complete(202);

    (void)state;
    rules.exact[202] = CFOIL_STATE_IN_DOUBT;
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_STATUS);
    rules.by_class[5] = CFOIL_STATE_IN_DOUBT;
    exchange = complete(500);
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_STATUS);
}

/* "first row that matches": after the exact status, before its class and the table. */
static void the_body_rule_stands_between_the_exact_status_and_its_class(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = complete(200);
    (void)state;

    exchange.body_says = CFOIL_STATE_FAILED;
    expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    rules.by_class[2] = CFOIL_STATE_FAILED_FINAL;
    expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    rules.exact[200] = CFOIL_STATE_SUCCEEDED;
    expect(&rules, &exchange, CFOIL_STATE_SUCCEEDED, CFOIL_CAUSE_NONE);

    exchange = complete(502);
    exchange.body_says = CFOIL_STATE_FAILED;
    expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    exchange.body_says = CFOIL_STATE_IN_DOUBT;
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_STATUS);
}

/* What ended before its end is decided by rows above it, whatever could be read. */
static void the_body_of_a_broken_exchange_says_nothing(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = complete(200);
    (void)state;

    exchange.body_says = CFOIL_STATE_SUCCEEDED;
    exchange.timed_out = true;
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    exchange.sent = false;
    expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
}

static void profile_payment_doubts_other_5xx_only(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = complete(500);

    (void)state;
    rules.other_5xx = CFOIL_STATE_IN_DOUBT;
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_STATUS);
    exchange = complete(503);
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_STATUS);
    exchange.has_retry_after = true; /* the backend declined */
    expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    exchange = complete(429);
    expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    exchange = complete(504);
    expect(&rules, &exchange, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_BAD_GATEWAY);
}

static void profile_stripe_ends_other_5xx_for_good_and_no_more(void **state)
{
    static const struct {
        uint16_t status;
        enum cfoil_state outcome;
        enum cfoil_cause cause;
    } rows[] = {
        {500, CFOIL_STATE_FAILED_FINAL, CFOIL_CAUSE_NONE},
        {503, CFOIL_STATE_FAILED_FINAL, CFOIL_CAUSE_NONE},
        {599, CFOIL_STATE_FAILED_FINAL, CFOIL_CAUSE_NONE},
        {502, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_BAD_GATEWAY},
        {504, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_BAD_GATEWAY},
        {429, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE},
        {201, CFOIL_STATE_SUCCEEDED, CFOIL_CAUSE_NONE},
    };
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange;
    size_t i;

    (void)state;
    rules.other_5xx = CFOIL_STATE_FAILED_FINAL;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        exchange = complete(rows[i].status);
        expect(&rules, &exchange, rows[i].outcome, rows[i].cause);
    }
    exchange = complete(503);
    exchange.has_retry_after = true; /* the backend declined */
    expect(&rules, &exchange, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
}

static void retry_after_makes_no_other_status_a_failure(void **state)
{
    struct cfoil_outcome_rules rules = silent();
    struct cfoil_exchange exchange = complete(202);

    (void)state;
    exchange.has_retry_after = true;
    expect(&rules, &exchange, CFOIL_STATE_SUCCEEDED, CFOIL_CAUSE_NONE);
    exchange = complete(409);
    exchange.has_retry_after = true;
    expect(&rules, &exchange, CFOIL_STATE_FAILED_FINAL, CFOIL_CAUSE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_of_a_silent_route),
        cmocka_unit_test(an_interim_status_is_no_answer),
        cmocka_unit_test(nothing_sent_is_failed_whatever_came_back),
        cmocka_unit_test(a_reset_after_a_byte_was_sent_is_in_doubt),
        cmocka_unit_test(a_time_out_after_a_byte_was_sent_is_in_doubt),
        cmocka_unit_test(a_time_out_beside_a_reset_is_not_trusted_at_once),
        cmocka_unit_test(a_time_out_comes_before_the_routes_rules),
        cmocka_unit_test(a_truncated_response_is_in_doubt_even_with_a_good_status),
        cmocka_unit_test(a_status_out_of_range_is_a_truncated_exchange),
        cmocka_unit_test(the_exact_status_comes_before_its_class_and_the_table),
        cmocka_unit_test(the_class_comes_before_502_and_504),
        cmocka_unit_test(a_class_touches_no_other_class),
        cmocka_unit_test(a_rule_that_says_in_doubt_names_the_status_as_cause),
        cmocka_unit_test(the_body_rule_stands_between_the_exact_status_and_its_class),
        cmocka_unit_test(the_body_of_a_broken_exchange_says_nothing),
        cmocka_unit_test(profile_payment_doubts_other_5xx_only),
        cmocka_unit_test(profile_stripe_ends_other_5xx_for_good_and_no_more),
        cmocka_unit_test(retry_after_makes_no_other_status_a_failure),
    };

    return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
