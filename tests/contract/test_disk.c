/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that is full, or fails, under LMDB: what is said of it, when a handle is given up for it, and
 * what a lane tells the log.
 */
#include "failing_disk.h"
#include "lane_fixture.h"

#define BODY_BYTES 20000 /* several pages in a row, so that a write of them can be cut short */
#define MANY       30

static int set_up(void **state)
{
    failing_disk_set(FAILING_DISK_SOUND);
    return contract_setup(state);
}

#define DISK_CASE(name) cmocka_unit_test_setup_teardown(name, set_up, contract_teardown)

static enum cfoil_error run(struct contract *contract, struct cfoil_op *op)
{
    return contract->ops->apply(contract->handle, &op, 1);
}

static void assert_unknown(const struct cfoil_op *op, enum cfoil_error error)
{
    assert_int_equal(op->status, CFOIL_OP_UNKNOWN);
    assert_int_equal(op->error, error);
}

/* The disk fails a batch as full, and this very handle goes on once there is room. */
static void assert_full_and_goes_on(struct contract *contract, enum failing_disk how)
{
    struct cfoil_bytes draft = contract_draft(contract, 8, 0, BODY_BYTES);

    contract_claim(contract, 1, 7, 0);
    for (size_t i = 0; i < MANY; i++) {
        struct cfoil_op op = contract_cas_op(2, 0, draft);
        failing_disk_set(how);
        assert_int_equal(run(contract, &op), CFOIL_OK);
        assert_unknown(&op, CFOIL_E_STORE_FULL);
        assert_get_shows(contract, 1, 7);
        assert_get_absent(contract, 2);
    }
    failing_disk_set(FAILING_DISK_SOUND);
    struct cfoil_op op = contract_cas_op(2, 0, draft);
    assert_int_equal(run(contract, &op), CFOIL_OK);
    assert_applied(&op);
    contract_reopen(contract);
    assert_get_shows(contract, 1, 7);
    assert_get_shows(contract, 2, 8);
}

static void a_disk_without_room_is_full_and_the_handle_goes_on(void **state)
{
    assert_full_and_goes_on(*state, FAILING_DISK_NO_ROOM);
}

/* LMDB calls it an I/O error. */
static void a_write_that_a_full_disk_cut_short_is_full_and_the_handle_goes_on(void **state)
{
    assert_full_and_goes_on(*state, FAILING_DISK_CUT_SHORT);
}

static void a_disk_that_fails_with_room_left_is_not_called_full(void **state)
{
    struct contract *contract = *state;
    struct cfoil_op op = contract_cas_op(1, 0, contract_draft(contract, 7, 0, BODY_BYTES));

    failing_disk_set(FAILING_DISK_BROKEN);
    assert_int_equal(run(contract, &op), CFOIL_E_STORE_UNAVAILABLE);
    assert_unknown(&op, CFOIL_E_STORE_UNAVAILABLE);
    failing_disk_set(FAILING_DISK_SOUND);
    contract_reopen(contract);
    assert_get_absent(contract, 1);
}

/* LMDB refuses everything after it, so that only a new handle helps, and one is enough. */
static void a_meta_page_that_a_full_disk_refused_costs_the_handle(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes draft = contract_draft(contract, 8, 0, 100);

    contract_claim(contract, 1, 7, 0);
    struct cfoil_op op = contract_cas_op(2, 0, draft);
    failing_disk_set(FAILING_DISK_META_NO_ROOM);
    assert_int_equal(run(contract, &op), CFOIL_E_STORE_FULL);
    assert_unknown(&op, CFOIL_E_STORE_FULL);
    contract_reopen(contract);
    assert_get_shows(contract, 1, 7);
    assert_get_absent(contract, 2);
    failing_disk_set(FAILING_DISK_SOUND);
    op = contract_cas_op(2, 0, draft);
    assert_int_equal(run(contract, &op), CFOIL_OK);
    assert_applied(&op);
}

static void write_gone_records(struct contract *contract)
{
    for (uint64_t i = 0; i < MANY; i++) {
        contract_claim(contract, i, 7, 1000);
    }
    contract_pass_ms(contract, 2000);
}

static enum cfoil_error sweep(struct contract *contract, uint64_t *removed)
{
    struct cfoil_sweep sweep = {0};

    enum cfoil_error error = contract->ops->sweep(contract->handle, &sweep, 1000);
    *removed = sweep.removed;
    return error;
}

static void a_sweep_on_a_full_disk_says_full_and_goes_on_later(void **state)
{
    struct contract *contract = *state;
    uint64_t removed;

    write_gone_records(contract);
    failing_disk_set(FAILING_DISK_CUT_SHORT);
    assert_int_equal(sweep(contract, &removed), CFOIL_E_STORE_FULL);
    assert_int_equal(removed, 0);
    failing_disk_set(FAILING_DISK_SOUND);
    assert_int_equal(sweep(contract, &removed), CFOIL_OK);
    assert_int_equal(removed, MANY);
}

/* STORE_FULL from a sweep leaves the handle open, which would then refuse replays too. */
static void a_sweep_that_costs_the_handle_says_so(void **state)
{
    struct contract *contract = *state;
    uint64_t removed;

    write_gone_records(contract);
    failing_disk_set(FAILING_DISK_META_NO_ROOM);
    assert_int_equal(sweep(contract, &removed), CFOIL_E_STORE_UNAVAILABLE);
}

