/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What payments need to know of orders: their numbers and their rows. Row functions run between
 * shop_db_begin or shop_db_enter and shop_db_leave.
 */
#ifndef SHOP_ORDERS_H
#define SHOP_ORDERS_H

#include "db.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct shop_order {
    int64_t id;
    json_t *user_id; /* Owned. */
    json_t *items;   /* Owned. */
    int64_t amount;  /* Cents. */
    int64_t created_at_ms;
    char state[16];
};

/* Reads the number out of "<letter>-<number>"; 0 if the text is not of that form. */
int64_t shop_number_of(char letter, const char *text, size_t text_bytes);

/* Reads the order of a number. False if it is missing, deleted or could not be read; shop_db_failed
 * tells the last from the others. Free with shop_order_clear in every case. */
bool shop_order_load(struct shop_db *db, int64_t id, struct shop_order *order) SHOP_MUST_CHECK;

/* Marks an order, inside a transaction. The state is at most 15 bytes. */
bool shop_order_mark(struct shop_db *db, int64_t id, const char *state) SHOP_MUST_CHECK;

/* Drops the references and zeroes the order. */
void shop_order_clear(struct shop_order *order);

#endif
