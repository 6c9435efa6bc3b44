/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begin on a store that works: one executor, everybody else a verdict, one operation where one is
 * enough; and on one that does not: an error, never a verdict (R1, R6).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

#define CROWD 50

static void first_claim_executes_with_one_cas(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);
    struct cfoil_record record;

    (void)state;
    world_open(&world, false);
    caller_begin(&world, &caller, &request);
    world.store_ms += 25; /* the store's time is the one that counts, and it is told */
    world_turn(&world);
    assert_int_equal(caller.answered, 1);
    assert_int_equal(caller_result(&caller)->verdict, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(script_seen(world.script), 1);
    assert_int_equal(caller_result(&caller)->attempt, 1);
    assert_int_equal(caller_result(&caller)->fence, 1);
    assert_int_equal(caller_result(&caller)->life_ms, world.store_ms);
    assert_int_equal(caller_result(&caller)->now_ms, world.store_ms);
    assert_int_equal(world_state(&world, 1, &record), CFOIL_STATE_PROCESSING);
    assert_memory_equal(record.owner, cfoil_claim_owner(caller.claim), CFOIL_OWNER_BYTES);
    assert_int_equal(record.at_ms[CFOIL_TIME_LEASE_UNTIL], world.store_ms + WORLD_LEASE_MS);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void request_is_copied_into_the_record(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_op op = {.kind = CFOIL_OP_GET};
    struct cfoil_record record;
    uint8_t id[CFOIL_ID_BYTES];

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    world_id(id, 1);
    assert_true(script_read(world.script, id, &op, &record));
    assert_true(cfoil_bytes_equal(record.scope.key, cfoil_bytes_text("key-1")));
    assert_true(cfoil_bytes_equal(record.scope.tenant, cfoil_bytes_text("acme")));
    assert_true(cfoil_bytes_equal(record.scope.endpoint, cfoil_bytes_text("POST /api/orders")));
    assert_true(cfoil_bytes_equal(record.first_request_id, cfoil_bytes_text("request-1")));
    cfoil_op_free_current(&op);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void duplicate_in_progress_is_told_when_to_come_back(void **state)
{
    struct world world;
    struct caller first = {0};
    struct caller second = {0};

    (void)state;
    world_open(&world, false);
    caller_claims(&world, &first, 1, CFOIL_VERDICT_EXECUTE);
    (void)script_seen(world.script);
    caller_claims(&world, &second, 1, CFOIL_VERDICT_IN_PROGRESS);
    assert_int_equal(script_seen(world.script), 1);
    assert_int_equal(caller_result(&second)->retry_after_ms, 2000);
    caller_free(&second, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    caller_free(&first, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void replay_shows_the_snapshot_that_was_settled(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, false);
    world_settled(&world, 1, "order 77");
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_REPLAY);
    assert_false(caller.ready);
    const struct cfoil_record *record = caller_result(&caller)->record;
    assert_non_null(record);
    assert_int_equal(record->snapshot.status, 201);
    assert_true(cfoil_bytes_equal(record->snapshot.body, cfoil_bytes_text("order 77")));
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void settled_record_is_answered_at_once_and_without_callback(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    world_settled(&world, 1, "order 77");
    (void)script_seen(world.script);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_REPLAY);
    assert_true(caller.ready);
    assert_int_equal(caller.answered, 0);
    assert_int_equal(script_seen(world.script), 0);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void other_body_is_a_mismatch_in_every_state(void **state)
{
    struct world world;
    struct caller first = {0};
    struct caller other = {0};
    struct cfoil_begin_request request = world_request(1, 1);

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &first, 1, CFOIL_VERDICT_EXECUTE);
    caller_asks(&world, &other, &request, CFOIL_VERDICT_MISMATCH);
    caller_free(&other, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    caller_free(&first, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    caller_asks(&world, &other, &request, CFOIL_VERDICT_MISMATCH);
    caller_free(&other, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_settled(&world, 1, "order");
    caller_asks(&world, &other, &request, CFOIL_VERDICT_MISMATCH);
    caller_free(&other, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void loose_replays_another_body_and_says_so(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 1);

    (void)state;
    world_open(&world, true);
    world_settled(&world, 1, "order");
    request.terms.semantics = CFOIL_SEMANTICS_LOOSE;
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_REPLAY);
    assert_true(caller_result(&caller)->body_differs);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void settled_without_snapshot_is_not_stored(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    world_settled(&world, 1, NULL);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_NOT_STORED);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void failed_runs_again_as_the_next_attempt_of_the_same_life(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    int64_t life_ms = caller_result(&caller)->life_ms;
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_advance(&world, 1000);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_result(&caller)->attempt, 2);
    assert_int_equal(caller_result(&caller)->fence, 2);
    assert_int_equal(caller_result(&caller)->life_ms, life_ms);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void fifty_claims_in_one_turn_execute_once(void **state)
{
    struct world world;
    struct caller crowd[CROWD] = {0};
    struct cfoil_begin_request request = world_request(1, 0);
    size_t executing = 0;

    (void)state;
    world_open(&world, true);
    for (size_t i = 0; i < CROWD; i++) {
        caller_begin(&world, &crowd[i], &request);
    }
    assert_int_equal(cfoil_engine_busy(world.engine), CROWD);
    world_turn(&world);
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(crowd[i].answered, 1);
        enum cfoil_verdict verdict = caller_result(&crowd[i])->verdict;
        executing += verdict == CFOIL_VERDICT_EXECUTE;
        assert_true(verdict == CFOIL_VERDICT_EXECUTE || verdict == CFOIL_VERDICT_IN_PROGRESS);
    }
    assert_int_equal(executing, 1);
    assert_int_equal(world_stats(&world).verdicts[CFOIL_VERDICT_IN_PROGRESS], CROWD - 1);
    for (size_t i = 0; i < CROWD; i++) {
        caller_free(&crowd[i], CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    }
    world_turn(&world);
    world_close(&world);
}

static void fifty_takeovers_in_one_turn_execute_once(void **state)
{
    struct world world;
    struct caller crowd[CROWD] = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, false);
    caller_claims(&world, &crowd[0], 1, CFOIL_VERDICT_EXECUTE);
    caller_free(&crowd[0], CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    for (size_t i = 0; i < CROWD; i++) {
        caller_begin(&world, &crowd[i], &request);
    }
    world_turn(&world);
    assert_int_equal(world_stats(&world).verdicts[CFOIL_VERDICT_EXECUTE], 2);
    assert_int_equal(world_stats(&world).verdicts[CFOIL_VERDICT_IN_PROGRESS], CROWD - 1);
    for (size_t i = 0; i < CROWD; i++) {
        caller_free(&crowd[i], CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    }
    world_turn(&world);
    world_close(&world);
}

static void record_that_keeps_changing_ends_as_contended(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, false);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    (void)script_seen(world.script);
    script_add(world.script, SCRIPT_CAS, SCRIPT_RACE, SCRIPT_ALWAYS, CFOIL_OK);
    caller.answered = 0;
    caller_begin(&world, &caller, &request);
    world_turn(&world);
    assert_int_equal(caller.answered, 1);
    assert_int_equal(caller_result(&caller)->error, CFOIL_E_CONTENDED);
    assert_int_equal(caller_result(&caller)->verdict, CFOIL_VERDICT_NONE);
    assert_int_equal(script_seen(world.script), CFOIL_CAS_ATTEMPTS_MAX);
    script_clear(world.script);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    world_close(&world);
}

static void store_that_is_down_is_an_error_and_leaves_nothing(void **state)
{
    static const enum cfoil_error errors[] = {CFOIL_E_STORE_UNAVAILABLE, CFOIL_E_STORE_FULL};
    struct world world;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct caller caller = {0};
        struct cfoil_begin_request request = world_request(1, 0);
        world_open(&world, true);
        script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, errors[i]);
        caller_begin(&world, &caller, &request);
        world_turn(&world);
        assert_int_equal(caller.answered, 1);
        assert_int_equal(caller_result(&caller)->error, errors[i]);
        assert_int_equal(caller_result(&caller)->verdict, CFOIL_VERDICT_NONE);
        assert_null(caller_result(&caller)->record);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        assert_int_equal(cfoil_engine_busy(world.engine), 0);
        script_clear(world.script);
        world_advance(&world, 20000);
        assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_ABSENT);
        assert_int_equal(world_stats(&world).begin_failed, 1);
        world_close(&world);
    }
}

/* A contract broken by a store must not read as a first EXECUTE that stands nowhere (R6). */
static void failure_without_a_reason_is_never_an_execution(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, true);
    script_add(world.script, SCRIPT_CAS, SCRIPT_SILENT, SCRIPT_ALWAYS, CFOIL_OK);
    caller_begin(&world, &caller, &request);
    world_turn(&world);
    assert_int_not_equal(caller_result(&caller)->error, CFOIL_OK);
    assert_int_equal(caller_result(&caller)->verdict, CFOIL_VERDICT_NONE);
    script_clear(world.script);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

/* R6: bytes that are no record are an error for that key, whichever way they come. */
static void unreadable_record_is_never_absent(void **state)
{
    static const enum script_act acts[] = {SCRIPT_GARBAGE, SCRIPT_DAMAGE};
    struct world world;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct caller caller = {0};
        struct cfoil_begin_request request = world_request(1, 0);
        world_open(&world, i / 2 == 0);
        world_settled(&world, 1, "order");
        if (i / 2 == 0) {
            script_spoil(world.script, request.id, i % 2 == 0);
        } else {
            script_add(world.script, SCRIPT_ANY, acts[i % 2], SCRIPT_ALWAYS, CFOIL_OK);
        }
        caller_begin(&world, &caller, &request);
        world_turn(&world);
        assert_int_equal(cfoil_error_class(caller_result(&caller)->error), CFOIL_CLASS_CORRUPT);
        assert_int_equal(caller_result(&caller)->verdict, CFOIL_VERDICT_NONE);
        script_clear(world.script);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_turn(&world);
        world_close(&world);
    }
}

static void origin_too_large_for_a_record_is_refused_at_once(void **state)
{
    static uint8_t huge[CFOIL_RECORD_BYTES_MAX];
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    world_open(&world, true);
    request.origin.first_request_id = cfoil_bytes_of(huge, sizeof(huge));
    assert_int_equal(cfoil_begin(world.engine, &request, NULL, NULL, &caller.claim, &caller.ready),
                     CFOIL_E_LIMIT);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    world_close(&world);
}

/* A host that has the rule-free digest only, and counts how often it is asked for the rest. */
struct lazy_host {
    struct cfoil_fingerprint whole;
    enum cfoil_error error;
    size_t asked;
};

static enum cfoil_error lazy_rest(void *context, struct cfoil_fingerprint *fingerprint)
{
    struct lazy_host *host = context;

    host->asked++;
    if (host->error == CFOIL_OK) {
        *fingerprint = host->whole;
    }
    return host->error;
}

static struct cfoil_begin_request lazy_request(struct lazy_host *host, unsigned body)
{
    struct cfoil_begin_request request = world_request(1, body);
    struct cfoil_fingerprint *asked = &request.origin.fingerprint;

    host->whole = *asked;
    memset(asked->request_hash, 0, CFOIL_DIGEST_BYTES);
    memset(asked->target_hash, 0, CFOIL_DIGEST_BYTES);
    request.rest = lazy_rest;
    request.rest_context = host;
    return request;
}

static void claim_asks_for_the_rest_of_the_fingerprint_and_records_it(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct lazy_host host = {.error = CFOIL_OK};
    struct cfoil_begin_request request = lazy_request(&host, 0);
    struct cfoil_record record;

    (void)state;
    world_open(&world, true);
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(host.asked, 1);
    (void)world_state(&world, 1, &record);
    assert_memory_equal(&record.fingerprint, &host.whole, sizeof(host.whole));
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void same_bytes_under_the_same_rules_replay_without_the_rest(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct lazy_host host = {.error = CFOIL_OK};
    struct cfoil_begin_request request = lazy_request(&host, 0);

    (void)state;
    world_open(&world, true);
    world_settled(&world, 1, "order 77");
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_REPLAY);
    assert_int_equal(host.asked, 0);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void takeover_by_the_same_bytes_records_the_whole_fingerprint(void **state)
{
    struct world world;
    struct caller first = {0};
    struct caller again = {0};
    struct lazy_host host = {.error = CFOIL_OK};
    struct cfoil_begin_request request = lazy_request(&host, 0);
    struct cfoil_record record;

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &first, 1, CFOIL_VERDICT_EXECUTE);
    caller_free(&first, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    caller_asks(&world, &again, &request, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(host.asked, 0);
    (void)world_state(&world, 1, &record);
    assert_memory_equal(&record.fingerprint, &host.whole, sizeof(host.whole));
    caller_free(&again, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

/* Other bytes may still mean the same, and other rules may not: only the whole digest tells. */
static void other_bytes_and_other_rules_ask_for_the_rest(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct lazy_host host = {.error = CFOIL_OK};
    struct cfoil_begin_request request = lazy_request(&host, 0);

    (void)state;
    world_open(&world, true);
    world_settled(&world, 1, "order 77");
    request.origin.fingerprint.raw_hash[0] ^= 1; /* spelled otherwise */
    host.whole.raw_hash[0] ^= 1;
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_REPLAY);
    assert_int_equal(host.asked, 1);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);

    request = lazy_request(&host, 1);
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_MISMATCH);
    assert_int_equal(host.asked, 2);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);

    request = lazy_request(&host, 0);
    request.origin.fingerprint.rules = 2;
    host.whole.rules = 2;
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_REPLAY);
    assert_int_equal(host.asked, 3);
    assert_true(caller_result(&caller)->other_rules);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void a_store_without_look_up_is_asked_with_the_whole_fingerprint(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct lazy_host host = {.error = CFOIL_OK};
    struct cfoil_begin_request request = lazy_request(&host, 0);

    (void)state;
    world_open(&world, false);
    world_settled(&world, 1, "order 77");
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_REPLAY);
    assert_int_equal(host.asked, 1);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void a_rest_that_fails_is_the_error_of_begin_and_leaves_nothing(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct lazy_host host = {.error = CFOIL_E_NO_MEMORY};
    struct cfoil_begin_request request = lazy_request(&host, 0);

    (void)state;
    world_open(&world, true);
    assert_int_equal(caller_try_begin(&world, &caller, &request), CFOIL_E_NO_MEMORY);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_ABSENT);
    assert_int_equal(cfoil_engine_busy(world.engine), 0);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_claim_executes_with_one_cas),
        cmocka_unit_test(request_is_copied_into_the_record),
        cmocka_unit_test(duplicate_in_progress_is_told_when_to_come_back),
        cmocka_unit_test(replay_shows_the_snapshot_that_was_settled),
        cmocka_unit_test(settled_record_is_answered_at_once_and_without_callback),
        cmocka_unit_test(other_body_is_a_mismatch_in_every_state),
        cmocka_unit_test(loose_replays_another_body_and_says_so),
        cmocka_unit_test(settled_without_snapshot_is_not_stored),
        cmocka_unit_test(failed_runs_again_as_the_next_attempt_of_the_same_life),
        cmocka_unit_test(fifty_claims_in_one_turn_execute_once),
        cmocka_unit_test(fifty_takeovers_in_one_turn_execute_once),
        cmocka_unit_test(record_that_keeps_changing_ends_as_contended),
        cmocka_unit_test(store_that_is_down_is_an_error_and_leaves_nothing),
        cmocka_unit_test(failure_without_a_reason_is_never_an_execution),
        cmocka_unit_test(unreadable_record_is_never_absent),
        cmocka_unit_test(origin_too_large_for_a_record_is_refused_at_once),
        cmocka_unit_test(claim_asks_for_the_rest_of_the_fingerprint_and_records_it),
        cmocka_unit_test(same_bytes_under_the_same_rules_replay_without_the_rest),
        cmocka_unit_test(takeover_by_the_same_bytes_records_the_whole_fingerprint),
        cmocka_unit_test(other_bytes_and_other_rules_ask_for_the_rest),
        cmocka_unit_test(a_store_without_look_up_is_asked_with_the_whole_fingerprint),
        cmocka_unit_test(a_rest_that_fails_is_the_error_of_begin_and_leaves_nothing),
    };
    return cmocka_run_group_tests_name("engine/begin", tests, NULL, NULL);
}
