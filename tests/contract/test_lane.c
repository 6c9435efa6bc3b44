/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lane over any store: every operation is completed exactly once and only from poll, batches keep
 * the order of one id, closing leaves nobody waiting, and the thread keeps to itself.
 */
#include "lane_fixture.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define MANY 10000

static bool is_readable(struct cfoil_lane *lane, int timeout_ms)
{
    struct pollfd fd = {cfoil_lane_fd(lane), POLLIN, 0};
    return poll(&fd, 1, timeout_ms) == 1;
}

static void every_operation_is_completed_exactly_once(void **state)
{
    static struct cfoil_op ops[MANY];
    static unsigned completed[MANY];
    struct lane_case lane;
    uint64_t random = contract_seed();
    struct cfoil_lane_stats stats;

    lane_case_open(&lane, *state, CFOIL_OPEN_CREATE);
    struct cfoil_bytes draft = contract_draft(*state, 7, 0, 30);
    for (size_t i = 0; i < MANY; i++) {
        ops[i] = contract_cas_op(contract_random(&random) % (MANY / 2), 0, draft);
        ops[i].kind = i % 3 == 0 ? CFOIL_OP_GET : CFOIL_OP_CAS;
        lane_case_adopt(&lane, &ops[i]);
        cfoil_lane_submit(lane.lane, &ops[i]);
        if (contract_random(&random) % 20 == 0) {
            cfoil_lane_flush(lane.lane);
        }
    }
    cfoil_lane_flush(lane.lane);
    lane_case_wait(&lane, MANY);
    assert_int_equal(cfoil_lane_poll(lane.lane), 0);
    assert_int_equal(lane.done_count, MANY);
    assert_int_equal(cfoil_lane_pending(lane.lane), 0);
    cfoil_lane_read_stats(lane.lane, &stats);
    assert_int_equal(stats.operations, MANY);
    assert_int_equal(stats.applied + stats.conflicts, MANY);
    assert_int_equal(stats.unknown + stats.failed, 0);
    assert_in_range(stats.batch_operations_max, 1, CFOIL_STORE_BATCH_MAX);
    assert_in_range(stats.batches, MANY / CFOIL_STORE_BATCH_MAX, MANY);
    for (size_t i = 0; i < MANY; i++) {
        if (ops[i].status == CFOIL_OP_APPLIED) {
            uint64_t number = (uint64_t)ops[i].id[6] << 8 | ops[i].id[7];
            assert_int_equal(completed[number]++, 0); /* one winner per id */
        }
        cfoil_op_free_current(&ops[i]);
    }
    lane_case_close(&lane);
    memset(completed, 0, sizeof(completed));
}

static void nothing_is_done_inside_submit_or_flush(void **state)
{
    struct lane_case lane;
    struct cfoil_op op = contract_get_op(1);

    lane_case_open(&lane, *state, CFOIL_OPEN_CREATE);
    lane_case_adopt(&lane, &op);
    cfoil_lane_submit(lane.lane, &op);
    assert_int_equal(lane.done_count, 0);
    assert_false(is_readable(lane.lane, 0)); /* not before the flush */
    cfoil_lane_flush(lane.lane);
    assert_true(is_readable(lane.lane, LANE_WAIT_MS));
    assert_int_equal(lane.done_count, 0);
    assert_int_equal(cfoil_lane_pending(lane.lane), 1);
    lane_case_wait(&lane, 1);
    assert_absent(&op);
    assert_false(is_readable(lane.lane, 0));
    lane_case_close(&lane);
}

static void fifty_claims_through_a_lane_have_one_winner(void **state)
{
    struct lane_case lane;
    struct cfoil_op ops[50];
    struct cfoil_bytes drafts[50];

    lane_case_open(&lane, *state, CFOIL_OPEN_CREATE);
    for (size_t i = 0; i < 50; i++) {
        drafts[i] = contract_draft(*state, i + 1, 0, 5);
    }
    for (uint64_t round = 0; round < 200; round++) {
        unsigned applied = 0;
        for (size_t i = 0; i < 50; i++) {
            ops[i] = contract_cas_op(round, 0, drafts[i]);
            lane_case_adopt(&lane, &ops[i]);
            cfoil_lane_submit(lane.lane, &ops[i]);
            if (i % 10 == 9) {
                cfoil_lane_flush(lane.lane);
            }
        }
        lane_case_wait(&lane, 50 * (round + 1));
        for (size_t i = 0; i < 50; i++) {
            applied += ops[i].status == CFOIL_OP_APPLIED;
            if (i > 0) {
                assert_shows(&ops[i], 1); /* the first submitted is the winner */
            }
            cfoil_op_free_current(&ops[i]);
        }
        assert_int_equal(applied, 1);
    }
    lane_case_close(&lane);
}

