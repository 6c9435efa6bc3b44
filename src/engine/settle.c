/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a claim that executes: renewals, its settle, and the work that goes on in the
 * background after the host has its answer or has left (R3, R4, R8, R12).
 */
#include <stdlib.h>

#include "engine/internal.h"

#define RENEWALS_PER_LEASE 3

void cfoil_claim_arm_renewal(struct cfoil_claim *claim)
{
    int64_t every_ms = claim->main.event.terms.lease_ms / RENEWALS_PER_LEASE;

    cfoil_timer_arm(&claim->engine->timers, &claim->pace,
                    cfoil_engine_now_ms(claim->engine) + (every_ms > 0 ? every_ms : 1));
}

/* The claim's job for renewals, made for the first one. NULL: no memory is left. */
static struct job *renewal_of(struct cfoil_claim *claim)
{
    if (claim->renew == NULL) {
        claim->renew = calloc(1, sizeof(*claim->renew));
        if (claim->renew == NULL) {
            return NULL;
        }
    }
    if (!claim->renew->active) {
        cfoil_job_init(claim->renew, &claim->work, claim->main.op.id);
        claim->renew->context = claim;
        claim->renew->finish = cfoil_claim_renewed;
    }
    return claim->renew;
}

static void start_renewal(struct cfoil_claim *claim)
{
    struct job *renew = renewal_of(claim);
    enum cfoil_error error = CFOIL_OK;

    if (renew == NULL || renew->active) {
        cfoil_claim_arm_renewal(claim);
        return;
    }
    renew->event = claim->main.event;
    renew->event.kind = CFOIL_EVENT_RENEW;
    renew->known = claim->main.known;
    renew->has_known = claim->main.has_known;
    renew->now_ms = claim->main.now_ms;
    if (cfoil_job_start(renew, &error)) {
        cfoil_claim_renewed(renew, error);
    }
}

/*
 * The record as the renewal left it. The views stay the claim's own: the renewal's lie in memory
 * that its next operation hands to the store.
 */
static void take_renewal(struct cfoil_claim *claim, const struct job *renew)
{
    struct cfoil_record *known = &claim->main.known;

    known->generation = renew->known.generation;
    memcpy(known->at_ms, renew->known.at_ms, sizeof(known->at_ms));
    claim->main.now_ms = renew->now_ms;
}

void cfoil_claim_renewed(struct job *job, enum cfoil_error error)
{
    struct cfoil_claim *claim = job->context;
    struct cfoil_engine *engine = claim->engine;

    if (claim->phase != CLAIM_EXECUTING) {
        cfoil_claim_release_if_over(claim);
        return;
    }
    if (error == CFOIL_OK) {
        engine->stats.renewed++;
        take_renewal(claim, job);
    } else if (!cfoil_error_is_passing(error)) {
        engine->stats.renew_refused++;
        cfoil_engine_log(engine, error, job->op.id, "a renewal was refused");
        return;
    }
    cfoil_claim_arm_renewal(claim);
}

static void pause_and_retry(struct cfoil_claim *claim, enum cfoil_error error, const char *what)
{
    if (claim->pause_ms == 0) {
        cfoil_engine_log(claim->engine, error, claim->main.op.id, what);
    }
    claim->pause_ms = claim->pause_ms == 0 ? CFOIL_BACKGROUND_RETRY_MS : claim->pause_ms * 2;
    if (claim->pause_ms > CFOIL_BACKGROUND_RETRY_MAX_MS) {
        claim->pause_ms = CFOIL_BACKGROUND_RETRY_MAX_MS;
    }
    cfoil_timer_arm(&claim->engine->timers, &claim->pace,
                    cfoil_engine_now_ms(claim->engine) + claim->pause_ms);
}

static void tell_settled(struct cfoil_claim *claim, enum cfoil_settle_status status)
{
    cfoil_timer_disarm(&claim->engine->timers, &claim->wait);
    if (claim->freed) {
        cfoil_claim_release_if_over(claim);
        return;
    }
    if (!claim->waited) {
        claim->waited = true;
        claim->settle_done(claim->done_context, claim, status);
    }
}

static void settle_finished(struct job *job, enum cfoil_error error)
{
    struct cfoil_claim *claim = job->context;
    struct cfoil_engine *engine = claim->engine;

    if (cfoil_error_is_passing(error)) {
        if (claim->pause_ms == 0) {
            engine->stats.settle_background++;
        }
        pause_and_retry(claim, error, "a settle goes on in the background");
        return;
    }
    claim->phase = CLAIM_OVER;
    engine->busy--;
    if (error == CFOIL_OK) {
        engine->stats.settled++;
        tell_settled(claim, CFOIL_SETTLE_DURABLE);
        return;
    }
    engine->stats.settle_refused++;
    cfoil_engine_log(engine, error, job->op.id, "a late owner's settle was refused");
    tell_settled(claim, CFOIL_SETTLE_REFUSED);
}

