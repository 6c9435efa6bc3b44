/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled rules, as this room sees them. The JSON pointers are one tree of places: a place is
 * reached from the document's root by tokens, its edges are sorted so that a step is a binary
 * search, and "*" is an edge of its own. Immutable once made.
 *
 *   places [0 = root][1]...   each: edges [edge_first, edge_first + edge_count), star, flags
 *   edges  sorted by (parent place, token length, token bytes)
 *
 * Invariant: a place belongs to one depth, and one value of a document can stand on several places
 * (a named one and those under "*"), but never on the same place as its parent; so the places along
 * one path of a document are at most place_count.
 */
#ifndef CFOIL_FINGERPRINT_RULES_H
#define CFOIL_FINGERPRINT_RULES_H

#include "fingerprint/fingerprint.h"

#define CFOIL_PLACE_ROOT 0
#define CFOIL_PLACE_NONE 0 /* no edge leads to the root */

enum cfoil_place_flag { CFOIL_PLACE_IGNORE = 1, CFOIL_PLACE_UNORDERED = 2 };

struct cfoil_place {
    uint32_t edge_first;
    uint32_t edge_count;
    uint32_t star;
    uint8_t flags;
};

struct cfoil_edge {
    struct cfoil_bytes token; /* unescaped */
    uint32_t parent;
    uint32_t target;
};

struct cfoil_rules {
    struct cfoil_place *places;
    struct cfoil_edge *edges;
    uint8_t *tokens; /* what the edges' tokens point into */
    size_t token_bytes;
    uint32_t place_count;
    uint32_t edge_count;
    char **headers; /* lower case, sorted, no two equal */
    size_t header_count;
    uint64_t version;
    bool query;
};

/* The place an edge of this token leads to, or CFOIL_PLACE_NONE. "*" is not looked at. */
uint32_t cfoil_rules_step(const struct cfoil_rules *rules, uint32_t place,
                          struct cfoil_bytes token);

/* One pointer of a source while it is compiled. */
struct cfoil_pointer {
    const char *text;
    size_t len;
    enum cfoil_place_flag flag;
};

/*
 * Builds places, edges and tokens from pointers that are valid. On error the caller frees the rules
 * as a whole. Errors: NO_MEMORY.
 */
CFOIL_MUST_CHECK enum cfoil_error
cfoil_places_build(struct cfoil_rules *rules, const struct cfoil_pointer *pointers, size_t count);

#endif
