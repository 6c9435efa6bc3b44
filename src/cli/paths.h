/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things are by default, and store URLs as people give them. Every string returned is malloc'd
 * and the caller's; NULL means that there is no memory, or nothing to go by.
 */
#ifndef CFOIL_CLI_PATHS_H
#define CFOIL_CLI_PATHS_H

#include <stdbool.h>

/* /var/lib/counterfoil as root, else ${XDG_STATE_HOME:-~/.local/state}/counterfoil. */
char *cfoil_path_default_state(void);

/* "lmdb:STATE/store" in the default state directory. */
char *cfoil_path_default_store(void);

/* The path from the root on; need not exist. */
char *cfoil_path_absolute(const char *path);

/* "DIR/NAME". */
char *cfoil_path_join(const char *directory, const char *name);

/* Whether a store of that scheme is available here. False: complained. */
bool cfoil_store_url_valid(const char *url);

/* A store URL with its directory made absolute; "memory:" stays. */
char *cfoil_store_url_absolute(const char *url);

#endif
