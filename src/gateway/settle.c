/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an execution: snapshot, settle, the wait until both are durable (R3), and what the
 * client then gets. Also the end of a context, which gives its claim back whatever happened (R8).
 */
#include "gateway/gateway.h"


static ngx_int_t
ngx_http_counterfoil_snapshot(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_snapshot *snapshot)
{
    ngx_int_t           rc;
    struct cfoil_bytes  body;

    body = cfoil_bytes_of(ctx->body.data, ctx->body.len);

    rc = ngx_http_counterfoil_redact(r->pool, ctx->route, &body);

    if (rc == NGX_DECLINED) {
        return NGX_OK;
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_counterfoil_snapshot_headers(r, ctx->route,
                                              &snapshot->headers)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    snapshot->status = r->headers_out.status;
    snapshot->body = body;

    return NGX_OK;
}


/* Only what will be replayed needs a snapshot. */
static ngx_int_t
ngx_http_counterfoil_ending(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_flag_t snapshot,
    struct cfoil_ending *ending)
{
    ngx_http_counterfoil_read_ending(r, ctx, ending);

    if (!snapshot
        || (ending->outcome != CFOIL_STATE_SUCCEEDED
            && ending->outcome != CFOIL_STATE_FAILED_FINAL))
    {
        return NGX_OK;
    }

    return ngx_http_counterfoil_snapshot(r, ctx, &ending->snapshot);
}


static enum cfoil_error
ngx_http_counterfoil_submit(ngx_http_counterfoil_ctx_t *ctx,
    struct cfoil_ending *ending, cfoil_settle_done done)
{
    enum cfoil_error  error;

    error = cfoil_settle(ctx->claim, ending, done, ctx);

    if (error != CFOIL_OK && ending->snapshot.status) {

        /* what does not fit is settled all the same, without its snapshot */

        ngx_memzero(&ending->snapshot, sizeof(struct cfoil_snapshot));
        error = cfoil_settle(ctx->claim, ending, done, ctx);
    }

    if (error == CFOIL_OK) {
        ctx->settled = 1;
        ctx->outcome = ending->outcome;
    }

    ngx_http_counterfoil_schedule();

    return error;
}


static void
ngx_http_counterfoil_log_settled(ngx_http_counterfoil_ctx_t *ctx)
{
    char         hex[2 * 6 + 1];
    ngx_uint_t   level;
    const char  *what;

    level = NGX_LOG_WARN;

    switch (ctx->settle_status) {

    case CFOIL_SETTLE_REFUSED:
        what = "was refused, another owner has taken the record over";
        break;

    case CFOIL_SETTLE_UNCONFIRMED:
        what = "was not confirmed in time and goes on in the background";
        break;

    case CFOIL_SETTLE_DURABLE:
    default:
        what = "is durable";
        level = NGX_LOG_DEBUG;
        break;
    }

    if (ctx->request->connection->log->log_level < level) {
        return;
    }

    cfoil_hex(ctx->id, 6, hex);

    ngx_log_error(level, ctx->request->connection->log, 0,
                  "counterfoil: route \"%s\" record %s: the settle %s",
                  ctx->route->name, hex, what);
}


/* The engine's callback for a response that is held. */
static void
ngx_http_counterfoil_settled(void *data, struct cfoil_claim *claim,
    enum cfoil_settle_status status)
{
    ngx_http_counterfoil_ctx_t *ctx = data;

    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    if (ngx_http_counterfoil_worker()->closing) {
        return;
    }

    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ctx->settle_status = status;
    ctx->hold = NGX_HTTP_COUNTERFOIL_SEND;
    ctx->blocked = 0;

    ngx_http_counterfoil_log_settled(ctx);

    r->main->blocked--;
    r->aio = 0;
    r->buffered &= ~NGX_HTTP_COUNTERFOIL_BUFFERED;

    ngx_http_counterfoil_wait_settled(ctx);

    r->write_event_handler(r);

    ngx_http_run_posted_requests(c);
}


/* ... and for one that nobody waits for. */
static void
ngx_http_counterfoil_settled_background(void *data, struct cfoil_claim *claim,
    enum cfoil_settle_status status)
{
    ngx_http_counterfoil_ctx_t *ctx = data;

    if (ngx_http_counterfoil_worker()->closing) {
        return;
    }

    ctx->settle_status = status;

    ngx_http_counterfoil_log_settled(ctx);
    ngx_http_counterfoil_wait_settled(ctx);
}


/*
 * Begins the settle of a held response and keeps the request until it is durable: blocked, so that
 * nothing frees it; aio, so that nothing writes it; buffered, so that nothing ends it.
 */
ngx_int_t
ngx_http_counterfoil_settle(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    enum cfoil_error     error;
    struct cfoil_ending  ending;

    if (ngx_http_counterfoil_ending(r, ctx, 1, &ending) != NGX_OK) {
        return NGX_ERROR;
    }

    error = ngx_http_counterfoil_submit(ctx, &ending,
                                        ngx_http_counterfoil_settled);
    if (error != CFOIL_OK) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "counterfoil: route \"%s\": the settle cannot begin: %s",
                      ctx->route->name, cfoil_error_text(error));

        return NGX_ERROR;
    }

    ctx->hold = NGX_HTTP_COUNTERFOIL_SETTLING;
    ctx->blocked = 1;

    r->main->blocked++;
    r->aio = 1;
    r->buffered |= NGX_HTTP_COUNTERFOIL_BUFFERED;

    return NGX_AGAIN;
}


