/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lmdb:DIR, shared by its files: place (paths and what can happen to them), open, meta (identity,
 * clock), apply, space (what is left of the map), walk (lookup, scan, sweep).
 *
 *   DIR/data.mdb   three named databases:
 *     pending      id (32 bytes) -> stamped record whose header says PROCESSING
 *     records      id (32 bytes) -> stamped record in any other state
 *     meta         "format" -> u32; "identity" -> 16 bytes; "clock" -> offset_ms i64,
 *                  high_water_ms i64, boot id (48 bytes, zero-padded); little-endian
 *   DIR/lock.mdb   LMDB's reader table and write lock; made anew when all processes are gone
 *
 * Every page that a batch touches is written, and ids are random, so that each write to a large tree
 * costs a path of its own. A claim is written twice within milliseconds; the first time it goes to
 * `pending`, which holds what is being executed and little else, so that its pages are few and shared
 * (docs/decisions/0009).
 *
 *     (nothing) --claim--> pending --settle, in doubt, withdraw, release--> records
 *                             ^------------ claim again, renew -----------'
 *
 * Life: opened after fork, once per process and path (LMDB forbids two); closed and opened again by
 * the lane when apply says so. Records are written by one write transaction per batch, without
 * MDB_WRITEMAP, MDB_NOSYNC or MDB_NOMETASYNC: a commit is durable when it returns.
 *
 * Invariants: an id stands in one of the two trees at most, because a move takes it out of one and
 * puts it into the other in the same transaction. What does not peek stays where it was found. A
 * result is set only after the commit, and after the files were seen to be still the ones at their
 * paths. The last pages of the map are kept for updates and for the sweeper (space).
 *
 * Threads: as store.h; lookup touches only env, trees, lookup_txn, place and time.
 */
#ifndef CFOIL_STORE_LMDB_STORE_H
#define CFOIL_STORE_LMDB_STORE_H

#include <lmdb.h>
#include <sys/stat.h>

#include "store/clock.h"
#include "store/judge.h"

#define CFOIL_LMDB_FORMAT            2    /* 1 had no pending tree */
#define CFOIL_LMDB_READERS_MAX       1022 /* two per process */
#define CFOIL_LMDB_MAP_BYTES_DEFAULT (UINT64_C(64) << 30)
#define CFOIL_LMDB_MAP_BYTES_MIN     (UINT64_C(1) << 20)
#define CFOIL_LMDB_READERS_CHECK_MS  10000 /* dead readers are looked for this often */
#define CFOIL_LMDB_SWEEP_REMOVE_MAX  128   /* removals in one write transaction of a sweep */

/* The databases that hold records, in the order in which a write looks for an id. */
enum cfoil_lmdb_tree { CFOIL_LMDB_PENDING, CFOIL_LMDB_RECORDS, CFOIL_LMDB_TREES };

struct cfoil_lmdb_place {
    char *dir;
    char *data; /* DIR/data.mdb */
    char *lock; /* DIR/lock.mdb */
    uint64_t map_bytes;
    bool map_bytes_given; /* by the URL: then it is not lowered where address space is short */
};

/* What an op of the running batch comes to, until the batch is durable. */
struct cfoil_lmdb_result {
    enum cfoil_op_status status;
    enum cfoil_error error;
};

struct cfoil_store {
    struct cfoil_lmdb_place place;
    bool read_only;
    MDB_env *env;
    MDB_dbi trees[CFOIL_LMDB_TREES];
    MDB_dbi meta;
    MDB_txn *read_txn;   /* apply's, scan's and sweep's thread; reset while not in use */
    MDB_txn *lookup_txn; /* lookup's thread; likewise */
    MDB_txn *reserved;   /* a write transaction that was waited for; NULL mostly */
    size_t committed;    /* id of the last transaction that we wrote */
    bool others_write;   /* ... and there were more when the last one was reserved */
    int guard_fd;        /* data.mdb, flocked (place) */
    dev_t data_device;   /* of what guard_fd keeps open, so that no other file can be given them */
    ino_t data_inode;
    bool lock_known;
    dev_t lock_device;
    ino_t lock_inode;
    uint8_t store_id[CFOIL_STORE_ID_BYTES];
    struct cfoil_timebase time;
    int64_t high_water_ms; /* last written to meta, as far as this handle knows */
    int64_t readers_checked_ms;
    uint64_t page_bytes;
    uint64_t reserve_pages;
    struct cfoil_lmdb_result results[CFOIL_STORE_BATCH_MAX];
};

static inline MDB_val cfoil_lmdb_val(const void *data, size_t len)
{
    /* LMDB takes keys as void pointers and does not write through them. */
    MDB_val val = {len, (void *)(uintptr_t)data};
    return val;
}

static inline struct cfoil_bytes cfoil_lmdb_bytes(const MDB_val *val)
{
    return cfoil_bytes_of(val->mv_data, val->mv_size);
}

/* The project's error for LMDB's or errno's. Never OK for anything but 0. */
enum cfoil_error cfoil_lmdb_error(int rc);

/* --- place --- */

