/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the contract suite does to an LMDB store behind the contract's back: damage bytes, and die while
 * holding a lock. The store must not be open in this process meanwhile (LMDB's rule).
 */
#include "contract.h"

#include <lmdb.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static MDB_env *open_env(const char *dir)
{
    MDB_env *env;

    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 4), 0);
    assert_int_equal(mdb_env_set_mapsize(env, (size_t)1 << 30), 0);
    assert_int_equal(mdb_env_open(env, dir, MDB_NOTLS, 0600), 0);
    return env;
}

static void put(const char *dir, const char *database, MDB_val key, MDB_val data)
{
    MDB_env *env = open_env(dir);
    MDB_txn *txn;
    MDB_dbi dbi;

    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, database, MDB_CREATE, &dbi), 0);
    assert_int_equal(mdb_put(txn, dbi, &key, &data, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static bool stands(MDB_txn *txn, const char *tree, const uint8_t *id)
{
    uint8_t bytes[CFOIL_ID_BYTES];
    MDB_val key = {sizeof(bytes), bytes};
    MDB_val data;
    MDB_dbi dbi;

    memcpy(bytes, id, sizeof(bytes));
    assert_int_equal(mdb_dbi_open(txn, tree, 0, &dbi), 0);
    int rc = mdb_get(txn, dbi, &key, &data);
    assert_true(rc == 0 || rc == MDB_NOTFOUND);
    return rc == 0;
}

static struct contract_places places(const char *dir, const uint8_t *id)
{
    MDB_env *env = open_env(dir);
    MDB_txn *txn;

    assert_int_equal(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    struct contract_places found = {
        .pending = stands(txn, "pending", id),
        .records = stands(txn, "records", id),
    };
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return found;
}

static void put_raw(const char *dir, const uint8_t *id, struct cfoil_bytes bytes)
{
    uint8_t key[CFOIL_ID_BYTES];
    uint8_t *data = malloc(bytes.len + 1);

    assert_non_null(data);
    memcpy(key, id, sizeof(key));
    memcpy(data, bytes.data, bytes.len);
    put(dir, places(dir, id).pending ? "pending" : "records", (MDB_val){sizeof(key), key},
        (MDB_val){bytes.len, data});
    free(data);
}

static void set_format(const char *dir, uint32_t format)
{
    char key[] = "format";
    uint8_t row[4] = {(uint8_t)format, (uint8_t)(format >> 8), (uint8_t)(format >> 16),
                      (uint8_t)(format >> 24)};

    put(dir, "meta", (MDB_val){strlen(key), key}, (MDB_val){sizeof(row), row});
}

/* Format 1 had all records in one tree. */
static void make_older(const char *dir)
{
    MDB_env *env = open_env(dir);
    MDB_txn *txn;
    MDB_dbi dbi;

    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, "pending", 0, &dbi), 0);
    assert_int_equal(mdb_drop(txn, dbi, 1), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    set_format(dir, 1);
}

static void say_ready_and_wait(int ready_fd)
{
    assert_int_equal(write(ready_fd, "r", 1), 1);
    for (;;) {
        (void)pause();
    }
}

static void hold_write(const char *dir, const uint8_t *id, int ready_fd)
{
    uint8_t key_bytes[CFOIL_ID_BYTES];
    char junk[] = "never committed";
    MDB_val key = {sizeof(key_bytes), key_bytes};
    MDB_val data = {sizeof(junk), junk};
    MDB_env *env = open_env(dir);
    MDB_txn *txn;
    MDB_dbi dbi;

    memcpy(key_bytes, id, sizeof(key_bytes));
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, "records", 0, &dbi), 0);
    assert_int_equal(mdb_put(txn, dbi, &key, &data, 0), 0);
    say_ready_and_wait(ready_fd);
}

static void hold_read(const char *dir, int ready_fd)
{
    MDB_env *env = open_env(dir);
    MDB_txn *txn;

    assert_int_equal(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    say_ready_and_wait(ready_fd);
}

static void make_stranger(const char *dir)
{
    char text[] = "hello";

    assert_int_equal(mkdir(dir, 0700), 0);
    put(dir, "other", (MDB_val){5, text}, (MDB_val){5, text});
}

const struct contract_hands contract_lmdb_hands = {
    .put_raw = put_raw,
    .places = places,
    .set_format = set_format,
    .make_older = make_older,
    .hold_write = hold_write,
    .hold_read = hold_read,
    .make_stranger = make_stranger,
    .data_file = "data.mdb",
    .lock_file = "lock.mdb",
};
