/* SPDX-License-Identifier: Apache-2.0 */
/* Whose request it is: the tenant, from wherever the route's policy says. */
#include "gateway/gateway.h"


/* The authorization tenant: never the header itself, only its HMAC under the store's secret. */
static ngx_int_t
ngx_http_counterfoil_authorization(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    uint8_t  digest[CFOIL_DIGEST_BYTES];

    /* nginx lets a request have one */

    if (r->headers_in.authorization == NULL
        || r->headers_in.authorization->value.len == 0)
    {
        return NGX_DECLINED;
    }

    if (cfoil_hmac(ngx_http_counterfoil_worker()->secret,
                   ngx_http_counterfoil_bytes(
                                       &r->headers_in.authorization->value),
                   digest)
        != CFOIL_OK)
    {
        return NGX_ERROR;
    }

    ctx->tenant.len = 2 * CFOIL_DIGEST_BYTES;
    ctx->tenant.data = ngx_pnalloc(r->pool, ctx->tenant.len + 1);
    if (ctx->tenant.data == NULL) {
        return NGX_ERROR;
    }

    cfoil_hex(digest, CFOIL_DIGEST_BYTES, (char *) ctx->tenant.data);
    ctx->tenant_class = CFOIL_TENANT_AUTHORIZATION;

    return NGX_OK;
}


/* What was found of a tenant's name. NGX_ABORT: two that differ, or one that is too long. */
static ngx_int_t
ngx_http_counterfoil_found(ngx_http_counterfoil_ctx_t *ctx,
    const struct cfoil_finding *finding)
{
    switch (finding->found) {

    case CFOIL_FOUND_NONE:
        return NGX_DECLINED;

    case CFOIL_FOUND_ONE:
        ctx->tenant = ngx_http_counterfoil_str(finding->out, finding->len);
        return NGX_OK;

    case CFOIL_FOUND_SEVERAL:
    case CFOIL_FOUND_TOO_LONG:
        break;
    }

    return NGX_ABORT;
}


/* The tenant in a cookie or in an argument of the query. */
static ngx_int_t
ngx_http_counterfoil_named(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_uint_t                       i;
    ngx_list_part_t                 *part;
    ngx_table_elt_t                 *h;
    struct cfoil_finding             finding;
    const struct cfoil_tenant_rule  *rule;

    rule = &ctx->route->tenant;

    ngx_memzero(&finding, sizeof(finding));
    finding.out_bytes = CFOIL_TENANT_BYTES_MAX;
    finding.out = ngx_pnalloc(r->pool, CFOIL_TENANT_BYTES_MAX);
    if (finding.out == NULL) {
        return NGX_ERROR;
    }

    if (rule->source == CFOIL_TENANT_FROM_QUERY) {
        cfoil_query_find(ngx_http_counterfoil_bytes(&ctx->args), rule->name,
                         &finding);
        return ngx_http_counterfoil_found(ctx, &finding);
    }

    part = &r->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {
        if (ngx_http_counterfoil_header_is(h, "Cookie")) {
            cfoil_cookie_find(ngx_http_counterfoil_bytes(&h->value), rule->name,
                              &finding);
        }
    }

    return ngx_http_counterfoil_found(ctx, &finding);
}


static ngx_int_t
ngx_http_counterfoil_parameter(ngx_http_counterfoil_ctx_t *ctx)
{
    struct cfoil_bytes  value;

    value = cfoil_route_parameter(ctx->route,
                    ngx_http_counterfoil_bytes(&ctx->request->method_name),
                    ngx_http_counterfoil_bytes(&ctx->path),
                    ctx->route->tenant.name);

    ctx->tenant = ngx_http_counterfoil_str(value.data, value.len);

    return value.len ? NGX_OK : NGX_DECLINED;
}


/* The configuration has seen to it that there is a variable of this name. */
static ngx_int_t
ngx_http_counterfoil_variable(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    u_char                     *low;
    ngx_str_t                   name;
    ngx_uint_t                  hash;
    ngx_http_variable_value_t  *v;

    name = ngx_http_counterfoil_str(ctx->route->tenant.name,
                                    ngx_strlen(ctx->route->tenant.name));

    low = ngx_pnalloc(r->pool, name.len);
    if (low == NULL) {
        return NGX_ERROR;
    }

    hash = ngx_hash_strlow(low, name.data, name.len);
    name.data = low;

    v = ngx_http_get_variable(r, &name, hash);
    if (v == NULL) {
        return NGX_ERROR;
    }

    if (v->not_found || v->len == 0) {
        return NGX_DECLINED;
    }

    ctx->tenant = ngx_http_counterfoil_str(v->data, v->len);

    return NGX_OK;
}


/* NGX_DECLINED: the source gives nothing. */
static ngx_int_t
ngx_http_counterfoil_tenant_from(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, enum cfoil_tenant_source source)
{
    ctx->tenant_class = CFOIL_TENANT_NAMED;

    switch (source) {

    case CFOIL_TENANT_FROM_HEADER:
        if (ngx_http_counterfoil_header_join(r, ctx->route->tenant.name,
                                             &ctx->tenant)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        return ctx->tenant.len ? NGX_OK : NGX_DECLINED;

    case CFOIL_TENANT_FROM_COOKIE:
    case CFOIL_TENANT_FROM_QUERY:
        return ngx_http_counterfoil_named(r, ctx);

    case CFOIL_TENANT_FROM_PATH:
        return ngx_http_counterfoil_parameter(ctx);

    case CFOIL_TENANT_FROM_VARIABLE:
        return ngx_http_counterfoil_variable(r, ctx);

    case CFOIL_TENANT_FROM_AUTHORIZATION:
        return ngx_http_counterfoil_authorization(r, ctx);

    case CFOIL_TENANT_FROM_NONE:
        break;
    }

    return NGX_DECLINED;
}


/* Fills in tenant and its class. NGX_ABORT: it is not clear which one is meant. */
ngx_int_t
ngx_http_counterfoil_tenant(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t                        rc;
    const struct cfoil_tenant_rule  *rule;

    rule = &ctx->route->tenant;

    rc = ngx_http_counterfoil_tenant_from(r, ctx, rule->source);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_counterfoil_tenant_from(r, ctx, rule->otherwise);
    }

    if (rc == NGX_DECLINED) {
        ngx_str_null(&ctx->tenant);
        ctx->tenant_class = CFOIL_TENANT_NONE;
        rc = NGX_OK;
    }

    return rc;
}
