/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe (DESIGN, Probe): one prober, everybody else waits; found, absent and unclear; a slow
 * living owner that settles meanwhile; a prober that goes away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

static struct cfoil_begin_request probing_request(void)
{
    struct cfoil_begin_request request = world_request(1, 0);

    request.terms.in_doubt = CFOIL_IN_DOUBT_PROBE;
    return request;
}

/* A record in doubt for that cause, and a prober that holds its mark. */
static void start_probe(struct world *world, struct caller *prober, enum cfoil_cause cause)
{
    struct cfoil_begin_request request = probing_request();
    struct caller lost = {0};

    caller_asks(world, &lost, &request, CFOIL_VERDICT_EXECUTE);
    caller_free(&lost, CFOIL_STATE_IN_DOUBT, cause);
    world_turn(world);
    assert_int_equal(world_state(world, 1, NULL), CFOIL_STATE_IN_DOUBT);
    world_advance(world,
                  1); /* an answer counts only if it was asked for after the last sign of life */
    caller_asks(world, prober, &request, CFOIL_VERDICT_PROBE);
}

static void report(struct world *world, struct caller *prober, enum cfoil_probe_answer answer,
                   const char *body, enum cfoil_verdict verdict)
{
    size_t answered = prober->answered;

    assert_int_equal(caller_probe(prober, answer, body), CFOIL_OK);
    world_turn(world);
    assert_int_equal(prober->answered, answered + 1);
    assert_int_equal(caller_result(prober)->error, CFOIL_OK);
    assert_string_equal(cfoil_verdict_name(caller_result(prober)->verdict),
                        cfoil_verdict_name(verdict));
}

