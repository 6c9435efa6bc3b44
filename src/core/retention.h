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

/* The longest retention: what stays until it ends is forgotten after so long without a sign of life. */
#define CFOIL_STAY_MS (INT64_C(3650) * 24 * 3600 * 1000)

/*
 * `semantics: window`. The window belongs to the record, so that whoever ends it (its owner, a
 * prober, an operator) lets it go at the window's end, and not before what is unsettled has ended.
 * open: a draft whose life begins, by terms that ask for a window. take: the next claim of a life; an
 * open window goes on, one that is over, or none, is followed by a new life in a window of its own.
 */
void cfoil_window_open(struct cfoil_draft *draft, const struct cfoil_terms *terms);
void cfoil_window_take(struct cfoil_draft *draft, const struct cfoil_terms *terms, int64_t now_ms);

/*
 * A claim or a renewal: the lease runs, and the record expires ttl after it, never before the
 * lease; then it passes through the tombstone, because a lost owner's claim reads as IN_DOUBT.
 */
void cfoil_retain_unsettled(struct cfoil_draft *draft, const struct cfoil_terms *terms);

/*
 * A settle: ttl, then the tombstone; FAILED: `failed`, and no tombstone; in a window its end. The
 * lease is over. The draft's life stands already.
 */
void cfoil_retain_settled(struct cfoil_draft *draft, const struct cfoil_terms *terms,
                          enum cfoil_state outcome);

/* An issued token: ttl, and no tombstone. */
void cfoil_retain_issued(struct cfoil_draft *draft, const struct cfoil_terms *terms);

/* a + b, at most INT64_MAX; neither is negative. */
int64_t cfoil_ms_add(int64_t a, int64_t b);

#endif
