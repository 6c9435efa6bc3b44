/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: the way an event loop uses a store without blocking on it. One thread opens the store,
 * takes what was submitted as batches (group commit), and hands completions back through a file
 * descriptor. Also reopens a store that failed, checks that it is the same one, and sweeps a bounded
 * step when it has nothing to do.
 *
 *   loop thread:  submit, submit, ... flush ---> lane thread: sort, apply (one commit), complete
 *   loop thread:  poll <--- fd readable <-------'
 *
 * Invariant: every submitted op gets exactly one done(), called from cfoil_lane_poll on the thread
 * that polls, in no promised order; never from inside submit or flush.
 *
 * While the store is not open, ops end at once as FAILED with the open's error (they were not
 * applied), so that nobody waits for a store that is not there.
 *
 * Threads: submit, flush, poll, lookup, close belong to one thread, the loop's. The lane thread
 * blocks all signals and is named "cfoil-store". Open a lane after fork, once per process and store.
 */
#ifndef CFOIL_STORE_LANE_H
#define CFOIL_STORE_LANE_H

#include "store/store.h"

struct cfoil_lane;

struct cfoil_lane_options {
    struct cfoil_store_options store;  /* strings are copied */
    const struct cfoil_store_ops *ops; /* NULL: by the URL */
    bool threadless; /* no thread: flush applies on the caller's thread (command line, tests) */
    int64_t reopen_every_ms; /* 0: 500 */
    int64_t sweep_every_ms;  /* 0: never sweep here */
    /* Log events worth an operator's eye; called on the lane thread, must be thread-safe. May be NULL. */
    void (*log)(void *context, enum cfoil_error error, const char *text);
    void *log_context;
};

/* Counters since open. Read on the loop's thread; each is whole, together they may be a batch apart. */
struct cfoil_lane_stats {
    uint64_t operations;
    uint64_t batches;
    uint64_t batch_operations_max;
    uint64_t applied;
    uint64_t conflicts;
    uint64_t unknown;
    uint64_t failed;
    uint64_t reopened;
    uint64_t swept;
    uint64_t thread_cpu_us;
};

/*
 * Starts the lane. A store that cannot be opened does not fail it: the lane goes on trying. With
 * threadless it does fail, with the store's error and `problem` filled. Errors: INVALID (unknown
 * scheme), NO_MEMORY, SYSTEM, and threadless the store's.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_lane_open(const struct cfoil_lane_options *options,
                                                  struct cfoil_lane **lane, char *problem,
                                                  size_t problem_bytes);

/* Queues an op. It is not looked at before the next flush. */
void cfoil_lane_submit(struct cfoil_lane *lane, struct cfoil_op *op);

/* Hands everything queued to the lane thread; one wake-up however many there are. */
void cfoil_lane_flush(struct cfoil_lane *lane);

/* Becomes readable when there are completions; an eventfd, level- or edge-triggered as you like. */
int cfoil_lane_fd(const struct cfoil_lane *lane);

/* Runs done() of every completed op; returns how many. Clears the fd. */
size_t cfoil_lane_poll(struct cfoil_lane *lane);

/*
 * A get answered at once on the caller's thread. False if the store has no such thing or is not
 * open: then submit it. done() is not called.
 */
bool cfoil_lane_lookup(struct cfoil_lane *lane, struct cfoil_op *op);

/* Ops submitted and not yet completed through poll. */
size_t cfoil_lane_pending(const struct cfoil_lane *lane);

void cfoil_lane_read_stats(const struct cfoil_lane *lane, struct cfoil_lane_stats *stats);

/* The store's handle for scan and sweep; threadless lanes only, else NULL. */
struct cfoil_store *cfoil_lane_store(struct cfoil_lane *lane, const struct cfoil_store_ops **ops);

/*
 * Ends the thread after the batch it is on, completes what is left as FAILED with CLOSING (calling
 * done), and frees the lane. The store is closed. An op that done submits meanwhile ends the same way,
 * so done must not submit for ever.
 */
void cfoil_lane_close(struct cfoil_lane *lane);

/*
 * The same for a process that ends anyway, and must not wait for a store that hangs. False: the thread
 * is still on its batch after so many ms. Then nothing was freed and no done was called; the lane, its
 * ops and whatever done would touch must stay until the process is gone, and so must the code of this
 * library, because the thread may come back at any time. Nothing but this may be called on the lane.
 */
CFOIL_MUST_CHECK bool cfoil_lane_leave(struct cfoil_lane *lane, int64_t wait_max_ms);

#endif
