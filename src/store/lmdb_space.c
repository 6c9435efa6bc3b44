/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of the map. LMDB copies every page it changes, so that even a removal needs free pages,
 * and a map that is full to the last page can never be emptied again. Therefore a share R is kept
 * back:
 *
 *     | in use ........ | free list + never used ... | P: settles | R: updates | R: sweeper |
 *                        new records are refused here ---^                      ^--- updates here
 *
 * so that a claim is refused first, a claim already made can still be settled or forgotten, and the
 * sweeper can always work. P is for what stands in the pending tree: a settle needs pages in the other
 * one, while the page that it leaves is freed only with the last record on it. So whatever comes to
 * stand there is refused first, also the claim of a key that is known. Freed pages are counted only
 * when the untouched end of the map is short; the count stops as soon as it suffices.
 */
#include <errno.h>
#include <sys/statvfs.h>

#include "store/lmdb_store.h"

#define DISK_FULL_BYTES   (1U << 20) /* free; more than a page of any file system */
#define RESERVE_PAGES_MIN 32
#define RESERVE_PAGES_MAX 4096
#define RESERVE_SHARE     32 /* one page in so many */
#define PATH_PAGES_PER_OP 8  /* leaf, branches, a split, and the free list's own */
#define SETTLED_SHARE     4 /* pages for one of claims: twice their size, and half full by splits */

uint64_t cfoil_lmdb_reserve_pages(uint64_t map_pages)
{
    uint64_t pages = map_pages / RESERVE_SHARE;

    pages = pages < RESERVE_PAGES_MIN ? RESERVE_PAGES_MIN : pages;
    return pages > RESERVE_PAGES_MAX ? RESERVE_PAGES_MAX : pages;
}

static uint64_t pages_of(uint64_t page_bytes, size_t record_bytes)
{
    return record_bytes / page_bytes + 1;
}

/* What of P is due to one claim: a large record has pages to itself, and its place is its size. */
static uint64_t settle_pages(uint64_t record_pages)
{
    return record_pages > SETTLED_SHARE ? record_pages : SETTLED_SHARE;
}

/* P, and how many pages of the pending tree a batch may come to change. Returns LMDB's rc. */
static int measure_pending(struct cfoil_store *store, MDB_txn *txn, uint64_t *settles,
                           uint64_t *pages)
{
    MDB_stat stat;

    int rc = mdb_stat(txn, store->trees[CFOIL_LMDB_PENDING], &stat);
    if (rc != 0) {
        return rc;
    }
    *pages = stat.ms_branch_pages + stat.ms_leaf_pages;
    *settles = SETTLED_SHARE * stat.ms_leaf_pages + stat.ms_branch_pages + stat.ms_overflow_pages;
    return 0;
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

/* What a batch can use at most, with what must be left for the whole of it to be written. */
static uint64_t most_wanted(struct cfoil_op *const *ops, size_t count,
                            const struct cfoil_lmdb_budget *budget)
{
    uint64_t wanted = budget->keep_new + budget->pending_pages;

    for (size_t i = 0; i < count; i++) {
        if (ops[i]->kind == CFOIL_OP_CAS) {
            uint64_t record_pages = pages_of(budget->page_bytes, ops[i]->draft.len);
            wanted += PATH_PAGES_PER_OP + record_pages + settle_pages(record_pages);
        }
    }
    return wanted;
}

int cfoil_lmdb_budget_open(struct cfoil_store *store, MDB_txn *txn, struct cfoil_op *const *ops,
                           size_t count, struct cfoil_lmdb_budget *budget)
{
    MDB_envinfo info;
    uint64_t settles = 0;
    uint64_t free_pages = 0;

    int rc = mdb_env_info(store->env, &info);
    if (rc == 0) {
        rc = measure_pending(store, txn, &settles, &budget->pending_pages);
    }
    if (rc != 0) {
        return rc;
    }
    uint64_t map_pages = info.me_mapsize / store->page_bytes;
    uint64_t used = (uint64_t)info.me_last_pgno + 1;
    budget->pages = map_pages > used ? map_pages - used : 0;
    budget->keep_new = 2 * store->reserve_pages + settles;
    budget->keep_update = store->reserve_pages;
    budget->page_bytes = store->page_bytes;
    uint64_t wanted = most_wanted(ops, count, budget);
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

/* However many records leave the pending tree in a batch, each of its pages is copied once. */
bool cfoil_lmdb_budget_take(struct cfoil_lmdb_budget *budget,
                            const struct cfoil_lmdb_change *change)
{
    uint64_t record_pages = pages_of(budget->page_bytes, change->record_bytes);
    bool refused_first = change->is_new || change->claims;
    uint64_t keep = refused_first ? budget->keep_new : budget->keep_update;
    uint64_t other_path = 0;

    if (change->moves) {
        other_path =
            budget->pending_pages < PATH_PAGES_PER_OP ? budget->pending_pages : PATH_PAGES_PER_OP;
    }
    uint64_t cost = PATH_PAGES_PER_OP + record_pages + other_path;
    if (budget->pages < keep + cost) {
        return false;
    }
    budget->pages -= cost;
    budget->pending_pages -= other_path;
    budget->keep_new += change->claims ? settle_pages(record_pages) : 0;
    return true;
}

int cfoil_lmdb_write_rc(const struct cfoil_store *store, int rc)
{
    struct statvfs disk;

    if (rc != EIO || fstatvfs(store->guard_fd, &disk) != 0) {
        return rc;
    }
    return (uint64_t)disk.f_bavail * disk.f_frsize < DISK_FULL_BYTES ? ENOSPC : rc;
}

bool cfoil_lmdb_is_sound(struct cfoil_store *store)
{
    if (mdb_txn_renew(store->read_txn) != 0) {
        return false;
    }
    mdb_txn_reset(store->read_txn);
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
