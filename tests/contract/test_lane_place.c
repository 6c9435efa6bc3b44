/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane whose store is missing, taken away, replaced or given back: operations end at once with an
 * error while it is not there, nothing is ever made in its place, and only the very same store brings
 * it back.
 */
#include "lane_fixture.h"

#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

static void away_path(struct contract *contract, char *path)
{
    int len = snprintf(path, CONTRACT_PATH_BYTES, "%s/away", contract->base);
    assert_in_range(len, 1, CONTRACT_PATH_BYTES - 1);
}

static void assert_not_there(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), -1);
}

/* Record 1 with generation 7 is in the store; the lane is open on it. */
static void open_on_a_record(struct lane_case *lane, struct contract *contract)
{
    struct cfoil_op get = contract_get_op(1);

    contract_claim(contract, 1, 7, 0);
    lane_case_open(lane, contract, CFOIL_OPEN_CREATE);
    lane_case_run(lane, &get);
    assert_shows(&get, 7);
    cfoil_op_free_current(&get);
}

static void operations_fail_while_the_store_is_missing_and_work_once_it_is_there(void **state)
{
    struct contract *contract = *state;
    struct lane_case lane;
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(contract, 8, 0, 5));
    char away[CONTRACT_PATH_BYTES];

    contract_claim(contract, 1, 7, 0);
    contract_close(contract);
    away_path(contract, away);
    assert_int_equal(rename(contract->dir, away), 0);
    lane_case_open(&lane, contract, CFOIL_OPEN_EXISTING);
    lane_case_run(&lane, &op);
    assert_failed(&op, CFOIL_E_STORE_UNAVAILABLE);
    assert_false(cfoil_lane_lookup(lane.lane, &op));
    assert_not_there(contract->dir);
    assert_int_equal(rename(away, contract->dir), 0);
    lane_case_await(&lane, &op, CFOIL_OP_CURRENT, CFOIL_OK);
    assert_shows(&op, 7);
    cfoil_op_free_current(&op);
    lane_case_close(&lane);
}

static void a_store_taken_away_and_given_back_serves_again(void **state)
{
    struct contract *contract = *state;
    struct cfoil_lane_stats stats;
    struct lane_case lane;
    struct cfoil_op op = {0};
    char away[CONTRACT_PATH_BYTES];

    open_on_a_record(&lane, contract);
    away_path(contract, away);
    for (unsigned round = 1; round <= 3; round++) {
        assert_int_equal(rename(contract->dir, away), 0);
        lane_case_await(&lane, &op, CFOIL_OP_FAILED, CFOIL_E_STORE_UNAVAILABLE);
        assert_not_there(contract->dir);
        assert_int_equal(rename(away, contract->dir), 0);
        lane_case_await(&lane, &op, CFOIL_OP_CURRENT, CFOIL_OK);
        assert_shows(&op, 7);
        cfoil_lane_read_stats(lane.lane, &stats);
        assert_int_equal(stats.reopened, round);
    }
    cfoil_op_free_current(&op);
    lane_case_close(&lane);
}

/*
 * Made elsewhere and moved into place: the lane's thread is trying to open that path all the time, and
 * one process must not have it open twice.
 */
static void put_an_empty_store_there(struct contract *contract)
{
    struct contract other = *contract;

    (void)snprintf(other.dir, sizeof(other.dir), "%.200s/other", contract->base);
    contract_set_url(&other);
    assert_int_equal(contract_open(&other, CFOIL_OPEN_CREATE), CFOIL_OK);
    contract_close(&other);
    assert_int_equal(rename(other.dir, contract->dir), 0);
}

/* At once, as far as the lane can see. */
static void delete_the_store(struct contract *contract)
{
    char away[CONTRACT_PATH_BYTES];

    away_path(contract, away);
    assert_int_equal(rename(contract->dir, away), 0);
    contract_remove_tree(away);
}

