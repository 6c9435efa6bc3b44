/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil resolve: an operator says how a record in doubt, or failed, has ended. */
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/operator.h"
#include "cli/render.h"

/* Everything is checked before the store is opened. */
struct resolution {
    struct cfoil_event event;
    uint8_t *body;
    uint8_t *headers;
};

static bool read_state(const struct cfoil_arguments *arguments, struct cfoil_event *event)
{
    const char *name = cfoil_option(arguments, "--state");
    enum cfoil_state state = CFOIL_STATE_COUNT;
    if (name != NULL) {
        state = cfoil_state_by_name(cfoil_bytes_text(name));
    }
    if (state != CFOIL_STATE_SUCCEEDED && state != CFOIL_STATE_FAILED &&
        state != CFOIL_STATE_FAILED_FINAL) {
        cfoil_complain("--state must be SUCCEEDED, FAILED (it may run again) or FAILED_FINAL (it "
                       "must not)");
        return false;
    }
    const char *reason = cfoil_option(arguments, "--reason");
    if (reason == NULL || reason[0] == '\0') {
        cfoil_complain("--reason TEXT is needed: whoever reads the record later wants to know why");
        return false;
    }
    event->outcome = state;
    event->reason = cfoil_bytes_text(reason);
    return true;
}

/* The headers of the replayed answer, framed; a Content-Type for JSON unless one is given. */
static bool read_headers(const struct cfoil_arguments *arguments, struct resolution *resolution)
{
    const char *given[CFOIL_HEADERS_MAX];
    size_t count = cfoil_option_all(arguments, "--header", given, CFOIL_HEADERS_MAX);
    struct cfoil_bytes names[CFOIL_HEADERS_MAX + 1];
    struct cfoil_bytes values[CFOIL_HEADERS_MAX + 1];
    bool typed = false;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!cfoil_header_split(given[i], &names[i], &values[i])) {
            return false;
        }
        typed = typed || (names[i].len == 12 &&
                          strncasecmp((const char *)names[i].data, "Content-Type", 12) == 0);
    }
    const struct cfoil_snapshot *snapshot = &resolution->event.snapshot;
    if (!typed && cfoil_is_json(snapshot->body)) {
        names[count] = cfoil_bytes_text("Content-Type");
        values[count++] = cfoil_bytes_text("application/json");
    }

    for (size_t i = 0; i < count; i++) {
        bytes += cfoil_headers_put(names[i], values[i], NULL, 0);
    }
    resolution->headers = malloc(bytes + 1);
    if (resolution->headers == NULL) {
        cfoil_complain("out of memory");
        return false;
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        at += cfoil_headers_put(names[i], values[i], resolution->headers + at, bytes - at);
    }
    resolution->event.snapshot.headers = cfoil_bytes_of(resolution->headers, at);
    return true;
}

static bool read_snapshot(const struct cfoil_arguments *arguments, struct resolution *resolution)
{
    const char *status = cfoil_option(arguments, "--status");
    const char *body = cfoil_option(arguments, "--body");
    struct cfoil_snapshot *snapshot = &resolution->event.snapshot;
    const char *header;
    if (status == NULL) {
        if (body != NULL || cfoil_option_all(arguments, "--header", &header, 1) > 0) {
            cfoil_complain("--body and --header belong to an answer; give its --status too");
            return false;
        }
        return true;
    }
    if (resolution->event.outcome == CFOIL_STATE_FAILED) {
        cfoil_complain(
            "--status has no use with FAILED: the next request runs, nothing is replayed");
        return false;
    }

    long number;
    if (!cfoil_number_read("--status", status, 200, 599, &number)) {
        return false;
    }
    snapshot->status = (uint16_t)number;
    if (body != NULL) {
        size_t len;
        resolution->body = cfoil_file_read(body, CFOIL_BODY_FILE_BYTES_MAX, &len);
        if (resolution->body == NULL) {
            return false;
        }
        snapshot->body = cfoil_bytes_of(resolution->body, len);
    }
    return read_headers(arguments, resolution);
}

