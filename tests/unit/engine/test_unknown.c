/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lost replies (R6, R12): the same owner asks again and is recognised, never doubled; what stays
 * unknown and was not executed is withdrawn, also when it arrives late; what was executed without
 * protection is settled under the same owner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

/* A first claim whose cas does `act` and whose every look afterwards fails. */
static void lose_the_claim(struct world *world, struct caller *caller, enum script_act act,
                           const struct cfoil_begin_request *request)
{
    size_t answered = caller->answered;

    script_add(world->script, SCRIPT_CAS, act, 1, CFOIL_OK);
    script_add(world->script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
    caller_begin(world, caller, request);
    world_turn(world);
    assert_int_equal(caller->answered, answered + 1);
    assert_int_not_equal(caller_result(caller)->error, CFOIL_OK);
    assert_int_equal(caller_result(caller)->verdict, CFOIL_VERDICT_NONE);
}

static void lost_reply_is_recognised_as_the_own_claim(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_record record;

    (void)state;
    world_open(&world, false);
    script_add(world.script, SCRIPT_CAS, SCRIPT_LOSE_AFTER, 1, CFOIL_OK);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_result(&caller)->attempt, 1);
    assert_int_equal(caller_result(&caller)->fence, 1);
    assert_int_equal(script_seen(world.script), 2);
    assert_int_equal(world_state(&world, 1, &record), CFOIL_STATE_PROCESSING);
    assert_int_equal(record.attempt, 1);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    world_close(&world);
}

static void operation_lost_on_its_way_is_made_again(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_record record;

    (void)state;
    world_open(&world, false);
    script_add(world.script, SCRIPT_CAS, SCRIPT_LOSE_BEFORE, 1, CFOIL_OK);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(world_state(&world, 1, &record), CFOIL_STATE_PROCESSING);
    assert_int_equal(record.attempt, 1);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

/* The cas made again is applied first; the late one meets it and changes nothing. */
static void late_first_try_cannot_double_the_second(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_record before;
    struct cfoil_record after;

    (void)state;
    world_open(&world, false);
    script_add(world.script, SCRIPT_CAS, SCRIPT_DELAY, 1, CFOIL_OK);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(world_state(&world, 1, &before), CFOIL_STATE_PROCESSING);
    assert_int_equal(script_release(world.script), 0);
    assert_int_equal(world_state(&world, 1, &after), CFOIL_STATE_PROCESSING);
    assert_int_equal(after.generation, before.generation);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void asking_again_is_bounded(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, false);
    script_add(world.script, SCRIPT_CAS, SCRIPT_LOSE_BEFORE, SCRIPT_ALWAYS, CFOIL_OK);
    caller_begin(&world, &caller, &request);
    world_turn(&world);
    assert_int_equal(caller.answered, 1);
    assert_int_equal(caller_result(&caller)->error, CFOIL_E_REPLY_LOST);
    assert_true(script_seen(world.script) <= 2 * CFOIL_UNKNOWN_ATTEMPTS_MAX + 1);
    script_clear(world.script);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

/* R12, for each way a cas can stay unknown: FAILED at the end, nobody executing, busy until then. */
static void unknown_claim_that_is_freed_is_withdrawn(void **state)
{
    static const enum script_act acts[] = {SCRIPT_LOSE_AFTER, SCRIPT_LOSE_BEFORE, SCRIPT_DELAY};
    struct world world;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct caller caller = {0};
        struct cfoil_begin_request request = world_request(1, 0);
        world_open(&world, true);
        lose_the_claim(&world, &caller, acts[i], &request);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_advance(&world, 1000);
        assert_true(cfoil_engine_busy(world.engine) > 0);
        script_clear(world.script);
        world_advance(&world, 10000);
        assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
        assert_int_equal(cfoil_engine_busy(world.engine), 0);
        assert_int_equal(script_release(world.script), 0);
        assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
        assert_int_equal(world_stats(&world).withdrawn, 1);
        caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_turn(&world);
        world_close(&world);
    }
}

/* The late cas arrives between the withdrawal's read and its own cas. */
static void late_arrival_in_the_middle_of_a_withdrawal_is_ended_too(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, true);
    lose_the_claim(&world, &caller, SCRIPT_DELAY, &request);
    script_clear(world.script);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    cfoil_engine_flush(world.engine);
    cfoil_engine_poll(world.engine);
    assert_int_equal(script_release(world.script), 1);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    world_close(&world);
}

/* A lost takeover: what it expected must be gone, though the record is another owner's. */
static void lost_takeover_cannot_arrive_after_its_withdrawal(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, false);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    script_add(world.script, SCRIPT_CAS, SCRIPT_PASS, 1, CFOIL_OK);
    lose_the_claim(&world, &caller, SCRIPT_DELAY, &request);
    assert_int_equal(script_held(world.script), 1);
    script_clear(world.script);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_advance(&world, 10000);
    assert_int_equal(script_release(world.script), 0);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    world_close(&world);
}

