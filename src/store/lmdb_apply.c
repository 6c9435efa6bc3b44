/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One batch: one write transaction, one sync.
 *
 *   an op:  find in pending, then in records --> judge --> take it out there if it changes trees
 *                                                     '--> put it where the draft's state belongs
 *
 *   begin --> clock --> budget --> each op --> commit --> files still there? --> results
 *                                     |            '-- or abort, if nothing was written
 *                                     '-- full: abort, make room, again without that op
 *
 * Results are kept aside until the end, because a conflict with a write of the same batch is true
 * only if the batch becomes durable. A batch without a cas is read in a read transaction and waits
 * for no writer.
 *
 * What an error makes of a batch: before the commit nothing was applied, so everything is FAILED.
 * From the commit on, what was to be written is UNKNOWN; what was only read was not applied and is
 * FAILED.
 */
#include <assert.h>
#include <time.h>

#include "store/lmdb_store.h"

#define FAIR_PAUSE_NS 100000
#define FULL_TRIES    4 /* rounds in which one op that does not fit is left out */

struct batch {
    struct cfoil_store *store;
    struct cfoil_op **ops;
    size_t count;
    size_t at; /* the op being run */
    size_t writes;
    int64_t now_ms;
    MDB_cursor *cursors[CFOIL_LMDB_TREES];
    struct cfoil_lmdb_budget budget;
    enum cfoil_error refusal; /* OK, or what every write of this round is refused with */
    bool refused[CFOIL_STORE_BATCH_MAX];
};

/* The record of an id: where it stands, and its bytes; bytes.data is NULL where there is none. */
struct found {
    enum cfoil_lmdb_tree tree;
    struct cfoil_bytes bytes;
};

static void keep(struct batch *batch, enum cfoil_op_status status, enum cfoil_error error)
{
    batch->store->results[batch->at] = (struct cfoil_lmdb_result){status, error};
}

/* What is not a write: the record that was found, or absent, or an error. */
static void keep_answer(struct batch *batch, enum cfoil_judgement judgement,
                        struct cfoil_bytes found, enum cfoil_error error)
{
    struct cfoil_op *op = batch->ops[batch->at];

    op->current_bytes = 0;
    if (judgement == CFOIL_JUDGE_SHOW) {
        error = cfoil_op_set_current(op, found);
    }
    keep(batch, error == CFOIL_OK ? CFOIL_OP_CURRENT : CFOIL_OP_FAILED, error);
}

/* Whether the op may be written in this round; if not, its result is kept. */
static bool may_write(struct batch *batch, const struct cfoil_lmdb_change *change)
{
    if (batch->refusal != CFOIL_OK) {
        keep(batch, CFOIL_OP_FAILED, batch->refusal);
        return false;
    }
    if (batch->refused[batch->at] || !cfoil_lmdb_budget_take(&batch->budget, change)) {
        keep(batch, CFOIL_OP_FAILED, CFOIL_E_STORE_FULL);
        return false;
    }
    return true;
}

static int find(struct batch *batch, struct found *found)
{
    MDB_val key = cfoil_lmdb_val(batch->ops[batch->at]->id, CFOIL_ID_BYTES);
    MDB_val data;

    for (enum cfoil_lmdb_tree tree = 0; tree < CFOIL_LMDB_TREES; tree++) {
        int rc = mdb_cursor_get(batch->cursors[tree], &key, &data, MDB_SET);
        if (rc == 0) {
            *found = (struct found){tree, cfoil_lmdb_bytes(&data)};
        }
        if (rc != MDB_NOTFOUND) {
            return rc;
        }
    }
    *found = (struct found){CFOIL_LMDB_RECORDS, {NULL, 0}};
    return 0;
}

/* Where a record of the draft's state stands. PROCESSING alone: its owner soon writes it again. */
static enum cfoil_lmdb_tree tree_of(struct cfoil_bytes draft)
{
    return cfoil_draft_state(draft) == CFOIL_STATE_PROCESSING ? CFOIL_LMDB_PENDING
                                                              : CFOIL_LMDB_RECORDS;
}

/* The cursor of `tree` stands on the op's record if `there`. */
static int put(struct batch *batch, enum cfoil_lmdb_tree tree, bool there)
{
    struct cfoil_op *op = batch->ops[batch->at];
    MDB_val key = cfoil_lmdb_val(op->id, CFOIL_ID_BYTES);
    MDB_val data = {op->draft.len, NULL};
    unsigned flags = MDB_RESERVE | (there ? (unsigned)MDB_CURRENT : 0U);

    int rc = mdb_cursor_put(batch->cursors[tree], &key, &data, flags);
    if (rc != 0) {
        return rc;
    }
    cfoil_draft_stamp(op->draft, batch->now_ms, data.mv_data);
    batch->writes++;
    keep(batch, CFOIL_OP_APPLIED, CFOIL_OK);
    return 0;
}

