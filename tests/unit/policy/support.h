/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy tests share: loading a text, and running one cmocka case per row of a table. */
#ifndef CFOIL_TESTS_POLICY_SUPPORT_H
#define CFOIL_TESTS_POLICY_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/policy.h"

/* Loads a text that must be valid; a failure prints every problem. The caller frees. */
struct cfoil_policy *load_good(const char *text);

/* Loads a policy of one route, POST /x, with these fields (lines of four spaces), after `head`. */
struct cfoil_policy *load_route(const char *head, const char *fields);

/* The first route of a policy. */
const struct cfoil_route *only_route(const struct cfoil_policy *policy);

/* Matches and returns the route's name, or "-"; `endpoint` (256 bytes) becomes NUL-ended text. */
const char *matched(const struct cfoil_policy *policy, const char *method, const char *path,
                    char *endpoint);

/*
 * Runs `test` once per row (a row begins with its name, const char *), then `more` single tests, as
 * one group, because a TAP stream has one plan. Returns main's status.
 */
struct row_table {
    const void *rows;
    size_t count;
    size_t row_bytes;
    CMUnitTestFunction test;
};
int run_rows(const char *group, const struct row_table *table, const struct CMUnitTest *more,
             size_t more_count);

#endif
