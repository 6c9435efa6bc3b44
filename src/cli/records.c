/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, listing and finding. See records.h. */
#include "cli/records.h"

#include <stdlib.h>

#include "cli/paths.h"
#include "cli/render.h"
#include "fingerprint/digest.h"

#define SCAN_PAGE_RECORDS 1000
#define CANDIDATES_MAX    20
#define TENANT_DIGITS     64 /* of an authorization tenant */

/* A store's problem begins with its directory, which the URL has named already. */
static void complain_open(const char *url, enum cfoil_error error, const char *problem)
{
    if (problem[0] == '\0') {
        cfoil_complain("%s cannot be opened: %s", url, cfoil_error_text(error));
        return;
    }
    const char *directory = strncmp(url, "lmdb:", 5) == 0 ? url + 5 : url;
    size_t len = strcspn(directory, "?");
    if (strncmp(problem, directory, len) == 0 && strncmp(problem + len, ": ", 2) == 0) {
        problem += len + 2;
    }
    cfoil_complain("%s: %s", url, problem);
}

/* What a store must be for a command: one that another process can look into. */
static bool url_valid(const char *url)
{
    if (strncmp(url, "memory:", 7) == 0) {
        cfoil_complain("--store %s: a gateway's memory cannot be looked into; records that can are "
                       "in lmdb:DIR",
                       url);
        return false;
    }
    return cfoil_store_url_valid(url);
}

enum cfoil_exit cfoil_records_open(const struct cfoil_arguments *arguments, bool read_only,
                                   struct cfoil_records *records)
{
    memset(records, 0, sizeof(*records));
    const char *given = cfoil_option(arguments, "--store");
    records->url = given != NULL ? strdup(given) : cfoil_path_default_store();
    if (records->url == NULL) {
        cfoil_complain("no store: give --store lmdb:DIR");
        return CFOIL_EXIT_USAGE;
    }
    if (!url_valid(records->url)) {
        cfoil_records_close(records);
        return CFOIL_EXIT_USAGE;
    }

    char problem[512] = "";
    struct cfoil_lane_options options = {0};
    options.store.url = records->url;
    options.store.mode = read_only ? CFOIL_OPEN_READ_ONLY : CFOIL_OPEN_EXISTING;
    options.threadless = true;
    enum cfoil_error error = cfoil_lane_open(&options, &records->lane, problem, sizeof(problem));
    if (error != CFOIL_OK) {
        complain_open(records->url, error, problem);
        records->lane = NULL;
        cfoil_records_close(records);
        return cfoil_error_class(error) == CFOIL_CLASS_INPUT ? CFOIL_EXIT_USAGE : CFOIL_EXIT_SYSTEM;
    }
    records->store = cfoil_lane_store(records->lane, &records->ops);
    return CFOIL_EXIT_OK;
}

void cfoil_records_close(struct cfoil_records *records)
{
    if (records->lane != NULL) {
        cfoil_lane_close(records->lane);
    }
    free(records->url);
    memset(records, 0, sizeof(*records));
}

struct scan {
    const struct cfoil_filter *filter;
    cfoil_records_visit visit;
    void *context;
    uint8_t last[CFOIL_ID_BYTES];
    uint64_t seen; /* in this page */
    bool stopped;
};

static bool passes_text(const char *wanted, struct cfoil_bytes text)
{
    return wanted == NULL || cfoil_bytes_equal(cfoil_bytes_text(wanted), text);
}

static bool passes(const struct cfoil_filter *filter, const struct cfoil_record *record,
                   int64_t now_ms)
{
    if (record == NULL) {
        bool only_state = filter->tenant == NULL && filter->endpoint == NULL &&
                          filter->key == NULL && filter->layer == NULL;
        return only_state && (filter->state == NULL || strcmp(filter->state, "CORRUPT") == 0);
    }
    char tenant[CFOIL_TENANT_TEXT_BYTES];
    const char *state = cfoil_state_name(cfoil_record_effective(record, now_ms));
    return passes_text(filter->tenant, cfoil_tenant_text(&record->scope, tenant)) &&
           passes_text(filter->endpoint, record->scope.endpoint) &&
           passes_text(filter->key, record->scope.key) &&
           passes_text(filter->layer, record->scope.layer) &&
           (filter->state == NULL || strcmp(filter->state, state) == 0);
}

