/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop a host writes: poll(2) on the engine's descriptor with its due time as time-out, over a
 * lane with its thread and the system's clocks. Built with ThreadSanitizer it also shows that no
 * operation is touched while the lane's thread has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdlib.h>

#include "world.h"

#define GUESTS    200
#define SHORT_MS  30 /* a lease so short that renewals and settles meet */
#define TURNS_MAX 100000

struct guest {
    struct cfoil_claim *claim;
    unsigned *left;
    bool executes;
    bool settled;
};

static void on_settled(void *context, struct cfoil_claim *claim, enum cfoil_settle_status status)
{
    struct guest *guest = context;

    assert_int_equal(status, CFOIL_SETTLE_DURABLE);
    assert_ptr_equal(claim, guest->claim);
    guest->settled = true;
    cfoil_claim_free(claim, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    (*guest->left)--;
}

static void on_answer(void *context, struct cfoil_claim *claim)
{
    struct guest *guest = context;

    assert_int_equal(cfoil_claim_result(claim)->error, CFOIL_OK);
    guest->executes = cfoil_claim_result(claim)->verdict == CFOIL_VERDICT_EXECUTE;
    if (!guest->executes) {
        cfoil_claim_free(claim, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        (*guest->left)--;
    }
}

/* Settles some per turn once everybody was renewed about twice, so that the two meet. */
static void settle_some(struct cfoil_engine *engine, struct guest *guests, int turn)
{
    struct cfoil_ending ending = {.outcome = CFOIL_STATE_SUCCEEDED};
    struct cfoil_engine_stats stats;

    cfoil_engine_read_stats(engine, &stats);
    if (stats.renewed < GUESTS) {
        return;
    }
    for (int i = 0; i < GUESTS; i++) {
        if (guests[i].executes && i % 40 == turn % 40) {
            guests[i].executes = false;
            assert_int_equal(cfoil_settle(guests[i].claim, &ending, on_settled, &guests[i]),
                             CFOIL_OK);
        }
    }
}

static int wait_ms(const struct cfoil_engine *engine)
{
    int64_t due_ms = cfoil_engine_due_ms(engine);
    return due_ms < 0 || due_ms > 5 ? 5 : (int)due_ms;
}

static void run_loop(struct cfoil_engine *engine, struct guest *guests, const unsigned *left)
{
    struct pollfd wait = {.fd = cfoil_engine_fd(engine), .events = POLLIN};

    for (int turn = 0; *left > 0 || cfoil_engine_busy(engine) > 0; turn++) {
        assert_true(turn < TURNS_MAX);
        settle_some(engine, guests, turn);
        cfoil_engine_tick(engine);
        cfoil_engine_flush(engine);
        if (poll(&wait, 1, wait_ms(engine)) > 0) {
            cfoil_engine_poll(engine);
        }
    }
}

static void many_claims_through_a_thread_and_a_descriptor(void **state)
{
    struct cfoil_lane_options lane_options = {
        .store = {.url = "memory:", .mode = CFOIL_OPEN_CREATE}};
    struct cfoil_engine_options options = {0};
    struct cfoil_engine *engine = NULL;
    struct guest guests[GUESTS] = {0};
    unsigned left = GUESTS;

    (void)state;
    assert_int_equal(cfoil_lane_open(&lane_options, &options.lane, NULL, 0), CFOIL_OK);
    assert_int_equal(cfoil_engine_create(&options, &engine), CFOIL_OK);
    for (unsigned i = 0; i < GUESTS; i++) {
        struct cfoil_begin_request request = world_request(i % (GUESTS / 2), 0);
        bool ready = false;
        request.terms.lease_ms = SHORT_MS;
        guests[i].left = &left;
        assert_int_equal(
            cfoil_begin(engine, &request, on_answer, &guests[i], &guests[i].claim, &ready),
            CFOIL_OK);
        assert_false(ready);
    }
    run_loop(engine, guests, &left);
    struct cfoil_engine_stats stats;
    cfoil_engine_read_stats(engine, &stats);
    assert_int_equal(stats.verdicts[CFOIL_VERDICT_EXECUTE], GUESTS / 2);
    assert_int_equal(stats.settled, GUESTS / 2);
    assert_int_equal(stats.settle_refused, 0);
    assert_true(stats.renewed > 0);
    cfoil_engine_free(engine);
    cfoil_lane_close(options.lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_claims_through_a_thread_and_a_descriptor),
    };
    return cmocka_run_group_tests_name("engine/thread", tests, NULL, NULL);
}