static void an_empty_store_in_its_place_is_never_used(void **state)
{
    struct contract *contract = *state;
    struct lane_case lane;
    struct cfoil_op op = {0};
    char away[CONTRACT_PATH_BYTES];

    open_on_a_record(&lane, contract);
    away_path(contract, away);
    assert_int_equal(rename(contract->dir, away), 0);
    lane_case_await(&lane, &op, CFOIL_OP_FAILED, CFOIL_E_STORE_UNAVAILABLE);
    put_an_empty_store_there(contract);
    lane_case_await(&lane, &op, CFOIL_OP_FAILED, CFOIL_E_STORE_REPLACED);
    for (size_t i = 0; i < 200; i++) { /* it stays so, whatever is asked */
        op = contract_cas_op(1, 0, contract_draft(contract, 8, 0, 5));
        lane_case_run(&lane, &op);
        assert_failed(&op, CFOIL_E_STORE_REPLACED);
    }
    char other[CONTRACT_PATH_BYTES];
    (void)snprintf(other, sizeof(other), "%.200s/other", contract->base);
    assert_int_equal(rename(contract->dir, other), 0);
    assert_int_equal(rename(away, contract->dir), 0);
    lane_case_await(&lane, &op, CFOIL_OP_CURRENT, CFOIL_OK);
    assert_shows(&op, 7);
    cfoil_op_free_current(&op);
    lane_case_close(&lane);
}

