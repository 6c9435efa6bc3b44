/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is given out piece by piece and freed as a whole: everything a policy consists of.
 * Starts as {0}. Nothing is ever given back alone.
 */
#ifndef CFOIL_POLICY_POOL_H
#define CFOIL_POLICY_POOL_H

#include <stddef.h>

struct cfoil_pool_chunk;

struct cfoil_pool {
    struct cfoil_pool_chunk *chunks;
};

/* Zeroed memory, aligned for anything, or NULL. */
void *cfoil_pool_take(struct cfoil_pool *pool, size_t bytes);

/* As take, for `count` things; NULL also where the product overflows. */
void *cfoil_pool_array(struct cfoil_pool *pool, size_t count, size_t bytes);

/* A NUL-ended copy, or NULL. */
char *cfoil_pool_text(struct cfoil_pool *pool, const char *text, size_t len);

void cfoil_pool_free(struct cfoil_pool *pool);

#endif
