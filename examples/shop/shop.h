/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shop: what every request handler is given. Owns nothing itself; main.c makes the parts before
 * the first request and frees them after the last one, so handlers may use them without a lock.
 *
 *     main.c -> http.c -> routes.c -> orders.c payments.c coupons.c books.c echo.c switches.c
 *                                          \_________ db.c (one lock, one transaction per effect)
 *
 * Invariant: an execution is counted in the transaction that commits its effect, or not at all.
 */
#ifndef SHOP_SHOP_H
#define SHOP_SHOP_H

#define SHOP_MUST_CHECK __attribute__((warn_unused_result))

struct shop_arrivals;
struct shop_db;
struct shop_switches;

struct shop {
    struct shop_db *db;
    struct shop_switches *switches;
    struct shop_arrivals *arrivals;
    int stop_fd;    /* An eventfd that becomes readable when the shop is to end. */
    int workers_fd; /* A semaphore eventfd: how many more requests may be worked on at once. */
};

#endif
