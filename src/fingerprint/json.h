/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace in which a JSON document is read, put into canonical order and written out. Private
 * to this room; json.c owns the memory, json_read.c the grammar, json_text.c strings and numbers,
 * json_order.c the order, json_write.c the canonical text.
 *
 *   text    [ document ........ | 64 zero bytes | canonical numbers that needed new text ... ]
 *   nodes   [ root | ... ]      one per value, in the order they begin
 *   entries [ ... ]             a stack: members and elements that wait to be put in order
 *
 * One pass reads the document. A string stays where it is, unescaped in place; a number that is not
 * spelled canonically gets its text behind the document. When an object closes, its members are
 * sorted by the bytes of their names; when a multiset closes, its elements are sorted by comparing
 * their canonical trees, which are in order already because inner values close first. Ignored
 * values are read and checked like others, then not linked. Closed trees are threaded: a last
 * child's `next` is its parent. So every later walk, comparing or writing, needs neither recursion
 * nor a stack, and no canonical text is ever copied to be sorted.
 *
 * Cost: a comparison stops at the first difference and visits at most the smaller of two trees. In
 * a merge of n trees each output is charged at most its own size, and the largest one at most the
 * size of what it was compared with; so a node pays only where its subtree is not the largest
 * among its siblings, which happens at most log N times on its way up. That bounds all sorting by
 * N log² N steps for N bytes and nodes, however deep multisets nest.
 *
 * Invariant: two documents have the same canonical text exactly if they are equal after ignoring,
 * and the text depends on nothing else (not on the cut of the input, not on memory).
 */
#ifndef CFOIL_FINGERPRINT_JSON_H
#define CFOIL_FINGERPRINT_JSON_H

#include <endian.h>

#include "fingerprint/rules.h"
#include "fingerprint/sink.h"

#define CFOIL_JSON_PAD_BYTES 64 /* readable behind every text, so that loads may overshoot */

/* Their order is the order of kinds in a multiset; the canonical form depends on it. */
enum cfoil_json_kind {
    CFOIL_JSON_NULL,
    CFOIL_JSON_FALSE,
    CFOIL_JSON_TRUE,
    CFOIL_JSON_NUMBER,
    CFOIL_JSON_STRING,
    CFOIL_JSON_ARRAY,
    CFOIL_JSON_OBJECT
};

enum cfoil_json_flag {
    CFOIL_JSON_IGNORED = 1,
    CFOIL_JSON_UNORDERED = 2,    /* a pointer lists it; means something for arrays only */
    CFOIL_JSON_NAMED = 4,        /* a member of an object */
    CFOIL_JSON_LAST = 8,         /* `next` is the parent */
    CFOIL_JSON_ESCAPE_NAME = 16, /* the name has characters that are written as escapes */
    CFOIL_JSON_ESCAPE_TEXT = 32
};

/*
 * name_at and text_at are offsets into text. The bytes before and behind a name or string are its
 * quotes. Of a container, text_bytes counts the linked children.
 */
struct cfoil_json_node {
    uint32_t name_at;
    uint32_t name_bytes;
    uint32_t text_at;
    uint32_t text_bytes;
    uint32_t first; /* child; 0: none, since the root is nobody's child */
    uint32_t next;  /* sibling, or the parent if LAST */
    uint8_t kind;
    uint8_t flags;
};

/*
 * Entries in two arrays, so that loads and stores of one have one size. The key orders entries in
 * most cases; only equal keys need a look at the node.
 */
struct cfoil_json_entries {
    uint64_t *keys;
    uint32_t *nodes;
    uint32_t capacity;
};

enum cfoil_json_list { CFOIL_LIST_OBJECT, CFOIL_LIST_ARRAY, CFOIL_LIST_MULTISET };

/* An open container. */
struct cfoil_json_frame {
    uint32_t node;
    uint32_t last;        /* array: the child linked last, 0 if none */
    uint32_t index;       /* array: elements begun, ignored ones too */
    uint32_t entry_first; /* object, multiset: its entries lie from here to the top */
    uint32_t place_first; /* the places it stands on */
    uint32_t place_count;
    enum cfoil_json_list list;
};

