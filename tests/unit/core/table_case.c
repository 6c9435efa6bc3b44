/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the record and the event of one case (table_case.h). Owns the numbers; judges nothing.
 */
#include "table_case.h"

#include <stdio.h>

/* What each owner coordinate looks like. The event's own token is all OWNER_BYTE_MINE. */
enum { OWNER_BYTE_MINE = 0x11, OWNER_BYTE_ANOTHER = 0x22, OWNER_BYTE_OPERATOR = 0x33 };
enum { PROBER_BYTE_OTHER = 0x44 };
enum { RULES_RECORDED = 7, RULES_OTHER = 8 };

static const char *const owner_names[] = {"mine", "another", "operator"};
static const char *const mark_names[] = {"none",       "mine live", "mine ends now",  "mine over",
                                         "other near", "other far", "other ends now", "other over"};
static const char *const asked_names[] = {"same",
                                          "same, spelt otherwise",
                                          "other body",
                                          "other target",
                                          "other rules, same raw",
                                          "other rules, other raw",
                                          "other rules, other target"};
static const char *const time_names[] = {"lease far", "lease near",   "at lease", "after lease",
                                         "at replay", "after replay", "at gone",  "after gone"};
static const char *const trust_names[] = {"older", "stale", "far", "near", "now", "past"};
static const char *const window_names[] = {"none", "open", "over", "clock, open"};
static const char *const lost_names[] = {"absent", "this", "other"};

struct cfoil_terms table_case_terms(const struct table_case *c)
{
    struct cfoil_terms usual = {.semantics = c->semantics,
                                .in_doubt = c->in_doubt,
                                .lease_ms = 30000,
                                .ttl_ms = 86400000,
                                .tombstone_ms = 3600000,
                                .failed_ms = 600000,
                                .trust_absent_after_ms = 60000,
                                .probe_lease_ms = 10000,
                                .retry_after_ms = 2000,
                                .window_ms = 600000,
                                .window_anchor = CFOIL_ANCHOR_FIRST};
    struct cfoil_terms tight = usual;

    tight.ttl_ms = 20000;
    tight.tombstone_ms = 0;
    tight.failed_ms = 500;
    tight.retry_after_ms = 0;
    tight.window_ms = 20000;
    tight.window_anchor = CFOIL_ANCHOR_CLOCK;
    return c->terms == TERMS_USUAL ? usual : tight;
}

bool table_case_possible(const struct table_case *c)
{
    bool no_tombstone = c->stored == CFOIL_STATE_FAILED || c->stored == CFOIL_STATE_ISSUED;
    bool may_hold_snapshot = c->stored != CFOIL_STATE_PROCESSING && c->stored != CFOIL_STATE_ISSUED;

    if (no_tombstone && (c->time == TIME_AT_REPLAY || c->time == TIME_AFTER_REPLAY))
        return false;
    if (c->window != WINDOW_NONE && c->stored == CFOIL_STATE_ISSUED)
        return false;
    if (c->snapshot && !may_hold_snapshot)
        return false;
    if (c->cause != CFOIL_CAUSE_NONE && c->stored != CFOIL_STATE_IN_DOUBT)
        return false;
    if (c->mark != MARK_NONE && c->stored != CFOIL_STATE_PROCESSING &&
        c->stored != CFOIL_STATE_IN_DOUBT)
        return false;
    return true;
}

unsigned table_case_variants(enum cfoil_event_kind event)
{
    if (event == CFOIL_EVENT_SETTLE)
        return CFOIL_STATE_COUNT * 4;
    if (event == CFOIL_EVENT_RESOLVE)
        return CFOIL_STATE_COUNT * 2;
    if (event == CFOIL_EVENT_PROBE_FOUND || event == CFOIL_EVENT_RELEASE ||
        event == CFOIL_EVENT_FORGET || event == CFOIL_EVENT_CLOSE)
        return 2;
    if (event == CFOIL_EVENT_PROBE_ABSENT)
        return CASE_TRUST_COUNT;
    if (event == CFOIL_EVENT_WITHDRAW)
        return CASE_LOST_COUNT * 2;
    return 1;
}

void table_case_vary(struct table_case *c, unsigned variant)
{
    c->outcome = CFOIL_STATE_SUCCEEDED;
    c->event_cause = CFOIL_CAUSE_TIMEOUT;
    c->event_snapshot = true;
    c->force = false;
    c->resumed = true;
    c->trust = TRUST_PAST;
    c->lost = LOST_OTHER;
    if (c->event == CFOIL_EVENT_SETTLE || c->event == CFOIL_EVENT_RESOLVE) {
        c->outcome = (enum cfoil_state)(variant % CFOIL_STATE_COUNT);
        c->event_snapshot = variant / CFOIL_STATE_COUNT % 2 != 0;
        c->resumed = variant / CFOIL_STATE_COUNT / 2 % 2 != 0;
    }
    if (c->event == CFOIL_EVENT_PROBE_FOUND)
        c->event_snapshot = variant != 0;
    if (c->event == CFOIL_EVENT_PROBE_ABSENT)
        c->trust = (enum case_trust)variant;
    if (c->event == CFOIL_EVENT_RELEASE || c->event == CFOIL_EVENT_FORGET)
        c->force = variant != 0;
    if (c->event == CFOIL_EVENT_CLOSE)
        c->resumed = variant != 0;
    if (c->event == CFOIL_EVENT_WITHDRAW) {
        c->lost = (enum case_lost)(variant % CASE_LOST_COUNT);
        c->resumed = variant / CASE_LOST_COUNT != 0;
    }
}

