/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content handler of a claimed request, and how its exchange with the backend ended.
 *
 * A claimed request runs under a copy of its location's upstream settings, so that other requests
 * of the location stay plain nginx: the client's abort does not abort the backend (R4), and
 * nothing is sent again once a byte was sent. Because an upstream is initialised inside the
 * content handler, and may even fail in there, the shared settings are changed for just that call;
 * nothing else runs meanwhile. The copy is put in place when it returns.
 *
 * Invariant: once a backend was reached no other backend is, unless it asked for it itself
 * (X-Accel-Redirect).
 */
#include "gateway/gateway.h"


typedef struct {
    ngx_http_upstream_conf_t  *conf;
    ngx_flag_t                 ignore_client_abort;
    ngx_uint_t                 next_upstream;
} ngx_http_counterfoil_saved_t;


static ngx_int_t ngx_http_counterfoil_content_handler(ngx_http_request_t *r);
static void ngx_http_counterfoil_finalize_upstream(ngx_http_request_t *r,
    ngx_int_t rc);


/*
 * PRECONTENT's last word for an execution: go on, but through us. A location without a content
 * handler answers from files and has no upstream to guard.
 */
ngx_int_t
ngx_http_counterfoil_guard(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (r->content_handler
        && r->content_handler != ngx_http_counterfoil_content_handler)
    {
        ctx->content_handler = r->content_handler;
        r->content_handler = ngx_http_counterfoil_content_handler;
    }

    return NGX_DECLINED;
}


/*
 * nginx itself never passes on POST, PATCH and LOCK that were sent, unless "non_idempotent" lets
 * it; for any other method only no next upstream at all is safe.
 */
static void
ngx_http_counterfoil_tighten(ngx_http_request_t *r,
    ngx_http_upstream_conf_t *conf)
{
    conf->ignore_client_abort = 1;

    if (r->method & (NGX_HTTP_POST|NGX_HTTP_PATCH|NGX_HTTP_LOCK)) {
        conf->next_upstream &= ~((ngx_uint_t)
                                 NGX_HTTP_UPSTREAM_FT_NON_IDEMPOTENT);

    } else {
        conf->next_upstream = NGX_HTTP_UPSTREAM_FT_OFF;
    }
}


static ngx_uint_t
ngx_http_counterfoil_tighten_shared(ngx_http_request_t *r,
    ngx_http_counterfoil_saved_t *saved)
{
    ngx_uint_t                         i;
    ngx_http_upstream_conf_t          *conf;
    ngx_http_counterfoil_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_counterfoil_module);

    for (i = 0; i < mcf->nupstreams; i++) {

        /* the upstream settings are the first member of each location's */

        conf = r->loc_conf[mcf->upstreams[i]];

        saved[i].conf = conf;
        saved[i].ignore_client_abort = conf->ignore_client_abort;
        saved[i].next_upstream = conf->next_upstream;

        ngx_http_counterfoil_tighten(r, conf);
    }

    return mcf->nupstreams;
}


static void
ngx_http_counterfoil_restore_shared(ngx_http_counterfoil_saved_t *saved,
    ngx_uint_t n)
{
    /* backwards, as a nested call may have saved the same settings twice */

    while (n--) {
        saved[n].conf->ignore_client_abort = saved[n].ignore_client_abort;
        saved[n].conf->next_upstream = saved[n].next_upstream;
    }
}


/*
 * Gives an upstream settings of its own and a hook at its end. It may not run yet: a request that
 * waits for a cache lock starts its exchange long after the content handler has returned. One that
 * is over already never looks at either again.
 */
static ngx_int_t
ngx_http_counterfoil_adopt(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_upstream_t       *u;
    ngx_http_upstream_conf_t  *conf;

    u = r->upstream;

    if (u == NULL || u->conf == NULL
        || u->finalize_request == ngx_http_counterfoil_finalize_upstream)
    {
        return NGX_OK;
    }

    conf = ngx_palloc(r->pool, sizeof(ngx_http_upstream_conf_t));
    if (conf == NULL) {
        return NGX_ERROR;
    }

    *conf = *u->conf;
    ngx_http_counterfoil_tighten(r, conf);

    u->conf = conf;

    ctx->finalize_request = u->finalize_request;
    u->finalize_request = ngx_http_counterfoil_finalize_upstream;

    ngx_http_counterfoil_hook_header(r, ctx);

    return NGX_OK;
}


