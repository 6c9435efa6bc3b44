/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a route's mapping to struct cfoil_route: profile, `tenant`, `defaults` and the route merged,
 * and what fields mean together (sums, contradictions) checked. Works on trees that passed the
 * schema; finds more problems, at the place of the value that has to change.
 */
#ifndef CFOIL_POLICY_COMPILE_H
#define CFOIL_POLICY_COMPILE_H

#include "policy/merge.h"

struct cfoil_compile {
    struct cfoil_pool *pool;
    struct cfoil_policy_problems *problems;
    struct cfoil_merged defaults;           /* the layers below the routes */
    const struct cfoil_node *defaults_node; /* NULL if the file has none */
    struct cfoil_merged merged;             /* defaults and the route in hand */
    const struct cfoil_node *node;          /* the route in hand */
};

/*
 * Fills one route; its name is NULL where the file gives none. Problems found are in the list; the
 * route then is not to be used, but its rules, if made, are to be freed. Error: NO_MEMORY.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_route_compile(struct cfoil_compile *compile,
                                                      const struct cfoil_node *node,
                                                      struct cfoil_route *route);

/* The parts of it that fill a file of their own. Errors as above. */
void cfoil_tenant_compile(struct cfoil_compile *compile, struct cfoil_route *route);
void cfoil_key_compile(struct cfoil_compile *compile, struct cfoil_route *route);
void cfoil_outcome_compile(struct cfoil_compile *compile, struct cfoil_route *route);
CFOIL_MUST_CHECK enum cfoil_error cfoil_headers_compile(struct cfoil_compile *compile,
                                                        struct cfoil_route *route);
CFOIL_MUST_CHECK enum cfoil_error cfoil_rules_compile(struct cfoil_compile *compile,
                                                      struct cfoil_route *route);
CFOIL_MUST_CHECK enum cfoil_error cfoil_body_compile(struct cfoil_compile *compile,
                                                     struct cfoil_route *route);
CFOIL_MUST_CHECK enum cfoil_error cfoil_redact_compile(struct cfoil_compile *compile,
                                                       struct cfoil_route *route);
void cfoil_resource_compile(struct cfoil_compile *compile, struct cfoil_route *route);
CFOIL_MUST_CHECK enum cfoil_error cfoil_messages_compile(struct cfoil_compile *compile,
                                                         struct cfoil_route *route);
void cfoil_window_compile(struct cfoil_compile *compile, struct cfoil_route *route);
void cfoil_pending_compile(struct cfoil_compile *compile, struct cfoil_route *route);
void cfoil_probe_compile(struct cfoil_compile *compile, struct cfoil_route *route);

/* Checks the {names} in a path's template against the route's patterns; `field` is what messages say. */
void cfoil_places_check(struct cfoil_compile *compile, const struct cfoil_node *blame,
                        const char *field, const char *path);

/* One mapping names one place of a key or tenant; those of `defaults` and a route replace each other. */
void cfoil_one_source_check(struct cfoil_compile *compile, const struct cfoil_node *mapping);

/* The node to blame for a field: the one that sets it, else the route. */
const struct cfoil_node *cfoil_blame(const struct cfoil_compile *compile, enum cfoil_field field);

#endif
