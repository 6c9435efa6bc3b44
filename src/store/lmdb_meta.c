/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meta database: format, identity and clock (layout in lmdb_store.h). Written when the store is
 * made; afterwards only the clock row changes, inside a batch's own transaction.
 *
 * Invariant: every process of one boot works with the same offset, because the first opener writes
 * it under the write lock and every batch reads it again.
 */
#include <errno.h>

#include "store/lmdb_store.h"

#define CLOCK_ROW_BYTES (8 + 8 + CFOIL_BOOT_ID_BYTES)

static void put_le(uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get_le(const uint8_t *in, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)in[i] << (8 * i);
    }
    return value;
}

static int get_row(struct cfoil_store *store, MDB_txn *txn, const char *name, size_t bytes,
                   const uint8_t **row)
{
    MDB_val key = cfoil_lmdb_val(name, strlen(name));
    MDB_val data;

    int rc = mdb_get(txn, store->meta, &key, &data);
    if (rc == 0 && data.mv_size != bytes) {
        rc = MDB_INVALID;
    }
    *row = rc == 0 ? data.mv_data : NULL;
    return rc;
}

static int put_row(struct cfoil_store *store, MDB_txn *txn, const char *name, const uint8_t *row,
                   size_t bytes)
{
    MDB_val key = cfoil_lmdb_val(name, strlen(name));
    MDB_val data = cfoil_lmdb_val(row, bytes);

    return mdb_put(txn, store->meta, &key, &data, 0);
}

int cfoil_lmdb_clock_read(struct cfoil_store *store, MDB_txn *txn, bool *stale)
{
    const uint8_t *row;

    int rc = get_row(store, txn, "clock", CLOCK_ROW_BYTES, &row);
    if (rc != 0) {
        return rc;
    }
    int64_t offset_ms = (int64_t)get_le(row, 8);
    int64_t high_water_ms = (int64_t)get_le(row + 8, 8);
    if (high_water_ms < 0 || high_water_ms > CFOIL_CLOCK_MS_MAX || offset_ms > CFOIL_CLOCK_MS_MAX ||
        offset_ms < -CFOIL_CLOCK_MS_MAX) {
        return MDB_INVALID;
    }
    store->high_water_ms = high_water_ms;
    bool same_boot = memcmp(row + 16, store->time.boot_id, CFOIL_BOOT_ID_BYTES) == 0;
    /* Time behind the high water in the same boot: another time namespace's offset. */
    *stale = !same_boot ||
             cfoil_timebase_under(&store->time, offset_ms) + CFOIL_CLOCK_MARGIN_MS < high_water_ms;
    if (*stale) {
        cfoil_timebase_anchor(&store->time, high_water_ms);
        return 0;
    }
    cfoil_timebase_adopt(&store->time, offset_ms, high_water_ms);
    return 0;
}

int cfoil_lmdb_clock_write(struct cfoil_store *store, MDB_txn *txn, int64_t now_ms)
{
    uint8_t row[CLOCK_ROW_BYTES];

    put_le(row, (uint64_t)atomic_load(&store->time.offset_ms), 8);
    put_le(row + 8, (uint64_t)now_ms, 8);
    memcpy(row + 16, store->time.boot_id, CFOIL_BOOT_ID_BYTES);
    int rc = put_row(store, txn, "clock", row, sizeof(row));
    if (rc == 0) {
        store->high_water_ms = now_ms;
    }
    return rc;
}

/* Opens the databases that hold records; with MDB_CREATE it makes them. */
static int open_trees(struct cfoil_store *store, MDB_txn *txn, unsigned flags)
{
    int rc = mdb_dbi_open(txn, "pending", flags, &store->trees[CFOIL_LMDB_PENDING]);
    if (rc == 0) {
        rc = mdb_dbi_open(txn, "records", flags, &store->trees[CFOIL_LMDB_RECORDS]);
    }
    return rc;
}

/* Makes the databases and the rows of a new store. */
static int make(struct cfoil_store *store, MDB_txn *txn)
{
    uint8_t format[4];
    uint8_t store_id[CFOIL_STORE_ID_BYTES];

    if (cfoil_store_id_random(store_id) != CFOIL_OK) {
        return EIO;
    }
    int rc = mdb_dbi_open(txn, "meta", MDB_CREATE, &store->meta);
    if (rc == 0) {
        rc = open_trees(store, txn, MDB_CREATE);
    }
    memcpy(store->store_id, store_id, sizeof(store_id));
    if (rc == 0) {
        put_le(format, CFOIL_LMDB_FORMAT, sizeof(format));
        rc = put_row(store, txn, "format", format, sizeof(format));
    }
    if (rc == 0) {
        rc = put_row(store, txn, "identity", store_id, sizeof(store_id));
    }
    if (rc == 0) {
        cfoil_timebase_anchor(&store->time, 0);
        rc = cfoil_lmdb_clock_write(store, txn, cfoil_timebase_now(&store->time));
    }
    return rc;
}

static int is_empty(MDB_txn *txn, bool *empty)
{
    MDB_dbi main_dbi;
    MDB_stat stat;

    int rc = mdb_dbi_open(txn, NULL, 0, &main_dbi);
    if (rc == 0) {
        rc = mdb_stat(txn, main_dbi, &stat);
    }
    *empty = rc == 0 && stat.ms_entries == 0;
    return rc;
}