/*
 * Where in the document ignored values stand, outermost ones only, in its order: for what is cut out of
 * it (redact.h). Filled by a read of a workspace that has it.
 */
struct cfoil_json_cuts {
    struct cfoil_json_cut {
        uint32_t from;
        uint32_t to;
    } * at;
    uint32_t count;
    uint32_t capacity;
    uint32_t node; /* of the open one */
    bool open;
};

struct cfoil_json {
    uint8_t *text;
    size_t document_bytes;
    size_t text_used; /* document, padding and new numbers */
    size_t text_capacity;
    struct cfoil_json_node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    struct cfoil_json_entries entries;
    uint32_t entry_count;
    struct cfoil_json_entries scratch; /* for merges */
    uint32_t *places;
    uint32_t place_capacity;
    const struct cfoil_rules *rules;
    uint32_t coming_places; /* the places the next value stands on: where they begin, how many */
    uint32_t coming_place_count;
    uint32_t depth;
    uint32_t value; /* the node completed last */
    bool complete;  /* it is complete, but not yet in its container */
    bool no_memory;
    const char *reason;           /* why it is not canonicalised; static */
    struct cfoil_json_cuts *cuts; /* NULL mostly */
    struct cfoil_json_frame frames[CFOIL_JSON_DEPTH_MAX];
};

/* json.c: memory. A workspace starts zeroed and is reused; reset keeps small buffers only. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_json_append(struct cfoil_json *json, const void *data,
                                                    size_t len);
void cfoil_json_reset(struct cfoil_json *json);
void cfoil_json_free(struct cfoil_json *json);
/* Each makes room for at least that many more; false sets no_memory. */
bool cfoil_json_more_text(struct cfoil_json *json, size_t more);
bool cfoil_json_more_nodes(struct cfoil_json *json);
bool cfoil_json_more_entries(struct cfoil_json *json);
bool cfoil_json_scratch(struct cfoil_json *json, uint32_t count);
bool cfoil_json_more_places(struct cfoil_json *json, uint32_t count);
bool cfoil_json_more_cuts(struct cfoil_json *json);

/*
 * json_read.c: reads what was appended. Errors: SYNTAX (json->reason says why), NO_MEMORY. The text
 * is used up either way.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_json_read(struct cfoil_json *json,
                                                  const struct cfoil_rules *rules);

/*
 * json_text.c. Each returns where the string or number ends (behind the closing quote), or NULL
 * with json->reason or json->no_memory set. string_rest goes on from `at`, the first byte of the
 * string at `start` that is not plain. The text may move in number, not in string_rest.
 */
struct cfoil_json_span {
    uint32_t at;
    uint32_t bytes;
    uint32_t escape; /* not 0: it must be escaped when written */
};
uint8_t *cfoil_json_string_rest(struct cfoil_json *json, uint8_t *start, uint8_t *at,
                                struct cfoil_json_span *span);
uint8_t *cfoil_json_number(struct cfoil_json *json, uint8_t *at, struct cfoil_json_span *span);

/* Integers of up to so many digits are spelled without an exponent. */
#define CFOIL_JSON_PLAIN_DIGITS 21

/*
 * json_order.c. sort puts the entries from `first` on in order and returns false if memory ran out;
 * of members it also finds two of one name (then json->reason is set and it returns false).
 */
bool cfoil_json_sort(struct cfoil_json *json, uint32_t first, bool by_name);
uint64_t cfoil_json_value_key(const struct cfoil_json *json, const struct cfoil_json_node *node);

/* The first eight bytes as a number that orders like them; short text is filled up with zeros. */
static inline uint64_t cfoil_json_prefix_key(const uint8_t *text, uint32_t bytes)
{
    uint64_t key;
    memcpy(&key, text, sizeof(key)); /* the padding makes this readable */
    key = be64toh(key);
    if (bytes >= sizeof(key)) {
        return key;
    }
    return bytes == 0 ? 0 : key & ~(UINT64_MAX >> (8 * bytes));
}

/* json_write.c: writes the canonical text of what was read. */
void cfoil_json_write(const struct cfoil_json *json, struct cfoil_sink *sink);

#endif
