/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing an LMDB store. Order: what is at the place; the guard; LMDB's environment; meta;
 * the two read transactions whose reader slots stay taken until close. Everything is undone in
 * cfoil_lmdb_close, which therefore works on a store that was opened half way.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/lmdb_store.h"

#define ENV_FLAGS (MDB_NOTLS | MDB_NORDAHEAD)

static int configure(MDB_env *env, uint64_t map_bytes)
{
    int rc = mdb_env_set_maxdbs(env, CFOIL_LMDB_TREES + 1);
    if (rc == 0) {
        rc = mdb_env_set_maxreaders(env, CFOIL_LMDB_READERS_MAX);
    }
    if (rc == 0) {
        rc = mdb_env_set_mapsize(env, (size_t)map_bytes);
    }
    return rc;
}

/* The environment may not be used again after a failed open, so every try makes its own. */
static int open_env_once(struct cfoil_store *store, uint64_t map_bytes)
{
    unsigned flags = ENV_FLAGS | (store->read_only ? (unsigned)MDB_RDONLY : 0U);

    int rc = mdb_env_create(&store->env);
    if (rc != 0) {
        store->env = NULL;
        return rc;
    }
    rc = configure(store->env, map_bytes);
    if (rc == 0) {
        rc = mdb_env_open(store->env, store->place.dir, flags, 0600);
    }
    if (rc != 0) {
        mdb_env_close(store->env);
        store->env = NULL;
    }
    return rc;
}

static enum cfoil_error open_env(struct cfoil_store *store, char *problem, size_t problem_bytes)
{
    uint64_t map_bytes = store->place.map_bytes;

    int rc = open_env_once(store, map_bytes);
    while (rc == ENOMEM && !store->place.map_bytes_given &&
           map_bytes / 2 >= CFOIL_LMDB_MAP_BYTES_MIN) {
        map_bytes /= 2;
        rc = open_env_once(store, map_bytes);
    }
    if (rc != 0) {
        cfoil_problem(problem, problem_bytes, "%s: cannot be opened: %s", store->place.dir,
                      mdb_strerror(rc));
    }
    return cfoil_lmdb_error(rc);
}

static enum cfoil_error open_readers(struct cfoil_store *store, char *problem, size_t problem_bytes)
{
    MDB_txn **txns[] = {&store->read_txn, &store->lookup_txn};
    int dead;

    (void)mdb_reader_check(store->env, &dead);
    for (size_t i = 0; i < 2; i++) {
        int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, txns[i]);
        if (rc != 0) {
            *txns[i] = NULL;
            cfoil_problem(problem, problem_bytes, "%s: no reader slot: %s", store->place.dir,
                          mdb_strerror(rc));
            return cfoil_lmdb_error(rc);
        }
        mdb_txn_reset(*txns[i]);
    }
    return CFOIL_OK;
}

/* A new store's data.mdb exists only once LMDB has made it; then it is guarded like any other. */
static enum cfoil_error open_files(struct cfoil_store *store, bool fresh, char *problem,
                                   size_t problem_bytes)
{
    enum cfoil_error error = CFOIL_OK;

    if (!fresh) {
        error = cfoil_lmdb_place_guard(&store->place, &store->guard_fd, problem, problem_bytes);
    }
    if (error == CFOIL_OK) {
        error = open_env(store, problem, problem_bytes);
    }
    if (error == CFOIL_OK && fresh) {
        error = cfoil_lmdb_place_guard(&store->place, &store->guard_fd, problem, problem_bytes);
    }
    return error;
}

/* The guard and LMDB opened the path one after the other: they must have met the same file. */
static enum cfoil_error confirm(struct cfoil_store *store, char *problem, size_t problem_bytes)
{
    struct stat guarded;
    struct stat used;
    mdb_filehandle_t fd;

    cfoil_lmdb_place_remember_lock(store);
    int rc = mdb_env_get_fd(store->env, &fd);
    if (rc != 0 || fstat(fd, &used) != 0 || fstat(store->guard_fd, &guarded) != 0 ||
        used.st_dev != guarded.st_dev || used.st_ino != guarded.st_ino ||
        !cfoil_lmdb_place_share(store->guard_fd)) {
        cfoil_problem(problem, problem_bytes, "%s: replaced while it was being opened",
                      store->place.data);
        return CFOIL_E_STORE_REPLACED;
    }
    store->data_device = guarded.st_dev;
    store->data_inode = guarded.st_ino;
    return CFOIL_OK;
}

