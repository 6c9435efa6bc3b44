/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaving a lane whose store hangs: it is given up in time and with everything in its place, so that
 * the thread may come back at any moment.
 *
 * The store of these cases is the chosen one, which waits in apply, or before it in reserve, until it
 * is told to go on. Invariant: whoever reads `entered` knows that the thread stands there.
 */
#include "lane_fixture.h"

#include <unistd.h>

#define SHORT_MS 20

static int entered[2];
static int go_on[2];

static void hang(void)
{
    char byte = 0;

    assert_int_equal(write(entered[1], &byte, 1), 1);
    assert_int_equal(read(go_on[0], &byte, 1), 1);
}

static void wait_until_it_hangs(void)
{
    char byte;
    assert_int_equal(read(entered[0], &byte, 1), 1);
}

static void let_it_go_on(void)
{
    assert_int_equal(write(go_on[1], "", 1), 1);
}

/* An empty batch is the look of an idle lane at its store. */
static enum cfoil_error hang_in_apply(struct cfoil_store *store, struct cfoil_op **ops,
                                      size_t count)
{
    if (count > 0) {
        hang();
    }
    return contract_chosen()->ops->apply(store, ops, count);
}

static void hang_in_reserve(struct cfoil_store *store)
{
    hang();
    if (contract_chosen()->ops->reserve != NULL) {
        contract_chosen()->ops->reserve(store);
    }
}

static void release_what_was_reserved(struct cfoil_store *store)
{
    if (contract_chosen()->ops->release != NULL) {
        contract_chosen()->ops->release(store);
    }
}

static void open_lane(struct lane_case *lane, struct contract *contract,
                      const struct cfoil_store_ops *ops)
{
    assert_int_equal(pipe(entered), 0);
    assert_int_equal(pipe(go_on), 0);
    contract->ops = ops;
    lane_case_open(lane, contract, CFOIL_OPEN_CREATE);
}

static void close_pipes(struct contract *contract)
{
    contract->ops = contract_chosen()->ops;
    for (size_t i = 0; i < 2; i++) {
        (void)close(entered[i]);
        (void)close(go_on[i]);
    }
}

static void submit(struct lane_case *lane, struct cfoil_op *op)
{
    lane_case_adopt(lane, op);
    cfoil_lane_submit(lane->lane, op);
    cfoil_lane_flush(lane->lane);
}

static void a_store_that_hangs_is_left_with_everything_in_its_place(void **state)
{
    struct cfoil_store_ops hanging = *contract_chosen()->ops;
    struct lane_case lane;
    struct cfoil_bytes draft = contract_draft(*state, 7, 0, 100);
    struct cfoil_op ops[] = {contract_cas_op(1, 0, draft), contract_cas_op(2, 0, draft)};

    hanging.reserve = NULL;
    hanging.apply = hang_in_apply;
    open_lane(&lane, *state, &hanging);
    submit(&lane, &ops[0]);
    wait_until_it_hangs();
    submit(&lane, &ops[1]);
    assert_false(cfoil_lane_leave(lane.lane, SHORT_MS));
    assert_int_equal(lane.done_count, 0);
    assert_int_equal(ops[0].status, CFOIL_OP_PENDING);
    assert_int_equal(ops[1].status, CFOIL_OP_PENDING);

    /* The thread comes back and finds what it left; what it had not begun, it does not begin. */
    let_it_go_on();
    assert_true(cfoil_lane_leave(lane.lane, LANE_WAIT_MS));
    assert_int_equal(lane.done_count, 2);
    assert_applied(&ops[0]);
    assert_failed(&ops[1], CFOIL_E_CLOSING);
    close_pipes(*state);
}

static void a_write_lock_that_is_waited_for_is_left_too(void **state)
{
    struct cfoil_store_ops hanging = *contract_chosen()->ops;
    struct lane_case lane;
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(*state, 7, 0, 100));

    hanging.reserve = hang_in_reserve;
    hanging.release = release_what_was_reserved;
    open_lane(&lane, *state, &hanging);
    submit(&lane, &op);
    wait_until_it_hangs();
    assert_false(cfoil_lane_leave(lane.lane, SHORT_MS));
    assert_int_equal(lane.done_count, 0);
    let_it_go_on();
    assert_true(cfoil_lane_leave(lane.lane, LANE_WAIT_MS));
    assert_failed(&op, CFOIL_E_CLOSING);
    close_pipes(*state);
    assert_int_equal(contract_open(*state, CFOIL_OPEN_CREATE), CFOIL_OK);
    assert_get_absent(*state, 1);
    contract_claim(*state, 1, 8, 0); /* the lock was given back */
}

static void a_store_that_answers_is_left_as_it_is_closed(void **state)
{
    struct lane_case lane;
    struct cfoil_op ops[] = {contract_get_op(1), contract_get_op(2)};

    lane_case_open(&lane, *state, CFOIL_OPEN_CREATE);
    lane_case_run(&lane, &ops[0]);
    assert_absent(&ops[0]);
    lane_case_adopt(&lane, &ops[1]);
    cfoil_lane_submit(lane.lane, &ops[1]);
    assert_true(cfoil_lane_leave(lane.lane, LANE_WAIT_MS));
    assert_int_equal(lane.done_count, 2);
    assert_failed(&ops[1], CFOIL_E_CLOSING);
}

static void without_a_thread_there_is_nobody_to_wait_for(void **state)
{
    struct contract *contract = *state;
    struct cfoil_lane_options options = {.threadless = true};
    struct lane_case lane = {.contract = contract};
    struct cfoil_op op = contract_get_op(1);
    char problem[512] = "";

    contract_close(contract);
    options.store = contract_options(contract, CFOIL_OPEN_CREATE);
    assert_int_equal(cfoil_lane_open(&options, &lane.lane, problem, sizeof(problem)), CFOIL_OK);
    lane_case_adopt(&lane, &op);
    cfoil_lane_submit(lane.lane, &op);
    assert_true(cfoil_lane_leave(lane.lane, 0));
    assert_int_equal(lane.done_count, 1);
    assert_failed(&op, CFOIL_E_CLOSING);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(a_store_that_hangs_is_left_with_everything_in_its_place),
        CONTRACT_CASE(a_write_lock_that_is_waited_for_is_left_too),
        CONTRACT_CASE(a_store_that_answers_is_left_as_it_is_closed),
        CONTRACT_CASE(without_a_thread_there_is_nobody_to_wait_for),
    };
    return contract_run(argc, argv, "leave", tests, sizeof(tests) / sizeof(tests[0]));
}
