/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a request through the gateway: which route it belongs to, its body, the engine, the
 * verdict. The handler is entered again and again for one request, by nginx's phases, after the
 * body was read, when the engine has answered, after an internal redirect; the state in the
 * context says where it stands.
 */
#include "gateway/gateway.h"


static ngx_int_t ngx_http_counterfoil_enter(ngx_http_request_t *r);
static ngx_int_t ngx_http_counterfoil_decide(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
static void ngx_http_counterfoil_body_handler(ngx_http_request_t *r);


static void
ngx_http_counterfoil_cleanup(void *data)
{
    ngx_http_counterfoil_release(data);
}


ngx_http_counterfoil_ctx_t *
ngx_http_counterfoil_get_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t          *cln;
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_counterfoil_module);

    if (ctx || (!r->internal && !r->filter_finalize)) {
        return ctx;
    }

    /*
     * if module context was reset, the original address
     * can still be found in the cleanup handler
     */

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_counterfoil_cleanup) {
            ctx = cln->data;
            ngx_http_set_ctx(r, ctx, ngx_http_counterfoil_module);
            break;
        }
    }

    return ctx;
}


static ngx_http_counterfoil_ctx_t *
ngx_http_counterfoil_create_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t          *cln;
    ngx_http_counterfoil_ctx_t  *ctx;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_counterfoil_ctx_t));
    if (cln == NULL) {
        return NULL;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_counterfoil_ctx_t));

    ctx->request = r;
    cln->handler = ngx_http_counterfoil_cleanup;

    ngx_http_set_ctx(r, ctx, ngx_http_counterfoil_module);

    return ctx;
}


/* While the engine works nothing but the engine moves the request. */
void
ngx_http_counterfoil_wait_handler(ngx_http_request_t *r)
{
    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "counterfoil waits");
}


