/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an execution ended: DESIGN.md's outcome table as a pure function, first row that matches. The
 * gateway tells what happened to the exchange, the route says what its statuses mean.
 */
#ifndef CFOIL_CORE_OUTCOME_H
#define CFOIL_CORE_OUTCOME_H

#include "core/record.h"

#define CFOIL_STATUS_COUNT 600

/* One outcome per status and per class (status / 100); CFOIL_STATE_ABSENT where the route says
 * nothing. */
struct cfoil_outcome_rules {
    uint8_t exact[CFOIL_STATUS_COUNT]; /* enum cfoil_state */
    uint8_t by_class[6];
    enum cfoil_state other_5xx; /* the profile's */
};

/* What is known of the exchange with the backend, over every attempt the proxy made. */
struct cfoil_exchange {
    bool sent;                  /* any byte went to a backend */
    bool complete;              /* a whole response came, also one that the proxy wrote itself */
    bool backend_closed;        /* it ended by the backend's reset or close */
    bool timed_out;             /* a time-out after something was sent */
    bool has_retry_after;       /* the response carries Retry-After */
    uint16_t status;            /* of the upstream's end, before any error page; 0: none */
    enum cfoil_state body_says; /* by the route's body rule; ABSENT: nothing */
};

/*
 * SUCCEEDED, FAILED_FINAL, FAILED or IN_DOUBT; *cause is NONE except for IN_DOUBT. 101 counts as
 * success; another 1xx, or a status out of range, is a truncated exchange.
 */
enum cfoil_state cfoil_outcome_of(const struct cfoil_outcome_rules *rules,
                                  const struct cfoil_exchange *exchange, enum cfoil_cause *cause);

#endif
