/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The misbehaving store (faulty_store.h). A batch is split in runs: operations without a fault go to
 * the real store together; one with a fault goes alone, is kept for later, or not at all.
 *
 * Invariant: an operation told UNKNOWN has run at most once, and one told FAILED never runs.
 */
#include "support/faulty_store.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define PLAN_MAX 4096
#define LATE_MAX 256

struct late {
    struct cfoil_op op;
    uint8_t *draft;
};

static struct {
    pthread_mutex_t mutex;
    enum cfoil_fault plan[PLAN_MAX];
    size_t planned;
    size_t taken;
    uint64_t random;
    unsigned percent;
    int64_t delay_ms;
    enum cfoil_error refuse_open;
    struct late late[LATE_MAX];
    size_t late_count;
    bool release;
    size_t count;
} faults = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct cfoil_store {
    const struct cfoil_store_ops *ops;
    struct cfoil_store *inner;
};

static void lock(void)
{
    (void)pthread_mutex_lock(&faults.mutex);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&faults.mutex);
}

void cfoil_faulty_reset(void)
{
    lock();
    for (size_t i = 0; i < faults.late_count; i++) {
        free(faults.late[i].draft);
    }
    faults.planned = 0;
    faults.taken = 0;
    faults.percent = 0;
    faults.delay_ms = 0;
    faults.refuse_open = CFOIL_OK;
    faults.late_count = 0;
    faults.release = false;
    faults.count = 0;
    unlock();
}

void cfoil_faulty_plan(enum cfoil_fault fault, size_t count)
{
    lock();
    for (size_t i = 0; i < count; i++) {
        assert(faults.planned < PLAN_MAX);
        faults.plan[faults.planned++] = fault;
    }
    unlock();
}

void cfoil_faulty_random(uint64_t seed, unsigned percent)
{
    lock();
    faults.random = seed | 1;
    faults.percent = percent;
    unlock();
}

void cfoil_faulty_delay_ms(int64_t delay_ms)
{
    lock();
    faults.delay_ms = delay_ms;
    unlock();
}

void cfoil_faulty_refuse_open(enum cfoil_error error)
{
    lock();
    faults.refuse_open = error;
    unlock();
}

bool cfoil_faulty_release_late(void)
{
    lock();
    faults.release = faults.late_count > 0;
    bool any = faults.release;
    unlock();
    return any;
}

size_t cfoil_faulty_count(void)
{
    lock();
    size_t count = faults.count;
    unlock();
    return count;
}

/* xorshift; the mutex is held. */
static uint64_t next_random(void)
{
    faults.random ^= faults.random << 13;
    faults.random ^= faults.random >> 7;
    faults.random ^= faults.random << 17;
    return faults.random;
}

static enum cfoil_fault take_fault(const struct cfoil_op *op)
{
    enum cfoil_fault fault = CFOIL_FAULT_NONE;

    if (op->kind != CFOIL_OP_CAS) {
        return fault;
    }
    lock();
    if (faults.taken < faults.planned) {
        fault = faults.plan[faults.taken++];
    } else if (faults.percent > 0 && next_random() % 100 < faults.percent) {
        fault = (enum cfoil_fault)(CFOIL_FAULT_LOST_APPLIED + next_random() % 4);
    }
    faults.count += fault != CFOIL_FAULT_NONE;
    unlock();
    return fault;
}

static enum cfoil_error faulty_open(const struct cfoil_store_options *options,
                                    struct cfoil_store **store, char *problem, size_t problem_bytes)
{
    struct cfoil_store_options inner = *options;

    lock();
    enum cfoil_error refuse = faults.refuse_open;
    unlock();
    if (refuse != CFOIL_OK) {
        return refuse;
    }
    inner.url = strchr(options->url, ':') + 1;
    struct cfoil_store *made = calloc(1, sizeof(*made));
    assert(made != NULL);
    made->ops = cfoil_store_for_url(inner.url);
    assert(made->ops != NULL);
    enum cfoil_error error = made->ops->open(&inner, &made->inner, problem, problem_bytes);
    if (error != CFOIL_OK) {
        free(made);
        return error;
    }
    *store = made;
    return CFOIL_OK;
}

static void faulty_close(struct cfoil_store *store)
{
    store->ops->close(store->inner);
    free(store);
}

static void faulty_identity(const struct cfoil_store *store, uint8_t *store_id)
{
    store->ops->identity(store->inner, store_id);
}

static void answer(struct cfoil_op *op, enum cfoil_op_status status, enum cfoil_error error)
{
    op->status = status;
    op->error = error;
    op->now_ms = 0;
    op->current_bytes = 0;
}

static void keep_for_later(const struct cfoil_op *op)
{
    lock();
    if (faults.late_count == LATE_MAX) {
        unlock(); /* it never arrives, which is one way of being late */
        return;
    }
    struct late *late = &faults.late[faults.late_count++];
    memset(late, 0, sizeof(*late));
    late->draft = malloc(op->draft.len);
    assert(late->draft != NULL);
    memcpy(late->draft, op->draft.data, op->draft.len);
    late->op.kind = op->kind;
    late->op.overwrite_corrupt = op->overwrite_corrupt;
    memcpy(late->op.id, op->id, CFOIL_ID_BYTES);
    late->op.expect = op->expect;
    late->op.draft = cfoil_bytes_of(late->draft, op->draft.len);
    unlock();
}