static bool visit_encoded(void *context, const uint8_t *id, struct cfoil_bytes encoded,
                          int64_t now_ms)
{
    struct scan *scan = context;
    memcpy(scan->last, id, CFOIL_ID_BYTES);
    scan->seen++;

    struct cfoil_record decoded;
    enum cfoil_error error = cfoil_record_decode(encoded, &decoded);
    const struct cfoil_record *record = error == CFOIL_OK ? &decoded : NULL;
    if (passes(scan->filter, record, now_ms)) {
        scan->stopped = !scan->visit(scan->context, id, record, error, now_ms);
    }
    return !scan->stopped;
}

enum cfoil_exit cfoil_records_scan(struct cfoil_records *records, const struct cfoil_filter *filter,
                                   cfoil_records_visit visit, void *context)
{
    struct scan scan = {.filter = filter, .visit = visit, .context = context};
    bool first = true;
    /* Page by page, so that a long listing does not hold up the store's reuse of pages. */
    do {
        scan.seen = 0;
        uint8_t cursor[CFOIL_ID_BYTES];
        memcpy(cursor, scan.last, sizeof(cursor));
        enum cfoil_error error = records->ops->scan(records->store, first ? NULL : cursor,
                                                    SCAN_PAGE_RECORDS, visit_encoded, &scan);
        if (error != CFOIL_OK) {
            cfoil_complain("%s cannot be read: %s", records->url, cfoil_error_text(error));
            return CFOIL_EXIT_SYSTEM;
        }
        first = false;
    } while (scan.seen > 0 && !scan.stopped);
    return CFOIL_EXIT_OK;
}

bool cfoil_tenant_option_valid(const char *tenant)
{
    if (tenant == NULL || strncmp(tenant, "auth:", 5) != 0) {
        return true;
    }
    const char *hex = tenant + 5;
    if (strlen(hex) == TENANT_DIGITS && strspn(hex, "0123456789abcdef") == TENANT_DIGITS) {
        return true;
    }
    cfoil_complain(
        "--tenant %s: auth: is followed by %d hex digits in lower case; give all of them, "
        "--json shows them",
        tenant, TENANT_DIGITS);
    return false;
}

static void scope_of(const struct cfoil_arguments *arguments, struct cfoil_scope *scope)
{
    const char *tenant = cfoil_option(arguments, "--tenant");
    const char *layer = cfoil_option(arguments, "--layer");
    scope->layer = cfoil_bytes_text(layer != NULL ? layer : "http");
    scope->kind = CFOIL_KIND_KEY;
    scope->endpoint = cfoil_bytes_text(cfoil_option(arguments, "--endpoint"));
    scope->key = cfoil_bytes_text(cfoil_option(arguments, "--key"));
    scope->tenant_class = CFOIL_TENANT_NAMED;
    scope->tenant = cfoil_bytes_text(tenant);
    if (strcmp(tenant, "-") == 0) {
        scope->tenant_class = CFOIL_TENANT_NONE;
        scope->tenant = cfoil_bytes_of(NULL, 0);
    }
    if (strncmp(tenant, "auth:", 5) == 0) {
        scope->tenant_class = CFOIL_TENANT_AUTHORIZATION;
        scope->tenant = cfoil_bytes_text(tenant + 5);
    }
}

static enum cfoil_exit find_by_scope(const struct cfoil_arguments *arguments,
                                     uint8_t id[CFOIL_ID_BYTES])
{
    struct cfoil_scope scope;
    struct cfoil_digester *digester = NULL;
    scope_of(arguments, &scope);
    enum cfoil_error error = cfoil_digester_create(&digester);
    if (error == CFOIL_OK) {
        error = cfoil_scope_id(digester, &scope, id);
    }
    cfoil_digester_free(digester);
    if (error != CFOIL_OK) {
        cfoil_complain("these do not name a record: %s; a key has 1 to %d bytes, a layer 1 to %d",
                       cfoil_error_text(error), CFOIL_KEY_BYTES_MAX, CFOIL_LAYER_BYTES_MAX);
        return CFOIL_EXIT_USAGE;
    }
    return CFOIL_EXIT_OK;
}

