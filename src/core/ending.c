/* SPDX-License-Identifier: Apache-2.0 */
/* How claims end: by their owner, an operator or the engine; and the handing out of a token. */
#include "core/retention.h"
#include "core/step.h"

static bool outcome_is_valid(enum cfoil_state outcome)
{
    return outcome == CFOIL_STATE_SUCCEEDED || outcome == CFOIL_STATE_FAILED_FINAL ||
           outcome == CFOIL_STATE_FAILED || outcome == CFOIL_STATE_IN_DOUBT;
}

/* A record that an owner or the engine has to make where there is none (failover, withdrawal). */
static void write_absent_ended(const struct step *step, enum cfoil_state outcome)
{
    struct cfoil_draft *draft = cfoil_step_write_next(step);
    const struct cfoil_origin *origin = &step->event->origin;

    draft->record.attempt = origin->attempt != 0 ? origin->attempt : 1;
    draft->record.fence = origin->fence != 0 ? origin->fence : 1;
    if (origin->life_ms != 0) {
        cfoil_draft_at(draft, CFOIL_TIME_LIFE, origin->life_ms);
    } else {
        cfoil_draft_after(draft, CFOIL_TIME_LIFE, 0);
    }
    /* What the engine ends was no request: it has to keep out a late cas, whatever the window. */
    if (step->event->kind == CFOIL_EVENT_SETTLE) {
        cfoil_window_open(draft, &step->event->terms);
    }
    cfoil_step_set_ended(draft, step->event, outcome);
    cfoil_draft_after(draft, CFOIL_TIME_SIGN_OF_LIFE, 0);
}

/* R2: decided on a record whose owner is the caller's, lease over or not. */
void cfoil_step_settle(const struct step *step)
{
    enum cfoil_state outcome = step->event->outcome;

    if (!outcome_is_valid(outcome)) {
        cfoil_step_refuse(step, CFOIL_E_INVALID);
    } else if (step->record == NULL) {
        write_absent_ended(step, outcome);
    } else if (!cfoil_step_is_mine(step) || step->record->state == CFOIL_STATE_ISSUED) {
        cfoil_step_refuse(step, CFOIL_E_NOT_OWNER);
    } else if (step->record->state == outcome) {
        cfoil_step_answer(step, CFOIL_VERDICT_NONE);
        step->effect->recognised = true;
    } else if (cfoil_state_is_settled(step->record->state)) {
        cfoil_step_refuse(step, CFOIL_E_SETTLED);
    } else {
        cfoil_step_set_ended(cfoil_step_write_next(step), step->event, outcome);
    }
}

void cfoil_step_resolve(const struct step *step)
{
    enum cfoil_state outcome = step->event->outcome;

    if (!outcome_is_valid(outcome) || outcome == CFOIL_STATE_IN_DOUBT) {
        cfoil_step_refuse(step, CFOIL_E_INVALID);
    } else if (step->record == NULL || step->state == CFOIL_STATE_ISSUED) {
        cfoil_step_refuse(step, CFOIL_E_NOT_FOUND);
    } else if (step->state == CFOIL_STATE_PROCESSING) {
        cfoil_step_refuse(step, CFOIL_E_LEASE_LIVE);
    } else if (step->state == CFOIL_STATE_IN_DOUBT || step->state == CFOIL_STATE_FAILED) {
        cfoil_step_set_ended(cfoil_step_write_next(step), step->event, outcome);
    } else {
        cfoil_step_refuse(step, CFOIL_E_SETTLED);
    }
}

void cfoil_step_release(const struct step *step)
{
    if (step->record == NULL || step->state == CFOIL_STATE_ISSUED) {
        cfoil_step_refuse(step, CFOIL_E_NOT_FOUND);
    } else if (step->state == CFOIL_STATE_PROCESSING && !step->event->force) {
        cfoil_step_refuse(step, CFOIL_E_LEASE_LIVE);
    } else if (step->state == CFOIL_STATE_PROCESSING || step->state == CFOIL_STATE_IN_DOUBT) {
        cfoil_step_set_ended(cfoil_step_write_next(step), step->event, CFOIL_STATE_FAILED);
    } else {
        cfoil_step_refuse(step, CFOIL_E_SETTLED);
    }
}

/*
 * The key is unknown again at once; the owner changes, so that a late one is refused. With force a
 * gone record is written even where none can be read: that is how a corrupt one ends (R6).
 */
void cfoil_step_forget(const struct step *step)
{
    if (step->record == NULL && !step->event->force) {
        cfoil_step_refuse(step, CFOIL_E_NOT_FOUND);
        return;
    }

    struct cfoil_draft *draft = cfoil_step_write_next(step);
    if (step->record == NULL) {
        draft->record.state = CFOIL_STATE_FAILED;
    }
    cfoil_step_set_owner(draft, step->event);
    cfoil_draft_after(draft, CFOIL_TIME_REPLAY_UNTIL, 0);
    cfoil_draft_after(draft, CFOIL_TIME_GONE_AT, 0);
}

/*
 * R12: after this is applied, the lost cas of the same owner can never apply: it is ended if it
 * did, and what it expected is gone if it did not.
 */
void cfoil_step_withdraw(const struct step *step)
{
    if (step->record == NULL) {
        write_absent_ended(step, CFOIL_STATE_FAILED);
    } else if (cfoil_step_is_mine(step) && step->record->state == CFOIL_STATE_PROCESSING) {
        cfoil_step_set_ended(cfoil_step_write_next(step), step->event, CFOIL_STATE_FAILED);
    } else if (cfoil_step_is_mine(step)) {
        cfoil_step_answer(step, CFOIL_VERDICT_NONE);
    } else if (cfoil_step_mark_is_mine(step)) {
        cfoil_step_clear_mark(cfoil_step_write_next(step));
    } else if (step->record->generation == step->event->lost_expect) {
        cfoil_step_write_next(step);
    } else {
        cfoil_step_answer(step, CFOIL_VERDICT_NONE);
    }
}

/* Before a guard changes hands its primary gets a new generation, so that a slow claimer's cas
 * fails. */
void cfoil_step_close(const struct step *step)
{
    if (step->record == NULL) {
        write_absent_ended(step, CFOIL_STATE_FAILED);
    } else if (step->state == CFOIL_STATE_FAILED || step->state == CFOIL_STATE_ISSUED) {
        struct cfoil_draft *draft = cfoil_step_write_next(step);

        cfoil_step_set_ended(draft, step->event, CFOIL_STATE_FAILED);
        if (step->state == CFOIL_STATE_ISSUED) {
            cfoil_draft_after(draft, CFOIL_TIME_LIFE, 0); /* else the next claim has life 0 */
        }
    } else {
        cfoil_step_refuse(step, CFOIL_E_EXISTS);
    }
}

void cfoil_step_issue(const struct step *step)
{
    if (step->record != NULL) {
        cfoil_step_refuse(step, CFOIL_E_EXISTS);
        return;
    }

    struct cfoil_draft *draft = cfoil_step_write_next(step);
    draft->record.state = CFOIL_STATE_ISSUED;
    cfoil_step_set_owner(draft, step->event);
    cfoil_retain_issued(draft, &step->event->terms);
}
