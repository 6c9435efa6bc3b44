/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a compare-and-swap and a get mean (store.h), one at a time and in batches. The expected values
 * are those of R1, R7, R9 and R11.
 */
#include "contract.h"

static void assert_body(const struct cfoil_op *op, uint64_t generation, size_t body_bytes)
{
    struct cfoil_record record;

    assert_shows(op, generation);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(op->current, op->current_bytes), &record),
                     CFOIL_OK);
    assert_int_equal(record.snapshot.body.len, body_bytes);
    for (size_t i = 0; i < body_bytes; i++) {
        if (record.snapshot.body.data[i] != (uint8_t)generation) {
            fail_msg("byte %zu of the body is another one", i);
        }
    }
}

static void an_id_never_written_is_absent(void **state)
{
    assert_get_absent(*state, 1);
}

static void a_first_claim_is_applied_and_can_be_read(void **state)
{
    contract_claim(*state, 1, 77, 0);
    assert_get_shows(*state, 1, 77);
    assert_get_absent(*state, 2);
}

static void a_second_claim_is_answered_with_the_whole_record(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op first = contract_cas_op(1, 0, contract_draft(contract, 7, 0, 900));
    struct cfoil_op second = contract_cas_op(1, 0, contract_draft(contract, 8, 0, 10));

    contract_apply(contract, &first);
    contract_apply(contract, &second);
    assert_applied(&first);
    assert_body(&second, 7, 900);
    assert_get_shows(contract, 1, 7);
    cfoil_op_free_current(&second);
}

static void a_cas_on_the_generation_replaces_the_record(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op op = contract_cas_op(1, 7, contract_draft(contract, 8, 0, 5));

    contract_claim(contract, 1, 7, 0);
    contract_apply(contract, &op);
    assert_applied(&op);
    assert_get_shows(contract, 1, 8);
}

static void a_cas_on_a_generation_that_passed_shows_the_newer_record(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op settle = contract_cas_op(1, 7, contract_draft(contract, 8, 0, 5));
    struct cfoil_op late = contract_cas_op(1, 7, contract_draft(contract, 9, 0, 5));

    contract_claim(contract, 1, 7, 0);
    contract_apply(contract, &settle);
    contract_apply(contract, &late);
    assert_applied(&settle);
    assert_shows(&late, 8);
    assert_get_shows(contract, 1, 8);
    cfoil_op_free_current(&late);
}

static void a_cas_on_any_other_generation_changes_nothing(void **state)
{
    static const uint64_t others[] = {1, 99, 101, UINT64_C(1) << 32 | 100, CFOIL_GENERATION_MAX};
    struct contract *contract = *state;
    struct cfoil_bytes draft = contract_draft(contract, 200, 0, 5);

    contract_claim(contract, 1, 100, 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct cfoil_op op = contract_cas_op(1, others[i], draft);
        contract_apply(contract, &op);
        assert_shows(&op, 100);
        cfoil_op_free_current(&op);
    }
    assert_get_shows(contract, 1, 100);
}

static void a_cas_on_the_generation_of_nothing_creates_nothing(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op op = contract_cas_op(1, 7, contract_draft(contract, 8, 0, 5));

    contract_apply(contract, &op);
    assert_absent(&op);
    assert_get_absent(contract, 1);
}

static void a_record_is_there_until_the_last_millisecond_and_not_after(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op late = contract_cas_op(1, 0, contract_draft(contract, 8, 1000, 5));

    contract_claim(contract, 1, 7, 1000);
    contract_pass_ms(contract, 999);
    assert_get_shows(contract, 1, 7);
    contract_apply(contract, &late);
    assert_shows(&late, 7);
    contract_pass_ms(contract, 1);
    assert_get_absent(contract, 1);
    contract_apply(contract, &late);
    assert_applied(&late);
    assert_get_shows(contract, 1, 8);
    cfoil_op_free_current(&late);
}

static void a_gone_record_does_not_answer_to_its_generation(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op op = contract_cas_op(1, 7, contract_draft(contract, 8, 0, 5));

    contract_claim(contract, 1, 7, 1000);
    contract_pass_ms(contract, 1000);
    contract_apply(contract, &op);
    assert_absent(&op);
    assert_get_absent(contract, 1);
}

static void a_record_without_an_end_stays(void **state)
{
    struct contract *contract = *state;

    contract_claim(contract, 1, 7, 0);
    contract_pass_ms(contract, 100 * 365 * 24 * HOUR_MS);
    assert_get_shows(contract, 1, 7);
}

