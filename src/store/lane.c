/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lane (lane.h): two queues and a thread.
 *
 *   staged --flush--> inbox --thread--> batch --apply--> outbox --poll--> done()
 *   (loop's)          (mutex)                            (mutex)
 *
 * Whatever the loop hands over while a commit runs is the next batch, so batches grow with the load by
 * themselves. The handle has a mutex of its own, held by lookup and while the handle is exchanged,
 * never during apply.
 *
 * Invariant: an op is in exactly one of staged, inbox, batch, outbox until its done().
 */
#include "store/lane_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "store/judge.h"

static enum cfoil_error copy_options(struct cfoil_lane *lane,
                                     const struct cfoil_lane_options *options)
{
    lane->options = *options;
    lane->url = strdup(options->store.url);
    if (lane->url == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    if (options->store.clock.boot_id != NULL) {
        lane->boot_id = strdup(options->store.clock.boot_id);
        if (lane->boot_id == NULL) {
            return CFOIL_E_NO_MEMORY;
        }
    }
    lane->options.store.url = lane->url;
    lane->options.store.clock.boot_id = lane->boot_id;
    if (lane->options.reopen_every_ms == 0) {
        lane->options.reopen_every_ms = CFOIL_LANE_REOPEN_MS;
    }
    return CFOIL_OK;
}

static void free_lane(struct cfoil_lane *lane)
{
    if (lane->event_fd >= 0) {
        (void)close(lane->event_fd);
    }
    (void)pthread_cond_destroy(&lane->wake);
    (void)pthread_mutex_destroy(&lane->mutex);
    (void)pthread_mutex_destroy(&lane->handle_mutex);
    free(lane->url);
    free(lane->boot_id);
    free(lane);
}

static struct cfoil_lane *make_lane(void)
{
    pthread_condattr_t attributes;
    struct cfoil_lane *lane = calloc(1, sizeof(*lane));

    if (lane == NULL) {
        return NULL;
    }
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&lane->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&lane->mutex, NULL);
    (void)pthread_mutex_init(&lane->handle_mutex, NULL);
    lane->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return lane;
}

static enum cfoil_error start(struct cfoil_lane *lane, char *problem, size_t problem_bytes)
{
    if (lane->event_fd < 0) {
        cfoil_problem(problem, problem_bytes, "no eventfd: %s", strerror(errno));
        return CFOIL_E_SYSTEM;
    }
    if (lane->options.threadless) {
        return cfoil_lane_reopen(lane, problem, problem_bytes);
    }
    return cfoil_lane_start_thread(lane, problem, problem_bytes);
}

enum cfoil_error cfoil_lane_open(const struct cfoil_lane_options *options, struct cfoil_lane **lane,
                                 char *problem, size_t problem_bytes)
{
    const struct cfoil_store_ops *ops = options->ops;

    if (ops == NULL) {
        ops = cfoil_store_for_url(options->store.url);
    }
    if (ops == NULL) {
        cfoil_problem(problem, problem_bytes,
                      "'%s': unknown store; known are lmdb:DIR and memory:", options->store.url);
        return CFOIL_E_INVALID;
    }
    struct cfoil_lane *made = make_lane();
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    made->ops = ops;
    enum cfoil_error error = copy_options(made, options);
    if (error == CFOIL_OK) {
        error = start(made, problem, problem_bytes);
    }
    if (error != CFOIL_OK) {
        free_lane(made);
        return error;
    }
    *lane = made;
    return CFOIL_OK;
}

void cfoil_lane_submit(struct cfoil_lane *lane, struct cfoil_op *op)
{
    op->status = CFOIL_OP_PENDING;
    op->error = CFOIL_OK;
    op->now_ms = 0;
    op->current_bytes = 0;
    lane->pending++;
    cfoil_queue_push(&lane->staged, op);
}

void cfoil_lane_flush(struct cfoil_lane *lane)
{
    if (lane->staged.first == NULL) {
        return;
    }
    if (lane->options.threadless) {
        cfoil_queue_append(&lane->inbox, &lane->staged);
        while (cfoil_lane_serve_batch(lane)) {
        }
        return;
    }
    (void)pthread_mutex_lock(&lane->mutex);
    bool was_empty = lane->inbox.first == NULL;
    cfoil_queue_append(&lane->inbox, &lane->staged);
    (void)pthread_mutex_unlock(&lane->mutex);
    if (was_empty) {
        (void)pthread_cond_signal(&lane->wake);
    }
}

int cfoil_lane_fd(const struct cfoil_lane *lane)
{
    return lane->event_fd;
}

/* Calls done of every op in the queue, which may submit new ones. */
static size_t finish_all(struct cfoil_lane *lane, struct cfoil_queue *queue)
{
    struct cfoil_op *op;
    size_t count = 0;

    while ((op = cfoil_queue_pop(queue)) != NULL) {
        lane->pending--;
        count++;
        if (op->done != NULL) {
            op->done(op);
        }
    }
    return count;
}

size_t cfoil_lane_poll(struct cfoil_lane *lane)
{
    struct cfoil_queue finished = {NULL, NULL};
    uint64_t value;

    /* Cleared before the outbox is taken: what comes in between signals again. */
    ssize_t got = read(lane->event_fd, &value, sizeof(value));
    (void)got; /* nothing to read is fine */
    (void)pthread_mutex_lock(&lane->mutex);
    cfoil_queue_append(&finished, &lane->outbox);
    (void)pthread_mutex_unlock(&lane->mutex);
    return finish_all(lane, &finished);
}

bool cfoil_lane_lookup(struct cfoil_lane *lane, struct cfoil_op *op)
{
    bool served = false;

    if (!lane->ops->has_lookup) {
        return false;
    }
    (void)pthread_mutex_lock(&lane->handle_mutex);
    if (lane->store != NULL) {
        lane->ops->lookup(lane->store, op);
        served = true;
    }
    (void)pthread_mutex_unlock(&lane->handle_mutex);
    return served;
}

size_t cfoil_lane_pending(const struct cfoil_lane *lane)
{
    return lane->pending;
}

/* Asked of the kernel here, because the thread would have to ask with every batch. */
static uint64_t thread_cpu_us(const struct cfoil_lane *lane)
{
    clockid_t clock;
    struct timespec used;

    if (lane->options.threadless || pthread_getcpuclockid(lane->thread, &clock) != 0 ||
        clock_gettime(clock, &used) != 0) {
        return 0;
    }
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

void cfoil_lane_read_stats(const struct cfoil_lane *lane, struct cfoil_lane_stats *stats)
{
    const struct cfoil_lane_counters *counters = &lane->counters;

    stats->operations = atomic_load(&counters->operations);
    stats->batches = atomic_load(&counters->batches);
    stats->batch_operations_max = atomic_load(&counters->batch_operations_max);
    stats->applied = atomic_load(&counters->applied);
    stats->conflicts = atomic_load(&counters->conflicts);
    stats->unknown = atomic_load(&counters->unknown);
    stats->failed = atomic_load(&counters->failed);
    stats->reopened = atomic_load(&counters->reopened);
    stats->swept = atomic_load(&counters->swept);
    stats->thread_cpu_us = thread_cpu_us(lane);
}

struct cfoil_store *cfoil_lane_store(struct cfoil_lane *lane, const struct cfoil_store_ops **ops)
{
    if (!lane->options.threadless) {
        return NULL;
    }
    *ops = lane->ops;
    return lane->store;
}

static void fail_as_closing(struct cfoil_lane *lane, struct cfoil_queue *queue)
{
    for (struct cfoil_op *op = queue->first; op != NULL; op = op->link) {
        cfoil_op_finish(op, CFOIL_OP_FAILED, CFOIL_E_CLOSING, 0);
    }
    (void)finish_all(lane, queue);
}

static void tell_to_stop(struct cfoil_lane *lane)
{
    (void)pthread_mutex_lock(&lane->mutex);
    lane->stopping = true;
    (void)pthread_mutex_unlock(&lane->mutex);
    (void)pthread_cond_signal(&lane->wake);
}

/* The thread has ended, or there was none. */
static void finish_close(struct cfoil_lane *lane)
{
    (void)finish_all(lane, &lane->outbox);
    fail_as_closing(lane, &lane->inbox);
    while (lane->staged.first != NULL) {
        struct cfoil_queue left = {NULL, NULL};
        cfoil_queue_append(&left, &lane->staged);
        fail_as_closing(lane, &left);
    }
    cfoil_lane_drop_store(lane);
    free_lane(lane);
}

void cfoil_lane_close(struct cfoil_lane *lane)
{
    if (!lane->options.threadless) {
        tell_to_stop(lane);
        (void)pthread_join(lane->thread, NULL);
    }
    finish_close(lane);
}

bool cfoil_lane_leave(struct cfoil_lane *lane, int64_t wait_max_ms)
{
    struct timespec until;

    if (!lane->options.threadless) {
        tell_to_stop(lane);
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += wait_max_ms / 1000;
        until.tv_nsec += wait_max_ms % 1000 * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_clockjoin_np(lane->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
            return false;
        }
    }
    finish_close(lane);
    return true;
}
