/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe: one request in doubt asks the backend's status endpoint on behalf of all. It is a
 * background subrequest through the server's own locations, so that it reaches the backend the way
 * every request does; our filters take its answer, and nothing of it reaches the client.
 *
 * Found (2xx, read to its end) settles the record, 404 says that it never happened, and anything
 * else, or an answer that takes too long, says nothing. Invariant: a report is made exactly once.
 */
#include "gateway/gateway.h"


static ngx_int_t ngx_http_counterfoil_probe_done(ngx_http_request_t *sr,
    void *data, ngx_int_t rc);
static void ngx_http_counterfoil_probe_timeout(ngx_event_t *ev);


ngx_http_counterfoil_probe_t *
ngx_http_counterfoil_probe_of(ngx_http_request_t *sr)
{
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(sr->main, ngx_http_counterfoil_module);

    if (ctx && ctx->probe && ctx->probe->request == sr) {
        return ctx->probe;
    }

    return NULL;
}


/*
 * A key that would name another resource once its path is decoded cannot be probed: a "not found"
 * of that other resource must not let anything run again.
 */
static ngx_flag_t
ngx_http_counterfoil_is_safe_path(ngx_str_t *path)
{
    u_char  *p, *end;

    end = path->data + path->len;

    if (ngx_strlcasestrn(path->data, end, (u_char *) "%2f", 3 - 1)) {
        return 0;
    }

    for (p = path->data; p < end; p++) {
        if (*p != '/' || p + 1 == end || p[1] != '.') {
            continue;
        }

        if (p + 2 == end || p[2] == '/'
            || (p[2] == '.' && (p + 3 == end || p[3] == '/')))
        {
            return 0;
        }
    }

    return 1;
}