static int read_identity(struct cfoil_store *store, MDB_txn *txn, uint64_t *format)
{
    const uint8_t *row;

    int rc = get_row(store, txn, "format", 4, &row);
    if (rc != 0) {
        return rc;
    }
    *format = get_le(row, 4);
    rc = get_row(store, txn, "identity", CFOIL_STORE_ID_BYTES, &row);
    if (rc == 0) {
        memcpy(store->store_id, row, CFOIL_STORE_ID_BYTES);
    }
    return rc;
}

struct opening {
    bool create;
    bool writing; /* the transaction may write */
    bool lacking; /* out: a write is due that this transaction could not do */
    uint64_t format;
};

/* In one transaction: make or open, read, and write the clock row of a new boot. */
static int open_in(struct cfoil_store *store, MDB_txn *txn, struct opening *opening)
{
    bool empty;
    bool stale = false;

    int rc = is_empty(txn, &empty);
    if (rc == 0 && empty && opening->create) {
        opening->lacking = !opening->writing;
        opening->format = CFOIL_LMDB_FORMAT;
        return opening->writing ? make(store, txn) : 0;
    }
    if (rc == 0) {
        rc = mdb_dbi_open(txn, "meta", 0, &store->meta);
    }
    if (rc == 0) {
        rc = read_identity(store, txn, &opening->format);
    }
    /* Another format may have other trees. */
    if (rc != 0 || opening->format != CFOIL_LMDB_FORMAT) {
        return rc;
    }
    rc = open_trees(store, txn, 0);
    if (rc == 0) {
        rc = cfoil_lmdb_clock_read(store, txn, &stale);
    }
    if (rc == 0 && stale && opening->writing) {
        rc = cfoil_lmdb_clock_write(store, txn, cfoil_timebase_now(&store->time));
    }
    opening->lacking = stale && !opening->writing && !store->read_only;
    return rc;
}

static enum cfoil_error explain(const struct cfoil_store *store, int rc, char *problem,
                                size_t problem_bytes)
{
    if (rc == MDB_NOTFOUND || rc == MDB_INVALID || rc == MDB_INCOMPATIBLE) {
        cfoil_problem(problem, problem_bytes,
                      "%s: this is not a Counterfoil store, or its meta rows are damaged",
                      store->place.dir);
        return CFOIL_E_STORE_UNAVAILABLE;
    }
    cfoil_problem(problem, problem_bytes, "%s: cannot be read: %s", store->place.dir,
                  mdb_strerror(rc));
    return cfoil_lmdb_error(rc);
}

static enum cfoil_error judge_identity(const struct cfoil_store *store, uint64_t format,
                                       const uint8_t *expect_store_id, char *problem,
                                       size_t problem_bytes)
{
    if (format != CFOIL_LMDB_FORMAT) {
        cfoil_problem(problem, problem_bytes,
                      "%s: the store has format %llu, this program knows format %d; use the "
                      "program that wrote it",
                      store->place.dir, (unsigned long long)format, CFOIL_LMDB_FORMAT);
        return CFOIL_E_STORE_VERSION;
    }
    if (!cfoil_store_id_is_none(expect_store_id) &&
        memcmp(expect_store_id, store->store_id, CFOIL_STORE_ID_BYTES) != 0) {
        cfoil_problem(problem, problem_bytes,
                      "%s: another store is here now than the one this program started with; put "
                      "that one back, or restart to accept the new one",
                      store->place.dir);
        return CFOIL_E_STORE_REPLACED;
    }
    return CFOIL_OK;
}

static enum cfoil_error open_with(struct cfoil_store *store, struct opening *opening,
                                  const uint8_t *expect_store_id, char *problem,
                                  size_t problem_bytes)
{
    enum cfoil_error error = CFOIL_OK;
    MDB_txn *txn = NULL;

    int rc = mdb_txn_begin(store->env, NULL, opening->writing ? 0 : MDB_RDONLY, &txn);
    if (rc != 0) {
        return explain(store, rc, problem, problem_bytes);
    }
    rc = open_in(store, txn, opening);
    if (rc == 0 && !opening->lacking) {
        error = judge_identity(store, opening->format, expect_store_id, problem, problem_bytes);
    }
    if (rc != 0 || error != CFOIL_OK || opening->lacking) {
        mdb_txn_abort(txn);
        return rc != 0 ? explain(store, rc, problem, problem_bytes) : error;
    }
    /* Committing without a write costs no sync, and keeps the database handles. */
    rc = cfoil_lmdb_write_rc(store, mdb_txn_commit(txn));
    return rc != 0 ? explain(store, rc, problem, problem_bytes) : CFOIL_OK;
}

/* First as a reader, who waits for no writer; as a writer only where something must be written. */
enum cfoil_error cfoil_lmdb_meta_open(struct cfoil_store *store, enum cfoil_open_mode mode,
                                      const uint8_t *expect_store_id, char *problem,
                                      size_t problem_bytes)
{
    struct opening opening = {.create = mode == CFOIL_OPEN_CREATE};

    enum cfoil_error error = open_with(store, &opening, expect_store_id, problem, problem_bytes);
    if (error != CFOIL_OK || !opening.lacking) {
        return error;
    }
    opening.writing = true;
    opening.lacking = false;
    return open_with(store, &opening, expect_store_id, problem, problem_bytes);
}