/*
 * A named location that an error page leads to would send the request on as it is: to a backend
 * that is not the one that may have executed it.
 */
static ngx_flag_t
ngx_http_counterfoil_would_resend(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (!ctx->ended || !ctx->exchange.sent || ctx->accelerated) {
        return 0;
    }

    /* an error page's own URI is asked for by a GET that nginx made of the request */

    return r->method == ctx->method
           || !(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD));
}


static ngx_int_t
ngx_http_counterfoil_content_handler(ngx_http_request_t *r)
{
    ngx_int_t                      rc;
    ngx_uint_t                     n;
    ngx_http_counterfoil_ctx_t    *ctx;
    ngx_http_counterfoil_saved_t   saved[NGX_HTTP_COUNTERFOIL_UPSTREAMS];

    ctx = ngx_http_counterfoil_get_ctx(r);

    if (ngx_http_counterfoil_would_resend(r, ctx)) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "counterfoil: route \"%s\": not sent to another backend,"
                      " because one was reached already", ctx->route->name);

        rc = ctx->exchange.status;
        return rc >= NGX_HTTP_BAD_REQUEST ? rc : NGX_HTTP_BAD_GATEWAY;
    }

    n = ngx_http_counterfoil_tighten_shared(r, saved);

    rc = ctx->content_handler(r);

    if (ngx_http_counterfoil_adopt(r, ctx) != NGX_OK) {

        /* the settings cannot be kept apart: rather none than unguarded */

        ngx_http_counterfoil_restore_shared(saved, n);
        return NGX_ERROR;
    }

    ngx_http_counterfoil_restore_shared(saved, n);

    return rc;
}


/* For a dry run: only looks on. */
static ngx_int_t
ngx_http_counterfoil_watch_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_upstream_t         *u;
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_counterfoil_get_ctx(r);

    rc = ctx->content_handler(r);

    u = r->upstream;

    if (u && u->finalize_request
        && u->finalize_request != ngx_http_counterfoil_finalize_upstream)
    {
        ctx->finalize_request = u->finalize_request;
        u->finalize_request = ngx_http_counterfoil_finalize_upstream;
    }

    return rc;
}


void
ngx_http_counterfoil_watch(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (r->content_handler
        && r->content_handler != ngx_http_counterfoil_watch_handler)
    {
        ctx->content_handler = r->content_handler;
        r->content_handler = ngx_http_counterfoil_watch_handler;
    }
}


static ngx_flag_t
ngx_http_counterfoil_was_sent(ngx_http_request_t *r)
{
    ngx_uint_t                  i;
    ngx_http_upstream_state_t  *state;

    if (r->upstream_states == NULL) {
        return 0;
    }

    state = r->upstream_states->elts;

    for (i = 0; i < r->upstream_states->nelts; i++) {
        if (state[i].bytes_sent > 0) {
            return 1;
        }
    }

    return 0;
}


static ngx_flag_t
ngx_http_counterfoil_has_header(ngx_list_t *headers, const char *name)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    if (headers->part.elts == NULL) {
        return 0;
    }

    part = &headers->part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {
        if (h->hash && ngx_http_counterfoil_header_is(h, name)) {
            return 1;
        }
    }

    return 0;
}


/* Whether a connection that gave no whole response was ended by its other side. */
static ngx_flag_t
ngx_http_counterfoil_was_closed(ngx_http_upstream_t *u)
{
    ngx_connection_t  *c;

    c = u->peer.connection;

    if (c && (c->read->eof || c->read->pending_eof || c->read->error
              || c->write->error))
    {
        return 1;
    }

    /* nothing at all came back, and it was not for lack of time */

    return u->state && u->state->status == NGX_HTTP_BAD_GATEWAY
           && u->state->bytes_received == 0;
}


static ngx_flag_t
ngx_http_counterfoil_has_timed_out(ngx_http_upstream_t *u, ngx_int_t rc)
{
    ngx_connection_t  *c;

    c = u->peer.connection;

    return rc == NGX_HTTP_GATEWAY_TIME_OUT
           || (u->state && u->state->status == NGX_HTTP_GATEWAY_TIME_OUT)
           || (c && (c->read->timedout || c->write->timedout));
}


