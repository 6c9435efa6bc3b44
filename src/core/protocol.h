/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol (DESIGN.md section 3): one door. A record and an event go in, an effect comes out.
 * Pure: no I/O, no clock, no memory of its own; time, randomness and policy are arguments.
 *
 *   (record or absent, now, event) -> answer | write(expect, draft) -> verdict | refusal
 *
 * The caller carries the effect out: ANSWER needs nothing; WRITE is one cas, and verdict and error
 * count only once it was applied; on conflict the caller steps again with what it was given; on
 * unknown it reads and steps again with the same event (the same owner is recognised). REFUSE is
 * final.
 *
 * Rules obeyed here: R1, R2, R8, R9, R11, R12, and the probe. The rows are in protocol.def.
 */
#ifndef CFOIL_CORE_PROTOCOL_H
#define CFOIL_CORE_PROTOCOL_H

#include "core/record.h"

enum cfoil_event_kind {
#define CFOIL_EVENT(name, actor, text) CFOIL_EVENT_##name,
#include "core/protocol.def"
    CFOIL_EVENT_COUNT
};

enum cfoil_answer {
    CFOIL_ANSWER_NONE,
#define CFOIL_ANSWER(name, status, ietf, stripe, envelope, retry_after, zh_cn, en)                 \
    CFOIL_ANSWER_##name,
#include "core/protocol.def"
    CFOIL_ANSWER_COUNT
};

/* What is said to people: the answers' messages, under the answers' numbers, and a few more. */
enum cfoil_message {
    CFOIL_MESSAGE_NONE,
#define CFOIL_ANSWER(name, status, ietf, stripe, envelope, retry_after, zh_cn, en)                 \
    CFOIL_MESSAGE_##name,
#define CFOIL_MESSAGE(name, zh_cn, en) CFOIL_MESSAGE_##name,
#include "core/protocol.def"
    CFOIL_MESSAGE_COUNT
};

enum cfoil_language { CFOIL_LANGUAGE_EN, CFOIL_LANGUAGE_ZH_CN, CFOIL_LANGUAGE_COUNT };

/* The habits of status that a profile chooses from. */
enum cfoil_statuses {
    CFOIL_STATUSES_DEFAULT,
    CFOIL_STATUSES_IETF,
    CFOIL_STATUSES_STRIPE,
    CFOIL_STATUSES_COUNT
};

enum cfoil_verdict {
    CFOIL_VERDICT_NONE,
#define CFOIL_VERDICT(name, variable, answer, text) CFOIL_VERDICT_##name,
#include "core/protocol.def"
    CFOIL_VERDICT_COUNT
};

/* WINDOW_KEY is `semantics: window` with `compare: key`: the record lives as long as the window. */
enum cfoil_semantics {
    CFOIL_SEMANTICS_STRICT,
    CFOIL_SEMANTICS_LOOSE,
    CFOIL_SEMANTICS_WINDOW,
    CFOIL_SEMANTICS_WINDOW_KEY,
    CFOIL_SEMANTICS_COUNT
};

enum cfoil_in_doubt {
    CFOIL_IN_DOUBT_HOLD,
    CFOIL_IN_DOUBT_RETRY,
    CFOIL_IN_DOUBT_PROBE,
    CFOIL_IN_DOUBT_COUNT
};

/* What the reader's policy says. Durations in ms, none negative. */
struct cfoil_terms {
    enum cfoil_semantics semantics;
    enum cfoil_in_doubt in_doubt;
    int64_t lease_ms;
    int64_t ttl_ms;
    int64_t tombstone_ms;
    int64_t failed_ms;
    int64_t trust_absent_after_ms;
    int64_t probe_lease_ms;
    int64_t retry_after_ms;
    int64_t window_ms; /* WINDOW and WINDOW_KEY: how long a key counts; over 0 */
    enum cfoil_anchor window_anchor;
};

/*
 * Who asks and for what. A claim writes it into the record. A settle or a withdrawal needs it again
 * only where the record is absent (failover); then attempt, fence and life_ms are those the claim
 * was given, or 0, which reads as a first claim in a new life.
 */
struct cfoil_origin {
    struct cfoil_scope scope;
    struct cfoil_fingerprint fingerprint;
    struct cfoil_bytes first_request_id;
    uint32_t attempt;
    uint64_t fence;
    int64_t life_ms;
};

/*
 * One event. Every event carries `owner` and `entropy`; the rest as named.
 *   CLAIM                        origin, terms
 *   RENEW                        terms
 *   SETTLE                       origin, terms, outcome, cause (IN_DOUBT only), snapshot, resource
 *   PROBE_FOUND                  origin, terms, snapshot, resource (the outcome is SUCCEEDED)
 *   PROBE_ABSENT                 origin, terms, asked_ms, asked_generation
 *   PROBE_UNCLEAR                origin, terms
 *   RESOLVE                      terms, outcome (SUCCEEDED, FAILED or FAILED_FINAL), reason,
 *                                snapshot, resource
 *   RELEASE                      terms, reason, force
 *   FORGET                       force: also where no record can be read (a corrupt one, R6)
 *   WITHDRAW                     origin, terms, lost_expect
 *   CLOSE                        origin, terms
 *   ISSUE                        origin, terms (ttl_ms)
 *   GUARD, ALIAS                 not available in this version: REFUSE with NOT_AVAILABLE
 *
 * owner: the claim's token; for ISSUE and the operator's and engine's events a fresh random one, so
 * that the former owner is refused from then on. Never all zero.
 * entropy: 64 random bits, used where a record is created (R11: random 63-bit start).
 */
