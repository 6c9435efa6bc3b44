/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `while_pending: {wait: 5s}`: a duplicate stays for the first one's end and then asks again, as if
 * it came then; the engine decides. Whatever does not let it wait (its time is over, too many wait,
 * the worker leaves) gives it the pending answer at once.
 *
 *   WAIT --the first one has ended--> BEGIN --still in progress, time left--> WAIT
 *     |--its time is over, the worker leaves--> DECIDED, in progress
 *     '--the client has left--> gone
 *
 * One look at a record, in NGX_HTTP_COUNTERFOIL_LOOK_MS at most, is shared by all its waiters; a
 * settle of this worker's own spares it. Where only one can execute one is woken, and the rest
 * go on waiting for it; where all get the same they are woken in steps, so that others are served
 * between them. Waiters hold no claim and nothing blocks their requests.
 *
 * Invariant: a context is in the queue of a key, or of those being woken, or in none; a key without
 * waiters goes, unless a look is under way for it, whose end takes it along.
 */
#include "gateway/gateway.h"


#define NGX_HTTP_COUNTERFOIL_STEP_MS  1


static void ngx_http_counterfoil_poll_handler(ngx_event_t *ev);
static void ngx_http_counterfoil_looked(void *data,
    const struct cfoil_glance *glance);


void
ngx_http_counterfoil_wait_init(ngx_http_counterfoil_worker_t *w)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_COUNTERFOIL_WAIT_BUCKETS; i++) {
        ngx_queue_init(&w->awaited[i]);
    }
}


static ngx_queue_t *
ngx_http_counterfoil_bucket(ngx_http_counterfoil_worker_t *w,
    const uint8_t *id)
{
    /* ids are digests */

    return &w->awaited[(id[0] << 8 | id[1])
                       % NGX_HTTP_COUNTERFOIL_WAIT_BUCKETS];
}


static ngx_http_counterfoil_awaited_t *
ngx_http_counterfoil_awaited(ngx_http_counterfoil_worker_t *w,
    const uint8_t *id)
{
    ngx_queue_t                     *q, *bucket;
    ngx_http_counterfoil_awaited_t  *awaited;

    bucket = ngx_http_counterfoil_bucket(w, id);

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        awaited = ngx_queue_data(q, ngx_http_counterfoil_awaited_t, link);

        if (ngx_memcmp(awaited->id, id, CFOIL_ID_BYTES) == 0) {
            return awaited;
        }
    }

    return NULL;
}


/* nginx leaves a timer that is set as it is where the difference is small. */
static void
ngx_http_counterfoil_arm_poll(ngx_http_counterfoil_awaited_t *awaited,
    ngx_msec_t ms)
{
    if (awaited->poll.timer_set) {
        ngx_del_timer(&awaited->poll);
    }

    ngx_add_timer(&awaited->poll, ms);
}


static ngx_http_counterfoil_awaited_t *
ngx_http_counterfoil_await(ngx_http_counterfoil_worker_t *w,
    const uint8_t *id)
{
    ngx_http_counterfoil_awaited_t  *awaited;

    awaited = ngx_calloc(sizeof(ngx_http_counterfoil_awaited_t),
                         ngx_cycle->log);
    if (awaited == NULL) {
        return NULL;
    }

    ngx_memcpy(awaited->id, id, CFOIL_ID_BYTES);
    ngx_queue_init(&awaited->waiters);
    ngx_queue_insert_tail(ngx_http_counterfoil_bucket(w, id), &awaited->link);

    awaited->poll.handler = ngx_http_counterfoil_poll_handler;
    awaited->poll.data = awaited;
    awaited->poll.log = ngx_cycle->log;

    ngx_add_timer(&awaited->poll, NGX_HTTP_COUNTERFOIL_LOOK_MS);

    return awaited;
}


/* What the last waiter has left is nobody's, unless a look will come back to it. */
static void
ngx_http_counterfoil_forsake(ngx_http_counterfoil_awaited_t *awaited)
{
    if (awaited->count || awaited->looking) {
        return;
    }

    if (awaited->poll.timer_set) {
        ngx_del_timer(&awaited->poll);
    }

    if (awaited->poll.posted) {
        ngx_delete_posted_event(&awaited->poll);
    }

    ngx_queue_remove(&awaited->link);
    ngx_free(awaited);
}


static void
ngx_http_counterfoil_detach(ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_queue_remove(&ctx->waiter);

    ctx->awaited->count--;
    ctx->awaited = NULL;

    ngx_http_counterfoil_worker()->waiters--;

    if (ctx->wait.timer_set) {
        ngx_del_timer(&ctx->wait);
    }
}


void
ngx_http_counterfoil_wait_leave(ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_counterfoil_awaited_t  *awaited;

    awaited = ctx->awaited;

    if (ctx->woken) {
        ngx_queue_remove(&ctx->waiter);
        ctx->woken = 0;
    }

    if (awaited) {
        ngx_http_counterfoil_detach(ctx);
        ngx_http_counterfoil_forsake(awaited);
    }
}


