/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an access log may say of a request. A variable is not found ("-" in a log) where it has
 * nothing to say: no route, no key, no claim.
 *
 *   $counterfoil_verdict           execute, replay, in_progress, mismatch, outcome_unknown,
 *                                  not_stored, key_expired, probe; key_missing, key_invalid;
 *                                  store_unavailable (answered 503), unprotected (let through
 *                                  without the store)
 *   $counterfoil_route             the route's name
 *   $counterfoil_attempt           of the claim
 *   $counterfoil_key               normalised
 *   $counterfoil_first_request_id  $request_id of the request that made the record's first claim
 */
#include "gateway/gateway.h"


static ngx_int_t ngx_http_counterfoil_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


typedef ngx_int_t (*ngx_http_counterfoil_text_pt)(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_str_t *text);


static ngx_int_t
ngx_http_counterfoil_verdict_text(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_str_t *text)
{
    const char  *word;

    if (ctx->unprotected) {
        word = "unprotected";

    } else if (ctx->answer == CFOIL_ANSWER_KEY_MISSING) {
        word = "key_missing";

    } else if (ctx->answer == CFOIL_ANSWER_KEY_INVALID) {
        word = "key_invalid";

    } else if (ctx->answer == CFOIL_ANSWER_STORE_UNAVAILABLE) {
        word = "store_unavailable";

    } else {
        word = cfoil_verdict_variable(ctx->verdict);
    }

    *text = ngx_http_counterfoil_str(word, ngx_strlen(word));

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_route_text(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_str_t *text)
{
    *text = ngx_http_counterfoil_str(ctx->route->name,
                                     ngx_strlen(ctx->route->name));

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_attempt_text(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_str_t *text)
{
    if (ctx->attempt == 0) {
        return NGX_OK;
    }

    text->data = ngx_pnalloc(r->pool, NGX_INT32_LEN);
    if (text->data == NULL) {
        return NGX_ERROR;
    }

    text->len = ngx_sprintf(text->data, "%uD", ctx->attempt) - text->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_key_text(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_str_t *text)
{
    *text = ctx->key;

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_first_request_id_text(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_str_t *text)
{
    if (ctx->verdict != CFOIL_VERDICT_NONE) {
        *text = ctx->first_request_id;
    }

    return NGX_OK;
}


static ngx_http_counterfoil_text_pt  ngx_http_counterfoil_texts[] = {
    ngx_http_counterfoil_verdict_text,
    ngx_http_counterfoil_route_text,
    ngx_http_counterfoil_attempt_text,
    ngx_http_counterfoil_key_text,
    ngx_http_counterfoil_first_request_id_text
};


static ngx_http_variable_t  ngx_http_counterfoil_variables[] = {

    { ngx_string("counterfoil_verdict"), NULL, ngx_http_counterfoil_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("counterfoil_route"), NULL, ngx_http_counterfoil_variable,
      1, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("counterfoil_attempt"), NULL, ngx_http_counterfoil_variable,
      2, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("counterfoil_key"), NULL, ngx_http_counterfoil_variable,
      3, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("counterfoil_first_request_id"), NULL,
      ngx_http_counterfoil_variable, 4, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


static ngx_int_t
ngx_http_counterfoil_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                    text;
    ngx_http_counterfoil_ctx_t  *ctx;

    ctx = ngx_http_counterfoil_get_ctx(r->main);

    ngx_str_null(&text);

    if (ctx && ngx_http_counterfoil_texts[data](r, ctx, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    if (text.len == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->data = text.data;
    v->len = text.len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


ngx_int_t
ngx_http_counterfoil_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_counterfoil_variables; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}
