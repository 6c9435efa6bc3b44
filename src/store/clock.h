/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store time of an embedded store (R7): the time since boot plus an offset kept in the store.
 *
 *     now = max(boot_ms + offset, the latest now given)
 *
 * The wall clock is read once per boot, when the offset is anchored, and never moves store time
 * back: a new offset starts at least CFOIL_CLOCK_MARGIN_MS after the last time the store wrote down.
 * A store writes its time down at least once per margin in which it writes at all, so that no time
 * that ever stood in a record comes again. Owns the arithmetic, not the place the offset is kept.
 *
 * Threads: now may be called from any number of threads; the rest from one.
 */
#ifndef CFOIL_STORE_CLOCK_H
#define CFOIL_STORE_CLOCK_H

#include "store/store.h"

#include <stdatomic.h>

#define CFOIL_BOOT_ID_BYTES   48 /* zero-padded; the kernel's has 36 */
#define CFOIL_CLOCK_MARGIN_MS 1000
#define CFOIL_CLOCK_MS_MAX    (INT64_MAX / 4) /* a stored time outside 0..this is not ours */

struct cfoil_timebase {
    struct cfoil_clock source;
    char boot_id[CFOIL_BOOT_ID_BYTES];
    _Atomic int64_t offset_ms;
    _Atomic int64_t latest_ms;
};

/* Fills missing members of the clock with the system's. Errors: SYSTEM (no boot id). */
CFOIL_MUST_CHECK enum cfoil_error cfoil_timebase_init(struct cfoil_timebase *time,
                                                      const struct cfoil_clock *clock);

/* Anchors at the wall clock; high_water_ms is the last time written down, 0 in a new store. */
void cfoil_timebase_anchor(struct cfoil_timebase *time, int64_t high_water_ms);

/* Takes over an offset that was anchored in this boot. */
void cfoil_timebase_adopt(struct cfoil_timebase *time, int64_t offset_ms, int64_t high_water_ms);

/* The time this offset would give right now, without the guard against going back. */
int64_t cfoil_timebase_under(const struct cfoil_timebase *time, int64_t offset_ms);

int64_t cfoil_timebase_now(struct cfoil_timebase *time);

#endif
