/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan and sweep: order, bounds, cursors, and that a sweep removes what is gone and nothing else. Claims
 * and settled records lie mixed, whether a store keeps them apart or not.
 */
#include "contract.h"

#define SEEN_MAX 2000

struct seen {
    uint8_t ids[SEEN_MAX][CFOIL_ID_BYTES];
    size_t count;
    size_t stop_after; /* 0: never */
    int64_t now_ms;
};

static bool see(void *context, const uint8_t *id, struct cfoil_bytes encoded, int64_t now_ms)
{
    struct seen *seen = context;
    struct cfoil_record_head head;

    assert_in_range(seen->count, 0, SEEN_MAX - 1);
    assert_int_equal(cfoil_record_peek(encoded, &head), CFOIL_OK);
    memcpy(seen->ids[seen->count++], id, CFOIL_ID_BYTES);
    seen->now_ms = now_ms;
    return seen->count != seen->stop_after;
}

static void scan(struct contract *contract, const uint8_t *cursor, uint64_t limit,
                 struct seen *seen)
{
    seen->count = 0;
    assert_int_equal(contract->ops->scan(contract->handle, cursor, limit, see, seen), CFOIL_OK);
}

static void assert_seen(const struct seen *seen, size_t place, uint64_t number)
{
    uint8_t id[CFOIL_ID_BYTES];

    contract_id(id, number);
    assert_memory_equal(seen->ids[place], id, CFOIL_ID_BYTES);
}

/* Runs of three claims between runs of three settled records, and of six now and then. */
static bool is_settled(uint64_t number)
{
    return number / 3 % 2 == 1 && number % 5 != 0;
}