static bool read_resource(const struct cfoil_arguments *arguments, struct cfoil_event *event)
{
    const char *resource = cfoil_option(arguments, "--resource");
    if (resource == NULL) {
        return true;
    }
    const char *slash = strchr(resource, '/');
    if (slash == NULL || slash == resource || slash[1] == '\0') {
        cfoil_complain("--resource %s: write TYPE/ID, as in order/123", resource);
        return false;
    }
    event->resource.type = cfoil_bytes_of(resource, (size_t)(slash - resource));
    event->resource.id = cfoil_bytes_text(slash + 1);
    return true;
}

static bool read_all(const struct cfoil_arguments *arguments, struct resolution *resolution)
{
    resolution->event.kind = CFOIL_EVENT_RESOLVE;
    return read_state(arguments, &resolution->event) && read_snapshot(arguments, resolution) &&
           read_resource(arguments, &resolution->event);
}

/* The answer for what is settled without a response is worded for successes. */
static void warn_of_answer(const struct cfoil_event *event)
{
    if (event->outcome == CFOIL_STATE_FAILED_FINAL && event->snapshot.status == 0) {
        cfoil_complain("warning: clients will be told %s, \"%s\"; only --status and --body give a "
                       "failure an answer of its own",
                       cfoil_answer_row(CFOIL_ANSWER_RESPONSE_NOT_STORED)->code,
                       cfoil_message_text(CFOIL_MESSAGE_RESPONSE_NOT_STORED, CFOIL_LANGUAGE_EN));
    }
}

static enum cfoil_exit resolve(struct cfoil_records *records,
                               const struct cfoil_arguments *arguments, const uint8_t *id,
                               void *context)
{
    struct resolution *resolution = context;
    enum cfoil_exit status = cfoil_operator_terms(records, id, &resolution->event.terms);
    if (status == CFOIL_EXIT_OK) {
        status = cfoil_records_act(records, id, &resolution->event, "resolved",
                                   cfoil_flag(arguments, "--json"));
    }
    if (status == CFOIL_EXIT_OK) {
        warn_of_answer(&resolution->event);
    }
    return status;
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    struct resolution resolution = {0};
    enum cfoil_exit status = CFOIL_EXIT_USAGE;
    if (read_all(arguments, &resolution)) {
        status = cfoil_operator_run(arguments, resolve, &resolution);
    }
    free(resolution.body);
    free(resolution.headers);
    return status;
}

static const struct cfoil_option options[] = {
    CFOIL_OPTION_STORE,
    CFOIL_OPTIONS_SCOPE,
    {"--state", "S", "SUCCEEDED, FAILED (it may run again) or FAILED_FINAL", false},
    {"--reason", "TEXT", "why, kept in the record", false},
    {"--status", "N",
     "the status clients get from now on; without one they are told that\n"
     "the answer is not stored",
     false},
    {"--body", "FILE", "the body they get with it", false},
    {"--header", "LINE",
     "a header they get with it, as in 'Location: /orders/1'; for a JSON\n"
     "body Content-Type is added",
     true},
    {"--resource", "TYPE/ID", "what came into being, as in order/123", false},
    CFOIL_OPTION_JSON,
    {0},
};

const struct cfoil_command cfoil_command_resolve = {
    .name = "resolve",
    .summary = "say how a record that is IN_DOUBT or FAILED has ended",
    .usage = "[--store URL] ID | --key K --state S --reason TEXT [--status N [--body FILE]]",
    .text =
        "Use it when the backend's books tell what happened. The record is kept as long as its\n"
        "claim was to be, counted from now. FAILED_FINAL needs --status, or clients are told that\n"
        "it was done.\n\n"
        "Exit status: 0; 1 no such record, several, a live lease, or settled already; 2 wrong\n"
        "arguments; 3 the store does not serve.\n",
    .example = "  counterfoil resolve --store lmdb:/var/lib/counterfoil/store --key 7d0c1a52 \\\n"
               "      --state SUCCEEDED --reason 'payment p-17 is in the books' \\\n"
               "      --status 201 --body p-17.json\n",
    .words_max = 1,
    .options = options,
    .run = run,
};
