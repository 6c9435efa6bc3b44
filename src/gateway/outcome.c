/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an execution ended, and what came into being by it: the exchange with the backend as guard.c
 * knows it, and the values that the route's policy reads of the answer. It can be read only where
 * all of it was captured and it is the backend's own: not a stream, not one over the limit, not
 * encoded, no error page. What cannot be read says nothing.
 */
#include "gateway/gateway.h"


static ngx_flag_t
ngx_http_counterfoil_is_encoded(ngx_http_request_t *r)
{
    return r->headers_out.content_encoding
           && r->headers_out.content_encoding->value.len;
}


/* Whether the worker's selector now holds what the answer says. */
static ngx_flag_t
ngx_http_counterfoil_read_answer(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, const struct cfoil_exchange *exchange)
{
    enum cfoil_error                error;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();

    if (!ctx->whole
        || ctx->too_long
        || ctx->truncated
        || exchange->status != r->headers_out.status
        || ngx_http_counterfoil_is_encoded(r))
    {
        return 0;
    }

    error = cfoil_selector_read(w->selector,
                                cfoil_bytes_of(ctx->body.data, ctx->body.len),
                                NULL);

    return error == CFOIL_OK || error == CFOIL_E_SYNTAX;
}


void
ngx_http_counterfoil_read_ending(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_ending *ending)
{
    struct cfoil_exchange           exchange;
    const struct cfoil_route       *route;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();
    route = ctx->route;

    ngx_memzero(ending, sizeof(struct cfoil_ending));

    ngx_http_counterfoil_exchange(r, ctx, &exchange);

    if ((route->body.at || route->resource.id)
        && ngx_http_counterfoil_read_answer(r, ctx, &exchange))
    {
        if (route->body.at) {
            exchange.body_says =
                      cfoil_body_outcome(&route->body, exchange.status,
                                         cfoil_selector_at(w->selector,
                                                           route->body.at));
        }

        if (route->resource.id) {
            ending->resource =
                      cfoil_resource_of(&route->resource,
                                        cfoil_selector_at(w->selector,
                                                          route->resource.id));
        }
    }

    ending->outcome = cfoil_outcome_of(&route->outcome, &exchange,
                                       &ending->cause);
}
