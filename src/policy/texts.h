/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syntaxes that are texts: names, headers, pointers, statuses and probe paths. They decide from
 * the text alone; what depends on other fields is checked when the route is put together.
 */
#ifndef CFOIL_POLICY_TEXTS_H
#define CFOIL_POLICY_TEXTS_H

#include "policy/scalar.h"

/*
 * Whether the node's text is of that syntax. For a STATUS the number becomes the status, or minus
 * the class. On false `why` says what is wrong and the fix.
 */
bool cfoil_text_valid(struct cfoil_node *node, enum cfoil_syntax syntax, char why[CFOIL_WHY_BYTES]);

/*
 * The next {name} of a template from *offset on. `before` is the literal text up to it. False at the
 * end; `before` is then what is left.
 */
bool cfoil_placeholder_next(struct cfoil_bytes template, size_t *offset, struct cfoil_bytes *before,
                            struct cfoil_bytes *name);

#endif
