/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to settings, each of them checked. See serve.h. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/paths.h"
#include "cli/policies.h"
#include "cli/serve.h"
#include "policy/scalar.h"

#define UPSTREAM_TIMEOUT_DEFAULT_MS INT64_C(60000)
#define UPSTREAM_TIMEOUT_MAX_MS     (24 * INT64_C(3600000))
#define MODULE_NAME                 "ngx_http_counterfoil_module.so"

static const char *option_or(const struct cfoil_arguments *arguments, const char *name,
                             const char *otherwise)
{
    const char *value = cfoil_option(arguments, name);
    return value != NULL ? value : otherwise;
}

static bool read_addresses(const struct cfoil_arguments *arguments, struct cfoil_serve *serve)
{
    const char *upstream = cfoil_option(arguments, "--upstream");
    if (upstream == NULL) {
        cfoil_complain("serve needs --upstream URL, the backend, as in http://127.0.0.1:3000");
        return false;
    }
    if (!cfoil_upstream_read(upstream, serve->upstream) ||
        !cfoil_address_read("--listen", option_or(arguments, "--listen", "127.0.0.1:8080"),
                            serve->listen) ||
        !cfoil_address_read("--admin", option_or(arguments, "--admin", "127.0.0.1:8081"),
                            serve->admin)) {
        return false;
    }
    if (strcmp(serve->listen, serve->admin) == 0) {
        cfoil_complain("--listen and --admin are both %s; give them different ports",
                       serve->listen);
        return false;
    }
    if (strcmp(serve->listen, serve->upstream) == 0) {
        cfoil_complain("--upstream is the address of --listen itself; give the backend's");
        return false;
    }
    return true;
}

static bool read_numbers(const struct cfoil_arguments *arguments, struct cfoil_serve *serve)
{
    char why[CFOIL_WHY_BYTES];
    const char *timeout = cfoil_option(arguments, "--upstream-timeout");
    const char *workers = cfoil_option(arguments, "--workers");
    serve->upstream_timeout_ms = UPSTREAM_TIMEOUT_DEFAULT_MS;
    if (timeout != NULL && !cfoil_duration_read(timeout, 1, UPSTREAM_TIMEOUT_MAX_MS,
                                                &serve->upstream_timeout_ms, why)) {
        cfoil_complain("--upstream-timeout: %s", why);
        return false;
    }
    if (workers != NULL && strcmp(workers, "auto") != 0 &&
        !cfoil_number_read("--workers", workers, 1, CFOIL_WORKERS_MAX, &serve->workers)) {
        return false;
    }
    serve->dry_run = cfoil_flag(arguments, "--dry-run");
    return true;
}

/* A path goes into nginx.conf between quotes, where these characters would mean something. */
static bool path_valid(const char *option, const char *path)
{
    for (const char *at = path; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7F || strchr("\"\\$", *at) != NULL) {
            cfoil_complain("%s: a path with quotes, backslashes, $ or control characters cannot be "
                           "used; choose another one",
                           option);
            return false;
        }
    }
    return true;
}

static bool read_places(const struct cfoil_arguments *arguments, struct cfoil_serve *serve)
{
    const char *state = cfoil_option(arguments, "--state");
    const char *store = cfoil_option(arguments, "--store");
    const char *policy = cfoil_option(arguments, "--policy");
    char *wanted = state != NULL ? strdup(state) : cfoil_path_default_state();
    if (wanted == NULL || wanted[0] == '\0') {
        free(wanted);
        cfoil_complain("no state directory: give --state DIR");
        return false;
    }
    serve->state = cfoil_path_absolute(wanted);
    free(wanted);
    if (store != NULL && !cfoil_store_url_valid(store)) {
        return false;
    }

    char *own = NULL;
    if (store == NULL && serve->state != NULL &&
        asprintf(&own, "lmdb:%s/store", serve->state) < 0) {
        own = NULL;
    }
    serve->store = store != NULL ? cfoil_store_url_absolute(store) : own;
    serve->policy_built_in = policy == NULL;
    if (policy != NULL) {
        serve->policy = cfoil_path_absolute(policy);
    } else if (serve->state != NULL) {
        serve->policy = cfoil_path_join(serve->state, "default-policy.yaml");
    }
    if (serve->state == NULL || serve->store == NULL || serve->policy == NULL) {
        cfoil_complain("out of memory");
        return false;
    }
    return path_valid("--state", serve->state) && path_valid("--store", serve->store) &&
           path_valid("--policy", serve->policy);
}

static bool check_store(struct cfoil_serve *serve)
{
    if (strcmp(serve->store, "lmdb:") == 0 || strcmp(serve->store, "lmdb:/") == 0) {
        cfoil_complain("--store %s names no directory; write lmdb:DIR", serve->store);
        return false;
    }
    if (strncmp(serve->store, "memory:", 7) != 0) {
        return true;
    }
    if (serve->workers > 1) {
        cfoil_complain("--store memory: works with one worker only; use --workers 1 or lmdb:DIR");
        return false;
    }
    serve->workers = 1;
    return true;
}

