/* SPDX-License-Identifier: Apache-2.0 */
/* Carries one event to one record (the drawing is in internal.h). Decides nothing: cfoil_step does.
 */
#include <stdlib.h>

#include "engine/internal.h"

static void job_complete(struct cfoil_op *op);

void cfoil_job_init(struct job *job, struct work *work, const uint8_t *id)
{
    uint8_t *current = job->op.current;
    size_t current_capacity = job->op.current_capacity;

    memset(job, 0, offsetof(struct job, decision));
    job->op.current = current;
    job->op.current_capacity = current_capacity;
    job->engine = work->engine;
    job->work = work;
    memcpy(job->op.id, id, CFOIL_ID_BYTES);
    job->op.done = job_complete;
    job->op.context = job;
}

/* Requests wait for their backends for long, and for the store for moments: drafts go round. */
static void take_draft(struct job *job)
{
    struct cfoil_engine *engine = job->engine;

    if (job->draft == NULL && engine->draft_count > 0) {
        const struct spare_draft *spare = &engine->drafts[--engine->draft_count];
        job->draft = spare->bytes;
        job->draft_capacity = spare->capacity;
    }
}

static void give_draft(struct job *job)
{
    struct cfoil_engine *engine = job->engine;

    if (job->draft != NULL && job->draft_capacity <= CFOIL_SPARE_BYTES_MAX &&
        engine->draft_count < CFOIL_SPARE_DRAFTS_MAX) {
        engine->drafts[engine->draft_count++] =
            (struct spare_draft){job->draft, job->draft_capacity};
    } else {
        free(job->draft);
    }
    job->draft = NULL;
    job->draft_capacity = 0;
    job->op.draft = cfoil_bytes_of(NULL, 0); /* a get that follows must not point to another's */
}

void cfoil_job_trim(struct job *job)
{
    if (job->op.current_capacity > CFOIL_SPARE_BYTES_MAX) {
        cfoil_op_free_current(&job->op);
    }
}

void cfoil_job_free(struct job *job)
{
    cfoil_op_free_current(&job->op);
    free(job->draft);
    job->draft = NULL;
}

bool cfoil_error_is_passing(enum cfoil_error error)
{
    switch (cfoil_error_class(error)) {
    case CFOIL_CLASS_RETRY:
    case CFOIL_CLASS_STORE:
    case CFOIL_CLASS_UNKNOWN:
    case CFOIL_CLASS_SYSTEM:
    case CFOIL_CLASS_CORRUPT: /* a store error for its key (R6), until an operator forgets it */
        return true;
    case CFOIL_CLASS_OK:
    case CFOIL_CLASS_INPUT:
    case CFOIL_CLASS_STATE:
        break;
    }
    return false;
}

static void submit(struct job *job, enum cfoil_op_kind kind)
{
    job->op.kind = kind;
    job->op.status = CFOIL_OP_PENDING;
    if (!job->active) {
        job->active = true;
        job->engine->busy++;
    }
    cfoil_lane_submit(job->engine->lane, &job->op);
}

static enum cfoil_error encode(struct job *job, const struct cfoil_draft *next)
{
    take_draft(job);
    enum cfoil_error error =
        cfoil_draft_encode(next, job->draft, job->draft_capacity, &job->op.draft.len);
    if (error != CFOIL_E_BUFFER_SMALL) {
        return error;
    }

    size_t bytes = cfoil_draft_encoded_bytes(next);
    uint8_t *draft = realloc(job->draft, bytes);
    if (draft == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    job->draft = draft;
    job->draft_capacity = bytes;
    return cfoil_draft_encode(next, job->draft, job->draft_capacity, &job->op.draft.len);
}

/* A prober that leaves clears its mark: where the record is gone too, there is none (R12 is about a
 * lost cas only, which must be kept from arriving). */
static bool nothing_to_withdraw(const struct job *job)
{
    return job->event.kind == CFOIL_EVENT_WITHDRAW && !job->lost && !job->has_known;
}

/*
 * One step. True: the job is finished, with *error. Randomness is drawn anew for every record made,
 * also by the same job: what an earlier lost cas made must not share a generation with it (R11).
 */
static bool advance(struct job *job, enum cfoil_error *error)
{
    *error = CFOIL_OK;
    if (nothing_to_withdraw(job)) {
        return true;
    }
    if (!job->has_known) {
        *error = cfoil_engine_random(job->engine, &job->event.entropy, sizeof(job->event.entropy));
        if (*error != CFOIL_OK) {
            return true;
        }
    }
    struct cfoil_effect *effect = &job->engine->effect;
    cfoil_step(job->has_known ? &job->known : NULL, job->now_ms, &job->event, effect);
    job->decision = (struct decision){effect->verdict, effect->body_differs, effect->other_rules,
                                      effect->retry_after_ms};
    *error = effect->error;
    if (effect->action != CFOIL_ACTION_WRITE) {
        return true;
    }
    *error = encode(job, &effect->next);
    if (*error != CFOIL_OK) {
        give_draft(job);
        return true;
    }
    job->known = effect->next.record;
    memcpy(job->form, effect->next.form, sizeof(job->form));
    job->has_known = false;
    job->op.draft.data = job->draft;
    job->op.expect = effect->expect;
    submit(job, CFOIL_OP_CAS);
    return false;
}

/* Takes what the store told us of the record. */
static enum cfoil_error take_current(struct job *job)
{
    job->now_ms = job->op.now_ms;
    job->has_known = false;
    if (job->op.current_bytes == 0) {
        return CFOIL_OK;
    }