static void times_of_a_draft_count_from_the_answer_s_now(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op claim = contract_cas_op(1, 0, contract_draft(contract, 7, 1234, 5));
    struct cfoil_op get = contract_get_op(1);
    struct cfoil_record record;

    contract_apply(contract, &claim);
    contract_pass_ms(contract, 100);
    contract_apply(contract, &get);
    assert_shows(&get, 7);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(get.current, get.current_bytes), &record),
                     CFOIL_OK);
    assert_int_equal(record.at_ms[CFOIL_TIME_UPDATED], claim.now_ms);
    assert_int_equal(record.at_ms[CFOIL_TIME_GONE_AT], claim.now_ms + 1234);
    assert_int_equal(get.now_ms, claim.now_ms + 100);
    cfoil_op_free_current(&get);
}

static void a_draft_is_left_as_it_was_and_may_be_used_again(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes draft = contract_draft(contract, 7, 1000, 50);
    uint8_t copy[512];
    struct cfoil_op first = contract_cas_op(1, 0, draft);
    struct cfoil_op second = contract_cas_op(2, 0, draft);

    memcpy(copy, draft.data, draft.len);
    contract_apply(contract, &first);
    assert_memory_equal(copy, draft.data, draft.len);
    contract_pass_ms(contract, 900);
    contract_apply(contract, &second);
    assert_applied(&second);
    contract_pass_ms(contract, 100);
    assert_get_absent(contract, 1);
    assert_get_shows(contract, 2, 7);
}

static void a_record_may_grow_and_shrink(void **state)
{
    static const size_t sizes[] = {0, 150, 350, 1900, 2100, 5000, 1 << 20, 70000, 2000, 1, 4000, 0};
    struct contract *contract = *state;

    contract_claim(contract, 1, 1, 0); /* neighbours in the same page */
    contract_claim(contract, 3, 1, 0);
    contract_claim(contract, 2, 1, 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct cfoil_op op =
            contract_cas_op(2, i + 1, contract_draft(contract, i + 2, 0, sizes[i]));
        struct cfoil_op get = contract_get_op(2);
        contract_apply(contract, &op);
        assert_applied(&op);
        contract_apply(contract, &get);
        assert_body(&get, i + 2, sizes[i]);
        cfoil_op_free_current(&get);
    }
    assert_get_shows(contract, 1, 1);
    assert_get_shows(contract, 3, 1);
}

static void a_batch_of_one_id_runs_in_the_order_of_submission(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op ops[] = {
        contract_get_op(1),
        contract_cas_op(1, 0, contract_draft(contract, 11, 0, 5)),
        contract_get_op(1),
        contract_cas_op(1, 11, contract_draft(contract, 12, 0, 3000)),
        contract_cas_op(1, 0, contract_draft(contract, 13, 0, 5)),
        contract_cas_op(1, 11, contract_draft(contract, 14, 0, 5)),
        contract_cas_op(1, 12, contract_draft(contract, 15, 0, 5)),
        contract_get_op(1),
    };
    struct cfoil_op *list[8];

    for (size_t i = 0; i < 8; i++) {
        list[i] = &ops[i];
    }
    assert_int_equal(contract->ops->apply(contract->handle, list, 8), CFOIL_OK);
    assert_absent(&ops[0]);
    assert_applied(&ops[1]);
    assert_shows(&ops[2], 11);
    assert_applied(&ops[3]);
    assert_shows(&ops[4], 12);
    assert_shows(&ops[5], 12);
    assert_applied(&ops[6]);
    assert_shows(&ops[7], 15);
    for (size_t i = 0; i < 8; i++) {
        cfoil_op_free_current(&ops[i]);
    }
}

static void sorting_keeps_the_order_of_equal_ids(void **state)
{
    static struct cfoil_op ops[CFOIL_STORE_BATCH_MAX];
    struct cfoil_op *list[CFOIL_STORE_BATCH_MAX];
    uint64_t random = contract_seed();

    (void)state;
    for (size_t count = 0; count <= CFOIL_STORE_BATCH_MAX; count += count < 20 ? 1 : 41) {
        for (size_t i = 0; i < count; i++) {
            ops[i] = contract_get_op(contract_random(&random) % 40);
            list[i] = &ops[i];
        }
        cfoil_ops_sort(list, count);
        for (size_t i = 1; i < count; i++) {
            int order = memcmp(list[i - 1]->id, list[i]->id, CFOIL_ID_BYTES);
            assert_true(order < 0 || (order == 0 && list[i - 1] < list[i]));
        }
    }
}