static enum cfoil_exit check_policy(const struct cfoil_arguments *arguments,
                                    struct cfoil_serve *serve)
{
    struct cfoil_policy *policy = NULL;
    struct cfoil_policy_problems *problems = calloc(1, sizeof(*problems));
    if (problems == NULL) {
        cfoil_complain("out of memory");
        return CFOIL_EXIT_SYSTEM;
    }
    enum cfoil_exit status =
        cfoil_policy_open(cfoil_option(arguments, "--policy"), stderr, problems, &policy);
    if (status == CFOIL_EXIT_OK) {
        char text[512];
        size_t from = 0;
        serve->route_count = cfoil_policy_route_count(policy);
        cfoil_policy_tenants(policy, serve->tenants, sizeof(serve->tenants));
        while (cfoil_policy_advice(policy, &from, text, sizeof(text))) {
            cfoil_complain("warning: %s", text);
        }
    }
    cfoil_policy_free(policy);
    free(problems);
    return status;
}

/* The first of the places where the module can be read; else serve->module stays the first. */
static void choose_module(struct cfoil_serve *serve, const char *program)
{
    static const struct {
        bool beside; /* of the program's own directory */
        const char *path;
    } places[] = {
        {true, MODULE_NAME},                           /* the build directory */
        {true, "../lib/counterfoil/" MODULE_NAME},     /* make install */
        {false, "/usr/lib/nginx/modules/" MODULE_NAME} /* Debian's nginx */
    };

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !serve->module_found; i++) {
        char *module =
            places[i].beside ? cfoil_path_join(program, places[i].path) : strdup(places[i].path);
        if (module != NULL && access(module, R_OK) == 0) {
            serve->module_found = true;
            free(serve->module);
            serve->module = module;
        } else if (serve->module == NULL) {
            serve->module = module;
        } else {
            free(module);
        }
    }
}

static bool find_module(struct cfoil_serve *serve)
{
    char program[4096];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (len <= 0) {
        cfoil_complain("/proc/self/exe cannot be read: %s", strerror(errno));
        return false;
    }
    program[len] = '\0';
    *strrchr(program, '/') = '\0';
    choose_module(serve, program);
    return serve->module != NULL;
}

/* nginx in PATH, else in /usr/sbin, which an ordinary user's PATH does not have. */
static void find_nginx(struct cfoil_serve *serve)
{
    const char *path = getenv("PATH");
    char *copy = strdup(path != NULL ? path : "");
    char *rest = NULL;
    for (char *directory = copy != NULL ? strtok_r(copy, ":", &rest) : NULL; directory != NULL;
         directory = strtok_r(NULL, ":", &rest)) {
        char *nginx = cfoil_path_join(directory, "nginx");
        if (nginx != NULL && directory[0] == '/' && access(nginx, X_OK) == 0) {
            serve->nginx = nginx;
            break;
        }
        free(nginx);
    }
    free(copy);
    if (serve->nginx == NULL && access("/usr/sbin/nginx", X_OK) == 0) {
        serve->nginx = strdup("/usr/sbin/nginx");
    }
}

/* As root, workers run as the owner of the state directory, and so own what they write. */
static bool find_user(struct cfoil_serve *serve)
{
    struct stat info;
    bool there = stat(serve->state, &info) == 0;
    if (there && !S_ISDIR(info.st_mode)) {
        cfoil_complain("--state %s is not a directory", serve->state);
        return false;
    }
    serve->owner_uid = there ? info.st_uid : geteuid();
    serve->owner_gid = there ? info.st_gid : getegid();
    if (geteuid() != 0) {
        return true;
    }
    const struct passwd *user = getpwuid(serve->owner_uid);
    const struct group *group = getgrgid(serve->owner_gid);
    if (user == NULL || group == NULL) {
        cfoil_complain("the owner of %s (%u:%u) has no name on this machine; give the directory to "
                       "a user that has, or choose another one with --state",
                       serve->state, serve->owner_uid, serve->owner_gid);
        return false;
    }
    (void)snprintf(serve->user, sizeof(serve->user), "%s", user->pw_name);
    (void)snprintf(serve->group, sizeof(serve->group), "%s", group->gr_name);
    return true;
}

static void find_connections(struct cfoil_serve *serve)
{
    struct rlimit limit;
    serve->connections = CFOIL_CONNECTIONS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < CFOIL_CONNECTIONS_MAX) {
        serve->connections = (long)limit.rlim_max;
    }
}

enum cfoil_exit cfoil_serve_settings(const struct cfoil_arguments *arguments,
                                     struct cfoil_serve *serve)
{
    memset(serve, 0, sizeof(*serve));
    if (!read_addresses(arguments, serve) || !read_numbers(arguments, serve) ||
        !read_places(arguments, serve) || !check_store(serve)) {
        return CFOIL_EXIT_USAGE;
    }
    enum cfoil_exit status = check_policy(arguments, serve);
    if (status != CFOIL_EXIT_OK) {
        return status;
    }
    find_nginx(serve);
    find_connections(serve);
    return find_module(serve) && find_user(serve) ? CFOIL_EXIT_OK : CFOIL_EXIT_SYSTEM;
}

void cfoil_serve_free(struct cfoil_serve *serve)
{
    free(serve->state);
    free(serve->policy);
    free(serve->store);
    free(serve->module);
    free(serve->nginx);
    memset(serve, 0, sizeof(*serve));
}
