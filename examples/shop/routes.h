/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which handler answers which method and path. Owns the table; runs nothing itself.
 */
#ifndef SHOP_ROUTES_H
#define SHOP_ROUTES_H

#include "handlers.h"

#include <stdbool.h>

struct shop_route {
    const char *method; /* "*" is any. */
    const char
        *pattern; /* {…} is one segment, decoded into the request; * at the end is the rest. */
    const char *counted; /* The path under which executions are counted; NULL: the pattern. */
    shop_handler *handler;
    bool has_effect; /* Its arrival is remembered. */
    bool switchable; /* The switches apply to it. */
};

/* Finds the route of a request and sets its param and route_name. NULL if there is none; the reply
 * is then a 404, or a 405 with Allow. */
const struct shop_route *shop_route_find(struct shop_request *request,
                                         struct shop_reply *reply) SHOP_MUST_CHECK;

#endif
