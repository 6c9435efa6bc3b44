/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How old records were when their keys came again, as the gateway's error log tells it (core/ages.h),
 * held against what a policy keeps. Owns reading and judging; check.c prints.
 */
#ifndef CFOIL_CLI_OBSERVED_H
#define CFOIL_CLI_OBSERVED_H

#include "core/ages.h"
#include "policy/policy.h"

struct cfoil_observed_route {
    char *name;
    struct cfoil_ages ages;
};

struct cfoil_observed {
    struct cfoil_observed_route *routes; /* in the order in which the log names them */
    size_t count;
};

/* Adds up all lines of the log ("-": standard input) that tell of repeats. False: complained. */
bool cfoil_observed_read(const char *path, struct cfoil_observed *observed);
void cfoil_observed_free(struct cfoil_observed *observed);

uint64_t cfoil_observed_total(const struct cfoil_ages *ages);

/* One line: how many, how late, and how long the route keeps its answers. */
void cfoil_observed_summary(const struct cfoil_observed_route *observed,
                            const struct cfoil_policy *policy, char *text, size_t text_bytes);

/* What is to be done about it. False: nothing; `text` is as it was. */
bool cfoil_observed_advice(const struct cfoil_observed_route *observed,
                           const struct cfoil_policy *policy, char *text, size_t text_bytes);

#endif
