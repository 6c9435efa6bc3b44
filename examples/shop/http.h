/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: one thread per connection, so that a slow request holds up nobody else.
 * Owns the way of a request from its first byte to the last byte of its answer.
 */
#ifndef SHOP_HTTP_H
#define SHOP_HTTP_H

#include "shop.h"

struct MHD_Daemon;

/* Serves on a listening socket, with at most connections_max connections at once. One more is closed at
 * once. Takes the socket if it succeeds. NULL on failure, with errno set where the system gave a reason. */
struct MHD_Daemon *shop_http_start(struct shop *shop, int listen_socket,
                                   unsigned int connections_max) SHOP_MUST_CHECK;

/* Stops; shop->stop_fd must be readable, so that waiting requests end. Returns when every thread
 * has ended. */
void shop_http_stop(struct MHD_Daemon *daemon);

#endif