void
ngx_http_counterfoil_settle_background(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_flag_t snapshot)
{
    struct cfoil_ending  ending;

    if (ctx->claim == NULL) {
        return;
    }

    if (ngx_http_counterfoil_ending(r, ctx, snapshot, &ending) != NGX_OK) {
        ngx_memzero(&ending.snapshot, sizeof(struct cfoil_snapshot));
    }

    (void) ngx_http_counterfoil_submit(ctx, &ending,
                                      ngx_http_counterfoil_settled_background);
}


/* Our own words instead of the response that was held. */
static ngx_buf_t *
ngx_http_counterfoil_instead(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, enum cfoil_answer answer,
    ngx_uint_t status)
{
    ngx_http_clean_header(r);

    return ngx_http_counterfoil_answer_build(r, ctx, answer, status);
}


/* The body to send; r->headers_out is made to fit. NULL on lack of memory. */
ngx_buf_t *
ngx_http_counterfoil_held(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_buf_t  *b;

    if (ctx->settle_status == CFOIL_SETTLE_UNCONFIRMED) {
        if (!ctx->route->store_open) {
            return ngx_http_counterfoil_instead(r, ctx,
                                           CFOIL_ANSWER_STORE_UNAVAILABLE, 0);
        }

        if (ngx_http_counterfoil_mark(r, "Counterfoil-Unprotected", "settle")
            != NGX_OK)
        {
            return NULL;
        }
    }

    if (ctx->truncated) {
        return ngx_http_counterfoil_instead(r, ctx,
                                            CFOIL_ANSWER_OUTCOME_UNKNOWN,
                                            NGX_HTTP_BAD_GATEWAY);
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NULL;
    }

    if (ctx->body.len) {
        b->pos = ctx->body.data;
        b->last = ctx->body.data + ctx->body.len;
        b->memory = 1;
    }

    b->last_buf = 1;
    b->last_in_chain = 1;

    if (r->headers_out.status == NGX_HTTP_NO_CONTENT) {
        ngx_http_clear_content_length(r);

    } else if (!r->header_only && r->method != NGX_HTTP_HEAD
               && r->headers_out.status != NGX_HTTP_NOT_MODIFIED)
    {
        /* HEAD and 304 speak of a body that is not there */

        ngx_http_clear_content_length(r);
        r->headers_out.content_length_n = (off_t) ctx->body.len;
    }

    return b;
}


/* The context's last moment: its request's pool is being destroyed. */
void
ngx_http_counterfoil_release(ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_request_t   *r;
    struct cfoil_ending   ending;

    if (ctx->probe && ctx->probe->timer.timer_set) {
        ngx_del_timer(&ctx->probe->timer);
    }

    if (ctx->wait.timer_set) {
        ngx_del_timer(&ctx->wait);
    }

    ngx_http_counterfoil_wait_leave(ctx);

    if (ctx->dry) {
        ngx_http_counterfoil_dry_over(ctx->request, ctx);
    }

    if (ctx->claim == NULL || ngx_http_counterfoil_worker() == NULL) {
        return;
    }

    r = ctx->request;
    ending.outcome = CFOIL_STATE_FAILED;
    ending.cause = CFOIL_CAUSE_NONE;

    if (ctx->state == NGX_HTTP_COUNTERFOIL_FORWARD && !ctx->settled) {
        ngx_http_counterfoil_read_ending(r, ctx, &ending);

        /* a snapshot would need the pool, which is gone */

        if (ctx->unprotected && ending.outcome != CFOIL_STATE_FAILED) {
            ngx_http_counterfoil_settle_background(r, ctx, 0);
        }
    }

    cfoil_claim_free(ctx->claim, ending.outcome, ending.cause);
    ctx->claim = NULL;

    ngx_http_counterfoil_schedule();
}
