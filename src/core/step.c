/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that read a step and make its draft; see step.h. */
#include "core/step.h"

#include "core/retention.h"

static bool same_owner(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, CFOIL_OWNER_BYTES) == 0;
}

bool cfoil_step_is_mine(const struct step *step)
{
    return step->record != NULL && same_owner(step->record->owner, step->event->owner);
}

bool cfoil_step_mark_is_mine(const struct step *step)
{
    return step->record != NULL && same_owner(step->record->prober, step->event->owner);
}

bool cfoil_step_mark_is_set(const struct cfoil_record *record)
{
    static const uint8_t none[CFOIL_OWNER_BYTES];
    return !same_owner(record->prober, none);
}

static uint64_t next_generation(uint64_t generation)
{
    return generation >= CFOIL_GENERATION_MAX ? 1 : generation + 1;
}

static uint64_t first_generation(uint64_t entropy)
{
    uint64_t generation = entropy & CFOIL_GENERATION_MAX;
    return generation != 0 ? generation : 1;
}

void cfoil_step_answer(const struct step *step, enum cfoil_verdict verdict)
{
    step->effect->action = CFOIL_ACTION_ANSWER;
    step->effect->verdict = verdict;
}

void cfoil_step_refuse(const struct step *step, enum cfoil_error why)
{
    step->effect->action = CFOIL_ACTION_REFUSE;
    step->effect->error = why;
}

struct cfoil_draft *cfoil_step_write_next(const struct step *step)
{
    struct cfoil_draft *draft = &step->effect->next;

    step->effect->action = CFOIL_ACTION_WRITE;
    if (step->record != NULL) {
        draft->record = *step->record;
        draft->record.generation = next_generation(step->record->generation);
        step->effect->expect = step->record->generation;
    } else {
        draft->record.generation = first_generation(step->event->entropy);
        draft->record.scope = step->event->origin.scope;
        draft->record.fingerprint = step->event->origin.fingerprint;
        draft->record.first_request_id = step->event->origin.first_request_id;
        step->effect->expect = CFOIL_EXPECT_ABSENT;
    }
    cfoil_draft_after(draft, CFOIL_TIME_UPDATED, 0);
    return draft;
}

void cfoil_step_set_owner(struct cfoil_draft *draft, const struct cfoil_event *event)
{
    memcpy(draft->record.owner, event->owner, CFOIL_OWNER_BYTES);
}

void cfoil_step_clear_mark(struct cfoil_draft *draft)
{
    memset(draft->record.prober, 0, CFOIL_OWNER_BYTES);
    cfoil_draft_at(draft, CFOIL_TIME_PROBE_UNTIL, 0);
}

static void clear_ending(struct cfoil_draft *draft)
{
    static const struct cfoil_snapshot no_snapshot;
    static const struct cfoil_resource no_resource;

    draft->record.snapshot = no_snapshot;
    draft->record.resource = no_resource;
    draft->record.reason = cfoil_bytes_of(NULL, 0);
    draft->record.cause = CFOIL_CAUSE_NONE;
    cfoil_draft_at(draft, CFOIL_TIME_IN_DOUBT_SINCE, 0);
}

/* The draft of a running claim: the event's owner holds it, its lease starts now. */
void cfoil_step_set_running(struct cfoil_draft *draft, const struct cfoil_event *event)
{
    draft->record.state = CFOIL_STATE_PROCESSING;
    cfoil_step_set_owner(draft, event);
    cfoil_step_clear_mark(draft);
    clear_ending(draft);
    cfoil_draft_after(draft, CFOIL_TIME_SIGN_OF_LIFE, 0);
    cfoil_retain_unsettled(draft, &event->terms);
}

/* Ends the draft's claim with an outcome. Only what replays keeps a snapshot. */
void cfoil_step_set_ended(struct cfoil_draft *draft, const struct cfoil_event *event,
                          enum cfoil_state outcome)
{
    int64_t in_doubt_since_ms = draft->record.at_ms[CFOIL_TIME_IN_DOUBT_SINCE];

    draft->record.state = outcome;
    cfoil_step_set_owner(draft, event);
    cfoil_step_clear_mark(draft);
    clear_ending(draft);
    cfoil_retain_settled(draft, &event->terms, outcome);
    draft->record.resource = event->resource;
    if (event->kind == CFOIL_EVENT_RESOLVE || event->kind == CFOIL_EVENT_RELEASE) {
        draft->record.reason = event->reason;
    }
    if (outcome == CFOIL_STATE_SUCCEEDED || outcome == CFOIL_STATE_FAILED_FINAL) {
        draft->record.snapshot = event->snapshot;
    }
    if (outcome != CFOIL_STATE_IN_DOUBT) {
        return;
    }
    draft->record.cause = event->cause;
    cfoil_draft_after(draft, CFOIL_TIME_SIGN_OF_LIFE, 0);
    if (in_doubt_since_ms != 0) {
        cfoil_draft_at(draft, CFOIL_TIME_IN_DOUBT_SINCE, in_doubt_since_ms);
    } else {
        cfoil_draft_after(draft, CFOIL_TIME_IN_DOUBT_SINCE, 0);
    }
}

int64_t cfoil_step_retry_after(const struct step *step, int64_t left_ms)
{
    int64_t wait_ms = step->event->terms.retry_after_ms;

    if (left_ms < wait_ms) {
        wait_ms = left_ms;
    }
    return wait_ms > 1 ? wait_ms : 1;
}
