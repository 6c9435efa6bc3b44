/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of DESIGN.md section 3, by coordinates. Each function is one event and cites the
 * sentence it stands on. Where the design names no order between two sentences the case is open.
 */
#include "oracle.h"

/* Rows of "Verdicts of a claim" where a fingerprint is compared, column "same fingerprint". */
struct oracle_row {
    enum cfoil_state reads_as;
    enum cfoil_in_doubt in_doubt; /* COUNT: whatever the policy says */
    enum cfoil_verdict verdict;
};

static const struct oracle_row same_column[] = {
    {CFOIL_STATE_PROCESSING, CFOIL_IN_DOUBT_COUNT, CFOIL_VERDICT_IN_PROGRESS},
    {CFOIL_STATE_SUCCEEDED, CFOIL_IN_DOUBT_COUNT, CFOIL_VERDICT_REPLAY},
    {CFOIL_STATE_FAILED_FINAL, CFOIL_IN_DOUBT_COUNT, CFOIL_VERDICT_REPLAY},
    {CFOIL_STATE_FAILED, CFOIL_IN_DOUBT_COUNT, CFOIL_VERDICT_EXECUTE},
    {CFOIL_STATE_IN_DOUBT, CFOIL_IN_DOUBT_HOLD, CFOIL_VERDICT_OUTCOME_UNKNOWN},
    {CFOIL_STATE_IN_DOUBT, CFOIL_IN_DOUBT_RETRY, CFOIL_VERDICT_EXECUTE},
    {CFOIL_STATE_IN_DOUBT, CFOIL_IN_DOUBT_PROBE, CFOIL_VERDICT_PROBE},
};

/* strict, loose, window, window by key */
static const bool same_request[CASE_ASKED_COUNT][CFOIL_SEMANTICS_COUNT] = {
    [ASKED_SAME] = {true, true, true, true},
    [ASKED_SAME_SPELT_OTHERWISE] = {true, true, true, true},
    [ASKED_OTHER_BODY] = {false, true, false, true},
    [ASKED_OTHER_TARGET] = {false, false, false, false},
    [ASKED_OTHER_RULES_SAME_RAW] = {true, true, true, true},
    [ASKED_OTHER_RULES_OTHER_RAW] = {false, true, false, true},
    [ASKED_OTHER_RULES_OTHER_TARGET] = {false, false, false, false},
};

enum cfoil_state oracle_reads_as(const struct table_case *c)
{
    if (!c->present || c->time >= TIME_AT_GONE)
        return CFOIL_STATE_ABSENT;
    if (c->time >= TIME_AT_REPLAY)
        return CFOIL_STATE_TOMBSTONE;
    if (c->stored == CFOIL_STATE_PROCESSING && c->time >= TIME_AT_LEASE)
        return CFOIL_STATE_IN_DOUBT;
    return c->stored;
}

static bool mark_mine(const struct table_case *c)
{
    return c->mark >= MARK_MINE_LIVE && c->mark <= MARK_MINE_OVER;
}

static void answer(struct oracle_expected *out, enum cfoil_verdict verdict)
{
    out->action = CFOIL_ACTION_ANSWER;
    out->verdict = verdict;
}

static void refuse(struct oracle_expected *out, enum cfoil_error error)
{
    out->action = CFOIL_ACTION_REFUSE;
    out->error = error;
}

/* "The smaller of retry_after and the lease left", at least 1; what is near has 1 ms left. */
static int64_t wait_ms(const struct table_case *c, bool near)
{
    return near || c->terms == TERMS_TIGHT ? 1 : 2000;
}

static void claim_by_mark(const struct table_case *c, const struct cfoil_record *record,
                          const struct cfoil_event *event, struct oracle_expected *out)
{
    if (c->mark == MARK_MINE_LIVE) {
        answer(out, CFOIL_VERDICT_PROBE);
        out->recognised = true;
        return;
    }
    if (c->mark == MARK_OTHER_NEAR || c->mark == MARK_OTHER_FAR) {
        answer(out, CFOIL_VERDICT_IN_PROGRESS);
        out->retry_after_ms = wait_ms(c, c->mark == MARK_OTHER_NEAR);
        return;
    }
    oracle_write_mark(c, record, event,
                      out); /* "A dead prober is replaced when its lease is over" */
    out->verdict = CFOIL_VERDICT_PROBE;
}

