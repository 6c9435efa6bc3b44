/* SPDX-License-Identifier: Apache-2.0 */
/* Records as tables and pages for people. See render.h; render_json.c is for machines. */
#include "cli/render.h"

#include <inttypes.h>
#include <time.h>

#include "fingerprint/digest.h"

#define STATE_COLUMNS    13
#define TENANT_COLUMNS   20
#define ENDPOINT_COLUMNS 30
#define KEY_COLUMNS      36
#define TIME_COLUMNS     24
#define LABEL_COLUMNS    16

const char *cfoil_time_text(int64_t ms, char out[CFOIL_TIME_TEXT_BYTES])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    char whole[24];
    if (ms <= 0 || gmtime_r(&seconds, &parts) == NULL ||
        strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &parts) == 0) {
        (void)snprintf(out, CFOIL_TIME_TEXT_BYTES, "-");
        return out;
    }
    (void)snprintf(out, CFOIL_TIME_TEXT_BYTES, "%s.%03dZ", whole, (int)(ms % 1000));
    return out;
}

struct cfoil_bytes cfoil_tenant_text(const struct cfoil_scope *scope,
                                     char out[CFOIL_TENANT_TEXT_BYTES])
{
    if (scope->tenant_class == CFOIL_TENANT_NONE) {
        return cfoil_bytes_text("-");
    }
    if (scope->tenant_class == CFOIL_TENANT_NAMED || scope->tenant.len > CFOIL_TENANT_BYTES_MAX) {
        return scope->tenant;
    }
    int len = snprintf(out, CFOIL_TENANT_TEXT_BYTES, "auth:%.*s", (int)scope->tenant.len,
                       (const char *)scope->tenant.data);
    return cfoil_bytes_of(out, (size_t)len);
}

static void print_id(const uint8_t *id)
{
    char hex[2 * CFOIL_SCOPE_ID_BYTES + 1];
    cfoil_hex(id, CFOIL_SCOPE_ID_BYTES, hex);
    (void)puts(hex);
}

void cfoil_row_head_print(void)
{
    (void)printf("%-*s%-*s %-*s %-*s %-*s %s\n", STATE_COLUMNS, "STATE", TENANT_COLUMNS, "TENANT",
                 ENDPOINT_COLUMNS, "ENDPOINT", KEY_COLUMNS, "KEY", TIME_COLUMNS, "FIRST CLAIM",
                 "ID");
}

void cfoil_row_print(const uint8_t *id, const struct cfoil_record *record, int64_t now_ms,
                     bool colour)
{
    char tenant[CFOIL_TENANT_TEXT_BYTES];
    char time[CFOIL_TIME_TEXT_BYTES];
    cfoil_state_print(stdout, cfoil_state_name(cfoil_record_effective(record, now_ms)), colour,
                      STATE_COLUMNS);
    cfoil_text_print_cell(stdout, cfoil_tenant_text(&record->scope, tenant), TENANT_COLUMNS);
    (void)putchar(' ');
    cfoil_text_print_cell(stdout, record->scope.endpoint, ENDPOINT_COLUMNS);
    (void)putchar(' ');
    cfoil_text_print_cell(stdout, record->scope.key, KEY_COLUMNS);
    (void)printf(" %-*s ", TIME_COLUMNS, cfoil_time_text(record->at_ms[CFOIL_TIME_LIFE], time));
    print_id(id);
}

void cfoil_row_corrupt_print(const uint8_t *id, enum cfoil_error error, bool colour)
{
    cfoil_state_print(stdout, "CORRUPT", colour, STATE_COLUMNS);
    cfoil_text_print_cell(stdout, cfoil_bytes_text(cfoil_error_text(error)),
                          TENANT_COLUMNS + ENDPOINT_COLUMNS + KEY_COLUMNS + TIME_COLUMNS + 3);
    (void)putchar(' ');
    print_id(id);
}

