/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store time (R7) within one boot: it starts at the wall clock, follows the time since boot, and no
 * step of the wall clock moves it. Boots and several handles are in test_reboot.c.
 */
#include "contract.h"

static int64_t now_of(struct contract *contract)
{
    struct cfoil_op op = contract_get_op(99);

    contract_apply(contract, &op);
    assert_absent(&op);
    return op.now_ms;
}

static void a_new_store_starts_at_the_wall_clock(void **state)
{
    assert_int_equal(now_of(*state), CONTRACT_WALL_MS);
}

static void time_follows_the_time_since_boot(void **state)
{
    struct contract *contract = *state;

    atomic_fetch_add(&contract->clock.boot_ms, 1);
    assert_int_equal(now_of(contract), CONTRACT_WALL_MS + 1);
    atomic_fetch_add(&contract->clock.boot_ms, 10 * HOUR_MS); /* a machine that slept */
    assert_int_equal(now_of(contract), CONTRACT_WALL_MS + 1 + 10 * HOUR_MS);
}

static void a_wall_clock_put_back_an_hour_changes_nothing(void **state)
{
    struct contract *contract = *state;

    contract_claim(contract, 1, 7, 60000);
    contract_step_wall_ms(contract, -HOUR_MS);
    assert_int_equal(now_of(contract), CONTRACT_WALL_MS);
    contract_pass_ms(contract, 59999);
    assert_get_shows(contract, 1, 7);
    contract_pass_ms(contract, 1);
    assert_get_absent(contract, 1);
}

static void a_wall_clock_put_forward_an_hour_expires_nothing(void **state)
{
    struct contract *contract = *state;

    contract_claim(contract, 1, 7, 60000);
    contract_step_wall_ms(contract, HOUR_MS);
    assert_int_equal(now_of(contract), CONTRACT_WALL_MS);
    assert_get_shows(contract, 1, 7);
}

static void now_never_goes_back_even_if_the_clock_does(void **state)
{
    struct contract *contract = *state;
    int64_t before = now_of(contract);

    atomic_fetch_sub(&contract->clock.boot_ms, 500);
    assert_true(now_of(contract) >= before);
    contract_claim(contract, 1, 7, 0);
    assert_true(now_of(contract) >= before);
}

static void every_operation_of_a_batch_has_a_time(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op ops[3] = {contract_get_op(1),
                              contract_cas_op(1, 0, contract_draft(contract, 7, 0, 1)),
                              contract_cas_op(1, 0, contract_draft(contract, 8, 0, 1))};
    struct cfoil_op *list[3] = {&ops[0], &ops[1], &ops[2]};

    assert_int_equal(contract->ops->apply(contract->handle, list, 3), CFOIL_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ops[i].now_ms, CONTRACT_WALL_MS);
        cfoil_op_free_current(&ops[i]);
    }
}

static void the_next_multiple_is_of_store_time(void **state)
{
    struct contract *contract = *state;
    struct cfoil_draft draft = {0};
    uint8_t encoded[512];
    size_t len;

    draft.record.generation = 7;
    draft.record.state = CFOIL_STATE_PROCESSING;
    draft.record.at_ms[CFOIL_TIME_GONE_AT] = HOUR_MS;
    draft.form[CFOIL_TIME_GONE_AT] = CFOIL_TIME_NEXT_MULTIPLE;
    assert_int_equal(cfoil_draft_encode(&draft, encoded, sizeof(encoded), &len), CFOIL_OK);
    struct cfoil_op op = contract_cas_op(1, 0, cfoil_bytes_of(encoded, len));
    contract_apply(contract, &op);
    assert_applied(&op);
    /* 1700000000000 is 800000 ms into its hour. */
    contract_pass_ms(contract, HOUR_MS - 800000 - 1);
    assert_get_shows(contract, 1, 7);
    contract_pass_ms(contract, 1);
    assert_get_absent(contract, 1);
}

static void the_system_s_own_clocks_serve_too(void **state)
{
    struct contract *contract = *state;
    struct cfoil_store_options options = {.url = contract->url, .mode = CFOIL_OPEN_CREATE};
    struct cfoil_op op = contract_get_op(1);
    char problem[512] = "";

    contract_close(contract);
    contract_remove_tree(contract->dir);
    assert_int_equal(contract->ops->open(&options, &contract->handle, problem, sizeof(problem)),
                     CFOIL_OK);
    contract_apply(contract, &op);
    assert_absent(&op);
    int64_t wall_ms = (int64_t)time(NULL) * 1000;
    assert_in_range(op.now_ms, wall_ms - 60000, wall_ms + 60000);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(a_new_store_starts_at_the_wall_clock),
        CONTRACT_CASE(time_follows_the_time_since_boot),
        CONTRACT_CASE(a_wall_clock_put_back_an_hour_changes_nothing),
        CONTRACT_CASE(a_wall_clock_put_forward_an_hour_expires_nothing),
        CONTRACT_CASE(now_never_goes_back_even_if_the_clock_does),
        CONTRACT_CASE(every_operation_of_a_batch_has_a_time),
        CONTRACT_CASE(the_next_multiple_is_of_store_time),
        CONTRACT_CASE(the_system_s_own_clocks_serve_too),
    };
    return contract_run(argc, argv, "clock", tests, sizeof(tests) / sizeof(tests[0]));
}
