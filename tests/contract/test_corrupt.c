/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are not a sound record are an error for their id and for nothing else (R6): never absent,
 * never written over, never swept; shown by a scan; ended by an operator's overwrite only.
 */
#include "contract.h"

/* The stamped bytes of record 1, as the store keeps them. */
static size_t take_sound_bytes(struct contract *contract, uint8_t *bytes, size_t max)
{
    struct cfoil_op claim = contract_cas_op(1, 0, contract_draft(contract, 7, 1000, 40));
    struct cfoil_op get = contract_get_op(1);

    contract_apply(contract, &claim);
    contract_apply(contract, &get);
    assert_shows(&get, 7);
    assert_in_range(get.current_bytes, CFOIL_RECORD_HEADER_BYTES + 40, max);
    size_t len = get.current_bytes;
    memcpy(bytes, get.current, len);
    cfoil_op_free_current(&get);
    return len;
}

static void put_raw(struct contract *contract, uint64_t number, const uint8_t *bytes, size_t len)
{
    uint8_t id[CFOIL_ID_BYTES];

    contract_id(id, number);
    contract_close(contract);
    contract->store->hands->put_raw(contract->dir, id, cfoil_bytes_of(bytes, len));
    contract_reopen(contract);
}

static void put_nonsense(struct contract *contract)
{
    put_raw(contract, 1, (const uint8_t *)"nonsense", 8);
}

/* Record 1 is claimed, or settled, and then damaged where it stands. */
static void damage(struct contract *contract)
{
    uint8_t bytes[512];

    (void)take_sound_bytes(contract, bytes, sizeof(bytes));
    put_nonsense(contract);
}

static void assert_is_an_error_everywhere(struct contract *contract, enum cfoil_error error)
{
    struct cfoil_op ops[] = {
        contract_get_op(1),
        contract_cas_op(1, 0, contract_draft(contract, 8, 0, 5)),
        contract_cas_op(1, 7, contract_draft(contract, 8, 0, 5)),
    };
    struct cfoil_op lookup = contract_get_op(1);

    for (size_t i = 0; i < 3; i++) {
        contract_apply(contract, &ops[i]);
        assert_failed(&ops[i], error);
    }
    if (contract->ops->has_lookup) {
        contract->ops->lookup(contract->handle, &lookup);
        assert_failed(&lookup, error);
    }
}

static void any_changed_byte_of_the_header_is_an_error(void **state)
{
    struct contract *contract = *state;
    uint8_t bytes[512];
    size_t len = take_sound_bytes(contract, bytes, sizeof(bytes));

    for (size_t i = 0; i < CFOIL_RECORD_HEADER_BYTES; i++) {
        bytes[i] ^= 0x11;
        put_raw(contract, 1, bytes, len);
        /* Byte 3 is the version: 1 becomes 16, which a newer program may have written. */
        assert_is_an_error_everywhere(contract,
                                      i == 3 ? CFOIL_E_RECORD_VERSION : CFOIL_E_RECORD_CORRUPT);
        bytes[i] ^= 0x11;
    }
    put_raw(contract, 1, bytes, len);
    assert_get_shows(contract, 1, 7);
}

static void a_truncated_or_lengthened_record_is_an_error(void **state)
{
    static const size_t lengths[] = {0, 1, 3, 4, 111, 112, 113};
    struct contract *contract = *state;
    uint8_t bytes[512] = {0};
    size_t len = take_sound_bytes(contract, bytes, sizeof(bytes) - 1);

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        put_raw(contract, 1, bytes, lengths[i]);
        assert_is_an_error_everywhere(contract, CFOIL_E_RECORD_CORRUPT);
    }
    put_raw(contract, 1, bytes, len - 1);
    assert_is_an_error_everywhere(contract, CFOIL_E_RECORD_CORRUPT);
    put_raw(contract, 1, bytes, len + 1);
    assert_is_an_error_everywhere(contract, CFOIL_E_RECORD_CORRUPT);
}

static void a_changed_payload_is_shown_and_does_not_decode(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op get = contract_get_op(1);
    struct cfoil_record record;
    uint8_t bytes[512];
    size_t len = take_sound_bytes(contract, bytes, sizeof(bytes));

    bytes[len - 1] ^= 1;
    put_raw(contract, 1, bytes, len);
    contract_apply(contract, &get);
    assert_int_equal(get.status, CFOIL_OP_CURRENT);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(get.current, get.current_bytes), &record),
                     CFOIL_E_RECORD_CORRUPT);
    cfoil_op_free_current(&get);
}

