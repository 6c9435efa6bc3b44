/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims: begin, the probe's report, and letting go. A claim's memory is its own until the host has
 * freed it *and* no work is left; a freed claim with work left is counted in engine->busy.
 */
#include <stdlib.h>

#include "engine/internal.h"

#define ENDING_BYTES_MAX                                                                           \
    (CFOIL_RECORD_BYTES_MAX - (1U << 20)) /* the rest is the claim's own part */

/* Copies one view to the arena's cursor and points it there. */
static void move_view(struct cfoil_bytes *view, uint8_t **cursor)
{
    if (view->len == 0) {
        *view = cfoil_bytes_of(NULL, 0);
        return;
    }
    memcpy(*cursor, view->data, view->len);
    view->data = *cursor;
    *cursor += view->len;
}

static enum cfoil_error copy_request(struct cfoil_claim *claim,
                                     const struct cfoil_begin_request *request)
{
    struct cfoil_origin *origin = &claim->main.event.origin;

    *origin = request->origin;
    claim->main.event.terms = request->terms;
    origin->attempt = 0;
    origin->fence = 0;
    origin->life_ms = 0;
    size_t bytes = origin->scope.layer.len + origin->scope.tenant.len + origin->scope.endpoint.len +
                   origin->scope.key.len + origin->first_request_id.len;
    if (bytes > claim->arena_capacity) {
        uint8_t *arena = realloc(claim->arena, bytes);
        if (arena == NULL) {
            return CFOIL_E_NO_MEMORY;
        }
        claim->arena = arena;
        claim->arena_capacity = bytes;
    }

    uint8_t *cursor = claim->arena;
    move_view(&origin->scope.layer, &cursor);
    move_view(&origin->scope.tenant, &cursor);
    move_view(&origin->scope.endpoint, &cursor);
    move_view(&origin->scope.key, &cursor);
    move_view(&origin->first_request_id, &cursor);
    return CFOIL_OK;
}

enum cfoil_error cfoil_ending_copy(struct cfoil_ending *ending, struct cfoil_bytes *reason,
                                   uint8_t **arena)
{
    size_t bytes = ending->snapshot.headers.len + ending->snapshot.body.len +
                   ending->resource.type.len + ending->resource.id.len + reason->len;
    if (bytes > ENDING_BYTES_MAX) {
        return CFOIL_E_LIMIT;
    }

    uint8_t *made = malloc(bytes + 1);
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }

    uint8_t *cursor = made;
    move_view(&ending->snapshot.headers, &cursor);
    move_view(&ending->snapshot.body, &cursor);
    move_view(&ending->resource.type, &cursor);
    move_view(&ending->resource.id, &cursor);
    move_view(reason, &cursor);
    *arena = made;
    return CFOIL_OK;
}

void cfoil_event_take_ending(struct cfoil_event *event, const struct cfoil_ending *ending)
{
    event->outcome = ending->outcome;
    event->cause = ending->cause;
    event->snapshot = ending->snapshot;
    event->resource = ending->resource;
}

void cfoil_claim_free_memory(struct cfoil_claim *claim)
{
    cfoil_job_free(&claim->main);
    if (claim->renew != NULL) {
        cfoil_job_free(claim->renew);
        free(claim->renew);
    }
    free(claim->arena);
    free(claim->ending_arena);
    free(claim->early);
    free(claim);
}

/* Keeps a claim's memory for the next one. False: there are spares enough. */
static bool keep_memory(struct cfoil_engine *engine, struct cfoil_claim *claim)
{
    if (engine->spare_count == CFOIL_SPARE_CLAIMS_MAX) {
        return false;
    }
    cfoil_job_trim(&claim->main);
    if (claim->renew != NULL) {
        cfoil_job_trim(claim->renew);
    }
    engine->spares[engine->spare_count++] = claim;
    return true;
}

static void destroy(struct cfoil_claim *claim)
{
    struct cfoil_engine *engine = claim->engine;

    cfoil_timer_disarm(&engine->timers, &claim->pace);
    cfoil_timer_disarm(&engine->timers, &claim->wait);
    engine->claims--;
    free(claim->ending_arena);
    claim->ending_arena = NULL;
    free(claim->early);
    claim->early = NULL;
    bool kept = !engine->closed && keep_memory(engine, claim);
    cfoil_work_remove(&claim->work);
    if (!kept) {
        cfoil_claim_free_memory(claim);
    }
}

/* Memory for a claim, zeroed up to the buffers and the jobs of one before it. NULL: none is left. */
static struct cfoil_claim *take_memory(struct cfoil_engine *engine)
{
    if (engine->spare_count == 0) {
        return calloc(1, sizeof(struct cfoil_claim));
    }

