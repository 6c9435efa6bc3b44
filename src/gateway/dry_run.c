/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dry run: what the gateway would have done to live traffic, without doing it. Nothing waits for
 * it and nothing fails by it; what the backend and the client get is nginx's own. Its records have
 * ids of a kind of their own, so that they never meet those of requests that are guarded.
 *
 *   enter --> hash the body as it passes --> begin ------------> verdict: logged
 *                                                                   | execute
 *             the request ends, with the backend's outcome ---------'--> settle
 *
 * The store may answer after the request is gone, so the state of a dry run is not the request's:
 * it is freed by whichever comes last, the verdict or the request's end. What is settled has the
 * status of the answer and no more: enough to tell a replay from what could not be replayed.
 */
#include "gateway/gateway.h"


struct ngx_http_counterfoil_dry_s {
    ngx_http_counterfoil_ctx_t  *ctx;             /* NULL: the request is over */
    const struct cfoil_route    *route;
    struct cfoil_fingerprinter  *fingerprinter;   /* until the body has ended */
    struct cfoil_claim          *claim;           /* while there is one */
    struct cfoil_ending          ending;
    uint8_t                      id[CFOIL_ID_BYTES];
    unsigned                     executes:1;
};


static ngx_http_request_body_filter_pt  ngx_http_next_request_body_filter;


static void
ngx_http_counterfoil_dry_log(ngx_http_counterfoil_dry_t *dry, ngx_uint_t level,
    const char *what)
{
    char        hex[2 * 6 + 1];
    ngx_log_t  *log;

    log = dry->ctx ? dry->ctx->request->connection->log : ngx_cycle->log;

    cfoil_hex(dry->id, 6, hex);

    ngx_log_error(level, log, 0,
                  "counterfoil: dry run: route \"%s\" record %s: would be %s",
                  dry->route->name, hex, what);
}


static void
ngx_http_counterfoil_dry_free(ngx_http_counterfoil_dry_t *dry)
{
    cfoil_fingerprinter_free(dry->fingerprinter);
    ngx_free(dry);
}


static void
ngx_http_counterfoil_dry_settled(void *data, struct cfoil_claim *claim,
    enum cfoil_settle_status status)
{
    /* never called: the claim is let go of at once */
}


static void
ngx_http_counterfoil_dry_settle(ngx_http_counterfoil_dry_t *dry)
{
    enum cfoil_error  error;

    error = cfoil_settle(dry->claim, &dry->ending,
                         ngx_http_counterfoil_dry_settled, dry);

    if (error != CFOIL_OK) {
        ngx_http_counterfoil_dry_log(dry, NGX_LOG_WARN,
                                     cfoil_error_text(error));
    }

    cfoil_claim_free(dry->claim, dry->ending.outcome, dry->ending.cause);

    ngx_http_counterfoil_schedule();
}


