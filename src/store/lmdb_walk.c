/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading without compare-and-swap: the event loop's lookup, listings, and the sweeper.
 *
 * A walk goes over both trees at once, in ascending order of id:
 *
 *     pending   a     d   f
 *     records     b c   e   g      --> a b c d e f g, with one cursor in each tree
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

/* Settled records first: a replay is to cost one descent. No write comes between the two. */
static int look_up(struct cfoil_store *store, const uint8_t *id, MDB_val *data)
{
    MDB_val key = cfoil_lmdb_val(id, CFOIL_ID_BYTES);

    int rc = mdb_get(store->lookup_txn, store->trees[CFOIL_LMDB_RECORDS], &key, data);
    if (rc == MDB_NOTFOUND) {
        rc = mdb_get(store->lookup_txn, store->trees[CFOIL_LMDB_PENDING], &key, data);
    }
    return rc;
}

void cfoil_lmdb_lookup(struct cfoil_store *store, struct cfoil_op *op)
{
    MDB_val data = {0, NULL};
    enum cfoil_error error = CFOIL_OK;

    assert(op->kind == CFOIL_OP_GET);
    int rc = mdb_txn_renew(store->lookup_txn);
    if (rc != 0) {
        cfoil_op_finish(op, CFOIL_OP_FAILED, cfoil_lmdb_error(rc), 0);
        return;
    }
    int64_t now_ms = cfoil_timebase_now(&store->time);
    rc = look_up(store, op->id, &data);
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

struct walk_side {
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val data;
    bool ended;
};

struct walk {
    struct cfoil_store *store;
    struct walk_side sides[CFOIL_LMDB_TREES];
    struct walk_side *at; /* the side whose record is next; NULL: the end */
};

static bool is_gone(const MDB_val *data, int64_t now_ms)
{
    struct cfoil_record_head head;

    return cfoil_record_peek(cfoil_lmdb_bytes(data), &head) == CFOIL_OK &&
           cfoil_record_is_gone(&head, now_ms);
}

/* The end of one tree is no error. Returns LMDB's rc. */
static int side_move(struct walk_side *side, MDB_cursor_op op)
{
    int rc = mdb_cursor_get(side->cursor, &side->key, &side->data, op);

    side->ended = rc != 0;
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* Puts one side on its first record after `place`; NULL or all zero is the very start. */
static int side_start(struct walk_side *side, const uint8_t *place)
{
    static const uint8_t zero[CFOIL_ID_BYTES];

    if (place == NULL || memcmp(place, zero, CFOIL_ID_BYTES) == 0) {
        return side_move(side, MDB_FIRST);
    }
    side->key = cfoil_lmdb_val(place, CFOIL_ID_BYTES);
    int rc = side_move(side, MDB_SET_RANGE);
    if (rc == 0 && !side->ended && side->key.mv_size == CFOIL_ID_BYTES &&
        memcmp(side->key.mv_data, place, CFOIL_ID_BYTES) == 0) {
        rc = side_move(side, MDB_NEXT);
    }
    return rc;
}

static void walk_choose(struct walk *walk)
{
    struct walk_side *pending = &walk->sides[CFOIL_LMDB_PENDING];
    struct walk_side *records = &walk->sides[CFOIL_LMDB_RECORDS];

    if (pending->ended || records->ended) {
        walk->at = pending->ended ? records : pending;
        walk->at = walk->at->ended ? NULL : walk->at;
        return;
    }
    int order = mdb_cmp(walk->store->read_txn, walk->store->trees[CFOIL_LMDB_RECORDS],
                        &pending->key, &records->key);
    walk->at = order <= 0 ? pending : records;
}

static int walk_next(struct walk *walk)
{
    int rc = side_move(walk->at, MDB_NEXT);

    walk_choose(walk);
    return rc;
}

static void walk_close(struct walk *walk)
{
    for (size_t i = 0; i < CFOIL_LMDB_TREES; i++) {
        mdb_cursor_close(walk->sides[i].cursor);
    }
    mdb_txn_reset(walk->store->read_txn);
}

/* Renews the read transaction and stands after `place`; close is due only after success. */
static int walk_open(struct walk *walk, struct cfoil_store *store, const uint8_t *place)
{
    *walk = (struct walk){.store = store};
    int rc = mdb_txn_renew(store->read_txn);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < CFOIL_LMDB_TREES && rc == 0; i++) {
        rc = mdb_cursor_open(store->read_txn, store->trees[i], &walk->sides[i].cursor);
        rc = rc == 0 ? side_start(&walk->sides[i], place) : rc;
    }
    if (rc != 0) {
        walk_close(walk);
        return rc;
    }
    walk_choose(walk);
    return 0;
}

enum cfoil_error cfoil_lmdb_scan(struct cfoil_store *store, const uint8_t *cursor, uint64_t limit,
                                 cfoil_scan_visit visit, void *context)
{
    struct walk walk;
    uint64_t visited = 0;

    int rc = walk_open(&walk, store, cursor);
    if (rc != 0) {
        return cfoil_lmdb_error(rc);
    }
    int64_t now_ms = cfoil_timebase_now(&store->time);
    while (rc == 0 && walk.at != NULL && visited < limit) {
        const MDB_val *key = &walk.at->key;
        if (key->mv_size == CFOIL_ID_BYTES && !is_gone(&walk.at->data, now_ms)) {
            visited++;
            if (!visit(context, key->mv_data, cfoil_lmdb_bytes(&walk.at->data), now_ms)) {
                break;
            }
        }
        rc = walk_next(&walk);
    }
    walk_close(&walk);
    return cfoil_lmdb_error(rc);
}

struct gone {
    uint8_t ids[CFOIL_LMDB_SWEEP_REMOVE_MAX][CFOIL_ID_BYTES];
    size_t count;
};

/* Looks at up to `limit` records, or until as many are gone as one transaction removes. */
static int look(struct cfoil_store *store, struct cfoil_sweep *sweep, uint64_t limit,
                struct gone *gone)
{
    struct walk walk;

    int rc = walk_open(&walk, store, sweep->cursor);
    if (rc != 0) {
        return rc;
    }
    int64_t now_ms = cfoil_timebase_now(&store->time);
    while (rc == 0 && walk.at != NULL && sweep->examined < limit &&
           gone->count < CFOIL_LMDB_SWEEP_REMOVE_MAX) {
        sweep->examined++;
        if (walk.at->key.mv_size == CFOIL_ID_BYTES) {
            memcpy(sweep->cursor, walk.at->key.mv_data, CFOIL_ID_BYTES);
            if (is_gone(&walk.at->data, now_ms)) {
                memcpy(gone->ids[gone->count++], walk.at->key.mv_data, CFOIL_ID_BYTES);
            }
        }
        rc = walk_next(&walk);
    }
    sweep->wrapped = rc == 0 && walk.at == NULL;
    walk_close(&walk);
    return rc;
}

/*
 * Removes one id from a tree if it is still gone there: a claim may have taken its place, or it may
 * have been moved, meanwhile.
 */
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

/* gone->ids[from, from + count), as far as they stand in this tree. */
static int remove_from_tree(MDB_txn *txn, MDB_dbi tree, const struct gone *gone, size_t from,
                            size_t count, int64_t now_ms, uint64_t *removed)
{
    MDB_cursor *cursor;

    int rc = mdb_cursor_open(txn, tree, &cursor);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = from; i < from + count && rc == 0; i++) {
        rc = remove_gone(cursor, gone->ids[i], now_ms, removed);
    }
    mdb_cursor_close(cursor);
    return rc;
}

static int remove_in(struct cfoil_store *store, MDB_txn *txn, const struct gone *gone, size_t from,
                     size_t count, uint64_t *removed)
{
    bool stale;

    int rc = cfoil_lmdb_clock_read(store, txn, &stale);
    if (rc != 0) {
        return rc;
    }
    int64_t now_ms = cfoil_timebase_now(&store->time);
    for (size_t i = 0; i < CFOIL_LMDB_TREES && rc == 0; i++) {
        rc = remove_from_tree(txn, store->trees[i], gone, from, count, now_ms, removed);
    }
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
    if (rc == 0) {
        return cfoil_lmdb_place_check(store);
    }
    enum cfoil_error error = cfoil_lmdb_error(cfoil_lmdb_write_rc(store, rc));
    return cfoil_lmdb_is_sound(store) ? error : CFOIL_E_STORE_UNAVAILABLE;
}
