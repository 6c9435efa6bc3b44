/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of members and of a multiset's elements: a merge sort over entries, so that no input
 * can make it slow, with runs sorted by insertion first. json.h says why comparing trees stays
 * cheap.
 *
 * Names are ordered by their bytes, a prefix first. Elements are ordered by kind, then by what the
 * kind has: any total order over canonical values would do, this one is fixed by the version of the
 * canonical form.
 */
#include "fingerprint/json.h"

#define RUN_ENTRIES 16U

/* Kind in the first byte; then the beginning of a scalar, or the count of a container. */
uint64_t cfoil_json_value_key(const struct cfoil_json *json, const struct cfoil_json_node *node)
{
    uint64_t kind = (uint64_t)node->kind << 56;
    if (node->kind >= CFOIL_JSON_ARRAY) {
        return kind | node->text_bytes;
    }
    return kind | cfoil_json_prefix_key(json->text + node->text_at, node->text_bytes) >> 8;
}

static int order_texts(const struct cfoil_json *json, uint32_t a_at, uint32_t a_bytes,
                       uint32_t b_at, uint32_t b_bytes)
{
    uint32_t shared = a_bytes < b_bytes ? a_bytes : b_bytes;
    int order = memcmp(json->text + a_at, json->text + b_at, shared);
    if (order != 0) {
        return order;
    }
    return (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* Orders two nodes by what they are themselves, their children aside. */
static int order_heads(const struct cfoil_json *json, const struct cfoil_json_node *a,
                       const struct cfoil_json_node *b, bool names)
{
    if (names) {
        int order = order_texts(json, a->name_at, a->name_bytes, b->name_at, b->name_bytes);
        if (order != 0) {
            return order;
        }
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    if (a->kind >= CFOIL_JSON_ARRAY) {
        return (a->text_bytes > b->text_bytes) - (a->text_bytes < b->text_bytes);
    }
    return order_texts(json, a->text_at, a->text_bytes, b->text_at, b->text_bytes);
}

/*
 * Walks two closed trees in step. Heads that are equal have equally many children, so the walks
 * stay in step until the first difference or the end.
 */
static int order_trees(const struct cfoil_json *json, uint32_t a_root, uint32_t b_root)
{
    const struct cfoil_json_node *nodes = json->nodes;
    uint32_t a = a_root;
    uint32_t b = b_root;
    for (;;) {
        bool names = a != a_root && (nodes[a].flags & CFOIL_JSON_NAMED) != 0;
        int order = order_heads(json, &nodes[a], &nodes[b], names);
        if (order != 0) {
            return order;
        }
        if (nodes[a].first != 0) {
            a = nodes[a].first;
            b = nodes[b].first;
            continue;
        }
        while (a != a_root && (nodes[a].flags & CFOIL_JSON_LAST) != 0) {
            a = nodes[a].next;
            b = nodes[b].next;
        }
        if (a == a_root) {
            return 0;
        }
        a = nodes[a].next;
        b = nodes[b].next;
    }
}

/* Orders two entries of equal keys. */
static int order_nodes(const struct cfoil_json *json, uint32_t a, uint32_t b, bool by_name)
{
    if (!by_name) {
        return order_trees(json, a, b);
    }
    const struct cfoil_json_node *nodes = json->nodes;
    return order_texts(json, nodes[a].name_at, nodes[a].name_bytes, nodes[b].name_at,
                       nodes[b].name_bytes);
}

static inline bool in_order(const struct cfoil_json *json, const struct cfoil_json_entries *entries,
                            uint32_t a, uint32_t b, bool by_name)
{
    if (entries->keys[a] != entries->keys[b]) {
        return entries->keys[a] < entries->keys[b];
    }
    return order_nodes(json, entries->nodes[a], entries->nodes[b], by_name) <= 0;
}

/* Sorts entries [first, end) by insertion. */
static void sort_run(struct cfoil_json *json, uint32_t first, uint32_t end, bool by_name)
{
    uint64_t *keys = json->entries.keys;
    uint32_t *nodes = json->entries.nodes;
    for (uint32_t i = first + 1; i < end; i++) {
        uint64_t key = keys[i];
        uint32_t node = nodes[i];
        uint32_t hole = i;
        while (hole > first &&
               (keys[hole - 1] > key ||
                (keys[hole - 1] == key && order_nodes(json, nodes[hole - 1], node, by_name) > 0))) {
            keys[hole] = keys[hole - 1];
            nodes[hole] = nodes[hole - 1];
            hole--;
        }
        keys[hole] = key;
        nodes[hole] = node;
    }
}

/* Merges the sorted [at, middle) and [middle, end) of `from` into the same range of `to`. */
static void merge(const struct cfoil_json *json, const struct cfoil_json_entries *from,
                  const struct cfoil_json_entries *to, uint32_t at, uint32_t middle, uint32_t end,
                  bool by_name)
{
    uint32_t a = at;
    uint32_t b = middle;
    for (uint32_t out = at; out < end; out++) {
        bool left = b == end || (a < middle && in_order(json, from, a, b, by_name));
        uint32_t taken = left ? a++ : b++;
        to->keys[out] = from->keys[taken];
        to->nodes[out] = from->nodes[taken];
    }
}

static bool merge_runs(struct cfoil_json *json, uint32_t first, uint32_t count, bool by_name)
{
    if (!cfoil_json_scratch(json, count)) {
        return false;
    }
    struct cfoil_json_entries entries = {json->entries.keys + first, json->entries.nodes + first,
                                         count};
    const struct cfoil_json_entries *from = &entries;
    const struct cfoil_json_entries *to = &json->scratch;
    for (uint32_t width = RUN_ENTRIES; width < count; width *= 2) {
        for (uint32_t at = 0; at < count; at += 2 * width) {
            uint32_t middle = count - at < width ? count : at + width;
            uint32_t end = count - at < 2 * width ? count : at + 2 * width;
            merge(json, from, to, at, middle, end, by_name);
        }
        const struct cfoil_json_entries *swap = from;
        from = to;
        to = swap;
    }
    if (from != &entries) {
        memcpy(entries.keys, from->keys, count * sizeof(*entries.keys));
        memcpy(entries.nodes, from->nodes, count * sizeof(*entries.nodes));
    }
    return true;
}

/* Whether two neighbours of sorted members have one name. */
static bool has_repeated_name(const struct cfoil_json *json, uint32_t first)
{
    const struct cfoil_json_entries *entries = &json->entries;
    for (uint32_t i = first + 1; i < json->entry_count; i++) {
        if (entries->keys[i - 1] == entries->keys[i] &&
            order_nodes(json, entries->nodes[i - 1], entries->nodes[i], true) == 0) {
            return true;
        }
    }
    return false;
}

bool cfoil_json_sort(struct cfoil_json *json, uint32_t first, bool by_name)
{
    const uint32_t end = json->entry_count;
    for (uint32_t at = first; at < end; at += RUN_ENTRIES) {
        sort_run(json, at, end - at < RUN_ENTRIES ? end : at + RUN_ENTRIES, by_name);
    }
    if (end - first > RUN_ENTRIES && !merge_runs(json, first, end - first, by_name)) {
        return false;
    }
    if (by_name && has_repeated_name(json, first)) {
        json->reason = "two members of an object have the same name";
        return false;
    }
    return true;
}