/* As it was decided before, with no time left. */
static void
ngx_http_counterfoil_give_up(ngx_http_counterfoil_ctx_t *ctx)
{
    ctx->wait_until = ngx_current_msec;
    ctx->state = NGX_HTTP_COUNTERFOIL_DECIDED;

    ngx_http_counterfoil_resume(ctx->request, ctx);
}


static void
ngx_http_counterfoil_wait_timeout(ngx_event_t *ev)
{
    ngx_http_counterfoil_ctx_t *ctx = ev->data;

    ngx_http_counterfoil_wait_leave(ctx);
    ngx_http_counterfoil_give_up(ctx);
}


/* NULL: it may not wait. */
static ngx_http_counterfoil_awaited_t *
ngx_http_counterfoil_may_wait(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_counterfoil_worker_t     *w;
    ngx_http_counterfoil_awaited_t    *awaited;
    ngx_http_counterfoil_main_conf_t  *mcf;

    w = ngx_http_counterfoil_worker();

    /* a prober has asked: what it was told does not change by waiting */

    if (ctx->route->wait_ms == 0 || ctx->probe || w == NULL || ngx_exiting) {
        return NULL;
    }

    if (!ctx->waited) {
        ctx->waited = 1;
        ctx->wait_until = ngx_current_msec + (ngx_msec_t) ctx->route->wait_ms;
    }

    if ((ngx_msec_int_t) (ctx->wait_until - ngx_current_msec) <= 0) {
        return NULL;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_counterfoil_module);
    awaited = ngx_http_counterfoil_awaited(w, ctx->id);

    if (w->waiters >= mcf->waiters_max
        || (awaited ? awaited->count : 0) >= mcf->key_waiters_max)
    {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "counterfoil: route \"%s\": too many wait already",
                      ctx->route->name);
        return NULL;
    }

    return awaited ? awaited : ngx_http_counterfoil_await(w, ctx->id);
}


