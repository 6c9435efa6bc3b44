/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil list: the records of a store, one a line. */
#include <string.h>

#include "cli/records.h"
#include "cli/render.h"

#define TABLE_LIMIT_DEFAULT 100
#define LIMIT_MAX           1000000000L

struct listing {
    bool json;
    bool colour;
    bool failed;
    bool cut;
    long limit; /* 0: none */
    long shown;
};

static bool show(void *context, const uint8_t *id, const struct cfoil_record *record,
                 enum cfoil_error error, int64_t now_ms)
{
    struct listing *listing = context;
    if (listing->limit > 0 && listing->shown == listing->limit) {
        listing->cut = true;
        return false;
    }
    listing->shown++;
    if (listing->json) {
        listing->failed = !cfoil_json_print(record != NULL ? cfoil_record_json(id, record, now_ms)
                                                           : cfoil_corrupt_json(id, error),
                                            true);
        return !listing->failed && ferror(stdout) == 0;
    }
    if (listing->shown == 1) {
        cfoil_row_head_print();
    }
    if (record != NULL) {
        cfoil_row_print(id, record, now_ms, listing->colour);
    } else {
        cfoil_row_corrupt_print(id, error, listing->colour);
    }
    return ferror(stdout) == 0;
}

static bool state_valid(const char *state)
{
    if (state == NULL || strcmp(state, "CORRUPT") == 0 ||
        cfoil_state_by_name(cfoil_bytes_text(state)) < CFOIL_STATE_COUNT) {
        return true;
    }
    cfoil_complain("--state %s is not a state; the states are ISSUED, PROCESSING, SUCCEEDED, "
                   "FAILED_FINAL, FAILED, IN_DOUBT, TOMBSTONE and CORRUPT",
                   state);
    return false;
}

static void say_what_was_shown(const struct listing *listing)
{
    if (listing->json) {
        return;
    }
    if (listing->shown == 0) {
        (void)puts("no records");
        return;
    }
    if (listing->cut) {
        (void)printf("the first %ld; --limit shows more\n", listing->shown);
    }
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    struct listing listing = {.json = cfoil_flag(arguments, "--json")};
    listing.colour = cfoil_colour_wanted(stdout);
    listing.limit = listing.json ? 0 : TABLE_LIMIT_DEFAULT;
    struct cfoil_filter filter = {
        .tenant = cfoil_option(arguments, "--tenant"),
        .endpoint = cfoil_option(arguments, "--endpoint"),
        .key = cfoil_option(arguments, "--key"),
        .layer = cfoil_option(arguments, "--layer"),
        .state = cfoil_option(arguments, "--state"),
    };
    const char *limit = cfoil_option(arguments, "--limit");
    if (!state_valid(filter.state) || !cfoil_tenant_option_valid(filter.tenant) ||
        (limit != NULL && !cfoil_number_read("--limit", limit, 1, LIMIT_MAX, &listing.limit))) {
        return CFOIL_EXIT_USAGE;
    }

    struct cfoil_records records;
    enum cfoil_exit status = cfoil_records_open(arguments, true, &records);
    if (status != CFOIL_EXIT_OK) {
        return status;
    }
    status = cfoil_records_scan(&records, &filter, show, &listing);
    cfoil_records_close(&records);
    if (listing.failed) {
        cfoil_complain("out of memory");
        return CFOIL_EXIT_SYSTEM;
    }
    if (status == CFOIL_EXIT_OK) {
        say_what_was_shown(&listing);
    }
    return status;
}

static const struct cfoil_option options[] = {
    CFOIL_OPTION_STORE,
    {"--state", "S",
     "only records in this state, as in IN_DOUBT; CORRUPT for those that\n"
     "cannot be read",
     false},
    {"--tenant", "T", "only this tenant's; auth:HEX; - for the anonymous one's", false},
    {"--endpoint", "E", "only this endpoint's, as in 'POST /orders/{}/pay'", false},
    {"--key", "K", "only of this key", false},
    {"--layer", "L", "only of this layer, as in http", false},
    {"--limit", "N", "at most so many (default: 100 in a table, all with --json)", false},
    {"--json", NULL, "one JSON object a line", false},
    {0},
};

const struct cfoil_command cfoil_command_list = {
    .name = "list",
    .summary = "list records",
    .usage = "[--store URL] [--state S] [--tenant T] [--endpoint E] [--key K] [--limit N] [--json]",
    .text =
        "Lists records in the order of their ids, in the state a reader sees now. A record that\n"
        "cannot be read is CORRUPT; requests with its key are refused until forget ends it.\n\n"
        "Exit status: 0, also where nothing is found; 2 wrong arguments; 3 the store does not\n"
        "serve.\n",
    .example = "  counterfoil list --store lmdb:/var/lib/counterfoil/store --state IN_DOUBT\n",
    .options = options,
    .run = run,
};