    struct cfoil_claim *claim = engine->spares[--engine->spare_count];
    uint8_t *arena = claim->arena;
    size_t arena_capacity = claim->arena_capacity;
    memset(claim, 0, offsetof(struct cfoil_claim, main));
    claim->arena = arena;
    claim->arena_capacity = arena_capacity;
    return claim;
}

/* An operation of the claim is with the lane. */
static bool is_active(const struct cfoil_claim *claim)
{
    return claim->main.active || (claim->renew != NULL && claim->renew->active);
}

static void claim_drop(struct work *work)
{
    struct cfoil_claim *claim = (struct cfoil_claim *)work;

    if (!is_active(claim)) {
        destroy(claim);
    }
}

void cfoil_claim_release_if_over(struct cfoil_claim *claim)
{
    if (claim->freed && !is_active(claim) &&
        (claim->phase == CLAIM_OVER || claim->phase == CLAIM_ANSWERED)) {
        claim->engine->busy--;
        destroy(claim);
    }
}

/* The host let go of a claim that still holds something: end it as it was told to. */
static void settle_abandoned(struct cfoil_claim *claim)
{
    struct cfoil_ending ending = {.outcome = claim->unsettled, .cause = claim->unsettled_cause};

    free(claim->ending_arena);
    claim->ending_arena = NULL;
    claim->main.event.kind = CFOIL_EVENT_SETTLE;
    cfoil_event_take_ending(&claim->main.event, &ending);
    cfoil_claim_start_settle(claim);
}

/*
 * A prober's mark is withdrawn like a lost cas, not reported as unclear: a report that no longer
 * stands is answered like a claim, and nobody is there to execute one.
 */
void cfoil_claim_abandon(struct cfoil_claim *claim)
{
    bool answered = claim->phase == CLAIM_ANSWERED;
    bool unprotected =
        answered && claim->result.error != CFOIL_OK && claim->unsettled == CFOIL_STATE_IN_DOUBT;

    if (claim->phase == CLAIM_EXECUTING || unprotected) {
        settle_abandoned(claim);
    } else if (claim->phase == CLAIM_PROBING || (answered && claim->main.lost)) {
        cfoil_claim_start_withdraw(claim);
    }
    cfoil_claim_release_if_over(claim);
}

static void read_result(struct cfoil_claim *claim, enum cfoil_error error)
{
    struct job *job = &claim->main;
    struct cfoil_result *result = &claim->result;

    memset(result, 0, sizeof(*result));
    result->error = error;
    result->now_ms = job->now_ms;
    if (error != CFOIL_OK) {
        claim->phase = CLAIM_ANSWERED;
        claim->engine->stats.begin_failed++;
        return;
    }
    result->verdict = job->decision.verdict;
    result->body_differs = job->decision.body_differs;
    result->other_rules = job->decision.other_rules;
    result->retry_after_ms = job->decision.retry_after_ms;
    claim->engine->stats.verdicts[result->verdict]++;
    if (job->has_known) {
        result->record = &job->known;
        result->attempt = job->known.attempt;
        result->fence = job->known.fence;
        result->life_ms = job->known.at_ms[CFOIL_TIME_LIFE];
    }
    claim->phase = CLAIM_ANSWERED;
    if (result->verdict == CFOIL_VERDICT_PROBE) {
        claim->phase = CLAIM_PROBING;
    } else if (result->verdict == CFOIL_VERDICT_EXECUTE) {
        claim->phase = CLAIM_EXECUTING;
        cfoil_claim_arm_renewal(claim);
    }
}

/* A claim's begin or probe report has come to its end. */
static void claim_finished(struct job *job, enum cfoil_error error)
{
    struct cfoil_claim *claim = job->context;

    read_result(claim, error);
    if (claim->early != NULL) {
        cfoil_claim_settle_early(claim);
        return;
    }
    if (!claim->freed) {
        claim->done(claim->done_context, claim);
        return;
    }
    cfoil_claim_abandon(claim);
}

static enum cfoil_error make_claim(struct cfoil_engine *engine,
                                   const struct cfoil_begin_request *request,
                                   struct cfoil_claim **made)
{
    enum cfoil_error error = cfoil_timers_reserve(&engine->timers, 2 * (engine->claims + 1));
    if (error != CFOIL_OK) {
        return error;
    }