static void one_probes_and_the_rest_wait(void **state)
{
    struct world world;
    struct caller prober = {0};
    struct caller other = {0};
    struct cfoil_begin_request request = probing_request();

    (void)state;
    world_open(&world, true);
    start_probe(&world, &prober, CFOIL_CAUSE_TIMEOUT);
    caller_asks(&world, &other, &request, CFOIL_VERDICT_IN_PROGRESS);
    caller_free(&other, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    report(&world, &prober, CFOIL_PROBE_UNCLEAR, NULL, CFOIL_VERDICT_OUTCOME_UNKNOWN);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void found_is_settled_and_replayed_to_everybody(void **state)
{
    struct world world;
    struct caller prober = {0};
    struct caller other = {0};

    (void)state;
    world_open(&world, true);
    start_probe(&world, &prober, CFOIL_CAUSE_TIMEOUT);
    report(&world, &prober, CFOIL_PROBE_FOUND, "order 7", CFOIL_VERDICT_REPLAY);
    const struct cfoil_record *record = caller_result(&prober)->record;
    assert_int_equal(record->snapshot.status, 201);
    assert_true(cfoil_bytes_equal(record->snapshot.body, cfoil_bytes_text("order 7")));
    assert_true(world_has_body(&world, 1, "order 7"));
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    caller_claims(&world, &other, 1, CFOIL_VERDICT_REPLAY);
    caller_free(&other, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void absent_after_a_timeout_is_not_trusted_before_its_time(void **state)
{
    struct world world;
    struct caller prober = {0};
    struct cfoil_begin_request request = probing_request();

    (void)state;
    world_open(&world, true);
    start_probe(&world, &prober, CFOIL_CAUSE_TIMEOUT);
    report(&world, &prober, CFOIL_PROBE_ABSENT, NULL, CFOIL_VERDICT_IN_PROGRESS);
    assert_true(caller_result(&prober)->retry_after_ms > 0);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_IN_DOUBT);
    world_advance(&world, WORLD_TRUST_MS);
    caller_asks(&world, &prober, &request, CFOIL_VERDICT_PROBE);
    report(&world, &prober, CFOIL_PROBE_ABSENT, NULL, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_result(&prober)->attempt, 2);
    assert_int_equal(caller_result(&prober)->fence, 2);
    world_advance(&world, 3 * WORLD_LEASE_MS);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    assert_int_equal(caller_settle(&prober, CFOIL_STATE_SUCCEEDED, "second"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(prober.status, CFOIL_SETTLE_DURABLE);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void absent_after_a_reset_executes_at_once(void **state)
{
    struct world world;
    struct caller prober = {0};

    (void)state;
    world_open(&world, true);
    start_probe(&world, &prober, CFOIL_CAUSE_BACKEND_CLOSED);
    report(&world, &prober, CFOIL_PROBE_ABSENT, NULL, CFOIL_VERDICT_EXECUTE);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_FAILED);
    world_close(&world);
}

/* The trust is judged by when the backend was asked: an old "not found" stays an old one. */
static void absence_is_judged_by_when_the_backend_was_asked(void **state)
{
    struct world world;
    struct caller prober = {0};
    struct cfoil_begin_request request = probing_request();

    (void)state;
    request.terms.probe_lease_ms = 2 * WORLD_TRUST_MS;
    world_open(&world, true);
    start_probe(&world, &prober, CFOIL_CAUSE_TIMEOUT);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    caller_asks(&world, &prober, &request, CFOIL_VERDICT_PROBE);
    world_advance(&world, WORLD_TRUST_MS);
    report(&world, &prober, CFOIL_PROBE_ABSENT, NULL, CFOIL_VERDICT_IN_PROGRESS);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void unclear_clears_the_mark_and_keeps_the_doubt(void **state)
{
    struct world world;
    struct caller prober = {0};
    struct cfoil_record before;
    struct cfoil_record after;
    static const uint8_t none[CFOIL_OWNER_BYTES];

    (void)state;
    world_open(&world, true);
    start_probe(&world, &prober, CFOIL_CAUSE_TIMEOUT);
    (void)world_state(&world, 1, &before);
    assert_int_not_equal(before.at_ms[CFOIL_TIME_IN_DOUBT_SINCE], 0);
    world_advance(&world, 100);
    report(&world, &prober, CFOIL_PROBE_UNCLEAR, NULL, CFOIL_VERDICT_OUTCOME_UNKNOWN);
    assert_int_equal(world_state(&world, 1, &after), CFOIL_STATE_IN_DOUBT);
    assert_memory_equal(after.prober, none, CFOIL_OWNER_BYTES);
    assert_int_equal(after.at_ms[CFOIL_TIME_IN_DOUBT_SINCE],
                     before.at_ms[CFOIL_TIME_IN_DOUBT_SINCE]);
    assert_memory_equal(after.owner, before.owner, CFOIL_OWNER_BYTES);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

/* A probe is not a takeover: the owner was only slow. */
static void slow_owner_settles_while_a_probe_is_out(void **state)
{
    struct world world;
    struct caller slow = {0};
    struct caller prober = {0};
    struct cfoil_begin_request request = probing_request();

    (void)state;
    world_open(&world, true);
    caller_asks(&world, &slow, &request, CFOIL_VERDICT_EXECUTE);
    world.store_ms += WORLD_LEASE_MS;
    caller_asks(&world, &prober, &request, CFOIL_VERDICT_PROBE);
    assert_int_equal(caller_settle(&slow, CFOIL_STATE_SUCCEEDED, "slow"), CFOIL_OK);
    world_turn(&world);
    assert_int_equal(slow.status, CFOIL_SETTLE_DURABLE);
    report(&world, &prober, CFOIL_PROBE_FOUND, "probe", CFOIL_VERDICT_REPLAY);
    const struct cfoil_record *record = caller_result(&prober)->record;
    assert_true(cfoil_bytes_equal(record->snapshot.body, cfoil_bytes_text("slow")));
    assert_true(world_has_body(&world, 1, "slow"));
    caller_free(&slow, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

/* The owner's renewal comes through the mark; the prober is told that somebody executes. */
static void slow_owner_renews_while_a_probe_is_out(void **state)
{
    struct world world;
    struct caller slow = {0};
    struct caller prober = {0};
    struct cfoil_begin_request request = probing_request();

    (void)state;
    world_open(&world, true);
    caller_asks(&world, &slow, &request, CFOIL_VERDICT_EXECUTE);
    world.store_ms += WORLD_LEASE_MS;
    caller_asks(&world, &prober, &request, CFOIL_VERDICT_PROBE);
    world_advance(&world, WORLD_LEASE_MS / 3);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
    report(&world, &prober, CFOIL_PROBE_ABSENT, NULL, CFOIL_VERDICT_IN_PROGRESS);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    assert_int_equal(caller_settle(&slow, CFOIL_STATE_SUCCEEDED, "slow"), CFOIL_OK);
    world_turn(&world);
    assert_true(world_has_body(&world, 1, "slow"));
    caller_free(&slow, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void dead_prober_is_replaced_when_its_lease_is_over(void **state)
{
    struct world world;
    struct caller dead = {0};
    struct caller prober = {0};
    struct cfoil_begin_request request = probing_request();

    (void)state;
    world_open(&world, true);
    start_probe(&world, &dead, CFOIL_CAUSE_TIMEOUT);
    world_advance(&world, WORLD_PROBE_MS);
    caller_asks(&world, &prober, &request, CFOIL_VERDICT_PROBE);
    report(&world, &dead, CFOIL_PROBE_UNCLEAR, NULL, CFOIL_VERDICT_IN_PROGRESS);
    report(&world, &prober, CFOIL_PROBE_FOUND, "order", CFOIL_VERDICT_REPLAY);
    caller_free(&dead, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

static void freed_prober_clears_its_mark(void **state)
{
    struct world world;
    struct caller prober = {0};
    struct cfoil_begin_request request = probing_request();

    (void)state;
    world_open(&world, true);
    start_probe(&world, &prober, CFOIL_CAUSE_TIMEOUT);
    caller_free(&prober, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_OWNER_LOST);
    world_turn(&world);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_IN_DOUBT);
    caller_asks(&world, &prober, &request, CFOIL_VERDICT_PROBE);
    caller_free(&prober, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_OWNER_LOST);
    world_turn(&world);
    world_close(&world);
}

/* The record moved on while the prober was away: leaving must not claim, execute or doubt it. */
static void freed_prober_does_not_claim_what_the_record_became(void **state)
{
    struct world world;
    struct caller prober = {0};
    struct cfoil_begin_request request = probing_request();
    struct cfoil_op op = {.kind = CFOIL_OP_GET};
    struct cfoil_draft draft = {0};
    struct cfoil_record after;

    (void)state;
    world_open(&world, true);
    start_probe(&world, &prober, CFOIL_CAUSE_TIMEOUT);
    assert_true(script_read(world.script, request.id, &op, &draft.record));
    draft.record.generation++;
    draft.record.state = CFOIL_STATE_FAILED;
    memset(draft.record.owner, 9, CFOIL_OWNER_BYTES);
    memset(draft.record.prober, 0, CFOIL_OWNER_BYTES);
    script_write(world.script, request.id, &draft);
    cfoil_op_free_current(&op);
    caller_free(&prober, CFOIL_STATE_IN_DOUBT, CFOIL_CAUSE_OWNER_LOST);
    world_advance(&world, 1000);
    assert_int_equal(world_state(&world, 1, &after), CFOIL_STATE_FAILED);
    assert_int_equal(after.attempt, 1);
    assert_int_equal(after.generation, draft.record.generation);
    world_close(&world);
}

static void freed_prober_leaves_a_forgotten_key_unknown(void **state)
{
    struct world world;
    struct caller prober = {0};
    struct cfoil_begin_request request = probing_request();

    (void)state;
    world_open(&world, true);
    start_probe(&world, &prober, CFOIL_CAUSE_TIMEOUT);
    script_remove(world.script, request.id);
    caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_advance(&world, 1000);
    assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_ABSENT);
    world_close(&world);
}

static void prober_freed_while_its_report_is_out_leaves_no_mark(void **state)
{
    static const enum cfoil_probe_answer answers[] = {CFOIL_PROBE_FOUND, CFOIL_PROBE_ABSENT,
                                                      CFOIL_PROBE_UNCLEAR};
    static const enum cfoil_state states[] = {CFOIL_STATE_SUCCEEDED, CFOIL_STATE_FAILED,
                                              CFOIL_STATE_IN_DOUBT};
    static const uint8_t none[CFOIL_OWNER_BYTES];
    struct world world;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct caller prober = {0};
        struct cfoil_record record;
        world_open(&world, true);
        start_probe(&world, &prober, CFOIL_CAUSE_BACKEND_CLOSED);
        assert_int_equal(caller_probe(&prober, answers[i], "order"), CFOIL_OK);
        caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_turn(&world);
        assert_int_equal(prober.answered, 1);
        assert_int_equal(world_state(&world, 1, &record), states[i]);
        assert_memory_equal(record.prober, none, CFOIL_OWNER_BYTES);
        world_close(&world);
    }
}

static void report_without_a_probe_is_invalid(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_probe(&caller, CFOIL_PROBE_ABSENT, NULL), CFOIL_E_INVALID);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    start_probe(&world, &caller, CFOIL_CAUSE_TIMEOUT);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_E_INVALID);
    assert_int_equal(caller_probe(&caller, CFOIL_PROBE_UNCLEAR, NULL), CFOIL_OK);
    assert_int_equal(caller_probe(&caller, CFOIL_PROBE_UNCLEAR, NULL), CFOIL_E_INVALID);
    world_turn(&world);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_close(&world);
}

/* "Not found" took the record over, but nobody heard: it may not stay PROCESSING (R12). */
static void lost_report_of_an_absent_order_is_withdrawn(void **state)
{
    static const enum script_act acts[] = {SCRIPT_LOSE_AFTER, SCRIPT_DELAY};
    struct world world;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct caller prober = {0};
        world_open(&world, true);
        start_probe(&world, &prober, CFOIL_CAUSE_BACKEND_CLOSED);
        script_add(world.script, SCRIPT_GET, SCRIPT_PASS, 1, CFOIL_OK);
        script_add(world.script, SCRIPT_CAS, acts[i], 1, CFOIL_OK);
        script_add(world.script, SCRIPT_ANY, SCRIPT_FAIL, SCRIPT_ALWAYS, CFOIL_E_STORE_UNAVAILABLE);
        assert_int_equal(caller_probe(&prober, CFOIL_PROBE_ABSENT, NULL), CFOIL_OK);
        world_turn(&world);
        assert_int_not_equal(caller_result(&prober)->error, CFOIL_OK);
        script_clear(world.script);
        caller_free(&prober, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        world_advance(&world, 10000);
        assert_int_equal(script_release(world.script), 0);
        assert_int_not_equal(world_state(&world, 1, NULL), CFOIL_STATE_PROCESSING);
        world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_probes_and_the_rest_wait),
        cmocka_unit_test(found_is_settled_and_replayed_to_everybody),
        cmocka_unit_test(absent_after_a_timeout_is_not_trusted_before_its_time),
        cmocka_unit_test(absent_after_a_reset_executes_at_once),
        cmocka_unit_test(absence_is_judged_by_when_the_backend_was_asked),
        cmocka_unit_test(unclear_clears_the_mark_and_keeps_the_doubt),
        cmocka_unit_test(slow_owner_settles_while_a_probe_is_out),
        cmocka_unit_test(slow_owner_renews_while_a_probe_is_out),
        cmocka_unit_test(dead_prober_is_replaced_when_its_lease_is_over),
        cmocka_unit_test(freed_prober_clears_its_mark),
        cmocka_unit_test(freed_prober_does_not_claim_what_the_record_became),
        cmocka_unit_test(freed_prober_leaves_a_forgotten_key_unknown),
        cmocka_unit_test(prober_freed_while_its_report_is_out_leaves_no_mark),
        cmocka_unit_test(report_without_a_probe_is_invalid),
        cmocka_unit_test(lost_report_of_an_absent_order_is_withdrawn),
    };
    return cmocka_run_group_tests_name("engine/probe", tests, NULL, NULL);
}