/* The cursor of found->tree stands on the record, if one was found. */
static int write_draft(struct batch *batch, const struct found *found)
{
    struct cfoil_bytes draft = batch->ops[batch->at]->draft;
    enum cfoil_lmdb_tree tree = tree_of(draft);
    bool is_there = found->bytes.data != NULL;
    bool stays = is_there && found->tree == tree;
    const struct cfoil_lmdb_change change = {
        .record_bytes = draft.len,
        .is_new = !is_there,
        .claims = !stays && tree == CFOIL_LMDB_PENDING,
        .moves = is_there && !stays,
    };

    if (!may_write(batch, &change)) {
        return 0;
    }
    if (change.moves) {
        int rc = mdb_cursor_del(batch->cursors[found->tree], 0);
        if (rc != 0) {
            return rc;
        }
    }
    return put(batch, tree, stays);
}

static int run_op(struct batch *batch)
{
    enum cfoil_error error = CFOIL_OK;
    struct found found;

    int rc = find(batch, &found);
    if (rc != 0) {
        return rc;
    }
    enum cfoil_judgement judgement =
        cfoil_store_judge(batch->ops[batch->at], found.bytes, batch->now_ms, &error);
    if (judgement == CFOIL_JUDGE_WRITE) {
        return write_draft(batch, &found);
    }
    keep_answer(batch, judgement, found.bytes, error);
    return 0;
}

static int open_cursors(struct batch *batch, MDB_txn *txn)
{
    int rc = mdb_cursor_open(txn, batch->store->trees[CFOIL_LMDB_PENDING],
                             &batch->cursors[CFOIL_LMDB_PENDING]);
    if (rc != 0) {
        return rc;
    }
    rc = mdb_cursor_open(txn, batch->store->trees[CFOIL_LMDB_RECORDS],
                         &batch->cursors[CFOIL_LMDB_RECORDS]);
    if (rc != 0) {
        mdb_cursor_close(batch->cursors[CFOIL_LMDB_PENDING]);
    }
    return rc;
}

static int run_all(struct batch *batch, MDB_txn *txn)
{
    int rc = open_cursors(batch, txn);
    if (rc != 0) {
        return rc;
    }
    batch->writes = 0;
    for (batch->at = 0; batch->at < batch->count && rc == 0; batch->at++) {
        rc = run_op(batch);
    }
    /* Left on the op that failed, for whoever wants to leave it out. */
    batch->at -= rc != 0 ? 1U : 0U;
    mdb_cursor_close(batch->cursors[CFOIL_LMDB_PENDING]);
    mdb_cursor_close(batch->cursors[CFOIL_LMDB_RECORDS]);
    return rc;
}

static void publish(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct cfoil_lmdb_result *result = &batch->store->results[i];
        struct cfoil_op *op = batch->ops[i];
        if (result->status == CFOIL_OP_CURRENT) {
            op->status = CFOIL_OP_CURRENT;
            op->error = CFOIL_OK;
            op->now_ms = batch->now_ms;
            continue;
        }
        cfoil_op_finish(op, result->status, result->error,
                        result->status == CFOIL_OP_APPLIED ? batch->now_ms : 0);
    }
}

/* The whole batch failed: before its commit, or (committed) during or after it. */
static void publish_error(struct batch *batch, enum cfoil_error error, bool committed)
{
    for (size_t i = 0; i < batch->count; i++) {
        bool open = committed && batch->store->results[i].status == CFOIL_OP_APPLIED;
        cfoil_op_finish(batch->ops[i], open ? CFOIL_OP_UNKNOWN : CFOIL_OP_FAILED, error, 0);
    }
}

static enum cfoil_error finish(struct batch *batch)
{
    enum cfoil_error error = cfoil_lmdb_place_check(batch->store);
    if (error != CFOIL_OK) {
        publish_error(batch, error, true);
        return error;
    }
    publish(batch);
    return CFOIL_OK;
}

static enum cfoil_error fail(struct batch *batch, int rc)
{
    enum cfoil_error error = cfoil_lmdb_error(rc);
    publish_error(batch, error, false);
    return error;
}

static enum cfoil_error apply_reading(struct batch *batch)
{
    struct cfoil_store *store = batch->store;

    int rc = mdb_txn_renew(store->read_txn);
    if (rc != 0) {
        return fail(batch, rc);
    }
    batch->now_ms = cfoil_timebase_now(&store->time);
    rc = run_all(batch, store->read_txn);
    mdb_txn_reset(store->read_txn);
    return rc != 0 ? fail(batch, rc) : finish(batch);
}

