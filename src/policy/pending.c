/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `while_pending`: what a duplicate gets while the first one runs. Either way excludes the other, in
 * one mapping; of `defaults` and a route the route's way counts. See compile.h.
 */
#include "policy/compile.h"

static void refuse_both(struct cfoil_compile *compile, const struct cfoil_node *layer)
{
    const struct cfoil_node *pending = cfoil_node_member(layer, CFOIL_FIELD_WHILE_PENDING);
    const struct cfoil_node *wait = cfoil_node_member(pending, CFOIL_FIELD_PENDING_WAIT);
    const struct cfoil_node *accept = cfoil_node_member(pending, CFOIL_FIELD_PENDING_ACCEPT);

    if (wait != NULL && accept != NULL) {
        cfoil_problem_add(
            compile->problems, accept->key_line, accept->key_column,
            "while_pending.accept (line %u): contradicts `wait` (line %u); a duplicate "
            "either waits or is told where to look, remove one of them",
            accept->key_line, wait->key_line);
    }
}

void cfoil_pending_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    const struct cfoil_node *const *at = compile->merged.at;
    const struct cfoil_node *accept = at[CFOIL_FIELD_PENDING_ACCEPT];

    refuse_both(compile, compile->defaults_node);
    refuse_both(compile, compile->node);
    route->wait_ms = cfoil_merged_number(&compile->merged, CFOIL_FIELD_PENDING_WAIT, 0);
    if (accept != NULL) {
        route->accept_path = accept->text;
        cfoil_places_check(compile, accept, "while_pending.accept", accept->text);
    }
}
