/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where nginx would misread what a claimed request's backend sends. Hooks around the two places
 * that read it:
 *
 *   header  An interim response (1xx but 101) is skipped, the one that follows is the answer. Bytes
 *           without a status line are an invalid header, and not a success of HTTP/0.9.
 *   body    What cannot be decoded ends a held response as one that broke off: nginx would close
 *           the client's connection without a word, though it was sent nothing yet.
 *
 * nginx's proxy exchanges u->process_header itself on its way from the status line to the headers,
 * so the hook is put on again after every call. Invariant: what is hooked is called with what nginx
 * would have called it with.
 */
#include "gateway/gateway.h"


static ngx_flag_t
ngx_http_counterfoil_is_proxy(ngx_http_upstream_t *u)
{
    return u->conf->module.len == sizeof("proxy") - 1
           && ngx_strncmp(u->conf->module.data, "proxy", sizeof("proxy") - 1)
              == 0;
}


static ngx_flag_t
ngx_http_counterfoil_is_interim(ngx_uint_t status)
{
    return status >= NGX_HTTP_CONTINUE && status < NGX_HTTP_OK
           && status != NGX_HTTP_SWITCHING_PROTOCOLS;
}


/* As if the response had not begun: as nginx does before it asks another backend. */
static ngx_int_t
ngx_http_counterfoil_skip_interim(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_upstream_t  *u;

    u = r->upstream;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "counterfoil: interim response %ui skipped",
                   u->headers_in.status_n);

    if (u->reinit_request(r) != NGX_OK) {
        return NGX_ERROR;
    }

    u->headers_in = *ctx->no_headers;
    u->state->status = 0;
    u->keepalive = 0;
    u->upgrade = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_process_header(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_uint_t                   version;
    ngx_http_upstream_t         *u;
    ngx_http_counterfoil_ctx_t  *ctx;

    u = r->upstream;
    ctx = ngx_http_counterfoil_get_ctx(r);

    if (ctx->no_headers == NULL) {
        ctx->no_headers = ngx_palloc(r->pool, sizeof(u->headers_in));
        if (ctx->no_headers == NULL) {
            return NGX_ERROR;
        }

        *ctx->no_headers = u->headers_in;
    }

    u->process_header = ctx->process_header;

    do {
        version = r->http_version;

        rc = u->process_header(r);

        if (r->http_version != version) {
            r->http_version = version;
            rc = NGX_HTTP_UPSTREAM_INVALID_HEADER;
        }

        if (rc != NGX_OK
            || !ngx_http_counterfoil_is_interim(u->headers_in.status_n))
        {
            break;
        }

        rc = ngx_http_counterfoil_skip_interim(r, ctx);

    } while (rc == NGX_OK);

    ctx->process_header = u->process_header;
    u->process_header = ngx_http_counterfoil_process_header;

    return rc;
}


static ngx_int_t
ngx_http_counterfoil_pipe_filter(ngx_event_pipe_t *p, ngx_buf_t *buf)
{
    ngx_int_t                    rc;
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_counterfoil_get_ctx(p->input_ctx);

    rc = ctx->pipe_filter(p, buf);

    if (rc == NGX_ERROR && ctx->hold == NGX_HTTP_COUNTERFOIL_HOLD) {
        p->upstream_error = 1;
        return NGX_OK;
    }

    return rc;
}


static ngx_int_t
ngx_http_counterfoil_input_filter(void *data, ssize_t bytes)
{
    ngx_http_request_t *r = data;

    ngx_int_t                    rc;
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_counterfoil_get_ctx(r);

    rc = ctx->input_filter(data, bytes);

    if (rc == NGX_ERROR && ctx->hold == NGX_HTTP_COUNTERFOIL_HOLD) {
        r->upstream->error = 1;
        return NGX_OK;
    }

    return rc;
}


static ngx_int_t
ngx_http_counterfoil_input_filter_init(void *data)
{
    ngx_http_request_t *r = data;

    ngx_int_t                    rc;
    ngx_http_upstream_t         *u;
    ngx_http_counterfoil_ctx_t  *ctx;

    u = r->upstream;
    ctx = ngx_http_counterfoil_get_ctx(r);

    rc = ctx->input_filter_init(data);

    if (u->buffering) {
        ctx->pipe_filter = u->pipe->input_filter;
        u->pipe->input_filter = ngx_http_counterfoil_pipe_filter;

    } else {
        ctx->input_filter = u->input_filter;
        u->input_filter = ngx_http_counterfoil_input_filter;
    }

    return rc;
}


/* When the exchange has begun and nothing of it was read. */
void
ngx_http_counterfoil_hook_header(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_upstream_t  *u;

    u = r->upstream;

    if (!ngx_http_counterfoil_is_proxy(u)) {
        return;
    }

    ctx->process_header = u->process_header;
    u->process_header = ngx_http_counterfoil_process_header;
}


/* When its header was read and its body is about to be. */
void
ngx_http_counterfoil_hook_body(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_upstream_t  *u;

    u = r->upstream;

    if (u->input_filter_init == NULL
        || u->input_filter_init == ngx_http_counterfoil_input_filter_init)
    {
        return;
    }

    ctx->input_filter_init = u->input_filter_init;
    u->input_filter_init = ngx_http_counterfoil_input_filter_init;
}
