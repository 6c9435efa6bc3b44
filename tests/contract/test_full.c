/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that has no room left says so for certain (FAILED, STORE_FULL), goes on answering, lets
 * claims that were made be settled and forgotten, and takes new ones again once it was swept.
 */
#include "contract.h"

#define FILL_MAX   20000
#define BODY_BYTES 1700 /* two records to a page, so that filling takes few commits */

/*
 * Writes `count` new ids from `first` on in one batch, the two drafts by turns; returns how many were
 * applied before a refusal.
 */
static size_t write_some(struct contract *contract, uint64_t first, size_t count,
                         const struct cfoil_bytes *drafts)
{
    struct cfoil_op ops[8];
    struct cfoil_op *list[8];

    for (size_t i = 0; i < count; i++) {
        ops[i] = contract_cas_op(first + i, 0, drafts[(first + i) % 2]);
        list[i] = &ops[i];
    }
    assert_int_equal(contract->ops->apply(contract->handle, list, count), CFOIL_OK);
    for (size_t i = 0; i < count; i++) {
        if (ops[i].status != CFOIL_OP_APPLIED) {
            assert_failed(&ops[i], CFOIL_E_STORE_FULL);
            return i;
        }
    }
    return count;
}

/*
 * Writes new ids from `first` on until a single one is refused; returns how many were applied. A store
 * may refuse a batch for which it is not sure while it still takes one claim.
 */
static uint64_t fill_by_turns(struct contract *contract, uint64_t first, struct cfoil_bytes even,
                              struct cfoil_bytes odd)
{
    const struct cfoil_bytes drafts[] = {even, odd};
    uint64_t done = 0;
    size_t batch = 8;

    while (done < FILL_MAX) {
        size_t applied = write_some(contract, first + done, batch, drafts);
        done += applied;
        if (applied < batch && batch == 1) {
            return done;
        }
        batch = applied < batch ? 1 : batch;
    }
    fail_msg("the store never fills up");
    return 0;
}

static uint64_t fill(struct contract *contract, uint64_t first, struct cfoil_bytes draft)
{
    return fill_by_turns(contract, first, draft, draft);
}

static uint64_t sweep_all(struct contract *contract)
{
    struct cfoil_sweep sweep = {0};
    uint64_t removed = 0;

    for (size_t steps = 0; steps < 1000; steps++) {
        assert_int_equal(contract->ops->sweep(contract->handle, &sweep, 1000), CFOIL_OK);
        removed += sweep.removed;
        if (sweep.wrapped) {
            return removed;
        }
    }
    fail_msg("the sweep does not come round");
    return 0;
}

static void a_full_store_refuses_claims_for_certain(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes draft = contract_draft(contract, 7, 1000, BODY_BYTES);
    uint64_t applied = fill(contract, 0, draft);

    /*
     * 1 MiB has 256 pages. Settled records fill half of them, at the least; what is being executed is
     * promised room for its outcome besides.
     */
    assert_in_range(applied, contract->state == CFOIL_STATE_SUCCEEDED ? 100 : 30, FILL_MAX);
    assert_get_shows(contract, applied - 1, 7);
    assert_get_absent(contract, applied);
    contract_reopen(contract);
    assert_get_shows(contract, applied - 1, 7);
    assert_get_absent(contract, applied);
}

static void a_full_store_answers_what_needs_no_room(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes draft = contract_draft(contract, 7, 1000, BODY_BYTES);
    uint64_t applied = fill(contract, 0, draft);
    struct cfoil_op ops[] = {
        contract_get_op(1),
        contract_cas_op(2, 0, draft),
        contract_cas_op(3, 99, draft),
        contract_cas_op(applied + 10, 0, draft),
        contract_get_op(applied + 10),
        contract_cas_op(applied + 10, 7, draft),
    };
    struct cfoil_op *list[6];

    for (size_t i = 0; i < 6; i++) {
        list[i] = &ops[i];
    }
    assert_int_equal(contract->ops->apply(contract->handle, list, 6), CFOIL_OK);
    assert_shows(&ops[0], 7);
    assert_shows(&ops[1], 7);
    assert_shows(&ops[2], 7);
    assert_failed(&ops[3], CFOIL_E_STORE_FULL);
    assert_absent(&ops[4]);
    assert_absent(&ops[5]);
    for (size_t i = 0; i < 6; i++) {
        cfoil_op_free_current(&ops[i]);
    }
}

