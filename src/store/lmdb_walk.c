/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading without compare-and-swap: the event loop's lookup, listings, and the sweeper.
 *
 * The sweeper looks for gone records in a read transaction, which holds up nobody, and takes the
 * write lock only for a bounded number of removals, each judged again under it.
 */
#include <assert.h>

#include "store/lmdb_store.h"

/*
 * What replays is true whatever became of the files since. What is unsettled may be a claim that was never
 * acknowledged, in a file that was deleted under us: nobody may be told to wait for that.
 */
static enum cfoil_error show_found(const struct cfoil_store *store, struct cfoil_op *op,
                                   struct cfoil_bytes found)
{
    struct cfoil_record_head head;

    enum cfoil_error error = cfoil_record_peek(found, &head);
    if (error == CFOIL_OK && head.state != CFOIL_STATE_SUCCEEDED &&
        head.state != CFOIL_STATE_FAILED_FINAL) {
        error = cfoil_lmdb_place_check(store);
    }
    return error == CFOIL_OK ? cfoil_op_set_current(op, found) : error;
}

void cfoil_lmdb_lookup(struct cfoil_store *store, struct cfoil_op *op)
{
    MDB_val key = cfoil_lmdb_val(op->id, CFOIL_ID_BYTES);
    MDB_val data = {0, NULL};
    enum cfoil_error error = CFOIL_OK;

    assert(op->kind == CFOIL_OP_GET);
    int rc = mdb_txn_renew(store->lookup_txn);
    if (rc != 0) {
        cfoil_op_finish(op, CFOIL_OP_FAILED, cfoil_lmdb_error(rc), 0);
        return;
    }
    int64_t now_ms = cfoil_timebase_now(&store->time);
    rc = mdb_get(store->lookup_txn, store->records, &key, &data);
    cfoil_op_finish(op, CFOIL_OP_CURRENT, CFOIL_OK, now_ms);
    if (rc == 0) {
        struct cfoil_bytes found = cfoil_lmdb_bytes(&data);
        if (cfoil_store_judge(op, found, now_ms, &error) == CFOIL_JUDGE_SHOW) {
            error = show_found(store, op, found);
        }
    } else if (rc != MDB_NOTFOUND) {
        error = cfoil_lmdb_error(rc);
    }
    mdb_txn_reset(store->lookup_txn);
    if (error != CFOIL_OK) {
        cfoil_op_finish(op, CFOIL_OP_FAILED, error, 0);
    }
}

/* Puts the walk on the first record after `place`; NULL or all zero is the very start. */
static int walk_start(MDB_cursor *cursor, const uint8_t *place, MDB_val *key, MDB_val *data)
{
    static const uint8_t zero[CFOIL_ID_BYTES];

    if (place == NULL || memcmp(place, zero, CFOIL_ID_BYTES) == 0) {
        return mdb_cursor_get(cursor, key, data, MDB_FIRST);
    }
    *key = cfoil_lmdb_val(place, CFOIL_ID_BYTES);
    int rc = mdb_cursor_get(cursor, key, data, MDB_SET_RANGE);
    if (rc == 0 && key->mv_size == CFOIL_ID_BYTES &&
        memcmp(key->mv_data, place, CFOIL_ID_BYTES) == 0) {
        rc = mdb_cursor_get(cursor, key, data, MDB_NEXT);
    }
    return rc;
}

static bool is_gone(const MDB_val *data, int64_t now_ms)
{
    struct cfoil_record_head head;

    return cfoil_record_peek(cfoil_lmdb_bytes(data), &head) == CFOIL_OK &&
           cfoil_record_is_gone(&head, now_ms);
}

/* Renews the read transaction with a cursor; close ends both. */
static int walk_open(struct cfoil_store *store, MDB_cursor **cursor)
{
    int rc = mdb_txn_renew(store->read_txn);
    if (rc != 0) {
        return rc;
    }
    rc = mdb_cursor_open(store->read_txn, store->records, cursor);
    if (rc != 0) {
        mdb_txn_reset(store->read_txn);
    }
    return rc;
}

static void walk_close(struct cfoil_store *store, MDB_cursor *cursor)
{
    mdb_cursor_close(cursor);
    mdb_txn_reset(store->read_txn);
}

enum cfoil_error cfoil_lmdb_scan(struct cfoil_store *store, const uint8_t *cursor, uint64_t limit,
                                 cfoil_scan_visit visit, void *context)
{
    MDB_cursor *walk;
    MDB_val key;
    MDB_val data;
    uint64_t visited = 0;

    int rc = walk_open(store, &walk);
    if (rc != 0) {
        return cfoil_lmdb_error(rc);
    }
    int64_t now_ms = cfoil_timebase_now(&store->time);
    rc = walk_start(walk, cursor, &key, &data);
    while (rc == 0 && visited < limit) {
        if (key.mv_size == CFOIL_ID_BYTES && !is_gone(&data, now_ms)) {
            visited++;
            if (!visit(context, key.mv_data, cfoil_lmdb_bytes(&data), now_ms)) {
                break;
            }
        }
        rc = mdb_cursor_get(walk, &key, &data, MDB_NEXT);
    }
    walk_close(store, walk);
    return rc == MDB_NOTFOUND ? CFOIL_OK : cfoil_lmdb_error(rc);
}

