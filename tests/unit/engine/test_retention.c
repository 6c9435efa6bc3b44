/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention from the policy file to the verdict, on a clock that only the test moves: the first
 * request, five seconds later, +50 h, +72 h, the end at the millisecond, the tombstone, a new life;
 * for every outcome and for both ways of writing it. Nothing sweeps here: what is over is over (R9).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/policy.h"
#include "world.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static const char by_ttl[] = "version: 1\n"
                             "routes:\n"
                             "  - match: POST /x\n"
                             "    retention: {ttl: 73h, tombstone: 7d, failed: 10m}\n";
static const char by_sum[] =
    "version: 1\n"
    "routes:\n"
    "  - match: POST /x\n"
    "    retention: {retry_window: 24h, delay_bound: 1h, observation: 48h, tombstone: 7d,\n"
    "                failed: 10m}\n";
static const char *const spellings[] = {by_ttl, by_sum};

static struct cfoil_begin_request request_of(const char *text)
{
    static struct cfoil_policy_problems problems;
    struct cfoil_policy *policy = NULL;
    struct cfoil_begin_request request = world_request(1, 0);

    assert_int_equal(cfoil_policy_load_text(cfoil_bytes_text(text), &policy, &problems), CFOIL_OK);
    request.terms = cfoil_policy_route(policy, 0)->terms;
    cfoil_policy_free(policy);
    return request;
}

/* Executes for 3 s and settles. Returns the store time of the settle. */
static int64_t executes(struct world *world, const struct cfoil_begin_request *request,
                        enum cfoil_state outcome, unsigned attempt)
{
    struct caller caller = {0};

    caller_asks(world, &caller, request, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_result(&caller)->attempt, attempt);
    world_advance(world, 3 * SECOND);
    assert_int_equal(caller_settle(&caller, outcome, "answer"), CFOIL_OK);
    world_turn(world);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    return world->store_ms;
}

static void gets_at(struct world *world, const struct cfoil_begin_request *request, int64_t at_ms,
                    enum cfoil_verdict verdict)
{
    struct caller caller = {0};

    world_advance(world, at_ms - world->store_ms);
    assert_int_equal(world->store_ms, at_ms);
    caller_asks(world, &caller, request, verdict);
    if (verdict == CFOIL_VERDICT_REPLAY) {
        assert_true(cfoil_bytes_equal(caller_result(&caller)->record->snapshot.body,
                                      cfoil_bytes_text("answer")));
    }
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
}

static void plays(const char *text, enum cfoil_state outcome, enum cfoil_verdict meanwhile)
{
    struct world world;
    struct cfoil_begin_request request = request_of(text);

    world_open(&world, true);
    int64_t first_ms = world.store_ms;
    int64_t settled_ms = executes(&world, &request, outcome, 1);
    gets_at(&world, &request, first_ms + 5 * SECOND, meanwhile);
    gets_at(&world, &request, first_ms + 50 * HOUR, meanwhile);
    gets_at(&world, &request, first_ms + 72 * HOUR, meanwhile);
    gets_at(&world, &request, settled_ms + 73 * HOUR - 1, meanwhile);
    gets_at(&world, &request, settled_ms + 73 * HOUR, CFOIL_VERDICT_KEY_EXPIRED);
    gets_at(&world, &request, settled_ms + 73 * HOUR + 7 * DAY - 1, CFOIL_VERDICT_KEY_EXPIRED);
    world_advance(&world, 1);
    (void)executes(&world, &request, CFOIL_STATE_SUCCEEDED, 1);
    gets_at(&world, &request, world.store_ms + 5 * SECOND, CFOIL_VERDICT_REPLAY);
    world_close(&world);
}

static void a_success_is_replayed_then_known_then_forgotten(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        plays(spellings[i], CFOIL_STATE_SUCCEEDED, CFOIL_VERDICT_REPLAY);
    }
}

static void so_is_a_final_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        plays(spellings[i], CFOIL_STATE_FAILED_FINAL, CFOIL_VERDICT_REPLAY);
    }
}

static void what_is_in_doubt_takes_the_same_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        plays(spellings[i], CFOIL_STATE_IN_DOUBT, CFOIL_VERDICT_OUTCOME_UNKNOWN);
    }
}

/* Of a failure the attempt is remembered for `failed` after each of them, and there is no tombstone. */
static void a_failure_is_forgotten_after_its_own_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world world;
        struct cfoil_begin_request request = request_of(spellings[i]);

        world_open(&world, true);
        int64_t first_ms = world.store_ms;
        (void)executes(&world, &request, CFOIL_STATE_FAILED, 1);
        world_advance(&world, first_ms + 5 * SECOND - world.store_ms);
        (void)executes(&world, &request, CFOIL_STATE_FAILED, 2);
        world_advance(&world, 10 * MINUTE - 1);
        (void)executes(&world, &request, CFOIL_STATE_FAILED, 3);
        world_advance(&world, 10 * MINUTE);
        (void)executes(&world, &request, CFOIL_STATE_FAILED, 1);
        world_advance(&world, first_ms + 50 * HOUR - world.store_ms);
        (void)executes(&world, &request, CFOIL_STATE_FAILED, 1);
        world_advance(&world, first_ms + 72 * HOUR - world.store_ms);
        (void)executes(&world, &request, CFOIL_STATE_SUCCEEDED, 1);
        gets_at(&world, &request, world.store_ms + 73 * HOUR - 1, CFOIL_VERDICT_REPLAY);
        gets_at(&world, &request, world.store_ms + 1, CFOIL_VERDICT_KEY_EXPIRED);
        world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_success_is_replayed_then_known_then_forgotten),
        cmocka_unit_test(so_is_a_final_failure),
        cmocka_unit_test(what_is_in_doubt_takes_the_same_way),
        cmocka_unit_test(a_failure_is_forgotten_after_its_own_time),
    };
    return cmocka_run_group_tests_name("engine/retention", tests, NULL, NULL);
}
