/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading one scalar by its field's syntax. What was read goes into the node (number, pattern);
 * what is wrong, and how to fix it, into `why`, without the field's name.
 */
#ifndef CFOIL_POLICY_SCALAR_H
#define CFOIL_POLICY_SCALAR_H

#include "policy/tree.h"

#define CFOIL_WHY_BYTES 320

/* False: why[0] is 0 if memory ran out, otherwise it says what is wrong. */
bool cfoil_scalar_read(struct cfoil_pool *pool, struct cfoil_node *node, enum cfoil_field field,
                       char why[CFOIL_WHY_BYTES]);

/* A duration as policies write it, for the command line: "90s". False: `why` says what is wrong. */
bool cfoil_duration_read(const char *text, int64_t min_ms, int64_t max_ms, int64_t *ms,
                         char why[CFOIL_WHY_BYTES]);

/* "90s", the way a policy would say it: the largest unit that divides it. */
const char *cfoil_duration_text(int64_t ms, char *out, size_t out_bytes);

/* The name nearest to `word`, if one is near enough to be meant; else NULL. */
const char *cfoil_nearest(const char *word, const char *const *names, size_t count);

/* Splits a row's values; returns how many. Names lose their "!", which sets available[i] false. */
size_t cfoil_values_split(const char *values, char buffer[160], const char *names[8],
                          bool available[8]);

#endif