/* Clock and budget, under the write lock: the order of times is then the order of commits. */
static int prepare(struct batch *batch, MDB_txn *txn, bool *stale)
{
    int rc = cfoil_lmdb_clock_read(batch->store, txn, stale);
    if (rc == 0) {
        rc = cfoil_lmdb_budget_open(batch->store, txn, batch->ops, batch->count, &batch->budget);
    }
    batch->now_ms = cfoil_timebase_now(&batch->store->time);
    return rc;
}

static bool is_full(int rc)
{
    return rc == MDB_MAP_FULL || rc == MDB_TXN_FULL;
}

/*
 * Runs and commits. *committing: the error came from the commit. LMDB's own "full" there means that
 * nothing was written; any other error leaves it open.
 */
static int run_transaction(struct batch *batch, MDB_txn *txn, bool *committing)
{
    struct cfoil_store *store = batch->store;
    bool stale = false;

    int rc = prepare(batch, txn, &stale);
    if (rc == 0) {
        rc = run_all(batch, txn);
    }
    if (rc == 0 && batch->writes > 0 &&
        (stale || batch->now_ms - store->high_water_ms >= CFOIL_CLOCK_MARGIN_MS)) {
        rc = cfoil_lmdb_clock_write(store, txn, batch->now_ms);
    }
    if (rc != 0 || batch->writes == 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    size_t id = mdb_txn_id(txn);
    rc = mdb_txn_commit(txn);
    *committing = rc != 0 && !is_full(rc);
    store->committed = rc == 0 ? id : store->committed;
    return rc;
}

/* A disk that is full is no reason to open it anew, nor for the log to say so with every batch. */
static enum cfoil_error writing_failed(struct batch *batch, int rc, bool committing)
{
    enum cfoil_error error = cfoil_lmdb_error(cfoil_lmdb_write_rc(batch->store, rc));

    publish_error(batch, error, committing);
    return error == CFOIL_E_STORE_FULL && cfoil_lmdb_is_sound(batch->store) ? CFOIL_OK : error;
}

/*
 * LMDB's lock is not fair: who has just let go of it has it again before a waiter is awake, who then
 * waits for dozens of commits. Where others write too, they are given a moment.
 */
void cfoil_lmdb_reserve(struct cfoil_store *store)
{
    const struct timespec moment = {0, FAIR_PAUSE_NS};

    if (store->read_only || store->reserved != NULL) {
        return;
    }
    if (store->others_write) {
        (void)nanosleep(&moment, NULL);
    }
    if (mdb_txn_begin(store->env, NULL, 0, &store->reserved) != 0) {
        store->reserved = NULL;
        return;
    }
    store->others_write = mdb_txn_id(store->reserved) != store->committed + 1;
}

void cfoil_lmdb_release(struct cfoil_store *store)
{
    if (store->reserved != NULL) {
        mdb_txn_abort(store->reserved);
        store->reserved = NULL;
    }
}

/* The transaction that was reserved, or one that must be waited for. Returns LMDB's rc. */
static int begin_writing(struct cfoil_store *store, MDB_txn **txn)
{
    if (store->reserved == NULL) {
        return mdb_txn_begin(store->env, NULL, 0, txn);
    }
    *txn = store->reserved;
    store->reserved = NULL;
    return 0;
}

static enum cfoil_error apply_writing(struct batch *batch)
{
    struct cfoil_store *store = batch->store;
    MDB_txn *txn;

    for (int i = 0; i < FULL_TRIES; i++) {
        bool committing = false;
        int rc = begin_writing(store, &txn);
        if (rc != 0) {
            return fail(batch, rc);
        }
        rc = run_transaction(batch, txn, &committing);
        if (rc == 0) {
            return finish(batch);
        }
        if (committing || !is_full(rc)) {
            return writing_failed(batch, rc, committing);
        }
        /* The first time, room may be all that is missing. */
        if (i > 0 && batch->at < batch->count) {
            batch->refused[batch->at] = true;
        }
        cfoil_lmdb_make_room(store);
    }
    batch->refusal = CFOIL_E_STORE_FULL;
    return apply_reading(batch);
}

static bool has_cas(struct cfoil_op *const *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i]->kind == CFOIL_OP_CAS) {
            return true;
        }
    }
    return false;
}

enum cfoil_error cfoil_lmdb_apply(struct cfoil_store *store, struct cfoil_op **ops, size_t count)
{
    struct batch batch = {.store = store, .ops = ops, .count = count};

    assert(count <= CFOIL_STORE_BATCH_MAX);
    if (!has_cas(ops, count)) {
        cfoil_lmdb_release(store);
    }
    if (count == 0) {
        cfoil_lmdb_check_readers(store);
        return cfoil_lmdb_place_check(store);
    }
    if (!has_cas(ops, count)) {
        return apply_reading(&batch);
    }
    if (store->read_only) {
        batch.refusal = CFOIL_E_STORE_READ_ONLY;
        return apply_reading(&batch);
    }
    return apply_writing(&batch);
}
