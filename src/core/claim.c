/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A caller's claim, a renewal, and a prober's report. Verdicts are rows of protocol.def; what a row
 * writes is here.
 */
#include <assert.h>

#include "core/retention.h"
#include "core/step.h"

enum match { MATCH_ANY, MATCH_SAME, MATCH_OTHER };
enum change { CHANGE_KEEP, CHANGE_NEW, CHANGE_TAKE, CHANGE_MARK };

struct claim_row {
    enum cfoil_state state;
    enum match match;
    int in_doubt; /* enum cfoil_in_doubt, or -1 for any */
    enum cfoil_verdict verdict;
    enum change change;
};

#define CFOIL_IN_DOUBT_ANY (-1)

static const struct claim_row claim_rows[] = {
#define CFOIL_CLAIM_ROW(state, match, in_doubt, verdict, change)                                   \
    {CFOIL_STATE_##state, MATCH_##match, CFOIL_IN_DOUBT_##in_doubt, CFOIL_VERDICT_##verdict,       \
     CHANGE_##change},
#include "core/protocol.def"
};

/* A first claim: over nothing, or over an issued token. */
static void write_first_claim(const struct step *step)
{
    struct cfoil_draft *draft = cfoil_step_write_next(step);

    draft->record.fingerprint = step->event->origin.fingerprint;
    draft->record.first_request_id = step->event->origin.first_request_id;
    draft->record.attempt = 1;
    draft->record.fence = 1;
    cfoil_window_open(draft, &step->event->terms);
    cfoil_step_set_running(draft, step->event);
    cfoil_draft_after(draft, CFOIL_TIME_LIFE, 0);
    step->effect->verdict = CFOIL_VERDICT_EXECUTE;
}

/* The next claim of the same life (R1: whoever held it before cannot settle any more). */
static void write_takeover(const struct step *step)
{
    struct cfoil_draft *draft = cfoil_step_write_next(step);

    draft->record.fingerprint = step->event->origin.fingerprint;
    draft->record.attempt++;
    draft->record.fence++;
    cfoil_window_take(draft, &step->event->terms, step->now_ms);
    cfoil_step_set_running(draft, step->event);
    step->effect->verdict = CFOIL_VERDICT_EXECUTE;
}

/* A renewal, by a renew event or by a claim whose own claim is still there though its lease is
 * over. */
static void write_renewal(const struct step *step)
{
    struct cfoil_draft *draft = cfoil_step_write_next(step);

    cfoil_step_set_running(draft, step->event);
}

/* A probe is not a takeover: owner, fence and attempt stay, and the owner may still settle. */
static void write_mark(const struct step *step)
{
    struct cfoil_draft *draft = cfoil_step_write_next(step);

    memcpy(draft->record.prober, step->event->owner, CFOIL_OWNER_BYTES);
    cfoil_draft_after(draft, CFOIL_TIME_PROBE_UNTIL, step->event->terms.probe_lease_ms);
    if (draft->record.at_ms[CFOIL_TIME_IN_DOUBT_SINCE] == 0) {
        cfoil_draft_at(draft, CFOIL_TIME_IN_DOUBT_SINCE,
                       step->record->at_ms[CFOIL_TIME_LEASE_UNTIL]);
    }
    step->effect->verdict = CFOIL_VERDICT_PROBE;
}

static void answer_in_progress(const struct step *step, enum cfoil_time until)
{
    cfoil_step_answer(step, CFOIL_VERDICT_IN_PROGRESS);
    step->effect->retry_after_ms =
        cfoil_step_retry_after(step, step->record->at_ms[until] - step->now_ms);
}

static void claim_mark(const struct step *step)
{
    bool live = cfoil_step_mark_is_set(step->record) &&
                step->now_ms < step->record->at_ms[CFOIL_TIME_PROBE_UNTIL];

    if (live && cfoil_step_mark_is_mine(step)) {
        cfoil_step_answer(step, CFOIL_VERDICT_PROBE);
        step->effect->recognised = true;
        return;
    }
    if (live) {
        answer_in_progress(step, CFOIL_TIME_PROBE_UNTIL);
        return;
    }
    write_mark(step);
}

static void claim_keep(const struct step *step, enum cfoil_verdict verdict)
{
    if (verdict == CFOIL_VERDICT_IN_PROGRESS) {
        answer_in_progress(step, CFOIL_TIME_LEASE_UNTIL);
        return;
    }
    if (verdict == CFOIL_VERDICT_REPLAY && step->record->snapshot.status == 0) {
        verdict = CFOIL_VERDICT_NOT_STORED;
    }
    cfoil_step_answer(step, verdict);
}

static enum match match_of(const struct step *step)
{
    if (step->state == CFOIL_STATE_ABSENT || step->state == CFOIL_STATE_ISSUED ||
        step->state == CFOIL_STATE_TOMBSTONE) {
        return MATCH_ANY;
    }
    bool same = cfoil_fingerprint_same(&step->record->fingerprint, &step->event->origin.fingerprint,
                                       step->event->terms.semantics, &step->effect->body_differs,
                                       &step->effect->other_rules);
    return same ? MATCH_SAME : MATCH_OTHER;
}

static const struct claim_row *claim_row_of(enum cfoil_state state, enum match match,
                                            enum cfoil_in_doubt in_doubt)
{
    for (size_t i = 0; i < sizeof(claim_rows) / sizeof(claim_rows[0]); i++) {
        const struct claim_row *row = &claim_rows[i];
        if (row->state == state && (row->match == MATCH_ANY || row->match == match) &&
            (row->in_doubt == CFOIL_IN_DOUBT_ANY || row->in_doubt == (int)in_doubt)) {
            return row;
        }
    }
    /* protocol.def has a row for every state, match and policy; the exhaustive test proves it. */
    assert(false);
    return NULL;
}

enum cfoil_wake cfoil_wake_of(enum cfoil_state state, enum cfoil_in_doubt in_doubt)
{
    return claim_row_of(state, MATCH_SAME, in_doubt)->change == CHANGE_KEEP ? CFOIL_WAKE_ALL
                                                                            : CFOIL_WAKE_ONE;
}

/* The owner of a running claim asks again, because a reply was lost: it has what it asks for. */
static void claim_again(const struct step *step)
{
    if (step->state == CFOIL_STATE_PROCESSING) {
        cfoil_step_answer(step, CFOIL_VERDICT_EXECUTE);
    } else {
        write_renewal(step);
        step->effect->verdict = CFOIL_VERDICT_EXECUTE;
    }
    step->effect->recognised = true;
}

void cfoil_step_claim(const struct step *step)
{
    enum match match = match_of(step);
    const struct claim_row *row = claim_row_of(step->state, match, step->event->terms.in_doubt);

    if (match == MATCH_SAME && cfoil_step_is_mine(step) &&
        step->record->state == CFOIL_STATE_PROCESSING) {
        claim_again(step);
        return;
    }
    switch (row->change) {
    case CHANGE_NEW:
        write_first_claim(step);
        return;
    case CHANGE_TAKE:
        write_takeover(step);
        return;
    case CHANGE_MARK:
        claim_mark(step);
        return;
    case CHANGE_KEEP:
        claim_keep(step, row->verdict);
        return;
    }
}

void cfoil_step_renew(const struct step *step)
{
    if (step->record == NULL) {
        cfoil_step_refuse(step, CFOIL_E_NOT_FOUND);
    } else if (!cfoil_step_is_mine(step)) {
        cfoil_step_refuse(step, CFOIL_E_NOT_OWNER);
    } else if (step->record->state != CFOIL_STATE_PROCESSING) {
        cfoil_step_refuse(step, CFOIL_E_SETTLED);
    } else {
        write_renewal(step);
    }
}

/* A probe's report counts while the mark is the prober's and the record still in doubt. */
static bool probe_stands(const struct step *step)
{
    return cfoil_step_mark_is_mine(step) && step->state == CFOIL_STATE_IN_DOUBT;
}

/*
 * A backend that knows the request must not be asked to execute it again, also where the record says
 * meanwhile that it may run: an operator released it while the question was on its way.
 */
static bool found_ends(const struct step *step)
{
    return probe_stands(step) ||
           (step->state == CFOIL_STATE_FAILED && match_of(step) == MATCH_SAME);
}

void cfoil_step_probe_found(const struct step *step)
{
    if (step->record == NULL || step->state == CFOIL_STATE_ISSUED) {
        cfoil_step_answer(step, CFOIL_VERDICT_OUTCOME_UNKNOWN);
        return;
    }
    if (!found_ends(step)) {
        cfoil_step_claim(step);
        return;
    }
    cfoil_step_set_ended(cfoil_step_write_next(step), step->event, CFOIL_STATE_SUCCEEDED);
    step->effect->verdict =
        step->event->snapshot.status != 0 ? CFOIL_VERDICT_REPLAY : CFOIL_VERDICT_NOT_STORED;
}

/*
 * "Not found" says nothing of a request that gave a sign of life after the question, nor of a mark that
 * is not the one the question was asked under: every write changes the generation, so that is compared.
 */
static bool absence_is_of_now(const struct step *step)
{
    return step->event->asked_generation == step->record->generation;
}

/*
 * "Not found" is believed at once only where the backend itself ended the exchange; else a slow
 * request may still be on its way, and the last sign of life must have been trust_absent_after old
 * when the backend was asked: judged by a later time, an old answer would pass for a new one.
 */
void cfoil_step_probe_absent(const struct step *step)
{
    if (!probe_stands(step) || !absence_is_of_now(step)) {
        cfoil_step_claim(step);
        return;
    }

    int64_t trusted_at_ms = cfoil_ms_add(step->record->at_ms[CFOIL_TIME_SIGN_OF_LIFE],
                                         step->event->terms.trust_absent_after_ms);
    if (step->record->cause == CFOIL_CAUSE_BACKEND_CLOSED ||
        step->event->asked_ms >= trusted_at_ms) {
        write_takeover(step);
        return;
    }
    cfoil_step_clear_mark(cfoil_step_write_next(step));
    step->effect->verdict = CFOIL_VERDICT_IN_PROGRESS;
    step->effect->retry_after_ms = cfoil_step_retry_after(step, trusted_at_ms - step->now_ms);
}

void cfoil_step_probe_unclear(const struct step *step)
{
    if (!probe_stands(step)) {
        cfoil_step_claim(step);
        return;
    }
    cfoil_step_clear_mark(cfoil_step_write_next(step));
    step->effect->verdict = CFOIL_VERDICT_OUTCOME_UNKNOWN;
}
