/* SPDX-License-Identifier: Apache-2.0 */
/* See trie.h. Everything is allocated before the first node is made, so nothing grows. */
#include "policy/trie.h"

#include <assert.h>

#include "policy/limits.h"

struct cfoil_trie_node {
    uint32_t parameter; /* the child a parameter leads to; 0: none, since 0 is a root */
    uint32_t exact;
    uint32_t rest;
    uint32_t first; /* the smallest of all below and here */
};

struct cfoil_trie_edge {
    const uint8_t *text;
    uint32_t len;
    uint32_t parent;
    uint32_t child; /* 0: the place is free */
};

/* FNV-1a over the segment, begun with the parent. The table's keys are the policy author's. */
static uint32_t edge_hash(uint32_t parent, struct cfoil_bytes segment)
{
    uint32_t hash = (2166136261U ^ parent) * 16777619U;
    for (size_t i = 0; i < segment.len; i++) {
        hash = (hash ^ segment.data[i]) * 16777619U;
    }
    return hash ^ (hash >> 15);
}

/* The edge's place, or the free place where it would go. The table is never more than half full. */
static struct cfoil_trie_edge *edge_place(const struct cfoil_trie *trie, uint32_t parent,
                                          struct cfoil_bytes segment)
{
    uint32_t at = edge_hash(parent, segment) & trie->edge_mask;
    for (;;) {
        struct cfoil_trie_edge *edge = &trie->edges[at];
        bool same = edge->parent == parent && edge->len == segment.len &&
                    (segment.len == 0 || memcmp(edge->text, segment.data, segment.len) == 0);
        if (edge->child == 0 || same) {
            return edge;
        }
        at = (at + 1) & trie->edge_mask;
    }
}

static uint32_t node_add(struct cfoil_trie *trie)
{
    struct cfoil_trie_node *node = &trie->nodes[trie->node_count];
    node->exact = CFOIL_TRIE_NONE;
    node->rest = CFOIL_TRIE_NONE;
    node->first = CFOIL_TRIE_NONE;
    return trie->node_count++;
}

static uint32_t child_of(struct cfoil_trie *trie, uint32_t parent,
                         const struct cfoil_segment *segment)
{
    if (segment->parameter) {
        if (trie->nodes[parent].parameter == 0) {
            trie->nodes[parent].parameter = node_add(trie);
        }
        return trie->nodes[parent].parameter;
    }

    struct cfoil_trie_edge *edge = edge_place(trie, parent, segment->text);
    if (edge->child == 0) {
        edge->text = segment->text.data;
        edge->len = (uint32_t)segment->text.len;
        edge->parent = parent;
        edge->child = node_add(trie);
    }
    return edge->child;
}

static void keep_smaller(uint32_t *place, uint32_t number)
{
    *place = number < *place ? number : *place;
}

static void insert(struct cfoil_trie *trie, uint32_t root, const struct cfoil_pattern *pattern,
                   uint32_t number)
{
    uint32_t node = root;
    keep_smaller(&trie->nodes[node].first, number);
    for (size_t i = 0; i < pattern->segment_count; i++) {
        node = child_of(trie, node, &pattern->segments[i]);
        keep_smaller(&trie->nodes[node].first, number);
    }
    keep_smaller(pattern->rest ? &trie->nodes[node].rest : &trie->nodes[node].exact, number);
}

static uint32_t root_of(const struct cfoil_trie *trie, struct cfoil_bytes method)
{
    for (size_t i = 0; i < trie->method_count; i++) {
        if (cfoil_bytes_equal(trie->methods[i], method)) {
            return trie->roots[i];
        }
    }
    return CFOIL_TRIE_NONE;
}

