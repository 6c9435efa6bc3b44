/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane over the chosen store in a directory of its own, and a loop that waits for it without ever
 * sleeping: it polls the lane's descriptor, with a deadline that fails the case.
 */
#ifndef CFOIL_TESTS_LANE_FIXTURE_H
#define CFOIL_TESTS_LANE_FIXTURE_H

#include "contract.h"
#include "store/lane.h"

#define LANE_WAIT_MS 20000

struct lane_case {
    struct contract *contract; /* its handle is closed */
    struct cfoil_lane *lane;
    size_t done_count;
};

/* Opens a lane with the options' store filled in from the contract. reopen_every_ms is 5. */
void lane_case_open(struct lane_case *lane_case, struct contract *contract,
                    enum cfoil_open_mode mode);
void lane_case_close(struct lane_case *lane_case);

/* Submits, flushes, and polls until this op is done. */
void lane_case_run(struct lane_case *lane_case, struct cfoil_op *op);

/* Polls until so many done() were called. */
void lane_case_wait(struct lane_case *lane_case, size_t done_count);

/* Prepares an op for the lane: done counts into the case. */
void lane_case_adopt(struct lane_case *lane_case, struct cfoil_op *op);

/* Runs gets of number 1 until one ends with this status and error; returns with it in *op. */
void lane_case_await(struct lane_case *lane_case, struct cfoil_op *op, enum cfoil_op_status status,
                     enum cfoil_error error);

#endif
