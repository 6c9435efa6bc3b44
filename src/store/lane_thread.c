/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread's side of a lane: open and reopen, batch and apply, check and sweep. In a threadless lane
 * the same functions run on the caller's thread, from flush.
 *
 *   closed --open--> open --apply or check says the handle is of no use--> closed
 *
 * After the first success only that very store is opened again (its identity is expected) and never
 * made anew: an empty store in the place of a lost one, or an older copy, would execute a second time
 * what the lost one knew (R6).
 */
#include "store/lane_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "store/judge.h"

#define AVAILABLE      "the store is available again"
#define MUCH_REMOVED   100 /* by one sweep step */
#define SWEEP_HURRY_MS 10  /* until the step after one that removed much */

void cfoil_queue_push(struct cfoil_queue *queue, struct cfoil_op *op)
{
    op->link = NULL;
    if (queue->first == NULL) {
        queue->first = op;
    } else {
        queue->last->link = op;
    }
    queue->last = op;
}

struct cfoil_op *cfoil_queue_pop(struct cfoil_queue *queue)
{
    struct cfoil_op *op = queue->first;

    if (op != NULL) {
        queue->first = op->link;
        op->link = NULL;
    }
    return op;
}

void cfoil_queue_append(struct cfoil_queue *queue, struct cfoil_queue *tail)
{
    if (tail->first == NULL) {
        return;
    }
    if (queue->first == NULL) {
        queue->first = tail->first;
    } else {
        queue->last->link = tail->first;
    }
    queue->last = tail->last;
    tail->first = NULL;
}

static int64_t monotonic_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void say(struct cfoil_lane *lane, enum cfoil_error error, const char *text)
{
    if (lane->options.log != NULL) {
        lane->options.log(lane->options.log_context, error, text);
    }
}

/* Every trouble once, and its end: what is still as it was told is not told again. */
static void tell(struct cfoil_lane *lane, enum cfoil_error trouble, const char *text)
{
    if (trouble != lane->told) {
        lane->told = trouble;
        say(lane, trouble, text[0] != '\0' ? text : cfoil_error_text(trouble));
    }
}

static void set_store(struct cfoil_lane *lane, struct cfoil_store *store)
{
    (void)pthread_mutex_lock(&lane->handle_mutex);
    lane->store = store;
    (void)pthread_mutex_unlock(&lane->handle_mutex);
}

static uint64_t position_of(const struct cfoil_lane *lane, const struct cfoil_store *store)
{
    return lane->ops->position != NULL ? lane->ops->position(store) : 0;
}

void cfoil_lane_drop_store(struct cfoil_lane *lane)
{
    struct cfoil_store *store = lane->store;

    if (store == NULL) {
        return;
    }
    set_store(lane, NULL);
    lane->position = position_of(lane, store);
    lane->ops->close(store);
}

/* What an open store is held to from now on. */
static void adopt(struct cfoil_lane *lane, struct cfoil_store *store)
{
    int64_t now_ms = monotonic_ms();

    if (lane->was_open) {
        atomic_fetch_add(&lane->counters.reopened, 1);
    }
    lane->ops->identity(store, lane->options.store.expect_store_id);
    if (lane->options.store.mode == CFOIL_OPEN_CREATE) {
        lane->options.store.mode = CFOIL_OPEN_EXISTING;
    }
    lane->was_open = true;
    lane->check_due_ms = now_ms + CFOIL_LANE_CHECK_MS;
    lane->sweep_due_ms = now_ms + lane->options.sweep_every_ms;
    set_store(lane, store);
}

enum cfoil_error cfoil_lane_reopen(struct cfoil_lane *lane, char *problem, size_t problem_bytes)
{
    struct cfoil_store *store = NULL;

    if (lane->store != NULL) {
        return CFOIL_OK;
    }
    lane->reopen_due_ms = monotonic_ms() + lane->options.reopen_every_ms;
    enum cfoil_error error = lane->ops->open(&lane->options.store, &store, problem, problem_bytes);
    if (error != CFOIL_OK) {
        return error;
    }
    if (lane->was_open && position_of(lane, store) < lane->position) {
        lane->ops->close(store);
        (void)snprintf(
            problem, problem_bytes,
            "an older copy of the store is in its place: what was claimed since would run "
            "again; put the newer one back, or restart to go on with the copy");
        return CFOIL_E_STORE_REPLACED;
    }
    adopt(lane, store);
    return CFOIL_OK;
}

