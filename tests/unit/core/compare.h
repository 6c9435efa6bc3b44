/* SPDX-License-Identifier: Apache-2.0 */
/* Equality of the parts of a record, by value: views are compared by the bytes they show. */
#ifndef CFOIL_TEST_COMPARE_H
#define CFOIL_TEST_COMPARE_H

#include "core/record.h"

bool snapshot_equal(const struct cfoil_snapshot *a, const struct cfoil_snapshot *b);
bool scope_equal(const struct cfoil_scope *a, const struct cfoil_scope *b);
bool fingerprint_equal(const struct cfoil_fingerprint *a, const struct cfoil_fingerprint *b);
bool resource_equal(const struct cfoil_resource *a, const struct cfoil_resource *b);

/* Every field. The name of the first that differs, or NULL. */
const char *record_difference(const struct cfoil_record *a, const struct cfoil_record *b);

#endif
