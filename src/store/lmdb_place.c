/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an LMDB store lives, and what can happen to that place under a running process.
 *
 * A deleted data.mdb, or another one at its path, means that whoever opens the path does not see what
 * we write: checked before any result is given. A deleted lock.mdb means that the next opener would
 * make a new one and write beside us. Two things stand against that: an opener that finds data.mdb
 * without lock.mdb must get data.mdb's flock exclusively, which it cannot while anybody has the store
 * open; and a process whose lock.mdb is gone notices at its next batch, and closes. A lock.mdb that
 * was *replaced* by another file is noticed the same way, but leaves a gap until then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "store/lmdb_store.h"

#define GUARD_TRIES    20
#define GUARD_PAUSE_MS 10

enum cfoil_error cfoil_lmdb_error(int rc)
{
    switch (rc) {
    case 0:
        return CFOIL_OK;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case EDQUOT:
        return CFOIL_E_STORE_FULL;
    case EROFS:
    case EACCES:
    case EPERM:
        return CFOIL_E_STORE_READ_ONLY;
    case ENOMEM:
        return CFOIL_E_NO_MEMORY;
    case MDB_VERSION_MISMATCH:
        return CFOIL_E_STORE_VERSION;
    default:
        return CFOIL_E_STORE_UNAVAILABLE;
    }
}

/* A number with an optional binary unit. False if it is anything else or too large. */
static bool parse_bytes(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    char *end;

    if (*text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0) {
            *bytes = (uint64_t)value << units[i].shift;
            return errno == 0 && value <= (UINT64_MAX >> 1 >> units[i].shift);
        }
    }
    return false;
}

static enum cfoil_error parse_option(const char *option, struct cfoil_lmdb_place *place,
                                     char *problem, size_t problem_bytes)
{
    static const char name[] = "map_size=";

    if (strncmp(option, name, sizeof(name) - 1) != 0) {
        cfoil_problem(problem, problem_bytes,
                      "lmdb: unknown option '%s'; the only one is map_size, as in "
                      "lmdb:DIR?map_size=64GiB",
                      option);
        return CFOIL_E_INVALID;
    }
    if (!parse_bytes(option + sizeof(name) - 1, &place->map_bytes) ||
        place->map_bytes < CFOIL_LMDB_MAP_BYTES_MIN || place->map_bytes > SIZE_MAX / 2) {
        cfoil_problem(problem, problem_bytes,
                      "lmdb: '%s': map_size is a number of bytes, KiB, MiB, GiB or TiB and at "
                      "least 1MiB",
                      option);
        return CFOIL_E_INVALID;
    }
    place->map_bytes_given = true;
    return CFOIL_OK;
}

