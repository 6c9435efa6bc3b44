/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `semantics: window` against the store's clock, at the millisecond: where a window ends by either
 * anchor, what stays beyond its end, and that the gateway's own clock has no say (R7).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

#define LENGTH_MS 20000
#define DAY_MS    INT64_C(86400000)

/* A multiple of LENGTH_MS: 85000000 of them. */
#define BOUNDARY_MS INT64_C(1700000000000)

static struct cfoil_begin_request window_request(enum cfoil_anchor anchor, unsigned body)
{
    struct cfoil_begin_request request = world_request(1, body);

    request.terms.semantics = CFOIL_SEMANTICS_WINDOW;
    request.terms.window_ms = LENGTH_MS;
    request.terms.window_anchor = anchor;
    return request;
}

static void executes(struct world *world, const struct cfoil_begin_request *request,
                     enum cfoil_state outcome, unsigned attempt)
{
    struct caller caller = {0};

    caller_asks(world, &caller, request, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_result(&caller)->attempt, attempt);
    assert_int_equal(caller_result(&caller)->fence, attempt);
    assert_int_equal(caller_settle(&caller, outcome, "done"), CFOIL_OK);
    world_turn(world);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
}

static void is_answered(struct world *world, const struct cfoil_begin_request *request,
                        enum cfoil_verdict verdict)
{
    struct caller caller = {0};

    caller_asks(world, &caller, request, verdict);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
}

/* A first request `before_ms` ahead of the boundary, settled 7 ms later, and a second at `later_ms`. */
static void second_after(enum cfoil_anchor anchor, int64_t before_ms, int64_t later_ms,
                         enum cfoil_state outcome, enum cfoil_verdict verdict)
{
    struct world world;
    struct caller caller = {0};
    struct caller second = {0};
    struct cfoil_begin_request request = window_request(anchor, 0);

    world_open(&world, true);
    world.store_ms = BOUNDARY_MS - before_ms;
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_EXECUTE);
    world.store_ms += 7;
    assert_int_equal(caller_settle(&caller, outcome, "done"), CFOIL_OK);
    world_turn(&world);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);

    world.store_ms = BOUNDARY_MS - before_ms + later_ms;
    caller_asks(&world, &second, &request, verdict);
    if (verdict == CFOIL_VERDICT_EXECUTE) {
        bool again = outcome == CFOIL_STATE_FAILED && later_ms < LENGTH_MS;
        assert_int_equal(caller_result(&second)->attempt, again ? 2 : 1);
        assert_int_equal(caller_result(&second)->life_ms,
                         again ? BOUNDARY_MS - before_ms : world.store_ms);
    }
    caller_free(&second, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void the_first_request_opens_the_window(void **state)
{
    static const enum cfoil_state replayed[] = {CFOIL_STATE_SUCCEEDED, CFOIL_STATE_FAILED_FINAL};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        second_after(CFOIL_ANCHOR_FIRST, 123, LENGTH_MS - 1, replayed[i], CFOIL_VERDICT_REPLAY);
        second_after(CFOIL_ANCHOR_FIRST, 123, LENGTH_MS, replayed[i], CFOIL_VERDICT_EXECUTE);
        second_after(CFOIL_ANCHOR_FIRST, 123, LENGTH_MS + 1, replayed[i], CFOIL_VERDICT_EXECUTE);
    }
}

static void the_clock_ends_the_window_at_its_multiple(void **state)
{
    (void)state;
    second_after(CFOIL_ANCHOR_CLOCK, 200, 199, CFOIL_STATE_SUCCEEDED, CFOIL_VERDICT_REPLAY);
    second_after(CFOIL_ANCHOR_CLOCK, 200, 200, CFOIL_STATE_SUCCEEDED, CFOIL_VERDICT_EXECUTE);
    second_after(CFOIL_ANCHOR_CLOCK, 200, 201, CFOIL_STATE_SUCCEEDED, CFOIL_VERDICT_EXECUTE);
    /* From the boundary itself a whole window is left. */
    second_after(CFOIL_ANCHOR_CLOCK, 0, LENGTH_MS - 1, CFOIL_STATE_SUCCEEDED, CFOIL_VERDICT_REPLAY);
    second_after(CFOIL_ANCHOR_CLOCK, 0, LENGTH_MS, CFOIL_STATE_SUCCEEDED, CFOIL_VERDICT_EXECUTE);
    second_after(CFOIL_ANCHOR_CLOCK, LENGTH_MS - 1, LENGTH_MS - 2, CFOIL_STATE_SUCCEEDED,
                 CFOIL_VERDICT_REPLAY);
    second_after(CFOIL_ANCHOR_CLOCK, LENGTH_MS - 1, LENGTH_MS - 1, CFOIL_STATE_SUCCEEDED,
                 CFOIL_VERDICT_EXECUTE);
}

