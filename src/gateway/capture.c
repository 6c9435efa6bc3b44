/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters. They stand below gzip and every other filter that changes a body for one client, so
 * what is kept is what the backend said, and see the response of a claimed request on its way out:
 *
 *   HOLD    header and body are kept back, nothing is sent, until the settle is durable (R3)
 *   STREAM  passed on: too long to keep, an event stream, an upgrade; settled without a snapshot
 *   TAP     passed on and copied: executed without the store's protection
 *
 * Invariant: while we hold, or after the client has failed, every buf handed to us is taken whole,
 * so the backend is read to its end whatever becomes of the client (R4).
 */
#include "gateway/gateway.h"


#define NGX_HTTP_COUNTERFOIL_BODY_FIRST  4096


static ngx_int_t ngx_http_counterfoil_capture(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
static ngx_int_t ngx_http_counterfoil_hold_body(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_chain_t *in);
static ngx_int_t ngx_http_counterfoil_pass_body(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_chain_t *in);
static ngx_int_t ngx_http_counterfoil_send_held(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


static ngx_int_t
ngx_http_counterfoil_header_filter(ngx_http_request_t *r)
{
    ngx_http_counterfoil_ctx_t    *ctx;
    ngx_http_counterfoil_probe_t  *probe;

    if (r != r->main) {
        probe = ngx_http_counterfoil_probe_of(r);

        return probe ? ngx_http_counterfoil_probe_header(r, probe)
                     : ngx_http_next_header_filter(r);
    }

    ngx_http_counterfoil_unbuffer(r);

    ctx = ngx_http_counterfoil_get_ctx(r);

    if (ctx && ctx->dry) {
        ngx_http_counterfoil_dry_header(r, ctx);
    }

    if (ctx == NULL || ctx->state != NGX_HTTP_COUNTERFOIL_FORWARD
        || r->post_action)
    {
        return ngx_http_next_header_filter(r);
    }

    switch (ctx->hold) {

    case NGX_HTTP_COUNTERFOIL_NONE:
    case NGX_HTTP_COUNTERFOIL_HOLD:
        return ngx_http_counterfoil_capture(r, ctx);

    case NGX_HTTP_COUNTERFOIL_SETTLING:
    case NGX_HTTP_COUNTERFOIL_SEND:
        return NGX_OK;

    case NGX_HTTP_COUNTERFOIL_TAP:
    case NGX_HTTP_COUNTERFOIL_STREAM:
    case NGX_HTTP_COUNTERFOIL_PASS:
        break;
    }

    return ngx_http_next_header_filter(r);
}


static ngx_int_t
ngx_http_counterfoil_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_counterfoil_ctx_t    *ctx;
    ngx_http_counterfoil_probe_t  *probe;

    if (r != r->main) {
        probe = ngx_http_counterfoil_probe_of(r);

        return probe ? ngx_http_counterfoil_probe_body(r, probe, in)
                     : ngx_http_next_body_filter(r, in);
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_counterfoil_module);

    if (ctx && ctx->dry) {
        ngx_http_counterfoil_dry_body(ctx, in);
    }

    if (ctx == NULL || r->post_action) {
        return ngx_http_next_body_filter(r, in);
    }

    switch (ctx->hold) {

    case NGX_HTTP_COUNTERFOIL_HOLD:
        return ngx_http_counterfoil_hold_body(r, ctx, in);

    case NGX_HTTP_COUNTERFOIL_SETTLING:
        return NGX_AGAIN;

    case NGX_HTTP_COUNTERFOIL_SEND:
        return ngx_http_counterfoil_send_held(r, ctx);

    case NGX_HTTP_COUNTERFOIL_TAP:
    case NGX_HTTP_COUNTERFOIL_STREAM:
        return ngx_http_counterfoil_pass_body(r, ctx, in);

    case NGX_HTTP_COUNTERFOIL_NONE:
    case NGX_HTTP_COUNTERFOIL_PASS:
        break;
    }

    return ngx_http_next_body_filter(r, in);
}


ngx_int_t
ngx_http_counterfoil_filter_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_counterfoil_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_counterfoil_body_filter;

    return NGX_OK;
}


static void
ngx_http_counterfoil_take(ngx_buf_t *b)
{
    b->pos = b->last;

    if (b->in_file) {
        b->file_pos = b->file_last;
    }
}


static ngx_int_t
ngx_http_counterfoil_body_grow(ngx_pool_t *pool,
    ngx_http_counterfoil_body_t *body, size_t need)
{
    u_char  *data;
    size_t   capacity;

    capacity = body->capacity ? body->capacity
                              : NGX_HTTP_COUNTERFOIL_BODY_FIRST;

    while (capacity < need) {
        capacity *= 2;
    }

    data = ngx_pnalloc(pool, capacity);
    if (data == NULL) {
        return NGX_ERROR;
    }

    if (body->len) {
        ngx_memcpy(data, body->data, body->len);
    }

    if (body->data) {
        (void) ngx_pfree(pool, body->data);
    }

    body->data = data;
    body->capacity = capacity;

    return NGX_OK;
}


