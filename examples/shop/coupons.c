/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the redemptions of coupons: c-1, c-2, … Redeeming twice counts twice.
 * Invariant: one row of redemptions per execution.
 */
#include "db.h"
#include "fields.h"
#include "handlers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool redemption_insert(struct shop_db *db, const struct shop_request *request,
                              const json_t *user_id, int64_t *id)
{
    sqlite3_stmt *insert = shop_db_statement(db, SHOP_SQL_REDEMPTION_INSERT);
    char *user = json_dumps(user_id, JSON_COMPACT | JSON_ENCODE_ANY);
    bool done = user != NULL && shop_db_bind_bytes(insert, 1, request->key, request->key_bytes) &&
                shop_db_bind_bytes(insert, 2, request->param, request->param_bytes) &&
                shop_db_bind_text(insert, 3, user) &&
                sqlite3_bind_int64(insert, 4, shop_now_ms()) == SQLITE_OK && shop_db_run(insert);

    free(user);
    if (done) {
        *id = sqlite3_last_insert_rowid(sqlite3_db_handle(insert));
    }
    return done;
}

void shop_coupon_redeem(struct shop *shop, const struct shop_request *request,
                        struct shop_reply *reply)
{
    struct shop_db *db = shop->db;
    json_t *body = shop_body_object(request, reply);
    json_t *user_id = NULL;
    char redemption_id[32];
    int64_t id = 0;
    bool committed;

    if (body == NULL || !shop_field_user(body, &user_id, reply)) {
        json_decref(body);
        return;
    }
    committed = shop_db_begin(db) && redemption_insert(db, request, user_id, &id) &&
                shop_db_commit(db, request);
    if (!committed) {
        shop_db_report(db, reply);
    }
    shop_db_leave(db);
    if (committed) {
        (void)snprintf(redemption_id, sizeof(redemption_id), "c-%" PRId64, id);
        shop_reply_data(reply, 200,
                        json_pack("{s:s, s:o, s:O}", "redemption_id", redemption_id, "coupon",
                                  shop_json_text(request->param, request->param_bytes), "user_id",
                                  user_id));
    }
    json_decref(body);
}
