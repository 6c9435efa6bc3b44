/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checking a tree against fields.def: every member known, available, of its shape and unit. Each
 * finding becomes a problem, and the checking goes on. What fields mean together is compile.h's.
 */
#ifndef CFOIL_POLICY_SCHEMA_H
#define CFOIL_POLICY_SCHEMA_H

#include "policy/tree.h"

/* Sets field, number and pattern of every node. Error: NO_MEMORY. Problems are counted by the caller. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_schema_check(struct cfoil_pool *pool,
                                                     struct cfoil_node *root,
                                                     struct cfoil_policy_problems *problems);

#endif