struct gone {
    uint8_t ids[CFOIL_LMDB_SWEEP_REMOVE_MAX][CFOIL_ID_BYTES];
    size_t count;
};

/* Looks at up to `limit` records, or until as many are gone as one transaction removes. */
static int look(struct cfoil_store *store, struct cfoil_sweep *sweep, uint64_t limit,
                struct gone *gone)
{
    MDB_cursor *walk;
    MDB_val key;
    MDB_val data;

    int rc = walk_open(store, &walk);
    if (rc != 0) {
        return rc;
    }
    int64_t now_ms = cfoil_timebase_now(&store->time);
    rc = walk_start(walk, sweep->cursor, &key, &data);
    while (rc == 0 && sweep->examined < limit && gone->count < CFOIL_LMDB_SWEEP_REMOVE_MAX) {
        sweep->examined++;
        if (key.mv_size == CFOIL_ID_BYTES) {
            memcpy(sweep->cursor, key.mv_data, CFOIL_ID_BYTES);
            if (is_gone(&data, now_ms)) {
                memcpy(gone->ids[gone->count++], key.mv_data, CFOIL_ID_BYTES);
            }
        }
        rc = mdb_cursor_get(walk, &key, &data, MDB_NEXT);
    }
    walk_close(store, walk);
    sweep->wrapped = rc == MDB_NOTFOUND;
    return sweep->wrapped ? 0 : rc;
}

/* Removes one id if it is still gone: a claim may have taken the place meanwhile. */
static int remove_gone(MDB_cursor *cursor, const uint8_t *id, int64_t now_ms, uint64_t *removed)
{
    MDB_val key = cfoil_lmdb_val(id, CFOIL_ID_BYTES);
    MDB_val data;

    int rc = mdb_cursor_get(cursor, &key, &data, MDB_SET);
    if (rc != 0) {
        return rc == MDB_NOTFOUND ? 0 : rc;
    }
    if (!is_gone(&data, now_ms)) {
        return 0;
    }
    rc = mdb_cursor_del(cursor, 0);
    *removed += rc == 0 ? 1U : 0U;
    return rc;
}

static int remove_in(struct cfoil_store *store, MDB_txn *txn, const struct gone *gone, size_t from,
                     size_t count, uint64_t *removed)
{
    MDB_cursor *cursor;
    bool stale;

    int rc = cfoil_lmdb_clock_read(store, txn, &stale);
    if (rc == 0) {
        rc = mdb_cursor_open(txn, store->records, &cursor);
    }
    if (rc != 0) {
        return rc;
    }
    int64_t now_ms = cfoil_timebase_now(&store->time);
    for (size_t i = from; i < from + count && rc == 0; i++) {
        rc = remove_gone(cursor, gone->ids[i], now_ms, removed);
    }
    mdb_cursor_close(cursor);
    if (rc == 0 && *removed > 0 &&
        (stale || now_ms - store->high_water_ms >= CFOIL_CLOCK_MARGIN_MS)) {
        rc = cfoil_lmdb_clock_write(store, txn, now_ms);
    }
    return rc;
}

/* One transaction over gone->ids[from, from + count). */
static int remove_some(struct cfoil_store *store, const struct gone *gone, size_t from,
                       size_t count, uint64_t *removed)
{
    uint64_t here = 0;
    MDB_txn *txn;

    int rc = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (rc != 0) {
        return rc;
    }
    rc = remove_in(store, txn, gone, from, count, &here);
    if (rc != 0 || here == 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    rc = mdb_txn_commit(txn);
    *removed += rc == 0 ? here : 0;
    return rc;
}

/* In a full map fewer removals at a time need fewer pages. */
static int remove_all(struct cfoil_store *store, const struct gone *gone, uint64_t *removed)
{
    size_t step = gone->count;
    size_t from = 0;
    int rc = 0;

    while (from < gone->count && rc == 0) {
        size_t count = gone->count - from < step ? gone->count - from : step;
        rc = remove_some(store, gone, from, count, removed);
        if (rc == MDB_MAP_FULL && step > 1) {
            cfoil_lmdb_make_room(store);
            step = (step + 3) / 4;
            rc = 0;
            continue;
        }
        from += count;
    }
    return rc;
}

enum cfoil_error cfoil_lmdb_sweep(struct cfoil_store *store, struct cfoil_sweep *sweep,
                                  uint64_t limit)
{
    struct gone gone = {.count = 0};

    sweep->examined = 0;
    sweep->removed = 0;
    sweep->wrapped = false;
    if (store->read_only) {
        return CFOIL_E_STORE_READ_ONLY;
    }
    cfoil_lmdb_check_readers(store);
    int rc = look(store, sweep, limit < CFOIL_SWEEP_STEP_MAX ? limit : CFOIL_SWEEP_STEP_MAX, &gone);
    if (rc == 0 && gone.count > 0) {
        rc = remove_all(store, &gone, &sweep->removed);
    }
    if (sweep->wrapped) {
        memset(sweep->cursor, 0, CFOIL_ID_BYTES);
    }
    return rc == 0 ? cfoil_lmdb_place_check(store) : cfoil_lmdb_error(rc);
}
