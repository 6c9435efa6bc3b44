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

void cfoil_retain_unsettled(struct cfoil_draft *draft, const struct cfoil_terms *terms)
{
    int64_t replay_ms = terms->ttl_ms > terms->lease_ms ? terms->ttl_ms : terms->lease_ms;

    cfoil_draft_after(draft, CFOIL_TIME_LEASE_UNTIL, terms->lease_ms);
    retain(draft, replay_ms, terms->tombstone_ms);
}

void cfoil_retain_settled(struct cfoil_draft *draft, const struct cfoil_terms *terms,
                          enum cfoil_state outcome)
{
    cfoil_draft_at(draft, CFOIL_TIME_LEASE_UNTIL, 0);
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
        return cfoil_ms_add(now_ms / value_ms * value_ms, value_ms);
    case CFOIL_TIME_AT:
    case CFOIL_TIME_FORM_COUNT:
        break;
    }
    return value_ms;
}
