/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request asks: its target as the client wrote it, its key, its tenant, its fingerprint. The
 * target is taken before any rewrite, because the policy is a contract with clients and does not
 * know how a location renames things. Bodies are read in pieces, from memory or from nginx's file.
 */
#include "gateway/gateway.h"


/* The target again from the request line, for a request whose URI was rewritten. */
static ngx_int_t
ngx_http_counterfoil_reparse(ngx_http_request_t *r, ngx_str_t *path,
    ngx_str_t *args)
{
    ngx_http_request_t        *tmp;
    ngx_http_core_srv_conf_t  *cscf;

    tmp = ngx_palloc(r->pool, sizeof(ngx_http_request_t));
    if (tmp == NULL) {
        return NGX_ERROR;
    }

    *tmp = *r;

    tmp->uri_start = r->unparsed_uri.data;
    tmp->uri_end = r->unparsed_uri.data + r->unparsed_uri.len;
    tmp->uri_ext = NULL;
    tmp->args_start = NULL;

    tmp->uri.len = 0;
    tmp->uri.data = ngx_pnalloc(r->pool, r->unparsed_uri.len + 1);
    if (tmp->uri.data == NULL) {
        return NGX_ERROR;
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);

    if (ngx_http_parse_complex_uri(tmp, cscf->merge_slashes) != NGX_OK) {
        *path = r->uri;
        *args = r->args;
        return NGX_OK;
    }

    *path = tmp->uri;
    ngx_str_null(args);

    if (tmp->args_start && tmp->uri_end > tmp->args_start) {
        args->data = tmp->args_start;
        args->len = tmp->uri_end - tmp->args_start;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_counterfoil_target(ngx_http_request_t *r, ngx_str_t *path,
    ngx_str_t *args)
{
    if (!r->valid_unparsed_uri && r->unparsed_uri.len
        && r->unparsed_uri.data[0] == '/')
    {
        return ngx_http_counterfoil_reparse(r, path, args);
    }

    *path = r->uri;
    *args = r->args;

    return NGX_OK;
}


/* One value more of the key; equal ones count as one. NGX_ABORT: it is none, or another one. */
static ngx_int_t
ngx_http_counterfoil_take_key(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_bytes value)
{
    char    key[CFOIL_KEY_BYTES_MAX];
    size_t  len;

    if (!cfoil_key_normalise(ctx->route->key_format, value, key, &len)) {
        return NGX_ABORT;
    }

    if (ctx->key.data == NULL) {
        ctx->key.data = ngx_pnalloc(r->pool, len);
        if (ctx->key.data == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(ctx->key.data, key, len);
        ctx->key.len = len;

        return NGX_OK;
    }

    return ctx->key.len == len && ngx_memcmp(ctx->key.data, key, len) == 0
           ? NGX_OK : NGX_ABORT;
}


static ngx_int_t
ngx_http_counterfoil_key_in_headers(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t         rc;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &r->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {

        if (!ngx_http_counterfoil_header_is(h, ctx->route->key_header)) {
            continue;
        }

        rc = ngx_http_counterfoil_take_key(r, ctx,
                                       ngx_http_counterfoil_bytes(&h->value));
        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_key_in_query(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    char                  value[CFOIL_KEY_VALUE_BYTES_MAX];
    struct cfoil_finding  finding;

    ngx_memzero(&finding, sizeof(finding));
    finding.out = value;
    finding.out_bytes = sizeof(value);

    cfoil_query_find(ngx_http_counterfoil_bytes(&ctx->args),
                     ctx->route->key_query, &finding);

    switch (finding.found) {

    case CFOIL_FOUND_NONE:
        return NGX_OK;

    case CFOIL_FOUND_ONE:
        return ngx_http_counterfoil_take_key(r, ctx,
                                         cfoil_bytes_of(value, finding.len));

    case CFOIL_FOUND_SEVERAL:
    case CFOIL_FOUND_TOO_LONG:
        break;
    }

    return NGX_ABORT;
}


/*
 * The key in normal form. NGX_DECLINED: there is none. NGX_ABORT: it is not of the route's format,
 * or there are two that differ.
 */
ngx_int_t
ngx_http_counterfoil_key(ngx_http_request_t *r, ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ctx->route->key_query ? ngx_http_counterfoil_key_in_query(r, ctx)
                               : ngx_http_counterfoil_key_in_headers(r, ctx);

    if (rc == NGX_ABORT) {
        ngx_str_null(&ctx->key);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    return ctx->key.data ? NGX_OK : NGX_DECLINED;
}


static void
ngx_http_counterfoil_fill_scope(ngx_http_counterfoil_ctx_t *ctx,
    struct cfoil_scope *scope)
{
    ngx_memzero(scope, sizeof(struct cfoil_scope));

    scope->layer = cfoil_bytes_text("http");
    scope->kind = (ctx->state == NGX_HTTP_COUNTERFOIL_DRY)
                  ? CFOIL_KIND_DRY_RUN : CFOIL_KIND_KEY;
    scope->tenant_class = ctx->tenant_class;
    scope->tenant = ngx_http_counterfoil_bytes(&ctx->tenant);
    scope->endpoint = ngx_http_counterfoil_bytes(&ctx->endpoint);
    scope->key = ngx_http_counterfoil_bytes(&ctx->key);
}


/*
 * Tenant and record id. NGX_ABORT: a part of the scope is longer than a scope may be, or it is not
 * clear which tenant is meant.
 */
ngx_int_t
ngx_http_counterfoil_scope(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_int_t                       rc;
    struct cfoil_scope              scope;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();
    if (w == NULL) {
        return NGX_OK;
    }

    rc = ngx_http_counterfoil_tenant(r, ctx);
    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_counterfoil_fill_scope(ctx, &scope);

    if (cfoil_scope_id(w->digester, &scope, ctx->id) != CFOIL_OK) {
        return NGX_ABORT;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_hash_file(ngx_http_request_t *r,
    struct cfoil_fingerprinter *fingerprinter, ngx_buf_t *b)
{
    off_t                           pos;
    size_t                          size;
    ssize_t                         n;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();

    for (pos = b->file_pos; pos < b->file_last; pos += n) {
        size = (size_t) ngx_min((off_t) sizeof(w->buffer), b->file_last - pos);

        n = ngx_read_file(b->file, w->buffer, size, pos);

        if (n <= 0) {
            ngx_log_error(NGX_LOG_CRIT, r->connection->log, 0,
                          "the request body's file \"%V\" ends early",
                          &b->file->name);
            return NGX_ERROR;
        }

        cfoil_fingerprint_body(fingerprinter, w->buffer, (size_t) n);
    }

    return NGX_OK;
}


/* A body that was read whole. */
ngx_int_t
ngx_http_counterfoil_hash_body(ngx_http_request_t *r,
    struct cfoil_fingerprinter *fingerprinter)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (r->request_body == NULL) {
        return NGX_OK;
    }

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;

        if (ngx_buf_in_memory(b)) {
            cfoil_fingerprint_body(fingerprinter, b->pos,
                                   (size_t) (b->last - b->pos));

        } else if (b->in_file
                   && ngx_http_counterfoil_hash_file(r, fingerprinter, b)
                      != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* The headers that the route's rules want, in their order. */
static ngx_int_t
ngx_http_counterfoil_rule_headers(ngx_http_request_t *r,
    const struct cfoil_rules *rules, struct cfoil_bytes **values)
{
    size_t               i, n;
    ngx_str_t            value;
    struct cfoil_bytes  *v;

    n = cfoil_rules_header_count(rules);

    v = ngx_pcalloc(r->pool, (n + 1) * sizeof(struct cfoil_bytes));
    if (v == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        if (ngx_http_counterfoil_header_join(r, cfoil_rules_header(rules, i),
                                             &value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        v[i] = ngx_http_counterfoil_bytes(&value);
    }

    *values = v;

    return NGX_OK;
}


/* What of a request is counted beside its body. The views live as long as the request. */
ngx_int_t
ngx_http_counterfoil_request_view(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_request_view *view)
{
    struct cfoil_bytes  *values;

    if (ngx_http_counterfoil_rule_headers(r, ctx->route->rules, &values)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_memzero(view, sizeof(struct cfoil_request_view));
    view->method = ngx_http_counterfoil_bytes(&r->method_name);
    view->path = ngx_http_counterfoil_bytes(&ctx->path);
    view->header_values = values;

    if (ctx->args.len) {
        view->query = ngx_http_counterfoil_bytes(&ctx->args);
    }

    if (r->headers_in.content_type) {
        view->content_type =
               ngx_http_counterfoil_bytes(&r->headers_in.content_type->value);
    }

    return NGX_OK;
}


/* The engine's way to the digests that a replay does not need. */
static enum cfoil_error
ngx_http_counterfoil_rest(void *data, struct cfoil_fingerprint *fingerprint)
{
    ngx_http_counterfoil_worker_t *w = data;

    return cfoil_fingerprint_rest(w->fingerprinter, fingerprint, NULL);
}


/* A rule that counts a header needs the whole fingerprint: the rule-free digest has none. */
ngx_int_t
ngx_http_counterfoil_fingerprint(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_begin_request *request)
{
    enum cfoil_error                error;
    struct cfoil_fingerprint       *fingerprint;
    struct cfoil_request_view       view;
    ngx_http_counterfoil_worker_t  *w;

    w = ngx_http_counterfoil_worker();
    fingerprint = &request->origin.fingerprint;

    if (ngx_http_counterfoil_request_view(r, ctx, &view) != NGX_OK) {
        return NGX_ERROR;
    }

    cfoil_fingerprint_begin(w->fingerprinter, ctx->route->rules, &view);

    if (ngx_http_counterfoil_hash_body(r, w->fingerprinter) != NGX_OK) {
        return NGX_ERROR;
    }

    if (cfoil_rules_header_count(ctx->route->rules)) {
        error = cfoil_fingerprint_end(w->fingerprinter, fingerprint, NULL);

    } else {
        error = cfoil_fingerprint_raw(w->fingerprinter, fingerprint);
        request->rest = ngx_http_counterfoil_rest;
        request->rest_context = w;
    }

    return (error == CFOIL_OK) ? NGX_OK : NGX_ERROR;
}


/*
 * $request_id. nginx would draw it from libcrypto, request by request, which costs more than all
 * the digests of a request: it is drawn here from bytes fetched in one call, in the same form, and
 * put where nginx finds it.
 */
static ngx_int_t
ngx_http_counterfoil_request_id(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_http_variable_value_t         *vv;
    ngx_http_counterfoil_worker_t     *w;
    ngx_http_counterfoil_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_counterfoil_module);

    w = ngx_http_counterfoil_worker();
    vv = &r->variables[mcf->request_id];

    if (!vv->valid) {

        if (w->entropy_left < NGX_HTTP_COUNTERFOIL_REQUEST_ID) {
            if (cfoil_random(w->entropy, sizeof(w->entropy)) != CFOIL_OK) {
                return NGX_ERROR;
            }

            w->entropy_left = sizeof(w->entropy);
        }

        vv->data = ngx_pnalloc(r->pool, 2 * NGX_HTTP_COUNTERFOIL_REQUEST_ID);
        if (vv->data == NULL) {
            return NGX_ERROR;
        }

        w->entropy_left -= NGX_HTTP_COUNTERFOIL_REQUEST_ID;

        (void) ngx_hex_dump(vv->data, w->entropy + w->entropy_left,
                            NGX_HTTP_COUNTERFOIL_REQUEST_ID);

        vv->len = 2 * NGX_HTTP_COUNTERFOIL_REQUEST_ID;
        vv->valid = 1;
        vv->no_cacheable = 0;
        vv->not_found = 0;
    }

    id->data = vv->data;
    id->len = vv->len;

    return NGX_OK;
}


/* All but the fingerprint. */
ngx_int_t
ngx_http_counterfoil_begin_request(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_begin_request *request)
{
    struct cfoil_terms  *terms;

    ngx_memzero(request, sizeof(struct cfoil_begin_request));

    if (ngx_http_counterfoil_request_id(r, &ctx->first_request_id) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_memcpy(request->id, ctx->id, CFOIL_ID_BYTES);
    ngx_http_counterfoil_fill_scope(ctx, &request->origin.scope);
    request->origin.first_request_id =
                            ngx_http_counterfoil_bytes(&ctx->first_request_id);

    terms = &request->terms;
    *terms = ctx->route->terms;

    if (terms->trust_absent_after_ms < 0) {
        terms->trust_absent_after_ms =
                              (int64_t) ngx_http_counterfoil_read_timeout(r);
    }

    return NGX_OK;
}
