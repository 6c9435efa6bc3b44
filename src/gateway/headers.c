/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of headers: what the client sent, what the backend and a probe get to see, and what of a
 * response goes into its snapshot. A request's list is never changed in place, because nginx's
 * known headers point into it: a new list is made and the old elements stay where they are.
 */
#include "gateway/gateway.h"


static const char  ngx_http_counterfoil_attempt[] = "Counterfoil-Attempt";
static const char  ngx_http_counterfoil_fence[] = "Counterfoil-Fence";
static const char  ngx_http_counterfoil_first_claim[] =
                                                     "Counterfoil-First-Claim";


/* The next element of a list, NULL at its end. Starts with the list's first part and 0. */
ngx_table_elt_t *
ngx_http_counterfoil_header_next(ngx_list_part_t **part, ngx_uint_t *i)
{
    while (*i >= (*part)->nelts) {
        if ((*part)->next == NULL) {
            return NULL;
        }

        *part = (*part)->next;
        *i = 0;
    }

    return (ngx_table_elt_t *) (*part)->elts + (*i)++;
}


/* The rest of header_is, for names of one length. */
ngx_flag_t
ngx_http_counterfoil_header_same(ngx_table_elt_t *h, const char *name)
{
    u_char  a, b;
    size_t  i;

    for (i = 0; i < h->key.len; i++) {
        a = ngx_tolower(h->key.data[i]);
        b = ngx_tolower(name[i]);

        if (a != b && !(a == '_' && b == '-')) {
            return 0;
        }
    }

    return 1;
}


/*
 * The value of a header, several of one name joined by ", " (RFC 9110, section 5.3). value->data is
 * NULL where there is none.
 */