struct cfoil_event {
    enum cfoil_event_kind kind;
    uint8_t owner[CFOIL_OWNER_BYTES];
    uint64_t entropy;
    struct cfoil_terms terms;
    struct cfoil_origin origin;
    enum cfoil_state outcome;
    enum cfoil_cause cause;
    struct cfoil_snapshot snapshot;
    struct cfoil_resource resource;
    struct cfoil_bytes reason;
    int64_t asked_ms;          /* store time the prober knew before it asked the backend */
    uint64_t asked_generation; /* and the record's generation then */
    uint64_t lost_expect; /* what the lost cas expected (CFOIL_EXPECT_ABSENT or a generation) */
    bool force;
};

enum cfoil_action { CFOIL_ACTION_ANSWER, CFOIL_ACTION_WRITE, CFOIL_ACTION_REFUSE };

/*
 * verdict: for CLAIM and PROBE_*; NONE for the rest. PROBE_FOUND gives REPLAY or NOT_STORED,
 * PROBE_ABSENT gives EXECUTE or IN_PROGRESS, PROBE_UNCLEAR gives OUTCOME_UNKNOWN. Where the mark is no
 * longer the prober's or the record no longer in doubt, a report is answered like a CLAIM, except that
 * PROBE_FOUND never gives EXECUTE: on FAILED it settles; without a record it is OUTCOME_UNKNOWN.
 * error: OK, or why it was refused: NOT_FOUND (absent where the event needs a record), NOT_OWNER,
 * SETTLED, LEASE_LIVE, EXISTS, NOT_AVAILABLE, INVALID (an outcome the event does not allow).
 * retry_after_ms: for IN_PROGRESS the smaller of terms.retry_after_ms and what is left of the lease
 * (or probe lease, or trust_absent_after), at least 1; else 0.
 * next: views point into the record and event given, so both must outlive the effect.
 */
struct cfoil_effect {
    enum cfoil_action action;
    enum cfoil_verdict verdict;
    enum cfoil_error error;
    bool recognised;   /* the same owner asked again and already has what it asks for */
    bool body_differs; /* loose: same key, other body or query */
    bool other_rules;  /* compared by the rule-free digests */
    int64_t retry_after_ms;
    uint64_t expect; /* WRITE: CFOIL_EXPECT_ABSENT or a generation */
    struct cfoil_draft next;
};

/* The state a reader must see. `record` NULL is ABSENT. Works for every form. */
enum cfoil_state cfoil_record_effective(const struct cfoil_record *record, int64_t now_ms);

/*
 * The door. `record` NULL: absent; a record that is past gone_at is treated as absent too.
 * An alias or guard record met by any event but FORGET is refused with NOT_AVAILABLE.
 * Total: every combination has a defined effect; nothing is asserted about record or event but what
 * the type says (state, form and cause in range, owner not all zero).
 */
void cfoil_step(const struct cfoil_record *record, int64_t now_ms, const struct cfoil_event *event,
                struct cfoil_effect *effect);

/*
 * Who of those that wait for an execution's end is to claim again, seeing the record in this state, it
 * being no longer executed: ALL where the record answers everybody alike, ONE where the first to come
 * executes (or asks the backend) and the rest wait for that.
 */
enum cfoil_wake { CFOIL_WAKE_ONE, CFOIL_WAKE_ALL };
enum cfoil_wake cfoil_wake_of(enum cfoil_state state, enum cfoil_in_doubt in_doubt);

/*
 * Fills in the digests that `asked` lacks from a record of the same rules and the same rule-free digest,
 * which are then the same too: for rules that count no header, which the rule-free digest does not cover.
 * False: the record does not tell, they must be computed. DESIGN, Fingerprint.
 */
bool cfoil_fingerprint_infer(const struct cfoil_fingerprint *recorded,
                             struct cfoil_fingerprint *asked);

/* Whether the fingerprints name the same request under these semantics; the flags as in the effect.
 */
bool cfoil_fingerprint_same(const struct cfoil_fingerprint *recorded,
                            const struct cfoil_fingerprint *asked, enum cfoil_semantics semantics,
                            bool *body_differs, bool *other_rules);

/* Rows of protocol.def. Static strings, "?" out of range. */
const char *cfoil_state_name(enum cfoil_state state);
bool cfoil_state_is_settled(enum cfoil_state state);
const char *cfoil_event_name(enum cfoil_event_kind kind);
const char *cfoil_verdict_name(enum cfoil_verdict verdict);
const char *cfoil_verdict_variable(enum cfoil_verdict verdict); /* "execute", ...; "" for NONE */
enum cfoil_answer cfoil_verdict_answer(enum cfoil_verdict verdict);

/* An answer's row. code is "IDEMPOTENCY_...". */
struct cfoil_answer_row {
    const char *code;
    uint16_t status[CFOIL_STATUSES_COUNT];
    uint16_t envelope;
    bool retry_after;
};
const struct cfoil_answer_row *cfoil_answer_row(enum cfoil_answer answer);

/* The built-in text of a message, UTF-8; "" for NONE and out of range. */
const char *cfoil_message_text(enum cfoil_message message, enum cfoil_language language);
/* "en", "zh-CN". */
const char *cfoil_language_name(enum cfoil_language language);

/* State by its name in upper case; CFOIL_STATE_COUNT if there is none. */
enum cfoil_state cfoil_state_by_name(struct cfoil_bytes name);

#endif