ngx_int_t
ngx_http_counterfoil_wait(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_event_t                     *rev;
    ngx_http_counterfoil_awaited_t  *awaited;

    awaited = ngx_http_counterfoil_may_wait(r, ctx);
    if (awaited == NULL) {
        return NGX_DECLINED;
    }

    cfoil_claim_free(ctx->claim, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
    ctx->claim = NULL;

    ngx_http_counterfoil_schedule();

    ctx->state = NGX_HTTP_COUNTERFOIL_WAIT;
    ctx->awaited = awaited;
    awaited->count++;
    ngx_http_counterfoil_worker()->waiters++;
    ngx_queue_insert_tail(&awaited->waiters, &ctx->waiter);

    ctx->wait.handler = ngx_http_counterfoil_wait_timeout;
    ctx->wait.data = ctx;
    ctx->wait.log = r->connection->log;

    ngx_add_timer(&ctx->wait, ctx->wait_until - ngx_current_msec);

    /* unlike others that are suspended, this one ends with its client */

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_counterfoil_wait_handler;

    rev = r->connection->read;

    if (rev->ready || rev->pending_eof || r->connection->error) {
        ngx_post_event(rev, &ngx_posted_events);

    } else if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        ngx_http_counterfoil_wait_leave(ctx);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DONE;
}


/* Takes the first `n` waiters out of their key's queue, whose end this may be. */
static void
ngx_http_counterfoil_take(ngx_http_counterfoil_awaited_t *awaited,
    ngx_queue_t *taken, ngx_int_t n)
{
    ngx_queue_t                 *q;
    ngx_http_counterfoil_ctx_t  *ctx;

    ngx_queue_init(taken);

    while (n-- > 0 && !ngx_queue_empty(&awaited->waiters)) {
        q = ngx_queue_head(&awaited->waiters);
        ctx = ngx_queue_data(q, ngx_http_counterfoil_ctx_t, waiter);

        ngx_http_counterfoil_detach(ctx);

        ctx->woken = 1;
        ngx_queue_insert_tail(taken, &ctx->waiter);
    }

    ngx_http_counterfoil_forsake(awaited);
}


/* A request that waited for another's end asks again, as if it came now. */
static void
ngx_http_counterfoil_begin_again(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    c = r->connection;

    ngx_http_set_log_request(c->log, r);
    ngx_http_counterfoil_suspend(r, ctx);

    rc = ngx_http_counterfoil_begin(r, ctx);

    if (rc == NGX_AGAIN) {
        ngx_http_counterfoil_bound_begin(r, ctx);
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_counterfoil_resume(r, ctx);
        return;
    }

    r->main->blocked--;
    ctx->blocked = 0;

    ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    ngx_http_run_posted_requests(c);
}


/* Each may end others with it: streams share a connection. */
static void
ngx_http_counterfoil_wake(ngx_queue_t *taken, ngx_flag_t again)
{
    ngx_queue_t                 *q;
    ngx_http_counterfoil_ctx_t  *ctx;

    while (!ngx_queue_empty(taken)) {
        q = ngx_queue_head(taken);
        ctx = ngx_queue_data(q, ngx_http_counterfoil_ctx_t, waiter);

        ngx_queue_remove(q);
        ctx->woken = 0;

        if (again) {
            ngx_http_counterfoil_begin_again(ctx->request, ctx);

        } else {
            ngx_http_counterfoil_give_up(ctx);
        }
    }
}


static void
ngx_http_counterfoil_wake_step(ngx_http_counterfoil_awaited_t *awaited)
{
    ngx_int_t    n;
    ngx_queue_t  taken;

    n = ngx_min(awaited->to_wake, NGX_HTTP_COUNTERFOIL_WAKE_MAX);
    awaited->to_wake -= n;

    ngx_http_counterfoil_arm_poll(awaited, awaited->to_wake
                                           ? NGX_HTTP_COUNTERFOIL_STEP_MS
                                           : NGX_HTTP_COUNTERFOIL_LOOK_MS);

    ngx_http_counterfoil_take(awaited, &taken, n);
    ngx_http_counterfoil_wake(&taken, 1);
}


/* How many of its waiters a record in this state has something for. */
static ngx_int_t
ngx_http_counterfoil_to_wake(ngx_http_counterfoil_awaited_t *awaited,
    enum cfoil_state state)
{
    ngx_queue_t                 *q;
    ngx_http_counterfoil_ctx_t  *ctx;

    if (awaited->count == 0) {
        return 0;
    }

    q = ngx_queue_head(&awaited->waiters);
    ctx = ngx_queue_data(q, ngx_http_counterfoil_ctx_t, waiter);

    return cfoil_wake_of(state, ctx->route->terms.in_doubt) == CFOIL_WAKE_ALL
           ? awaited->count : 1;
}


static void
ngx_http_counterfoil_look(ngx_http_counterfoil_awaited_t *awaited)
{
    bool                            ready;
    enum cfoil_error                error;
    struct cfoil_glance             glance;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();
    awaited->looking = 1;

    error = cfoil_look(w->engine, awaited->id, ngx_http_counterfoil_looked,
                       awaited, &glance, &ready);

    if (error != CFOIL_OK) {
        ngx_memzero(&glance, sizeof(struct cfoil_glance));
        glance.error = error;
        ready = 1;
    }

    if (ready) {
        ngx_http_counterfoil_looked(awaited, &glance);
        return;
    }

    ngx_http_counterfoil_schedule();
}


/* A store that does not serve is waited for, too. */
static void
ngx_http_counterfoil_looked(void *data, const struct cfoil_glance *glance)
{
    ngx_http_counterfoil_awaited_t *awaited = data;

    if (ngx_http_counterfoil_worker()->closing) {
        return;
    }

    awaited->looking = 0;

    if (awaited->count == 0) {
        ngx_http_counterfoil_forsake(awaited);
        return;
    }

    if (awaited->to_wake == 0 && glance->error == CFOIL_OK && !glance->running)
    {
        awaited->to_wake = ngx_http_counterfoil_to_wake(awaited,
                                                        glance->state);
    }

    if (awaited->to_wake) {
        ngx_http_counterfoil_wake_step(awaited);
        return;
    }

    ngx_http_counterfoil_arm_poll(awaited, NGX_HTTP_COUNTERFOIL_LOOK_MS);
}


static void
ngx_http_counterfoil_poll_handler(ngx_event_t *ev)
{
    ngx_http_counterfoil_awaited_t *awaited = ev->data;

    ngx_queue_t  taken;

    if (ngx_exiting) {

        /* nobody holds a worker that wants to leave */

        ngx_http_counterfoil_take(awaited, &taken, awaited->count);
        ngx_http_counterfoil_wake(&taken, 0);

    } else if (awaited->to_wake) {
        ngx_http_counterfoil_wake_step(awaited);

    } else if (!awaited->looking) {
        ngx_http_counterfoil_look(awaited);
    }
}


/* A settle of this worker's own is known without a look. */
void
ngx_http_counterfoil_wait_settled(ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_counterfoil_awaited_t  *awaited;

    if (ctx->settle_status != CFOIL_SETTLE_DURABLE) {
        return;
    }

    awaited = ngx_http_counterfoil_awaited(ngx_http_counterfoil_worker(),
                                           ctx->id);
    if (awaited == NULL) {
        return;
    }

    awaited->to_wake = ngx_http_counterfoil_to_wake(awaited, ctx->outcome);

    if (awaited->to_wake && !awaited->poll.posted) {
        ngx_post_event(&awaited->poll, &ngx_posted_events);
    }
}