/* A verdict stands. Only an execution has something to settle. */
static void
ngx_http_counterfoil_dry_take(ngx_http_counterfoil_dry_t *dry)
{
    const struct cfoil_result  *result;

    result = cfoil_claim_result(dry->claim);

    if (dry->ctx) {
        ngx_http_counterfoil_take_result(dry->ctx, dry->claim);
    }

    dry->executes = result->error == CFOIL_OK
                    && result->verdict == CFOIL_VERDICT_EXECUTE;

    if (result->error != CFOIL_OK) {
        if (dry->ctx) {
            dry->ctx->answer = CFOIL_ANSWER_STORE_UNAVAILABLE;
        }

        ngx_http_counterfoil_dry_log(dry, NGX_LOG_WARN, "store_unavailable");

    } else {
        ngx_http_counterfoil_dry_log(dry, NGX_LOG_NOTICE,
                                     cfoil_verdict_variable(result->verdict));
    }

    if (dry->executes && dry->ctx) {
        return;
    }

    if (dry->executes) {
        ngx_http_counterfoil_dry_settle(dry);

    } else {
        cfoil_claim_free(dry->claim, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        ngx_http_counterfoil_schedule();
    }

    dry->claim = NULL;

    if (dry->ctx == NULL) {
        ngx_http_counterfoil_dry_free(dry);
    }
}


static void
ngx_http_counterfoil_dry_decided(void *data, struct cfoil_claim *claim)
{
    if (ngx_http_counterfoil_worker()->closing) {
        return;
    }

    ngx_http_counterfoil_dry_take(data);
}


/* The body has passed: the claim can begin. */
static void
ngx_http_counterfoil_dry_begin(ngx_http_request_t *r,
    ngx_http_counterfoil_dry_t *dry)
{
    bool                            ready;
    enum cfoil_error                error;
    struct cfoil_begin_request      request;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();

    if (ngx_http_counterfoil_begin_request(r, dry->ctx, &request) != NGX_OK) {
        return;
    }

    error = cfoil_fingerprint_end(dry->fingerprinter,
                                  &request.origin.fingerprint, NULL);

    cfoil_fingerprinter_free(dry->fingerprinter);
    dry->fingerprinter = NULL;

    if (error == CFOIL_OK) {
        error = cfoil_begin(w->engine, &request,
                            ngx_http_counterfoil_dry_decided, dry, &dry->claim,
                            &ready);
    }

    if (error != CFOIL_OK) {
        dry->claim = NULL;
        ngx_http_counterfoil_dry_log(dry, NGX_LOG_WARN,
                                     cfoil_error_text(error));
        return;
    }

    ngx_http_counterfoil_schedule();

    if (ready) {
        ngx_http_counterfoil_dry_take(dry);
    }
}


/* Every piece of a body on its way from the client, buffered by nginx or not. */
static ngx_int_t
ngx_http_counterfoil_dry_request_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_flag_t                   last;
    ngx_chain_t                 *cl;
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_counterfoil_get_ctx(r);

    if (ctx == NULL || ctx->dry == NULL || ctx->dry->fingerprinter == NULL) {
        return ngx_http_next_request_body_filter(r, in);
    }

    last = 0;

    for (cl = in; cl; cl = cl->next) {
        if (ngx_buf_in_memory(cl->buf)) {
            cfoil_fingerprint_body(ctx->dry->fingerprinter, cl->buf->pos,
                                   (size_t) (cl->buf->last - cl->buf->pos));
        }

        last |= cl->buf->last_buf;
    }

    if (last) {
        ngx_http_counterfoil_dry_begin(r, ctx->dry);
    }

    return ngx_http_next_request_body_filter(r, in);
}


void
ngx_http_counterfoil_dry_init(void)
{
    ngx_http_next_request_body_filter = ngx_http_top_request_body_filter;
    ngx_http_top_request_body_filter = ngx_http_counterfoil_dry_request_body;
}


static ngx_int_t
ngx_http_counterfoil_dry_create(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    struct cfoil_request_view    view;
    ngx_http_counterfoil_dry_t  *dry;

    if (ngx_http_counterfoil_request_view(r, ctx, &view) != NGX_OK) {
        return NGX_ERROR;
    }

    dry = ngx_calloc(sizeof(ngx_http_counterfoil_dry_t), r->connection->log);
    if (dry == NULL) {
        return NGX_ERROR;
    }

    if (cfoil_fingerprinter_create(&dry->fingerprinter) != CFOIL_OK) {
        ngx_free(dry);
        return NGX_ERROR;
    }

    cfoil_fingerprint_begin(dry->fingerprinter, ctx->route->rules, &view);

    dry->ctx = ctx;
    dry->route = ctx->route;
    ngx_memcpy(dry->id, ctx->id, CFOIL_ID_BYTES);

    ctx->dry = dry;

    return NGX_OK;
}


/* A request that would be refused for its key. */
static ngx_int_t
ngx_http_counterfoil_dry_refused(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, enum cfoil_answer answer,
    const char *what)
{
    ctx->answer = answer;

    ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                  "counterfoil: dry run: route \"%s\": would be %s",
                  ctx->route->name, what);

    return NGX_DECLINED;
}


