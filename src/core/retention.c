/* SPDX-License-Identifier: Apache-2.0 */
/* Retention arithmetic; the rules are in retention.h and R9. */
#include "core/retention.h"

int64_t cfoil_ms_add(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

void cfoil_draft_at(struct cfoil_draft *draft, enum cfoil_time time, int64_t at_ms)
{
    draft->record.at_ms[time] = at_ms;
    draft->form[time] = CFOIL_TIME_AT;
}

void cfoil_draft_after(struct cfoil_draft *draft, enum cfoil_time time, int64_t duration_ms)
{
    draft->record.at_ms[time] = duration_ms;
    draft->form[time] = CFOIL_TIME_AFTER;
}

static void retain(struct cfoil_draft *draft, int64_t replay_ms, int64_t tombstone_ms)
{
    cfoil_draft_after(draft, CFOIL_TIME_REPLAY_UNTIL, replay_ms);
    cfoil_draft_after(draft, CFOIL_TIME_GONE_AT, cfoil_ms_add(replay_ms, tombstone_ms));
}

static bool asks_for_window(const struct cfoil_terms *terms)
{
    return (terms->semantics == CFOIL_SEMANTICS_WINDOW ||
            terms->semantics == CFOIL_SEMANTICS_WINDOW_KEY) &&
           terms->window_ms > 0;
}

static int64_t next_multiple(int64_t now_ms, int64_t length_ms)
{
    return cfoil_ms_add(now_ms / length_ms * length_ms, length_ms);
}

static int64_t window_end_ms(const struct cfoil_record *record)
{
    int64_t life_ms = record->at_ms[CFOIL_TIME_LIFE];

    return record->window_anchor == CFOIL_ANCHOR_CLOCK ? next_multiple(life_ms, record->window_ms)
                                                       : cfoil_ms_add(life_ms, record->window_ms);
}

void cfoil_window_open(struct cfoil_draft *draft, const struct cfoil_terms *terms)
{
    bool asks = asks_for_window(terms);

    draft->record.window_ms = asks ? terms->window_ms : 0;
    draft->record.window_anchor = asks ? terms->window_anchor : CFOIL_ANCHOR_FIRST;
}

void cfoil_window_take(struct cfoil_draft *draft, const struct cfoil_terms *terms, int64_t now_ms)
{
    bool asks = asks_for_window(terms);

    if (asks && draft->record.window_ms > 0 && now_ms < window_end_ms(&draft->record)) {
        return;
    }
    cfoil_window_open(draft, terms);
    if (asks) {
        cfoil_draft_after(draft, CFOIL_TIME_LIFE, 0);
    }
}

/* The store knows when a life begins that begins with this draft; of another its time is known. */
static void retain_window(struct cfoil_draft *draft)
{
    enum cfoil_time_form form = CFOIL_TIME_AT;
    int64_t value_ms = draft->record.window_ms;

    if (draft->form[CFOIL_TIME_LIFE] == CFOIL_TIME_AT) {
        value_ms = window_end_ms(&draft->record);
    } else {
        form = draft->record.window_anchor == CFOIL_ANCHOR_CLOCK ? CFOIL_TIME_NEXT_MULTIPLE
                                                                 : CFOIL_TIME_AFTER;
    }
    draft->record.at_ms[CFOIL_TIME_REPLAY_UNTIL] = value_ms;
    draft->form[CFOIL_TIME_REPLAY_UNTIL] = form;
    draft->record.at_ms[CFOIL_TIME_GONE_AT] = value_ms;
    draft->form[CFOIL_TIME_GONE_AT] = form;
}

void cfoil_retain_unsettled(struct cfoil_draft *draft, const struct cfoil_terms *terms)
{
    int64_t replay_ms = terms->ttl_ms > terms->lease_ms ? terms->ttl_ms : terms->lease_ms;

    cfoil_draft_after(draft, CFOIL_TIME_LEASE_UNTIL, terms->lease_ms);
    if (draft->record.window_ms > 0) {
        retain(draft, CFOIL_STAY_MS > terms->lease_ms ? CFOIL_STAY_MS : terms->lease_ms, 0);
        return;
    }
    retain(draft, replay_ms, terms->tombstone_ms);
}

void cfoil_retain_settled(struct cfoil_draft *draft, const struct cfoil_terms *terms,
                          enum cfoil_state outcome)
{
    cfoil_draft_at(draft, CFOIL_TIME_LEASE_UNTIL, 0);
    if (draft->record.window_ms > 0) {
        if (outcome == CFOIL_STATE_IN_DOUBT) {
            retain(draft, CFOIL_STAY_MS, 0);
        } else {
            retain_window(draft);
        }
        return;
    }
    if (outcome == CFOIL_STATE_FAILED) {
        retain(draft, terms->failed_ms, 0);
        return;
    }
    retain(draft, terms->ttl_ms, terms->tombstone_ms);
}

void cfoil_retain_issued(struct cfoil_draft *draft, const struct cfoil_terms *terms)
{
    retain(draft, terms->ttl_ms, 0);
}

int64_t cfoil_time_resolve(enum cfoil_time_form form, int64_t value_ms, int64_t now_ms)
{
    switch (form) {
    case CFOIL_TIME_AFTER:
        return cfoil_ms_add(now_ms, value_ms);
    case CFOIL_TIME_NEXT_MULTIPLE:
        return next_multiple(now_ms, value_ms);
    case CFOIL_TIME_AT:
    case CFOIL_TIME_FORM_COUNT:
        break;
    }
    return value_ms;
}
