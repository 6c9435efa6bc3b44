/* SPDX-License-Identifier: Apache-2.0 */
/* See paths.h. */
#include "cli/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "store/store.h"

char *cfoil_path_join(const char *directory, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

char *cfoil_path_default_state(void)
{
    if (geteuid() == 0) {
        return strdup("/var/lib/counterfoil");
    }
    const char *base = getenv("XDG_STATE_HOME");
    if (base != NULL && base[0] == '/') {
        return cfoil_path_join(base, "counterfoil");
    }
    const char *home = getenv("HOME");
    return home != NULL && home[0] == '/' ? cfoil_path_join(home, ".local/state/counterfoil")
                                          : NULL;
}

char *cfoil_path_default_store(void)
{
    char *url = NULL;
    char *state = cfoil_path_default_state();
    if (state != NULL && asprintf(&url, "lmdb:%s/store", state) < 0) {
        url = NULL;
    }
    free(state);
    return url;
}

char *cfoil_path_absolute(const char *path)
{
    if (path[0] == '/') {
        return strdup(path);
    }
    char *here = getcwd(NULL, 0);
    char *absolute = here != NULL ? cfoil_path_join(here, path) : NULL;
    free(here);
    return absolute;
}

bool cfoil_store_url_valid(const char *url)
{
    static const char *const later[] = {"journal:",    "redis://",   "redis-cluster://",
                                        "postgres://", "mariadb://", "mysql://"};
    if (cfoil_store_for_url(url) != NULL) {
        return true;
    }
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        if (strncmp(url, later[i], strlen(later[i])) == 0) {
            cfoil_complain("--store %s: this store is not available in this version; use lmdb:DIR",
                           url);
            return false;
        }
    }
    cfoil_complain(
        "--store %s is not a store; write lmdb:DIR, as in lmdb:/var/lib/counterfoil/store", url);
    return false;
}

char *cfoil_store_url_absolute(const char *url)
{
    if (strncmp(url, "lmdb:", 5) != 0) {
        return strdup(url);
    }
    char *absolute = NULL;
    char *directory = cfoil_path_absolute(url + 5);
    if (directory != NULL && asprintf(&absolute, "lmdb:%s", directory) < 0) {
        absolute = NULL;
    }
    free(directory);
    return absolute;
}