    enum cfoil_error error =
        cfoil_record_decode(cfoil_bytes_of(job->op.current, job->op.current_bytes), &job->known);
    job->has_known = error == CFOIL_OK;
    return error;
}

/* The record as it stands after our cas was applied. */
static void take_applied(struct job *job)
{
    int64_t *at_ms = job->known.at_ms;

    job->now_ms = job->op.now_ms;
    job->has_known = true;
    for (size_t i = 0; i < CFOIL_TIME_COUNT; i++) {
        at_ms[i] = cfoil_time_resolve(job->form[i], at_ms[i], job->op.now_ms);
    }
}

static void reset(struct job *job)
{
    job->cas_attempts = 0;
    job->unknown_attempts = 0;
    job->op.overwrite_corrupt = false;
}

void cfoil_job_look_up(struct job *job, enum cfoil_error *error)
{
    *error = CFOIL_OK;
    if (cfoil_lane_lookup(job->engine->lane, &job->op) && job->op.status == CFOIL_OP_CURRENT) {
        *error = take_current(job);
    }
}

bool cfoil_job_start(struct job *job, enum cfoil_error *error)
{
    reset(job);
    return advance(job, error);
}

bool cfoil_job_start_get(struct job *job, enum cfoil_error *error)
{
    reset(job);
    *error = CFOIL_OK;
    submit(job, CFOIL_OP_GET);
    return false;
}

/*
 * Where the damage is in the payload only, the store still compares by the header's generation: the
 * header is then all that is known of the record.
 */
static void take_header(struct job *job)
{
    struct cfoil_record_head head;

    job->has_known = false;
    if (job->op.status != CFOIL_OP_CURRENT ||
        cfoil_record_peek(cfoil_bytes_of(job->op.current, job->op.current_bytes), &head) !=
            CFOIL_OK) {
        return;
    }
    memset(&job->known, 0, sizeof(job->known));
    job->known.generation = head.generation;
    job->known.state = head.state;
    job->known.form = head.form;
    job->known.at_ms[CFOIL_TIME_LIFE] = head.life_ms;
    job->known.at_ms[CFOIL_TIME_LEASE_UNTIL] = head.lease_until_ms;
    job->known.at_ms[CFOIL_TIME_REPLAY_UNTIL] = head.replay_until_ms;
    job->known.at_ms[CFOIL_TIME_GONE_AT] = head.gone_at_ms;
    job->has_known = true;
}

/* A record that does not decode can still be forgotten: the core writes a gone one over it. */
static bool forget_corrupt(struct job *job, enum cfoil_error *error)
{
    if (job->event.kind != CFOIL_EVENT_FORGET || job->op.overwrite_corrupt ||
        cfoil_error_class(*error) != CFOIL_CLASS_CORRUPT) {
        return true;
    }
    job->op.overwrite_corrupt = true;
    job->event.force = true;
    take_header(job);
    return advance(job, error);
}

/* A store that does not say why it failed must not read as one that served (R6). */
static enum cfoil_error error_of(const struct cfoil_op *op)
{
    return op->error != CFOIL_OK ? op->error : CFOIL_E_STORE_UNAVAILABLE;
}

/* True: the job is finished, with *error. */
static bool complete(struct job *job, enum cfoil_error *error)
{
    switch (job->op.status) {
    case CFOIL_OP_APPLIED:
        take_applied(job);
        *error = CFOIL_OK;
        return true;
    case CFOIL_OP_CURRENT:
        *error = take_current(job);
        if (*error != CFOIL_OK) {
            return forget_corrupt(job, error);
        }
        *error = CFOIL_E_CONTENDED;
        if (job->op.kind == CFOIL_OP_CAS && ++job->cas_attempts >= CFOIL_CAS_ATTEMPTS_MAX) {
            return true;
        }
        return advance(job, error);
    case CFOIL_OP_UNKNOWN:
        if (job->op.kind == CFOIL_OP_CAS) {
            job->lost = true;
            job->lost_expect = job->op.expect;
        }
        *error = error_of(&job->op);
        if (++job->unknown_attempts > CFOIL_UNKNOWN_ATTEMPTS_MAX) {
            return true;
        }
        submit(job, CFOIL_OP_GET);
        return false;
    case CFOIL_OP_FAILED:
    case CFOIL_OP_PENDING:
        break;
    }
    *error = error_of(&job->op);
    return forget_corrupt(job, error);
}

static void job_complete(struct cfoil_op *op)
{
    struct job *job = op->context;
    enum cfoil_error error = CFOIL_OK;

    if (job->engine->closed) {
        job->active = false;
        job->work->drop(job->work);
        return;
    }
    if (!complete(job, &error)) {
        return;
    }
    job->active = false;
    job->engine->busy--;
    give_draft(job);
    job->finish(job, error);
}
