/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: the heap against a model that searches, and what a host sees of it (due_ms, tick).
 * Includes the engine's inside for the heap alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "engine/internal.h"
#include "world.h"

#define TIMERS 60
#define STEPS  20000

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The earliest of the armed timers, found by looking at each. */
static int64_t earliest(const struct timer *timers)
{
    int64_t due_ms = INT64_MAX;

    for (size_t i = 0; i < TIMERS; i++) {
        if (timers[i].place != 0 && timers[i].due_ms < due_ms) {
            due_ms = timers[i].due_ms;
        }
    }
    return due_ms;
}

static void heap_agrees_with_a_search_after_every_step(void **state)
{
    uint64_t random = 0x5eed5eed5eedULL;
    struct timers heap = {0};
    struct timer timers[TIMERS] = {0};
    bool armed[TIMERS] = {false};
    size_t count = 0;

    (void)state;
    print_message("# seed 0x%llx\n", (unsigned long long)random);
    assert_int_equal(cfoil_timers_reserve(&heap, TIMERS), CFOIL_OK);
    for (int step = 0; step < STEPS; step++) {
        size_t i = next_random(&random) % TIMERS;
        bool arm = next_random(&random) % 3 != 0;
        int64_t due_ms = (int64_t)(next_random(&random) % 50);
        count += (size_t)(arm && !armed[i]);
        count -= (size_t)(!arm && armed[i]);
        if (arm) {
            cfoil_timer_arm(&heap, &timers[i], due_ms);
            assert_int_equal(timers[i].due_ms, due_ms);
        } else {
            cfoil_timer_disarm(&heap, &timers[i]);
        }
        armed[i] = arm;
        assert_int_equal(timers[i].place != 0, arm);
        assert_int_equal(heap.count, count);
        if (count > 0) {
            assert_int_equal(heap.heap[0]->due_ms, earliest(timers));
        }
    }
    free(heap.heap);
}

static void reserve_keeps_what_is_armed(void **state)
{
    struct timers heap = {0};
    struct timer timers[2] = {{0}, {0}};

    (void)state;
    assert_int_equal(cfoil_timers_reserve(&heap, 2), CFOIL_OK);
    cfoil_timer_arm(&heap, &timers[0], 7);
    assert_int_equal(cfoil_timers_reserve(&heap, 10000), CFOIL_OK);
    cfoil_timer_arm(&heap, &timers[1], 3);
    assert_ptr_equal(heap.heap[0], &timers[1]);
    cfoil_timer_disarm(&heap, &timers[1]);
    assert_ptr_equal(heap.heap[0], &timers[0]);
    free(heap.heap);
}

static void due_ms_counts_down_to_the_renewal_and_stays_at_zero(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    assert_int_equal(cfoil_engine_due_ms(world.engine), -1);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(cfoil_engine_due_ms(world.engine), WORLD_LEASE_MS / 3);
    world.engine_ms += 1000;
    assert_int_equal(cfoil_engine_due_ms(world.engine), WORLD_LEASE_MS / 3 - 1000);
    cfoil_engine_tick(world.engine);
    assert_int_equal(cfoil_lane_pending(world.lane), 0);
    world.engine_ms += WORLD_LEASE_MS;
    assert_int_equal(cfoil_engine_due_ms(world.engine), 0);
    cfoil_engine_tick(world.engine);
    assert_int_equal(cfoil_lane_pending(world.lane), 1);
    assert_int_equal(cfoil_engine_due_ms(world.engine), -1);
    world_turn(&world);
    assert_int_equal(cfoil_engine_due_ms(world.engine), WORLD_LEASE_MS / 3);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void tick_serves_everything_that_is_due_and_nothing_else(void **state)
{
    struct world world;
    struct caller callers[3] = {0};

    (void)state;
    world_open(&world, true);
    for (unsigned i = 0; i < 3; i++) {
        caller_claims(&world, &callers[i], i, CFOIL_VERDICT_EXECUTE);
        world.engine_ms += 1000;
    }
    world.engine_ms = 1000 + WORLD_LEASE_MS / 3 + 1000;
    cfoil_engine_tick(world.engine);
    assert_int_equal(cfoil_lane_pending(world.lane), 2);
    assert_int_equal(cfoil_engine_due_ms(world.engine), 1000);
    for (size_t i = 0; i < 3; i++) {
        caller_free(&callers[i], CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    }
    world_turn(&world);
    world_close(&world);
}

/* One callback of a tick frees claims whose own timers are due in the same tick. */
struct pair {
    struct world *world;
    struct caller *other;
};

static void free_the_other(void *context, struct cfoil_claim *claim,
                           enum cfoil_settle_status status)
{
    struct pair *pair = context;

    (void)claim;
    assert_int_equal(status, CFOIL_SETTLE_UNCONFIRMED);
    if (pair->other->claim != NULL) {
        caller_free(pair->other, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    }
}

static void claims_freed_by_each_others_timers(void **state)
{
    struct world world;
    struct caller callers[2] = {0};
    struct pair pairs[2];
    struct cfoil_ending ending = {.outcome = CFOIL_STATE_SUCCEEDED};

    (void)state;
    world_open(&world, true);
    for (unsigned i = 0; i < 2; i++) {
        caller_claims(&world, &callers[i], i, CFOIL_VERDICT_EXECUTE);
        pairs[i] = (struct pair){&world, &callers[1 - i]};
    }
    script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(cfoil_settle(callers[i].claim, &ending, free_the_other, &pairs[i]),
                         CFOIL_OK);
    }
    world_advance(&world, CFOIL_SETTLE_WAIT_MS);
    assert_true((callers[0].claim == NULL) != (callers[1].claim == NULL));
    script_clear(world.script);
    world_advance(&world, CFOIL_BACKGROUND_RETRY_MAX_MS);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(world_state(&world, i, NULL), CFOIL_STATE_SUCCEEDED);
        caller_free(&callers[i], CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_agrees_with_a_search_after_every_step),
        cmocka_unit_test(reserve_keeps_what_is_armed),
        cmocka_unit_test(due_ms_counts_down_to_the_renewal_and_stays_at_zero),
        cmocka_unit_test(tick_serves_everything_that_is_due_and_nothing_else),
        cmocka_unit_test(claims_freed_by_each_others_timers),
    };
    return cmocka_run_group_tests_name("engine/timers", tests, NULL, NULL);
}
