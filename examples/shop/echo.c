/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the endpoints for tests of bytes: what arrived goes back unchanged, and the headers it
 * arrived with can be looked at afterwards.
 * Invariant: the body of an echo is the body of its request, byte for byte.
 */
#include "arrivals.h"
#include "db.h"
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

void shop_echo(struct shop *shop, const struct shop_request *request, struct shop_reply *reply)
{
    bool committed = shop_db_begin(shop->db) && shop_db_commit(shop->db, request);

    if (!committed) {
        shop_db_report(shop->db, reply);
    }
    shop_db_leave(shop->db);
    if (!committed) {
        return;
    }
    shop_reply_bytes(reply, 200, "application/octet-stream", request->body, request->body_bytes);
    shop_reply_header(reply, "X-Echo-Sha256", "%s", request->body_sha256);
    shop_reply_header(reply, "X-Echo-Method", "%s", request->method);
    shop_reply_header(reply, "X-Echo-Path", "%s", request->target);
}

void shop_echo_headers_of(struct shop *shop, const struct shop_request *request,
                          struct shop_reply *reply)
{
    char *text = shop_arrivals_find(shop->arrivals, request->param, request->param_bytes);

    if (text == NULL) {
        shop_reply_error(reply, 404,
                         "no request with this key arrived since the start (the last %d keys are "
                         "remembered)",
                         SHOP_ARRIVALS_MAX);
        return;
    }
    shop_reply_json(reply, 200, json_loads(text, 0, NULL));
    free(text);
}