/* Opens if it is time to; says so only when something has changed. */
static void reopen_if_due(struct cfoil_lane *lane)
{
    char problem[CFOIL_PROBLEM_BYTES] = "";

    if (lane->store != NULL || monotonic_ms() < lane->reopen_due_ms) {
        return;
    }
    lane->why_closed = cfoil_lane_reopen(lane, problem, sizeof(problem));
    if (lane->why_closed != CFOIL_OK) {
        lane->must_write = false;
        tell(lane, lane->why_closed, problem);
    } else if (!lane->must_write) {
        tell(lane, CFOIL_OK, AVAILABLE);
    }
}

/*
 * The handle is of no use any more: close it, and try to open the same store at once. A disk that
 * fails writes can be opened every time; that it serves again is seen by a write.
 */
static void lose(struct cfoil_lane *lane, enum cfoil_error error)
{
    tell(lane, error, "");
    cfoil_lane_drop_store(lane);
    lane->must_write = error != CFOIL_E_STORE_REPLACED;
    lane->why_closed = error;
    lane->reopen_due_ms = 0;
}

static void add(_Atomic uint64_t *counter, uint64_t more)
{
    (void)atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static void count_batch(struct cfoil_lane *lane, size_t count)
{
    struct cfoil_lane_counters *counters = &lane->counters;
    uint64_t by_status[CFOIL_OP_FAILED + 1] = {0};

    for (size_t i = 0; i < count; i++) {
        by_status[lane->batch[i]->status]++;
    }
    add(&counters->operations, count);
    add(&counters->batches, 1);
    add(&counters->applied, by_status[CFOIL_OP_APPLIED]);
    add(&counters->conflicts, by_status[CFOIL_OP_CURRENT]);
    add(&counters->unknown, by_status[CFOIL_OP_UNKNOWN]);
    add(&counters->failed, by_status[CFOIL_OP_FAILED]);
    if (count > atomic_load_explicit(&counters->batch_operations_max, memory_order_relaxed)) {
        atomic_store_explicit(&counters->batch_operations_max, count, memory_order_relaxed);
    }
}

static bool has_written(const struct cfoil_lane *lane, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (lane->batch[i]->status == CFOIL_OP_APPLIED) {
            return true;
        }
    }
    return false;
}

static void run_batch(struct cfoil_lane *lane, size_t count)
{
    if (lane->store == NULL) {
        for (size_t i = 0; i < count; i++) {
            cfoil_op_finish(lane->batch[i], CFOIL_OP_FAILED, lane->why_closed, 0);
        }
    } else {
        cfoil_ops_sort(lane->batch, count);
        enum cfoil_error error = lane->ops->apply(lane->store, lane->batch, count);
        if (error != CFOIL_OK) {
            lose(lane, error);
        } else if (lane->must_write && has_written(lane, count)) {
            lane->must_write = false;
            tell(lane, CFOIL_OK, AVAILABLE);
        }
    }
    count_batch(lane, count);
}

/* Takes up to one batch out of the inbox. The mutex is held. */
static size_t take_batch(struct cfoil_lane *lane)
{
    size_t count = 0;

    while (count < CFOIL_STORE_BATCH_MAX && lane->inbox.first != NULL) {
        lane->batch[count++] = cfoil_queue_pop(&lane->inbox);
    }
    return count;
}

/* Hands the batch to the poller and wakes it, once, if it has nothing waiting already. */
static void complete(struct cfoil_lane *lane, size_t count)
{
    const uint64_t one = 1;

    (void)pthread_mutex_lock(&lane->mutex);
    bool was_empty = lane->outbox.first == NULL;
    for (size_t i = 0; i < count; i++) {
        cfoil_queue_push(&lane->outbox, lane->batch[i]);
    }
    (void)pthread_mutex_unlock(&lane->mutex);
    if (was_empty) {
        ssize_t put = write(lane->event_fd, &one, sizeof(one));
        (void)put; /* a counter that is at its limit is readable all the same */
    }
}

/* Whether a batch with a write could be made up now. */
static bool writes_wait(struct cfoil_lane *lane)
{
    (void)pthread_mutex_lock(&lane->mutex);
    bool waits =
        !lane->stopping && lane->inbox.first != NULL && lane->inbox.first->kind == CFOIL_OP_CAS;
    (void)pthread_mutex_unlock(&lane->mutex);
    return waits;
}