/* NGX_DECLINED: it would be more than `max`; nothing was appended. */
ngx_int_t
ngx_http_counterfoil_body_append(ngx_pool_t *pool,
    ngx_http_counterfoil_body_t *body, ngx_buf_t *b, size_t max)
{
    size_t  size;

    if (!ngx_buf_in_memory(b)) {
        return ngx_buf_size(b) ? NGX_DECLINED : NGX_OK;
    }

    size = (size_t) (b->last - b->pos);

    if (size == 0) {
        return NGX_OK;
    }

    if (size > max || body->len > max - size) {
        return NGX_DECLINED;
    }

    if (body->len + size > body->capacity
        && ngx_http_counterfoil_body_grow(pool, body, body->len + size)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_memcpy(body->data + body->len, b->pos, size);
    body->len += size;

    return NGX_OK;
}


/* Sends the header of a response that is passed on. The client's failure is not the backend's. */
static ngx_int_t
ngx_http_counterfoil_pass_header(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t                       rc;
    ngx_http_counterfoil_exposed_t  exposed;

    ngx_http_counterfoil_watch_stream(r);

    if (ngx_http_counterfoil_expose(r, ctx, &exposed) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_next_header_filter(r);

    ngx_http_counterfoil_unexpose(&exposed);

    if (rc == NGX_ERROR) {
        ctx->client_failed = 1;
        return NGX_OK;
    }

    return rc;
}


static ngx_int_t
ngx_http_counterfoil_capture(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    off_t  length;

    ctx->from_upstream = (r->upstream && r->upstream->cleanup) ? 1 : 0;
    ctx->body.len = 0;
    ctx->whole = 0;

    /*
     * What is sent now and what is replayed later must be the same:
     * no part of the body, no host of this one client in a Location.
     */

    r->allow_ranges = 0;
    r->headers_out.location = NULL;

    if (ctx->unprotected) {
        ctx->hold = NGX_HTTP_COUNTERFOIL_TAP;
        r->filter_need_in_memory = 1;

        if (ngx_http_counterfoil_mark(r, "Counterfoil-Unprotected", "store")
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        return ngx_http_counterfoil_pass_header(r, ctx);
    }

    if (ngx_http_counterfoil_is_stream(r, ctx)) {
        ctx->hold = NGX_HTTP_COUNTERFOIL_STREAM;
        ctx->too_long = 1;

        return ngx_http_counterfoil_pass_header(r, ctx);
    }

    ctx->hold = NGX_HTTP_COUNTERFOIL_HOLD;
    r->filter_need_in_memory = 1;

    if (ctx->from_upstream) {
        ngx_http_counterfoil_hook_body(r, ctx);
    }

    if (r->header_only) {

        /* no body will be given to the filters, not even its end */

        ctx->whole = 1;

        return ngx_http_counterfoil_settle(r, ctx) == NGX_ERROR ? NGX_ERROR
                                                                : NGX_OK;
    }

    length = r->headers_out.content_length_n;

    if (length > 0 && ngx_http_counterfoil_has_body(r)) {
        ctx->body.data = ngx_pnalloc(r->pool, (size_t) length);
        ctx->body.capacity = ctx->body.data ? (size_t) length : 0;
    }

    return NGX_OK;
}


/* The body outgrew its limit: what was kept back goes out, and the rest of it as it comes. */
static ngx_int_t
ngx_http_counterfoil_overflow(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_chain_t *in)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "counterfoil: response over its limit, passed on");

    ctx->hold = NGX_HTTP_COUNTERFOIL_STREAM;
    ctx->too_long = 1;

    rc = ngx_http_counterfoil_pass_header(r, ctx);

    if (rc > NGX_OK) {
        return rc;
    }

    if (ctx->body.len == 0) {
        return ngx_http_counterfoil_pass_body(r, ctx, in);
    }

    b = ngx_calloc_buf(r->pool);
    cl = ngx_alloc_chain_link(r->pool);

    if (b == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    b->pos = ctx->body.data;
    b->last = ctx->body.data + ctx->body.len;
    b->memory = 1;

    cl->buf = b;
    cl->next = in;

    return ngx_http_counterfoil_pass_body(r, ctx, cl);
}


/* An end that nginx takes for one, of a body that is not all there. */
static ngx_flag_t
ngx_http_counterfoil_is_short(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (!ctx->from_upstream) {
        return 0;
    }

    if (ctx->ended && ctx->exchange.sent && !ctx->exchange.complete
        && !ctx->accelerated)
    {
        return 1;
    }

    return ngx_http_counterfoil_has_body(r)
           && r->headers_out.content_length_n > (off_t) ctx->body.len;
}


static ngx_int_t
ngx_http_counterfoil_hold_body(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_chain_t *in)
{
    ngx_buf_t    *b;
    ngx_flag_t    last;
    ngx_chain_t  *cl;

    last = 0;

    for (cl = in; cl; cl = cl->next) {
        b = cl->buf;

        if (ngx_http_counterfoil_body_append(r->pool, &ctx->body, b,
                                      ctx->route->snapshot_body_bytes_max)
            != NGX_OK)
        {
            return ngx_http_counterfoil_overflow(r, ctx, cl);
        }

        ngx_http_counterfoil_take(b);

        last |= b->last_buf;
    }

    if (!last && ctx->from_upstream && r->upstream->cleanup == NULL) {

        /* nginx has ended the upstream and sends no end: it broke off */

        ctx->truncated = 1;
        last = 1;
    }

    if (last && ngx_http_counterfoil_is_short(r, ctx)) {
        ctx->truncated = 1;
    }

    ctx->whole = last;

    return last ? ngx_http_counterfoil_settle(r, ctx) : NGX_OK;
}


/* The settle is durable, or was not confirmed in time: the client gets its answer. */
static ngx_int_t
ngx_http_counterfoil_send_held(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t                       rc;
    ngx_buf_t                      *b;
    ngx_chain_t                     out;
    ngx_http_counterfoil_exposed_t  exposed;

    ctx->hold = NGX_HTTP_COUNTERFOIL_PASS;

    b = ngx_http_counterfoil_held(r, ctx);

    if (b == NULL
        || ngx_http_counterfoil_expose(r, ctx, &exposed) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_next_header_filter(r);

    ngx_http_counterfoil_unexpose(&exposed);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = b;
    out.next = NULL;

    rc = ngx_http_next_body_filter(r, &out);

    if (rc == NGX_AGAIN) {
        ngx_http_counterfoil_stay(r);
    }

    return rc;
}


/*
 * Remembers bufs until they are written, so that they can be taken back from a client that
 * failed.
 */
static ngx_int_t
ngx_http_counterfoil_remember(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_chain_t *in)
{
    ngx_chain_t  *cl, *ln, **ll;

    for (ll = &ctx->passed; *ll; ll = &(*ll)->next) { /* void */ }

    for (cl = in; cl; cl = cl->next) {
        ln = ngx_alloc_chain_link(r->pool);
        if (ln == NULL) {
            return NGX_ERROR;
        }

        ln->buf = cl->buf;
        ln->next = NULL;
        *ll = ln;
        ll = &ln->next;
    }

    return NGX_OK;
}


/*
 * Forgets what was written, before its owner can know and put something else into it: a buf that is
 * used again and waits in a filter above us must not be taken from there.
 */
static void
ngx_http_counterfoil_forget_written(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_chain_t  *cl, **ll;

    for (ll = &ctx->passed; *ll; /* void */) {
        cl = *ll;

        if (ngx_buf_size(cl->buf) == 0) {
            *ll = cl->next;
            ngx_free_chain(r->pool, cl);
            continue;
        }

        ll = &cl->next;
    }
}


static ngx_int_t
ngx_http_counterfoil_swallow(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_chain_t *in)
{
    ngx_chain_t  *cl;

    if (!ctx->client_failed) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "counterfoil: route \"%s\": the client has failed, the "
                      "backend is read to its end", ctx->route->name);
    }

    ctx->client_failed = 1;

    for (cl = ctx->passed; cl; cl = cl->next) {
        ngx_http_counterfoil_take(cl->buf);
    }

    for (cl = in; cl; cl = cl->next) {
        ngx_http_counterfoil_take(cl->buf);
    }

    ctx->passed = NULL;

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_pass_body(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_chain_t *in)
{
    ngx_int_t     rc;
    ngx_flag_t    last;
    ngx_chain_t  *cl;

    last = 0;

    for (cl = in; cl; cl = cl->next) {
        last |= cl->buf->last_buf;

        if (!ctx->too_long
            && ngx_http_counterfoil_body_append(r->pool, &ctx->body, cl->buf,
                                       ctx->route->snapshot_body_bytes_max)
               != NGX_OK)
        {
            ctx->too_long = 1;
        }
    }

    ctx->whole |= last;

    if (last && !ctx->settled) {
        ngx_http_counterfoil_settle_background(r, ctx, !ctx->too_long);
    }

    if (ctx->client_failed) {
        return ngx_http_counterfoil_swallow(r, ctx, in);
    }

    if (ngx_http_counterfoil_remember(r, ctx, in) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_next_body_filter(r, in);

    if (rc == NGX_ERROR) {
        return ngx_http_counterfoil_swallow(r, ctx, in);
    }

    ngx_http_counterfoil_forget_written(r, ctx);

    return rc;
}
