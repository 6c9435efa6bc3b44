/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: begin, settle, renew, probe and an operator's acts over any store. The gateway, the
 * command line and (later) the claim API and C library all call it; it calls the core for every
 * decision and a lane for every operation, and decides nothing itself.
 *
 * It never blocks and has no thread: the host watches one descriptor and one timer.
 *
 *     cfoil_begin ---> verdict EXECUTE ---> (the host executes; the engine renews the lease)
 *                        |                      '--> cfoil_settle ---> done: durable, refused, or
 *                        |                                             not confirmed yet
 *                        '--> any other verdict: answer it
 *     cfoil_claim_free in every case, at any time.
 *
 * What the engine takes on itself, so that a host cannot get it wrong:
 *   - a bounded loop of compare-and-swap under contention;
 *   - after an unknown, asking again as the same owner (the claim is recognised, never doubled);
 *   - renewing a running claim every third of its lease until it is settled or freed;
 *   - a settle that is not confirmed goes on in the background until applied or refused, also after
 *     the claim was freed and with the snapshot in memory of its own;
 *   - a claim freed before it was settled is settled as the host says in cfoil_claim_free;
 *   - a claim whose result stayed unknown and was not executed is withdrawn in the background
 * (R12).
 *
 * Memory: everything given is copied before a call returns. A claim is the host's until
 * cfoil_claim_free; results point into it. No callback runs inside cfoil_begin or cfoil_settle:
 * only inside cfoil_engine_poll and cfoil_engine_tick. A call that could be answered at once (a
 * settled record in a store with look-up) says so by its return and never calls back.
 *
 * Threads: an engine and its claims belong to one thread. One engine per process and store.
 */
#ifndef CFOIL_ENGINE_ENGINE_H
#define CFOIL_ENGINE_ENGINE_H

#include "core/protocol.h"
#include "store/lane.h"

#define CFOIL_CAS_ATTEMPTS_MAX     16 /* compare-and-swap rounds before CONTENDED */
#define CFOIL_UNKNOWN_ATTEMPTS_MAX 3  /* asking again after an unknown, before giving up */
#define CFOIL_BACKGROUND_RETRY_MS                                                                  \
    200 /* first pause between background attempts, doubled each time */
#define CFOIL_BACKGROUND_RETRY_MAX_MS 5000
#define CFOIL_SETTLE_WAIT_MS          5000 /* default of settle_wait */

struct cfoil_engine;
struct cfoil_claim;

struct cfoil_engine_options {
    struct cfoil_lane *lane; /* borrowed; outlives the engine */
    int64_t settle_wait_ms;  /* 0: CFOIL_SETTLE_WAIT_MS */
    int64_t (*now_ms)(
        void *context); /* monotonic, for pauses and renewals; NULL: CLOCK_MONOTONIC */
    void *context;
    /* Things an operator should know: a refused late owner, a withdrawal, a settle in the
     * background. */
    void (*log)(void *context, enum cfoil_error error, const char *text);
};

struct cfoil_engine_stats {
    uint64_t begun;
    uint64_t verdicts[CFOIL_VERDICT_COUNT];
    uint64_t begin_failed;
    uint64_t settled;
    uint64_t settle_refused;
    uint64_t settle_background;
    uint64_t renewed;
    uint64_t renew_refused;
    uint64_t withdrawn;
    uint64_t looked;
};

/* Errors: NO_MEMORY. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_engine_create(const struct cfoil_engine_options *options,
                                                      struct cfoil_engine **engine);

/*
 * Frees the engine and every claim the host has not freed; neither may be used afterwards. What is
 * not finished is given up (cfoil_engine_busy says how much there is) and calls nobody back.
 * Operations that are still with the lane keep their memory until its next poll or its close. A host
 * whose process ends may close the lane first, if it calls nothing but this after it.
 */
void cfoil_engine_free(struct cfoil_engine *engine);

/* The descriptor to watch for reading (the lane's), and what to call then. Runs callbacks. */
int cfoil_engine_fd(const struct cfoil_engine *engine);
void cfoil_engine_poll(struct cfoil_engine *engine);

/*
 * Ms until the next cfoil_engine_tick is due; -1: nothing is timed. Ask again after every call into
 * the engine. tick does what is due and runs callbacks.
 */
int64_t cfoil_engine_due_ms(const struct cfoil_engine *engine);
void cfoil_engine_tick(struct cfoil_engine *engine);

/*
 * Hands what was queued to the store. Call once at the end of each turn of the loop (one wake-up
 * and one commit for everything in the turn); nothing reaches the store before.
 */
void cfoil_engine_flush(struct cfoil_engine *engine);

/* Operations in flight, background settles and withdrawals: 0 means a process may leave. */
size_t cfoil_engine_busy(const struct cfoil_engine *engine);
void cfoil_engine_read_stats(const struct cfoil_engine *engine, struct cfoil_engine_stats *stats);

/*
 * What a claim asks for. origin.attempt, fence and life_ms are ignored. Copied.
 *
 * `rest` spares a replay the canonical form: if it is not NULL, origin.fingerprint has rules and
 * raw_hash only, the rules count no header, and begin calls it at most once, before it returns, to
 * have the others filled in where the record that is found does not tell them. Its errors are begin's.
 */
struct cfoil_begin_request {
    uint8_t id[CFOIL_ID_BYTES];
    struct cfoil_origin origin;
    struct cfoil_terms terms;
    enum cfoil_error (*rest)(void *context, struct cfoil_fingerprint *fingerprint);
    void *rest_context;
};

