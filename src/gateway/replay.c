/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first answer again: status, stored headers in their order, body (R5), with nginx's own Date
 * and framing. The body is sent from the claim's memory, which lives until the request's pool is
 * destroyed, so a replay copies the headers only.
 */
#include "gateway/gateway.h"


/* Headers that nginx or a replay writes itself, whatever a snapshot may hold. */
static ngx_flag_t
ngx_http_counterfoil_is_ours(ngx_table_elt_t *h)
{
    static const char *const  names[] = {
        "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive",
        "Date", "Trailer", "Upgrade", "Idempotent-Replayed",
        "Counterfoil-Message", NULL
    };

    ngx_uint_t  i;

    for (i = 0; names[i]; i++) {
        if (ngx_http_counterfoil_header_is(h, names[i])) {
            return 1;
        }
    }

    return 0;
}


/* Headers that nginx keeps several of; since 1.23 it keeps them otherwise. */

#if (nginx_version >= 1023000)


static ngx_int_t
ngx_http_counterfoil_several(ngx_http_request_t *r, ngx_table_elt_t **headers,
    ngx_table_elt_t *h)
{
    while (*headers) {
        headers = &(*headers)->next;
    }

    *headers = h;

    return NGX_OK;
}


#else


static ngx_int_t
ngx_http_counterfoil_several(ngx_http_request_t *r, ngx_array_t *headers,
    ngx_table_elt_t *h)
{
    ngx_table_elt_t  **ph;

    if (headers->elts == NULL
        && ngx_array_init(headers, r->pool, 1, sizeof(ngx_table_elt_t *))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ph = ngx_array_push(headers);
    if (ph == NULL) {
        return NGX_ERROR;
    }

    *ph = h;

    return NGX_OK;
}


#endif


/* What nginx's later filters look for under a name of its own. */
static ngx_int_t
ngx_http_counterfoil_known_header(ngx_http_request_t *r, ngx_table_elt_t *h)
{
    if (ngx_http_counterfoil_header_is(h, "Content-Encoding")) {
        r->headers_out.content_encoding = h;

    } else if (ngx_http_counterfoil_header_is(h, "ETag")) {
        r->headers_out.etag = h;

    } else if (ngx_http_counterfoil_header_is(h, "Last-Modified")) {
        r->headers_out.last_modified = h;

    } else if (ngx_http_counterfoil_header_is(h, "Expires")) {
        r->headers_out.expires = h;

    } else if (ngx_http_counterfoil_header_is(h, "Server")) {
        r->headers_out.server = h;

    } else if (ngx_http_counterfoil_header_is(h, "Accept-Ranges")) {
        r->headers_out.accept_ranges = h;

    } else if (ngx_http_counterfoil_header_is(h, "Cache-Control")) {
        return ngx_http_counterfoil_several(r, &r->headers_out.cache_control,
                                            h);

    } else if (ngx_http_counterfoil_header_is(h, "Link")) {
        return ngx_http_counterfoil_several(r, &r->headers_out.link, h);
    }

    return NGX_OK;
}


/* As nginx does for an upstream's: the charset is also known apart from its type. */
static void
ngx_http_counterfoil_content_type(ngx_http_request_t *r, ngx_str_t *value)
{
    u_char  *p, *end;

    end = value->data + value->len;

    r->headers_out.content_type = *value;
    r->headers_out.content_type_len = value->len;
    r->headers_out.content_type_lowcase = NULL;

    p = ngx_strlchr(value->data, end, ';');
    if (p == NULL) {
        return;
    }

    r->headers_out.content_type_len = p - value->data;

    p = ngx_strlcasestrn(p, end, (u_char *) "charset=", sizeof("charset=") - 2);
    if (p) {
        r->headers_out.charset.data = p + sizeof("charset=") - 1;
        r->headers_out.charset.len = end - r->headers_out.charset.data;
    }
}


static ngx_int_t
ngx_http_counterfoil_override_charset(ngx_http_request_t *r, ngx_str_t *value)
{
    ngx_str_t  *charset;

    charset = ngx_palloc(r->pool, sizeof(ngx_str_t));
    if (charset == NULL) {
        return NGX_ERROR;
    }

    *charset = *value;
    r->headers_out.override_charset = charset;

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_replay_header(ngx_http_request_t *r,
    struct cfoil_bytes name, struct cfoil_bytes value)
{
    u_char           *text;
    ngx_str_t         key, v;
    ngx_table_elt_t   probe, *h;

    text = ngx_pnalloc(r->pool, name.len + 1 + value.len + 1);
    if (text == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(text, name.data, name.len);
    text[name.len] = '\0';

    v.data = text + name.len + 1;
    v.len = value.len;
    ngx_memcpy(v.data, value.data, value.len);
    v.data[value.len] = '\0';

    key.data = text;
    key.len = name.len;

    ngx_memzero(&probe, sizeof(probe));
    probe.key = key;

    if (ngx_http_counterfoil_is_ours(&probe)) {
        return NGX_OK;
    }

    if (ngx_http_counterfoil_header_is(&probe, "Content-Type")) {
        ngx_http_counterfoil_content_type(r, &v);
        return NGX_OK;
    }

    if (ngx_http_counterfoil_header_is(&probe, NGX_HTTP_COUNTERFOIL_CHARSET)) {
        return ngx_http_counterfoil_override_charset(r, &v);
    }

    h = ngx_http_counterfoil_header_out(r, &key, &v);
    if (h == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_counterfoil_known_header(r, h);
}


static ngx_int_t
ngx_http_counterfoil_replay_headers(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_bytes headers)
{
    size_t               cursor;
    const char          *message;
    struct cfoil_bytes   name, value;

    cursor = 0;

    while (cfoil_headers_next(headers, &cursor, &name, &value)) {
        if (ngx_http_counterfoil_replay_header(r, name, value) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_http_counterfoil_mark(r, "Idempotent-Replayed", "true")
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->body_differs
        && ngx_http_counterfoil_mark(r, "Counterfoil-Body", "differs")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* there is one in each language or in none */

    if (ctx->route->replay_messages[CFOIL_LANGUAGE_EN] == NULL) {
        return NGX_OK;
    }

    message = ctx->route->replay_messages[ngx_http_counterfoil_language(r)];

    return ngx_http_counterfoil_mark(r, "Counterfoil-Message", message);
}


static ngx_buf_t *
ngx_http_counterfoil_replay_body(ngx_http_request_t *r, struct cfoil_bytes body)
{
    ngx_buf_t  *b;
    ngx_str_t   text;

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NULL;
    }

    if (body.len) {
        text = ngx_http_counterfoil_str(body.data, body.len);

        b->pos = text.data;
        b->last = text.data + text.len;
        b->memory = 1;
    }

    b->last_buf = 1;
    b->last_in_chain = 1;

    return b;
}


/* The reason phrases nginx has no text for; a status line without one looks broken to people. */
void
ngx_http_counterfoil_status_line(ngx_http_request_t *r)
{
    ngx_uint_t  i;

    static const struct {
        ngx_uint_t  status;
        ngx_str_t   line;
    } lines[] = {
        { 203, ngx_string("203 Non-Authoritative Information") },
        { 205, ngx_string("205 Reset Content") },
        { 207, ngx_string("207 Multi-Status") },
        { 300, ngx_string("300 Multiple Choices") },
        { 417, ngx_string("417 Expectation Failed") },
        { 418, ngx_string("418 I'm a teapot") },
        { 422, ngx_string("422 Unprocessable Entity") },
        { 423, ngx_string("423 Locked") },
        { 424, ngx_string("424 Failed Dependency") },
        { 425, ngx_string("425 Too Early") },
        { 426, ngx_string("426 Upgrade Required") },
        { 428, ngx_string("428 Precondition Required") },
        { 431, ngx_string("431 Request Header Fields Too Large") },
        { 451, ngx_string("451 Unavailable For Legal Reasons") },
        { 511, ngx_string("511 Network Authentication Required") },
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (lines[i].status == r->headers_out.status) {
            r->headers_out.status_line = lines[i].line;
            return;
        }
    }
}


static void
ngx_http_counterfoil_replay_length(ngx_http_request_t *r,
    const struct cfoil_snapshot *snapshot)
{
    if (snapshot->status == NGX_HTTP_NO_CONTENT) {

        /* without a line nginx would write its own and drop the type */

        ngx_str_set(&r->headers_out.status_line, "204 No Content");
        return;
    }

    /* the length of what HEAD or 304 left out is not known */

    if (snapshot->body.len
        || (r->method != NGX_HTTP_HEAD
            && snapshot->status != NGX_HTTP_NOT_MODIFIED))
    {
        r->headers_out.content_length_n = (off_t) snapshot->body.len;
    }
}


ngx_int_t
ngx_http_counterfoil_replay(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    ngx_buf_t                    *b;
    const struct cfoil_snapshot  *snapshot;

    ctx->state = NGX_HTTP_COUNTERFOIL_ANSWERED;

    snapshot = &cfoil_claim_result(ctx->claim)->record->snapshot;

    r->headers_out.status = snapshot->status;
    ngx_http_counterfoil_status_line(r);

    if (ngx_http_counterfoil_replay_headers(r, ctx, snapshot->headers)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b = ngx_http_counterfoil_replay_body(r, snapshot->body);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_counterfoil_replay_length(r, snapshot);

    return ngx_http_counterfoil_respond(r, ctx, b);
}