static enum cfoil_verdict same_verdict(enum cfoil_state reads_as, enum cfoil_in_doubt in_doubt)
{
    size_t i;

    for (i = 0; i < sizeof(same_column) / sizeof(same_column[0]); i++) {
        const struct oracle_row *row = &same_column[i];

        if (row->reads_as != reads_as)
            continue;
        if (row->in_doubt == CFOIL_IN_DOUBT_COUNT || row->in_doubt == in_doubt)
            return row->verdict;
    }
    return CFOIL_VERDICT_NONE;
}

static void claim_same(const struct table_case *c, const struct cfoil_record *record,
                       const struct cfoil_event *event, struct oracle_expected *out)
{
    enum cfoil_state reads_as = oracle_reads_as(c);
    enum cfoil_verdict verdict = same_verdict(reads_as, c->in_doubt);

    if (c->stored == CFOIL_STATE_PROCESSING && c->owner == OWNER_MINE) {
        /* The same owner asks again: it already has the claim, or gets its lease back. */
        out->recognised = true;
        if (reads_as == CFOIL_STATE_PROCESSING)
            answer(out, CFOIL_VERDICT_EXECUTE);
        else
            oracle_write_renewal(c, record, out);
        out->verdict = CFOIL_VERDICT_EXECUTE;
        return;
    }
    if (verdict == CFOIL_VERDICT_PROBE) {
        claim_by_mark(c, record, event, out);
        return;
    }
    if (verdict == CFOIL_VERDICT_EXECUTE) {
        oracle_write_take(c, record, event, out);
        out->verdict = verdict;
        return;
    }
    if (verdict == CFOIL_VERDICT_REPLAY && !c->snapshot)
        verdict = CFOIL_VERDICT_NOT_STORED;
    answer(out, verdict);
    if (verdict == CFOIL_VERDICT_IN_PROGRESS)
        out->retry_after_ms = wait_ms(c, c->time == TIME_LEASE_NEAR);
}

static void expect_claim(const struct table_case *c, const struct cfoil_record *record,
                         const struct cfoil_event *event, struct oracle_expected *out)
{
    enum cfoil_state reads_as = oracle_reads_as(c);

    if (reads_as == CFOIL_STATE_ABSENT || reads_as == CFOIL_STATE_ISSUED) {
        oracle_write_first_claim(c, reads_as == CFOIL_STATE_ISSUED ? record : NULL, event, out);
        out->verdict = CFOIL_VERDICT_EXECUTE;
        out->open |= ORACLE_OPEN_OTHER_RULES | ORACLE_OPEN_BODY_DIFFERS;
        return;
    }
    if (reads_as == CFOIL_STATE_TOMBSTONE) {
        answer(out, CFOIL_VERDICT_KEY_EXPIRED);
        out->open |= ORACLE_OPEN_OTHER_RULES | ORACLE_OPEN_BODY_DIFFERS;
        return;
    }
    out->other_rules = c->asked >= ASKED_OTHER_RULES_SAME_RAW;
    if (!same_request[c->asked][c->semantics]) {
        answer(out, CFOIL_VERDICT_MISMATCH);
        out->open |= ORACLE_OPEN_BODY_DIFFERS;
        return;
    }
    out->body_differs = c->asked == ASKED_OTHER_BODY || c->asked == ASKED_OTHER_RULES_OTHER_RAW;
    claim_same(c, record, event, out);
}

/* R2: decided on a record whose owner is the caller's, lease over or not. */
static void expect_renew(const struct table_case *c, const struct cfoil_record *record,
                         struct oracle_expected *out)
{
    if (oracle_reads_as(c) == CFOIL_STATE_ABSENT)
        refuse(out, CFOIL_E_NOT_FOUND);
    else if (c->owner != OWNER_MINE)
        refuse(out, CFOIL_E_NOT_OWNER);
    else if (c->stored != CFOIL_STATE_PROCESSING)
        refuse(out, CFOIL_E_SETTLED);
    else
        oracle_write_renewal(c, record, out);
}

