/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator's acts through the engine (R2, R6, R8): what they change, what they refuse, that the
 * former owner is refused afterwards, and that a lost reply is not reported as a refusal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

static struct cfoil_event act_of(enum cfoil_event_kind kind)
{
    struct cfoil_event event = {.kind = kind};
    struct cfoil_begin_request request = world_request(1, 0);

    event.terms = request.terms;
    event.reason = cfoil_bytes_text("seen in the books");
    return event;
}

static struct cfoil_event resolve_as(enum cfoil_state outcome)
{
    struct cfoil_event event = act_of(CFOIL_EVENT_RESOLVE);

    event.outcome = outcome;
    event.snapshot.status = 201;
    event.snapshot.body = cfoil_bytes_text("resolved");
    return event;
}

static void leave_in_doubt(struct world *world, unsigned number)
{
    struct caller caller = {0};

    caller_claims(world, &caller, number, CFOIL_VERDICT_EXECUTE);
    caller_free(&caller, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_TIMEOUT);
    world_turn(world);
}

static void resolve_ends_a_doubt_and_is_replayed(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_event event = resolve_as(CFOIL_STATE_SUCCEEDED);

    (void)state;
    world_open(&world, true);
    leave_in_doubt(&world, 1);
    assert_int_equal(world_operates(&world, 1, &event), CFOIL_OK);
    assert_true(world_has_body(&world, 1, "resolved"));
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_REPLAY);
    assert_true(cfoil_bytes_equal(caller_result(&caller)->record->reason,
                                  cfoil_bytes_text("seen in the books")));
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void acts_are_refused_where_they_would_do_harm(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_event resolve = resolve_as(CFOIL_STATE_SUCCEEDED);
    struct cfoil_event doubt = resolve_as(CFOIL_STATE_IN_DOUBT);
    struct cfoil_event release = act_of(CFOIL_EVENT_RELEASE);
    struct cfoil_event forget = act_of(CFOIL_EVENT_FORGET);

    (void)state;
    world_open(&world, true);
    assert_int_equal(world_operates(&world, 1, &resolve), CFOIL_E_NOT_FOUND);
    assert_int_equal(world_operates(&world, 1, &release), CFOIL_E_NOT_FOUND);
    assert_int_equal(world_operates(&world, 1, &forget), CFOIL_E_NOT_FOUND);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(world_operates(&world, 1, &resolve), CFOIL_E_LEASE_LIVE);
    assert_int_equal(world_operates(&world, 1, &release), CFOIL_E_LEASE_LIVE);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(world_operates(&world, 1, &resolve), CFOIL_E_SETTLED);
    assert_int_equal(world_operates(&world, 1, &release), CFOIL_E_SETTLED);
    assert_int_equal(world_operates(&world, 1, &doubt), CFOIL_E_INVALID);
    assert_true(world_has_body(&world, 1, "x"));
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void acts_of_others_are_invalid(void **state)
{
    struct world world;
    uint8_t id[CFOIL_ID_BYTES];

    (void)state;
    world_open(&world, true);
    world_id(id, 1);
    for (int kind = 0; kind < CFOIL_EVENT_COUNT; kind++) {
        struct cfoil_event event = act_of((enum cfoil_event_kind)kind);
        if (kind == CFOIL_EVENT_RESOLVE || kind == CFOIL_EVENT_RELEASE ||
            kind == CFOIL_EVENT_FORGET) {
            continue;
        }
        assert_int_equal(cfoil_operate(world.engine, id, &event, NULL, NULL), CFOIL_E_INVALID);
    }
    world_close(&world);
}

static void forced_release_shuts_the_living_owner_out(void **state)
{
    struct world world;
    struct caller owner = {0};
    struct cfoil_event release = act_of(CFOIL_EVENT_RELEASE);

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &owner, 1, CFOIL_VERDICT_EXECUTE);
    release.force = true;
    assert_int_equal(world_operates(&world, 1, &release), CFOIL_OK);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    world_advance(&world, WORLD_LEASE_MS);
    assert_int_equal(world_stats(&world).renew_refused, 1);
    assert_int_equal(caller_settle(&owner, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(owner.status, CFOIL_SETTLE_REFUSED);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    caller_free(&owner, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

/* Who was shut out by one act may not be taken for the owner another act has made. */
static void every_act_makes_an_owner_of_its_own(void **state)
{
    struct world world;
    struct cfoil_event release = act_of(CFOIL_EVENT_RELEASE);
    struct cfoil_record records[2];

    (void)state;
    world_open(&world, true);
    for (unsigned i = 0; i < 2; i++) {
        leave_in_doubt(&world, i);
        assert_int_equal(world_operates(&world, i, &release), CFOIL_OK);
        assert_int_equal(world_state(&world, i, &records[i]), CFOIL_STATE_FAILED);
    }
    assert_memory_not_equal(records[0].owner, records[1].owner, CFOIL_OWNER_BYTES);
    world_close(&world);
}

static void forgotten_key_is_unknown_at_once(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 1);
    struct cfoil_event forget = act_of(CFOIL_EVENT_FORGET);

    (void)state;
    world_open(&world, true);
    world_settled(&world, 1, "x");
    assert_int_equal(world_operates(&world, 1, &forget), CFOIL_OK);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_ABSENT);
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_result(&caller)->attempt, 1);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

/* R6: both kinds of damage, in the header and in the payload, end by forget and by nothing else. */
static void corrupt_record_is_forgotten_but_not_resolved(void **state)
{
    struct world world;
    struct cfoil_event resolve = resolve_as(CFOIL_STATE_SUCCEEDED);
    struct cfoil_event forget = act_of(CFOIL_EVENT_FORGET);

    (void)state;
    for (int header = 0; header < 2; header++) {
        struct caller caller = {0};
        struct cfoil_begin_request request = world_request(1, 0);
        world_open(&world, true);
        world_settled(&world, 1, "x");
        script_spoil(world.script, request.id, header == 1);
        assert_int_equal(world_operates(&world, 1, &resolve), CFOIL_E_RECORD_CORRUPT);
        assert_int_equal(world_operates(&world, 1, &forget), CFOIL_OK);
        caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
        assert_int_equal(caller_result(&caller)->attempt, 1);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_turn(&world);
        world_close(&world);
    }
}

/* Forget may write over what cannot be read, never over a record that was repaired meanwhile. */
static void forget_of_a_corrupt_record_respects_one_that_reads_again(void **state)
{
    struct world world;
    struct cfoil_event forget = act_of(CFOIL_EVENT_FORGET);

    (void)state;
    world_open(&world, true);
    world_settled(&world, 1, "x");
    script_add(world.script, SCRIPT_GET, SCRIPT_DAMAGE, 1, CFOIL_OK);
    script_add(world.script, SCRIPT_CAS, SCRIPT_RACE, 1, CFOIL_OK);
    assert_int_equal(world_operates(&world, 1, &forget), CFOIL_OK);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_ABSENT);
    world_close(&world);
}

/* Applied, but the reply was lost: asking again finds the act done, and it was our own. */
static void act_whose_reply_is_lost_is_not_reported_as_refused(void **state)
{
    static const enum script_act acts[] = {SCRIPT_LOSE_AFTER, SCRIPT_LOSE_BEFORE};
    struct cfoil_event events[] = {resolve_as(CFOIL_STATE_SUCCEEDED), act_of(CFOIL_EVENT_RELEASE),
                                   act_of(CFOIL_EVENT_FORGET)};
    static const enum cfoil_state states[] = {CFOIL_STATE_SUCCEEDED, CFOIL_STATE_FAILED,
                                              CFOIL_STATE_ABSENT};
    struct world world;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        world_open(&world, true);
        leave_in_doubt(&world, 1);
        script_add(world.script, SCRIPT_CAS, acts[i / 3], 1, CFOIL_OK);
        assert_int_equal(world_operates(&world, 1, &events[i % 3]), CFOIL_OK);
        assert_int_equal(world_state(&world, 1, NULL), states[i % 3]);
        world_close(&world);
    }
}

