/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table of routes and the matching of paths. Paths are matched undecoded, so that a %2F
 * inside a key does not split it.
 * Invariant: the first row that matches wins; a HEAD is routed like a GET.
 */
#include "routes.h"

#include <stdio.h>
#include <string.h>

static const struct shop_route ROUTES[] = {
    {"POST", "/api/orders", NULL, shop_order_create, true, true},
    {"GET", "/api/orders/by-key/{key}", NULL, shop_order_by_key, false, true},
    {"GET", "/api/orders/{id}", NULL, shop_order_get, false, true},
    {"PUT", "/api/orders/{id}", NULL, shop_order_replace, true, true},
    {"PATCH", "/api/orders/{id}", NULL, shop_order_change, true, true},
    {"DELETE", "/api/orders/{id}", NULL, shop_order_delete, true, true},
    {"POST", "/api/orders/{id}/pay", NULL, shop_order_pay, true, true},
    {"POST", "/api/payments", NULL, shop_payment_create, true, true},
    {"GET", "/api/payments/by-key/{key}", NULL, shop_payment_by_key, false, true},
    {"GET", "/api/payments/{id}", NULL, shop_payment_get, false, true},
    {"POST", "/api/coupons/{code}/redeem", NULL, shop_coupon_redeem, true, true},
    {"GET", "/api/books", NULL, shop_books_get, false, false},
    {"GET", "/api/executions", NULL, shop_executions_get, false, false},
    {"GET", "/api/executions/{key}", NULL, shop_executions_of_key, false, false},
    {"GET", "/echo/headers-of/{key}", NULL, shop_echo_headers_of, false, false},
    {"*", "/echo", NULL, shop_echo, true, true},
    {"*", "/echo/*", "/echo", shop_echo, true, true},
    {"GET", "/control", NULL, shop_control_get, false, false},
    {"POST", "/control", NULL, shop_control_set, false, false},
    {"GET", "/healthz", NULL, shop_health_get, false, false},
};

/* Matches a path against a pattern; the segment of {…} is left in *param, of *param_bytes bytes. */
static bool path_matches(const char *pattern, const char *path, size_t path_bytes,
                         const char **param, size_t *param_bytes)
{
    const char *end = path + path_bytes;

    while (*pattern != '\0') {
        if (*pattern == '*') {
            return true;
        }
        if (*pattern == '{') {
            *param = path;
            while (path < end && *path != '/') {
                path++;
            }
            *param_bytes = (size_t)(path - *param);
            pattern = strchr(pattern, '}') + 1;
            continue;
        }
        if (path == end || *path != *pattern) {
            return false;
        }
        path++;
        pattern++;
    }
    return path == end;
}

static bool method_matches(const char *wanted, const char *method)
{
    if (strcmp(wanted, "*") == 0 || strcmp(wanted, method) == 0) {
        return true;
    }
    return strcmp(wanted, "GET") == 0 && strcmp(method, "HEAD") == 0;
}

static bool route_take(const struct shop_route *route, const char *param, size_t param_bytes,
                       struct shop_request *request, struct shop_reply *reply)
{
    const char *path = route->counted == NULL ? route->pattern : route->counted;

    (void)snprintf(request->route_name, sizeof(request->route_name), "%.30s %s", request->method,
                   path);
    if (!shop_percent_decode(param, param_bytes, request->param, &request->param_bytes)) {
        shop_reply_error(reply, 414, "a part of the path is longer than %d bytes",
                         SHOP_PARAM_BYTES_MAX);
        return false;
    }
    return true;
}

const struct shop_route *shop_route_find(struct shop_request *request, struct shop_reply *reply)
{
    char allowed[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < sizeof(ROUTES) / sizeof(ROUTES[0]); i++) {
        const struct shop_route *route = &ROUTES[i];
        const char *param = "";
        size_t param_bytes = 0;

        if (!path_matches(route->pattern, request->target, request->path_bytes, &param,
                          &param_bytes)) {
            continue;
        }
        if (method_matches(route->method, request->method)) {
            return route_take(route, param, param_bytes, request, reply) ? route : NULL;
        }
        used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s",
                                 used == 0 ? "" : ", ", route->method);
    }
    if (used > 0) {
        shop_reply_error(reply, 405, "this path takes %s", allowed);
        shop_reply_header(reply, "Allow", "%s", allowed);
        return NULL;
    }
    shop_reply_error(reply, 404,
                     "there is nothing at this path; the shop's README lists its paths");
    return NULL;
}
