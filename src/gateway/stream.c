/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses that cannot be held back: event streams, upgrades, and what says it will be too long to
 * keep. They are passed on while they come, and settled without a snapshot.
 */
#include "gateway/gateway.h"


static ngx_flag_t
ngx_http_counterfoil_is_event_stream(ngx_http_request_t *r)
{
    size_t      len;
    ngx_str_t  *type;

    type = &r->headers_out.content_type;
    len = sizeof("text/event-stream") - 1;

    return type->len >= len
           && ngx_strncasecmp(type->data, (u_char *) "text/event-stream", len)
              == 0
           && (type->len == len || type->data[len] == ';'
               || type->data[len] == ' ');
}


/* A length may be told without a body (RFC 9110, 8.6). */
ngx_flag_t
ngx_http_counterfoil_has_body(ngx_http_request_t *r)
{
    return r->method != NGX_HTTP_HEAD
           && r->headers_out.status != NGX_HTTP_NOT_MODIFIED
           && r->headers_out.status != NGX_HTTP_NO_CONTENT;
}


ngx_flag_t
ngx_http_counterfoil_is_stream(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS) {
        return 1;
    }

    if (r->headers_out.content_length_n
        > (off_t) ctx->route->snapshot_body_bytes_max)
    {
        return ngx_http_counterfoil_has_body(r);
    }

    return ngx_http_counterfoil_is_event_stream(r);
}


/* Events are of no use to a client that gets them when the buffers are full, guarded or not. */
void
ngx_http_counterfoil_unbuffer(ngx_http_request_t *r)
{
    ngx_http_counterfoil_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_counterfoil_module);

    if (lcf->mode == NGX_HTTP_COUNTERFOIL_ON && r->upstream
        && ngx_http_counterfoil_is_event_stream(r))
    {
        r->upstream->buffering = 0;
    }
}