static void two_across_a_boundary_of_the_clock_meet_under_first(void **state)
{
    (void)state;
    second_after(CFOIL_ANCHOR_FIRST, 100, 200, CFOIL_STATE_SUCCEEDED, CFOIL_VERDICT_REPLAY);
    second_after(CFOIL_ANCHOR_CLOCK, 100, 200, CFOIL_STATE_SUCCEEDED, CFOIL_VERDICT_EXECUTE);
}

static void a_failure_is_remembered_to_the_windows_end(void **state)
{
    (void)state;
    second_after(CFOIL_ANCHOR_FIRST, 0, LENGTH_MS - 1, CFOIL_STATE_FAILED, CFOIL_VERDICT_EXECUTE);
    second_after(CFOIL_ANCHOR_FIRST, 0, LENGTH_MS, CFOIL_STATE_FAILED, CFOIL_VERDICT_EXECUTE);
}

static void the_gateways_clock_has_no_say(void **state)
{
    static const int64_t off_ms[] = {90000, -90000};
    struct cfoil_begin_request request = window_request(CFOIL_ANCHOR_CLOCK, 0);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world world;
        world_open(&world, true);
        world.engine_ms = 1000000 + off_ms[i];
        world.store_ms = BOUNDARY_MS - 100;
        executes(&world, &request, CFOIL_STATE_SUCCEEDED, 1);
        world.engine_ms += 2 * off_ms[i]; /* and it is set again */
        world.store_ms = BOUNDARY_MS - 1;
        is_answered(&world, &request, CFOIL_VERDICT_REPLAY);
        world.store_ms = BOUNDARY_MS;
        executes(&world, &request, CFOIL_STATE_SUCCEEDED, 1);
        world_close(&world);
    }
}