static void expect_settle(const struct table_case *c, const struct cfoil_record *record,
                          const struct cfoil_event *event, struct oracle_expected *out)
{
    bool outcome = c->outcome == CFOIL_STATE_SUCCEEDED || c->outcome == CFOIL_STATE_FAILED_FINAL ||
                   c->outcome == CFOIL_STATE_FAILED || c->outcome == CFOIL_STATE_IN_DOUBT;
    bool absent = oracle_reads_as(c) == CFOIL_STATE_ABSENT;

    if (!outcome) {
        refuse(out, CFOIL_E_INVALID);
        if (!absent && (c->owner != OWNER_MINE || c->stored == CFOIL_STATE_ISSUED))
            out->open |= ORACLE_OPEN_ERROR;
    } else if (absent) {
        oracle_write_settled(c, NULL, event, c->outcome,
                             out); /* R12: an owner whose record is absent settles */
    } else if (c->owner != OWNER_MINE || c->stored == CFOIL_STATE_ISSUED) {
        refuse(out, CFOIL_E_NOT_OWNER);
    } else if (c->stored == c->outcome) {
        answer(out, CFOIL_VERDICT_NONE); /* "a repeated settle is recognised" */
        out->recognised = true;
    } else if (c->stored == CFOIL_STATE_PROCESSING || c->stored == CFOIL_STATE_IN_DOUBT) {
        oracle_write_settled(c, record, event, c->outcome, out);
    } else {
        refuse(out, CFOIL_E_SETTLED);
    }
}

/* Trusted at once only if the backend closed; else if trust_absent_after had passed when asked. */
static void probe_absent(const struct table_case *c, const struct cfoil_record *record,
                         const struct cfoil_event *event, struct oracle_expected *out)
{
    bool closed = c->stored == CFOIL_STATE_IN_DOUBT && c->cause == CFOIL_CAUSE_BACKEND_CLOSED;

    if (closed || c->trust >= TRUST_NOW) {
        oracle_write_take(c, record, event, out);
        out->verdict = CFOIL_VERDICT_EXECUTE;
        return;
    }
    oracle_write_unmark(record, out);
    out->verdict = CFOIL_VERDICT_IN_PROGRESS;
    out->retry_after_ms = wait_ms(c, c->trust == TRUST_NEAR);
}

static void expect_probe(const struct table_case *c, const struct cfoil_record *record,
                         const struct cfoil_event *event, struct oracle_expected *out)
{
    bool old = c->event == CFOIL_EVENT_PROBE_ABSENT && c->trust <= TRUST_STALE;
    bool found = c->event == CFOIL_EVENT_PROBE_FOUND;
    enum cfoil_state reads_as = oracle_reads_as(c);

    /* A backend that knows the request is never made to execute it again. */
    if (found && (reads_as == CFOIL_STATE_ABSENT || reads_as == CFOIL_STATE_ISSUED)) {
        out->action = CFOIL_ACTION_ANSWER;
        out->verdict = CFOIL_VERDICT_OUTCOME_UNKNOWN;
        return;
    }
    if (found && reads_as == CFOIL_STATE_FAILED && same_request[c->asked][c->semantics]) {
        out->open |= ORACLE_OPEN_OTHER_RULES | ORACLE_OPEN_BODY_DIFFERS;
        oracle_write_settled(c, record, event, CFOIL_STATE_SUCCEEDED, out);
        out->verdict = c->event_snapshot ? CFOIL_VERDICT_REPLAY : CFOIL_VERDICT_NOT_STORED;
        return;
    }
    if (!mark_mine(c) || oracle_reads_as(c) != CFOIL_STATE_IN_DOUBT || old) {
        expect_claim(c, record, event,
                     out); /* the mark is gone, another's, or of no use any more */
        return;
    }
    out->open |= ORACLE_OPEN_OTHER_RULES | ORACLE_OPEN_BODY_DIFFERS;
    if (c->asked != ASKED_SAME)
        out->open |= ORACLE_OPEN_WHOLE; /* a prober was compared when it got its mark */
    if (c->event == CFOIL_EVENT_PROBE_ABSENT) {
        probe_absent(c, record, event, out);
    } else if (c->event == CFOIL_EVENT_PROBE_FOUND) {
        oracle_write_settled(c, record, event, CFOIL_STATE_SUCCEEDED, out);
        out->verdict = c->event_snapshot ? CFOIL_VERDICT_REPLAY : CFOIL_VERDICT_NOT_STORED;
    } else {
        oracle_write_unmark(record, out);
        out->verdict = CFOIL_VERDICT_OUTCOME_UNKNOWN;
    }
}

