/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the orders: o-1, o-2, … A lookup by key answers byte for byte what the creation answered for
 * as long as nobody changed the order. There is no idempotency here: the same key twice makes two
 * orders, and the lookup finds the first.
 * Invariant: an order is never removed from the table, only marked deleted, so that a lookup by key
 * keeps telling the truth about what once happened.
 */
#include "orders.h"

#include "fields.h"
#include "handlers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void shop_order_clear(struct shop_order *order)
{
    json_decref(order->user_id);
    json_decref(order->items);
    memset(order, 0, sizeof(*order));
}

int64_t shop_number_of(char letter, const char *text, size_t text_bytes)
{
    int64_t number = 0;

    if (text_bytes < 3 || text_bytes > 18 || text[0] != letter || text[1] != '-' ||
        text[2] == '0') {
        return 0;
    }
    for (size_t i = 2; i < text_bytes; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return 0;
        }
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

static bool read_items(json_t *items, struct shop_reply *reply)
{
    size_t index;
    json_t *item;

    if (!json_is_array(items)) {
        shop_reply_error(reply, 400, "items must be a list of {\"sku\": text, \"qty\": number}");
        return false;
    }
    json_array_foreach(items, index, item)
    {
        if (!json_is_string(json_object_get(item, "sku")) ||
            !json_is_integer(json_object_get(item, "qty")) ||
            json_integer_value(json_object_get(item, "qty")) < 1) {
            shop_reply_error(reply, 400,
                             "items[%zu] must be {\"sku\": text, \"qty\": whole number from 1}",
                             index);
            return false;
        }
    }
    return true;
}

/* Reads the fields of a body into the order. With partial, absent fields stay as they are. */
static bool order_read(const json_t *body, bool partial, struct shop_order *order,
                       struct shop_reply *reply)
{
    json_t *items = json_object_get(body, "items");
    json_t *user_id = NULL;
    json_int_t amount = order->amount;

    if (!(partial && json_object_get(body, "user_id") == NULL)) {
        if (!shop_field_user(body, &user_id, reply)) {
            return false;
        }
        json_decref(order->user_id);
        order->user_id = json_incref(user_id);
    }
    if (!(partial && json_object_get(body, "amount") == NULL) &&
        !shop_field_cents(body, "amount", 0, &amount, reply)) {
        return false;
    }
    order->amount = amount;
    if (items != NULL) {
        if (!read_items(items, reply)) {
            return false;
        }
        json_decref(order->items);
        order->items = json_incref(items);
    }
    if (order->items == NULL) {
        order->items = json_array();
    }
    return true;
}

/* Binds user_id, items and amount at three positions in a row. */
static bool order_bind(sqlite3_stmt *statement, int position, const struct shop_order *order)
{
    char *user_id = json_dumps(order->user_id, JSON_COMPACT | JSON_ENCODE_ANY);
    char *items = json_dumps(order->items, JSON_COMPACT);
    bool bound = user_id != NULL && items != NULL &&
                 shop_db_bind_text(statement, position, user_id) &&
                 shop_db_bind_text(statement, position + 1, items) &&
                 sqlite3_bind_int64(statement, position + 2, order->amount) == SQLITE_OK;

    free(user_id);
    free(items);
    return bound;
}

static json_t *column_json(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    size_t text_bytes = (size_t)sqlite3_column_bytes(statement, column);

    return text == NULL ? NULL : json_loadb((const char *)text, text_bytes, JSON_DECODE_ANY, NULL);
}

/* Steps to the order the statement selects, and reads it. */
static bool order_row(sqlite3_stmt *statement, struct shop_order *order)
{
    if (!shop_db_row(statement)) {
        return false;
    }
    order->id = sqlite3_column_int64(statement, 0);
    order->user_id = column_json(statement, 1);
    order->items = column_json(statement, 2);
    order->amount = sqlite3_column_int64(statement, 3);
    (void)snprintf(order->state, sizeof(order->state), "%s",
                   (const char *)sqlite3_column_text(statement, 4));
    order->created_at_ms = sqlite3_column_int64(statement, 5);
    return true;
}

bool shop_order_load(struct shop_db *db, int64_t id, struct shop_order *order)
{
    sqlite3_stmt *select = shop_db_statement(db, SHOP_SQL_ORDER_BY_ID);

    return sqlite3_bind_int64(select, 1, id) == SQLITE_OK && order_row(select, order) &&
           strcmp(order->state, "deleted") != 0;
}

bool shop_order_mark(struct shop_db *db, int64_t id, const char *state)
{
    sqlite3_stmt *update = shop_db_statement(db, SHOP_SQL_ORDER_STATE);

    return shop_db_bind_text(update, 1, state) && sqlite3_bind_int64(update, 2, id) == SQLITE_OK &&
           shop_db_run(update);
}

/* Fills the reply with the order and the two Link lines every order carries. */
static void order_reply(unsigned int status, const struct shop_order *order,
                        struct shop_reply *reply)
{
    char order_id[32];

    (void)snprintf(order_id, sizeof(order_id), "o-%" PRId64, order->id);
    shop_reply_data(reply, status,
                    json_pack("{s:s, s:O, s:O, s:I, s:s, s:I}", "order_id", order_id, "user_id",
                              order->user_id, "items", order->items, "amount",
                              (json_int_t)order->amount, "state", order->state, "created_at_ms",
                              (json_int_t)order->created_at_ms));
    shop_reply_header(reply, "Link",
                      "</api/orders/%s>; rel=\"self\"; title=\"Order %s, as placed\"", order_id,
                      order_id);
    shop_reply_header(reply, "Link",
                      "</api/orders/%s/pay>; rel=\"payment\"; title=\"Pay now, or later\"",
                      order_id);
}

static bool order_insert(struct shop_db *db, const struct shop_request *request,
                         struct shop_order *order)
{
    sqlite3_stmt *insert = shop_db_statement(db, SHOP_SQL_ORDER_INSERT);

    if (!shop_db_bind_bytes(insert, 1, request->key, request->key_bytes) ||
        !order_bind(insert, 2, order) ||
        sqlite3_bind_int64(insert, 5, order->created_at_ms) != SQLITE_OK || !shop_db_run(insert)) {
        return false;
    }
    order->id = sqlite3_last_insert_rowid(sqlite3_db_handle(insert));
    return true;
}

static void order_location(const struct shop_order *order, struct shop_reply *reply)
{
    shop_reply_header(reply, "Location", "/api/orders/o-%" PRId64, order->id);
}

static void order_create_from(struct shop *shop, const struct shop_request *request,
                              struct shop_order *order, struct shop_reply *reply)
{
    struct shop_db *db = shop->db;
    bool committed;

    order->created_at_ms = shop_now_ms();
    (void)snprintf(order->state, sizeof(order->state), "new");
    committed =
        shop_db_begin(db) && order_insert(db, request, order) && shop_db_commit(db, request);
    if (!committed) {
        shop_db_report(db, reply);
    }
    shop_db_leave(db);
    if (committed) {
        order_reply(201, order, reply);
        order_location(order, reply);
        shop_reply_header(reply, "Set-Cookie", "last_order=o-%" PRId64 "; Path=/; HttpOnly",
                          order->id);
    }
}

void shop_order_create(struct shop *shop, const struct shop_request *request,
                       struct shop_reply *reply)
{
    struct shop_order order = {0};
    json_t *body = shop_body_object(request, reply);

    if (body != NULL && order_read(body, false, &order, reply)) {
        order_create_from(shop, request, &order, reply);
    }
    shop_order_clear(&order);
    json_decref(body);
}

static void order_missing(struct shop *shop, struct shop_reply *reply)
{
    if (shop_db_failed(shop->db)) {
        shop_db_report(shop->db, reply);
        return;
    }
    shop_reply_error(reply, 404, "there is no such order; POST /api/orders makes one");
}

void shop_order_get(struct shop *shop, const struct shop_request *request, struct shop_reply *reply)
{
    int64_t id = shop_number_of('o', request->param, request->param_bytes);
    struct shop_order order = {0};

    shop_db_enter(shop->db);
    if (shop_order_load(shop->db, id, &order)) {
        order_reply(200, &order, reply);
    } else {
        order_missing(shop, reply);
    }
    shop_db_leave(shop->db);
    shop_order_clear(&order);
}

void shop_order_by_key(struct shop *shop, const struct shop_request *request,
                       struct shop_reply *reply)
{
    struct shop_order order = {0};
    sqlite3_stmt *select;

    shop_db_enter(shop->db);
    select = shop_db_statement(shop->db, SHOP_SQL_ORDER_BY_KEY);
    if (shop_db_bind_bytes(select, 1, request->param, request->param_bytes) &&
        order_row(select, &order)) {
        order_reply(200, &order, reply);
        order_location(&order, reply);
    } else {
        order_missing(shop, reply);
    }
    shop_db_leave(shop->db);
    shop_order_clear(&order);
}

static bool order_update(struct shop_db *db, const struct shop_order *order)
{
    sqlite3_stmt *update = shop_db_statement(db, SHOP_SQL_ORDER_UPDATE);

    return order_bind(update, 1, order) && sqlite3_bind_int64(update, 4, order->id) == SQLITE_OK &&
           shop_db_run(update);
}

/* Changes an order inside one transaction; bails out with the reply filled at the first problem. */
static void order_edit(struct shop *shop, const struct shop_request *request, bool partial,
                       struct shop_reply *reply)
{
    struct shop_db *db = shop->db;
    struct shop_order order = {0};
    json_t *body = shop_body_object(request, reply);

    if (body == NULL) {
        return;
    }
    if (!shop_db_begin(db)) {
        shop_db_report(db, reply);
        goto leave;
    }
    if (!shop_order_load(db, shop_number_of('o', request->param, request->param_bytes), &order)) {
        order_missing(shop, reply);
        goto leave;
    }
    if (!order_read(body, partial, &order, reply)) {
        goto leave;
    }
    if (!order_update(db, &order) || !shop_db_commit(db, request)) {
        shop_db_report(db, reply);
        goto leave;
    }
    order_reply(200, &order, reply);
leave:
    shop_db_leave(db);
    shop_order_clear(&order);
    json_decref(body);
}

void shop_order_replace(struct shop *shop, const struct shop_request *request,
                        struct shop_reply *reply)
{
    order_edit(shop, request, false, reply);
}

void shop_order_change(struct shop *shop, const struct shop_request *request,
                       struct shop_reply *reply)
{
    order_edit(shop, request, true, reply);
}

void shop_order_delete(struct shop *shop, const struct shop_request *request,
                       struct shop_reply *reply)
{
    struct shop_db *db = shop->db;
    struct shop_order order = {0};

    if (!shop_db_begin(db)) {
        shop_db_report(db, reply);
        goto leave;
    }
    if (!shop_order_load(db, shop_number_of('o', request->param, request->param_bytes), &order)) {
        order_missing(shop, reply);
        goto leave;
    }
    if (!shop_order_mark(db, order.id, "deleted") || !shop_db_commit(db, request)) {
        shop_db_report(db, reply);
        goto leave;
    }
    reply->status = 204;
leave:
    shop_db_leave(db);
    shop_order_clear(&order);
}