/* Numbers 0, step, 2 * step, ... below count, in random order. */
static size_t shuffled(uint64_t *numbers, uint64_t count, uint64_t step, uint64_t *random)
{
    size_t filled = 0;

    for (uint64_t i = 0; i < count; i += step) {
        size_t place = (size_t)(contract_random(random) % (filled + 1));
        numbers[filled++] = numbers[place];
        numbers[place] = i;
    }
    return filled;
}

/* Ends the claims of these numbers, one to three in a batch; every one must be applied. */
static void end_all(struct contract *contract, const uint64_t *numbers, size_t count,
                    struct cfoil_bytes draft, uint64_t *random)
{
    for (size_t done = 0; done < count;) {
        struct cfoil_op ops[3];
        struct cfoil_op *list[3];
        size_t batch = 1 + (size_t)(contract_random(random) % 3);
        batch = batch < count - done ? batch : count - done;
        for (size_t i = 0; i < batch; i++) {
            ops[i] = contract_cas_op(numbers[done + i], 7, draft);
            list[i] = &ops[i];
        }
        cfoil_ops_sort(list, batch);
        assert_int_equal(contract->ops->apply(contract->handle, list, batch), CFOIL_OK);
        for (size_t i = 0; i < batch; i++) {
            assert_applied(&ops[i]);
        }
        done += batch;
    }
}

/*
 * A store full of claims of this size, with a settled record beside each if `mixed`: in whatever order
 * they end, each finds room for an outcome of twice its size, or is forgotten.
 */
static void assert_all_claims_can_end(struct contract *contract, size_t body_bytes, bool mixed,
                                      bool forget)
{
    static uint64_t numbers[FILL_MAX];
    uint64_t random = contract_seed();
    struct cfoil_bytes claim =
        contract_draft_in(contract, CFOIL_STATE_PROCESSING, 7, HOUR_MS, body_bytes);
    struct cfoil_bytes beside =
        contract_draft_in(contract, CFOIL_STATE_SUCCEEDED, 7, HOUR_MS, body_bytes);
    size_t encoded = 2 * claim.len;
    struct cfoil_bytes end =
        forget ? contract_draft_in(contract, CFOIL_STATE_PROCESSING, 8, 1, body_bytes)
               : contract_draft_in(contract, CFOIL_STATE_SUCCEEDED, 8, HOUR_MS,
                                   encoded - (claim.len - body_bytes));

    uint64_t applied = fill_by_turns(contract, 0, claim, mixed ? beside : claim);
    size_t count = shuffled(numbers, applied, mixed ? 2 : 1, &random);
    end_all(contract, numbers, count, end, &random);
    contract_reopen(contract);
    for (size_t i = 0; i < count && !forget; i++) {
        assert_get_shows(contract, numbers[i], 8);
    }
}

static void in_a_store_full_of_claims_all_of_them_can_be_settled(void **state)
{
    assert_all_claims_can_end(*state, 300, false, false);
}

static void in_a_store_full_of_large_claims_all_of_them_can_be_settled(void **state)
{
    assert_all_claims_can_end(*state, 900, false, false);
}

static void in_a_store_full_of_claims_all_of_them_can_be_forgotten(void **state)
{
    assert_all_claims_can_end(*state, 300, false, true);
}

static void beside_settled_records_all_claims_can_be_settled(void **state)
{
    assert_all_claims_can_end(*state, 300, true, false);
}

/* A claim of a key that failed before is a claim like any other. */
static void a_full_store_refuses_to_run_a_failed_key_again(void **state)
{
    struct contract *contract = *state;
    uint64_t applied =
        fill(contract, 0, contract_draft_in(contract, CFOIL_STATE_FAILED, 7, 0, BODY_BYTES));
    struct cfoil_op again = contract_cas_op(
        1, 7, contract_draft_in(contract, CFOIL_STATE_PROCESSING, 8, 0, BODY_BYTES));

    assert_in_range(applied, 2, FILL_MAX);
    contract_apply(contract, &again);
    assert_failed(&again, CFOIL_E_STORE_FULL);
    assert_get_shows(contract, 1, 7);
}