struct chain {
    struct lane_case *lane;
    struct cfoil_bytes draft;
    uint64_t next;
    uint64_t last;
};

static void claim_the_next(struct cfoil_op *op)
{
    struct chain *chain = op->context;

    assert_applied(op);
    chain->lane->done_count++;
    if (chain->next < chain->last) {
        contract_id(op->id, chain->next++);
        cfoil_lane_submit(chain->lane->lane, op);
        cfoil_lane_flush(chain->lane->lane);
    }
}

static void done_may_submit_the_next_operation(void **state)
{
    struct lane_case lane;
    struct chain chain = {.lane = &lane, .next = 1, .last = 100};

    lane_case_open(&lane, *state, CFOIL_OPEN_CREATE);
    struct cfoil_op op = contract_cas_op(0, 0, contract_draft(*state, 7, 0, 5));
    op.done = claim_the_next;
    op.context = &chain;
    cfoil_lane_submit(lane.lane, &op);
    cfoil_lane_flush(lane.lane);
    lane_case_wait(&lane, 100);
    lane_case_close(&lane);
}

static void closing_completes_what_is_left(void **state)
{
    static struct cfoil_op ops[2000];
    struct lane_case lane;

    lane_case_open(&lane, *state, CFOIL_OPEN_CREATE);
    struct cfoil_bytes draft = contract_draft(*state, 7, 0, 5);
    for (size_t i = 0; i < 2000; i++) {
        ops[i] = contract_cas_op(i, 0, draft);
        lane_case_adopt(&lane, &ops[i]);
        cfoil_lane_submit(lane.lane, &ops[i]);
        if (i == 1500) {
            cfoil_lane_flush(lane.lane); /* the rest was never handed over */
        }
    }
    lane_case_close(&lane);
    assert_int_equal(lane.done_count, 2000);
    for (size_t i = 0; i < 2000; i++) {
        if (ops[i].status != CFOIL_OP_APPLIED || i > 1500) {
            assert_failed(&ops[i], CFOIL_E_CLOSING);
        }
    }
}

static void a_lookup_runs_beside_the_thread(void **state)
{
    struct lane_case lane;
    struct cfoil_op get = contract_get_op(1);
    struct cfoil_op ops[64];
    size_t shown = 0;

    if (!contract_chosen()->ops->has_lookup) {
        skip();
    }
    lane_case_open(&lane, *state, CFOIL_OPEN_CREATE);
    struct cfoil_bytes draft = contract_draft(*state, 7, 0, 50);
    for (uint64_t round = 0; round < 200; round++) {
        for (size_t i = 0; i < 64; i++) {
            ops[i] = contract_cas_op(round * 64 + i, 0, draft);
            lane_case_adopt(&lane, &ops[i]);
            cfoil_lane_submit(lane.lane, &ops[i]);
        }
        cfoil_lane_flush(lane.lane);
        for (size_t i = 0; i < 64; i++) {
            contract_id(get.id, round * 64 + i);
            if (cfoil_lane_lookup(lane.lane, &get)) {
                assert_int_equal(get.status, CFOIL_OP_CURRENT);
                shown += get.current_bytes > 0;
            }
        }
        lane_case_wait(&lane, 64 * (round + 1));
        assert_true(cfoil_lane_lookup(lane.lane, &get)); /* after its done it is there */
        assert_shows(&get, 7);
    }
    assert_int_not_equal(shown, 200 * 64); /* some were looked up before their commit */
    cfoil_op_free_current(&get);
    lane_case_close(&lane);
}

static void a_lane_without_a_thread_completes_from_poll_too(void **state)
{
    struct contract *contract = *state;
    struct cfoil_lane_options options = {.threadless = true};
    struct lane_case lane = {.contract = contract};
    const struct cfoil_store_ops *ops = NULL;
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(contract, 7, 0, 5));
    char problem[512] = "";

    contract_close(contract);
    options.store = contract_options(contract, CFOIL_OPEN_CREATE);
    assert_int_equal(cfoil_lane_open(&options, &lane.lane, problem, sizeof(problem)), CFOIL_OK);
    assert_non_null(cfoil_lane_store(lane.lane, &ops));
    assert_ptr_equal(ops, contract->ops);
    lane_case_adopt(&lane, &op);
    cfoil_lane_submit(lane.lane, &op);
    assert_int_equal(op.status, CFOIL_OP_PENDING);
    cfoil_lane_flush(lane.lane);
    assert_int_equal(lane.done_count, 0);
    assert_int_equal(cfoil_lane_poll(lane.lane), 1);
    assert_int_equal(lane.done_count, 1);
    assert_applied(&op);
    lane_case_close(&lane);
}

