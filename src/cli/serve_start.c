/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory and the start. What is made here, by root too, belongs to the owner of the
 * state directory and to nobody else: records and logs hold what clients sent.
 *
 * A lock on STATE/lock is held as long as nginx, which inherits it, has a process: two gateways on
 * one state directory would overwrite each other's configuration and pid file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/paths.h"
#include "cli/serve.h"
#include "policy/policy.h"

/* Makes one directory, 0700. False: complained. */
static bool make_directory(const char *path)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST) {
        return true;
    }
    cfoil_complain("%s cannot be made: %s; make it, or choose another place with --state", path,
                   strerror(errno));
    return false;
}

/* Makes a directory and what is missing above it. */
static bool make_directories(const char *path)
{
    char *copy = strdup(path);
    bool good = copy != NULL;
    for (char *at = good ? strchr(copy + 1, '/') : NULL; at != NULL && good;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        /* One that exists needs no permission to be made. */
        good = access(copy, F_OK) == 0 || make_directory(copy);
        *at = '/';
    }
    good = good && make_directory(path);
    free(copy);
    return good;
}

static bool give(const struct cfoil_serve *serve, const char *path)
{
    if (geteuid() != 0 || chown(path, serve->owner_uid, serve->owner_gid) == 0) {
        return true;
    }
    cfoil_complain("%s cannot be given to %s: %s", path, serve->user, strerror(errno));
    return false;
}

/* A directory inside the state directory, its owner's. */
static bool make_inside(const struct cfoil_serve *serve, const char *name)
{
    char *path = cfoil_path_join(serve->state, name);
    bool good = path != NULL && make_directory(path) && give(serve, path);
    free(path);
    return good;
}

/* Writes a file whole or not at all: beside its place first, then into it. */
static bool write_file(const struct cfoil_serve *serve, const char *name,
                       void (*print)(const struct cfoil_serve *serve, FILE *out))
{
    char *path = cfoil_path_join(serve->state, name);
    char *fresh = NULL;
    if (path == NULL || asprintf(&fresh, "%s.new", path) < 0) {
        free(path);
        cfoil_complain("out of memory");
        return false;
    }

    errno = 0;
    int descriptor = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *out = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    bool good = out != NULL;
    if (good) {
        print(serve, out);
        good = fflush(out) == 0 && ferror(out) == 0;
        good = fclose(out) == 0 && good && rename(fresh, path) == 0;
    }
    if (!good) {
        cfoil_complain("%s cannot be written: %s", path, strerror(errno));
    }
    good = good && give(serve, path);
    free(fresh);
    free(path);
    return good;
}

static void print_policy(const struct cfoil_serve *serve, FILE *out)
{
    (void)serve;
    (void)fputs(cfoil_policy_default_text, out);
}

/* The lock's descriptor is meant to be inherited, and is closed by the end of the last process. */
static bool take_lock(const struct cfoil_serve *serve)
{
    char *path = cfoil_path_join(serve->state, "lock");
    if (path == NULL) {
        cfoil_complain("out of memory");
        return false;
    }
    int descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    bool good = descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    if (!good && descriptor >= 0 && errno == EWOULDBLOCK) {
        cfoil_complain(
            "another gateway uses the state directory %s; stop it, or choose another one "
            "with --state",
            serve->state);
    } else if (!good) {
        cfoil_complain("%s cannot be locked: %s", path, strerror(errno));
    }
    good = good && give(serve, path);
    free(path);
    return good;
}

static bool check_programs(const struct cfoil_serve *serve)
{
    if (serve->nginx == NULL) {
        cfoil_complain("nginx is not installed: apt install nginx-light, or put nginx into PATH");
        return false;
    }
    if (!serve->module_found) {
        cfoil_complain("%s is not there, nor in ../lib/counterfoil or "
                       "/usr/lib/nginx/modules; run make, which puts it beside this program, "
                       "or make install",
                       serve->module);
        return false;
    }
    return true;
}

enum cfoil_exit cfoil_serve_prepare(const struct cfoil_serve *serve)
{
    if (!check_programs(serve) || !cfoil_upstream_resolves(serve->upstream) ||
        !cfoil_address_free("--listen", serve->listen) ||
        !cfoil_address_free("--admin", serve->admin)) {
        return CFOIL_EXIT_SYSTEM;
    }
    bool good = make_directories(serve->state) && take_lock(serve) && make_inside(serve, "tmp") &&
                write_file(serve, "nginx.conf", cfoil_serve_config) &&
                (!serve->policy_built_in || write_file(serve, "default-policy.yaml", print_policy));
    return good ? CFOIL_EXIT_OK : CFOIL_EXIT_SYSTEM;
}

void cfoil_serve_announce_new(const struct cfoil_serve *serve, FILE *out)
{
    struct stat info;
    char *data = NULL;
    if (strncmp(serve->store, "lmdb:", 5) != 0) {
        return;
    }
    const char *directory = serve->store + 5;
    if (asprintf(&data, "%.*s/data.mdb", (int)strcspn(directory, "?"), directory) < 0) {
        return;
    }
    /* As the store itself judges it: an empty file holds nothing that was promised. */
    bool is_new = stat(data, &info) != 0 ? errno == ENOENT : info.st_size == 0;
    free(data);
    if (is_new) {
        (void)fputs("  records     (new, empty): no key is known yet\n", out);
        (void)fflush(out);
    }
}

/* Both ends of every request are descriptors; the system's usual 1024 is soon used up. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= CFOIL_DESCRIPTORS_MAX) {
        return;
    }
    limit.rlim_cur =
        limit.rlim_max < CFOIL_DESCRIPTORS_MAX ? limit.rlim_max : CFOIL_DESCRIPTORS_MAX;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

enum cfoil_exit cfoil_serve_start(const struct cfoil_serve *serve)
{
    char *config = cfoil_path_join(serve->state, "nginx.conf");
    if (config == NULL) {
        cfoil_complain("out of memory");
        return CFOIL_EXIT_SYSTEM;
    }
    raise_descriptors();
    (void)execl(serve->nginx, "nginx", "-e", "stderr", "-p", serve->state, "-c", config,
                (char *)NULL);
    cfoil_complain("%s cannot be started: %s", serve->nginx, strerror(errno));
    free(config);
    return CFOIL_EXIT_SYSTEM;
}
