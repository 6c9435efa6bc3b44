/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once: callers on few keys over a store that loses, delays, fails and races, with
 * clocks running and claims freed at any moment. Backends are counted, not answers.
 *
 * Under in_doubt: hold and without an operator, whatever the store does:
 *   R1   never two callers at once that were told to execute one key and are not done with it;
 *   R5   after a durable success nobody executes that key again, and every replay is that answer;
 *   R8   when the store serves again everything ends: nothing is busy, nothing is PROCESSING;
 *   R12  what was delayed and arrives after that changes nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "world.h"

#define KEYS        3
#define CALLERS     10
#define STEPS       400
#define RUNS        300
#define PASS_MS_MAX 2500

struct player {
    struct caller caller;
    unsigned key;
    unsigned body; /* of its answer; 0: none given */
    bool counted;  /* its verdict was looked at */
    bool executing;
    bool settling;
};

struct chaos {
    struct world world;
    struct player players[CALLERS];
    unsigned executing[KEYS];
    unsigned durable[KEYS]; /* the body that succeeded; 0: none yet */
    unsigned bodies;
    unsigned executions;
    uint64_t random;
};

static unsigned roll(struct chaos *chaos, unsigned sides)
{
    chaos->random ^= chaos->random << 13;
    chaos->random ^= chaos->random >> 7;
    chaos->random ^= chaos->random << 17;
    return (unsigned)((chaos->random >> 11) % sides);
}

static void check_replay(const struct chaos *chaos, const struct player *player)
{
    const struct cfoil_record *record = caller_result(&player->caller)->record;
    char body[16];

    snprintf(body, sizeof(body), "%u", chaos->durable[player->key]);
    if (chaos->durable[player->key] != 0) {
        assert_true(cfoil_bytes_equal(record->snapshot.body, cfoil_bytes_text(body)));
    }
}

static void note_verdict(struct chaos *chaos, struct player *player)
{
    if (player->counted || (!player->caller.ready && player->caller.answered == 0)) {
        return;
    }
    player->counted = true;
    enum cfoil_verdict verdict = caller_result(&player->caller)->verdict;
    if (verdict == CFOIL_VERDICT_REPLAY) {
        check_replay(chaos, player);
    }
    if (verdict == CFOIL_VERDICT_EXECUTE) {
        assert_int_equal(chaos->durable[player->key], 0);
        assert_int_equal(chaos->executing[player->key], 0);
        chaos->executing[player->key] = 1;
        chaos->executions++;
        player->executing = true;
    }
}

static void note_settled(struct chaos *chaos, struct player *player)
{
    if (!player->settling || player->caller.settled == 0) {
        return;
    }
    player->settling = false;
    if (player->caller.status == CFOIL_SETTLE_DURABLE && player->body != 0) {
        assert_int_equal(chaos->durable[player->key], 0);
        chaos->durable[player->key] = player->body;
    }
}

static void look_around(struct chaos *chaos)
{
    for (size_t i = 0; i < CALLERS; i++) {
        if (chaos->players[i].caller.claim != NULL) {
            note_settled(chaos, &chaos->players[i]);
        }
    }
    for (size_t i = 0; i < CALLERS; i++) {
        if (chaos->players[i].caller.claim != NULL) {
            note_verdict(chaos, &chaos->players[i]);
        }
    }
}

static void enter(struct chaos *chaos, struct player *player)
{
    memset(player, 0, sizeof(*player));
    player->key = roll(chaos, KEYS);
    struct cfoil_begin_request request = world_request(player->key, 0);
    request.terms.failed_ms = WORLD_TTL_MS;
    caller_begin(&chaos->world, &player->caller, &request);
}

static void done_executing(struct chaos *chaos, struct player *player)
{
    if (player->executing) {
        chaos->executing[player->key] = 0;
        player->executing = false;
    }
}

/* Only what was told to execute is settled here: an unprotected execution breaks R1 by design. */
static void settle(struct chaos *chaos, struct player *player)
{
    enum cfoil_state outcome = roll(chaos, 8) == 0 ? CFOIL_STATE_SUCCEEDED : CFOIL_STATE_FAILED;
    char body[16];

    player->body = outcome == CFOIL_STATE_SUCCEEDED ? ++chaos->bodies : 0;
    snprintf(body, sizeof(body), "%u", player->body);
    assert_int_equal(caller_settle(&player->caller, outcome, body), CFOIL_OK);
    player->settling = true;
    done_executing(chaos, player);
}

