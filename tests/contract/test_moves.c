/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that go from one state to another. A store may keep what is being executed apart from the
 * rest; nobody is to notice: each record is there once, with its last bytes, whatever it was before.
 */
#include "contract.h"

static const enum cfoil_state states[] = {
    CFOIL_STATE_ISSUED,       CFOIL_STATE_PROCESSING, CFOIL_STATE_SUCCEEDED,
    CFOIL_STATE_FAILED_FINAL, CFOIL_STATE_FAILED,     CFOIL_STATE_IN_DOUBT,
};

#define STATES (sizeof(states) / sizeof(states[0]))

/* A get and a look-up both show this generation in this state. */
static void assert_is(struct contract *contract, uint64_t number, uint64_t generation,
                      enum cfoil_state state)
{
    struct cfoil_op ops[] = {contract_get_op(number), contract_get_op(number)};

    contract_apply(contract, &ops[0]);
    if (contract->ops->has_lookup) {
        contract->ops->lookup(contract->handle, &ops[1]);
    }
    for (size_t i = 0; i < (contract->ops->has_lookup ? 2U : 1U); i++) {
        struct cfoil_record_head head;
        assert_shows(&ops[i], generation);
        assert_int_equal(
            cfoil_record_peek(cfoil_bytes_of(ops[i].current, ops[i].current_bytes), &head),
            CFOIL_OK);
        assert_int_equal(head.state, state);
        cfoil_op_free_current(&ops[i]);
    }
}

static void write_state(struct contract *contract, uint64_t number, uint64_t expect,
                        uint64_t generation, enum cfoil_state state, size_t body_bytes)
{
    struct cfoil_op op = contract_cas_op(
        number, expect, contract_draft_in(contract, state, generation, HOUR_MS, body_bytes));

    contract_apply(contract, &op);
    assert_applied(&op);
}

static void any_state_may_follow_any_other(void **state)
{
    static const size_t sizes[] = {10, 500, 5000};
    struct contract *contract = *state;
    uint64_t number = 0;

    for (size_t from = 0; from < STATES; from++) {
        for (size_t to = 0; to < STATES; to++) {
            for (size_t size = 0; size < 3; size++, number++) {
                write_state(contract, number, 0, 7, states[from], sizes[size]);
                assert_is(contract, number, 7, states[from]);
                write_state(contract, number, 7, 8, states[to], sizes[2 - size]);
                assert_is(contract, number, 8, states[to]);
            }
        }
    }
    if (contract->store->hands != NULL) {
        contract_close(contract);
        for (uint64_t i = 0; i < number; i++) {
            assert_stands_once(contract, i);
        }
    }
}

/* Each operation of a batch sees what the ones before it did, wherever that put the record. */
static void one_batch_takes_a_record_through_all_its_states(void **state)
{
    struct contract *contract = *state;
    static struct cfoil_op ops[2 * STATES];
    struct cfoil_op *list[2 * STATES];

    for (uint64_t i = 0; i < 2 * STATES; i++) {
        ops[i] =
            contract_cas_op(1, i, contract_draft_in(contract, states[i % STATES], i + 1, 0, 100));
        list[i] = &ops[i];
    }
    assert_int_equal(contract->ops->apply(contract->handle, list, 2 * STATES), CFOIL_OK);
    for (size_t i = 0; i < 2 * STATES; i++) {
        assert_applied(&ops[i]);
    }
    assert_is(contract, 1, 2 * STATES, states[STATES - 1]);
}

static void a_conflict_shows_a_record_wherever_it_stands(void **state)
{
    struct contract *contract = *state;

    for (uint64_t i = 0; i < STATES; i++) {
        struct cfoil_op ops[] = {
            contract_cas_op(i, 0, contract_draft_in(contract, CFOIL_STATE_PROCESSING, 9, 0, 10)),
            contract_cas_op(i, 6, contract_draft_in(contract, CFOIL_STATE_SUCCEEDED, 9, 0, 10)),
        };
        write_state(contract, i, 0, 7, states[i], 10);
        for (size_t k = 0; k < 2; k++) {
            contract_apply(contract, &ops[k]);
            assert_shows(&ops[k], 7);
            cfoil_op_free_current(&ops[k]);
        }
        assert_is(contract, i, 7, states[i]);
    }
}

static void a_gone_record_is_claimed_anew_whatever_it_was(void **state)
{
    struct contract *contract = *state;
    struct cfoil_sweep sweep = {0};

    for (uint64_t i = 0; i < STATES; i++) {
        write_state(contract, i, 0, 7, states[i], 10);
    }
    contract_pass_ms(contract, HOUR_MS);
    for (uint64_t i = 0; i < STATES; i++) {
        assert_get_absent(contract, i);
        write_state(contract, i, 0, 8, CFOIL_STATE_PROCESSING, 10);
    }
    assert_int_equal(contract->ops->sweep(contract->handle, &sweep, 100), CFOIL_OK);
    assert_int_equal(sweep.examined, STATES);
    assert_int_equal(sweep.removed, 0);
    for (uint64_t i = 0; i < STATES; i++) {
        assert_is(contract, i, 8, CFOIL_STATE_PROCESSING);
    }
}

static void a_claim_that_was_settled_is_swept_as_settled(void **state)
{
    struct contract *contract = *state;
    struct cfoil_sweep sweep = {0};

    for (uint64_t i = 0; i < 10; i++) {
        write_state(contract, i, 0, 7, CFOIL_STATE_PROCESSING, 10);
    }
    contract_pass_ms(contract, HOUR_MS - 1);
    for (uint64_t i = 0; i < 10; i += 2) {
        write_state(contract, i, 7, 8, CFOIL_STATE_SUCCEEDED, 10);
    }
    contract_pass_ms(contract, 1);
    assert_int_equal(contract->ops->sweep(contract->handle, &sweep, 100), CFOIL_OK);
    assert_int_equal(sweep.examined, 10);
    assert_int_equal(sweep.removed, 5);
    for (uint64_t i = 0; i < 10; i += 2) {
        assert_is(contract, i, 8, CFOIL_STATE_SUCCEEDED);
        assert_get_absent(contract, i + 1);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(any_state_may_follow_any_other),
        CONTRACT_CASE(one_batch_takes_a_record_through_all_its_states),
        CONTRACT_CASE(a_conflict_shows_a_record_wherever_it_stands),
        CONTRACT_CASE(a_gone_record_is_claimed_anew_whatever_it_was),
        CONTRACT_CASE(a_claim_that_was_settled_is_swept_as_settled),
    };
    return contract_run(argc, argv, "moves", tests, sizeof(tests) / sizeof(tests[0]));
}