/* The verdict was given after all, but it was not EXECUTE: the lost cas must still not arrive. */
static void lost_takeover_is_withdrawn_also_after_another_verdict(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, false);
    request.terms.ttl_ms = 60000;
    request.terms.tombstone_ms = WORLD_TTL_MS;
    request.terms.in_doubt = CFOIL_IN_DOUBT_RETRY;
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_EXECUTE);
    caller_free(&caller, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    world_turn(&world);
    script_add(world.script, SCRIPT_CAS, SCRIPT_PASS, 1, CFOIL_OK);
    script_add(world.script, SCRIPT_CAS, SCRIPT_DELAY, 1, CFOIL_OK);
    caller_begin(&world, &caller, &request);
    for (int i = 0; i < 2; i++) {
        cfoil_engine_flush(world.engine);
        cfoil_engine_poll(world.engine);
    }
    assert_int_equal(script_held(world.script), 1);
    world.store_ms += 60000;
    world_turn(&world);
    assert_int_equal(caller_result(&caller)->verdict, CFOIL_VERDICT_KEY_EXPIRED);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    assert_int_equal(script_release(world.script), 0);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_TOMBSTONE);
    world_close(&world);
}

static void claim_freed_while_its_unknown_is_asked_again_is_ended(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, false);
    script_add(world.script, SCRIPT_CAS, SCRIPT_LOSE_AFTER, 1, CFOIL_OK);
    caller_begin(&world, &caller, &request);
    cfoil_engine_flush(world.engine);
    cfoil_engine_poll(world.engine);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    assert_int_equal(caller.answered, 0);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    world_close(&world);
}

/* R12 under `open`: executed all the same, settled under the same owner, replayed afterwards. */
static void open_execution_is_settled_under_the_same_owner(void **state)
{
    static const enum script_act acts[] = {SCRIPT_LOSE_AFTER, SCRIPT_LOSE_BEFORE, SCRIPT_DELAY};
    struct world world;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct caller caller = {0};
        struct cfoil_begin_request request = world_request(1, 0);
        struct cfoil_record record;
        world_open(&world, true);
        lose_the_claim(&world, &caller, acts[i], &request);
        script_clear(world.script);
        assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "open"), CFOIL_OK);
        world_turn(&world);
        assert_int_equal(caller.settled, 1);
        assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
        assert_int_equal(script_release(world.script), 0);
        assert_int_equal(world_state(&world, 1, &record), CFOIL_STATE_SUCCEEDED);
        assert_memory_equal(record.owner, cfoil_claim_owner(caller.claim), CFOIL_OWNER_BYTES);
        assert_int_equal(record.attempt, 1);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_turn(&world);
        assert_true(world_has_body(&world, 1, "open"));
        world_close(&world);
    }
}

/* The takeover was applied and its reply lost: the claim still thinks of the former owner's record. */
static void open_execution_of_a_lost_takeover_is_settled_too(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    script_add(world.script, SCRIPT_CAS, SCRIPT_PASS, 1, CFOIL_OK);
    lose_the_claim(&world, &caller, SCRIPT_LOSE_AFTER, &request);
    script_clear(world.script);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "open"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    assert_true(world_has_body(&world, 1, "open"));
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

/* The store never answered, the request ran all the same, and its client left before the end. */
static void open_execution_that_is_freed_is_left_in_doubt(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);
    struct cfoil_record record;

    (void)state;
    world_open(&world, true);
    lose_the_claim(&world, &caller, SCRIPT_LOSE_BEFORE, &request);
    caller_free(&caller, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    world_advance(&world, 3000);
    script_clear(world.script);
    world_advance(&world, 10000);
    assert_int_equal(world_state(&world, 1, &record), CFOIL_STATE_IN_DOUBT);
    assert_int_equal(record.cause, CFOIL_CAUSE_TIMEOUT);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_reply_is_recognised_as_the_own_claim),
        cmocka_unit_test(operation_lost_on_its_way_is_made_again),
        cmocka_unit_test(late_first_try_cannot_double_the_second),
        cmocka_unit_test(asking_again_is_bounded),
        cmocka_unit_test(unknown_claim_that_is_freed_is_withdrawn),
        cmocka_unit_test(late_arrival_in_the_middle_of_a_withdrawal_is_ended_too),
        cmocka_unit_test(lost_takeover_cannot_arrive_after_its_withdrawal),
        cmocka_unit_test(lost_takeover_is_withdrawn_also_after_another_verdict),
        cmocka_unit_test(claim_freed_while_its_unknown_is_asked_again_is_ended),
        cmocka_unit_test(open_execution_is_settled_under_the_same_owner),
        cmocka_unit_test(open_execution_of_a_lost_takeover_is_settled_too),
        cmocka_unit_test(open_execution_that_is_freed_is_left_in_doubt),
    };
    return cmocka_run_group_tests_name("engine/unknown", tests, NULL, NULL);
}
