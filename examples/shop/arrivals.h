/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With which headers and which body the last request of each key arrived. Kept in memory, for the
 * last SHOP_ARRIVALS_MAX keys only; nothing of it survives a restart.
 * Invariant: a key is in the ring at most once. Any thread may call any function.
 */
#ifndef SHOP_ARRIVALS_H
#define SHOP_ARRIVALS_H

#include "request.h"

#include <stdbool.h>

enum { SHOP_ARRIVALS_MAX = 4096 };

/* NULL when memory is short. */
struct shop_arrivals *shop_arrivals_new(void) SHOP_MUST_CHECK;

/* NULL is allowed. */
void shop_arrivals_free(struct shop_arrivals *arrivals);

/* Remembers a complete request under its key, in place of the key's earlier one. */
bool shop_arrivals_note(struct shop_arrivals *arrivals,
                        const struct shop_request *request) SHOP_MUST_CHECK;

/* What is known of a key as JSON text, to be freed by the caller; NULL if there is nothing. */
char *shop_arrivals_find(struct shop_arrivals *arrivals, const char *key,
                         size_t key_bytes) SHOP_MUST_CHECK;

/* Forgets everything. */
void shop_arrivals_clear(struct shop_arrivals *arrivals);

#endif