/* Reads the URL. Errors: INVALID (problem says what), NO_MEMORY. free works after either. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_place_parse(const char *url,
                                                         struct cfoil_lmdb_place *place,
                                                         char *problem, size_t problem_bytes);
void cfoil_lmdb_place_free(struct cfoil_lmdb_place *place);

/*
 * Checks what is at the place and, with CREATE, makes the directory. *fresh: there is no store yet.
 * Errors: STORE_UNAVAILABLE, STORE_READ_ONLY, STORE_FULL.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_place_prepare(const struct cfoil_lmdb_place *place,
                                                           enum cfoil_open_mode mode, bool *fresh,
                                                           char *problem, size_t problem_bytes);

/*
 * Opens and flocks data.mdb: shared, or exclusively while lock.mdb is missing, because whoever still
 * has the store open then holds locks in a file that is gone. *guard_fd is -1 on error. Errors:
 * STORE_UNAVAILABLE.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_place_guard(const struct cfoil_lmdb_place *place,
                                                         int *guard_fd, char *problem,
                                                         size_t problem_bytes);

/* Once lock.mdb is there: lets others in beside us. False if another opener came between. */
CFOIL_MUST_CHECK bool cfoil_lmdb_place_share(int guard_fd);

/* Makes the directory entries of a new store durable. Errors: STORE_UNAVAILABLE. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_place_sync(const struct cfoil_lmdb_place *place);

/* Remembers which lock.mdb was opened. */
void cfoil_lmdb_place_remember_lock(struct cfoil_store *store);

/* Whether the open files are the ones at their paths. Errors: STORE_REPLACED. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_place_check(const struct cfoil_store *store);

/* --- meta --- */

/*
 * Opens the databases, makes them where the environment is empty and the mode allows it, and reads
 * identity and clock. Errors: STORE_VERSION, STORE_REPLACED, STORE_UNAVAILABLE, and the errors of a
 * write transaction.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_meta_open(struct cfoil_store *store,
                                                       enum cfoil_open_mode mode,
                                                       const uint8_t *expect_store_id,
                                                       char *problem, size_t problem_bytes);

/*
 * Reads the clock row in any transaction and takes its offset over, or anchors a new one after a
 * boot. *stale: the row must be written before this time may be used in a record. Returns LMDB's rc.
 */
int cfoil_lmdb_clock_read(struct cfoil_store *store, MDB_txn *txn, bool *stale);

/* Writes offset and now as the high water. Returns LMDB's rc. */
int cfoil_lmdb_clock_write(struct cfoil_store *store, MDB_txn *txn, int64_t now_ms);

/* --- space --- */

struct cfoil_lmdb_budget {
    uint64_t pages;         /* that this batch may still come to use */
    uint64_t keep_new;      /* of which a new record must leave so many */
    uint64_t keep_update;   /* and an update so many */
    uint64_t pending_pages; /* of the pending tree, not counted as changed by this batch yet */
    uint64_t page_bytes;
};

/* What a record's write does to the trees. */
struct cfoil_lmdb_change {
    size_t record_bytes;
    bool is_new; /* stood in neither tree */
    bool claims; /* comes to stand in the pending tree */
    bool moves;  /* is taken out of one tree and put into the other */
};

/* The share of the map that is kept back, in pages. */
uint64_t cfoil_lmdb_reserve_pages(uint64_t map_pages);

/* What is left, seen with the write lock held. `ops` says how much it matters. Returns LMDB's rc. */
int cfoil_lmdb_budget_open(struct cfoil_store *store, MDB_txn *txn, struct cfoil_op *const *ops,
                           size_t count, struct cfoil_lmdb_budget *budget);

/* Takes a change's pages off the budget; false if it must not be made. */
bool cfoil_lmdb_budget_take(struct cfoil_lmdb_budget *budget,
                            const struct cfoil_lmdb_change *change);

/*
 * What LMDB's rc of a write means: it calls a write that found room for its beginning only an I/O
 * error, and that is ENOSPC here.
 */
int cfoil_lmdb_write_rc(const struct cfoil_store *store, int rc);

/*
 * Whether the environment is still of use after a failed commit. New pages that could not be written
 * are forgotten with their transaction, nothing points to them. A meta page that could not be leaves
 * LMDB unsure of what is on the disk: it then refuses everything until it is opened again.
 */
bool cfoil_lmdb_is_sound(struct cfoil_store *store);

/* Clears dead readers and, after a full map, commits next to nothing so that freed pages count. */
void cfoil_lmdb_make_room(struct cfoil_store *store);

/* Clears dead readers if it was not done lately. */
void cfoil_lmdb_check_readers(struct cfoil_store *store);

/* --- the rest of cfoil_store_lmdb --- */

CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_open(const struct cfoil_store_options *options,
                                                  struct cfoil_store **store, char *problem,
                                                  size_t problem_bytes);
void cfoil_lmdb_close(struct cfoil_store *store);
CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_apply(struct cfoil_store *store, struct cfoil_op **ops,
                                                   size_t count);
void cfoil_lmdb_reserve(struct cfoil_store *store);
void cfoil_lmdb_release(struct cfoil_store *store);
void cfoil_lmdb_lookup(struct cfoil_store *store, struct cfoil_op *op);
CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_scan(struct cfoil_store *store, const uint8_t *cursor,
                                                  uint64_t limit, cfoil_scan_visit visit,
                                                  void *context);
CFOIL_MUST_CHECK enum cfoil_error cfoil_lmdb_sweep(struct cfoil_store *store,
                                                   struct cfoil_sweep *sweep, uint64_t limit);

#endif