/* Writes `count` new ids, number i * step, in a scattered order, by batches. */
static void claim_many(struct contract *contract, size_t count, uint64_t step,
                       int64_t gone_after_ms)
{
    static struct cfoil_op ops[CFOIL_STORE_BATCH_MAX];
    struct cfoil_op *list[CFOIL_STORE_BATCH_MAX];
    const struct cfoil_bytes drafts[] = {
        contract_draft_in(contract, CFOIL_STATE_PROCESSING, 9, gone_after_ms, 30),
        contract_draft_in(contract, CFOIL_STATE_SUCCEEDED, 9, gone_after_ms, 30),
    };

    for (size_t done = 0; done < count;) {
        size_t batch = count - done < CFOIL_STORE_BATCH_MAX ? count - done : CFOIL_STORE_BATCH_MAX;
        for (size_t i = 0; i < batch; i++) {
            /* 7919 is prime and shares no factor with the counts used here. */
            uint64_t number = (done + i) * 7919 % count;
            ops[i] = contract_cas_op(number * step, 0, drafts[is_settled(number) ? 1 : 0]);
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

static void an_empty_store_shows_nothing(void **state)
{
    static struct seen seen;
    uint8_t id[CFOIL_ID_BYTES];

    contract_id(id, 5);
    scan(*state, NULL, 10, &seen);
    assert_int_equal(seen.count, 0);
    scan(*state, id, 10, &seen);
    assert_int_equal(seen.count, 0);
}

static void records_are_shown_once_in_ascending_order(void **state)
{
    static struct seen seen;

    /* Two numbers whose ids differ in the first bytes only, too. */
    claim_many(*state, 1000, UINT64_C(0x0003000000000001), 0);
    scan(*state, NULL, SEEN_MAX, &seen);
    assert_int_equal(seen.count, 1000);
    for (size_t i = 0; i < 1000; i++) {
        assert_seen(&seen, i, i * UINT64_C(0x0003000000000001));
    }
}

static void a_scan_goes_on_after_its_cursor(void **state)
{
    static struct seen seen;
    uint8_t cursor[CFOIL_ID_BYTES];
    size_t total = 0;

    claim_many(*state, 100, 2, 0);
    scan(*state, NULL, 7, &seen);
    while (seen.count > 0) {
        for (size_t i = 0; i < seen.count; i++) {
            assert_seen(&seen, i, 2 * total++);
        }
        memcpy(cursor, seen.ids[seen.count - 1], sizeof(cursor));
        scan(*state, cursor, 7, &seen);
    }
    assert_int_equal(total, 100);
    contract_id(cursor, 51); /* not the id of any record */
    scan(*state, cursor, 1, &seen);
    assert_seen(&seen, 0, 52);
}

static void a_scan_stops_where_the_visitor_says(void **state)
{
    static struct seen seen;

    claim_many(*state, 100, 1, 0);
    seen.stop_after = 5;
    scan(*state, NULL, 50, &seen);
    seen.stop_after = 0;
    assert_int_equal(seen.count, 5);
}

static void gone_records_are_not_shown_and_do_not_count(void **state)
{
    static struct seen seen;
    struct contract *contract = *state;

    for (uint64_t i = 0; i < 20; i++) {
        contract_claim(contract, i, 9, i % 2 == 0 ? 1000 : 2000);
    }
    contract_pass_ms(contract, 1000);
    scan(contract, NULL, 5, &seen);
    assert_int_equal(seen.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_seen(&seen, i, 2 * i + 1);
    }
    assert_int_equal(seen.now_ms, CONTRACT_WALL_MS + 1000);
}

static void sweep_once(struct contract *contract, struct cfoil_sweep *sweep, uint64_t limit)
{
    assert_int_equal(contract->ops->sweep(contract->handle, sweep, limit), CFOIL_OK);
    assert_true(sweep->examined <= limit);
    assert_true(sweep->removed <= sweep->examined);
}

/* From the start to the end; returns how many were removed. */
static uint64_t sweep_round(struct contract *contract, uint64_t limit)
{
    struct cfoil_sweep sweep = {0};
    uint64_t removed = 0;

    for (size_t steps = 0; !sweep.wrapped; steps++) {
        assert_true(steps < 5000);
        sweep_once(contract, &sweep, limit);
        removed += sweep.removed;
        assert_true(sweep.wrapped || sweep.examined > 0);
    }
    return removed;
}

static void sweeping_an_empty_store_comes_round_at_once(void **state)
{
    struct cfoil_sweep sweep = {0};

    sweep_once(*state, &sweep, 10);
    assert_true(sweep.wrapped);
    assert_int_equal(sweep.examined, 0);
}

static void a_sweep_removes_all_that_is_gone_and_nothing_else(void **state)
{
    static struct seen seen;
    struct contract *contract = *state;

    claim_many(contract, 1000, 1, 1000);
    contract_pass_ms(contract, 500);
    for (uint64_t i = 0; i < 100; i++) {
        contract_claim(contract, 5000 + i, 9, 501);
    }
    contract_pass_ms(contract, 499);
    assert_int_equal(sweep_round(contract, 300), 0);
    contract_pass_ms(contract, 1);
    assert_int_equal(sweep_round(contract, 300), 1000);
    assert_int_equal(sweep_round(contract, 300), 0);
    scan(contract, NULL, SEEN_MAX, &seen);
    assert_int_equal(seen.count, 100);
    contract_pass_ms(contract, 1);
    assert_int_equal(sweep_round(contract, 7), 100);
}

static void a_sweep_step_is_bounded_and_goes_on_at_its_cursor(void **state)
{
    struct contract *contract = *state;
    struct cfoil_sweep sweep = {0};
    static const uint8_t zero[CFOIL_ID_BYTES];
    uint64_t examined = 0;

    claim_many(contract, 100, 1, 0);
    for (size_t i = 0; i < 10; i++) {
        assert_false(sweep.wrapped);
        sweep_once(contract, &sweep, 10);
        assert_int_equal(sweep.examined, 10);
        examined += sweep.examined;
    }
    assert_int_equal(examined, 100);
    assert_true(sweep.wrapped);
    assert_memory_equal(sweep.cursor, zero, sizeof(zero));
    sweep_once(contract, &sweep, 10);
    assert_int_equal(sweep.examined, 10);
    assert_false(sweep.wrapped);
}

static void sweep_steps_of_any_size_look_at_each_record_once(void **state)
{
    struct contract *contract = *state;

    claim_many(contract, 100, 1, 0);
    for (uint64_t limit = 1; limit < 12; limit++) {
        struct cfoil_sweep sweep = {0};
        uint64_t examined = 0;
        do {
            uint8_t id[CFOIL_ID_BYTES];
            sweep_once(contract, &sweep, limit);
            examined += sweep.examined;
            contract_id(id, examined - 1);
            assert_true(sweep.wrapped || memcmp(sweep.cursor, id, sizeof(id)) == 0);
        } while (!sweep.wrapped);
        assert_int_equal(examined, 100);
    }
}

static void a_sweep_may_begin_anywhere(void **state)
{
    struct contract *contract = *state;
    struct cfoil_sweep sweep = {0};

    claim_many(contract, 100, 2, 1000);
    contract_pass_ms(contract, 1000);
    contract_id(sweep.cursor, 151);
    sweep_once(contract, &sweep, 1000);
    assert_true(sweep.wrapped);
    assert_int_equal(sweep.removed, 24); /* 152, 154, ... 198 */
    assert_int_equal(sweep_round(contract, 1000), 76);
}

static void a_record_claimed_anew_in_a_gone_one_s_place_stays(void **state)
{
    struct contract *contract = *state;

    contract_claim(contract, 1, 7, 1000);
    contract_pass_ms(contract, 1000);
    contract_claim(contract, 1, 8, 1000);
    assert_int_equal(sweep_round(contract, 10), 0);
    assert_get_shows(contract, 1, 8);
}

static void forgetting_is_a_cas_to_a_gone_record(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op forget = contract_cas_op(1, 7, contract_draft(contract, 8, 1, 0));

    contract_claim(contract, 1, 7, 0);
    contract_apply(contract, &forget);
    assert_applied(&forget);
    contract_pass_ms(contract, 1);
    assert_get_absent(contract, 1);
    assert_int_equal(sweep_round(contract, 10), 1);
    contract_claim(contract, 1, 9, 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(an_empty_store_shows_nothing),
        CONTRACT_CASE(records_are_shown_once_in_ascending_order),
        CONTRACT_CASE(a_scan_goes_on_after_its_cursor),
        CONTRACT_CASE(a_scan_stops_where_the_visitor_says),
        CONTRACT_CASE(gone_records_are_not_shown_and_do_not_count),
        CONTRACT_CASE(sweeping_an_empty_store_comes_round_at_once),
        CONTRACT_CASE(a_sweep_removes_all_that_is_gone_and_nothing_else),
        CONTRACT_CASE(a_sweep_step_is_bounded_and_goes_on_at_its_cursor),
        CONTRACT_CASE(sweep_steps_of_any_size_look_at_each_record_once),
        CONTRACT_CASE(a_sweep_may_begin_anywhere),
        CONTRACT_CASE(a_record_claimed_anew_in_a_gone_one_s_place_stays),
        CONTRACT_CASE(forgetting_is_a_cas_to_a_gone_record),
    };
    return contract_run(argc, argv, "walk", tests, sizeof(tests) / sizeof(tests[0]));
}
