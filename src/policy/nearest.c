/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest of some names, by single edits. See scalar.h. */
#include <string.h>

#include "policy/scalar.h"

#define WORD_BYTES_MAX 32

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Inserts, deletes and replacements that turn a into b. Both are short. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[2][WORD_BYTES_MAX + 1];
    size_t *above = rows[0];
    size_t *row = rows[1];
    size_t b_len = strlen(b);
    for (size_t j = 0; j <= b_len; j++) {
        above[j] = j;
    }

    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min(change, 1 + min(above[j], row[j - 1]));
        }
        size_t *reused = above;
        above = row;
        row = reused;
    }
    return above[b_len];
}

const char *cfoil_nearest(const char *word, const char *const *names, size_t count)
{
    if (strlen(word) > WORD_BYTES_MAX) {
        return NULL;
    }

    /* A third of the word may be wrong: `ttl` for `tll`, not `key` for `x`. */
    size_t best = 1 + strlen(word) / 3;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) > WORD_BYTES_MAX) {
            continue;
        }
        size_t edits = distance(word, names[i]);
        if (edits < best || (edits == best && nearest == NULL && edits < strlen(word))) {
            best = edits;
            nearest = names[i];
        }
    }
    return nearest;
}