bool cfoil_lane_serve_batch(struct cfoil_lane *lane)
{
    reopen_if_due(lane);
    bool reserved = lane->store != NULL && lane->ops->reserve != NULL && writes_wait(lane);
    if (reserved) {
        lane->ops->reserve(lane->store);
    }
    (void)pthread_mutex_lock(&lane->mutex);
    size_t count = lane->stopping ? 0 : take_batch(lane);
    (void)pthread_mutex_unlock(&lane->mutex);
    if (count == 0) {
        if (reserved) {
            lane->ops->release(lane->store);
        }
        return false;
    }
    run_batch(lane, count);
    complete(lane, count);
    return true;
}

static void check_if_due(struct cfoil_lane *lane)
{
    if (lane->store == NULL || monotonic_ms() < lane->check_due_ms) {
        return;
    }
    enum cfoil_error error = lane->ops->apply(lane->store, lane->batch, 0);
    lane->check_due_ms = monotonic_ms() + CFOIL_LANE_CHECK_MS;
    if (error != CFOIL_OK) {
        lose(lane, error);
    }
}

/* A step that removed much is soon followed by another; batches go between them. */
static void sweep_if_due(struct cfoil_lane *lane)
{
    int64_t every_ms = lane->options.sweep_every_ms;

    if (lane->store == NULL || every_ms == 0 || monotonic_ms() < lane->sweep_due_ms) {
        return;
    }
    enum cfoil_error error = lane->ops->sweep(lane->store, &lane->sweep, CFOIL_SWEEP_STEP_MAX);
    add(&lane->counters.swept, lane->sweep.removed);
    bool much = error == CFOIL_OK && lane->sweep.removed >= MUCH_REMOVED;
    lane->sweep_due_ms = monotonic_ms() + (much ? smaller(SWEEP_HURRY_MS, every_ms) : every_ms);
    if (error == CFOIL_E_STORE_REPLACED || error == CFOIL_E_STORE_UNAVAILABLE) {
        lose(lane, error);
    }
}

/* When the thread must look around again although nobody asks. */
static int64_t next_due_ms(const struct cfoil_lane *lane)
{
    if (lane->store == NULL) {
        return lane->reopen_due_ms;
    }
    if (lane->options.sweep_every_ms == 0) {
        return lane->check_due_ms;
    }
    return smaller(lane->check_due_ms, lane->sweep_due_ms);
}

/* Waits for work, for the end, or until something is due. True when it is the end. */
static bool wait_for_work(struct cfoil_lane *lane)
{
    int64_t due_ms = next_due_ms(lane);
    struct timespec until = {due_ms / 1000, due_ms % 1000 * 1000000};
    int rc = 0;

    (void)pthread_mutex_lock(&lane->mutex);
    while (lane->inbox.first == NULL && !lane->stopping && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&lane->wake, &lane->mutex, &until);
    }
    bool stopping = lane->stopping;
    (void)pthread_mutex_unlock(&lane->mutex);
    return stopping;
}

static void *run_thread(void *argument)
{
    struct cfoil_lane *lane = argument;

    (void)pthread_setname_np(pthread_self(), "cfoil-store");
    /* Lanes of several processes begin to sweep at different places. */
    ssize_t got = getrandom(lane->sweep.cursor, CFOIL_ID_BYTES, 0);
    (void)got;
    do {
        while (cfoil_lane_serve_batch(lane)) {
            check_if_due(lane);
            sweep_if_due(lane);
        }
        check_if_due(lane);
        sweep_if_due(lane);
    } while (!wait_for_work(lane));
    cfoil_lane_drop_store(lane);
    return NULL;
}

enum cfoil_error cfoil_lane_start_thread(struct cfoil_lane *lane, char *problem,
                                         size_t problem_bytes)
{
    sigset_t all;
    sigset_t before;

    /* The thread inherits the mask, so that no signal of the host ever lands on it. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&lane->thread, NULL, run_thread, lane);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        cfoil_problem(problem, problem_bytes, "no thread for the store: %s", strerror(rc));
        return CFOIL_E_SYSTEM;
    }
    return CFOIL_OK;
}
