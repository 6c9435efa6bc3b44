/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One case of the exhaustive protocol test: coordinates such as "the lease ends right now" or "the
 * mark is another's", and the record and event that stand for them. The oracle (oracle.h) judges by
 * the coordinates and never compares a time itself, so that it cannot share an arithmetic mistake
 * with the code under test.
 *
 *   coordinates --table_case_build--> record, event, now --cfoil_step--> effect
 *        \----------------oracle_expect------------------> expected  ----compared----/
 *
 * Invariant: every coordinate is within its COUNT and table_case_possible was true for it.
 */
#ifndef CFOIL_TEST_TABLE_CASE_H
#define CFOIL_TEST_TABLE_CASE_H

#include "core/protocol.h"

#define TABLE_NOW   ((int64_t)1700000000000)
#define TABLE_ASKED (TABLE_NOW - 3)

/* Whose token the record carries, seen from the event. */
enum case_owner { OWNER_MINE, OWNER_ANOTHER, OWNER_OPERATOR, CASE_OWNER_COUNT };

/* The probe mark. NEAR and FAR: less and more of it left than terms.retry_after_ms. */
enum case_mark {
    MARK_NONE,
    MARK_MINE_LIVE,
    MARK_MINE_ENDS_NOW,
    MARK_MINE_OVER,
    MARK_OTHER_NEAR,
    MARK_OTHER_FAR,
    MARK_OTHER_ENDS_NOW,
    MARK_OTHER_OVER,
    CASE_MARK_COUNT
};

/* How the event's fingerprint relates to the record's. */
enum case_asked {
    ASKED_SAME,
    ASKED_SAME_SPELT_OTHERWISE, /* same rules and request_hash, other raw bytes */
    ASKED_OTHER_BODY,
    ASKED_OTHER_TARGET,
    ASKED_OTHER_RULES_SAME_RAW,
    ASKED_OTHER_RULES_OTHER_RAW,
    ASKED_OTHER_RULES_OTHER_TARGET,
    CASE_ASKED_COUNT
};

/* Where now stands among the record's times. Without a lease the first two are alike. */
enum case_time {
    TIME_LEASE_FAR,  /* more left than terms.retry_after_ms */
    TIME_LEASE_NEAR, /* 1 ms left */
    TIME_AT_LEASE,
    TIME_AFTER_LEASE,
    TIME_AT_REPLAY,
    TIME_AFTER_REPLAY,
    TIME_AT_GONE,
    TIME_AFTER_GONE,
    CASE_TIME_COUNT
};

/*
 * The time of a prober's question against sign_of_life + trust_absent_after. now is a little later, and
 * must make no difference. OLDER and STALE: the question was also asked under another generation.
 */
enum case_trust {
    TRUST_OLDER,
    TRUST_STALE,
    TRUST_FAR,
    TRUST_NEAR,
    TRUST_NOW,
    TRUST_PAST,
    CASE_TRUST_COUNT
};

/* What the lost cas of a withdrawal expected. */
enum case_lost { LOST_ABSENT, LOST_THIS, LOST_OTHER, CASE_LOST_COUNT };

/* The record's generation; the last one must be followed by 1. */
enum case_generation { GENERATION_MIDDLE, GENERATION_LAST, CASE_GENERATION_COUNT };

/*
 * The window the record was claimed under: none; by its first claim, ending in 1 ms or right now; by
 * the clock, ending at midnight (UTC) of the day that holds both its life and now.
 */
enum case_window { WINDOW_NONE, WINDOW_OPEN, WINDOW_OVER, WINDOW_CLOCK_OPEN, CASE_WINDOW_COUNT };

/* Two policies: the usual order of durations, and ttl under lease with no tombstone and no wait. */
enum case_terms { TERMS_USUAL, TERMS_TIGHT, CASE_TERMS_COUNT };

struct table_case {
    /* the record */
    bool present;
    enum cfoil_state stored;
    enum cfoil_form form;
    enum case_owner owner;
    enum case_mark mark;
    enum case_time time;
    enum cfoil_cause cause;
    bool snapshot;
    enum case_generation generation;
    enum case_trust trust;
    enum case_window window;
    /* the event */
    enum cfoil_event_kind event;
    enum case_asked asked;
    enum cfoil_in_doubt in_doubt;
    enum cfoil_semantics semantics;
    enum case_terms terms;
    enum cfoil_state outcome;
    enum cfoil_cause event_cause;
    bool event_snapshot;
    bool force;
    bool resumed; /* the origin carries attempt, fence and life of the claim */
    enum case_lost lost;
};

/*
 * Whether a record of this shape can exist: FAILED and ISSUED know no tombstone, a settle clears
 * the probe mark, only IN_DOUBT has a cause, nothing is captured before a settle, and no window opens
 * before a claim.
 */
bool table_case_possible(const struct table_case *c);

/* Variants an event has beyond the common coordinates, and the choice of one. */
unsigned table_case_variants(enum cfoil_event_kind event);
void table_case_vary(struct table_case *c, unsigned variant);

/* Fills record and event. Their views point to static text. */
void table_case_build(const struct table_case *c, struct cfoil_record *record,
                      struct cfoil_event *event);

/* The case in one line, for a failure message. Returns `out`. */
const char *table_case_text(const struct table_case *c, char *out, size_t out_bytes);

/* The terms alone. */
struct cfoil_terms table_case_terms(const struct table_case *c);

#endif
