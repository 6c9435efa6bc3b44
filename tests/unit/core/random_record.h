/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random drafts of every shape that a record can have, from a seed that is printed. The seed is
 * CFOIL_TEST_SEED of the environment, or a fixed one, so that a run can be repeated.
 */
#ifndef CFOIL_TEST_RANDOM_RECORD_H
#define CFOIL_TEST_RANDOM_RECORD_H

#include "core/record.h"

enum { RANDOM_POOL_BYTES = 4096 };

struct random_source {
    uint64_t state;
    uint8_t pool[RANDOM_POOL_BYTES]; /* what the drafts' views point into */
};

void random_init(struct random_source *source);
uint64_t random_next(struct random_source *source);
uint64_t random_below(struct random_source *source, uint64_t bound);
void random_draft(struct random_source *source, struct cfoil_draft *draft);

#endif
