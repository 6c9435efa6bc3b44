/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine in a worker's event loop. The lane's descriptor is watched as a channel, which nginx
 * does not count as an open socket; what one turn of the loop asked of the engine is flushed by
 * one posted event at its end, which is one wake-up of the store thread and one commit; one timer
 * carries renewals, pauses and waits.
 *
 * The timer holds back a worker that wants to leave while the engine is busy, for settle_exit_max
 * at most; it is cancelable otherwise.
 */
#include "gateway/gateway.h"


#define NGX_HTTP_COUNTERFOIL_TICK_MS  1000


static ngx_http_counterfoil_worker_t  *ngx_http_counterfoil_this_worker;


ngx_http_counterfoil_worker_t *
ngx_http_counterfoil_worker(void)
{
    return ngx_http_counterfoil_this_worker;
}


void
ngx_http_counterfoil_schedule(void)
{
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_this_worker;

    if (!w->flush.posted) {
        ngx_post_event(&w->flush, &ngx_posted_events);
    }
}


/* Whether this worker must stay for what the engine still has to do. */
static ngx_flag_t
ngx_http_counterfoil_must_stay(ngx_http_counterfoil_worker_t *w)
{
    if (cfoil_engine_busy(w->engine) == 0) {
        return 0;
    }

    if (!ngx_exiting) {
        return 1;
    }

    if (w->exiting_since == 0) {
        w->exiting_since = ngx_current_msec;
    }

    return ngx_current_msec - w->exiting_since < w->exit_max;
}


static void
ngx_http_counterfoil_arm(ngx_http_counterfoil_worker_t *w)
{
    int64_t     due;
    ngx_flag_t  stay;

    due = cfoil_engine_due_ms(w->engine);
    stay = ngx_http_counterfoil_must_stay(w);

    w->timer.cancelable = !stay;

    if (stay && (due < 0 || due > NGX_HTTP_COUNTERFOIL_TICK_MS)) {
        due = NGX_HTTP_COUNTERFOIL_TICK_MS;
    }

    if (due >= 0) {
        ngx_add_timer(&w->timer, (ngx_msec_t) due);
    }
}


static void
ngx_http_counterfoil_flush_handler(ngx_event_t *ev)
{
    ngx_http_counterfoil_worker_t *w = ev->data;

    cfoil_engine_flush(w->engine);
    ngx_http_counterfoil_arm(w);
}


static void
ngx_http_counterfoil_timer_handler(ngx_event_t *ev)
{
    ngx_http_counterfoil_worker_t *w = ev->data;

    cfoil_engine_tick(w->engine);
    ngx_http_counterfoil_schedule();
}


static void
ngx_http_counterfoil_read_handler(ngx_event_t *ev)
{
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_this_worker;

    cfoil_engine_poll(w->engine);
    ngx_http_counterfoil_schedule();
}


/*
 * Called on the store thread too: ngx_log_error builds its line on the stack and writes it
 * whole.
 */
static void
ngx_http_counterfoil_log(void *context, enum cfoil_error error,
    const char *text)
{
    ngx_uint_t  level;

    level = (cfoil_error_class(error) == CFOIL_CLASS_OK) ? NGX_LOG_NOTICE
                                                         : NGX_LOG_WARN;

    ngx_log_error(level, ngx_cycle->log, 0, "counterfoil: %s", text);
}