/* NGX_DECLINED: the path cannot be asked. */
static ngx_int_t
ngx_http_counterfoil_probe_uri(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_str_t *uri, ngx_str_t *args)
{
    size_t                          len;
    u_char                         *p, *src, *dst;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();

    len = cfoil_probe_path(ctx->route,
                           ngx_http_counterfoil_bytes(&r->method_name),
                           ngx_http_counterfoil_bytes(&ctx->path),
                           ngx_http_counterfoil_bytes(&ctx->key),
                           (char *) w->buffer, sizeof(w->buffer));
    if (len == 0) {
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, w->buffer, len);

    uri->data = p;
    uri->len = len;
    ngx_str_null(args);

    p = ngx_strlchr(uri->data, uri->data + len, '?');
    if (p) {
        uri->len = p - uri->data;
        args->data = p + 1;
        args->len = len - uri->len - 1;
    }

    if (!ngx_http_counterfoil_is_safe_path(uri)) {
        return NGX_DECLINED;
    }

    src = uri->data;
    dst = uri->data;

    ngx_unescape_uri(&dst, &src, uri->len, 0);
    uri->len = dst - uri->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_probe_start(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_str_t *uri, ngx_str_t *args)
{
    ngx_http_request_t            *sr;
    ngx_http_counterfoil_probe_t  *probe;
    ngx_http_post_subrequest_t    *ps;

    probe = ctx->probe;

    ps = ngx_palloc(r->pool, sizeof(ngx_http_post_subrequest_t));
    if (ps == NULL) {
        return NGX_ERROR;
    }

    ps->handler = ngx_http_counterfoil_probe_done;
    ps->data = ctx;

    if (ngx_http_subrequest(r, uri, args, &sr, ps,
                            NGX_HTTP_SUBREQUEST_BACKGROUND)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    probe->request = sr;

    /* an empty body of its own, so that the request's stays open */

    sr->request_body = ngx_pcalloc(r->pool, sizeof(ngx_http_request_body_t));
    if (sr->request_body == NULL) {
        return NGX_ERROR;
    }

    sr->filter_need_in_memory = 1;

    return ngx_http_counterfoil_probe_headers(sr, ctx);
}


static ngx_int_t
ngx_http_counterfoil_probe_snapshot(ngx_http_counterfoil_ctx_t *ctx,
    struct cfoil_snapshot *snapshot)
{
    size_t                         len;
    uint8_t                       *out;
    ngx_int_t                      rc;
    struct cfoil_bytes             name, value, body;
    ngx_http_counterfoil_probe_t  *probe;

    probe = ctx->probe;

    if (probe->too_long) {
        return NGX_OK;
    }

    body = cfoil_bytes_of(probe->body.data, probe->body.len);

    rc = ngx_http_counterfoil_redact(ctx->request->pool, ctx->route, &body);
    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : rc;
    }

    snapshot->status = ctx->route->probe.replay_status;
    snapshot->body = body;

    if (probe->content_type.len == 0) {
        return NGX_OK;
    }

    name = cfoil_bytes_text("Content-Type");
    value = ngx_http_counterfoil_bytes(&probe->content_type);
    len = cfoil_headers_put(name, value, NULL, 0);

    out = ngx_pnalloc(ctx->request->pool, len);
    if (out == NULL) {
        return NGX_ERROR;
    }

    (void) cfoil_headers_put(name, value, out, len);
    snapshot->headers = cfoil_bytes_of(out, len);

    return NGX_OK;
}


/* What the backend knows came into being. The id is the selector's until it reads again. */
static void
ngx_http_counterfoil_probe_resource(ngx_http_counterfoil_ctx_t *ctx,
    struct cfoil_resource *resource)
{
    ngx_http_counterfoil_probe_t   *probe;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();
    probe = ctx->probe;

    if (ctx->route->resource.id == NULL
        || probe->too_long
        || cfoil_selector_read(w->selector,
                               cfoil_bytes_of(probe->body.data,
                                              probe->body.len), NULL)
           != CFOIL_OK)
    {
        return;
    }

    *resource = cfoil_resource_of(&ctx->route->resource,
                                  cfoil_selector_at(w->selector,
                                                    ctx->route->resource.id));
}


/* Tells the engine, which calls back with what the record has become. */
static void
ngx_http_counterfoil_probe_report(ngx_http_counterfoil_ctx_t *ctx,
    enum cfoil_probe_answer answer)
{
    enum cfoil_error      error;
    struct cfoil_ending   ending;

    if (ctx->probe->reported) {
        return;
    }

    ctx->probe->reported = 1;

    if (ctx->probe->timer.timer_set) {
        ngx_del_timer(&ctx->probe->timer);
    }

    ngx_memzero(&ending, sizeof(ending));
    ending.outcome = CFOIL_STATE_SUCCEEDED;

    if (answer == CFOIL_PROBE_FOUND
        && ngx_http_counterfoil_probe_snapshot(ctx, &ending.snapshot)
           != NGX_OK)
    {
        answer = CFOIL_PROBE_UNCLEAR;
    }

    if (answer == CFOIL_PROBE_FOUND) {
        ngx_http_counterfoil_probe_resource(ctx, &ending.resource);
    }

    error = cfoil_probe_report(ctx->claim, answer, &ending,
                               ngx_http_counterfoil_decided, ctx);

    if (error != CFOIL_OK && answer == CFOIL_PROBE_FOUND) {
        ngx_memzero(&ending.snapshot, sizeof(ending.snapshot));
        error = cfoil_probe_report(ctx->claim, answer, &ending,
                                   ngx_http_counterfoil_decided, ctx);
    }

    if (error != CFOIL_OK) {
        error = cfoil_probe_report(ctx->claim, CFOIL_PROBE_UNCLEAR, NULL,
                                   ngx_http_counterfoil_decided, ctx);
    }

    if (error != CFOIL_OK) {
        ngx_log_error(NGX_LOG_ALERT, ctx->request->connection->log, 0,
                      "counterfoil: a probe cannot be reported: %s",
                      cfoil_error_text(error));
    }

    ngx_http_counterfoil_schedule();
}


/* Verdict PROBE. The request waits until the engine has heard of the probe's end. */
ngx_int_t
ngx_http_counterfoil_probe(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t   rc;
    ngx_str_t   uri, args;

    ctx->probe = ngx_pcalloc(r->pool, sizeof(ngx_http_counterfoil_probe_t));
    if (ctx->probe == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->state = NGX_HTTP_COUNTERFOIL_PROBE;

    rc = ngx_http_counterfoil_probe_uri(r, ctx, &uri, &args);

    if (rc == NGX_OK) {
        rc = ngx_http_counterfoil_probe_start(r, ctx, &uri, &args);
    }

    ngx_http_counterfoil_suspend(r, ctx);

    if (rc != NGX_OK) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "counterfoil: route \"%s\": the probe's path cannot be "
                      "asked for this key", ctx->route->name);

        ngx_http_counterfoil_probe_report(ctx, CFOIL_PROBE_UNCLEAR);
        return NGX_DONE;
    }

    ctx->probe->timer.handler = ngx_http_counterfoil_probe_timeout;
    ctx->probe->timer.data = ctx;
    ctx->probe->timer.log = r->connection->log;

    ngx_add_timer(&ctx->probe->timer,
                  (ngx_msec_t) ctx->route->probe.timeout_ms);

    return NGX_DONE;
}


