/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every handler of the shop, one per row of the table in routes.c. A handler reads the request,
 * commits at most one effect and fills the reply, errors included. Handlers run on many threads at
 * once; what they share is locked inside db.c, switches.c and arrivals.c.
 */
#ifndef SHOP_HANDLERS_H
#define SHOP_HANDLERS_H

#include "reply.h"
#include "request.h"
#include "shop.h"

typedef void shop_handler(struct shop *shop, const struct shop_request *request,
                          struct shop_reply *reply);

/* orders.c */
shop_handler shop_order_create;
shop_handler shop_order_get;
shop_handler shop_order_by_key;
shop_handler shop_order_replace;
shop_handler shop_order_change;
shop_handler shop_order_delete;

/* payments.c */
shop_handler shop_payment_create;
shop_handler shop_payment_get;
shop_handler shop_payment_by_key;
shop_handler shop_order_pay;

/* coupons.c */
shop_handler shop_coupon_redeem;

/* books.c */
shop_handler shop_books_get;
shop_handler shop_executions_get;
shop_handler shop_executions_of_key;
shop_handler shop_health_get;

/* echo.c */
shop_handler shop_echo;
shop_handler shop_echo_headers_of;

/* switches.c */
shop_handler shop_control_get;
shop_handler shop_control_set;

#endif