/* NGX_OK: a key to look up. NGX_DECLINED: there is none, and it was told if one is needed. */
static ngx_int_t
ngx_http_counterfoil_dry_key(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_counterfoil_key(r, ctx);

    if (rc == NGX_DECLINED && ctx->route->key_required) {
        return ngx_http_counterfoil_dry_refused(r, ctx,
                                                CFOIL_ANSWER_KEY_MISSING,
                                                "key_missing");
    }

    if (rc == NGX_OK) {
        rc = ngx_http_counterfoil_scope(r, ctx);
    }

    if (rc == NGX_ABORT) {
        return ngx_http_counterfoil_dry_refused(r, ctx,
                                                CFOIL_ANSWER_KEY_INVALID,
                                                "key_invalid");
    }

    return rc;
}


/* Always NGX_DECLINED: whatever becomes of a dry run, the request goes on. */
ngx_int_t
ngx_http_counterfoil_dry_enter(ngx_http_request_t *r)
{
    ngx_http_counterfoil_ctx_t  *ctx;

    if (ngx_http_counterfoil_find_route(r, &ctx) != NGX_OK) {
        return NGX_DECLINED;
    }

    ctx->state = NGX_HTTP_COUNTERFOIL_DRY;

    if (ngx_http_counterfoil_worker() == NULL
        || ngx_http_counterfoil_dry_key(r, ctx) != NGX_OK
        || ngx_http_counterfoil_dry_create(r, ctx) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    if (r->request_body) {

        /* another module has read it */

        if (ngx_http_counterfoil_hash_body(r, ctx->dry->fingerprinter)
            == NGX_OK)
        {
            ngx_http_counterfoil_dry_begin(r, ctx->dry);
        }

    } else if (r->headers_in.content_length_n <= 0 && !r->headers_in.chunked) {
        ngx_http_counterfoil_dry_begin(r, ctx->dry);
    }

    return ngx_http_counterfoil_dry_again(r, ctx);
}


/* An internal redirect leads to another content handler. */
ngx_int_t
ngx_http_counterfoil_dry_again(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (ctx->dry) {
        ngx_http_counterfoil_watch(r, ctx);
    }

    return NGX_DECLINED;
}


void
ngx_http_counterfoil_dry_header(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ctx->hold = NGX_HTTP_COUNTERFOIL_PASS;

    if (ngx_http_counterfoil_is_stream(r, ctx)) {
        ctx->too_long = 1;
    }
}


/*
 * Counts, to know what would have been too long to keep; keeps only what the policy reads. A body
 * that nginx sends from a file is not read: asking for it in memory would be no dry run.
 */
void
ngx_http_counterfoil_dry_body(ngx_http_counterfoil_ctx_t *ctx, ngx_chain_t *in)
{
    ngx_chain_t               *cl;
    const struct cfoil_route  *route;

    route = ctx->route;

    for (cl = in; cl; cl = cl->next) {
        ctx->whole |= cl->buf->last_buf;

        if (ctx->too_long) {
            continue;
        }

        if (route->body.at == NULL && route->resource.id == NULL) {
            ctx->body.len += (size_t) ngx_buf_size(cl->buf);
            ctx->too_long = ctx->body.len > route->snapshot_body_bytes_max;

        } else if (ngx_http_counterfoil_body_append(ctx->request->pool,
                                           &ctx->body, cl->buf,
                                           route->snapshot_body_bytes_max)
                   != NGX_OK)
        {
            ctx->too_long = 1;
        }
    }
}


/* The request's pool is being destroyed. */
void
ngx_http_counterfoil_dry_over(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    struct cfoil_ending         *ending;
    ngx_http_counterfoil_dry_t  *dry;

    dry = ctx->dry;
    ctx->dry = NULL;
    dry->ctx = NULL;

    if (dry->claim == NULL || ngx_http_counterfoil_worker() == NULL) {
        ngx_http_counterfoil_dry_free(dry);
        return;
    }

    ending = &dry->ending;
    ngx_http_counterfoil_read_ending(r, ctx, ending);

    if (!ctx->too_long
        && (ending->outcome == CFOIL_STATE_SUCCEEDED
            || ending->outcome == CFOIL_STATE_FAILED_FINAL))
    {
        ending->snapshot.status = r->headers_out.status;
    }

    if (dry->executes) {
        ngx_http_counterfoil_dry_settle(dry);
        ngx_http_counterfoil_dry_free(dry);
        return;
    }

    /* the verdict comes later, when another answer may have been read */

    ngx_memzero(&ending->resource, sizeof(struct cfoil_resource));
}