static void the_rest_of_the_batch_is_served(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op ops[] = {
        contract_cas_op(0, 0, contract_draft(contract, 5, 0, 5)),
        contract_cas_op(1, 0, contract_draft(contract, 8, 0, 5)),
        contract_get_op(1),
        contract_cas_op(2, 0, contract_draft(contract, 6, 0, 5)),
    };
    struct cfoil_op *list[] = {&ops[0], &ops[1], &ops[2], &ops[3]};

    damage(contract);
    assert_int_equal(contract->ops->apply(contract->handle, list, 4), CFOIL_OK);
    assert_applied(&ops[0]);
    assert_failed(&ops[1], CFOIL_E_RECORD_CORRUPT);
    assert_failed(&ops[2], CFOIL_E_RECORD_CORRUPT);
    assert_applied(&ops[3]);
    assert_get_shows(contract, 0, 5);
    assert_get_shows(contract, 2, 6);
}

static bool count_and_compare(void *context, const uint8_t *id, struct cfoil_bytes encoded,
                              int64_t now_ms)
{
    size_t *seen = context;

    (void)id;
    (void)now_ms;
    assert_true(cfoil_bytes_equal(encoded, cfoil_bytes_of("nonsense", 8)));
    (*seen)++;
    return true;
}

static void a_scan_shows_it_and_a_sweep_leaves_it(void **state)
{
    struct contract *contract = *state;
    struct cfoil_sweep sweep = {0};
    size_t seen = 0;

    damage(contract);
    contract_pass_ms(contract, 1000 * HOUR_MS);
    assert_int_equal(contract->ops->sweep(contract->handle, &sweep, 100), CFOIL_OK);
    assert_int_equal(sweep.examined, 1);
    assert_int_equal(sweep.removed, 0);
    assert_int_equal(contract->ops->scan(contract->handle, NULL, 100, count_and_compare, &seen),
                     CFOIL_OK);
    assert_int_equal(seen, 1);
}

static void a_damaged_record_past_its_end_is_not_absent(void **state)
{
    struct contract *contract = *state;
    struct cfoil_sweep sweep = {0};
    uint8_t bytes[512];
    size_t len = take_sound_bytes(contract, bytes, sizeof(bytes));

    bytes[24] ^= 1; /* the fence; gone_at is as it was */
    put_raw(contract, 1, bytes, len);
    contract_pass_ms(contract, 5000);
    assert_is_an_error_everywhere(contract, CFOIL_E_RECORD_CORRUPT);
    assert_int_equal(contract->ops->sweep(contract->handle, &sweep, 100), CFOIL_OK);
    assert_int_equal(sweep.removed, 0);
}

static void an_operator_may_overwrite_it_whatever_is_expected(void **state)
{
    static const uint64_t expects[] = {0, 7, 12345};
    static const enum cfoil_state ends[] = {CFOIL_STATE_PROCESSING, CFOIL_STATE_FAILED};
    struct contract *contract = *state;

    damage(contract);
    for (size_t i = 0; i < 6; i++) {
        struct cfoil_op op = contract_cas_op(
            1, expects[i / 2], contract_draft_in(contract, ends[i % 2], 9, 1000, 600));
        put_nonsense(contract);
        op.overwrite_corrupt = true;
        contract_apply(contract, &op);
        assert_applied(&op);
        assert_get_shows(contract, 1, 9);
        contract_close(contract);
        assert_stands_once(contract, 1);
        contract_reopen(contract);
    }
    contract_pass_ms(contract, 1000);
    assert_get_absent(contract, 1);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(any_changed_byte_of_the_header_is_an_error),
        CONTRACT_CASE(a_truncated_or_lengthened_record_is_an_error),
        CONTRACT_CASE(a_changed_payload_is_shown_and_does_not_decode),
        CONTRACT_CASE(the_rest_of_the_batch_is_served),
        CONTRACT_CASE(a_scan_shows_it_and_a_sweep_leaves_it),
        CONTRACT_CASE(a_damaged_record_past_its_end_is_not_absent),
        CONTRACT_CASE(an_operator_may_overwrite_it_whatever_is_expected),
        CONTRACT_CASE_SETTLED(any_changed_byte_of_the_header_is_an_error),
        CONTRACT_CASE_SETTLED(a_truncated_or_lengthened_record_is_an_error),
        CONTRACT_CASE_SETTLED(a_changed_payload_is_shown_and_does_not_decode),
        CONTRACT_CASE_SETTLED(the_rest_of_the_batch_is_served),
        CONTRACT_CASE_SETTLED(a_scan_shows_it_and_a_sweep_leaves_it),
        CONTRACT_CASE_SETTLED(a_damaged_record_past_its_end_is_not_absent),
        CONTRACT_CASE_SETTLED(an_operator_may_overwrite_it_whatever_is_expected),
    };
    return contract_run(argc, argv, "corrupt", tests, sizeof(tests) / sizeof(tests[0]));
}
