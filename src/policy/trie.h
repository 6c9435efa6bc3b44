/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the first of many patterns that matches, without trying them one by one. One tree per
 * method; each edge is one path segment, literal or parameter.
 *
 *   POST --orders--> . --{}--> . --pay--> (pattern 0)
 *                    '-- ** (pattern 3)
 *
 * A node knows the smallest pattern number that ends in it, that ends in it with **, and anywhere
 * below it. Invariant: the answer is the smallest number among the patterns that match, which is the
 * one a plain loop in the file's order would have found first.
 */
#ifndef CFOIL_POLICY_TRIE_H
#define CFOIL_POLICY_TRIE_H

#include "core/error.h"
#include "policy/pattern.h"

#define CFOIL_TRIE_NONE UINT32_MAX

struct cfoil_trie {
    struct cfoil_trie_node *nodes;
    uint32_t node_count;
    struct cfoil_trie_edge *edges; /* open addressing; edge_mask + 1 places */
    uint32_t edge_mask;
    struct cfoil_bytes *methods;
    uint32_t *roots;
    size_t method_count;
};

/*
 * Builds over patterns[0..count); their memory must outlive the tree. Errors: LIMIT (too many
 * different methods or nodes), NO_MEMORY.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_trie_build(struct cfoil_trie *trie, struct cfoil_pool *pool,
                                                   const struct cfoil_pattern *const *patterns,
                                                   size_t count);

/* The number of the first pattern that matches, or CFOIL_TRIE_NONE. */
uint32_t cfoil_trie_find(const struct cfoil_trie *trie, struct cfoil_bytes method,
                         struct cfoil_bytes path);

#endif