/* What the record was given when it was claimed, for a settle that finds none (failover). */
static void remember_claim(struct cfoil_claim *claim)
{
    struct cfoil_origin *origin = &claim->main.event.origin;

    if (claim->result.error == CFOIL_OK) {
        origin->attempt = claim->result.attempt;
        origin->fence = claim->result.fence;
        origin->life_ms = claim->result.life_ms;
    }
}

void cfoil_claim_start_settle(struct cfoil_claim *claim)
{
    enum cfoil_error error = CFOIL_OK;

    remember_claim(claim);
    claim->phase = CLAIM_SETTLING;
    claim->engine->busy++; /* until settle_finished knows its end, also while it pauses */
    claim->main.finish = settle_finished;
    cfoil_timer_disarm(&claim->engine->timers, &claim->pace);
    if (claim->result.error != CFOIL_OK) {
        /* Executed without protection: read first, the record may be ours by now (R12). */
        (void)cfoil_job_start_get(&claim->main, &error);
        return;
    }
    if (cfoil_job_start(&claim->main, &error)) {
        /* Refused at once, or out of memory: told from a tick, never from inside this call. */
        cfoil_timer_arm(&claim->engine->timers, &claim->pace, cfoil_engine_now_ms(claim->engine));
    }
}

static void withdraw_finished(struct job *job, enum cfoil_error error)
{
    struct cfoil_claim *claim = job->context;

    if (cfoil_error_is_passing(error)) {
        pause_and_retry(claim, error, "a withdrawal goes on in the background");
        return;
    }
    claim->phase = CLAIM_OVER;
    claim->engine->stats.withdrawn += job->lost;
    cfoil_claim_release_if_over(claim);
}

void cfoil_claim_start_withdraw(struct cfoil_claim *claim)
{
    enum cfoil_error error = CFOIL_OK;

    claim->phase = CLAIM_WITHDRAWING;
    claim->main.event.kind = CFOIL_EVENT_WITHDRAW;
    claim->main.event.lost_expect = claim->main.lost_expect;
    claim->main.finish = withdraw_finished;
    (void)cfoil_job_start_get(&claim->main, &error);
}

/* The pace timer: a renewal is due, or a background attempt. */
void cfoil_claim_pace(struct timer *timer)
{
    struct cfoil_claim *claim = timer->context;
    enum cfoil_error error = CFOIL_OK;

    if (claim->phase == CLAIM_EXECUTING) {
        start_renewal(claim);
    } else if (claim->phase == CLAIM_SETTLING || claim->phase == CLAIM_WITHDRAWING) {
        (void)cfoil_job_start_get(&claim->main, &error);
    }
}

void cfoil_claim_settle_wait(struct timer *timer)
{
    struct cfoil_claim *claim = timer->context;

    tell_settled(claim, CFOIL_SETTLE_UNCONFIRMED);
}

/*
 * Executing; executed without protection because the store did not serve (open); or because it had
 * not answered yet, and may still do.
 */
static bool may_settle(const struct cfoil_claim *claim)
{
    return claim->phase == CLAIM_EXECUTING ||
           (claim->phase == CLAIM_BEGINNING && claim->early == NULL) ||
           (claim->phase == CLAIM_ANSWERED && claim->result.error != CFOIL_OK);
}

static void begin_settle(struct cfoil_claim *claim, const struct cfoil_ending *ending)
{
    claim->main.event.kind = CFOIL_EVENT_SETTLE;
    cfoil_event_take_ending(&claim->main.event, ending);
    cfoil_claim_start_settle(claim);
}

/* The begin of a claim that was settled meanwhile has its answer. */
void cfoil_claim_settle_early(struct cfoil_claim *claim)
{
    struct cfoil_ending ending = *claim->early;

    free(claim->early);
    claim->early = NULL;
    if (may_settle(claim)) {
        begin_settle(claim, &ending);
        return;
    }
    claim->engine->stats.settle_refused++;
    if (claim->freed) {
        cfoil_claim_abandon(claim);
    } else {
        tell_settled(claim, CFOIL_SETTLE_REFUSED);
    }
}

enum cfoil_error cfoil_settle(struct cfoil_claim *claim, const struct cfoil_ending *ending,
                              cfoil_settle_done done, void *context)
{
    struct cfoil_ending copy = *ending;
    struct cfoil_bytes reason = cfoil_bytes_of(NULL, 0);
    uint8_t *arena = NULL;

    if (!may_settle(claim)) {
        return CFOIL_E_INVALID;
    }
    enum cfoil_error error = cfoil_ending_copy(&copy, &reason, &arena);
    if (error != CFOIL_OK) {
        return error;
    }
    if (claim->phase == CLAIM_BEGINNING) {
        claim->early = malloc(sizeof(*claim->early));
        if (claim->early == NULL) {
            free(arena);
            return CFOIL_E_NO_MEMORY;
        }
        *claim->early = copy;
    }
    free(claim->ending_arena);
    claim->ending_arena = arena;
    claim->settle_done = done;
    claim->done_context = context;
    cfoil_timer_arm(&claim->engine->timers, &claim->wait,
                    cfoil_engine_now_ms(claim->engine) + claim->engine->settle_wait_ms);
    if (claim->early == NULL) {
        begin_settle(claim, &copy);
    }
    return CFOIL_OK;
}
