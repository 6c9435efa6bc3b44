/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `while_pending: {accept: PATH}`: a duplicate of what still runs is told where to look, instead of
 * being refused.
 */
#include "gateway/gateway.h"


/* A place that cannot be named leaves the refusal as it is. */
ngx_int_t
ngx_http_counterfoil_accept(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_uint_t *status)
{
    size_t                          len;
    ngx_str_t                       name, value;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();

    if (ctx->route->accept_path == NULL || w == NULL) {
        return NGX_OK;
    }

    len = cfoil_accept_path(ctx->route,
                            ngx_http_counterfoil_bytes(&r->method_name),
                            ngx_http_counterfoil_bytes(&ctx->path),
                            ngx_http_counterfoil_bytes(&ctx->key),
                            (char *) w->buffer, sizeof(w->buffer));
    if (len == 0) {
        return NGX_OK;
    }

    value.len = len;
    value.data = ngx_pnalloc(r->pool, len);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(value.data, w->buffer, len);
    ngx_str_set(&name, "Location");

    if (ngx_http_counterfoil_header_out(r, &name, &value) == NULL) {
        return NGX_ERROR;
    }

    *status = NGX_HTTP_ACCEPTED;

    return NGX_OK;
}
