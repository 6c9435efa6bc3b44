/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Laying mappings over one another, member by member: the file's `tenant`, then `defaults`, then the
 * route (the profile's own values lie below all of them and are compile.c's). Where two layers set
 * one field the later counts, lists included; a single value replaces a mapping and the other way
 * round; one place of a key or tenant replaces another; `ttl` replaces the three whose sum it stands for (and any of the three, where set, counts
 * before a `ttl` below it: compile.c).
 *
 * Invariant: at[f] is the node that sets field f, or NULL where the file says nothing of it.
 */
#ifndef CFOIL_POLICY_MERGE_H
#define CFOIL_POLICY_MERGE_H

#include "policy/tree.h"

struct cfoil_merged {
    const struct cfoil_node *at[CFOIL_FIELD_COUNT];
};

/* Lays a checked mapping of a route's fields on top. NULL is nothing. */
void cfoil_merge_layer(struct cfoil_merged *merged, const struct cfoil_node *mapping);

/* Lays one checked value on top: `tenant` of the file. NULL is nothing. */
void cfoil_merge_value(struct cfoil_merged *merged, enum cfoil_field field,
                       const struct cfoil_node *value);

/* The field's number, or `otherwise` where the file says nothing. */
int64_t cfoil_merged_number(const struct cfoil_merged *merged, enum cfoil_field field,
                            int64_t otherwise);

#endif
