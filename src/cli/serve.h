/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counterfoil serve in parts: settings (what was asked for, checked), configuration (the text nginx
 * reads) and start (the state directory, and nginx in our place).
 *
 *   arguments -> settings -> nginx.conf -> exec nginx
 *
 * Invariant: everything that can be wrong is found before a file is written or a port taken.
 */
#ifndef CFOIL_CLI_SERVE_H
#define CFOIL_CLI_SERVE_H

#include <stdint.h>
#include <stdio.h>

#include "cli/options.h"

#define CFOIL_ADDRESS_BYTES   280
#define CFOIL_USER_BYTES      64
#define CFOIL_WORKERS_MAX     512
#define CFOIL_CONNECTIONS_MAX 4096  /* of one worker; a request takes two */
#define CFOIL_DESCRIPTORS_MAX 16384 /* asked of the system for one process */
#define CFOIL_UPSTREAM_IDLE   64    /* idle connections to the backend, for one second each */

struct cfoil_serve {
    char upstream[CFOIL_ADDRESS_BYTES]; /* "host:port", as nginx writes it */
    char listen[CFOIL_ADDRESS_BYTES];
    char admin[CFOIL_ADDRESS_BYTES];
    int64_t upstream_timeout_ms;
    long workers; /* 0: as many as there are processors */
    char *state;  /* absolute, like every path here */
    char *policy;
    bool policy_built_in; /* policy is then a file we write */
    char *store;          /* a URL */
    char *module;
    bool module_found;
    char *nginx;                 /* NULL: not found */
    char user[CFOIL_USER_BYTES]; /* workers run as; "" where we are not root */
    char group[CFOIL_USER_BYTES];
    uint32_t owner_uid;
    uint32_t owner_gid;
    long connections;
    char tenants[320];
    size_t route_count;
    bool dry_run;
};

/* Reads and checks everything. Not OK: complained. Free it in any case. */
enum cfoil_exit cfoil_serve_settings(const struct cfoil_arguments *arguments,
                                     struct cfoil_serve *serve);
void cfoil_serve_free(struct cfoil_serve *serve);

/* An address to listen on, "127.0.0.1:8080" or "[::1]:8080". False: complained, as `option`'s. */
bool cfoil_address_read(const char *option, const char *text, char out[CFOIL_ADDRESS_BYTES]);

/* "http://host[:port][/]" into "host:port". False: complained. */
bool cfoil_upstream_read(const char *text, char out[CFOIL_ADDRESS_BYTES]);

/* Whether the name resolves, and whether the address is free. False: complained. */
bool cfoil_upstream_resolves(const char *upstream);
bool cfoil_address_free(const char *option, const char *address);

/* Prints the whole of nginx.conf. */
void cfoil_serve_config(const struct cfoil_serve *serve, FILE *out);

/* Makes the state directory and the files in it. Not OK: complained. */
enum cfoil_exit cfoil_serve_prepare(const struct cfoil_serve *serve);

/* Says what is being served. */
void cfoil_serve_announce(const struct cfoil_serve *serve, FILE *out);

/* Says so where the store is not there yet: nginx makes it, and it knows no key. */
void cfoil_serve_announce_new(const struct cfoil_serve *serve, FILE *out);

/* Becomes nginx; returns only where that fails, having complained. */
enum cfoil_exit cfoil_serve_start(const struct cfoil_serve *serve);

#endif