static void act_on_a_store_that_is_down_is_told_so(void **state)
{
    struct world world;
    struct cfoil_event forget = act_of(CFOIL_EVENT_FORGET);

    (void)state;
    world_open(&world, true);
    world_settled(&world, 1, "x");
    script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(world_operates(&world, 1, &forget), CFOIL_E_STORE_UNAVAILABLE);
    script_clear(world.script);
    assert_true(world_has_body(&world, 1, "x"));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolve_ends_a_doubt_and_is_replayed),
        cmocka_unit_test(acts_are_refused_where_they_would_do_harm),
        cmocka_unit_test(acts_of_others_are_invalid),
        cmocka_unit_test(forced_release_shuts_the_living_owner_out),
        cmocka_unit_test(every_act_makes_an_owner_of_its_own),
        cmocka_unit_test(forgotten_key_is_unknown_at_once),
        cmocka_unit_test(corrupt_record_is_forgotten_but_not_resolved),
        cmocka_unit_test(forget_of_a_corrupt_record_respects_one_that_reads_again),
        cmocka_unit_test(act_whose_reply_is_lost_is_not_reported_as_refused),
        cmocka_unit_test(act_on_a_store_that_is_down_is_told_so),
    };
    return cmocka_run_group_tests_name("engine/operate", tests, NULL, NULL);
}