static void expect_resolve(const struct table_case *c, const struct cfoil_record *record,
                           const struct cfoil_event *event, struct oracle_expected *out)
{
    enum cfoil_state reads_as = oracle_reads_as(c);
    bool outcome = c->outcome == CFOIL_STATE_SUCCEEDED || c->outcome == CFOIL_STATE_FAILED_FINAL ||
                   c->outcome == CFOIL_STATE_FAILED;

    if (!outcome)
        refuse(out, CFOIL_E_INVALID);
    else if (reads_as == CFOIL_STATE_ABSENT || reads_as == CFOIL_STATE_ISSUED)
        refuse(out, CFOIL_E_NOT_FOUND);
    else if (reads_as == CFOIL_STATE_PROCESSING)
        refuse(out, CFOIL_E_LEASE_LIVE);
    else if (reads_as == CFOIL_STATE_IN_DOUBT || reads_as == CFOIL_STATE_FAILED)
        oracle_write_settled(c, record, event, c->outcome, out);
    else
        refuse(out, CFOIL_E_SETTLED);
}

static void expect_release(const struct table_case *c, const struct cfoil_record *record,
                           const struct cfoil_event *event, struct oracle_expected *out)
{
    enum cfoil_state reads_as = oracle_reads_as(c);

    if (reads_as == CFOIL_STATE_ABSENT || reads_as == CFOIL_STATE_ISSUED) {
        refuse(out, CFOIL_E_NOT_FOUND);
    } else if (reads_as == CFOIL_STATE_PROCESSING && !c->force) {
        refuse(out, CFOIL_E_LEASE_LIVE);
    } else if (reads_as == CFOIL_STATE_PROCESSING || reads_as == CFOIL_STATE_IN_DOUBT) {
        oracle_write_settled(c, record, event, CFOIL_STATE_FAILED, out);
    } else {
        refuse(out, CFOIL_E_SETTLED);
    }
}

/* R12: after it, no cas that was lost can apply. */
static void expect_withdraw(const struct table_case *c, const struct cfoil_record *record,
                            const struct cfoil_event *event, struct oracle_expected *out)
{
    bool mine = c->owner == OWNER_MINE;

    out->open |= ORACLE_OPEN_RECOGNISED;
    if (oracle_reads_as(c) == CFOIL_STATE_ABSENT) {
        oracle_write_settled(c, NULL, event, CFOIL_STATE_FAILED, out);
    } else if (mine && c->stored == CFOIL_STATE_PROCESSING) {
        oracle_write_settled(c, record, event, CFOIL_STATE_FAILED, out);
    } else if (mine && mark_mine(c)) {
        out->open |= ORACLE_OPEN_WHOLE; /* a claim's token is either the owner's or the prober's */
    } else if (mark_mine(c)) {
        oracle_write_unmark(record, out);
    } else if (!mine && c->lost == LOST_THIS) {
        oracle_write_bump(record, out);
    } else {
        answer(out, CFOIL_VERDICT_NONE);
    }
}

