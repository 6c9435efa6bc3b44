/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands on records share: opening a store that a gateway may be using, finding the
 * record an operator names, and doing one act on it through the engine.
 *
 * A record is named by its id (64 hex digits), or by --tenant, --endpoint, --key and --layer: all of
 * them name one id, fewer of them (but always the key) are looked for in the whole store.
 */
#ifndef CFOIL_CLI_RECORDS_H
#define CFOIL_CLI_RECORDS_H

#include "cli/options.h"
#include "engine/engine.h"

/* The options that name a record, for the tables of commands. */
#define CFOIL_OPTION_STORE                                                                         \
    {                                                                                              \
        "--store", "URL",                                                                          \
            "the store, as in lmdb:DIR (default: the store in the state\n"                         \
            "directory that serve uses by default)",                                               \
            false                                                                                  \
    }
#define CFOIL_OPTIONS_SCOPE                                                                        \
    {"--tenant", "T", "a named tenant; auth:HEX, as listings show it; - for none", false},         \
        {"--endpoint", "E", "the endpoint, as in 'POST /orders/{}/pay'", false},                   \
        {"--key", "K", "the key; alone it is looked for everywhere", false},                       \
    {                                                                                              \
        "--layer", "L", "the layer (default: http)", false                                         \
    }
#define CFOIL_OPTION_JSON                                                                          \
    {                                                                                              \
        "--json", NULL, "for machines", false                                                      \
    }

struct cfoil_records {
    struct cfoil_lane *lane;
    struct cfoil_store *store;
    const struct cfoil_store_ops *ops;
    char *url;
};

/* Opens the store named by --store. read_only: nothing will be written. Not OK: complained. */
enum cfoil_exit cfoil_records_open(const struct cfoil_arguments *arguments, bool read_only,
                                   struct cfoil_records *records);
void cfoil_records_close(struct cfoil_records *records);

/*
 * Whether --tenant (NULL: not given) can name a tenant; an authorization tenant is named by all of
 * its digits, of which a table shows the first. False: complained.
 */
bool cfoil_tenant_option_valid(const char *tenant);

/* What a listing is restricted to; members NULL or COUNT are not. */
struct cfoil_filter {
    const char *tenant;
    const char *endpoint;
    const char *key;
    const char *layer;
    const char *state; /* a state's name in upper case, or "CORRUPT" */
};

/*
 * Calls visit for every record that passes the filter, in id order, until it returns false. `record`
 * is NULL for one that cannot be read (error says why); those pass only a filter on the state
 * CORRUPT, or an empty one. Not OK: complained.
 */
typedef bool (*cfoil_records_visit)(void *context, const uint8_t *id,
                                    const struct cfoil_record *record, enum cfoil_error error,
                                    int64_t now_ms);
enum cfoil_exit cfoil_records_scan(struct cfoil_records *records, const struct cfoil_filter *filter,
                                   cfoil_records_visit visit, void *context);

/*
 * The id of the one record the arguments name. Not OK: complained, which lists the candidates if
 * there are several. A named id need not exist.
 */
enum cfoil_exit cfoil_records_find(struct cfoil_records *records,
                                   const struct cfoil_arguments *arguments,
                                   uint8_t id[CFOIL_ID_BYTES]);

/*
 * Reads one record. `op` is the caller's, zeroed before, freed with cfoil_op_free_current; views of
 * the record point into it. A CORRUPT error is returned as such (*error) with CFOIL_EXIT_OK; absent
 * or a store that fails: complained.
 */
enum cfoil_exit cfoil_records_get(struct cfoil_records *records, const uint8_t id[CFOIL_ID_BYTES],
                                  struct cfoil_op *op, struct cfoil_record *record,
                                  enum cfoil_error *error);

/* Does one act and says what became of it. `event` as for cfoil_operate. Not OK: complained. */
enum cfoil_exit cfoil_records_act(struct cfoil_records *records, const uint8_t id[CFOIL_ID_BYTES],
                                  const struct cfoil_event *event, const char *done, bool json);

#endif