static void an_unknown_scheme_is_refused_and_the_known_are_named(void **state)
{
    struct cfoil_lane_options options = {.store.url = "floppy:a"};
    struct cfoil_lane *lane = NULL;
    char problem[512] = "";

    (void)state;
    assert_int_equal(cfoil_lane_open(&options, &lane, problem, sizeof(problem)), CFOIL_E_INVALID);
    assert_null(lane);
    assert_non_null(strstr(problem, "floppy"));
    assert_non_null(strstr(problem, "lmdb:"));
    assert_non_null(strstr(problem, "memory:"));
}

static bool read_task_file(const char *task, const char *file, char *text, size_t bytes)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, file);
    FILE *stream = fopen(path, "r");
    if (stream == NULL) {
        return false;
    }
    size_t got = fread(text, 1, bytes - 1, stream);
    text[got] = '\0';
    (void)fclose(stream);
    return got > 0;
}

static void the_thread_has_a_name_and_takes_no_signals(void **state)
{
    struct lane_case lane;
    struct cfoil_op op = contract_get_op(1);
    char text[4096];
    size_t found = 0;

    lane_case_open(&lane, *state, CFOIL_OPEN_CREATE);
    lane_case_run(&lane, &op);
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        if (!read_task_file(task->d_name, "comm", text, sizeof(text)) ||
            strcmp(text, "cfoil-store\n") != 0) {
            continue;
        }
        found++;
        assert_true(read_task_file(task->d_name, "status", text, sizeof(text)));
        const char *blocked = strstr(text, "SigBlk:");
        assert_non_null(blocked);
        uint64_t mask = strtoull(blocked + strlen("SigBlk:"), NULL, 16);
        /* All 64 but KILL (9), STOP (19) and the two glibc keeps for itself (32, 33). */
        assert_int_equal(mask | UINT64_C(0x180040100), UINT64_MAX);
    }
    (void)closedir(tasks);
    assert_int_equal(found, 1);
    lane_case_close(&lane);
}

static void the_thread_sweeps_when_told_to(void **state)
{
    struct contract *contract = *state;
    struct cfoil_lane_options options = {.sweep_every_ms = 1};
    struct lane_case lane = {.contract = contract};
    struct cfoil_lane_stats stats = {0};
    struct cfoil_op ops[100];
    struct cfoil_op get;
    char problem[512] = "";

    contract_close(contract);
    options.store = contract_options(contract, CFOIL_OPEN_CREATE);
    assert_int_equal(cfoil_lane_open(&options, &lane.lane, problem, sizeof(problem)), CFOIL_OK);
    struct cfoil_bytes draft = contract_draft(contract, 7, 1000, 5);
    for (size_t i = 0; i < 100; i++) {
        ops[i] = contract_cas_op(i * 1000003, 0, draft);
        lane_case_adopt(&lane, &ops[i]);
        cfoil_lane_submit(lane.lane, &ops[i]);
    }
    cfoil_lane_flush(lane.lane);
    lane_case_wait(&lane, 100);
    contract_pass_ms(contract, 1000);
    for (size_t i = 0; i < 100000 && stats.swept < 100; i++) {
        get = contract_get_op(1);
        lane_case_run(&lane, &get);
        cfoil_lane_read_stats(lane.lane, &stats);
    }
    assert_int_equal(stats.swept, 100);
    lane_case_close(&lane);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(every_operation_is_completed_exactly_once),
        CONTRACT_CASE(nothing_is_done_inside_submit_or_flush),
        CONTRACT_CASE(fifty_claims_through_a_lane_have_one_winner),
        CONTRACT_CASE(done_may_submit_the_next_operation),
        CONTRACT_CASE(closing_completes_what_is_left),
        CONTRACT_CASE(a_lookup_runs_beside_the_thread),
        CONTRACT_CASE(a_lane_without_a_thread_completes_from_poll_too),
        CONTRACT_CASE(an_unknown_scheme_is_refused_and_the_known_are_named),
        CONTRACT_CASE(the_thread_has_a_name_and_takes_no_signals),
        CONTRACT_CASE(the_thread_sweeps_when_told_to),
    };
    return contract_run(argc, argv, "lane", tests, sizeof(tests) / sizeof(tests[0]));
}
