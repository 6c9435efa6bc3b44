/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome table of DESIGN.md section 3, top to bottom. */
#include "core/outcome.h"

static enum cfoil_state in_doubt(enum cfoil_cause why, enum cfoil_cause *cause)
{
    *cause = why;
    return CFOIL_STATE_IN_DOUBT;
}

/* What the route itself says of a status, or of a body. ABSENT: nothing. */
static enum cfoil_state route_says(enum cfoil_state state, enum cfoil_cause *cause)
{
    *cause = state == CFOIL_STATE_IN_DOUBT ? CFOIL_CAUSE_STATUS : CFOIL_CAUSE_NONE;
    return state;
}

/* An interim response ends no exchange; 101 does, by ending HTTP on the connection. */
static bool is_final(uint16_t status)
{
    return status == 101 || (status >= 200 && status < CFOIL_STATUS_COUNT);
}

static bool is_declined(uint16_t status, bool has_retry_after)
{
    return status == 401 || status == 403 || status == 408 || status == 425 || status == 429 ||
           (status == 503 && has_retry_after);
}

static enum cfoil_state outcome_by_default(const struct cfoil_outcome_rules *rules,
                                           const struct cfoil_exchange *exchange,
                                           enum cfoil_cause *cause)
{
    uint16_t status = exchange->status;

    if (status == 502 || status == 504) {
        return in_doubt(CFOIL_CAUSE_BAD_GATEWAY, cause);
    }
    if (status < 400) {
        return CFOIL_STATE_SUCCEEDED;
    }
    if (is_declined(status, exchange->has_retry_after)) {
        return CFOIL_STATE_FAILED;
    }
    if (status < 500) {
        return CFOIL_STATE_FAILED_FINAL;
    }
    return route_says(rules->other_5xx, cause);
}

enum cfoil_state cfoil_outcome_of(const struct cfoil_outcome_rules *rules,
                                  const struct cfoil_exchange *exchange, enum cfoil_cause *cause)
{
    uint16_t status = exchange->status;

    *cause = CFOIL_CAUSE_NONE;
    if (!exchange->sent) {
        return CFOIL_STATE_FAILED;
    }
    /* The time-out first: an attempt that timed out may still run, whatever became of the next. */
    if (exchange->timed_out) {
        return in_doubt(CFOIL_CAUSE_TIMEOUT, cause);
    }
    if (exchange->backend_closed) {
        return in_doubt(CFOIL_CAUSE_BACKEND_CLOSED, cause);
    }
    if (!exchange->complete || !is_final(status)) {
        return in_doubt(CFOIL_CAUSE_OWNER_LOST, cause);
    }
    if (rules->exact[status] != CFOIL_STATE_ABSENT) {
        return route_says((enum cfoil_state)rules->exact[status], cause);
    }
    if (exchange->body_says != CFOIL_STATE_ABSENT) {
        return route_says(exchange->body_says, cause);
    }
    if (rules->by_class[status / 100] != CFOIL_STATE_ABSENT) {
        return route_says((enum cfoil_state)rules->by_class[status / 100], cause);
    }
    return outcome_by_default(rules, exchange, cause);
}