static enum cfoil_error run(struct cfoil_store *store, struct cfoil_op **ops, size_t count)
{
    return count == 0 ? CFOIL_OK : store->ops->apply(store->inner, ops, count);
}

/* Runs what was held, if it was released; nobody waits for the answers any more. */
static enum cfoil_error run_late(struct cfoil_store *store)
{
    struct late late[LATE_MAX];
    enum cfoil_error error = CFOIL_OK;

    lock();
    size_t count = faults.release ? faults.late_count : 0;
    memcpy(late, faults.late, count * sizeof(late[0]));
    faults.late_count -= count;
    faults.release = false;
    unlock();
    for (size_t i = 0; i < count; i++) {
        struct cfoil_op *op = &late[i].op;
        if (error == CFOIL_OK) {
            error = run(store, &op, 1);
        }
        cfoil_op_free_current(op);
        free(late[i].draft);
    }
    return error;
}

static enum cfoil_error run_with(struct cfoil_store *store, struct cfoil_op *op,
                                 enum cfoil_fault fault)
{
    enum cfoil_error error = CFOIL_OK;

    switch (fault) {
    case CFOIL_FAULT_LOST_APPLIED:
        error = run(store, &op, 1);
        answer(op, CFOIL_OP_UNKNOWN, CFOIL_E_REPLY_LOST);
        return error;
    case CFOIL_FAULT_LATE:
        keep_for_later(op);
        answer(op, CFOIL_OP_UNKNOWN, CFOIL_E_REPLY_LOST);
        return CFOIL_OK;
    case CFOIL_FAULT_LOST_NOT_APPLIED:
        answer(op, CFOIL_OP_UNKNOWN, CFOIL_E_REPLY_LOST);
        return CFOIL_OK;
    case CFOIL_FAULT_FULL:
        answer(op, CFOIL_OP_FAILED, CFOIL_E_STORE_FULL);
        return CFOIL_OK;
    case CFOIL_FAULT_UNAVAILABLE:
        answer(op, CFOIL_OP_FAILED, CFOIL_E_STORE_UNAVAILABLE);
        return CFOIL_OK;
    case CFOIL_FAULT_HANDLE_LOST:
        answer(op, CFOIL_OP_FAILED, CFOIL_E_STORE_REPLACED);
        return CFOIL_E_STORE_REPLACED;
    case CFOIL_FAULT_NONE:
        break;
    }
    return CFOIL_OK;
}

static void wait_delay(void)
{
    lock();
    struct timespec delay = {faults.delay_ms / 1000, faults.delay_ms % 1000 * 1000000};
    unlock();
    if (delay.tv_sec > 0 || delay.tv_nsec > 0) {
        (void)nanosleep(&delay, NULL);
    }
}

static enum cfoil_error faulty_apply(struct cfoil_store *store, struct cfoil_op **ops, size_t count)
{
    enum cfoil_error worst = CFOIL_OK;
    size_t sound = 0; /* start of the run of operations without a fault */

    /* The contract's other side: whoever calls apply has sorted (store.h). */
    for (size_t i = 1; i < count; i++) {
        assert(memcmp(ops[i - 1]->id, ops[i]->id, CFOIL_ID_BYTES) <= 0);
    }
    wait_delay();
    worst = run_late(store);
    for (size_t i = 0; i < count; i++) {
        enum cfoil_fault fault = take_fault(ops[i]);
        if (fault == CFOIL_FAULT_NONE) {
            continue;
        }
        enum cfoil_error error = run(store, ops + sound, i - sound);
        worst = worst == CFOIL_OK ? error : worst;
        error = run_with(store, ops[i], fault);
        worst = worst == CFOIL_OK ? error : worst;
        sound = i + 1;
    }
    enum cfoil_error error = count == 0 ? store->ops->apply(store->inner, ops, 0)
                                        : run(store, ops + sound, count - sound);
    return worst == CFOIL_OK ? error : worst;
}

static void faulty_lookup(struct cfoil_store *store, struct cfoil_op *op)
{
    store->ops->lookup(store->inner, op);
}

static enum cfoil_error faulty_scan(struct cfoil_store *store, const uint8_t *cursor,
                                    uint64_t limit, cfoil_scan_visit visit, void *context)
{
    return store->ops->scan(store->inner, cursor, limit, visit, context);
}

static enum cfoil_error faulty_sweep(struct cfoil_store *store, struct cfoil_sweep *sweep,
                                     uint64_t limit)
{
    return store->ops->sweep(store->inner, sweep, limit);
}

const struct cfoil_store_ops cfoil_store_faulty = {
    .scheme = "faulty",
    .has_lookup = true,
    .open = faulty_open,
    .close = faulty_close,
    .identity = faulty_identity,
    .apply = faulty_apply,
    .lookup = faulty_lookup,
    .scan = faulty_scan,
    .sweep = faulty_sweep,
};