static char *joined(const char *dir, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

enum cfoil_error cfoil_lmdb_place_parse(const char *url, struct cfoil_lmdb_place *place,
                                        char *problem, size_t problem_bytes)
{
    const char *dir = strchr(url, ':') + 1;
    const char *question = strchr(dir, '?');
    size_t dir_len = question != NULL ? (size_t)(question - dir) : strlen(dir);

    memset(place, 0, sizeof(*place));
    place->map_bytes = CFOIL_LMDB_MAP_BYTES_DEFAULT;
    if (place->map_bytes > SIZE_MAX / 2) {
        place->map_bytes = SIZE_MAX / 4;
    }
    if (dir_len == 0) {
        cfoil_problem(problem, problem_bytes, "'%s': an LMDB store is written lmdb:DIR", url);
        return CFOIL_E_INVALID;
    }
    if (question != NULL) {
        enum cfoil_error error = parse_option(question + 1, place, problem, problem_bytes);
        if (error != CFOIL_OK) {
            return error;
        }
    }
    place->dir = strndup(dir, dir_len);
    if (place->dir == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    place->data = joined(place->dir, "data.mdb");
    place->lock = joined(place->dir, "lock.mdb");
    return place->data != NULL && place->lock != NULL ? CFOIL_OK : CFOIL_E_NO_MEMORY;
}

void cfoil_lmdb_place_free(struct cfoil_lmdb_place *place)
{
    free(place->dir);
    free(place->data);
    free(place->lock);
    memset(place, 0, sizeof(*place));
}

enum cfoil_error cfoil_lmdb_place_prepare(const struct cfoil_lmdb_place *place,
                                          enum cfoil_open_mode mode, bool *fresh, char *problem,
                                          size_t problem_bytes)
{
    struct stat data;

    if (mode == CFOIL_OPEN_CREATE && mkdir(place->dir, 0700) != 0 && errno != EEXIST) {
        int why = errno;
        cfoil_problem(problem, problem_bytes, "%s: cannot be created: %s; make its parent first",
                      place->dir, strerror(why));
        return cfoil_lmdb_error(why);
    }
    /* An empty file is what a crash leaves before anything was promised. */
    *fresh = stat(place->data, &data) != 0 ? errno == ENOENT : data.st_size == 0;
    if (*fresh && mode != CFOIL_OPEN_CREATE) {
        cfoil_problem(problem, problem_bytes,
                      "%s: there is no store here, and none is made at this point", place->dir);
        return CFOIL_E_STORE_UNAVAILABLE;
    }
    return CFOIL_OK;
}

/* Whether lock.mdb is gone where it could be made; a read-only file system needs none. */
static bool lock_is_missing(const struct cfoil_lmdb_place *place)
{
    struct stat info;
    return stat(place->lock, &info) != 0 && access(place->dir, W_OK) == 0;
}

enum cfoil_error cfoil_lmdb_place_guard(const struct cfoil_lmdb_place *place, int *guard_fd,
                                        char *problem, size_t problem_bytes)
{
    const struct timespec pause = {0, GUARD_PAUSE_MS * 1000000L};
    bool alone = false;

    *guard_fd = open(place->data, O_RDONLY | O_CLOEXEC);
    if (*guard_fd < 0) {
        int why = errno;
        cfoil_problem(problem, problem_bytes, "%s: cannot be opened: %s", place->data,
                      strerror(why));
        return CFOIL_E_STORE_UNAVAILABLE;
    }
    for (int i = 0; i < GUARD_TRIES; i++) {
        /* Looked at in every round: another opener may be making it right now. */
        alone = lock_is_missing(place);
        if (flock(*guard_fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) {
            return CFOIL_OK;
        }
        (void)nanosleep(&pause, NULL);
    }
    (void)close(*guard_fd);
    *guard_fd = -1;
    cfoil_problem(problem, problem_bytes, "%s: %s", place->data,
                  alone ? "lock.mdb is missing while another process has the store open; it can "
                          "be opened when that process has let go"
                        : "another process keeps it locked");
    return CFOIL_E_STORE_UNAVAILABLE;
}

bool cfoil_lmdb_place_share(int guard_fd)
{
    return flock(guard_fd, LOCK_SH | LOCK_NB) == 0;
}

static int sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    int why = fsync(fd) == 0 ? 0 : errno;
    (void)close(fd);
    return why;
}

enum cfoil_error cfoil_lmdb_place_sync(const struct cfoil_lmdb_place *place)
{
    char *parent = joined(place->dir, "..");
    if (parent == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    int why = sync_directory(place->dir);
    if (why == 0) {
        why = sync_directory(parent);
        /* A parent we may enter but not read holds an entry its owner made. */
        why = why == EACCES ? 0 : why;
    }
    free(parent);
    return cfoil_lmdb_error(why);
}

void cfoil_lmdb_place_remember_lock(struct cfoil_store *store)
{
    struct stat lock;

    /* A read-only file system has no lock file, and no writers to be kept apart from. */
    store->lock_known = stat(store->place.lock, &lock) == 0;
    if (store->lock_known) {
        store->lock_device = lock.st_dev;
        store->lock_inode = lock.st_ino;
    }
}

enum cfoil_error cfoil_lmdb_place_check(const struct cfoil_store *store)
{
    struct stat data;
    struct stat lock;

    /* A deleted file has no path, so that its link count need not be asked for. */
    if (stat(store->place.data, &data) != 0 || data.st_dev != store->data_device ||
        data.st_ino != store->data_inode) {
        return CFOIL_E_STORE_REPLACED;
    }
    if (store->lock_known &&
        (stat(store->place.lock, &lock) != 0 || lock.st_dev != store->lock_device ||
         lock.st_ino != store->lock_inode)) {
        return CFOIL_E_STORE_REPLACED;
    }
    return CFOIL_OK;
}