/* FastCGI says in a record of its own that an answer is over; nginx does without it. */
static ngx_flag_t
ngx_http_counterfoil_has_end(ngx_http_upstream_t *u)
{
    if (u->conf->module.len != sizeof("fastcgi") - 1
        || ngx_strncmp(u->conf->module.data, "fastcgi", sizeof("fastcgi") - 1)
           != 0
        || !u->header_sent)
    {
        return 1;
    }

    return u->buffering ? u->pipe->upstream_done : (u->length == 0);
}


/* Reads an upstream that has just ended, or that has ended while we were not looking. */
static void
ngx_http_counterfoil_read_upstream(ngx_http_request_t *r, ngx_int_t rc,
    struct cfoil_exchange *exchange)
{
    ngx_flag_t            header;
    ngx_http_upstream_t  *u;

    u = r->upstream;

    ngx_memzero(exchange, sizeof(struct cfoil_exchange));

    header = u->state && u->state->header_time != (ngx_msec_t) -1
             && u->headers_in.status_n;

    exchange->sent = ngx_http_counterfoil_was_sent(r);

    if (!header) {
        exchange->status = (u->state) ? u->state->status : 0;
        exchange->timed_out = ngx_http_counterfoil_has_timed_out(u, rc);
        exchange->backend_closed = !exchange->timed_out
                                   && ngx_http_counterfoil_was_closed(u);
        return;
    }

    exchange->status = u->headers_in.status_n;
    exchange->has_retry_after =
                      ngx_http_counterfoil_has_header(&u->headers_in.headers,
                                                      "Retry-After");

    /* whole: read to its end, or its status alone was wanted */

    exchange->complete = (rc == NGX_OK && ngx_http_counterfoil_has_end(u))
                         || rc == NGX_DECLINED
                         || (!u->header_sent
                             && rc == (ngx_int_t) u->headers_in.status_n);

    if (!exchange->complete) {
        exchange->timed_out = ngx_http_counterfoil_has_timed_out(u, rc);
        exchange->backend_closed = !exchange->timed_out
                                   && ngx_http_counterfoil_was_closed(u);
    }
}


/* Called by nginx while the upstream's connection is still there. */
static void
ngx_http_counterfoil_finalize_upstream(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_counterfoil_get_ctx(r);

    /* the first exchange that reached a backend is the one that counts */

    if (!ctx->ended || !ctx->exchange.sent) {
        ngx_http_counterfoil_read_upstream(r, rc, &ctx->exchange);
        ctx->ended = 1;
        ctx->accelerated = (rc == NGX_DECLINED);
    }

    if (ctx->hold == NGX_HTTP_COUNTERFOIL_STREAM
        || ctx->hold == NGX_HTTP_COUNTERFOIL_TAP)
    {
        /* what is not written yet is left to nginx's writer */

        ngx_http_counterfoil_stay(r);
    }

    ctx->finalize_request(r, rc);
}


/*
 * How the execution went, as far as it is known now. A location without an upstream answers itself:
 * its answer is the exchange.
 */
void
ngx_http_counterfoil_exchange(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_exchange *exchange)
{
    if (ctx->ended) {
        *exchange = ctx->exchange;

        if (ctx->truncated) {
            exchange->complete = 0;
        }

        return;
    }

    if (r->upstream) {
        ngx_http_counterfoil_read_upstream(r, ctx->truncated ? NGX_ERROR
                                                             : NGX_OK,
                                           exchange);
        return;
    }

    ngx_memzero(exchange, sizeof(struct cfoil_exchange));

    exchange->sent = (ctx->hold != NGX_HTTP_COUNTERFOIL_NONE);
    exchange->complete = exchange->sent;
    exchange->status = r->headers_out.status;
    exchange->has_retry_after =
                     ngx_http_counterfoil_has_header(&r->headers_out.headers,
                                                     "Retry-After");
}


/* The location's upstream read time-out, which is how long a lost execution may still go on. */
ngx_msec_t
ngx_http_counterfoil_read_timeout(ngx_http_request_t *r)
{
    ngx_uint_t                         i;
    ngx_msec_t                         timeout;
    ngx_http_upstream_conf_t          *conf;
    ngx_http_counterfoil_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_counterfoil_module);
    timeout = 60000;

    for (i = 0; i < mcf->nupstreams; i++) {
        conf = r->loc_conf[mcf->upstreams[i]];

        if (i == 0 || conf->upstream) {
            timeout = conf->read_timeout;
        }

        if (conf->upstream) {
            break;
        }
    }

    return timeout;
}
