/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory runs out at every allocation there is, one at a time and from there on: nothing leaks,
 * nothing is used after it was freed, and once there is memory again every claim has ended (R6, R8).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "world.h"

#define ALLOCATIONS_MAX 500

/* One life of a record while memory may fail. It settles if it was told to execute. */
static void try_claim(struct world *world, unsigned number, enum cfoil_in_doubt in_doubt)
{
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(number, 0);
    enum cfoil_state unsettled = CFOIL_STATE_FAILED;
    enum cfoil_error error = CFOIL_OK;

    request.terms.in_doubt = in_doubt;
    if (caller_try_begin(world, &caller, &request) != CFOIL_OK) {
        return;
    }
    world_turn(world);
    if (caller_result(&caller)->verdict == CFOIL_VERDICT_PROBE) {
        error = caller_probe(&caller, CFOIL_PROBE_ABSENT, NULL);
        world_turn(world);
    }
    if (error == CFOIL_OK && caller_result(&caller)->verdict == CFOIL_VERDICT_EXECUTE) {
        unsettled = CFOIL_STATE_IN_DOUBT;
        error = caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "a body");
        if (error == CFOIL_E_NO_MEMORY) {
            error = caller_settle(&caller, CFOIL_STATE_SUCCEEDED, NULL);
        }
        world_turn(world);
    }
    assert_true(error == CFOIL_OK || error == CFOIL_E_NO_MEMORY);
    caller_free(&caller, unsettled, CFOIL_CAUSE_BACKEND_CLOSED);
    world_turn(world);
}

static void first_claim_and_replay(struct world *world)
{
    try_claim(world, 1, CFOIL_IN_DOUBT_HOLD);
    try_claim(world, 1, CFOIL_IN_DOUBT_HOLD);
}

static void lost_reply_and_takeover(struct world *world)
{
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    if (caller_try_begin(world, &caller, &request) == CFOIL_OK) {
        world_turn(world);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_turn(world);
    }
    script_add(world->script, SCRIPT_CAS, SCRIPT_LOSE_AFTER, 1, CFOIL_OK);
    try_claim(world, 1, CFOIL_IN_DOUBT_HOLD);
}

static void doubt_and_probe(struct world *world)
{
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    if (caller_try_begin(world, &caller, &request) == CFOIL_OK) {
        world_turn(world);
        caller_free(&caller, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_BACKEND_CLOSED);
        world_turn(world);
    }
    try_claim(world, 1, CFOIL_IN_DOUBT_PROBE);
}

static void ignore(void *context, enum cfoil_error error)
{
    (void)context;
    (void)error;
}

static void doubt_and_operator(struct world *world)
{
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);
    struct cfoil_event event = {.kind = CFOIL_EVENT_RESOLVE,
                                .outcome = CFOIL_STATE_SUCCEEDED,
                                .terms = request.terms,
                                .reason = cfoil_bytes_text("seen in the books")};

    if (caller_try_begin(world, &caller, &request) == CFOIL_OK) {
        world_turn(world);
        caller_free(&caller, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
        world_turn(world);
    }
    enum cfoil_error error = cfoil_operate(world->engine, request.id, &event, ignore, NULL);
    assert_true(error == CFOIL_OK || error == CFOIL_E_NO_MEMORY);
    world_turn(world);
}

/* Lives through the story with the nth allocation failing. False: it has not so many. */
static bool survive(void (*story)(struct world *world), bool look_up, unsigned nth, bool all_later)
{
    struct world world;
    long before = failing_memory_alive();

    world_open(&world, look_up);
    failing_memory_arm(nth, all_later);
    story(&world);
    bool hit = failing_memory_hit();
    failing_memory_arm(0, false);
    script_clear(world.script);
    world_advance(&world, 10 * CFOIL_BACKGROUND_RETRY_MAX_MS);
    assert_int_not_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    try_claim(&world, 2, CFOIL_IN_DOUBT_HOLD);
    assert_true(world_has_body(&world, 2, "a body"));
    world_close(&world);
    assert_int_equal(failing_memory_alive(), before);
    return hit;
}

static void torture(void (*story)(struct world *world))
{
    for (unsigned mode = 0; mode < 4; mode++) {
        unsigned nth = 1;
        while (survive(story, mode % 2 == 0, nth, mode / 2 == 0)) {
            nth++;
            assert_true(nth < ALLOCATIONS_MAX);
        }
        /* Every story allocates at least its claim, its bytes, its draft and a record. */
        assert_true(nth > 4);
    }
}

static void begin_and_settle_survive_every_failed_allocation(void **state)
{
    (void)state;
    torture(first_claim_and_replay);
}

static void takeover_with_a_lost_reply_survives_every_failed_allocation(void **state)
{
    (void)state;
    torture(lost_reply_and_takeover);
}

static void probe_survives_every_failed_allocation(void **state)
{
    (void)state;
    torture(doubt_and_probe);
}

static void operator_survives_every_failed_allocation(void **state)
{
    (void)state;
    torture(doubt_and_operator);
}

static void engine_that_cannot_be_made_says_so(void **state)
{
    struct cfoil_engine_options options = {0};
    struct cfoil_engine *engine = NULL;

    (void)state;
    failing_memory_arm(1, false);
    assert_int_equal(cfoil_engine_create(&options, &engine), CFOIL_E_NO_MEMORY);
    assert_null(engine);
    failing_memory_arm(0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begin_and_settle_survive_every_failed_allocation),
        cmocka_unit_test(takeover_with_a_lost_reply_survives_every_failed_allocation),
        cmocka_unit_test(probe_survives_every_failed_allocation),
        cmocka_unit_test(operator_survives_every_failed_allocation),
        cmocka_unit_test(engine_that_cannot_be_made_says_so),
    };
    return cmocka_run_group_tests_name("engine/memory", tests, NULL, NULL);
}
