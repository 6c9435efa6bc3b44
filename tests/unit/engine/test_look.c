/* SPDX-License-Identifier: Apache-2.0 */
/* A look for those who wait: one operation at most, nothing claimed, the store's clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

struct watcher {
    struct world *world;
    size_t told;
    struct cfoil_glance glance;
};

static void on_glance(void *context, const struct cfoil_glance *glance)
{
    struct watcher *watcher = context;

    assert_true(watcher->world->may_call_back);
    watcher->told++;
    watcher->glance = *glance;
}

/* Looks and lets the store work. With a look-up no operation is needed, else exactly one. */
static struct cfoil_glance look(struct world *world, bool at_once)
{
    struct watcher watcher = {.world = world};
    uint8_t id[CFOIL_ID_BYTES];
    bool ready = !at_once;

    world_id(id, 1);
    (void)script_seen(world->script);
    assert_int_equal(cfoil_look(world->engine, id, on_glance, &watcher, &watcher.glance, &ready),
                     CFOIL_OK);
    assert_int_equal(ready, at_once);
    world_turn(world);
    assert_int_equal(watcher.told, at_once ? 0 : 1);
    assert_int_equal(script_seen(world->script), at_once ? 0 : 1);
    assert_int_equal(cfoil_engine_busy(world->engine), 0);
    return watcher.glance;
}

static void expect(struct world *world, bool at_once, enum cfoil_state state, bool running)
{
    struct cfoil_glance glance = look(world, at_once);

    assert_int_equal(glance.error, CFOIL_OK);
    assert_int_equal(glance.state, state);
    assert_int_equal(glance.running, running);
}

static void states_are_seen_and_nothing_is_claimed(void **state)
{
    (void)state;
    for (int at_once = 0; at_once < 2; at_once++) {
        struct world world;
        struct caller caller = {0};
        world_open(&world, at_once != 0);
        expect(&world, at_once != 0, CFOIL_STATE_ABSENT, false);
        assert_int_equal(world_state(&world, 1, NULL), CFOIL_STATE_ABSENT);
        caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
        expect(&world, at_once != 0, CFOIL_STATE_PROCESSING, true);
        assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, "x"), CFOIL_OK);
        world_turn(&world);
        caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        expect(&world, at_once != 0, CFOIL_STATE_SUCCEEDED, false);
        assert_int_equal(world_stats(&world).begun, 1);
        assert_int_equal(world_stats(&world).looked, 3);
        world_close(&world);
    }
}

static void a_lease_that_is_over_does_not_run(void **state)
{
    struct world world;
    struct caller caller = {0};

    (void)state;
    world_open(&world, true);
    caller_claims(&world, &caller, 1, CFOIL_VERDICT_EXECUTE);
    world.store_ms += WORLD_LEASE_MS - 1;
    expect(&world, true, CFOIL_STATE_PROCESSING, true);
    world.store_ms += 1;
    expect(&world, true, CFOIL_STATE_IN_DOUBT, false);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

static void a_probe_runs_as_long_as_its_mark(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_begin_request request = world_request(1, 0);

    (void)state;
    request.terms.in_doubt = CFOIL_IN_DOUBT_PROBE;
    world_open(&world, true);
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_IN_DOUBT, NULL), CFOIL_OK);
    world_turn(&world);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    expect(&world, true, CFOIL_STATE_IN_DOUBT, false);
    caller_asks(&world, &caller, &request, CFOIL_VERDICT_PROBE);
    expect(&world, true, CFOIL_STATE_IN_DOUBT, true);
    world.store_ms += WORLD_PROBE_MS - 1;
    expect(&world, true, CFOIL_STATE_IN_DOUBT, true);
    world.store_ms += 1;
    expect(&world, true, CFOIL_STATE_IN_DOUBT, false);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    world_close(&world);
}

/* A second key's record only says whose end it waits for. */
static void an_alias_is_followed_to_its_primary(void **state)
{
    struct world world;
    struct caller caller = {0};
    struct cfoil_draft alias = {.record = {.generation = 5,
                                           .state = CFOIL_STATE_SUCCEEDED,
                                           .form = CFOIL_FORM_ALIAS,
                                           .owner = {1}}};
    uint8_t id[CFOIL_ID_BYTES];

    (void)state;
    world_open(&world, true);
    world_id(alias.record.target, 2);
    alias.record.at_ms[CFOIL_TIME_REPLAY_UNTIL] = world.store_ms + WORLD_TTL_MS;
    alias.record.at_ms[CFOIL_TIME_GONE_AT] = world.store_ms + WORLD_TTL_MS;
    world_id(id, 1);
    script_write(world.script, id, &alias);
    expect(&world, true, CFOIL_STATE_ABSENT, false);
    caller_claims(&world, &caller, 2, CFOIL_VERDICT_EXECUTE);
    expect(&world, true, CFOIL_STATE_PROCESSING, true);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    world_turn(&world);
    expect(&world, true, CFOIL_STATE_FAILED, false);
    world_close(&world);
}

static void a_store_that_fails_is_an_error_and_no_state(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, false);
    script_add(world.script, SCRIPT_GET, SCRIPT_FAIL, 1, CFOIL_E_STORE_UNAVAILABLE);
    struct cfoil_glance glance = look(&world, false);
    assert_int_equal(glance.error, CFOIL_E_STORE_UNAVAILABLE);
    assert_false(glance.running);
    world_close(&world);
}

static void an_engine_may_be_freed_while_somebody_looks(void **state)
{
    struct world world;
    struct watcher watcher = {.world = &world};
    uint8_t id[CFOIL_ID_BYTES];
    bool ready = true;

    (void)state;
    world_open(&world, false);
    world_id(id, 1);
    assert_int_equal(cfoil_look(world.engine, id, on_glance, &watcher, &watcher.glance, &ready),
                     CFOIL_OK);
    assert_false(ready);
    assert_int_equal(cfoil_engine_busy(world.engine), 1);
    cfoil_engine_flush(world.engine);
    cfoil_engine_free(world.engine);
    cfoil_lane_close(world.lane);
    assert_int_equal(watcher.told, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_seen_and_nothing_is_claimed),
        cmocka_unit_test(a_lease_that_is_over_does_not_run),
        cmocka_unit_test(a_probe_runs_as_long_as_its_mark),
        cmocka_unit_test(an_alias_is_followed_to_its_primary),
        cmocka_unit_test(a_store_that_fails_is_an_error_and_no_state),
        cmocka_unit_test(an_engine_may_be_freed_while_somebody_looks),
    };
    return cmocka_run_group_tests_name("engine/look", tests, NULL, NULL);
}