static void build_times(const struct table_case *c, int64_t at_ms[CFOIL_TIME_COUNT])
{
    /* lease, replay and gone relative to now, one row per case_time */
    static const int64_t offsets[CASE_TIME_COUNT][3] = {
        {25000, 80000, 90000}, {1, 70000, 90000}, {0, 60000, 90000},   {-1, 1, 90000},
        {-70000, 0, 90000},    {-70000, -1, 1},   {-90000, -50000, 0}, {-90000, -50000, -1},
    };
    static const int64_t since_trust[CASE_TRUST_COUNT] = {-60001, -60000, -5000, -1, 0, 1};
    const int64_t *row = offsets[c->time];
    bool leased = c->stored == CFOIL_STATE_PROCESSING;
    bool one_end = c->stored == CFOIL_STATE_FAILED || c->stored == CFOIL_STATE_ISSUED;
    bool claimed = c->stored != CFOIL_STATE_ISSUED;

    at_ms[CFOIL_TIME_LIFE] = claimed ? TABLE_NOW - 9000000 : 0;
    at_ms[CFOIL_TIME_UPDATED] = TABLE_NOW - 4000000;
    at_ms[CFOIL_TIME_SIGN_OF_LIFE] = claimed ? TABLE_ASKED - 60000 - since_trust[c->trust] : 0;
    at_ms[CFOIL_TIME_LEASE_UNTIL] = leased ? TABLE_NOW + row[0] : 0;
    at_ms[CFOIL_TIME_GONE_AT] = TABLE_NOW + row[2];
    at_ms[CFOIL_TIME_REPLAY_UNTIL] = TABLE_NOW + (one_end ? row[2] : row[1]);
    if (c->stored == CFOIL_STATE_IN_DOUBT)
        at_ms[CFOIL_TIME_IN_DOUBT_SINCE] = TABLE_NOW - 3000000;
}

/* A mark on a PROCESSING record was set after its lease, so it brought in_doubt_since with it. */
static void build_mark(const struct table_case *c, struct cfoil_record *record)
{
    static const int64_t left[CASE_MARK_COUNT] = {0, 4000, 0, -1, 1, 7000, 0, -1};
    bool mine = c->mark >= MARK_MINE_LIVE && c->mark <= MARK_MINE_OVER;

    if (c->mark == MARK_NONE)
        return;
    memset(record->prober, mine ? OWNER_BYTE_MINE : PROBER_BYTE_OTHER, CFOIL_OWNER_BYTES);
    record->at_ms[CFOIL_TIME_PROBE_UNTIL] = TABLE_NOW + left[c->mark];
    if (record->state == CFOIL_STATE_PROCESSING)
        record->at_ms[CFOIL_TIME_IN_DOUBT_SINCE] = record->at_ms[CFOIL_TIME_LEASE_UNTIL];
}

static struct cfoil_scope case_scope(void)
{
    struct cfoil_scope scope = {.layer = cfoil_bytes_text("http"),
                                .kind = CFOIL_KIND_KEY,
                                .tenant_class = CFOIL_TENANT_NAMED,
                                .tenant = cfoil_bytes_text("acme"),
                                .endpoint = cfoil_bytes_text("POST /orders"),
                                .key = cfoil_bytes_text("k-1")};
    return scope;
}

static struct cfoil_fingerprint case_fingerprint(enum case_asked asked)
{
    struct cfoil_fingerprint print = {.rules = RULES_RECORDED};
    bool other_rules = asked >= ASKED_OTHER_RULES_SAME_RAW;
    bool same_request = asked == ASKED_SAME || asked == ASKED_SAME_SPELT_OTHERWISE;
    bool same_raw = asked == ASKED_SAME || asked == ASKED_OTHER_RULES_SAME_RAW;
    bool other_target = asked == ASKED_OTHER_TARGET || asked == ASKED_OTHER_RULES_OTHER_TARGET;

    if (other_rules)
        print.rules = RULES_OTHER;
    memset(print.request_hash, 0xa1, CFOIL_DIGEST_BYTES);
    memset(print.raw_hash, 0xb1, CFOIL_DIGEST_BYTES);
    memset(print.target_hash, 0xc1, CFOIL_DIGEST_BYTES);
    /* One differing byte, the last: a comparison that stops early must not pass. */
    if (!same_request)
        print.request_hash[CFOIL_DIGEST_BYTES - 1] = 0xa2;
    if (!same_raw)
        print.raw_hash[CFOIL_DIGEST_BYTES - 1] = 0xb2;
    if (other_target)
        print.target_hash[CFOIL_DIGEST_BYTES - 1] = 0xc2;
    return print;
}

