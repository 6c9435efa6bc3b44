/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lost replies, seen through a lane: UNKNOWN tells nothing, asking again tells all. And the misbehaving
 * store itself (support/faulty_store.h), which other rooms' tests rely on, does what it promises.
 */
#include "lane_fixture.h"

#include "support/faulty_store.h"

/* A lane over "faulty:" and the chosen store, with an empty plan. */
static void open_faulty(struct lane_case *lane, struct contract *contract)
{
    struct cfoil_lane_options options = {.ops = &cfoil_store_faulty, .reopen_every_ms = 1};
    char url[CONTRACT_PATH_BYTES + 128] = "faulty:";
    char problem[512] = "";

    cfoil_faulty_reset();
    contract_close(contract);
    memset(lane, 0, sizeof(*lane));
    lane->contract = contract;
    options.store = contract_options(contract, CFOIL_OPEN_CREATE);
    strncat(url, contract->url, sizeof(url) - strlen(url) - 1);
    options.store.url = url;
    assert_int_equal(cfoil_lane_open(&options, &lane->lane, problem, sizeof(problem)), CFOIL_OK);
}

static void close_faulty(struct lane_case *lane)
{
    lane_case_close(lane);
    cfoil_faulty_reset();
}

static void assert_unknown(const struct cfoil_op *op)
{
    assert_int_equal(op->status, CFOIL_OP_UNKNOWN);
    assert_int_equal(op->error, CFOIL_E_REPLY_LOST);
    assert_int_equal(op->now_ms, 0);
    assert_int_equal(op->current_bytes, 0);
}

static void run_get(struct lane_case *lane, uint64_t number, struct cfoil_op *get)
{
    cfoil_op_free_current(get);
    *get = contract_get_op(number);
    lane_case_run(lane, get);
}

static void a_lost_reply_may_have_been_applied(void **state)
{
    struct lane_case lane;
    struct cfoil_op get = {0};

    open_faulty(&lane, *state);
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(*state, 7, 0, 5));
    cfoil_faulty_plan(CFOIL_FAULT_LOST_APPLIED, 1);
    lane_case_run(&lane, &op);
    assert_unknown(&op);
    run_get(&lane, 1, &get);
    assert_shows(&get, 7);
    lane_case_run(&lane, &op); /* the same owner asks again and recognises itself */
    assert_shows(&op, 7);
    assert_int_equal(cfoil_faulty_count(), 1);
    cfoil_op_free_current(&op);
    cfoil_op_free_current(&get);
    close_faulty(&lane);
}

static void a_lost_reply_may_not_have_been_applied(void **state)
{
    struct lane_case lane;
    struct cfoil_op get = {0};

    open_faulty(&lane, *state);
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(*state, 7, 0, 5));
    cfoil_faulty_plan(CFOIL_FAULT_LOST_NOT_APPLIED, 1);
    lane_case_run(&lane, &op);
    assert_unknown(&op);
    run_get(&lane, 1, &get);
    assert_absent(&get);
    lane_case_run(&lane, &op);
    assert_applied(&op);
    close_faulty(&lane);
}

static void a_late_arrival_is_applied_when_it_arrives(void **state)
{
    struct lane_case lane;
    struct cfoil_op get = {0};

    open_faulty(&lane, *state);
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(*state, 7, 0, 5));
    cfoil_faulty_plan(CFOIL_FAULT_LATE, 1);
    lane_case_run(&lane, &op);
    assert_unknown(&op);
    run_get(&lane, 1, &get);
    assert_absent(&get);
    assert_true(cfoil_faulty_release_late());
    run_get(&lane, 1, &get);
    assert_shows(&get, 7);
    assert_false(cfoil_faulty_release_late());
    cfoil_op_free_current(&get);
    close_faulty(&lane);
}

/* R12: why an unknown claim is withdrawn by a cas on absent. */
static void a_withdrawal_keeps_a_late_arrival_out(void **state)
{
    struct lane_case lane;
    struct cfoil_op get = {0};

    open_faulty(&lane, *state);
    struct cfoil_op claim = contract_cas_op(1, 0, contract_draft(*state, 7, 0, 5));
    struct cfoil_op withdraw = contract_cas_op(1, 0, contract_draft(*state, 8, 0, 5));
    cfoil_faulty_plan(CFOIL_FAULT_LATE, 1);
    lane_case_run(&lane, &claim);
    assert_unknown(&claim);
    lane_case_run(&lane, &withdraw);
    assert_applied(&withdraw);
    assert_true(cfoil_faulty_release_late());
    run_get(&lane, 1, &get);
    assert_shows(&get, 8);
    cfoil_op_free_current(&get);
    close_faulty(&lane);
}

static void a_refusal_was_not_applied(void **state)
{
    static const enum cfoil_fault faults[] = {CFOIL_FAULT_FULL, CFOIL_FAULT_UNAVAILABLE};
    static const enum cfoil_error errors[] = {CFOIL_E_STORE_FULL, CFOIL_E_STORE_UNAVAILABLE};
    struct lane_case lane;
    struct cfoil_op get = {0};

    open_faulty(&lane, *state);
    for (size_t i = 0; i < 2; i++) {
        struct cfoil_op op = contract_cas_op(1, 0, contract_draft(*state, 7, 0, 5));
        cfoil_faulty_plan(faults[i], 1);
        lane_case_run(&lane, &op);
        assert_failed(&op, errors[i]);
        run_get(&lane, 1, &get);
        assert_absent(&get);
    }
    close_faulty(&lane);
}

