/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting what is wrong with a policy. The list itself belongs to whoever asked for the load
 * (policy.h); here it is filled, each finding once, and put into the order of the file.
 */
#ifndef CFOIL_POLICY_PROBLEMS_H
#define CFOIL_POLICY_PROBLEMS_H

#include "policy/policy.h"

/* Adds a finding; one that is there already, or comes after the list is full, is dropped. */
void cfoil_problem_add(struct cfoil_policy_problems *problems, unsigned line, unsigned column,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* By line, then column; findings at one place stay in the order they were made. */
void cfoil_problems_sort(struct cfoil_policy_problems *problems);

#endif
