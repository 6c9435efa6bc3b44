/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention and lease arithmetic (R9). Fills a draft's times as durations from the store's now; all
 * in ms, sums saturate. Nothing here reads a clock.
 */
#ifndef CFOIL_CORE_RETENTION_H
#define CFOIL_CORE_RETENTION_H

#include "core/protocol.h"

/* Sets one time of a draft. */
void cfoil_draft_at(struct cfoil_draft *draft, enum cfoil_time time, int64_t at_ms);
void cfoil_draft_after(struct cfoil_draft *draft, enum cfoil_time time, int64_t duration_ms);

/*
 * A claim or a renewal: the lease runs, and the record expires ttl after it, never before the
 * lease; then it passes through the tombstone, because a lost owner's claim reads as IN_DOUBT.
 */
void cfoil_retain_unsettled(struct cfoil_draft *draft, const struct cfoil_terms *terms);

/* A settle: ttl, then the tombstone; FAILED: `failed`, and no tombstone. The lease is over. */
void cfoil_retain_settled(struct cfoil_draft *draft, const struct cfoil_terms *terms,
                          enum cfoil_state outcome);

/* An issued token: ttl, and no tombstone. */
void cfoil_retain_issued(struct cfoil_draft *draft, const struct cfoil_terms *terms);

/* a + b, at most INT64_MAX; neither is negative. */
int64_t cfoil_ms_add(int64_t a, int64_t b);

#endif