static ngx_int_t
ngx_http_counterfoil_open_lane(ngx_cycle_t *cycle,
    ngx_http_counterfoil_worker_t *w, ngx_http_counterfoil_main_conf_t *mcf)
{
    char                       problem[512];
    ngx_flag_t                 memory;
    enum cfoil_error           error;
    struct cfoil_lane_options  options;

    memory = ngx_http_counterfoil_store_is_memory(&mcf->store);

    if (memory && ngx_process == NGX_PROCESS_WORKER && ngx_worker != 0) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "counterfoil_store \"memory:\" serves one worker only: "
                      "this worker has no store");
        return NGX_ERROR;
    }

    ngx_memzero(&options, sizeof(options));
    options.store.url = (char *) mcf->store.data;
    options.store.mode = memory ? CFOIL_OPEN_CREATE : CFOIL_OPEN_EXISTING;
    options.log = ngx_http_counterfoil_log;
    problem[0] = '\0';

    ngx_memcpy(options.store.expect_store_id,
               ngx_http_counterfoil_started()->store_id, CFOIL_STORE_ID_BYTES);

    if (ngx_worker == 0) {
        options.sweep_every_ms = NGX_HTTP_COUNTERFOIL_SWEEP_MS;
    }

    error = cfoil_lane_open(&options, &w->lane, problem, sizeof(problem));
    if (error != CFOIL_OK) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "counterfoil_store \"%V\": %s %s", &mcf->store,
                      cfoil_error_text(error), problem);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_make_engine(ngx_cycle_t *cycle,
    ngx_http_counterfoil_worker_t *w, ngx_http_counterfoil_main_conf_t *mcf)
{
    enum cfoil_error                     error;
    struct cfoil_engine_options          options;
    const ngx_http_counterfoil_start_t  *start;

    start = ngx_http_counterfoil_started();

    error = cfoil_digester_create(&w->digester);

    if (error == CFOIL_OK) {
        error = cfoil_fingerprinter_create(&w->fingerprinter);
    }

    if (error == CFOIL_OK) {
        error = cfoil_selector_create(&w->selector);
    }

    if (error == CFOIL_OK) {
        error = cfoil_redactor_create(&w->redactor);
    }

    if (error == CFOIL_OK) {
        error = cfoil_hmac_key_create(cfoil_bytes_of(start->secret,
                                                     start->secret_len),
                                      &w->secret);
    }

    ngx_memzero(&options, sizeof(options));
    options.lane = w->lane;
    options.settle_wait_ms = (int64_t) mcf->settle_wait;
    options.log = ngx_http_counterfoil_log;

    if (error == CFOIL_OK) {
        error = cfoil_engine_create(&options, &w->engine);
    }

    if (error != CFOIL_OK) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "counterfoil: the engine cannot be made: %s",
                      cfoil_error_text(error));
        return NGX_ERROR;
    }

    if (ngx_add_channel_event(cycle, cfoil_engine_fd(w->engine),
                              NGX_READ_EVENT,
                              ngx_http_counterfoil_read_handler)
        == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_counterfoil_init_process(ngx_cycle_t *cycle)
{
    ngx_http_counterfoil_worker_t     *w;
    ngx_http_counterfoil_main_conf_t  *mcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    mcf = ngx_http_cycle_get_module_main_conf(cycle,
                                              ngx_http_counterfoil_module);

    if (mcf == NULL || !mcf->used) {
        return NGX_OK;
    }

    w = ngx_calloc(sizeof(ngx_http_counterfoil_worker_t), cycle->log);
    if (w == NULL) {
        return NGX_ERROR;
    }

    ngx_http_counterfoil_wait_init(w);

    w->exit_max = mcf->settle_exit_max;
    w->flush.handler = ngx_http_counterfoil_flush_handler;
    w->flush.data = w;
    w->flush.log = cycle->log;
    w->timer.handler = ngx_http_counterfoil_timer_handler;
    w->timer.data = w;
    w->timer.log = cycle->log;
    w->timer.cancelable = 1;

    /*
     * A worker without an engine still serves: its requests meet an
     * unavailable store (R6) instead of a worker that keeps dying.
     */

    if (ngx_http_counterfoil_repeats_init(cycle, w, mcf->policy) != NGX_OK
        || ngx_http_counterfoil_open_lane(cycle, w, mcf) != NGX_OK
        || ngx_http_counterfoil_make_engine(cycle, w, mcf) != NGX_OK)
    {
        ngx_free(w);
        return NGX_OK;
    }

    ngx_http_counterfoil_this_worker = w;

    return NGX_OK;
}


/* One line for operators and for the benchmark, which reads it. */
static void
ngx_http_counterfoil_log_stats(ngx_cycle_t *cycle,
    ngx_http_counterfoil_worker_t *w)
{
    struct cfoil_lane_stats    lane;
    struct cfoil_engine_stats  engine;

    cfoil_lane_read_stats(w->lane, &lane);
    cfoil_engine_read_stats(w->engine, &engine);

    ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                  "counterfoil: stats operations=%uL batches=%uL batch_max=%uL"
                  " applied=%uL conflicts=%uL unknown=%uL failed=%uL"
                  " reopened=%uL swept=%uL thread_cpu_us=%uL",
                  lane.operations, lane.batches, lane.batch_operations_max,
                  lane.applied, lane.conflicts, lane.unknown, lane.failed,
                  lane.reopened, lane.swept, lane.thread_cpu_us);

    ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                  "counterfoil: engine begun=%uL execute=%uL replay=%uL"
                  " in_progress=%uL mismatch=%uL begin_failed=%uL settled=%uL"
                  " settle_refused=%uL settle_background=%uL renewed=%uL"
                  " withdrawn=%uL looked=%uL",
                  engine.begun, engine.verdicts[CFOIL_VERDICT_EXECUTE],
                  engine.verdicts[CFOIL_VERDICT_REPLAY],
                  engine.verdicts[CFOIL_VERDICT_IN_PROGRESS],
                  engine.verdicts[CFOIL_VERDICT_MISMATCH], engine.begin_failed,
                  engine.settled, engine.settle_refused,
                  engine.settle_background, engine.renewed, engine.withdrawn,
                  engine.looked);
}


void
ngx_http_counterfoil_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_this_worker;

    if (w == NULL) {
        return;
    }

    ngx_http_counterfoil_log_stats(cycle, w);
    ngx_http_counterfoil_log_repeats(w, cycle->log);

    /*
     * Requests of a worker that was told to leave at once are not resumed:
     * their claims end by their leases.
     */

    w->closing = 1;

    if (!cfoil_lane_leave(w->lane, NGX_HTTP_COUNTERFOIL_LEAVE_MS)) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "counterfoil: the store does not answer, this worker "
                      "leaves without it");
        return;
    }

    cfoil_engine_free(w->engine);
    cfoil_fingerprinter_free(w->fingerprinter);
    cfoil_digester_free(w->digester);
    cfoil_selector_free(w->selector);
    cfoil_redactor_free(w->redactor);
    cfoil_hmac_key_free(w->secret);

    ngx_http_counterfoil_this_worker = NULL;
    ngx_free(w);
}
