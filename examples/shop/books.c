/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what the shop says of itself: the books, the counters of executions, its health. Reads only.
 * Invariant: one answer comes from one moment, because the lock is held while it is read.
 */
#include "db.h"
#include "handlers.h"

void shop_books_get(struct shop *shop, const struct shop_request *request, struct shop_reply *reply)
{
    sqlite3_stmt *select;

    (void)request;
    shop_db_enter(shop->db);
    select = shop_db_statement(shop->db, SHOP_SQL_BOOKS);
    if (shop_db_row(select)) {
        shop_reply_json(reply, 200,
                        json_pack("{s:I, s:I, s:I, s:I}", "orders",
                                  (json_int_t)sqlite3_column_int64(select, 0), "payments",
                                  (json_int_t)sqlite3_column_int64(select, 1), "charged",
                                  (json_int_t)sqlite3_column_int64(select, 2), "coupons",
                                  (json_int_t)sqlite3_column_int64(select, 3)));
    } else {
        shop_db_report(shop->db, reply);
    }
    shop_db_leave(shop->db);
}

/* Reads rows of (name, count) into a new object and adds the counts to *total. NULL on failure. */
static json_t *counts_read(struct shop_db *db, enum shop_sql sql, json_int_t *total)
{
    sqlite3_stmt *select = shop_db_statement(db, sql);
    json_t *counts = json_object();

    while (counts != NULL && shop_db_row(select)) {
        const char *bytes = sqlite3_column_blob(select, 0);
        size_t byte_count = (size_t)sqlite3_column_bytes(select, 0);
        json_t *name = shop_json_text(bytes == NULL ? "" : bytes, byte_count);
        json_int_t count = sqlite3_column_int64(select, 1);

        *total += count;
        if (name == NULL ||
            json_object_set_new(counts, json_string_value(name), json_integer(count)) != 0) {
            json_decref(counts);
            counts = NULL;
        }
        json_decref(name);
    }
    if (counts != NULL && shop_db_failed(db)) {
        json_decref(counts);
        counts = NULL;
    }
    return counts;
}

void shop_executions_get(struct shop *shop, const struct shop_request *request,
                         struct shop_reply *reply)
{
    json_int_t by_key_total = 0;
    json_int_t by_route_total = 0;
    json_t *by_key;
    json_t *by_route;

    (void)request;
    shop_db_enter(shop->db);
    by_key = counts_read(shop->db, SHOP_SQL_EXECUTIONS_BY_KEY, &by_key_total);
    by_route = counts_read(shop->db, SHOP_SQL_EXECUTIONS_BY_ROUTE, &by_route_total);
    if (by_key != NULL && by_route != NULL) {
        shop_reply_json(reply, 200,
                        json_pack("{s:I, s:O, s:O}", "total", by_key_total, "by_key", by_key,
                                  "by_route", by_route));
    } else {
        shop_db_report(shop->db, reply);
    }
    shop_db_leave(shop->db);
    json_decref(by_key);
    json_decref(by_route);
}

void shop_executions_of_key(struct shop *shop, const struct shop_request *request,
                            struct shop_reply *reply)
{
    sqlite3_stmt *select;

    shop_db_enter(shop->db);
    select = shop_db_statement(shop->db, SHOP_SQL_EXECUTIONS_OF_KEY);
    if (shop_db_bind_bytes(select, 1, request->param, request->param_bytes) &&
        shop_db_row(select)) {
        shop_reply_json(reply, 200,
                        json_pack("{s:I}", "count", (json_int_t)sqlite3_column_int64(select, 0)));
    } else {
        shop_db_report(shop->db, reply);
    }
    shop_db_leave(shop->db);
}

void shop_health_get(struct shop *shop, const struct shop_request *request,
                     struct shop_reply *reply)
{
    (void)shop;
    (void)request;
    shop_reply_json(reply, 200, json_pack("{s:s}", "status", "ok"));
}
