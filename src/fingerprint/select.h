/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value out of a JSON text, by its pointer: what a policy reads of a body. Read by the reader of
 * the canonical form (json.h), so that what has no canonical form has no values either: two members of
 * one name, ill-formed UTF-8, what passes a limit of fingerprint.h.
 *
 * Threads: a selector belongs to one thread and holds one document at a time. It keeps its memory for
 * the next one, up to a few MiB.
 */
#ifndef CFOIL_FINGERPRINT_SELECT_H
#define CFOIL_FINGERPRINT_SELECT_H

#include "core/bytes.h"
#include "core/error.h"

enum cfoil_value_kind {
    CFOIL_VALUE_ABSENT,
    CFOIL_VALUE_NULL,
    CFOIL_VALUE_FALSE,
    CFOIL_VALUE_TRUE,
    CFOIL_VALUE_NUMBER,
    CFOIL_VALUE_STRING,
    CFOIL_VALUE_ARRAY,
    CFOIL_VALUE_OBJECT
};

/*
 * text: of a string what it says, of a number its canonical spelling ("1" for 1.0 and 1e0), of null,
 * false and true the word; else empty. Points into the selector, until its next read.
 */
struct cfoil_value {
    enum cfoil_value_kind kind;
    struct cfoil_bytes text;
};

struct cfoil_selector;

/* Errors: NO_MEMORY, SYSTEM. free takes NULL. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_selector_create(struct cfoil_selector **selector);
void cfoil_selector_free(struct cfoil_selector *selector);

/*
 * Reads a document, which is copied. Errors: SYNTAX (it has no values; *reason, if not NULL, is a
 * static text that says why), NO_MEMORY. After an error every pointer finds nothing.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_selector_read(struct cfoil_selector *selector,
                                                      struct cfoil_bytes json, const char **reason);

/*
 * The value at a JSON pointer (RFC 6901) that was checked: "" or tokens that begin with "/", "~" only
 * as "~0" and "~1". "*" is a name like any other. An array's token is an index without leading zeros;
 * "-" finds nothing.
 */
struct cfoil_value cfoil_selector_at(const struct cfoil_selector *selector, const char *pointer);

#endif