struct candidates {
    uint8_t ids[CANDIDATES_MAX][CFOIL_ID_BYTES];
    size_t count;
    size_t shown;
};

static bool note_candidate(void *context, const uint8_t *id, const struct cfoil_record *record,
                           enum cfoil_error error, int64_t now_ms)
{
    struct candidates *candidates = context;
    (void)record;
    (void)error;
    (void)now_ms;
    memcpy(candidates->ids[candidates->count++], id, CFOIL_ID_BYTES);
    return candidates->count < CANDIDATES_MAX;
}

static enum cfoil_exit complain_candidates(const struct candidates *candidates, const char *key)
{
    cfoil_complain("%s%zu records have the key `%s`; name one by its id, or add --tenant and "
                   "--endpoint:",
                   candidates->count == CANDIDATES_MAX ? "at least " : "", candidates->count, key);
    for (size_t i = 0; i < candidates->count; i++) {
        char hex[2 * CFOIL_ID_BYTES + 1];
        cfoil_hex(candidates->ids[i], CFOIL_ID_BYTES, hex);
        (void)fprintf(stderr, "  %s\n", hex);
    }
    return CFOIL_EXIT_NO;
}

static enum cfoil_exit find_by_key(struct cfoil_records *records,
                                   const struct cfoil_arguments *arguments,
                                   uint8_t id[CFOIL_ID_BYTES])
{
    struct cfoil_filter filter = {
        .tenant = cfoil_option(arguments, "--tenant"),
        .endpoint = cfoil_option(arguments, "--endpoint"),
        .key = cfoil_option(arguments, "--key"),
        .layer = cfoil_option(arguments, "--layer"),
    };
    struct candidates candidates = {0};
    enum cfoil_exit status = cfoil_records_scan(records, &filter, note_candidate, &candidates);
    if (status != CFOIL_EXIT_OK) {
        return status;
    }
    if (candidates.count == 0) {
        cfoil_complain("no record of the key `%s` is in %s", filter.key, records->url);
        return CFOIL_EXIT_NO;
    }
    if (candidates.count > 1) {
        return complain_candidates(&candidates, filter.key);
    }
    memcpy(id, candidates.ids[0], CFOIL_ID_BYTES);
    return CFOIL_EXIT_OK;
}

enum cfoil_exit cfoil_records_find(struct cfoil_records *records,
                                   const struct cfoil_arguments *arguments,
                                   uint8_t id[CFOIL_ID_BYTES])
{
    const char *key = cfoil_option(arguments, "--key");
    if (arguments->word_count == 1) {
        struct cfoil_bytes hex = cfoil_bytes_text(arguments->words[0]);
        bool scoped = key != NULL || cfoil_option(arguments, "--tenant") != NULL ||
                      cfoil_option(arguments, "--endpoint") != NULL;
        if (scoped || !cfoil_unhex(hex, id, CFOIL_ID_BYTES)) {
            cfoil_complain("`%s`: %s", arguments->words[0],
                           scoped ? "name a record by its id or by --key, not by both"
                                  : "an id is 64 hex digits; a key is given as --key K");
            return CFOIL_EXIT_USAGE;
        }
        return CFOIL_EXIT_OK;
    }
    if (key == NULL) {
        cfoil_complain("which record? Name it by its id, or by --key, or by --tenant, --endpoint "
                       "and --key");
        return CFOIL_EXIT_USAGE;
    }
    if (!cfoil_tenant_option_valid(cfoil_option(arguments, "--tenant"))) {
        return CFOIL_EXIT_USAGE;
    }
    if (cfoil_option(arguments, "--tenant") != NULL &&
        cfoil_option(arguments, "--endpoint") != NULL) {
        return find_by_scope(arguments, id);
    }
    return find_by_key(records, arguments, id);
}