/*
 * Where a claim stands. Read it when begin returned CFOIL_OK with ready, or in the callback.
 * error OK: verdict counts. Otherwise verdict is NONE and the error's class says: STORE, UNKNOWN,
 * CORRUPT, SYSTEM and RETRY are all "the store did not serve" (R6).
 */
struct cfoil_result {
    enum cfoil_error error;
    enum cfoil_verdict verdict;
    bool body_differs;
    bool other_rules;
    int64_t retry_after_ms;
    uint32_t attempt;
    uint64_t fence;
    int64_t life_ms;
    int64_t now_ms; /* store time of the decision */
    /*
     * The record the verdict was given on: for REPLAY its snapshot. For EXECUTE and PROBE as this
     * claim has left it. NULL with an error.
     */
    const struct cfoil_record *record;
};

typedef void (*cfoil_claim_done)(void *context, struct cfoil_claim *claim);

/*
 * Begins. On OK *claim is set; *ready says whether the result stands already (done will not be
 * called) or done will be called once. Errors: NO_MEMORY, SYSTEM (no randomness), LIMIT (the origin
 * does not fit a record), and those of `rest`.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_begin(struct cfoil_engine *engine,
                                              const struct cfoil_begin_request *request,
                                              cfoil_claim_done done, void *context,
                                              struct cfoil_claim **claim, bool *ready);

/* Valid until the next call on this claim. */
const struct cfoil_result *cfoil_claim_result(const struct cfoil_claim *claim);
const uint8_t *cfoil_claim_owner(const struct cfoil_claim *claim);

/* How an execution ended. Copied. snapshot.status 0: settled without a snapshot. */
struct cfoil_ending {
    enum cfoil_state outcome; /* SUCCEEDED, FAILED_FINAL, FAILED, IN_DOUBT */
    enum cfoil_cause cause;   /* IN_DOUBT */
    struct cfoil_snapshot snapshot;
    struct cfoil_resource resource;
};

enum cfoil_settle_status {
    CFOIL_SETTLE_DURABLE,    /* applied, or recognised as applied before */
    CFOIL_SETTLE_REFUSED,    /* another claim or an operator has changed the owner */
    CFOIL_SETTLE_UNCONFIRMED /* settle_wait is over; it goes on in the background */
};

typedef void (*cfoil_settle_done)(void *context, struct cfoil_claim *claim,
                                  enum cfoil_settle_status status);

/*
 * Settles an executing claim (verdict EXECUTE, or one executed without protection under `open`, where
 * the begin may still be without an answer: its done is then called no more, and the settle waits for
 * it, to be refused if it is no execution). done is called once, unless the claim is freed before; the
 * settle goes on either way. Errors:
 * INVALID (not executing, or settled already), LIMIT (the snapshot does not fit), NO_MEMORY: then
 * nothing was started, and the host may settle without a snapshot.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_settle(struct cfoil_claim *claim,
                                               const struct cfoil_ending *ending,
                                               cfoil_settle_done done, void *context);

/* A probe's answer, for a claim with verdict PROBE. */
enum cfoil_probe_answer { CFOIL_PROBE_FOUND, CFOIL_PROBE_ABSENT, CFOIL_PROBE_UNCLEAR };

/*
 * Reports a probe; the claim gets a new result (REPLAY, EXECUTE, IN_PROGRESS, OUTCOME_UNKNOWN, or
 * what the record has become meanwhile, which may be PROBE again) and done is called once. `ending` counts for FOUND only.
 * Errors: INVALID (the verdict is not PROBE), LIMIT, NO_MEMORY.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_probe_report(struct cfoil_claim *claim,
                                                     enum cfoil_probe_answer answer,
                                                     const struct cfoil_ending *ending,
                                                     cfoil_claim_done done, void *context);

/*
 * Lets go of a claim, whatever it is doing; its callbacks will not run. An executing claim that was
 * not settled is settled in the background as `unsettled` says (FAILED where nothing was sent to a
 * backend, IN_DOUBT otherwise); a probing one clears its mark. NULL is allowed.
 */
void cfoil_claim_free(struct cfoil_claim *claim, enum cfoil_state unsettled,
                      enum cfoil_cause cause);

/*
 * An operator's act on one record: RESOLVE, RELEASE or FORGET. The event's owner and entropy are
 * filled in here. done gets OK, the store's error, or the refusal (NOT_FOUND, LEASE_LIVE, SETTLED,
 * ...). Errors: INVALID (another event), LIMIT (snapshot, resource and reason do not fit a record),
 * NO_MEMORY, SYSTEM.
 */
typedef void (*cfoil_operate_done)(void *context, enum cfoil_error error);
CFOIL_MUST_CHECK enum cfoil_error cfoil_operate(struct cfoil_engine *engine,
                                                const uint8_t id[CFOIL_ID_BYTES],
                                                const struct cfoil_event *event,
                                                cfoil_operate_done done, void *context);

/*
 * What a record looks like to somebody who waits for its end. error OK: state counts, and running says
 * whether an owner executes or a prober asks, by the store's clock. An alias is followed to its primary.
 */
struct cfoil_glance {
    enum cfoil_error error;
    enum cfoil_state state; /* effective */
    bool running;
};

/*
 * One look-up that claims nothing, needs no fingerprint and copies no snapshot. *ready: *glance stands
 * and done is not called; else done is called once, unless the engine is freed before. Error: NO_MEMORY.
 */
typedef void (*cfoil_glance_done)(void *context, const struct cfoil_glance *glance);
CFOIL_MUST_CHECK enum cfoil_error cfoil_look(struct cfoil_engine *engine,
                                             const uint8_t id[CFOIL_ID_BYTES],
                                             cfoil_glance_done done, void *context,
                                             struct cfoil_glance *glance, bool *ready);

#endif