static void conflicts_use_up_no_room(void **state)
{
    static struct cfoil_op ops[CFOIL_STORE_BATCH_MAX];
    struct contract *contract = *state;
    struct cfoil_op *list[CFOIL_STORE_BATCH_MAX];
    struct cfoil_bytes draft = contract_draft(contract, 8, 0, BODY_BYTES);

    contract_claim(contract, 1, 7, 0);
    for (size_t i = 0; i < CFOIL_STORE_BATCH_MAX; i++) {
        ops[i] = contract_cas_op(i + 1 < CFOIL_STORE_BATCH_MAX ? 1 : 2, 0, draft);
        list[i] = &ops[i];
    }
    assert_int_equal(contract->ops->apply(contract->handle, list, CFOIL_STORE_BATCH_MAX), CFOIL_OK);
    assert_applied(&ops[CFOIL_STORE_BATCH_MAX - 1]);
    for (size_t i = 0; i < CFOIL_STORE_BATCH_MAX; i++) {
        cfoil_op_free_current(&ops[i]);
    }
}

static void after_forgetting_and_a_sweep_there_is_room_again(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes draft = contract_draft(contract, 7, HOUR_MS, BODY_BYTES);
    struct cfoil_bytes gone = contract_draft(contract, 8, 1, 0);
    uint64_t applied = fill(contract, 0, draft);

    for (uint64_t i = 0; i < applied / 2; i++) {
        struct cfoil_op op = contract_cas_op(i, 7, gone);
        contract_apply(contract, &op);
        assert_applied(&op);
    }
    contract_pass_ms(contract, 1);
    assert_int_equal(sweep_all(contract), applied / 2);
    assert_in_range(fill(contract, FILL_MAX, draft), applied / 4, FILL_MAX);
    assert_get_shows(contract, applied - 1, 7);
}

static void a_store_can_be_filled_and_swept_again_and_again(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes draft = contract_draft(contract, 7, 1000, BODY_BYTES);
    uint64_t first = fill(contract, 0, draft);

    for (uint64_t round = 1; round <= 5; round++) {
        contract_pass_ms(contract, 1000);
        assert_in_range(sweep_all(contract), 1, FILL_MAX);
        assert_int_equal(sweep_all(contract), 0);
        assert_in_range(fill(contract, round * FILL_MAX, draft), first * 3 / 4, FILL_MAX);
    }
}

static void a_gone_record_s_place_serves_without_a_sweep(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes draft = contract_draft(contract, 7, 1000, BODY_BYTES);
    uint64_t applied = fill(contract, 0, draft);

    contract_pass_ms(contract, 1000);
    for (uint64_t i = 0; i < applied; i += 10) {
        struct cfoil_op op = contract_cas_op(i, 0, draft);
        contract_apply(contract, &op);
        assert_applied(&op);
    }
}

static void a_record_too_large_is_refused_and_its_neighbours_are_not(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op ops[] = {
        contract_cas_op(1, 0, contract_draft(contract, 5, 0, 10)),
        contract_cas_op(2, 0, contract_draft(contract, 6, 0, 2 << 20)),
        contract_cas_op(3, 0, contract_draft(contract, 7, 0, 10)),
    };
    struct cfoil_op *list[] = {&ops[0], &ops[1], &ops[2]};

    assert_int_equal(contract->ops->apply(contract->handle, list, 3), CFOIL_OK);
    assert_applied(&ops[0]);
    assert_failed(&ops[1], CFOIL_E_STORE_FULL);
    assert_applied(&ops[2]);
    assert_get_shows(contract, 1, 5);
    assert_get_absent(contract, 2);
    assert_get_shows(contract, 3, 7);
}

/* Frees runs of eight records between runs of eight that stay. */
static void punch_holes(struct contract *contract, uint64_t applied)
{
    struct cfoil_bytes gone = contract_draft(contract, 8, 1, 0);

    for (uint64_t i = 0; i < applied; i++) {
        struct cfoil_op op = contract_cas_op(i, 7, gone);
        if (i / 8 % 2 == 0) {
            contract_apply(contract, &op);
            assert_applied(&op);
        }
    }
    contract_pass_ms(contract, 1);
    assert_in_range(sweep_all(contract), applied / 3, applied);
}

