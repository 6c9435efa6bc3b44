/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renewals (R1, R2, R8, R11): a running claim keeps its lease for as long as it runs, loses it to
 * nobody but a taker or an operator, and says so once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

#define THIRD_MS (WORLD_LEASE_MS / 3)

static void renewal_every_third_keeps_the_lease_for_ten_leases(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct caller other = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    for (int i = 0; i < 10 * WORLD_LEASE_MS / 1000; i++) {
        world_advance(&world, 1000);
        assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    }
    assert_int_equal(world_stats(&world).renewed, 30);
    caller_claims(&world, &other, 1, CFOIL_VERDICT_IN_PROGRESS);
    caller_free(&other, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "late"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void every_renewal_is_one_cas_with_a_new_generation(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_record before;
    struct cfoil_record after;

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    for (int i = 0; i < 5; i++) {
        (void)world_state(&world, 1, &before);
        (void)script_seen(world.script);
        world_advance(&world, THIRD_MS);
        assert_int_equal(script_seen(world.script), 1);
        (void)world_state(&world, 1, &after);
        assert_int_not_equal(after.generation, before.generation);
        assert_int_equal(after.at_ms[CFOIL_TIME_LEASE_UNTIL], world.store_ms + WORLD_LEASE_MS);
    }
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void renewals_end_with_the_settle(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    world_turn(&world);
    (void)script_seen(world.script);
    world_advance(&world, 10 * WORLD_LEASE_MS);
    assert_int_equal(script_seen(world.script), 0);
    assert_int_equal(cfoil_engine_due_ms(world.engine), -1);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

/* The engine stood still for longer than the lease, and another claim took the record. */
static void take_over(struct world *world, struct caller *slow, struct caller *taker)
{
    struct cfoil_begin_request request = world_request(1, 0);

    request.terms.in_doubt = CFOIL_IN_DOUBT_RETRY;
    caller_asks(world, slow, &request, CFOIL_VERDICT_EXECUTE);
    world->store_ms += WORLD_LEASE_MS;
    caller_asks(world, taker, &request, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_result(taker)->attempt, 2);
    assert_int_equal(caller_result(taker)->fence, 2);
}

static void renewal_after_a_takeover_is_refused_counted_and_logged_once(void **state)
{
    struct world world;
    struct caller slow = {0};
    struct caller taker = {0};
    struct cfoil_record record;

    (void)state;
    world_open(&world, true);
    take_over(&world, &slow, &taker);
    world_advance(&world, 4 * WORLD_LEASE_MS);
    assert_int_equal(world_stats(&world).renew_refused, 1);
    assert_int_equal(world.logged, 1);
    assert_int_equal(world.logged_error, CFOIL_E_NOT_OWNER);
    assert_int_equal(world_state(&world, 1, &record), CFOIL_STATE_PROCESSING);
    assert_memory_equal(record.owner, cfoil_claim_owner(taker.claim), CFOIL_OWNER_BYTES);
    caller_free(&slow, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    caller_free(&taker, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

/* R2: the lease was over, nobody took it: the owner still is the owner. */
static void renewal_after_the_lease_revives_the_claim(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    world.store_ms += 2 * WORLD_LEASE_MS;
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_IN_DOUBT);
    world_advance(&world, THIRD_MS);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void renewals_go_on_after_the_store_was_down(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
    world_advance(&world, 3 * WORLD_LEASE_MS);
    script_clear(world.script);
    world_advance(&world, THIRD_MS);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    assert_int_equal(world_stats(&world).renew_refused, 0);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void renewal_whose_reply_is_lost_is_known_again(void **state)
{
    static const enum script_act acts[] = {SCRIPT_LOSE_AFTER, SCRIPT_LOSE_BEFORE, SCRIPT_DELAY};
    struct world world;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct caller caller = {0};
        world_open(&world, true);
        caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
        script_add(world.script, SCRIPT_CAS, acts[i], 1, CFOIL_OK);
        world_advance(&world, THIRD_MS);
        assert_int_equal(script_release(world.script), 0);
        world_advance(&world, 2 * WORLD_LEASE_MS);
        assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
        assert_int_equal(world_stats(&world).renew_refused, 0);
        assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
        world_turn(&world);
        assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_close(&world);
    }
}

/* A renewal that never reached the store must not wake a settled record up again. */
static void late_renewal_cannot_undo_the_settle(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    script_add(world.script, SCRIPT_CAS, SCRIPT_DELAY, 1, CFOIL_OK);
    script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, 1, CFOIL_E_STORE_UNAVAILABLE);
    world_advance(&world, THIRD_MS);
    assert_int_equal(script_held(world.script), 1);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(script_release(world.script), 0);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_SUCCEEDED);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

/*
 * Settled while a renewal is at the store, after an earlier renewal was read back from it: what the
 * claim remembers of its record must not lie in memory the store is about to write.
 */
static void settle_beside_a_renewal_in_flight_keeps_the_record_whole(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_op op = {.kind = CFOIL_OP_GET};
    struct cfoil_record record;
    uint8_t id[CFOIL_ID_BYTES];

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    script_add(world.script, SCRIPT_CAS, SCRIPT_LOSE_AFTER, 1, CFOIL_OK);
    world_advance(&world, THIRD_MS);
    world.engine_ms += THIRD_MS;
    cfoil_engine_tick(world.engine);
    script_add(world.script, SCRIPT_CAS, SCRIPT_GARBAGE, 1, CFOIL_OK);
    cfoil_engine_flush(world.engine);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    world_id(id, 1);
    assert_true(script_read(world.script, id, &op, &record));
    assert_true(cfoil_bytes_equal(record.scope.key, cfoil_bytes_text("key-1")));
    assert_true(cfoil_bytes_equal(record.scope.endpoint, cfoil_bytes_text("POST /api/orders")));
    assert_true(cfoil_bytes_equal(record.first_request_id, cfoil_bytes_text("request-1")));
    cfoil_op_free_current(&op);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void claim_freed_with_a_renewal_in_flight_ends_once(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    world.engine_ms += THIRD_MS;
    cfoil_engine_tick(world.engine);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_SUCCEEDED);
    assert_int_equal(caller.settled, 0);
    world_close(&world);
}

/* The settle is at the store first; the renewal behind it comes home after the claim is over. */
static void renewal_that_outlives_the_settle_is_waited_for(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    caller.free_in_callback = true;
    script_add(world.script, SCRIPT_CAS, SCRIPT_LOSE_BEFORE, 1, CFOIL_OK);
    world.engine_ms += THIRD_MS;
    cfoil_engine_tick(world.engine);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(caller.settled, 1);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_SUCCEEDED);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renewal_every_third_keeps_the_lease_for_ten_leases),
        cmocka_unit_test(every_renewal_is_one_cas_with_a_new_generation),
        cmocka_unit_test(renewals_end_with_the_settle),
        cmocka_unit_test(renewal_after_a_takeover_is_refused_counted_and_logged_once),
        cmocka_unit_test(renewal_after_the_lease_revives_the_claim),
        cmocka_unit_test(renewals_go_on_after_the_store_was_down),
        cmocka_unit_test(renewal_whose_reply_is_lost_is_known_again),
        cmocka_unit_test(late_renewal_cannot_undo_the_settle),
        cmocka_unit_test(settle_beside_a_renewal_in_flight_keeps_the_record_whole),
        cmocka_unit_test(claim_freed_with_a_renewal_in_flight_ends_once),
        cmocka_unit_test(renewal_that_outlives_the_settle_is_waited_for),
    };
    return cmocka_run_group_tests_name("engine/renew", tests, NULL, NULL);
}
