/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settles (R2, R3, R4): told durable only when they are, refused for a late owner, going on in the
 * background until applied, recognised when repeated, and made anew where a failover lost the
 * record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

static void settle_is_told_durable_only_once_it_is(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "one"), CFOIL_OK);
    assert_int_equal(caller.settled, 0);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    world_turn(&world);
    assert_int_equal(caller.settled, 1);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    assert_true(world_has_body(&world, 1, "one"));
    assert_int_equal(world_stats(&world).settled, 1);
    assert_int_equal(cfoil_engine_due_ms(world.engine), -1);
    caller_free(&caller, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    world_turn(&world);
    assert_true(world_has_body(&world, 1, "one"));
    world_close(&world);
}

static void every_outcome_is_written_as_it_is(void **state)
{
    static const enum cfoil_state outcomes[] = {CFOIL_STATE_SUCCEEDED, CFOIL_STATE_FAILED_FINAL,
                                                CFOIL_STATE_FAILED, CFOIL_STATE_IN_DOUBT};
    struct world world;

    (void)state;
    world_open(&world, true);
    for (unsigned i = 0; i < 4; i++) {
        struct caller caller = {0};
        caller_claims(&world, &caller, i, CFOIL_VERDICT_EXECUTE);
        assert_int_equal(caller_settle(&caller, outcomes[i], "x"), CFOIL_OK);
        world_turn(&world);
        assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
        assert_int_equal(world_state(&world, i, NULL), outcomes[i]);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    }
    world_close(&world);
}