/*
 * The subrequest has ended. Whatever it was, nginx shall not make an error page of it nor end the
 * request that waits.
 */
static ngx_int_t
ngx_http_counterfoil_probe_done(ngx_http_request_t *sr, void *data,
    ngx_int_t rc)
{
    ngx_http_counterfoil_ctx_t *ctx = data;

    ngx_uint_t                     status;
    ngx_http_counterfoil_probe_t  *probe;

    probe = ctx->probe;
    status = probe->status;

    if (status == 0 && sr->upstream
        && (ngx_uint_t) rc == sr->upstream->headers_in.status_n)
    {
        /* the backend's status, which nginx keeps for an error page */

        status = (ngx_uint_t) rc;
    }

    ngx_log_error(NGX_LOG_INFO, sr->connection->log, 0,
                  "counterfoil: route \"%s\": the probe was answered %ui",
                  ctx->route->name, status);

    if (status >= NGX_HTTP_OK && status < NGX_HTTP_SPECIAL_RESPONSE
        && probe->complete)
    {
        ngx_http_counterfoil_probe_report(ctx, CFOIL_PROBE_FOUND);

    } else if (status == NGX_HTTP_NOT_FOUND) {
        ngx_http_counterfoil_probe_report(ctx, CFOIL_PROBE_ABSENT);

    } else {
        ngx_http_counterfoil_probe_report(ctx, CFOIL_PROBE_UNCLEAR);
    }

    return NGX_OK;
}


static void
ngx_http_counterfoil_probe_timeout(ngx_event_t *ev)
{
    ngx_http_counterfoil_ctx_t *ctx = ev->data;

    ngx_connection_t     *c;
    ngx_http_cleanup_pt  *cleanup;
    ngx_http_request_t   *sr;

    sr = ctx->probe->request;
    c = ctx->request->connection;

    ngx_http_set_log_request(c->log, ctx->request);

    ngx_log_error(NGX_LOG_WARN, c->log, 0,
                  "counterfoil: route \"%s\": the probe took too long",
                  ctx->route->name);

    ngx_http_counterfoil_probe_report(ctx, CFOIL_PROBE_UNCLEAR);

    /* let the backend go too; the subrequest ends with its upstream */

    cleanup = sr->upstream ? sr->upstream->cleanup : NULL;

    if (cleanup && *cleanup) {
        (*cleanup)(sr);
    }

    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_counterfoil_probe_header(ngx_http_request_t *sr,
    ngx_http_counterfoil_probe_t *probe)
{
    probe->status = sr->headers_out.status;
    probe->content_type = sr->headers_out.content_type;
    probe->body.len = 0;
    probe->complete = sr->header_only;

    sr->filter_need_in_memory = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_counterfoil_probe_body(ngx_http_request_t *sr,
    ngx_http_counterfoil_probe_t *probe, ngx_chain_t *in)
{
    ngx_buf_t                   *b;
    ngx_chain_t                 *cl;
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(sr->main, ngx_http_counterfoil_module);

    for (cl = in; cl; cl = cl->next) {
        b = cl->buf;

        if (!probe->too_long
            && ngx_http_counterfoil_body_append(sr->pool, &probe->body, b,
                                      ctx->route->snapshot_body_bytes_max)
               != NGX_OK)
        {
            probe->too_long = 1;
        }

        probe->complete |= (b->last_buf || b->last_in_chain);

        b->pos = b->last;

        if (b->in_file) {
            b->file_pos = b->file_last;
        }
    }

    return NGX_OK;
}
