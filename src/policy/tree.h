/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML document as a tree of nodes that know where they stand. Owns the reading of YAML and the
 * rules every policy obeys whatever its fields: one document, no anchors, aliases or tags, no
 * duplicate members, no control characters, bounded depth and size. Knows no field.
 *
 * A member of a mapping is its value's node, with the member's name and place in key*. What the
 * schema finds out about a node (its field, its number, its parsed pattern) it writes into the node.
 *
 * Invariant: the text of every node is non-NULL, NUL-ended and without control characters.
 */
#ifndef CFOIL_POLICY_TREE_H
#define CFOIL_POLICY_TREE_H

#include "policy/fields.h"
#include "policy/pool.h"
#include "policy/problems.h"

enum cfoil_node_kind { CFOIL_NODE_SCALAR, CFOIL_NODE_LIST, CFOIL_NODE_MAPPING };

struct cfoil_pattern;

struct cfoil_node {
    enum cfoil_node_kind kind;
    bool quoted;
    unsigned line; /* 1-based, like column */
    unsigned column;
    const char *text; /* scalars; "" for the others */
    size_t len;

    const char *key; /* NULL where it is no member */
    unsigned key_line;
    unsigned key_column;

    struct cfoil_node *first; /* items or members */
    struct cfoil_node *last;
    struct cfoil_node *next;
    size_t count;

    enum cfoil_field field;
    bool faulty;    /* the schema found a problem in it or below it */
    int64_t number; /* ms, bytes, a count, a truth value, or the place in an enum's values */
    const struct cfoil_pattern *pattern;
};

/*
 * Reads the text; *root is a mapping. Errors: POLICY (problems say why), NO_MEMORY. Stops at the
 * first fault of the YAML itself, because what follows one cannot be trusted.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_tree_read(struct cfoil_pool *pool, struct cfoil_bytes text,
                                                  struct cfoil_node **root,
                                                  struct cfoil_policy_problems *problems);

/* A plain scalar that YAML reads as null: nothing, "~" or "null". */
bool cfoil_node_is_null(const struct cfoil_node *node);

/* The member of that field, or NULL. */
const struct cfoil_node *cfoil_node_member(const struct cfoil_node *mapping,
                                           enum cfoil_field field);

#endif