static void settle_where_it_has_no_place_is_invalid(void **state)
{
    struct world world;
    struct caller first = {0};
    struct caller second = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, true);
    caller_begin(&world, &first, &request);
    world_turn(&world);
    caller_claims(&world, &second, 1, CFOIL_VERDICT_IN_PROGRESS);
    assert_int_equal(caller_settle(&second, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_E_INVALID);
    assert_int_equal(caller_settle(&first, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    assert_int_equal(caller_settle(&first, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_E_INVALID);
    world_turn(&world);
    assert_int_equal(caller_settle(&first, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_E_INVALID);
    assert_int_equal(first.settled, 1);
    caller_free(&first, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    caller_free(&second, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void ending_that_does_not_fit_is_refused_and_may_be_settled_smaller(void **state)
{
    static uint8_t huge[CFOIL_RECORD_BYTES_MAX];
    struct world world;
    struct caller caller = {0};
    struct cfoil_ending body = {.outcome = CFOIL_STATE_SUCCEEDED,
                                .snapshot = {201, {NULL, 0}, {huge, sizeof(huge)}}};
    struct cfoil_ending resource = {.outcome = CFOIL_STATE_SUCCEEDED,
                                    .resource = {{huge, sizeof(huge) / 2}, {huge, sizeof(huge)}}};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(cfoil_settle(caller.claim, &body, NULL, NULL), CFOIL_E_LIMIT);
    assert_int_equal(cfoil_settle(caller.claim, &resource, NULL, NULL), CFOIL_E_LIMIT);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, NULL), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void late_owner_is_refused_and_the_takers_record_stands(void **state)
{
    struct world world;
    struct caller slow = {0};
    struct caller taker = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, true);
    request.terms.in_doubt = CFOIL_IN_DOUBT_RETRY;
    caller_asks(&world, &slow, &request, CFOIL_VERDICT_EXECUTE);
    world.store_ms += WORLD_LEASE_MS;
    caller_asks(&world, &taker, &request, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_settle(&taker, CFOIL_STATE_SUCCEEDED, "taker"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(caller_settle(&slow, CFOIL_STATE_SUCCEEDED, "slow"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(slow.settled, 1);
    assert_int_equal(slow.status, CFOIL_SETTLE_REFUSED);
    assert_true(world_has_body(&world, 1, "taker"));
    assert_int_equal(world_stats(&world).settle_refused, 1);
    assert_int_equal(world.logged, 1);
    assert_int_equal(world.logged_error, CFOIL_E_NOT_OWNER);
    caller_free(&slow, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    caller_free(&taker, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

/* R2: lease over, but nobody replaced the owner: its answer is stored. */
static void slow_owner_whom_nobody_replaced_settles(void **state)
{
    struct world world;
    struct caller slow = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &slow, 1, CFOIL_VERDICT_EXECUTE);
    world.store_ms += 3 * WORLD_LEASE_MS;
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_IN_DOUBT);
    assert_int_equal(caller_settle(&slow, CFOIL_STATE_SUCCEEDED, "slow"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(slow.status, CFOIL_SETTLE_DURABLE);
    assert_true(world_has_body(&world, 1, "slow"));
    caller_free(&slow, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void settle_whose_reply_is_lost_is_recognised(void **state)
{
    static const enum script_act acts[] = {SCRIPT_LOSE_AFTER, SCRIPT_LOSE_BEFORE, SCRIPT_DELAY};
    struct world world;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct caller caller = {0};
        struct cfoil_record before;
        struct cfoil_record after;
        world_open(&world, true);
        caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
        script_add(world.script, SCRIPT_CAS, acts[i], 1, CFOIL_OK);
        assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "once"), CFOIL_OK);
        world_turn(&world);
        assert_int_equal(caller.settled, 1);
        assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
        (void)world_state(&world, 1, &before);
        assert_int_equal(script_release(world.script), 0);
        assert_int_equal(world_state(&world, 1, &after), CFOIL_STATE_SUCCEEDED);
        assert_int_equal(after.generation, before.generation);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_close(&world);
    }
}

/* The store goes down before the settle. settle_wait later the host is told, once. */
static void settle_without_store(struct world *world, struct caller *caller)
{
    caller_claims(world, caller, 1, CFOIL_VERDICT_EXECUTE);
    script_add(world->script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(caller_settle(caller, CFOIL_STATE_SUCCEEDED, "kept"), CFOIL_OK);
    world_advance(world, CFOIL_SETTLE_WAIT_MS - 1);
    assert_int_equal(caller->settled, 0);
    world_advance(world, 1);
    assert_int_equal(caller->settled, 1);
    assert_int_equal(caller->status, CFOIL_SETTLE_UNCONFIRMED);
    assert_int_equal(world_stats(world).settle_background, 1);
    assert_int_equal(world->logged, 1);
}

static void unconfirmed_settle_goes_on_until_the_store_is_back(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    settle_without_store(&world, &caller);
    world_advance(&world, 60000);
    assert_true(cfoil_engine_busy(world.engine) > 0);
    script_clear(world.script);
    world_advance(&world, CFOIL_BACKGROUND_RETRY_MAX_MS);
    assert_true(world_has_body(&world, 1, "kept"));
    assert_int_equal(caller.settled, 1);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void unconfirmed_settle_goes_on_after_the_claim_was_freed(void **state)
{
    struct world world;
    struct caller caller = {.free_in_callback = false};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    caller.free_in_callback = true;
    script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_FULL);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "kept"), CFOIL_OK);
    world_advance(&world, 60000);
    assert_int_equal(caller.status, CFOIL_SETTLE_UNCONFIRMED);
    assert_null(caller.claim);
    assert_true(cfoil_engine_busy(world.engine) > 0);
    script_clear(world.script);
    world_advance(&world, CFOIL_BACKGROUND_RETRY_MAX_MS);
    assert_true(world_has_body(&world, 1, "kept"));
    assert_int_equal(caller.settled, 1);
    world_close(&world);
}

/* Busy must say so while the settle only waits for its next try: else a worker would leave. */
static void settle_between_two_tries_is_busy(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "kept"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(cfoil_lane_pending(world.lane), 0);
    assert_true(cfoil_engine_busy(world.engine) > 0);
    script_clear(world.script);
    world_advance(&world, 1000);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void pauses_double_and_stay_bounded(void **state)
{
    struct world world;
    struct caller caller = {0};
    int64_t pause_ms = CFOIL_BACKGROUND_RETRY_MS;

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "kept"), CFOIL_OK);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(cfoil_engine_due_ms(world.engine), pause_ms);
        world_advance(&world, pause_ms);
        pause_ms = 2 * pause_ms;
        if (pause_ms > CFOIL_BACKGROUND_RETRY_MAX_MS) {
            pause_ms = CFOIL_BACKGROUND_RETRY_MAX_MS;
        }
    }
    script_clear(world.script);
    world_advance(&world, CFOIL_BACKGROUND_RETRY_MAX_MS);
    assert_true(world_has_body(&world, 1, "kept"));
    world_close(&world);
}

static void settle_after_a_failover_makes_the_record_anew(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);
    struct cfoil_record record;

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_advance(&world, 50);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    int64_t life_ms = caller_result(&caller)->life_ms;
    script_remove(world.script, request.id);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_ABSENT);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "again"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    assert_int_equal(world_state(&world, 1, &record), CFOIL_STATE_SUCCEEDED);
    assert_int_equal(record.attempt, 2);
    assert_int_equal(record.fence, 2);
    assert_int_equal(record.at_ms[CFOIL_TIME_LIFE], life_ms);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_REPLAY);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

/*
 * R3 and R6: a record that cannot be read is a store error, so its settle is not confirmed; it is
 * not a late owner's. It goes on until an operator has forgotten the record.
 */
static void settle_on_a_corrupt_record_is_unconfirmed_not_refused(void **state)
{
    const struct cfoil_event forget = {.kind = CFOIL_EVENT_FORGET};
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    script_spoil(world.script, request.id, true);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "kept"), CFOIL_OK);
    world_advance(&world, CFOIL_SETTLE_WAIT_MS);
    assert_int_equal(caller.settled, 1);
    assert_int_equal(caller.status, CFOIL_SETTLE_UNCONFIRMED);
    assert_int_equal(world_stats(&world).settle_refused, 0);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    assert_int_equal(world_operates(&world, 1, &forget), CFOIL_OK);
    world_advance(&world, CFOIL_BACKGROUND_RETRY_MAX_MS);
    assert_true(world_has_body(&world, 1, "kept"));
    world_close(&world);
}

static void settle_meets_a_renewing_rival_and_still_ends(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    script_add(world.script, SCRIPT_CAS, SCRIPT_RACE, CFOIL_CAS_ATTEMPTS_MAX + 3, CFOIL_OK);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(caller.settled, 0);
    world_advance(&world, CFOIL_BACKGROUND_RETRY_MS);
    assert_int_equal(caller.settled, 1);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settle_is_told_durable_only_once_it_is),
        cmocka_unit_test(every_outcome_is_written_as_it_is),
        cmocka_unit_test(settle_where_it_has_no_place_is_invalid),
        cmocka_unit_test(ending_that_does_not_fit_is_refused_and_may_be_settled_smaller),
        cmocka_unit_test(late_owner_is_refused_and_the_takers_record_stands),
        cmocka_unit_test(slow_owner_whom_nobody_replaced_settles),
        cmocka_unit_test(settle_whose_reply_is_lost_is_recognised),
        cmocka_unit_test(unconfirmed_settle_goes_on_until_the_store_is_back),
        cmocka_unit_test(unconfirmed_settle_goes_on_after_the_claim_was_freed),
        cmocka_unit_test(settle_between_two_tries_is_busy),
        cmocka_unit_test(pauses_double_and_stay_bounded),
        cmocka_unit_test(settle_after_a_failover_makes_the_record_anew),
        cmocka_unit_test(settle_on_a_corrupt_record_is_unconfirmed_not_refused),
        cmocka_unit_test(settle_meets_a_renewing_rival_and_still_ends),
    };
    return cmocka_run_group_tests_name("engine/settle", tests, NULL, NULL);
}
