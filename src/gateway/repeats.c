/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The age at which repeats arrive, per route: what `counterfoil check --observed` holds against the
 * windows a policy declares. Counted by the worker, written to its error log and begun anew every
 * hour and when the worker leaves, so that the lines of all workers add up.
 *
 * A repeat is a request whose key was known, but for one that is another request (MISMATCH) and so
 * no retry. Its age is counted from the first claim of the record's life, in store time.
 */
#include "gateway/gateway.h"


#define NGX_HTTP_COUNTERFOIL_REPORT_MS  3600000


static struct cfoil_ages *
ngx_http_counterfoil_route_ages(ngx_http_counterfoil_worker_t *w,
    const struct cfoil_route *route)
{
    size_t  i;

    i = (size_t) (route - cfoil_policy_route(w->policy, 0));

    if (w->ages[i] == NULL) {
        w->ages[i] = ngx_pcalloc(ngx_cycle->pool, sizeof(struct cfoil_ages));
    }

    return w->ages[i];
}


void
ngx_http_counterfoil_count_repeat(ngx_http_counterfoil_ctx_t *ctx,
    const struct cfoil_result *result)
{
    struct cfoil_ages              *ages;
    ngx_http_counterfoil_worker_t  *w;

    if (ctx->counted
        || result->error != CFOIL_OK
        || result->record == NULL
        || result->verdict == CFOIL_VERDICT_MISMATCH
        || (result->verdict == CFOIL_VERDICT_EXECUTE && result->attempt == 1))
    {
        return;
    }

    ctx->counted = 1;

    w = ngx_http_counterfoil_worker();

    ages = ngx_http_counterfoil_route_ages(w, ctx->route);
    if (ages == NULL) {
        return;
    }

    cfoil_ages_add(ages, result->now_ms - result->life_ms);

    if (!w->report.timer_set) {
        ngx_add_timer(&w->report, NGX_HTTP_COUNTERFOIL_REPORT_MS);
    }
}


static void
ngx_http_counterfoil_log_ages(ngx_log_t *log, const char *route,
    const struct cfoil_ages *ages)
{
    size_t  i;
    u_char  text[CFOIL_AGES_COUNT * (NGX_INT64_LEN + sizeof(" later="))], *p;

    p = text;

    for (i = 0; i < CFOIL_AGES_COUNT; i++) {
        p = ngx_slprintf(p, text + sizeof(text), " %s=%uL",
                         cfoil_ages_name(i), ages->count[i]);
    }

    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "counterfoil: repeats route=\"%s\"%*s", route,
                  (size_t) (p - text), text);
}


void
ngx_http_counterfoil_log_repeats(ngx_http_counterfoil_worker_t *w,
    ngx_log_t *log)
{
    size_t                     i;
    const struct cfoil_route  *route;

    static const struct cfoil_ages  none;

    for (i = 0; i < cfoil_policy_route_count(w->policy); i++) {

        if (w->ages[i] == NULL
            || ngx_memcmp(w->ages[i], &none, sizeof(struct cfoil_ages)) == 0)
        {
            continue;
        }

        route = cfoil_policy_route(w->policy, i);

        ngx_http_counterfoil_log_ages(log, route->name, w->ages[i]);
        ngx_memzero(w->ages[i], sizeof(struct cfoil_ages));
    }
}


static void
ngx_http_counterfoil_report_handler(ngx_event_t *ev)
{
    ngx_http_counterfoil_log_repeats(ev->data, ev->log);
}


ngx_int_t
ngx_http_counterfoil_repeats_init(ngx_cycle_t *cycle,
    ngx_http_counterfoil_worker_t *w, const struct cfoil_policy *policy)
{
    w->policy = policy;

    w->ages = ngx_pcalloc(cycle->pool, cfoil_policy_route_count(policy)
                                       * sizeof(struct cfoil_ages *));
    if (w->ages == NULL) {
        return NGX_ERROR;
    }

    w->report.handler = ngx_http_counterfoil_report_handler;
    w->report.data = w;
    w->report.log = cycle->log;
    w->report.cancelable = 1;

    return NGX_OK;
}
