/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of the map. LMDB copies every page it changes, so that even a removal needs free pages,
 * and a map that is full to the last page can never be emptied again. Therefore a share R is kept
 * back:
 *
 *     | in use ............ | free list + never used ...... | R: updates | R: sweeper |
 *                           new records are refused here ---^            ^--- updates here
 *
 * so that a claim is refused first, a claim already made can still be settled or forgotten, and the
 * sweeper can always work. Freed pages are counted only when the untouched end of the map is short;
 * the count stops as soon as it suffices.
 */
#include "store/lmdb_store.h"

#define RESERVE_PAGES_MIN 32
#define RESERVE_PAGES_MAX 4096
#define RESERVE_SHARE     32 /* one page in so many */
#define PATH_PAGES_PER_OP 8  /* leaf, branches, a split, and the free list's own */

uint64_t cfoil_lmdb_reserve_pages(uint64_t map_pages)
{
    uint64_t pages = map_pages / RESERVE_SHARE;

    pages = pages < RESERVE_PAGES_MIN ? RESERVE_PAGES_MIN : pages;
    return pages > RESERVE_PAGES_MAX ? RESERVE_PAGES_MAX : pages;
}

static uint64_t pages_of(uint64_t page_bytes, size_t record_bytes)
{
    return PATH_PAGES_PER_OP + record_bytes / page_bytes + 1;
}

/* Free pages, counted until there are `enough`. */
static int count_free(MDB_txn *txn, uint64_t enough, uint64_t *pages)
{
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val data;
    size_t listed;

    *pages = 0;
    int rc = mdb_cursor_open(txn, 0, &cursor); /* 0 is LMDB's free list; see mdb_stat(1) */
    if (rc != 0) {
        return rc;
    }
    rc = mdb_cursor_get(cursor, &key, &data, MDB_FIRST);
    while (rc == 0 && *pages < enough) {
        if (data.mv_size >= sizeof(listed)) {
            memcpy(&listed, data.mv_data, sizeof(listed));
            *pages += listed;
        }
        rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

int cfoil_lmdb_budget_open(struct cfoil_store *store, struct cfoil_op *const *ops, size_t count,
                           struct cfoil_lmdb_budget *budget)
{
    MDB_envinfo info;
    uint64_t wanted = 2 * store->reserve_pages;
    uint64_t free_pages = 0;

    int rc = mdb_env_info(store->env, &info);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        if (ops[i]->kind == CFOIL_OP_CAS) {
            wanted += pages_of(store->page_bytes, ops[i]->draft.len);
        }
    }
    uint64_t map_pages = info.me_mapsize / store->page_bytes;
    uint64_t used = (uint64_t)info.me_last_pgno + 1;
    budget->pages = map_pages > used ? map_pages - used : 0;
    budget->keep_new = 2 * store->reserve_pages;
    budget->keep_update = store->reserve_pages;
    budget->page_bytes = store->page_bytes;
    if (budget->pages >= wanted) {
        return 0;
    }

    /* Writers cannot look at the free list; a reader that begins now sees the same state. */
    rc = mdb_txn_renew(store->read_txn);
    if (rc == 0) {
        rc = count_free(store->read_txn, wanted - budget->pages, &free_pages);
        mdb_txn_reset(store->read_txn);
    }
    budget->pages += free_pages;
    return rc;
}

bool cfoil_lmdb_budget_take(struct cfoil_lmdb_budget *budget, size_t record_bytes, bool is_new)
{
    uint64_t cost = pages_of(budget->page_bytes, record_bytes);
    uint64_t keep = is_new ? budget->keep_new : budget->keep_update;

    if (budget->pages < keep + cost) {
        return false;
    }
    budget->pages -= cost;
    return true;
}

void cfoil_lmdb_check_readers(struct cfoil_store *store)
{
    int64_t now_ms = cfoil_timebase_now(&store->time);
    int dead;

    if (now_ms - store->readers_checked_ms < CFOIL_LMDB_READERS_CHECK_MS) {
        return;
    }
    store->readers_checked_ms = now_ms;
    (void)mdb_reader_check(store->env, &dead);
}

void cfoil_lmdb_make_room(struct cfoil_store *store)
{
    MDB_txn *txn;
    int dead;

    (void)mdb_reader_check(store->env, &dead);
    /* Pages freed by the last commit come to use after the next one, so there must be one. */
    if (mdb_txn_begin(store->env, NULL, 0, &txn) != 0) {
        return;
    }
    if (cfoil_lmdb_clock_write(store, txn, cfoil_timebase_now(&store->time)) != 0) {
        mdb_txn_abort(txn);
        return;
    }
    (void)mdb_txn_commit(txn);
}
