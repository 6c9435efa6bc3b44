/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drafts the oracle expects. Durations are typed by hand from the policies of table_case.c, so
 * that a wrong sum in the code under test is not repeated here.
 */
#include "oracle.h"

struct oracle_durations {
    int64_t lease;
    int64_t unsettled_replay; /* the longer of ttl and lease */
    int64_t unsettled_gone;
    int64_t settled_replay;
    int64_t settled_gone;
    int64_t failed;
    int64_t issued;
    int64_t probe_lease;
};

static const struct oracle_durations durations[CASE_TERMS_COUNT] = {
    [TERMS_USUAL] = {30000, 86400000, 90000000, 86400000, 90000000, 600000, 86400000, 10000},
    [TERMS_TIGHT] = {30000, 30000, 30000, 20000, 20000, 500, 20000, 10000},
};

/* The design's words: what has not ended stays; here for as long as any retention may be. */
#define STAYS_MS INT64_C(315360000000) /* 3650 days */

struct oracle_window {
    int64_t length_ms;
    enum cfoil_anchor anchor;
    int64_t end_of_resumed_ms; /* of a life that began at TABLE_NOW - 7000000 */
};

/* 1699993000000 is a multiple of 20000: its window by the clock ends 20000 later, not at once. */
static const struct oracle_window windows[CASE_TERMS_COUNT] = {
    [TERMS_USUAL] = {600000, CFOIL_ANCHOR_FIRST, INT64_C(1699993600000)},
    [TERMS_TIGHT] = {20000, CFOIL_ANCHOR_CLOCK, INT64_C(1699993020000)},
};

/* When the record's own window ends; 1700006400000 is midnight of 15 November 2023. */
static const int64_t window_ends[CASE_WINDOW_COUNT] = {
    [WINDOW_OPEN] = TABLE_NOW + 1,
    [WINDOW_OVER] = TABLE_NOW,
    [WINDOW_CLOCK_OPEN] = INT64_C(1700006400000),
};

static bool asks_for_window(const struct table_case *c)
{
    return c->semantics == CFOIL_SEMANTICS_WINDOW || c->semantics == CFOIL_SEMANTICS_WINDOW_KEY;
}

static void set_time(struct oracle_expected *out, enum cfoil_time time, enum cfoil_time_form form,
                     int64_t value_ms)
{
    out->next.form[time] = form;
    out->next.record.at_ms[time] = value_ms;
}

static void after(struct oracle_expected *out, enum cfoil_time time, int64_t duration_ms)
{
    set_time(out, time, CFOIL_TIME_AFTER, duration_ms);
}

static void unset(struct oracle_expected *out, enum cfoil_time time)
{
    set_time(out, time, CFOIL_TIME_AT, 0);
}

/* The record as it stands, one generation on; the last generation is followed by 1. */
static void start_from_record(const struct cfoil_record *record, struct oracle_expected *out)
{
    out->action = CFOIL_ACTION_WRITE;
    out->expect_absent = false;
    memset(&out->next, 0, sizeof(out->next));
    out->next.record = *record;
    out->next.record.generation =
        record->generation == CFOIL_GENERATION_MAX ? 1 : record->generation + 1;
    after(out, CFOIL_TIME_UPDATED, 0);
}

/* A record made by the event alone, in a life that starts now. */
static void start_from_origin(const struct cfoil_event *event, struct oracle_expected *out)
{
    struct cfoil_record *next = &out->next.record;

    out->action = CFOIL_ACTION_WRITE;
    out->expect_absent = true;
    memset(&out->next, 0, sizeof(out->next));
    next->attempt = 1;
    next->fence = 1;
    next->form = CFOIL_FORM_RECORD;
    next->fingerprint = event->origin.fingerprint;
    next->scope = event->origin.scope;
    next->first_request_id = event->origin.first_request_id;
    memcpy(next->owner, event->owner, CFOIL_OWNER_BYTES);
    after(out, CFOIL_TIME_LIFE, 0);
    after(out, CFOIL_TIME_UPDATED, 0);
}

static void clear_mark(struct oracle_expected *out)
{
    memset(out->next.record.prober, 0, CFOIL_OWNER_BYTES);
    unset(out, CFOIL_TIME_PROBE_UNTIL);
}

static void clear_result(struct oracle_expected *out)
{
    struct cfoil_record *next = &out->next.record;

    memset(&next->snapshot, 0, sizeof(next->snapshot));
    memset(&next->resource, 0, sizeof(next->resource));
    memset(&next->reason, 0, sizeof(next->reason));
}