static void a_full_batch_of_new_ids_is_applied_whole(void **state)
{
    static struct cfoil_op ops[CFOIL_STORE_BATCH_MAX];
    struct contract *contract = *state;
    struct cfoil_op *list[CFOIL_STORE_BATCH_MAX];
    struct cfoil_bytes draft = contract_draft(contract, 5, 0, 200);

    for (size_t i = 0; i < CFOIL_STORE_BATCH_MAX; i++) {
        ops[i] = contract_cas_op(i * 7919 % 100003, 0, draft);
        list[i] = &ops[i];
    }
    cfoil_ops_sort(list, CFOIL_STORE_BATCH_MAX);
    assert_int_equal(contract->ops->apply(contract->handle, list, CFOIL_STORE_BATCH_MAX), CFOIL_OK);
    for (size_t i = 0; i < CFOIL_STORE_BATCH_MAX; i++) {
        assert_applied(&ops[i]);
        assert_get_shows(contract, i * 7919 % 100003, 5);
    }
}

static void fifty_claims_of_one_key_in_a_batch_have_one_winner(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op ops[50];
    struct cfoil_op *list[50];
    struct cfoil_bytes drafts[50];

    for (size_t i = 0; i < 50; i++) {
        drafts[i] = contract_draft(contract, i + 1, 0, 5);
    }
    for (uint64_t round = 0; round < 200; round++) {
        size_t applied = 0;
        for (size_t i = 0; i < 50; i++) {
            ops[i] = contract_cas_op(round, 0, drafts[i]);
            list[i] = &ops[i];
        }
        assert_int_equal(contract->ops->apply(contract->handle, list, 50), CFOIL_OK);
        for (size_t i = 0; i < 50; i++) {
            applied += ops[i].status == CFOIL_OP_APPLIED;
            if (ops[i].status != CFOIL_OP_APPLIED) {
                assert_shows(&ops[i], 1);
            }
            cfoil_op_free_current(&ops[i]);
        }
        assert_int_equal(applied, 1);
    }
}

static void an_answer_s_memory_is_reused_for_the_next_one(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op get = contract_get_op(1);

    contract_claim(contract, 1, 7, 0);
    contract_claim(contract, 2, 8, 0);
    contract_apply(contract, &get);
    const uint8_t *before = get.current;
    contract_id(get.id, 2);
    contract_apply(contract, &get);
    assert_shows(&get, 8);
    assert_ptr_equal(get.current, before);
    contract_id(get.id, 3);
    contract_apply(contract, &get);
    assert_absent(&get);
    cfoil_op_free_current(&get);
}

static void overwrite_corrupt_changes_nothing_for_a_sound_record(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(contract, 8, 0, 5));

    op.overwrite_corrupt = true;
    contract_claim(contract, 1, 7, 0);
    contract_apply(contract, &op);
    assert_shows(&op, 7);
    cfoil_op_free_current(&op);
}

static void a_lookup_answers_like_a_get(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op op = contract_get_op(1);

    if (!contract->ops->has_lookup) {
        skip();
    }
    contract->ops->lookup(contract->handle, &op);
    assert_absent(&op);
    contract_claim(contract, 1, 7, 1000);
    contract->ops->lookup(contract->handle, &op);
    assert_shows(&op, 7);
    contract_pass_ms(contract, 1000);
    contract->ops->lookup(contract->handle, &op);
    assert_absent(&op);
    cfoil_op_free_current(&op);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(an_id_never_written_is_absent),
        CONTRACT_CASE(a_first_claim_is_applied_and_can_be_read),
        CONTRACT_CASE(a_second_claim_is_answered_with_the_whole_record),
        CONTRACT_CASE(a_cas_on_the_generation_replaces_the_record),
        CONTRACT_CASE(a_cas_on_a_generation_that_passed_shows_the_newer_record),
        CONTRACT_CASE(a_cas_on_any_other_generation_changes_nothing),
        CONTRACT_CASE(a_cas_on_the_generation_of_nothing_creates_nothing),
        CONTRACT_CASE(a_record_is_there_until_the_last_millisecond_and_not_after),
        CONTRACT_CASE(a_gone_record_does_not_answer_to_its_generation),
        CONTRACT_CASE(a_record_without_an_end_stays),
        CONTRACT_CASE(times_of_a_draft_count_from_the_answer_s_now),
        CONTRACT_CASE(a_draft_is_left_as_it_was_and_may_be_used_again),
        CONTRACT_CASE(a_record_may_grow_and_shrink),
        CONTRACT_CASE(a_batch_of_one_id_runs_in_the_order_of_submission),
        CONTRACT_CASE(sorting_keeps_the_order_of_equal_ids),
        CONTRACT_CASE(a_full_batch_of_new_ids_is_applied_whole),
        CONTRACT_CASE(fifty_claims_of_one_key_in_a_batch_have_one_winner),
        CONTRACT_CASE(an_answer_s_memory_is_reused_for_the_next_one),
        CONTRACT_CASE(overwrite_corrupt_changes_nothing_for_a_sound_record),
        CONTRACT_CASE(a_lookup_answers_like_a_get),
    };
    return contract_run(argc, argv, "cas", tests, sizeof(tests) / sizeof(tests[0]));
}