/* The copy has the same identity; what was claimed since must not run again. */
static void an_older_copy_in_its_place_is_never_used(void **state)
{
    struct contract *contract = *state;
    struct lane_case lane;
    struct cfoil_op op = {0};
    char away[CONTRACT_PATH_BYTES];
    char copy[CONTRACT_PATH_BYTES];

    contract_claim(contract, 1, 7, 0);
    contract_close(contract);
    away_path(contract, away);
    (void)snprintf(copy, sizeof(copy), "%.200s/copy", contract->base);
    contract_copy_store(contract->dir, copy);
    lane_case_open(&lane, contract, CFOIL_OPEN_EXISTING);
    op = contract_cas_op(2, 0, contract_draft(contract, 8, 0, 5));
    lane_case_run(&lane, &op);
    assert_int_equal(op.status, CFOIL_OP_APPLIED);
    assert_int_equal(rename(contract->dir, away), 0);
    lane_case_await(&lane, &op, CFOIL_OP_FAILED, CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(rename(copy, contract->dir), 0);
    lane_case_await(&lane, &op, CFOIL_OP_FAILED, CFOIL_E_STORE_REPLACED);
    assert_int_equal(rename(contract->dir, copy), 0);
    assert_int_equal(rename(away, contract->dir), 0);
    lane_case_await(&lane, &op, CFOIL_OP_CURRENT, CFOIL_OK);
    cfoil_op_free_current(&op);
    op = contract_get_op(2);
    lane_case_run(&lane, &op);
    assert_shows(&op, 8);
    cfoil_op_free_current(&op);
    lane_case_close(&lane);
}

static void a_deleted_store_is_not_made_again_by_a_lane_that_may_create(void **state)
{
    struct contract *contract = *state;
    struct lane_case lane;
    struct cfoil_op op = {0};

    open_on_a_record(&lane, contract); /* with CREATE */
    delete_the_store(contract);
    lane_case_await(&lane, &op, CFOIL_OP_FAILED, CFOIL_E_STORE_UNAVAILABLE);
    for (size_t i = 0; i < 200; i++) {
        op = contract_cas_op(1, 0, contract_draft(contract, 8, 0, 5));
        lane_case_run(&lane, &op);
        assert_failed(&op, CFOIL_E_STORE_UNAVAILABLE);
    }
    assert_not_there(contract->dir);
    lane_case_close(&lane);
}

static void an_idle_lane_notices_by_itself(void **state)
{
    struct contract *contract = *state;
    struct lane_case lane;
    struct cfoil_op get = contract_get_op(1);
    struct timespec pause = {0, 20000000};
    char away[CONTRACT_PATH_BYTES];
    bool served = true;

    if (!contract->ops->has_lookup) {
        skip();
    }
    open_on_a_record(&lane, contract);
    away_path(contract, away);
    assert_int_equal(rename(contract->dir, away), 0);
    for (size_t i = 0; i < 500 && served; i++) { /* a lookup alone asks nothing of the thread */
        (void)nanosleep(&pause, NULL);
        served = cfoil_lane_lookup(lane.lane, &get);
    }
    assert_false(served);
    cfoil_op_free_current(&get);
    lane_case_close(&lane);
}

static void a_lane_without_a_thread_says_why_it_cannot_open(void **state)
{
    struct contract *contract = *state;
    struct cfoil_lane_options options = {.threadless = true};
    struct cfoil_lane *lane = NULL;
    char problem[512] = "";

    contract_close(contract);
    contract_remove_tree(contract->dir);
    options.store = contract_options(contract, CFOIL_OPEN_EXISTING);
    assert_int_equal(cfoil_lane_open(&options, &lane, problem, sizeof(problem)),
                     CFOIL_E_STORE_UNAVAILABLE);
    assert_null(lane);
    assert_non_null(strstr(problem, contract->dir));
}

struct log {
    _Atomic unsigned lines;
    _Atomic unsigned by_error[CFOIL_E_COUNT];
};

static void count_line(void *context, enum cfoil_error error, const char *text)
{
    struct log *log = context;

    assert_true(text[0] != '\0');
    atomic_fetch_add(&log->lines, 1);
    atomic_fetch_add(&log->by_error[error], 1);
}

static void the_log_tells_changes_and_nothing_twice(void **state)
{
    static struct log log;
    struct contract *contract = *state;
    struct cfoil_lane_options options = {.reopen_every_ms = 1};
    struct lane_case lane = {.contract = contract};
    struct cfoil_op op = {0};
    char away[CONTRACT_PATH_BYTES];
    char problem[512] = "";

    contract_close(contract);
    options.store = contract_options(contract, CFOIL_OPEN_EXISTING);
    options.log = count_line;
    options.log_context = &log;
    assert_int_equal(cfoil_lane_open(&options, &lane.lane, problem, sizeof(problem)), CFOIL_OK);
    lane_case_await(&lane, &op, CFOIL_OP_CURRENT, CFOIL_OK);
    assert_int_equal(atomic_load(&log.lines), 0);
    away_path(contract, away);
    assert_int_equal(rename(contract->dir, away), 0);
    for (size_t i = 0; i < 50; i++) {
        lane_case_await(&lane, &op, CFOIL_OP_FAILED, CFOIL_E_STORE_UNAVAILABLE);
    }
    assert_int_equal(rename(away, contract->dir), 0);
    lane_case_await(&lane, &op, CFOIL_OP_CURRENT, CFOIL_OK);
    cfoil_op_free_current(&op);
    lane_case_close(&lane);
    assert_int_equal(atomic_load(&log.by_error[CFOIL_E_STORE_REPLACED]), 1);
    assert_int_equal(atomic_load(&log.by_error[CFOIL_E_STORE_UNAVAILABLE]), 1);
    assert_int_equal(atomic_load(&log.by_error[CFOIL_OK]), 1);
    assert_int_equal(atomic_load(&log.lines), 3);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(operations_fail_while_the_store_is_missing_and_work_once_it_is_there),
        CONTRACT_CASE(a_store_taken_away_and_given_back_serves_again),
        CONTRACT_CASE(an_empty_store_in_its_place_is_never_used),
        CONTRACT_CASE(an_older_copy_in_its_place_is_never_used),
        CONTRACT_CASE(a_deleted_store_is_not_made_again_by_a_lane_that_may_create),
        CONTRACT_CASE(an_idle_lane_notices_by_itself),
        CONTRACT_CASE(a_lane_without_a_thread_says_why_it_cannot_open),
        CONTRACT_CASE(the_log_tells_changes_and_nothing_twice),
    };
    return contract_run(argc, argv, "lane_place", tests, sizeof(tests) / sizeof(tests[0]));
}