static void what_still_runs_stays_beyond_the_end(void **state)
{
    struct world world;
    struct caller first = {0};
    struct cfoil_begin_request request = window_request(CFOIL_ANCHOR_FIRST, 0);
    struct cfoil_begin_request other = window_request(CFOIL_ANCHOR_FIRST, 1);

    (void)state;
    world_open(&world, true);
    caller_asks(&world, &first, &request, CFOIL_VERDICT_EXECUTE);
    world_advance(&world, 5 * LENGTH_MS);
    is_answered(&world, &request, CFOIL_VERDICT_IN_PROGRESS);
    is_answered(&world, &other, CFOIL_VERDICT_MISMATCH);
    assert_int_equal(caller_settle(&first, CFOIL_STATE_SUCCEEDED, "late"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(first.status, CFOIL_SETTLE_DURABLE);
    caller_free(&first, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    executes(&world, &other, CFOIL_STATE_SUCCEEDED,
             1); /* it has ended, and its window long since */
    world_close(&world);
}

static void what_is_in_doubt_stays_until_somebody_ends_it(void **state)
{
    struct world world;
    struct cfoil_event event = {.kind = CFOIL_EVENT_RESOLVE,
                                .outcome = CFOIL_STATE_SUCCEEDED,
                                .terms = {.ttl_ms = DAY_MS, .failed_ms = WORLD_FAILED_MS}};
    struct cfoil_begin_request request = window_request(CFOIL_ANCHOR_CLOCK, 0);

    (void)state;
    world_open(&world, true);
    executes(&world, &request, CFOIL_STATE_IN_DOUBT, 1);
    world_advance(&world, LENGTH_MS - 1);
    is_answered(&world, &request, CFOIL_VERDICT_OUTCOME_UNKNOWN);
    world_advance(&world, 365 * DAY_MS);
    is_answered(&world, &request, CFOIL_VERDICT_OUTCOME_UNKNOWN);
    event.reason = cfoil_bytes_text("looked it up");
    assert_int_equal(world_operates(&world, 1, &event), CFOIL_OK);
    executes(&world, &request, CFOIL_STATE_SUCCEEDED, 1);
    world_close(&world);
}

/* An operator's terms are nobody's policy: the record itself knows how long its key counts. */
static void an_operator_ends_it_with_its_own_window(void **state)
{
    struct world world;
    struct cfoil_event event = {.kind = CFOIL_EVENT_RESOLVE,
                                .outcome = CFOIL_STATE_FAILED_FINAL,
                                .terms = {.ttl_ms = DAY_MS, .failed_ms = WORLD_FAILED_MS}};
    struct cfoil_begin_request request = window_request(CFOIL_ANCHOR_FIRST, 0);

    (void)state;
    world_open(&world, true);
    executes(&world, &request, CFOIL_STATE_IN_DOUBT, 1);
    event.snapshot.status = 409;
    event.reason = cfoil_bytes_text("looked it up");
    assert_int_equal(world_operates(&world, 1, &event), CFOIL_OK);
    world_advance(&world, LENGTH_MS - 1);
    is_answered(&world, &request, CFOIL_VERDICT_REPLAY);
    world_advance(&world, 1);
    executes(&world, &request, CFOIL_STATE_SUCCEEDED, 1);
    world_close(&world);
}

static void a_retry_after_the_end_opens_a_window_of_its_own(void **state)
{
    struct world world;
    struct cfoil_begin_request request = window_request(CFOIL_ANCHOR_FIRST, 0);

    (void)state;
    request.terms.in_doubt = CFOIL_IN_DOUBT_RETRY;
    world_open(&world, true);
    executes(&world, &request, CFOIL_STATE_IN_DOUBT, 1);
    world_advance(&world, LENGTH_MS);
    executes(&world, &request, CFOIL_STATE_SUCCEEDED, 2);
    world_advance(&world, LENGTH_MS - 1);
    is_answered(&world, &request, CFOIL_VERDICT_REPLAY);
    world_advance(&world, 1);
    executes(&world, &request, CFOIL_STATE_SUCCEEDED, 1);
    world_close(&world);
}

static void bodies_are_compared_inside_the_window_only(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = window_request(CFOIL_ANCHOR_FIRST, 0);
    struct cfoil_begin_request other = window_request(CFOIL_ANCHOR_FIRST, 1);

    (void)state;
    world_open(&world, true);
    executes(&world, &request, CFOIL_STATE_SUCCEEDED, 1);
    world_advance(&world, LENGTH_MS - 1);
    is_answered(&world, &other, CFOIL_VERDICT_MISMATCH);
    other.terms.semantics = CFOIL_SEMANTICS_WINDOW_KEY;
    caller_asks(&world, &caller, &other, CFOIL_VERDICT_REPLAY);
    assert_true(caller_result(&caller)->body_differs);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_advance(&world, 1);
    executes(&world, &other, CFOIL_STATE_SUCCEEDED, 1);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_request_opens_the_window),
        cmocka_unit_test(the_clock_ends_the_window_at_its_multiple),
        cmocka_unit_test(two_across_a_boundary_of_the_clock_meet_under_first),
        cmocka_unit_test(a_failure_is_remembered_to_the_windows_end),
        cmocka_unit_test(the_gateways_clock_has_no_say),
        cmocka_unit_test(what_still_runs_stays_beyond_the_end),
        cmocka_unit_test(what_is_in_doubt_stays_until_somebody_ends_it),
        cmocka_unit_test(an_operator_ends_it_with_its_own_window),
        cmocka_unit_test(a_retry_after_the_end_opens_a_window_of_its_own),
        cmocka_unit_test(bodies_are_compared_inside_the_window_only),
    };
    return cmocka_run_group_tests_name("engine/window", tests, NULL, NULL);
}