static void stays(struct oracle_expected *out)
{
    after(out, CFOIL_TIME_REPLAY_UNTIL, STAYS_MS);
    after(out, CFOIL_TIME_GONE_AT, STAYS_MS);
}

static void open_window(const struct table_case *c, struct oracle_expected *out)
{
    out->next.record.window_ms = windows[c->terms].length_ms;
    out->next.record.window_anchor = windows[c->terms].anchor;
}

/* The window of the next claim: the reader's policy opens one, unless an open one goes on. */
static void take_window(const struct table_case *c, struct oracle_expected *out)
{
    if (!asks_for_window(c)) {
        out->next.record.window_ms = 0;
        out->next.record.window_anchor = CFOIL_ANCHOR_FIRST;
        return;
    }
    if (c->window == WINDOW_OPEN || c->window == WINDOW_CLOCK_OPEN)
        return;
    open_window(c, out);
    after(out, CFOIL_TIME_LIFE, 0);
}

static void leased_times(const struct table_case *c, struct oracle_expected *out)
{
    const struct oracle_durations *d = &durations[c->terms];

    after(out, CFOIL_TIME_SIGN_OF_LIFE, 0);
    after(out, CFOIL_TIME_LEASE_UNTIL, d->lease);
    after(out, CFOIL_TIME_REPLAY_UNTIL, d->unsettled_replay);
    after(out, CFOIL_TIME_GONE_AT, d->unsettled_gone);
    if (out->next.record.window_ms > 0)
        stays(out);
    unset(out, CFOIL_TIME_IN_DOUBT_SINCE);
}

void oracle_write_first_claim(const struct table_case *c, const struct cfoil_record *record,
                              const struct cfoil_event *event, struct oracle_expected *out)
{
    start_from_origin(event, out);
    out->next.record.state = CFOIL_STATE_PROCESSING;
    if (asks_for_window(c))
        open_window(c, out);
    leased_times(c, out);
    if (record == NULL)
        return;
    /* A token: nothing of its issue is kept but that its generation is expected and follows on. */
    out->expect_absent = false;
    out->next.record.generation =
        record->generation == CFOIL_GENERATION_MAX ? 1 : record->generation + 1;
}

void oracle_write_take(const struct table_case *c, const struct cfoil_record *record,
                       const struct cfoil_event *event, struct oracle_expected *out)
{
    struct cfoil_record *next = &out->next.record;

    start_from_record(record, out);
    next->attempt = 7; /* 6 + 1 */
    next->fence = 42;  /* 41 + 1 */
    next->state = CFOIL_STATE_PROCESSING;
    next->cause = CFOIL_CAUSE_NONE;
    next->fingerprint = event->origin.fingerprint;
    memcpy(next->owner, event->owner, CFOIL_OWNER_BYTES);
    clear_mark(out);
    clear_result(out);
    take_window(c, out);
    leased_times(c, out);
}

void oracle_write_renewal(const struct table_case *c, const struct cfoil_record *record,
                          struct oracle_expected *out)
{
    start_from_record(record, out);
    clear_mark(out);
    leased_times(c, out);
}

void oracle_write_mark(const struct table_case *c, const struct cfoil_record *record,
                       const struct cfoil_event *event, struct oracle_expected *out)
{
    start_from_record(record, out);
    memcpy(out->next.record.prober, event->owner, CFOIL_OWNER_BYTES);
    after(out, CFOIL_TIME_PROBE_UNTIL, durations[c->terms].probe_lease);
    /* Its doubt began when its lease ended, not when somebody noticed. */
    if (c->stored == CFOIL_STATE_PROCESSING)
        set_time(out, CFOIL_TIME_IN_DOUBT_SINCE, CFOIL_TIME_AT,
                 record->at_ms[CFOIL_TIME_LEASE_UNTIL]);
}

void oracle_write_unmark(const struct cfoil_record *record, struct oracle_expected *out)
{
    start_from_record(record, out);
    clear_mark(out);
}

void oracle_write_bump(const struct cfoil_record *record, struct oracle_expected *out)
{
    start_from_record(record, out);
}

void oracle_write_forget(const struct cfoil_record *record, const struct cfoil_event *event,
                         struct oracle_expected *out)
{
    if (record != NULL)
        start_from_record(record, out);
    else
        start_from_origin(event, out);
    memcpy(out->next.record.owner, event->owner, CFOIL_OWNER_BYTES);
    after(out, CFOIL_TIME_REPLAY_UNTIL, 0);
    after(out, CFOIL_TIME_GONE_AT, 0);
}