static void print_label(const char *label)
{
    (void)printf("%-*s", LABEL_COLUMNS, label);
}

static void print_field(const char *label, struct cfoil_bytes text)
{
    if (text.len == 0) {
        return;
    }
    print_label(label);
    (void)cfoil_text_print(stdout, text);
    (void)putchar('\n');
}

static void print_time(const char *label, int64_t ms)
{
    char time[CFOIL_TIME_TEXT_BYTES];
    print_field(label, cfoil_bytes_text(ms > 0 ? cfoil_time_text(ms, time) : ""));
}

static void print_snapshot(const struct cfoil_snapshot *snapshot)
{
    if (snapshot->status == 0) {
        return;
    }
    print_label("snapshot");
    (void)printf("status %u, body of %zu bytes\n", snapshot->status, snapshot->body.len);
    size_t cursor = 0;
    struct cfoil_bytes name;
    struct cfoil_bytes value;
    while (cfoil_headers_next(snapshot->headers, &cursor, &name, &value)) {
        print_label("");
        (void)cfoil_text_print(stdout, name);
        (void)fputs(": ", stdout);
        (void)cfoil_text_print(stdout, value);
        (void)putchar('\n');
    }
}

/* What an operator can do about it, where something is to be done. */
static void print_advice(enum cfoil_state state)
{
    if (state == CFOIL_STATE_IN_DOUBT) {
        (void)puts("\nIt may have taken effect. Look into the backend's books, then say what you "
                   "found:\n  counterfoil resolve (it happened), counterfoil release (it did not)");
    }
}

/* A claim whose owner vanished has no cause on record; its lease says it. */
static void print_cause(const struct cfoil_record *record)
{
    const char *cause = cfoil_cause_name(record->cause);
    print_field("cause",
                cfoil_bytes_text(cause != NULL ? cause : "no sign of life; its lease is over"));
}

/* Only what is settled replays; the same time ends the keeping of everything else. */
static const char *replay_label(enum cfoil_state stored)
{
    bool replays = stored == CFOIL_STATE_SUCCEEDED || stored == CFOIL_STATE_FAILED_FINAL;
    return replays ? "replays until" : "kept until";
}

void cfoil_record_print(const uint8_t *id, const struct cfoil_record *record, int64_t now_ms,
                        bool colour)
{
    char tenant[CFOIL_TENANT_TEXT_BYTES];
    enum cfoil_state state = cfoil_record_effective(record, now_ms);
    print_label("id");
    print_id(id);
    print_label("state");
    cfoil_state_print(stdout, cfoil_state_name(state), colour, 0);
    (void)putchar('\n');
    print_field("layer", record->scope.layer);
    print_field("tenant", cfoil_tenant_text(&record->scope, tenant));
    print_field("endpoint", record->scope.endpoint);
    print_field("key", record->scope.key);
    print_label("attempt");
    (void)printf("%" PRIu32 ", fence %" PRIu64 "\n", record->attempt, record->fence);
    print_time("first claim", record->at_ms[CFOIL_TIME_LIFE]);
    print_time("changed", record->at_ms[CFOIL_TIME_UPDATED]);
    if (state == CFOIL_STATE_PROCESSING) {
        print_time("lease until", record->at_ms[CFOIL_TIME_LEASE_UNTIL]);
    }
    if (state == CFOIL_STATE_IN_DOUBT) {
        print_cause(record);
    }
    print_time("in doubt since", record->at_ms[CFOIL_TIME_IN_DOUBT_SINCE]);
    print_time(replay_label(record->state), record->at_ms[CFOIL_TIME_REPLAY_UNTIL]);
    print_time("gone at", record->at_ms[CFOIL_TIME_GONE_AT]);
    print_field("reason", record->reason);
    print_snapshot(&record->snapshot);
    if (record->resource.type.len > 0) {
        print_field("resource", record->resource.type);
        print_field("", record->resource.id);
    }
    print_advice(state);
}