ngx_int_t
ngx_http_counterfoil_header_join(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    u_char           *p;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    ngx_str_null(value);

    part = &r->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {

        if (!ngx_http_counterfoil_header_is(h, name)) {
            continue;
        }

        if (value->data == NULL) {
            *value = h->value;
            continue;
        }

        p = ngx_pnalloc(r->pool, value->len + h->value.len + 2);
        if (p == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(p, value->data, value->len);
        ngx_memcpy(p + value->len, ", ", 2);
        ngx_memcpy(p + value->len + 2, h->value.data, h->value.len);

        value->data = p;
        value->len += h->value.len + 2;
    }

    return NGX_OK;
}


/* An element for a request's list: nginx finds it by hash and lower-case name. */
static ngx_table_elt_t *
ngx_http_counterfoil_header_add(ngx_list_t *headers, const char *name,
    ngx_str_t *value)
{
    size_t            len;
    ngx_table_elt_t  *h;

    h = ngx_list_push(headers);
    if (h == NULL) {
        return NULL;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    len = ngx_strlen(name);

    h->key = ngx_http_counterfoil_str(name, len);
    h->value = *value;

    h->lowcase_key = ngx_pnalloc(headers->pool, len);
    if (h->lowcase_key == NULL) {
        return NULL;
    }

    h->hash = ngx_hash_strlow(h->lowcase_key, h->key.data, len);

    return h;
}


static ngx_int_t
ngx_http_counterfoil_header_number(ngx_list_t *headers, const char *name,
    uint64_t number)
{
    ngx_str_t  value;

    value.data = ngx_pnalloc(headers->pool, NGX_INT64_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%uL", number) - value.data;

    if (ngx_http_counterfoil_header_add(headers, name, &value) == NULL) {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_is_control(ngx_table_elt_t *h,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (h->key.len < sizeof("counterfoil") - 1
        || ngx_tolower(h->key.data[0]) != 'c'
        || ngx_strncasecmp(h->key.data, (u_char *) "counterfoil",
                           sizeof("counterfoil") - 1) != 0)
    {
        return 0;
    }

    return ngx_http_counterfoil_header_is(h, ngx_http_counterfoil_attempt)
           || ngx_http_counterfoil_header_is(h, ngx_http_counterfoil_fence)
           || ngx_http_counterfoil_header_is(h,
                                             ngx_http_counterfoil_first_claim);
}


static ngx_int_t
ngx_http_counterfoil_is_any(ngx_table_elt_t *h, const char *const *names)
{
    for ( /* void */ ; *names; names++) {
        if (ngx_http_counterfoil_header_is(h, *names)) {
            return 1;
        }
    }

    return 0;
}


/* What a claimed execution must not see: the key comes back normalised, encoding is identity. */
static ngx_int_t
ngx_http_counterfoil_drop_forward(ngx_table_elt_t *h,
    ngx_http_counterfoil_ctx_t *ctx)
{
    static const char *const  names[] = {
        "Accept-Encoding", "Range", "If-Range", NULL
    };

    return ngx_http_counterfoil_is_control(h, ctx)
           || ngx_http_counterfoil_header_is(h, ctx->route->key_header)
           || ngx_http_counterfoil_is_any(h, names);
}


/*
 * A probe is a plain GET without a body: nothing that describes a body or asks for a part of
 * one.
 */
static ngx_int_t
ngx_http_counterfoil_drop_probe(ngx_table_elt_t *h,
    ngx_http_counterfoil_ctx_t *ctx)
{
    static const char *const  names[] = {
        "Accept-Encoding", "Range", "If-Range", "If-Match", "If-None-Match",
        "If-Modified-Since", "If-Unmodified-Since", "Content-Length",
        "Content-Type", "Content-Encoding", "Content-Language",
        "Content-Location", "Content-Range", "Content-MD5", "Digest",
        "Content-Digest", "Transfer-Encoding", "Trailer", "TE", "Expect",
        "Upgrade", NULL
    };

    return ngx_http_counterfoil_is_control(h, ctx)
           || ngx_http_counterfoil_is_any(h, names);
}


static ngx_int_t
ngx_http_counterfoil_filter_list(ngx_http_request_t *r, ngx_list_t *headers,
    ngx_http_counterfoil_drop_pt drop, ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_list_t        kept;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h, *copy;

    /* room for what is added to it, too */

    if (ngx_list_init(&kept, r->pool,
                      headers->part.nelts + NGX_HTTP_COUNTERFOIL_HEADERS,
                      sizeof(ngx_table_elt_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    part = &headers->part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {

        if (drop(h, ctx)) {
            continue;
        }

        copy = ngx_list_push(&kept);
        if (copy == NULL) {
            return NGX_ERROR;
        }

        *copy = *h;
    }

    *headers = kept;

    /* a list's last part is itself while it has one part */

    if (headers->last == &kept.part) {
        headers->last = &headers->part;
    }

    return NGX_OK;
}


/*
 * PREACCESS: takes our own control headers out of what a client sent, before anybody is asked about
 * the request. A backend of auth_request must not see them either.
 */
ngx_int_t
ngx_http_counterfoil_strip_handler(ngx_http_request_t *r)
{
    ngx_uint_t                        i;
    ngx_list_part_t                  *part;
    ngx_table_elt_t                  *h;
    ngx_http_counterfoil_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_counterfoil_module);

    if (lcf->mode != NGX_HTTP_COUNTERFOIL_ON || r != r->main
        || ngx_http_counterfoil_get_ctx(r) != NULL)
    {
        return NGX_DECLINED;
    }

    part = &r->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {

        if (!ngx_http_counterfoil_is_control(h, NULL)) {
            continue;
        }

        if (ngx_http_counterfoil_filter_list(r, &r->headers_in.headers,
                                              ngx_http_counterfoil_is_control,
                                              NULL)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        break;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_counterfoil_add_claim(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_list_t  *headers;

    headers = &r->headers_in.headers;

    if (ngx_http_counterfoil_header_number(headers,
                                           ngx_http_counterfoil_attempt,
                                           ctx->attempt)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_counterfoil_header_number(headers, ngx_http_counterfoil_fence,
                                           ctx->fence)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_counterfoil_header_number(headers,
                                              ngx_http_counterfoil_first_claim,
                                              (uint64_t) ctx->life_ms);
}


ngx_int_t
ngx_http_counterfoil_forward_headers(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    if (ngx_http_counterfoil_filter_list(r, &r->headers_in.headers,
                                         ngx_http_counterfoil_drop_forward,
                                         ctx)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* a part of a response is not a response that can be replayed */

    r->headers_in.range = NULL;
    r->headers_in.if_range = NULL;

    if (ngx_http_counterfoil_header_add(&r->headers_in.headers,
                                        ctx->route->key_header, &ctx->key)
        == NULL)
    {
        return NGX_ERROR;
    }

    if (ctx->unprotected) {
        return NGX_OK;
    }

    return ngx_http_counterfoil_add_claim(r, ctx);
}


ngx_int_t
ngx_http_counterfoil_probe_headers(ngx_http_request_t *sr,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_http_headers_in_t  *in;

    in = &sr->headers_in;

    if (ngx_http_counterfoil_filter_list(sr, &in->headers,
                                         ngx_http_counterfoil_drop_probe, ctx)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    in->content_length = NULL;
    in->content_type = NULL;
    in->transfer_encoding = NULL;
    in->content_range = NULL;
    in->expect = NULL;
    in->upgrade = NULL;
    in->te = NULL;
    in->range = NULL;
    in->if_range = NULL;
    in->if_match = NULL;
    in->if_none_match = NULL;
    in->if_modified_since = NULL;
    in->if_unmodified_since = NULL;
    in->content_length_n = -1;
    in->chunked = 0;

    return ngx_http_counterfoil_header_number(&in->headers,
                                              ngx_http_counterfoil_fence,
                                              ctx->fence);
}


/* An element for a response's list, which nginx goes through as it stands. */
ngx_table_elt_t *
ngx_http_counterfoil_header_out(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NULL;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key = *name;
    h->value = *value;

    return h;
}


/* A header of the response, of texts that live as long as the process. */
ngx_int_t
ngx_http_counterfoil_mark(ngx_http_request_t *r, const char *name,
    const char *value)
{
    ngx_str_t  key, text;

    key = ngx_http_counterfoil_str(name, ngx_strlen(name));
    text = ngx_http_counterfoil_str(value, ngx_strlen(value));

    if (ngx_http_counterfoil_header_out(r, &key, &text) == NULL) {
        return NGX_ERROR;
    }

    return NGX_OK;
}
