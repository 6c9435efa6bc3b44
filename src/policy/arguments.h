/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value by its name out of a query or a Cookie header: where a policy finds keys and tenants.
 * Whoever answers a request by such a value must not be in doubt which one it is, so two that differ
 * are an error of the caller, and two that are equal are one.
 */
#ifndef CFOIL_POLICY_ARGUMENTS_H
#define CFOIL_POLICY_ARGUMENTS_H

#include "core/bytes.h"

enum cfoil_found {
    CFOIL_FOUND_NONE, /* not there, or empty */
    CFOIL_FOUND_ONE,
    CFOIL_FOUND_SEVERAL, /* with different values */
    CFOIL_FOUND_TOO_LONG /* for the buffer */
};

/* What was found so far; starts with len 0. `out` has room for out_bytes. */
struct cfoil_finding {
    char *out;
    size_t out_bytes;
    size_t len;
    enum cfoil_found found;
};

/*
 * Looks for arguments of this name in a query (without "?"). Names and values are decoded as forms
 * are: "+" is a space, %XX a byte; a "%" that two hex digits do not follow stands for itself.
 */
void cfoil_query_find(struct cfoil_bytes query, const char *name, struct cfoil_finding *finding);

/*
 * Looks for cookies of this name in one Cookie header (RFC 6265: pairs apart by ";", names compared
 * with case, a value in quotes without them). Call it for each of several headers.
 */
void cfoil_cookie_find(struct cfoil_bytes header, const char *name, struct cfoil_finding *finding);

#endif