/* Makes the roots, one per method; node 0 is nobody's, so that 0 can mean none. */
static enum cfoil_error make_roots(struct cfoil_trie *trie,
                                   const struct cfoil_pattern *const *patterns, size_t count)
{
    (void)node_add(trie);
    for (size_t i = 0; i < count; i++) {
        for (size_t m = 0; m < patterns[i]->method_count; m++) {
            struct cfoil_bytes method = patterns[i]->methods[m];
            if (root_of(trie, method) != CFOIL_TRIE_NONE) {
                continue;
            }
            if (trie->method_count == CFOIL_ALL_METHODS_MAX) {
                return CFOIL_E_LIMIT;
            }
            trie->methods[trie->method_count] = method;
            trie->roots[trie->method_count++] = node_add(trie);
        }
    }
    return CFOIL_OK;
}

enum cfoil_error cfoil_trie_build(struct cfoil_trie *trie, struct cfoil_pool *pool,
                                  const struct cfoil_pattern *const *patterns, size_t count)
{
    size_t nodes = 1 + CFOIL_ALL_METHODS_MAX;
    for (size_t i = 0; i < count; i++) {
        nodes += patterns[i]->segment_count * patterns[i]->method_count;
    }
    if (nodes > CFOIL_TRIE_NODES_MAX || count >= CFOIL_TRIE_NONE) {
        return CFOIL_E_LIMIT;
    }

    size_t places = 64;
    while (places < 2 * nodes) {
        places *= 2;
    }
    trie->nodes = cfoil_pool_array(pool, nodes, sizeof(*trie->nodes));
    trie->edges = cfoil_pool_array(pool, places, sizeof(*trie->edges));
    trie->edge_mask = (uint32_t)(places - 1);
    trie->methods = cfoil_pool_array(pool, CFOIL_ALL_METHODS_MAX, sizeof(*trie->methods));
    trie->roots = cfoil_pool_array(pool, CFOIL_ALL_METHODS_MAX, sizeof(*trie->roots));
    if (trie->nodes == NULL || trie->edges == NULL || trie->methods == NULL ||
        trie->roots == NULL) {
        return CFOIL_E_NO_MEMORY;
    }

    enum cfoil_error error = make_roots(trie, patterns, count);
    if (error != CFOIL_OK) {
        return error;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t m = 0; m < patterns[i]->method_count; m++) {
            insert(trie, root_of(trie, patterns[i]->methods[m]), patterns[i], (uint32_t)i);
        }
    }
    return CFOIL_OK;
}

struct step {
    uint32_t node;
    size_t offset; /* of the next segment; past the path's length: none is left */
};

uint32_t cfoil_trie_find(const struct cfoil_trie *trie, struct cfoil_bytes method,
                         struct cfoil_bytes path)
{
    uint32_t root = root_of(trie, method);
    if (root == CFOIL_TRIE_NONE || path.len == 0 || path.data[0] != '/') {
        return CFOIL_TRIE_NONE;
    }

    /* Depth first: of each level at most one sibling waits while the other is followed. */
    struct step waiting[CFOIL_SEGMENTS_MAX + 2];
    size_t count = 0;
    waiting[count++] = (struct step){root, 1};
    uint32_t best = CFOIL_TRIE_NONE;
    while (count > 0) {
        struct step step = waiting[--count];
        const struct cfoil_trie_node *node = &trie->nodes[step.node];
        if (node->first >= best) {
            continue;
        }
        struct cfoil_bytes segment;
        size_t offset = step.offset;
        if (!cfoil_path_segment(path, &offset, &segment)) {
            keep_smaller(&best, node->exact);
            continue;
        }

        keep_smaller(&best, node->rest);
        assert(count + 2 <= sizeof(waiting) / sizeof(waiting[0]));
        if (node->parameter != 0 && segment.len > 0) {
            waiting[count++] = (struct step){node->parameter, offset};
        }
        const struct cfoil_trie_edge *edge = edge_place(trie, step.node, segment);
        if (edge->child != 0) {
            waiting[count++] = (struct step){edge->child, offset};
        }
    }
    return best;
}
