/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of places of a set of JSON pointers: built once, then only stepped through. rules.h has
 * the layout; rules.c has checked the pointers.
 */
#include "fingerprint/rules.h"

#include <assert.h>
#include <stdlib.h>

/* Length first: most names that differ differ in length, and equality is all that is asked. */
static int order_tokens(struct cfoil_bytes a, struct cfoil_bytes b)
{
    if (a.len != b.len) {
        return a.len < b.len ? -1 : 1;
    }
    return a.len == 0 ? 0 : memcmp(a.data, b.data, a.len);
}

static int order_edges(const void *left, const void *right)
{
    const struct cfoil_edge *a = left;
    const struct cfoil_edge *b = right;
    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }
    return order_tokens(a->token, b->token);
}

uint32_t cfoil_rules_step(const struct cfoil_rules *rules, uint32_t place, struct cfoil_bytes token)
{
    const struct cfoil_edge *edges = rules->edges + rules->places[place].edge_first;
    uint32_t low = 0;
    uint32_t high = rules->places[place].edge_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = order_tokens(token, edges[middle].token);
        if (order == 0) {
            return edges[middle].target;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return CFOIL_PLACE_NONE;
}

/* Reads one token, from behind its "/" to the next or the end, unescaped, into rules->tokens. */
static struct cfoil_bytes take_token(struct cfoil_rules *rules, const char **at, const char *end)
{
    uint8_t *start = rules->tokens + rules->token_bytes;
    uint8_t *out = start;
    const char *in = *at;
    while (in < end && *in != '/') {
        char c = *in++;
        if (c == '~') {
            c = *in++ == '0' ? '~' : '/';
        }
        *out++ = (uint8_t)c;
    }
    *at = in;
    rules->token_bytes += (size_t)(out - start);
    return cfoil_bytes_of(start, (size_t)(out - start));
}

static uint32_t new_place(struct cfoil_rules *rules)
{
    rules->places[rules->place_count] = (struct cfoil_place){0};
    return rules->place_count++;
}

/*
 * While the tree grows, the edges of a place are a list: edge_first is its newest edge plus one,
 * and `older` continues it. The final sort makes them neighbours.
 */
static uint32_t step_or_add(struct cfoil_rules *rules, uint32_t *older, uint32_t place,
                            struct cfoil_bytes token)
{
    for (uint32_t edge = rules->places[place].edge_first; edge != 0; edge = older[edge - 1]) {
        if (cfoil_bytes_equal(rules->edges[edge - 1].token, token)) {
            return rules->edges[edge - 1].target;
        }
    }
    uint32_t target = new_place(rules);
    uint32_t edge = rules->edge_count++;
    rules->edges[edge] = (struct cfoil_edge){.token = token, .parent = place, .target = target};
    older[edge] = rules->places[place].edge_first;
    rules->places[place].edge_first = edge + 1;
    return target;
}

static void add_pointer(struct cfoil_rules *rules, uint32_t *older,
                        const struct cfoil_pointer *pointer)
{
    const char *at = pointer->text;
    const char *end = pointer->text + pointer->len;
    uint32_t place = CFOIL_PLACE_ROOT;
    while (at < end) {
        const char *token_text = ++at; /* over the "/" */
        struct cfoil_bytes token = take_token(rules, &at, end);
        if (at - token_text != 1 || *token_text != '*') {
            place = step_or_add(rules, older, place, token);
            continue;
        }
        if (rules->places[place].star == CFOIL_PLACE_NONE) {
            uint32_t star = new_place(rules);
            rules->places[place].star = star;
        }
        place = rules->places[place].star;
    }
    rules->places[place].flags |= (uint8_t)pointer->flag;
}

static void index_edges(struct cfoil_rules *rules)
{
    if (rules->edge_count > 0) {
        qsort(rules->edges, rules->edge_count, sizeof(*rules->edges), order_edges);
    }
    for (uint32_t place = 0; place < rules->place_count; place++) {
        rules->places[place].edge_first = 0;
    }
    for (uint32_t edge = 0; edge < rules->edge_count; edge++) {
        struct cfoil_place *parent = &rules->places[rules->edges[edge].parent];
        if (parent->edge_count++ == 0) {
            parent->edge_first = edge;
        }
    }
}

enum cfoil_error cfoil_places_build(struct cfoil_rules *rules, const struct cfoil_pointer *pointers,
                                    size_t count)
{
    size_t bytes = 0;
    size_t tokens = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += pointers[i].len;
        for (size_t k = 0; k < pointers[i].len; k++) {
            tokens += pointers[i].text[k] == '/';
        }
    }
    rules->places = calloc(tokens + 1, sizeof(*rules->places));
    rules->edges = calloc(tokens + 1, sizeof(*rules->edges));
    rules->tokens = malloc(bytes + 1);
    uint32_t *older = calloc(tokens + 1, sizeof(*older));
    if (rules->places == NULL || rules->edges == NULL || rules->tokens == NULL || older == NULL) {
        free(older);
        return CFOIL_E_NO_MEMORY;
    }
    uint32_t root = new_place(rules);
    assert(root == CFOIL_PLACE_ROOT);
    for (size_t i = 0; i < count; i++) {
        add_pointer(rules, older, &pointers[i]);
    }
    index_edges(rules);
    free(older);
    return CFOIL_OK;
}