    struct cfoil_claim *claim = take_memory(engine);
    if (claim == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    claim->engine = engine;
    engine->claims++;
    cfoil_work_add(engine, &claim->work, claim_drop);
    cfoil_job_init(&claim->main, &claim->work, request->id);
    claim->main.context = claim;
    claim->main.finish = claim_finished;
    claim->pace = (struct timer){.fire = cfoil_claim_pace, .context = claim};
    claim->wait = (struct timer){.fire = cfoil_claim_settle_wait, .context = claim};

    error = copy_request(claim, request);
    if (error == CFOIL_OK) {
        error = cfoil_engine_random(engine, claim->owner, sizeof(claim->owner));
    }
    if (error != CFOIL_OK) {
        destroy(claim);
        return error;
    }
    claim->owner[0] |= 1; /* never all zero */
    *made = claim;
    return CFOIL_OK;
}

/* The digests that the host left to us: from the record that was found, or from the host. */
static enum cfoil_error complete_fingerprint(struct job *job,
                                             const struct cfoil_begin_request *request)
{
    struct cfoil_fingerprint *asked = &job->event.origin.fingerprint;

    if (request->rest == NULL ||
        (job->has_known && cfoil_fingerprint_infer(&job->known.fingerprint, asked))) {
        return CFOIL_OK;
    }
    return request->rest(request->rest_context, asked);
}

enum cfoil_error cfoil_begin(struct cfoil_engine *engine, const struct cfoil_begin_request *request,
                             cfoil_claim_done done, void *context, struct cfoil_claim **claim,
                             bool *ready)
{
    struct cfoil_claim *made = NULL;
    enum cfoil_error error = make_claim(engine, request, &made);
    if (error != CFOIL_OK) {
        return error;
    }

    struct cfoil_event *event = &made->main.event;
    event->kind = CFOIL_EVENT_CLAIM;
    memcpy(event->owner, made->owner, CFOIL_OWNER_BYTES);
    made->done = done;
    made->done_context = context;
    engine->stats.begun++;

    enum cfoil_error found = CFOIL_OK;
    cfoil_job_look_up(&made->main, &found);
    error = complete_fingerprint(&made->main, request);
    if (error != CFOIL_OK) {
        destroy(made);
        return error;
    }
    *ready = true;
    error = found;
    if (found == CFOIL_OK) {
        *ready = cfoil_job_start(&made->main, &error);
    }
    if (*ready && (error == CFOIL_E_LIMIT || cfoil_error_class(error) == CFOIL_CLASS_SYSTEM)) {
        destroy(made);
        return error;
    }
    if (*ready) {
        read_result(made, error);
    }
    *claim = made;
    return CFOIL_OK;
}

const struct cfoil_result *cfoil_claim_result(const struct cfoil_claim *claim)
{
    return &claim->result;
}

const uint8_t *cfoil_claim_owner(const struct cfoil_claim *claim)
{
    return claim->owner;
}

enum cfoil_error cfoil_probe_report(struct cfoil_claim *claim, enum cfoil_probe_answer answer,
                                    const struct cfoil_ending *ending, cfoil_claim_done done,
                                    void *context)
{
    static const enum cfoil_event_kind kinds[] = {
        [CFOIL_PROBE_FOUND] = CFOIL_EVENT_PROBE_FOUND,
        [CFOIL_PROBE_ABSENT] = CFOIL_EVENT_PROBE_ABSENT,
        [CFOIL_PROBE_UNCLEAR] = CFOIL_EVENT_PROBE_UNCLEAR,
    };
    enum cfoil_error error = CFOIL_OK;

    if (claim->phase != CLAIM_PROBING) {
        return CFOIL_E_INVALID;
    }
    if (answer == CFOIL_PROBE_FOUND) {
        struct cfoil_ending found = *ending;
        struct cfoil_bytes reason = cfoil_bytes_of(NULL, 0);
        uint8_t *arena = NULL;
        error = cfoil_ending_copy(&found, &reason, &arena);
        if (error != CFOIL_OK) {
            return error;
        }
        free(claim->ending_arena);
        claim->ending_arena = arena;
        cfoil_event_take_ending(&claim->main.event, &found);
    }
    claim->main.event.kind = kinds[answer];
    claim->main.event.asked_ms = claim->result.now_ms;
    claim->main.event.asked_generation = claim->main.known.generation;
    claim->done = done;
    claim->done_context = context;
    claim->phase = CLAIM_REPORTING;
    /* By a get, so that the decision has the store's now and the callback is never called in here.
     */
    (void)cfoil_job_start_get(&claim->main, &error);
    return CFOIL_OK;
}

void cfoil_claim_free(struct cfoil_claim *claim, enum cfoil_state unsettled, enum cfoil_cause cause)
{
    if (claim == NULL) {
        return;
    }
    claim->freed = true;
    claim->unsettled = unsettled;
    claim->unsettled_cause = cause;
    claim->engine->busy++;
    cfoil_timer_disarm(&claim->engine->timers, &claim->wait);
    if (claim->phase == CLAIM_BEGINNING || claim->phase == CLAIM_REPORTING) {
        return;
    }
    cfoil_claim_abandon(claim);
}