/* Guard: a primary that is absent or FAILED is closed by a cas to FAILED with a new generation. */
static void expect_close(const struct table_case *c, const struct cfoil_record *record,
                         const struct cfoil_event *event, struct oracle_expected *out)
{
    enum cfoil_state reads_as = oracle_reads_as(c);

    out->open |= ORACLE_OPEN_REASON; /* a closed primary may keep what an operator said of it */
    if (reads_as == CFOIL_STATE_ABSENT) {
        oracle_write_settled(c, NULL, event, CFOIL_STATE_FAILED, out);
    } else if (reads_as == CFOIL_STATE_FAILED) {
        oracle_write_settled(c, record, event, CFOIL_STATE_FAILED, out);
    } else if (reads_as == CFOIL_STATE_ISSUED) {
        oracle_write_settled(c, record, event, CFOIL_STATE_FAILED, out);
        /* Nobody has claimed it, so its life begins here: (life, fence) must not be (0, ...). */
        out->next.form[CFOIL_TIME_LIFE] = CFOIL_TIME_AFTER;
        out->next.record.at_ms[CFOIL_TIME_LIFE] = 0;
        out->open |= ORACLE_OPEN_COUNTERS | ORACLE_OPEN_SIGN_OF_LIFE;
    } else {
        refuse(out, CFOIL_E_EXISTS);
    }
}

/* Forced, it also ends what cannot be read (R6): a record that is gone as soon as it is written. */
static void expect_forget(const struct table_case *c, const struct cfoil_record *record,
                          const struct cfoil_event *event, struct oracle_expected *out)
{
    bool absent = oracle_reads_as(c) == CFOIL_STATE_ABSENT;

    if (absent && !c->force) {
        refuse(out, CFOIL_E_NOT_FOUND);
        return;
    }
    oracle_write_forget(absent ? NULL : record, event, out);
    if (absent)
        out->open |= ORACLE_OPEN_CONTENT;
}

static void expect_by_event(const struct table_case *c, const struct cfoil_record *record,
                            const struct cfoil_event *event, struct oracle_expected *out)
{
    bool absent = oracle_reads_as(c) == CFOIL_STATE_ABSENT;

    switch (c->event) {
    case CFOIL_EVENT_CLAIM:
        expect_claim(c, record, event, out);
        return;
    case CFOIL_EVENT_RENEW:
        expect_renew(c, record, out);
        return;
    case CFOIL_EVENT_SETTLE:
        expect_settle(c, record, event, out);
        return;
    case CFOIL_EVENT_PROBE_FOUND:
    case CFOIL_EVENT_PROBE_ABSENT:
    case CFOIL_EVENT_PROBE_UNCLEAR:
        expect_probe(c, record, event, out);
        return;
    case CFOIL_EVENT_RESOLVE:
        expect_resolve(c, record, event, out);
        return;
    case CFOIL_EVENT_RELEASE:
        expect_release(c, record, event, out);
        return;
    case CFOIL_EVENT_WITHDRAW:
        expect_withdraw(c, record, event, out);
        return;
    case CFOIL_EVENT_CLOSE:
        expect_close(c, record, event, out);
        return;
    case CFOIL_EVENT_FORGET:
        expect_forget(c, record, event, out);
        return;
    case CFOIL_EVENT_ISSUE:
        if (absent)
            oracle_write_issue(c, event, out);
        else
            refuse(out, CFOIL_E_EXISTS);
        return;
    case CFOIL_EVENT_GUARD:
    case CFOIL_EVENT_ALIAS:
    case CFOIL_EVENT_COUNT:
        refuse(out, CFOIL_E_NOT_AVAILABLE);
        return;
    }
}

void oracle_expect(const struct table_case *c, const struct cfoil_record *record,
                   const struct cfoil_event *event, struct oracle_expected *out)
{
    bool absent = oracle_reads_as(c) == CFOIL_STATE_ABSENT;

    memset(out, 0, sizeof(*out));
    if (!absent && c->form != CFOIL_FORM_RECORD && c->event != CFOIL_EVENT_FORGET) {
        refuse(out, CFOIL_E_NOT_AVAILABLE);
        if (c->event == CFOIL_EVENT_SETTLE || c->event == CFOIL_EVENT_RESOLVE)
            out->open |= ORACLE_OPEN_ERROR; /* the outcome may be refused first */
        return;
    }
    expect_by_event(c, record, event, out);
}
