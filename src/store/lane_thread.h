/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a lane, shared by its loop's side (lane.c) and its thread's side (lane_thread.c).
 *
 * Who may touch what: staged, pending are the loop's. inbox, outbox, stopping are under mutex (a
 * threadless lane has one thread and locks only for form). store is written by the thread's side under
 * handle_mutex and read there without. Everything below "thread" is the thread's side's alone.
 */
#ifndef CFOIL_STORE_LANE_THREAD_H
#define CFOIL_STORE_LANE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/lane.h"

#define CFOIL_LANE_REOPEN_MS 500 /* default of reopen_every_ms */
#define CFOIL_LANE_CHECK_MS                                                                        \
    1000 /* an idle lane looks this often whether its store is still there */
#define CFOIL_PROBLEM_BYTES 512

/* A list through op->link, first in first out. */
struct cfoil_queue {
    struct cfoil_op *first;
    struct cfoil_op *last;
};

struct cfoil_lane_counters {
    _Atomic uint64_t operations;
    _Atomic uint64_t batches;
    _Atomic uint64_t batch_operations_max;
    _Atomic uint64_t applied;
    _Atomic uint64_t conflicts;
    _Atomic uint64_t unknown;
    _Atomic uint64_t failed;
    _Atomic uint64_t reopened;
    _Atomic uint64_t swept;
};

struct cfoil_lane {
    const struct cfoil_store_ops *ops;
    struct cfoil_lane_options options;
    char *url;     /* options.store.url points here */
    char *boot_id; /* and options.store.clock.boot_id here */
    int event_fd;
    struct cfoil_lane_counters counters;

    /* loop */
    struct cfoil_queue staged;
    size_t pending;

    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct cfoil_queue inbox;
    struct cfoil_queue outbox;
    bool stopping;

    pthread_mutex_t handle_mutex;
    struct cfoil_store *store; /* NULL while it is not open */

    /* thread */
    pthread_t thread;
    enum cfoil_error why_closed; /* of the last open; what ops are failed with */
    enum cfoil_error told;       /* trouble that the log was told of last; OK: none, or its end */
    bool must_write;             /* before its end is told */
    bool was_open;               /* then only this very store is opened again */
    uint64_t position;           /* of the store when it was last closed */
    struct cfoil_sweep sweep;
    int64_t reopen_due_ms;
    int64_t check_due_ms;
    int64_t sweep_due_ms;
    struct cfoil_op *batch[CFOIL_STORE_BATCH_MAX];
};

void cfoil_queue_push(struct cfoil_queue *queue, struct cfoil_op *op);
struct cfoil_op *cfoil_queue_pop(struct cfoil_queue *queue);

/* Moves everything in `tail` behind `queue`; `tail` is empty then. */
void cfoil_queue_append(struct cfoil_queue *queue, struct cfoil_queue *tail);

/* Errors: SYSTEM. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_lane_start_thread(struct cfoil_lane *lane, char *problem,
                                                          size_t problem_bytes);

/* Opens the store if it is not open. Errors: the store's. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_lane_reopen(struct cfoil_lane *lane, char *problem,
                                                    size_t problem_bytes);

/* Serves one batch out of the inbox. False if there was none, or the lane is closing. */
bool cfoil_lane_serve_batch(struct cfoil_lane *lane);

/* Closes the store if it is open. */
void cfoil_lane_drop_store(struct cfoil_lane *lane);

#endif
