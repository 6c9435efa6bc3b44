/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How old a record was when its key came again: a histogram whose bounds are those that a policy's
 * windows and retentions are likely to have. The gateway counts and logs it per route, `counterfoil
 * check --observed` reads it; both take the bounds' names from here.
 */
#ifndef CFOIL_CORE_AGES_H
#define CFOIL_CORE_AGES_H

#include "core/bytes.h"

#define CFOIL_AGES_COUNT 12

/* count[i]: repeats of an age below bound i and not below the one before it. Starts zeroed. */
struct cfoil_ages {
    uint64_t count[CFOIL_AGES_COUNT];
};

/* A negative age counts as 0: store time does not go back, but the record may be of another store. */
void cfoil_ages_add(struct cfoil_ages *ages, int64_t age_ms);

/* The bound in ms; INT64_MAX for the last one. `index` is below CFOIL_AGES_COUNT. */
int64_t cfoil_ages_bound_ms(size_t index);

/* The bound as a policy would write it ("10m"); "later" for the last one. Static. */
const char *cfoil_ages_name(size_t index);

#endif
