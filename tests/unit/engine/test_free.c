/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letting go (R4, R8): a claim may be freed in any phase, from any callback, and ends as the host
 * said; an engine may be freed with work left, and the lane closed before or after it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

static void executing_claim_ends_as_it_was_told(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_record record;

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    assert_true(cfoil_engine_busy(world.engine) > 0);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    caller_claims(&world, &caller, 2, CFOIL_VERDICT_EXECUTE);
    caller_free(&caller, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_BACKEND_CLOSED);
    world_turn(&world);
    assert_int_equal(world_state(&world, 2, &record), CFOIL_STATE_IN_DOUBT);
    assert_int_equal(record.cause, CFOIL_CAUSE_BACKEND_CLOSED);
    assert_int_equal(record.snapshot.status, 0);
    world_close(&world);
}

static void claim_freed_before_its_verdict_ends_without_a_callback(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, true);
    caller_begin(&world, &caller, &request);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    assert_int_equal(caller.answered, 0);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    world_close(&world);
}

static void waiting_claim_freed_before_its_verdict_leaves_the_owner_alone(void **state)
{
    struct world world;
    struct caller owner = {0};
    struct caller waiting = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, false);
    caller_claims(&world, &owner, 1, CFOIL_VERDICT_EXECUTE);
    caller_begin(&world, &waiting, &request);
    caller_free(&waiting, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    caller_free(&owner, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void claim_freed_inside_its_own_callbacks(void **state)
{
    struct world world;
    struct caller caller = {.free_in_callback = true};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, false);
    caller_begin(&world, &caller, &request);
    world_turn(&world);
    assert_int_equal(caller.answered, 1);
    assert_null(caller.claim);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    caller.free_in_callback = false;
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    caller.free_in_callback = true;
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(caller.settled, 1);
    assert_null(caller.claim);
    assert_true(world_has_body(&world, 1, "x"));
    world_close(&world);
}

static void settling_claim_freed_at_once_still_settles(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "kept"), CFOIL_OK);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    assert_int_equal(caller.settled, 0);
    assert_true(world_has_body(&world, 1, "kept"));
    world_close(&world);
}

static void abandoned_claim_waits_for_the_store(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
    caller_free(&caller, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    world_advance(&world, 60000);
    assert_true(cfoil_engine_busy(world.engine) > 0);
    script_clear(world.script);
    world_advance(&world, CFOIL_BACKGROUND_RETRY_MAX_MS);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_IN_DOUBT);
    world_close(&world);
}

static void freeing_nothing_is_allowed(void **state)
{
    (void)state;
    cfoil_claim_free(NULL, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    cfoil_engine_free(NULL);
}

static void busy_is_zero_between_calls_of_an_idle_host(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    assert_true(cfoil_engine_busy(world.engine) > 0);
    world_turn(&world);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    world_close(&world);
}

/* Work of every kind that cannot end, because the store is gone for good. */
static void leave_work_behind(struct world *world)
{
    const struct cfoil_event forget = {.kind = CFOIL_EVENT_FORGET};
    struct caller callers[4] = {0};
    struct cfoil_begin_request request = world_request(9, 0);

    for (unsigned i = 0; i < 4; i++) {
        caller_claims(world, &callers[i], i, CFOIL_VERDICT_EXECUTE);
    }
    script_add(world->script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
    caller_free(&callers[0], CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    world_turn(world);
    assert_int_equal(caller_settle(&callers[1], CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    caller_free(&callers[1], CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world->engine_ms += WORLD_LEASE_MS;
    cfoil_engine_tick(world->engine);
    caller_free(&callers[2], CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    cfoil_engine_flush(world->engine);
    caller_free(&callers[3], CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    caller_begin(world, &callers[0], &request);
    caller_free(&callers[0], CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    assert_int_equal(cfoil_operate(world->engine, request.id, &forget, NULL, NULL), CFOIL_OK);
    assert_true(cfoil_engine_busy(world->engine) > 0);
}

/* The lane outlives the engine, with the engine's operations still in it. */
static void engine_freed_with_work_left_before_its_lane(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, true);
    leave_work_behind(&world);
    world.expect_busy = true;
    world_close(&world);
}

static void engine_freed_with_work_left_and_its_lane_polled_on(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, true);
    leave_work_behind(&world);
    cfoil_engine_free(world.engine);
    cfoil_lane_flush(world.lane);
    assert_true(cfoil_lane_poll(world.lane) > 0);
    assert_int_equal(cfoil_lane_pending(world.lane), 0);
    cfoil_lane_close(world.lane);
}

static void note_closing(void *context, enum cfoil_error error)
{
    size_t *told = context;

    assert_int_equal(error, CFOIL_E_CLOSING);
    (*told)++;
}

/* A process that ends: the lane is closed first, and claims are left that nobody will free. */
static void lane_closed_before_the_engine_is_freed(void **state)
{
    const struct cfoil_event forget = {.kind = CFOIL_EVENT_FORGET};
    struct world world;
    struct caller executing = {0};
    struct caller beginning = {0};
    struct caller abandoned = {0};
    struct cfoil_begin_request request = world_request(1, 0);
    size_t told = 0;

    (void)state;
    world_open(&world, false);
    caller_claims(&world, &executing, 2, CFOIL_VERDICT_EXECUTE);
    caller_claims(&world, &abandoned, 3, CFOIL_VERDICT_EXECUTE);
    caller_begin(&world, &beginning, &request);
    assert_int_equal(cfoil_operate(world.engine, request.id, &forget, note_closing, &told),
                     CFOIL_OK);
    caller_free(&abandoned, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world.may_call_back = true;
    cfoil_lane_close(world.lane);
    assert_int_equal(told, 1);
    assert_int_equal(beginning.answered, 1);
    assert_int_equal(caller_result(&beginning)->error, CFOIL_E_CLOSING);
    assert_true(cfoil_engine_busy(world.engine) > 0);
    cfoil_engine_free(world.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executing_claim_ends_as_it_was_told),
        cmocka_unit_test(claim_freed_before_its_verdict_ends_without_a_callback),
        cmocka_unit_test(waiting_claim_freed_before_its_verdict_leaves_the_owner_alone),
        cmocka_unit_test(claim_freed_inside_its_own_callbacks),
        cmocka_unit_test(settling_claim_freed_at_once_still_settles),
        cmocka_unit_test(abandoned_claim_waits_for_the_store),
        cmocka_unit_test(freeing_nothing_is_allowed),
        cmocka_unit_test(busy_is_zero_between_calls_of_an_idle_host),
        cmocka_unit_test(engine_freed_with_work_left_before_its_lane),
        cmocka_unit_test(engine_freed_with_work_left_and_its_lane_polled_on),
        cmocka_unit_test(lane_closed_before_the_engine_is_freed),
    };
    return cmocka_run_group_tests_name("engine/free", tests, NULL, NULL);
}
