/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random JSON values and random spellings of them. A document is a tree by meaning: numbers are
 * digits and exponent, strings are code points. Spelling chooses everything that must not matter.
 */
#ifndef TESTS_FINGERPRINT_GENERATOR_H
#define TESTS_FINGERPRINT_GENERATOR_H

#include "support.h"

#define DOC_VALUES_MAX   400
#define DOC_CHILDREN_MAX 6
#define DOC_DEPTH_MAX    6
#define DOC_POINTS_MAX   10

enum doc_kind { DOC_NULL, DOC_FALSE, DOC_TRUE, DOC_NUMBER, DOC_STRING, DOC_ARRAY, DOC_OBJECT };

struct doc_text {
    uint32_t points[DOC_POINTS_MAX + 2];
    int count;
};

/* A number is 0.DIGITS x 10^exponent, digits without zeros at either end; no digits: zero. */
struct doc_value {
    enum doc_kind kind;
    bool negative;
    char digits[24];
    int digit_count;
    int exponent;
    struct doc_text text;
    struct doc_text name; /* if its container is an object; unlike its siblings' */
    int children[DOC_CHILDREN_MAX + 1];
    int child_count;
};

struct doc {
    struct doc_value values[DOC_VALUES_MAX + 8];
    int count; /* values[0] is the root */
};

enum spelling {
    SPELL_ORDERED = 0,
    SPELL_SHUFFLED_ARRAYS = 1, /* elements in any order */
    SPELL_NOISE = 2            /* objects may get a member "noise" with anything in it */
};

/* Makes a document; its root is an object or array. */
void doc_generate(struct doc *doc, uint64_t *random);

/* Changes the meaning of one value somewhere. */
void doc_mutate(struct doc *doc, uint64_t *random);

/* One of the document's spellings, malloc'd and NUL-ended (no NUL inside). */
char *doc_spell(const struct doc *doc, uint64_t *random, enum spelling spelling);

#endif
