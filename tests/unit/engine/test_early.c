/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settled before the begin had an answer: an execution that was let through because the store was
 * silent (`open`). The claim may still be applied, and is then settled by its own owner (R12).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

/* A claim that is on its way, and an ending for it already. */
static void early(struct world *world, struct caller *caller)
{
    struct cfoil_begin_request request = world_request(1, 0);

    caller_begin(world, caller, &request);
    assert_false(caller->ready);
    assert_int_equal(caller_settle(caller, CFOIL_STATE_SUCCEEDED, "order 77"), CFOIL_OK);
}

static void claim_that_arrives_late_is_settled_with_its_ending(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct caller again = {0};

    (void)state;
    world_open(&world, true);
    early(&world, &caller);
    world_turn(&world);
    assert_int_equal(caller.answered, 0);
    assert_int_equal(caller.settled, 1);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    assert_true(world_has_body(&world, 1, "order 77"));
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    caller_claims(&world, &again, 1, CFOIL_VERDICT_REPLAY);
    caller_free(&again, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void host_that_has_left_meanwhile_is_settled_for_all_the_same(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    early(&world, &caller);
    caller_free(&caller, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_OWNER_LOST);
    world_turn(&world);
    assert_int_equal(caller.settled, 0);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_SUCCEEDED);
    assert_true(world_has_body(&world, 1, "order 77"));
    world_close(&world);
}

static void claim_that_finds_another_owner_is_refused(void **state)
{
    struct world world;
    struct caller first = {0};
    struct caller late = {0};

    (void)state;
    world_open(&world, false);
    caller_claims(&world, &first, 1, CFOIL_VERDICT_EXECUTE);
    early(&world, &late);
    world_turn(&world);
    assert_int_equal(late.settled, 1);
    assert_int_equal(late.status, CFOIL_SETTLE_REFUSED);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    caller_free(&late, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_OWNER_LOST);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    caller_free(&first, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

/* Nobody is there to ask the backend: the mark must not keep the next one waiting. */
static void late_probe_is_withdrawn(void **state)
{
    struct world world;
    struct caller first = {0};
    struct caller late = {0};
    struct caller prober = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, false);
    caller_claims(&world, &first, 1, CFOIL_VERDICT_EXECUTE);
    caller_free(&first, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    world_turn(&world);
    request.terms.in_doubt = CFOIL_IN_DOUBT_PROBE;
    caller_begin(&world, &late, &request);
    assert_int_equal(caller_settle(&late, CFOIL_STATE_SUCCEEDED, "order 77"), CFOIL_OK);
    caller_free(&late, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_OWNER_LOST);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_IN_DOUBT);
    caller_asks(&world, &prober, &request, CFOIL_VERDICT_PROBE);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void host_is_told_when_the_wait_is_over(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    script_add(world.script, SCRIPT_ANY, SCRIPT_LOSE_BEFORE, SCRIPT_ALWAYS, CFOIL_OK);
    early(&world, &caller);
    world_advance(&world, 6000);
    assert_int_equal(caller.settled, 1);
    assert_int_equal(caller.status, CFOIL_SETTLE_UNCONFIRMED);
    script_clear(world.script);
    world_advance(&world, 60000);
    assert_int_equal(caller.settled, 1);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_SUCCEEDED);
    assert_true(world_has_body(&world, 1, "order 77"));
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void second_early_settle_is_invalid(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    early(&world, &caller);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_FAILED, NULL), CFOIL_E_INVALID);
    world_turn(&world);
    assert_true(world_has_body(&world, 1, "order 77"));
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claim_that_arrives_late_is_settled_with_its_ending),
        cmocka_unit_test(host_that_has_left_meanwhile_is_settled_for_all_the_same),
        cmocka_unit_test(claim_that_finds_another_owner_is_refused),
        cmocka_unit_test(late_probe_is_withdrawn),
        cmocka_unit_test(host_is_told_when_the_wait_is_over),
        cmocka_unit_test(second_early_settle_is_invalid),
    };
    return cmocka_run_group_tests_name("engine/early", tests, NULL, NULL);
}