static enum cfoil_error open_store(struct cfoil_store *store,
                                   const struct cfoil_store_options *options, char *problem,
                                   size_t problem_bytes)
{
    bool fresh;

    enum cfoil_error error =
        cfoil_lmdb_place_parse(options->url, &store->place, problem, problem_bytes);
    if (error != CFOIL_OK) {
        return error;
    }
    error = cfoil_timebase_init(&store->time, &options->clock);
    if (error != CFOIL_OK) {
        cfoil_problem(problem, problem_bytes, "the kernel's boot id cannot be read");
        return error;
    }
    error = cfoil_lmdb_place_prepare(&store->place, options->mode, &fresh, problem, problem_bytes);
    if (error == CFOIL_OK) {
        error = open_files(store, fresh, problem, problem_bytes);
    }
    if (error == CFOIL_OK) {
        error = confirm(store, problem, problem_bytes);
    }
    if (error == CFOIL_OK) {
        error = cfoil_lmdb_meta_open(store, options->mode, options->expect_store_id, problem,
                                     problem_bytes);
    }
    if (error == CFOIL_OK) {
        error = open_readers(store, problem, problem_bytes);
    }
    if (error == CFOIL_OK && fresh) {
        error = cfoil_lmdb_place_sync(&store->place);
    }
    return error;
}

/* Page size and reserve of the environment as it was opened. */
static void measure(struct cfoil_store *store)
{
    MDB_stat stat;
    MDB_envinfo info;

    (void)mdb_env_stat(store->env, &stat);
    (void)mdb_env_info(store->env, &info);
    store->page_bytes = stat.ms_psize;
    store->reserve_pages = cfoil_lmdb_reserve_pages(info.me_mapsize / stat.ms_psize);
    store->readers_checked_ms = cfoil_timebase_now(&store->time);
}

enum cfoil_error cfoil_lmdb_open(const struct cfoil_store_options *options,
                                 struct cfoil_store **store, char *problem, size_t problem_bytes)
{
    struct cfoil_store *made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    made->guard_fd = -1;
    made->read_only = options->mode == CFOIL_OPEN_READ_ONLY;
    enum cfoil_error error = open_store(made, options, problem, problem_bytes);
    if (error != CFOIL_OK) {
        cfoil_lmdb_close(made);
        return error;
    }
    measure(made);
    *store = made;
    return CFOIL_OK;
}

void cfoil_lmdb_close(struct cfoil_store *store)
{
    cfoil_lmdb_release(store);
    if (store->lookup_txn != NULL) {
        mdb_txn_abort(store->lookup_txn);
    }
    if (store->read_txn != NULL) {
        mdb_txn_abort(store->read_txn);
    }
    if (store->env != NULL) {
        mdb_env_close(store->env);
    }
    if (store->guard_fd >= 0) {
        (void)close(store->guard_fd);
    }
    cfoil_lmdb_place_free(&store->place);
    free(store);
}

static void lmdb_identity(const struct cfoil_store *store, uint8_t *store_id)
{
    memcpy(store_id, store->store_id, CFOIL_STORE_ID_BYTES);
}

static uint64_t lmdb_position(const struct cfoil_store *store)
{
    MDB_envinfo info;

    return mdb_env_info(store->env, &info) == 0 ? info.me_last_txnid : 0;
}

const struct cfoil_store_ops cfoil_store_lmdb = {
    .scheme = "lmdb",
    .has_lookup = true,
    .open = cfoil_lmdb_open,
    .close = cfoil_lmdb_close,
    .identity = lmdb_identity,
    .position = lmdb_position,
    .reserve = cfoil_lmdb_reserve,
    .release = cfoil_lmdb_release,
    .apply = cfoil_lmdb_apply,
    .lookup = cfoil_lmdb_lookup,
    .scan = cfoil_lmdb_scan,
    .sweep = cfoil_lmdb_sweep,
};