void
ngx_http_counterfoil_suspend(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (!ctx->blocked) {
        r->main->blocked++;
        ctx->blocked = 1;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_counterfoil_wait_handler;

    ngx_http_counterfoil_schedule();
}


void
ngx_http_counterfoil_resume(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_connection_t  *c;

    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (ctx->blocked) {
        r->main->blocked--;
        ctx->blocked = 0;
    }

    /* nginx may have terminated the request meanwhile: let it end */

    if (r->write_event_handler == ngx_http_counterfoil_wait_handler) {
        r->write_event_handler = ngx_http_core_run_phases;
    }

    r->write_event_handler(r);

    ngx_http_run_posted_requests(c);
}


static ngx_flag_t
ngx_http_counterfoil_same_text(ngx_str_t *s, struct cfoil_bytes bytes)
{
    return s->len == bytes.len
           && ngx_strncmp(s->data, bytes.data, bytes.len) == 0;
}


/* The claim's views do not outlive the next call on it: what is needed later is copied. */
void
ngx_http_counterfoil_take_result(ngx_http_counterfoil_ctx_t *ctx,
    struct cfoil_claim *claim)
{
    struct cfoil_bytes          first;
    const struct cfoil_result  *result;

    result = cfoil_claim_result(claim);

    ctx->error = result->error;
    ctx->verdict = result->verdict;
    ctx->attempt = result->attempt;
    ctx->fence = result->fence;
    ctx->life_ms = result->life_ms;
    ctx->retry_after_ms = result->retry_after_ms;
    ctx->body_differs = result->body_differs;

    ngx_http_counterfoil_count_repeat(ctx, result);

    if (result->record) {
        first = result->record->first_request_id;

        if (!ngx_http_counterfoil_same_text(&ctx->first_request_id, first)) {
            ctx->first_request_id.data = ngx_pnalloc(ctx->request->pool,
                                                     first.len + 1);
            if (ctx->first_request_id.data == NULL) {
                ctx->first_request_id.len = 0;

            } else if (first.len) {
                ngx_memcpy(ctx->first_request_id.data, first.data, first.len);
                ctx->first_request_id.len = first.len;

            } else {
                ctx->first_request_id.len = 0;
            }
        }
    }
}


/* The engine's callback for a begin and for a probe's report. */
void
ngx_http_counterfoil_decided(void *data, struct cfoil_claim *claim)
{
    ngx_http_counterfoil_ctx_t *ctx = data;

    if (ngx_http_counterfoil_worker()->closing) {
        return;
    }

    if (ctx->unprotected) {

        /* too late for the request, in time for its settle */

        ngx_http_counterfoil_schedule();
        return;
    }

    if (ctx->wait.timer_set) {
        ngx_del_timer(&ctx->wait);
    }

    ngx_http_counterfoil_take_result(ctx, claim);
    ctx->state = NGX_HTTP_COUNTERFOIL_DECIDED;

    ngx_http_counterfoil_resume(ctx->request, ctx);
}


/* Without the store, under `open`: not who has waited, and so is known to be a second one. */
static ngx_flag_t
ngx_http_counterfoil_may_pass(ngx_http_counterfoil_ctx_t *ctx)
{
    return ctx->route->store_open && !ctx->waited;
}


/*
 * The store has not answered a begin for as long as a settle may take. Under `closed` the client
 * is told so, and the engine ends the claim as FAILED should it still be applied, for nothing was
 * sent. Under `open` the request is let through, and the claim kept to settle it by (R12).
 */
static void
ngx_http_counterfoil_begin_timeout(ngx_event_t *ev)
{
    ngx_http_counterfoil_ctx_t *ctx = ev->data;

    ngx_http_set_log_request(ctx->request->connection->log, ctx->request);

    ngx_log_error(NGX_LOG_WARN, ev->log, 0,
                  "counterfoil: route \"%s\": the store does not answer",
                  ctx->route->name);

    if (!ngx_http_counterfoil_may_pass(ctx)) {
        cfoil_claim_free(ctx->claim, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        ctx->claim = NULL;

        ngx_http_counterfoil_schedule();
    }

    ctx->error = CFOIL_E_STORE_UNAVAILABLE;
    ctx->state = NGX_HTTP_COUNTERFOIL_DECIDED;

    ngx_http_counterfoil_resume(ctx->request, ctx);
}


void
ngx_http_counterfoil_bound_begin(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_counterfoil_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_counterfoil_module);

    ctx->wait.handler = ngx_http_counterfoil_begin_timeout;
    ctx->wait.data = ctx;
    ctx->wait.log = r->connection->log;

    ngx_add_timer(&ctx->wait, mcf->settle_wait);
}


/* NGX_AGAIN: the engine will call back. NGX_OK: it is decided. */
ngx_int_t
ngx_http_counterfoil_begin(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    bool                            ready;
    enum cfoil_error                error;
    struct cfoil_begin_request      request;
    ngx_http_counterfoil_worker_t  *w;

    ctx->state = NGX_HTTP_COUNTERFOIL_DECIDED;
    ctx->error = CFOIL_E_STORE_UNAVAILABLE;

    w = ngx_http_counterfoil_worker();
    if (w == NULL) {
        return NGX_OK;
    }

    if (ngx_http_counterfoil_begin_request(r, ctx, &request) != NGX_OK
        || ngx_http_counterfoil_fingerprint(r, ctx, &request) != NGX_OK)
    {
        return NGX_ERROR;
    }

    error = cfoil_begin(w->engine, &request, ngx_http_counterfoil_decided, ctx,
                        &ctx->claim, &ready);
    if (error != CFOIL_OK) {
        ctx->error = error;
        return NGX_OK;
    }

    ngx_http_counterfoil_schedule();

    if (ready) {
        ngx_http_counterfoil_take_result(ctx, ctx->claim);
        return NGX_OK;
    }

    ctx->state = NGX_HTTP_COUNTERFOIL_BEGIN;

    return NGX_AGAIN;
}


static void
ngx_http_counterfoil_body_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_counterfoil_module);

    r->preserve_body = 1;

    rc = ngx_http_counterfoil_begin(r, ctx);

    if (rc == NGX_AGAIN) {
        ngx_http_counterfoil_suspend(r, ctx);
        ngx_http_counterfoil_bound_begin(r, ctx);
        return;
    }

    if (rc == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);
}


ngx_int_t
ngx_http_counterfoil_handler(ngx_http_request_t *r)
{
    ngx_http_counterfoil_ctx_t       *ctx;
    ngx_http_counterfoil_loc_conf_t  *lcf;

    if (r != r->main || r->post_action) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_counterfoil_get_ctx(r);

    if (ctx == NULL) {
        lcf = ngx_http_get_module_loc_conf(r, ngx_http_counterfoil_module);

        switch (lcf->mode) {

        case NGX_HTTP_COUNTERFOIL_ON:
            return ngx_http_counterfoil_enter(r);

        case NGX_HTTP_COUNTERFOIL_DRY_RUN:
            return ngx_http_counterfoil_dry_enter(r);
        }

        return NGX_DECLINED;
    }

    switch (ctx->state) {

    case NGX_HTTP_COUNTERFOIL_DECIDED:
        return ngx_http_counterfoil_decide(r, ctx);

    case NGX_HTTP_COUNTERFOIL_FORWARD:
        return ngx_http_counterfoil_guard(r, ctx);

    case NGX_HTTP_COUNTERFOIL_DRY:
        return ngx_http_counterfoil_dry_again(r, ctx);

    case NGX_HTTP_COUNTERFOIL_ANSWERED:
        return NGX_DECLINED;

    case NGX_HTTP_COUNTERFOIL_BODY:
    case NGX_HTTP_COUNTERFOIL_BEGIN:
    case NGX_HTTP_COUNTERFOIL_WAIT:
    case NGX_HTTP_COUNTERFOIL_PROBE:
        break;
    }

    return NGX_DONE;
}


