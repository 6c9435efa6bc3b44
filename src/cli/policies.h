/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a policy for a command, and printing what is wrong with it as FILE:LINE:COLUMN. */
#ifndef CFOIL_CLI_POLICIES_H
#define CFOIL_CLI_POLICIES_H

#include <stdio.h>

#include "cli/command.h"
#include "policy/policy.h"

/*
 * Loads `path` (NULL: the built-in policy). Not OK: every problem was printed to `file`, which may
 * be NULL: then they are only left in `problems`.
 */
enum cfoil_exit cfoil_policy_open(const char *path, FILE *file,
                                  struct cfoil_policy_problems *problems,
                                  struct cfoil_policy **policy);

/*
 * What an operator must know although nothing is wrong: tenants from a header are trusted input.
 * Fills `text` for the next rule that says so, beginning with route *from; false: there is none.
 */
bool cfoil_policy_advice(const struct cfoil_policy *policy, size_t *from, char *text,
                         size_t text_bytes);

/* How tenants are told apart, in words: one rule, or "by route" with the first one's. */
void cfoil_policy_tenants(const struct cfoil_policy *policy, char *text, size_t text_bytes);

#endif