static void build_window(const struct table_case *c, struct cfoil_record *record)
{
    static const int64_t lengths[CASE_WINDOW_COUNT] = {0, 9000001, 9000000, 86400000};

    record->window_ms = lengths[c->window];
    if (c->window == WINDOW_CLOCK_OPEN)
        record->window_anchor = CFOIL_ANCHOR_CLOCK;
}

static void build_record(const struct table_case *c, struct cfoil_record *record)
{
    static const int owner_bytes[] = {OWNER_BYTE_MINE, OWNER_BYTE_ANOTHER, OWNER_BYTE_OPERATOR};
    bool claimed = c->stored != CFOIL_STATE_ISSUED;
    bool settled = c->stored == CFOIL_STATE_SUCCEEDED || c->stored == CFOIL_STATE_FAILED_FINAL ||
                   c->stored == CFOIL_STATE_FAILED;

    memset(record, 0, sizeof(*record));
    record->generation = c->generation == GENERATION_LAST ? CFOIL_GENERATION_MAX : 5000;
    record->fence = claimed ? 41 : 0;
    record->attempt = claimed ? 6 : 0;
    record->state = c->stored;
    record->form = c->form;
    record->cause = c->cause;
    build_times(c, record->at_ms);
    memset(record->owner, owner_bytes[c->owner], CFOIL_OWNER_BYTES);
    build_mark(c, record);
    build_window(c, record);
    record->fingerprint = case_fingerprint(ASKED_SAME);
    record->scope = case_scope();
    record->first_request_id = cfoil_bytes_text("first");
    if (c->snapshot) {
        record->snapshot.status = 201;
        record->snapshot.headers = cfoil_bytes_text("recorded headers");
        record->snapshot.body = cfoil_bytes_text("recorded body");
        record->resource.type = cfoil_bytes_text("order");
        record->resource.id = cfoil_bytes_text("o-1");
    }
    if (settled && c->owner == OWNER_OPERATOR)
        record->reason = cfoil_bytes_text("an operator said so");
    if (c->form != CFOIL_FORM_RECORD) {
        memset(record->target, 0x77, CFOIL_DIGEST_BYTES);
        record->target_life_ms = TABLE_NOW - 9000000;
    }
}

void table_case_build(const struct table_case *c, struct cfoil_record *record,
                      struct cfoil_event *event)
{
    build_record(c, record);
    memset(event, 0, sizeof(*event));
    event->kind = c->event;
    memset(event->owner, OWNER_BYTE_MINE, CFOIL_OWNER_BYTES);
    event->entropy = UINT64_C(0x923456789abcdef1);
    event->terms = table_case_terms(c);
    event->origin.scope = case_scope();
    event->origin.fingerprint = case_fingerprint(c->asked);
    event->origin.first_request_id = cfoil_bytes_text("asker");
    if (c->resumed) {
        event->origin.attempt = 3;
        event->origin.fence = 17;
        event->origin.life_ms = TABLE_NOW - 7000000;
    }
    event->outcome = c->outcome;
    event->cause = c->event_cause;
    if (c->event_snapshot) {
        event->snapshot.status = 200;
        event->snapshot.headers = cfoil_bytes_text("event headers");
        event->snapshot.body = cfoil_bytes_text("event body");
        event->resource.type = cfoil_bytes_text("payment");
        event->resource.id = cfoil_bytes_text("p-9");
    }
    event->reason = cfoil_bytes_text("looked it up");
    event->force = c->force;
    event->asked_ms = TABLE_ASKED;
    event->asked_generation = record->generation - (c->trust <= TRUST_STALE ? 1 : 0);
    event->lost_expect = CFOIL_EXPECT_ABSENT;
    if (c->lost == LOST_THIS)
        event->lost_expect = record->generation;
    if (c->lost == LOST_OTHER)
        event->lost_expect = record->generation - 3;
}

const char *table_case_text(const struct table_case *c, char *out, size_t out_bytes)
{
    (void)snprintf(out, out_bytes,
                   "%s on %s (form %d, cause %d, snapshot %d, generation %d), owner %s, mark %s, "
                   "time %s, trust %s, asked %s, in_doubt %d, semantics %d, terms %d, outcome %d, "
                   "event snapshot %d, force %d, resumed %d, lost %s, window %s",
                   cfoil_event_name(c->event), c->present ? cfoil_state_name(c->stored) : "nothing",
                   (int)c->form, (int)c->cause, c->snapshot, (int)c->generation,
                   owner_names[c->owner], mark_names[c->mark], time_names[c->time],
                   trust_names[c->trust], asked_names[c->asked], (int)c->in_doubt,
                   (int)c->semantics, (int)c->terms, (int)c->outcome, c->event_snapshot, c->force,
                   c->resumed, lost_names[c->lost], window_names[c->window]);
    return out;
}