/* A context for a request of a route. NGX_DECLINED: the policy has no route for it. */
ngx_int_t
ngx_http_counterfoil_find_route(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t **made)
{
    size_t                             len;
    ngx_str_t                          path, args;
    u_char                             endpoint[CFOIL_ENDPOINT_BYTES_MAX];
    const struct cfoil_route          *route;
    ngx_http_counterfoil_ctx_t        *ctx;
    ngx_http_counterfoil_main_conf_t  *mcf;

    if (ngx_http_counterfoil_target(r, &path, &args) != NGX_OK) {
        return NGX_ERROR;
    }

    /* what cannot be named cannot be guarded, and must not pass for a request of no route */

    if (r->method_name.len + 1 + path.len > sizeof(endpoint)) {
        return NGX_HTTP_REQUEST_URI_TOO_LARGE;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_counterfoil_module);

    route = cfoil_policy_match(mcf->policy,
                               ngx_http_counterfoil_bytes(&r->method_name),
                               ngx_http_counterfoil_bytes(&path),
                               (char *) endpoint, sizeof(endpoint), &len);
    if (route == NULL) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_counterfoil_create_ctx(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->route = route;
    ctx->path = path;
    ctx->method = r->method;
    ctx->args = args;
    ctx->endpoint.len = len;
    ctx->endpoint.data = ngx_pnalloc(r->pool, len);
    if (ctx->endpoint.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(ctx->endpoint.data, endpoint, len);

    *made = ctx;

    return NGX_OK;
}


/* A request seen for the first time. */
static ngx_int_t
ngx_http_counterfoil_enter(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_counterfoil_ctx_t  *ctx;

    rc = ngx_http_counterfoil_find_route(r, &ctx);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    rc = ngx_http_counterfoil_key(r, ctx);

    if (rc == NGX_DECLINED && !ctx->route->key_required) {
        ctx->state = NGX_HTTP_COUNTERFOIL_ANSWERED;
        return NGX_DECLINED;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_counterfoil_answer(r, ctx, CFOIL_ANSWER_KEY_MISSING);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_counterfoil_scope(r, ctx);
    }

    if (rc == NGX_ABORT) {
        return ngx_http_counterfoil_answer(r, ctx, CFOIL_ANSWER_KEY_INVALID);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_read_client_request_body(r,
                                           ngx_http_counterfoil_body_handler);
    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


static void
ngx_http_counterfoil_log_verdict(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    char        hex[2 * 6 + 1];
    ngx_uint_t  level;

    level = (ctx->error == CFOIL_OK) ? NGX_LOG_INFO : NGX_LOG_WARN;

    if (r->connection->log->log_level < level) {
        return;
    }

    cfoil_hex(ctx->id, 6, hex);

    ngx_log_error(level, r->connection->log, 0,
                  "counterfoil: route \"%s\" record %s: %s", ctx->route->name,
                  hex, ctx->error == CFOIL_OK
                          ? cfoil_verdict_variable(ctx->verdict)
                          : cfoil_error_text(ctx->error));
}


static ngx_int_t
ngx_http_counterfoil_forward(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ctx->state = NGX_HTTP_COUNTERFOIL_FORWARD;

    if (ngx_http_counterfoil_forward_headers(r, ctx) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_counterfoil_guard(r, ctx);
}


/* R6: an error of the store is an answer, or an execution that says it was not protected. */
static ngx_int_t
ngx_http_counterfoil_without_store(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (ctx->error == CFOIL_E_LIMIT || ctx->error == CFOIL_E_INVALID) {
        return ngx_http_counterfoil_answer(r, ctx, CFOIL_ANSWER_KEY_INVALID);
    }

    if (!ngx_http_counterfoil_may_pass(ctx)) {
        return ngx_http_counterfoil_answer(r, ctx,
                                           CFOIL_ANSWER_STORE_UNAVAILABLE);
    }

    ctx->unprotected = 1;

    return ngx_http_counterfoil_forward(r, ctx);
}


static ngx_int_t
ngx_http_counterfoil_decide(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t  rc;

    ngx_http_counterfoil_log_verdict(r, ctx);

    if (ctx->error != CFOIL_OK) {
        return ngx_http_counterfoil_without_store(r, ctx);
    }

    if (ctx->verdict == CFOIL_VERDICT_EXECUTE) {
        return ngx_http_counterfoil_forward(r, ctx);
    }

    if (ctx->verdict == CFOIL_VERDICT_REPLAY) {
        return ngx_http_counterfoil_replay(r, ctx);
    }

    if (ctx->verdict == CFOIL_VERDICT_PROBE && ctx->probe == NULL) {
        return ngx_http_counterfoil_probe(r, ctx);
    }

    if (ctx->verdict == CFOIL_VERDICT_IN_PROGRESS) {
        rc = ngx_http_counterfoil_wait(r, ctx);
        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_counterfoil_answer(r, ctx,
                                       cfoil_verdict_answer(ctx->verdict));
}
