/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the payments: p-1, p-2, … Every payment charges, also the second one of the same order or
 * the same key: this shop has no guard against a double charge.
 * Invariant: the books' "charged" is the sum of the payments.
 */
#include "fields.h"
#include "handlers.h"
#include "orders.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ORDER_ID_BYTES_MAX = 128 };

struct payment {
    int64_t id;
    char order_id[ORDER_ID_BYTES_MAX + 1];
    int64_t amount; /* Cents. */
    int64_t created_at_ms;
};

static bool payment_insert(struct shop_db *db, const struct shop_request *request,
                           struct payment *payment)
{
    sqlite3_stmt *insert = shop_db_statement(db, SHOP_SQL_PAYMENT_INSERT);

    payment->created_at_ms = shop_now_ms();
    if (!shop_db_bind_bytes(insert, 1, request->key, request->key_bytes) ||
        !shop_db_bind_text(insert, 2, payment->order_id) ||
        sqlite3_bind_int64(insert, 3, payment->amount) != SQLITE_OK ||
        sqlite3_bind_int64(insert, 4, payment->created_at_ms) != SQLITE_OK ||
        !shop_db_run(insert)) {
        return false;
    }
    payment->id = sqlite3_last_insert_rowid(sqlite3_db_handle(insert));
    return true;
}

static void payment_reply(unsigned int status, const struct payment *payment,
                          struct shop_reply *reply)
{
    char payment_id[32];

    (void)snprintf(payment_id, sizeof(payment_id), "p-%" PRId64, payment->id);
    shop_reply_data(reply, status,
                    json_pack("{s:s, s:s, s:I, s:I}", "payment_id", payment_id, "order_id",
                              payment->order_id, "amount", (json_int_t)payment->amount,
                              "created_at_ms", (json_int_t)payment->created_at_ms));
    shop_reply_header(reply, "Location", "/api/payments/%s", payment_id);
}

static bool payment_read(const json_t *body, struct payment *payment, struct shop_reply *reply)
{
    const char *order_id = NULL;
    json_int_t amount = 0;

    if (!shop_field_text(body, "order_id", &order_id, reply) ||
        !shop_field_cents(body, "amount", 1, &amount, reply)) {
        return false;
    }
    if (strlen(order_id) > ORDER_ID_BYTES_MAX) {
        shop_reply_error(reply, 400, "order_id is longer than %d bytes", ORDER_ID_BYTES_MAX);
        return false;
    }
    (void)snprintf(payment->order_id, sizeof(payment->order_id), "%s", order_id);
    payment->amount = amount;
    return true;
}

void shop_payment_create(struct shop *shop, const struct shop_request *request,
                         struct shop_reply *reply)
{
    struct shop_db *db = shop->db;
    struct payment payment = {0};
    json_t *body = shop_body_object(request, reply);
    bool committed;

    if (body == NULL || !payment_read(body, &payment, reply)) {
        json_decref(body);
        return;
    }
    json_decref(body);
    committed =
        shop_db_begin(db) && payment_insert(db, request, &payment) && shop_db_commit(db, request);
    if (!committed) {
        shop_db_report(db, reply);
    }
    shop_db_leave(db);
    if (committed) {
        payment_reply(201, &payment, reply);
    }
}

/* Answers with the payment the statement selects. The lock is held. */
static void payment_find(struct shop *shop, sqlite3_stmt *select, struct shop_reply *reply)
{
    struct payment payment = {0};

    if (!shop_db_row(select)) {
        if (shop_db_failed(shop->db)) {
            shop_db_report(shop->db, reply);
            return;
        }
        shop_reply_error(reply, 404, "there is no such payment; POST /api/payments makes one");
        return;
    }
    payment.id = sqlite3_column_int64(select, 0);
    (void)snprintf(payment.order_id, sizeof(payment.order_id), "%s",
                   (const char *)sqlite3_column_text(select, 1));
    payment.amount = sqlite3_column_int64(select, 2);
    payment.created_at_ms = sqlite3_column_int64(select, 3);
    payment_reply(200, &payment, reply);
}

void shop_payment_get(struct shop *shop, const struct shop_request *request,
                      struct shop_reply *reply)
{
    int64_t id = shop_number_of('p', request->param, request->param_bytes);
    sqlite3_stmt *select;

    shop_db_enter(shop->db);
    select = shop_db_statement(shop->db, SHOP_SQL_PAYMENT_BY_ID);
    if (sqlite3_bind_int64(select, 1, id) == SQLITE_OK) {
        payment_find(shop, select, reply);
    } else {
        shop_db_report(shop->db, reply);
    }
    shop_db_leave(shop->db);
}

void shop_payment_by_key(struct shop *shop, const struct shop_request *request,
                         struct shop_reply *reply)
{
    sqlite3_stmt *select;

    shop_db_enter(shop->db);
    select = shop_db_statement(shop->db, SHOP_SQL_PAYMENT_BY_KEY);
    if (shop_db_bind_bytes(select, 1, request->param, request->param_bytes)) {
        payment_find(shop, select, reply);
    } else {
        shop_db_report(shop->db, reply);
    }
    shop_db_leave(shop->db);
}

void shop_order_pay(struct shop *shop, const struct shop_request *request, struct shop_reply *reply)
{
    struct shop_db *db = shop->db;
    struct shop_order order = {0};
    struct payment payment = {0};

    if (!shop_db_begin(db)) {
        shop_db_report(db, reply);
        goto leave;
    }
    if (!shop_order_load(db, shop_number_of('o', request->param, request->param_bytes), &order)) {
        if (shop_db_failed(db)) {
            shop_db_report(db, reply);
            goto leave;
        }
        shop_reply_error(reply, 404, "there is no such order to pay; POST /api/orders makes one");
        goto leave;
    }
    (void)snprintf(payment.order_id, sizeof(payment.order_id), "o-%" PRId64, order.id);
    payment.amount = order.amount;
    if (!shop_order_mark(db, order.id, "paid") || !payment_insert(db, request, &payment) ||
        !shop_db_commit(db, request)) {
        shop_db_report(db, reply);
        goto leave;
    }
    payment_reply(201, &payment, reply);
leave:
    shop_db_leave(db);
    shop_order_clear(&order);
}