/* A host that leaves before its settle is confirmed does not know whether it became durable. */
static void leave(struct chaos *chaos, struct player *player)
{
    done_executing(chaos, player);
    caller_free(&player->caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
}

static void play(struct chaos *chaos)
{
    struct player *player = &chaos->players[roll(chaos, CALLERS)];

    if (player->caller.claim == NULL) {
        enter(chaos, player);
    } else if (player->executing && roll(chaos, 4) != 0) {
        settle(chaos, player);
    } else {
        leave(chaos, player);
    }
}

static void disturb(struct chaos *chaos)
{
    static const enum script_act acts[] = {SCRIPT_LOSE_AFTER, SCRIPT_LOSE_BEFORE, SCRIPT_DELAY,
                                           SCRIPT_FAIL, SCRIPT_RACE};
    enum script_kind kind = (enum script_kind)roll(chaos, 3);
    enum script_act act = acts[roll(chaos, 5)];

    if (roll(chaos, 2) == 0) {
        script_clear(chaos->world.script);
    }
    if (roll(chaos, 4) == 0) {
        (void)script_release(chaos->world.script);
    }
    if (roll(chaos, 3) == 0) {
        script_clear(chaos->world.script);
        script_add(chaos->world.script, kind == SCRIPT_GET ? SCRIPT_CAS : kind, act,
                   1 + roll(chaos, 6), CFOIL_E_STORE_UNAVAILABLE);
    }
}

/* A little at a time, so that claims are freed and clocks run while operations are in flight. */
static void serve(struct chaos *chaos)
{
    struct world *world = &chaos->world;

    switch (roll(chaos, 4)) {
    case 0:
        world_turn(world);
        break;
    case 1:
        world_advance(world, roll(chaos, PASS_MS_MAX));
        break;
    default:
        cfoil_engine_flush(world->engine);
        world->may_call_back = true;
        cfoil_engine_poll(world->engine);
        world->may_call_back = false;
        break;
    }
}

static void come_to_rest(struct chaos *chaos)
{
    struct world *world = &chaos->world;

    for (size_t i = 0; i < CALLERS; i++) {
        if (chaos->players[i].caller.claim != NULL) {
            leave(chaos, &chaos->players[i]);
        }
    }
    script_clear(world->script);
    world_advance(world, 2 * CFOIL_BACKGROUND_RETRY_MAX_MS);
    assert_int_equal(cfoil_engine_busy(world->engine), 0);
    for (int late = 0; late < 2; late++) {
        for (unsigned key = 0; key < KEYS; key++) {
            assert_int_not_equal(world_state(world, key, NULL), CFOIL_STATE_PROCESSING);
            if (chaos->durable[key] != 0) {
                assert_int_equal(world_state(world, key, NULL), CFOIL_STATE_SUCCEEDED);
            }
        }
        assert_int_equal(script_release(world->script), 0);
    }
    world_close(world);
}

static void nothing_the_store_does_executes_twice(void **state)
{
    static struct chaos chaos;
    unsigned durable = 0;
    unsigned executions = 0;

    (void)state;
    for (uint64_t run = 1; run <= RUNS; run++) {
        memset(&chaos, 0, sizeof(chaos));
        chaos.random = run * 0x9e3779b97f4a7c15ULL;
        print_message("# seed %llu\n", (unsigned long long)run);
        world_open(&chaos.world, run % 2 == 0);
        for (int step = 0; step < STEPS; step++) {
            play(&chaos);
            disturb(&chaos);
            serve(&chaos);
            look_around(&chaos);
        }
        for (unsigned key = 0; key < KEYS; key++) {
            durable += chaos.durable[key] != 0;
        }
        executions += chaos.executions;
        come_to_rest(&chaos);
    }
    /* A run in which nothing ever succeeds would prove nothing. */
    print_message("# %u executions, %u keys succeeded\n", executions, durable);
    assert_true(durable > RUNS && executions > 5 * RUNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_the_store_does_executes_twice),
    };
    return cmocka_run_group_tests_name("engine/chaos", tests, NULL, NULL);
}
