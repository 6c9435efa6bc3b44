/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store time over boots, restarts and processes: one offset per boot, agreed on by all, anchored at the
 * wall clock but never behind what the store has written down (R7).
 */
#include "contract.h"

#include <sys/wait.h>
#include <unistd.h>

static int64_t now_of(struct contract *contract)
{
    struct cfoil_op op = contract_get_op(99);

    contract_apply(contract, &op);
    assert_absent(&op);
    return op.now_ms;
}

static void a_restart_in_the_same_boot_keeps_the_offset(void **state)
{
    struct contract *contract = *state;

    contract_close(contract);
    contract_step_wall_ms(contract, -5 * HOUR_MS);
    contract_pass_ms(contract, 10);
    contract_reopen(contract);
    assert_int_equal(now_of(contract), CONTRACT_WALL_MS + 10);
}

static void a_reboot_reads_the_wall_clock(void **state)
{
    struct contract *contract = *state;

    contract_claim(contract, 1, 7, 2 * HOUR_MS);
    contract_close(contract);
    contract_reboot(contract, CONTRACT_WALL_MS + 2 * HOUR_MS - 1);
    contract_reopen(contract);
    assert_int_equal(now_of(contract), CONTRACT_WALL_MS + 2 * HOUR_MS - 1);
    assert_get_shows(contract, 1, 7);
    contract_pass_ms(contract, 1);
    assert_get_absent(contract, 1);
}

static void a_reboot_with_the_wall_an_hour_back_goes_on_where_it_was(void **state)
{
    struct contract *contract = *state;

    contract_claim(contract, 1, 7, 0);
    contract_pass_ms(contract, 30 * 60000);
    contract_claim(contract, 2, 7, 60000); /* the last time that stands in a record */
    int64_t written = now_of(contract);
    contract_close(contract);
    contract_reboot(contract, CONTRACT_WALL_MS - HOUR_MS);
    contract_reopen(contract);
    int64_t after = now_of(contract);
    assert_in_range(after, written, written + 2000);
    assert_get_shows(contract, 2, 7);
    contract_pass_ms(contract, 60000);
    assert_get_absent(contract, 2); /* and time goes on from there */
}

static void no_time_in_a_record_comes_again_after_a_reboot(void **state)
{
    struct contract *contract = *state;
    uint64_t random = contract_seed();
    int64_t latest = 0;

    for (uint64_t i = 0; i < 300; i++) {
        struct cfoil_op op = contract_cas_op(i, 0, contract_draft(contract, 7, 0, 1));
        contract_apply(contract, &op);
        assert_applied(&op);
        assert_true(op.now_ms >= latest);
        latest = op.now_ms;
        contract_pass_ms(contract, (int64_t)(contract_random(&random) % 700));
        if (contract_random(&random) % 10 == 0) {
            contract_close(contract);
            contract_reboot(contract, CONTRACT_WALL_MS - HOUR_MS); /* a clock without battery */
            contract_reopen(contract);
        }
    }
}

static void a_clock_without_battery_does_not_go_back_either(void **state)
{
    struct contract *contract = *state;
    int64_t before = now_of(contract);

    contract_close(contract);
    contract_reboot(contract, 0);
    contract_reopen(contract);
    assert_true(now_of(contract) >= before);
}

/* Runs in a child whose wall clock differs by a day; its exit says whether it saw the same time. */
static _Noreturn void other_process(struct contract *contract, int64_t expected_ms)
{
    struct cfoil_op op = contract_get_op(99);
    struct cfoil_op *list = &op;

    contract_step_wall_ms(contract, 24 * HOUR_MS);
    if (contract_open(contract, CFOIL_OPEN_EXISTING) != CFOIL_OK ||
        contract->ops->apply(contract->handle, &list, 1) != CFOIL_OK) {
        _exit(2);
    }
    _exit(op.now_ms == expected_ms ? 0 : 1);
}

static void two_processes_of_a_boot_share_one_time(void **state)
{
    struct contract *contract = *state;
    int status;

    contract_close(contract);
    contract_reboot(contract, CONTRACT_WALL_MS + HOUR_MS);
    contract_reopen(contract);
    int64_t here = now_of(contract);
    contract_close(contract);
    pid_t child = fork();
    if (child == 0) {
        other_process(contract, here);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    contract_reopen(contract);
    assert_int_equal(now_of(contract), here);
}

static void a_reader_of_a_new_boot_does_not_go_back(void **state)
{
    struct contract *contract = *state;

    contract_claim(contract, 1, 7, 0);
    int64_t before = now_of(contract);
    contract_close(contract);
    contract_reboot(contract, CONTRACT_WALL_MS - HOUR_MS);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_READ_ONLY), CFOIL_OK);
    assert_true(now_of(contract) >= before);
    assert_get_shows(contract, 1, 7);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(a_restart_in_the_same_boot_keeps_the_offset),
        CONTRACT_CASE(a_reboot_reads_the_wall_clock),
        CONTRACT_CASE(a_reboot_with_the_wall_an_hour_back_goes_on_where_it_was),
        CONTRACT_CASE(no_time_in_a_record_comes_again_after_a_reboot),
        CONTRACT_CASE(a_clock_without_battery_does_not_go_back_either),
        CONTRACT_CASE(two_processes_of_a_boot_share_one_time),
        CONTRACT_CASE(a_reader_of_a_new_boot_does_not_go_back),
    };
    return contract_run(argc, argv, "reboot", tests, sizeof(tests) / sizeof(tests[0]));
}
