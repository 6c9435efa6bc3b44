/* SPDX-License-Identifier: Apache-2.0 */
/* See lane_fixture.h. */
#include "lane_fixture.h"

#include <poll.h>

static int64_t monotonic_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void lane_case_open(struct lane_case *lane_case, struct contract *contract,
                    enum cfoil_open_mode mode)
{
    struct cfoil_lane_options options = {.reopen_every_ms = 5};
    char problem[512] = "";

    contract_close(contract);
    memset(lane_case, 0, sizeof(*lane_case));
    lane_case->contract = contract;
    options.store = contract_options(contract, mode);
    options.ops = contract->ops;
    assert_int_equal(cfoil_lane_open(&options, &lane_case->lane, problem, sizeof(problem)),
                     CFOIL_OK);
}

void lane_case_close(struct lane_case *lane_case)
{
    cfoil_lane_close(lane_case->lane);
    lane_case->lane = NULL;
}

static void count_done(struct cfoil_op *op)
{
    struct lane_case *lane_case = op->context;

    assert_int_not_equal(op->status, CFOIL_OP_PENDING);
    lane_case->done_count++;
}

void lane_case_adopt(struct lane_case *lane_case, struct cfoil_op *op)
{
    op->done = count_done;
    op->context = lane_case;
}

void lane_case_wait(struct lane_case *lane_case, size_t done_count)
{
    struct pollfd fd = {cfoil_lane_fd(lane_case->lane), POLLIN, 0};
    int64_t deadline_ms = monotonic_ms() + LANE_WAIT_MS;

    while (lane_case->done_count < done_count) {
        int left_ms = (int)(deadline_ms - monotonic_ms());
        assert_true(left_ms > 0);
        (void)poll(&fd, 1, left_ms);
        (void)cfoil_lane_poll(lane_case->lane);
    }
}

void lane_case_run(struct lane_case *lane_case, struct cfoil_op *op)
{
    size_t before = lane_case->done_count;

    lane_case_adopt(lane_case, op);
    cfoil_lane_submit(lane_case->lane, op);
    cfoil_lane_flush(lane_case->lane);
    lane_case_wait(lane_case, before + 1);
}

void lane_case_await(struct lane_case *lane_case, struct cfoil_op *op, enum cfoil_op_status status,
                     enum cfoil_error error)
{
    int64_t deadline_ms = monotonic_ms() + LANE_WAIT_MS;

    do {
        assert_true(monotonic_ms() < deadline_ms);
        cfoil_op_free_current(op);
        *op = contract_get_op(1);
        lane_case_run(lane_case, op);
    } while (op->status != status || op->error != error);
}
