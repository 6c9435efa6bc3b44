/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `semantics: window` and `window`: the one says that a key counts for a time only, the other for how
 * long. Neither goes without the other, and both exclude a retention beside them. See compile.h.
 *
 * Invariant: what stands in one mapping contradicts each other there; of `defaults` and a route the
 * route's way counts, so that one route can differ from the rest.
 */
#include "policy/compile.h"
#include "policy/limits.h"

#define WINDOW_DEFAULT_MS (10 * CFOIL_MINUTE_MS)

/* The values of `semantics` and `window.compare` in fields.def. */
enum { SEMANTICS_WINDOW = 2, COMPARE_KEY = 1 };

static bool says_window(const struct cfoil_node *semantics)
{
    return semantics != NULL && semantics->number == SEMANTICS_WINDOW;
}

/* What would keep a record longer, or shorter, than its window. */
static void refuse_retention(struct cfoil_compile *compile, const struct cfoil_node *layer,
                             const struct cfoil_node *semantics)
{
    static const enum cfoil_field refused[] = {
        CFOIL_FIELD_RETENTION_TTL,         CFOIL_FIELD_RETENTION_RETRY_WINDOW,
        CFOIL_FIELD_RETENTION_DELAY_BOUND, CFOIL_FIELD_RETENTION_OBSERVATION,
        CFOIL_FIELD_RETENTION_TOMBSTONE,   CFOIL_FIELD_RETENTION_FAILED,
    };
    const struct cfoil_node *retention = cfoil_node_member(layer, CFOIL_FIELD_RETENTION);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const struct cfoil_node *node = cfoil_node_member(retention, refused[i]);
        if (node != NULL) {
            cfoil_problem_add(
                compile->problems, node->key_line, node->key_column,
                "retention.%s (line %u): contradicts `semantics: window` (line %u), for the window "
                "is the retention; remove one of them",
                cfoil_field_row(refused[i])->name, node->key_line, semantics->key_line);
        }
    }
}

static void refuse_window(struct cfoil_compile *compile, const struct cfoil_node *window,
                          const struct cfoil_node *semantics)
{
    if (semantics == NULL) {
        cfoil_problem_add(compile->problems, window->key_line, window->key_column,
                          "window (line %u): has no effect without `semantics: window`; add that, "
                          "or remove the window",
                          window->key_line);
        return;
    }
    cfoil_problem_add(compile->problems, window->key_line, window->key_column,
                      "window (line %u): has no effect under `semantics: %s` (line %u); write "
                      "`semantics: window` there, or remove the window",
                      window->key_line, semantics->text, semantics->key_line);
}

/* One mapping against the semantics that count in it. */
static void check_layer(struct cfoil_compile *compile, const struct cfoil_node *layer,
                        const struct cfoil_node *semantics, bool must_have_one)
{
    const struct cfoil_node *window = cfoil_node_member(layer, CFOIL_FIELD_WINDOW);

    if (says_window(semantics)) {
        refuse_retention(compile, layer, semantics);
    } else if (window != NULL && (semantics != NULL || must_have_one)) {
        refuse_window(compile, window, semantics);
    }
}

void cfoil_window_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    struct cfoil_terms *terms = &route->terms;
    const struct cfoil_node *const *at = compile->merged.at;
    const struct cfoil_node *window = at[CFOIL_FIELD_WINDOW];

    /* `defaults` may hold a window for those routes that ask for one. */
    check_layer(compile, compile->defaults_node,
                cfoil_node_member(compile->defaults_node, CFOIL_FIELD_SEMANTICS), false);
    check_layer(compile, compile->node, at[CFOIL_FIELD_SEMANTICS], true);

    terms->window_ms =
        cfoil_merged_number(&compile->merged, CFOIL_FIELD_WINDOW_LENGTH, WINDOW_DEFAULT_MS);
    if (window != NULL && window->kind == CFOIL_NODE_SCALAR) {
        terms->window_ms = window->number;
    }
    terms->window_anchor = (enum cfoil_anchor)cfoil_merged_number(
        &compile->merged, CFOIL_FIELD_WINDOW_ANCHOR, CFOIL_ANCHOR_FIRST);
    if (terms->semantics == CFOIL_SEMANTICS_WINDOW &&
        cfoil_merged_number(&compile->merged, CFOIL_FIELD_WINDOW_COMPARE, 0) == COMPARE_KEY) {
        terms->semantics = CFOIL_SEMANTICS_WINDOW_KEY;
    }
}