/* After a boot the clock is written while the store is opened. */
static void a_store_that_cannot_be_opened_because_the_disk_is_full_says_so(void **state)
{
    struct contract *contract = *state;

    contract_claim(contract, 1, 7, 0);
    contract_close(contract);
    contract_reboot(contract, CONTRACT_WALL_MS + HOUR_MS);
    failing_disk_set(FAILING_DISK_CUT_SHORT);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_E_STORE_FULL);
    failing_disk_set(FAILING_DISK_SOUND);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
    assert_get_shows(contract, 1, 7);
}

/* What a lane told the log, in its order. */
struct told {
    enum cfoil_error errors[MANY * 2];
    _Atomic size_t count;
};

static void note(void *context, enum cfoil_error error, const char *text)
{
    struct told *told = context;
    size_t at = atomic_load(&told->count);

    assert_non_null(text);
    if (at < MANY * 2) {
        told->errors[at] = error;
        atomic_store(&told->count, at + 1);
    }
}

static void run_in_lane(struct lane_case *lane, struct cfoil_bytes draft,
                        enum cfoil_op_status status, enum cfoil_error error)
{
    struct cfoil_op op = contract_cas_op(1, 0, draft);

    lane_case_run(lane, &op);
    assert_int_equal(op.status, status);
    assert_int_equal(op.error, error);
}

/* Many batches on a bad disk, then a sound one; returns how often the store was opened again. */
static uint64_t live_through(struct contract *contract, enum failing_disk how,
                             enum cfoil_error error, struct told *told)
{
    struct cfoil_lane_options options = {.log = note, .log_context = told};
    struct lane_case lane = {.contract = contract};
    struct cfoil_lane_stats stats;
    char problem[512] = "";
    struct cfoil_op get = contract_get_op(1);

    contract_close(contract);
    struct cfoil_bytes draft = contract_draft(contract, 7, 0, BODY_BYTES);
    options.store = contract_options(contract, CFOIL_OPEN_EXISTING);
    assert_int_equal(cfoil_lane_open(&options, &lane.lane, problem, sizeof(problem)), CFOIL_OK);
    lane_case_run(&lane, &get);
    assert_absent(&get);
    failing_disk_set(how);
    for (size_t i = 0; i < MANY; i++) {
        run_in_lane(&lane, draft, CFOIL_OP_UNKNOWN, error);
    }
    failing_disk_set(FAILING_DISK_SOUND);
    run_in_lane(&lane, draft, CFOIL_OP_APPLIED, CFOIL_OK);
    cfoil_lane_read_stats(lane.lane, &stats);
    lane_case_close(&lane);
    return stats.reopened;
}

static void a_lane_keeps_its_handle_over_a_full_disk(void **state)
{
    struct told told = {.count = 0};

    assert_int_equal(live_through(*state, FAILING_DISK_CUT_SHORT, CFOIL_E_STORE_FULL, &told), 0);
    assert_int_equal(told.count, 0); /* whoever wanted to write is told */
}

static void assert_told_once(const struct told *told, enum cfoil_error error)
{
    assert_int_equal(told->count, 2);
    assert_int_equal(told->errors[0], error);
    assert_int_equal(told->errors[1], CFOIL_OK);
}

/* It can be opened every time, and fails every time. */
static void a_failing_disk_is_told_once_and_its_end_after_a_write(void **state)
{
    struct told told = {.count = 0};

    assert_int_equal(live_through(*state, FAILING_DISK_BROKEN, CFOIL_E_STORE_UNAVAILABLE, &told),
                     MANY);
    assert_told_once(&told, CFOIL_E_STORE_UNAVAILABLE);
}

static void a_full_disk_that_costs_the_handle_is_told_once(void **state)
{
    struct told told = {.count = 0};

    assert_int_equal(live_through(*state, FAILING_DISK_META_NO_ROOM, CFOIL_E_STORE_FULL, &told),
                     MANY);
    assert_told_once(&told, CFOIL_E_STORE_FULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        DISK_CASE(a_disk_without_room_is_full_and_the_handle_goes_on),
        DISK_CASE(a_write_that_a_full_disk_cut_short_is_full_and_the_handle_goes_on),
        DISK_CASE(a_disk_that_fails_with_room_left_is_not_called_full),
        DISK_CASE(a_meta_page_that_a_full_disk_refused_costs_the_handle),
        DISK_CASE(a_sweep_on_a_full_disk_says_full_and_goes_on_later),
        DISK_CASE(a_sweep_that_costs_the_handle_says_so),
        DISK_CASE(a_store_that_cannot_be_opened_because_the_disk_is_full_says_so),
        DISK_CASE(a_lane_keeps_its_handle_over_a_full_disk),
        DISK_CASE(a_failing_disk_is_told_once_and_its_end_after_a_write),
        DISK_CASE(a_full_disk_that_costs_the_handle_is_told_once),
    };
    return contract_run(argc, argv, "disk", tests, sizeof(tests) / sizeof(tests[0]));
}