/*
 * Room in pieces may be enough for small records and not for a large one, which the store may find out
 * late; the small ones of its batch are not to suffer for it.
 */
static void a_large_record_that_finds_no_room_does_not_take_the_small_ones_with_it(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes small = contract_draft(contract, 9, 1, 10);
    uint64_t applied = fill(contract, 0, contract_draft(contract, 7, HOUR_MS, BODY_BYTES));
    size_t refused = 0;

    punch_holes(contract, applied);
    for (size_t pages = 10; pages < 90; pages++) {
        struct cfoil_op ops[] = {
            contract_cas_op(FILL_MAX, 0, small),
            contract_cas_op(FILL_MAX + 1, 0, contract_draft(contract, 9, 1, pages * 4000)),
            contract_cas_op(FILL_MAX + 2, 0, small),
        };
        struct cfoil_op *list[] = {&ops[0], &ops[1], &ops[2]};
        assert_int_equal(contract->ops->apply(contract->handle, list, 3), CFOIL_OK);
        assert_applied(&ops[0]);
        assert_applied(&ops[2]);
        if (ops[1].status != CFOIL_OP_APPLIED) {
            assert_failed(&ops[1], CFOIL_E_STORE_FULL);
            refused++;
        }
        contract_pass_ms(contract, 1); /* and gone again */
        assert_in_range(sweep_all(contract), 2, 3);
    }
    assert_in_range(refused, 1, 80);
}

static void large_records_fill_it_and_leave_it_usable(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes large = contract_draft(contract, 7, 1000, 50000);

    for (uint64_t round = 0; round < 5; round++) {
        assert_in_range(fill(contract, round * FILL_MAX, large), 3, 20);
        contract_pass_ms(contract, 1000);
        assert_in_range(sweep_all(contract), 3, 20);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE_SMALL(a_full_store_refuses_claims_for_certain),
        CONTRACT_CASE_SMALL_SETTLED(a_full_store_refuses_claims_for_certain),
        CONTRACT_CASE_SMALL(a_full_store_answers_what_needs_no_room),
        CONTRACT_CASE_SMALL_SETTLED(a_full_store_answers_what_needs_no_room),
        CONTRACT_CASE_SMALL(in_a_store_full_of_claims_all_of_them_can_be_settled),
        CONTRACT_CASE_SMALL(in_a_store_full_of_large_claims_all_of_them_can_be_settled),
        CONTRACT_CASE_SMALL(in_a_store_full_of_claims_all_of_them_can_be_forgotten),
        CONTRACT_CASE_SMALL(beside_settled_records_all_claims_can_be_settled),
        CONTRACT_CASE_SMALL(a_full_store_refuses_to_run_a_failed_key_again),
        CONTRACT_CASE_SMALL(after_forgetting_and_a_sweep_there_is_room_again),
        CONTRACT_CASE_SMALL_SETTLED(after_forgetting_and_a_sweep_there_is_room_again),
        CONTRACT_CASE_SMALL(a_store_can_be_filled_and_swept_again_and_again),
        CONTRACT_CASE_SMALL_SETTLED(a_store_can_be_filled_and_swept_again_and_again),
        CONTRACT_CASE_SMALL(a_gone_record_s_place_serves_without_a_sweep),
        CONTRACT_CASE_SMALL_SETTLED(a_gone_record_s_place_serves_without_a_sweep),
        CONTRACT_CASE_SMALL(a_record_too_large_is_refused_and_its_neighbours_are_not),
        CONTRACT_CASE_SMALL(conflicts_use_up_no_room),
        CONTRACT_CASE_SMALL_SETTLED(
            a_large_record_that_finds_no_room_does_not_take_the_small_ones_with_it),
        CONTRACT_CASE_SMALL(large_records_fill_it_and_leave_it_usable),
        CONTRACT_CASE_SMALL_SETTLED(large_records_fill_it_and_leave_it_usable),
    };
    return contract_run(argc, argv, "full", tests, sizeof(tests) / sizeof(tests[0]));
}