static void a_fault_in_a_batch_touches_its_own_operation_only(void **state)
{
    struct lane_case lane;
    struct cfoil_op ops[5];

    open_faulty(&lane, *state);
    struct cfoil_bytes draft = contract_draft(*state, 7, 0, 5);
    cfoil_faulty_plan(CFOIL_FAULT_NONE, 1);
    cfoil_faulty_plan(CFOIL_FAULT_LOST_APPLIED, 1);
    cfoil_faulty_plan(CFOIL_FAULT_NONE, 1);
    cfoil_faulty_plan(CFOIL_FAULT_FULL, 1);
    for (size_t i = 0; i < 5; i++) {
        ops[i] = contract_cas_op(i * 3 % 5, 0, draft); /* 0, 3, 1, 4, 2: the lane sorts */
        lane_case_adopt(&lane, &ops[i]);
        cfoil_lane_submit(lane.lane, &ops[i]);
    }
    cfoil_lane_flush(lane.lane);
    lane_case_wait(&lane, 5);
    assert_applied(&ops[0]);
    assert_unknown(&ops[2]);
    assert_applied(&ops[4]);
    assert_failed(&ops[1], CFOIL_E_STORE_FULL);
    assert_applied(&ops[3]);
    close_faulty(&lane);
}

static void a_lost_handle_is_opened_again(void **state)
{
    struct lane_case lane;
    struct cfoil_lane_stats stats;
    struct cfoil_op get = {0};

    open_faulty(&lane, *state);
    run_get(&lane, 1, &get); /* it was open once */
    assert_absent(&get);
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(*state, 7, 0, 5));
    cfoil_faulty_plan(CFOIL_FAULT_HANDLE_LOST, 1);
    lane_case_run(&lane, &op);
    assert_failed(&op, CFOIL_E_STORE_REPLACED);
    lane_case_await(&lane, &get, CFOIL_OP_CURRENT, CFOIL_OK);
    assert_absent(&get);
    cfoil_lane_read_stats(lane.lane, &stats);
    assert_int_equal(stats.reopened, 1);
    close_faulty(&lane);
}

static void while_opening_is_refused_nothing_is_applied(void **state)
{
    struct lane_case lane;
    struct cfoil_op get = {0};

    open_faulty(&lane, *state);
    run_get(&lane, 1, &get);
    cfoil_faulty_refuse_open(CFOIL_E_STORE_FULL);
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(*state, 7, 0, 5));
    cfoil_faulty_plan(CFOIL_FAULT_HANDLE_LOST, 1);
    lane_case_run(&lane, &op);
    lane_case_run(&lane, &op);
    assert_int_equal(op.status, CFOIL_OP_FAILED);
    lane_case_await(&lane, &get, CFOIL_OP_FAILED, CFOIL_E_STORE_FULL);
    cfoil_faulty_refuse_open(CFOIL_OK);
    lane_case_await(&lane, &get, CFOIL_OP_CURRENT, CFOIL_OK);
    assert_absent(&get);
    close_faulty(&lane);
}

/*
 * Whatever is lost: a claimer that asks again until it knows ends up with exactly one winner per id,
 * and knows whether it is the one.
 */
static void claimers_that_ask_again_agree_on_one_winner(void **state)
{
    struct contract *contract = *state;
    struct lane_case lane;
    struct cfoil_record_head head;
    struct cfoil_bytes drafts[10];
    uint64_t seed = contract_seed();

    open_faulty(&lane, contract);
    cfoil_faulty_random(seed, 30);
    for (size_t i = 0; i < 10; i++) {
        drafts[i] = contract_draft(contract, i + 1, 0, 5);
    }
    for (uint64_t round = 0; round < 50; round++) {
        uint64_t winner = 0;
        for (size_t i = 0; i < 10; i++) {
            struct cfoil_op op = contract_cas_op(round, 0, drafts[i]);
            do {
                lane_case_run(&lane, &op);
            } while (op.status != CFOIL_OP_APPLIED && op.status != CFOIL_OP_CURRENT);
            uint64_t told = i + 1; /* APPLIED: myself */
            if (op.status == CFOIL_OP_CURRENT) {
                struct cfoil_bytes bytes = cfoil_bytes_of(op.current, op.current_bytes);
                assert_int_equal(cfoil_record_peek(bytes, &head), CFOIL_OK);
                told = head.generation;
            }
            assert_true(winner == 0 || winner == told);
            winner = told;
            (void)cfoil_faulty_release_late();
            cfoil_op_free_current(&op);
        }
    }
    assert_in_range(cfoil_faulty_count(), 50, 5000);
    close_faulty(&lane);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(a_lost_reply_may_have_been_applied),
        CONTRACT_CASE(a_lost_reply_may_not_have_been_applied),
        CONTRACT_CASE(a_late_arrival_is_applied_when_it_arrives),
        CONTRACT_CASE(a_withdrawal_keeps_a_late_arrival_out),
        CONTRACT_CASE(a_refusal_was_not_applied),
        CONTRACT_CASE(a_fault_in_a_batch_touches_its_own_operation_only),
        CONTRACT_CASE(a_lost_handle_is_opened_again),
        CONTRACT_CASE(while_opening_is_refused_nothing_is_applied),
        CONTRACT_CASE(claimers_that_ask_again_agree_on_one_winner),
    };
    return contract_run(argc, argv, "faulty", tests, sizeof(tests) / sizeof(tests[0]));
}