void oracle_write_issue(const struct table_case *c, const struct cfoil_event *event,
                        struct oracle_expected *out)
{
    start_from_origin(event, out);
    out->next.record.state = CFOIL_STATE_ISSUED;
    out->next.record.attempt = 0;
    out->next.record.fence = 0;
    unset(out, CFOIL_TIME_LIFE);
    after(out, CFOIL_TIME_REPLAY_UNTIL, durations[c->terms].issued);
    after(out, CFOIL_TIME_GONE_AT, durations[c->terms].issued);
    out->open |= ORACLE_OPEN_SIGN_OF_LIFE;
}

/* The window is the retention; it ends with its record unless the outcome is in doubt. */
static void end_with_window(const struct table_case *c, enum cfoil_state outcome,
                            struct oracle_expected *out)
{
    static const enum cfoil_time ends[] = {CFOIL_TIME_REPLAY_UNTIL, CFOIL_TIME_GONE_AT};
    unsigned i;

    if (out->next.record.window_ms == 0)
        return;
    if (outcome == CFOIL_STATE_IN_DOUBT) {
        stays(out);
        return;
    }
    for (i = 0; i < 2; i++) {
        if (!out->expect_absent)
            set_time(out, ends[i], CFOIL_TIME_AT, window_ends[c->window]);
        else if (c->resumed)
            set_time(out, ends[i], CFOIL_TIME_AT, windows[c->terms].end_of_resumed_ms);
        else
            set_time(out, ends[i],
                     c->terms == TERMS_TIGHT ? CFOIL_TIME_NEXT_MULTIPLE : CFOIL_TIME_AFTER,
                     windows[c->terms].length_ms);
    }
}

static void settled_times(const struct table_case *c, enum cfoil_state outcome,
                          struct oracle_expected *out)
{
    const struct oracle_durations *d = &durations[c->terms];
    bool failed = outcome == CFOIL_STATE_FAILED;

    unset(out, CFOIL_TIME_LEASE_UNTIL);
    after(out, CFOIL_TIME_REPLAY_UNTIL, failed ? d->failed : d->settled_replay);
    after(out, CFOIL_TIME_GONE_AT, failed ? d->failed : d->settled_gone);
    end_with_window(c, outcome, out);
    if (outcome != CFOIL_STATE_IN_DOUBT) {
        unset(out, CFOIL_TIME_IN_DOUBT_SINCE);
        return;
    }
    after(out, CFOIL_TIME_SIGN_OF_LIFE, 0);
    if (out->next.record.at_ms[CFOIL_TIME_IN_DOUBT_SINCE] == 0)
        after(out, CFOIL_TIME_IN_DOUBT_SINCE, 0);
}

void oracle_write_settled(const struct table_case *c, const struct cfoil_record *record,
                          const struct cfoil_event *event, enum cfoil_state outcome,
                          struct oracle_expected *out)
{
    struct cfoil_record *next = &out->next.record;

    if (record != NULL) {
        start_from_record(record, out);
    } else {
        start_from_origin(event, out);
        /* What the engine ends (R12, guard) was no request: no window opens with it. */
        if (event->kind == CFOIL_EVENT_SETTLE && asks_for_window(c))
            open_window(c, out);
        if (outcome != CFOIL_STATE_IN_DOUBT)
            out->open |= ORACLE_OPEN_SIGN_OF_LIFE;
        if (c->resumed) {
            next->attempt = event->origin.attempt;
            next->fence = event->origin.fence;
            set_time(out, CFOIL_TIME_LIFE, CFOIL_TIME_AT, event->origin.life_ms);
        }
    }
    next->state = outcome;
    next->cause = outcome == CFOIL_STATE_IN_DOUBT ? event->cause : CFOIL_CAUSE_NONE;
    memcpy(next->owner, event->owner, CFOIL_OWNER_BYTES);
    clear_mark(out);
    next->snapshot = event->snapshot;
    next->resource = event->resource;
    memset(&next->reason, 0, sizeof(next->reason));
    if (event->kind == CFOIL_EVENT_RESOLVE || event->kind == CFOIL_EVENT_RELEASE)
        next->reason = event->reason;
    if (outcome == CFOIL_STATE_FAILED || outcome == CFOIL_STATE_IN_DOUBT)
        out->open |= ORACLE_OPEN_SNAPSHOT;
    settled_times(c, outcome, out);
}
