/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A response as a record keeps it. Headers: Content-Type first, as nginx sends it, then the list in
 * its order, without what the route drops and what nginx writes anew for every answer. The body:
 * without the values that the route redacts.
 */
#include "gateway/gateway.h"


typedef struct {
    const struct cfoil_route  *route;
    uint8_t                   *out;
    size_t                     out_bytes;
    size_t                     len;
} ngx_http_counterfoil_frame_t;


/* There is room for every header of the list (snapshot_bytes). */
static void
ngx_http_counterfoil_frame_one(ngx_http_counterfoil_frame_t *frame,
    struct cfoil_bytes name, struct cfoil_bytes value)
{
    if (!cfoil_route_keeps_header(frame->route, name)) {
        return;
    }

    frame->len += cfoil_headers_put(name, value, frame->out + frame->len,
                                    frame->out_bytes - frame->len);
}


/* The whole value, where nginx keeps type and charset apart. */
static ngx_int_t
ngx_http_counterfoil_whole_type(ngx_http_request_t *r, ngx_str_t *value)
{
    *value = r->headers_out.content_type;

    if (value->len == 0 || r->headers_out.charset.len == 0
        || r->headers_out.content_type_len != value->len)
    {
        return NGX_OK;
    }

    value->data = ngx_pnalloc(r->pool, value->len + sizeof("; charset=")
                                       + r->headers_out.charset.len);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = ngx_sprintf(value->data, "%V; charset=%V",
                             &r->headers_out.content_type,
                             &r->headers_out.charset) - value->data;

    return NGX_OK;
}


static void
ngx_http_counterfoil_frame_list(ngx_http_request_t *r,
    ngx_http_counterfoil_frame_t *frame)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &r->headers_out.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {

        if (h->hash == 0
            || ngx_http_counterfoil_header_is(h, "Counterfoil-Unprotected"))
        {
            continue;
        }

        ngx_http_counterfoil_frame_one(frame,
                                       ngx_http_counterfoil_bytes(&h->key),
                                       ngx_http_counterfoil_bytes(&h->value));
    }
}


/* A file's date is not in the list: nginx would write it from the number. */
static void
ngx_http_counterfoil_frame_date(ngx_http_request_t *r,
    ngx_http_counterfoil_frame_t *frame)
{
    u_char  date[sizeof("Mon, 28 Sep 1970 06:00:00 GMT")];
    u_char  *end;

    if (r->headers_out.last_modified
        || r->headers_out.last_modified_time == -1
        || r->headers_out.status != NGX_HTTP_OK)
    {
        return;
    }

    end = ngx_http_time(date, r->headers_out.last_modified_time);

    ngx_http_counterfoil_frame_one(frame, cfoil_bytes_text("Last-Modified"),
                                   cfoil_bytes_of(date, end - date));
}


static void
ngx_http_counterfoil_frame(ngx_http_request_t *r, ngx_str_t *type,
    ngx_http_counterfoil_frame_t *frame)
{
    if (type->len) {
        ngx_http_counterfoil_frame_one(frame, cfoil_bytes_text("Content-Type"),
                                       ngx_http_counterfoil_bytes(type));
    }

    /* what nginx was told to make of the charset, not what it made */

    if (r->headers_out.override_charset) {
        ngx_http_counterfoil_frame_one(frame,
                  cfoil_bytes_text(NGX_HTTP_COUNTERFOIL_CHARSET),
                  ngx_http_counterfoil_bytes(r->headers_out.override_charset));
    }

    ngx_http_counterfoil_frame_date(r, frame);
    ngx_http_counterfoil_frame_list(r, frame);
}


/* What the frames need at most: as if every header were kept. */
static size_t
ngx_http_counterfoil_snapshot_bytes(ngx_http_request_t *r, ngx_str_t *type)
{
    size_t            bytes;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    bytes = cfoil_headers_put(cfoil_bytes_text("Content-Type"),
                              ngx_http_counterfoil_bytes(type), NULL, 0);

    if (r->headers_out.override_charset) {
        bytes += cfoil_headers_put(
                  cfoil_bytes_text(NGX_HTTP_COUNTERFOIL_CHARSET),
                  ngx_http_counterfoil_bytes(r->headers_out.override_charset),
                  NULL, 0);
    }

    bytes += cfoil_headers_put(cfoil_bytes_text("Last-Modified"),
                        cfoil_bytes_text("Mon, 28 Sep 1970 06:00:00 GMT"),
                        NULL, 0);

    part = &r->headers_out.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {
        bytes += cfoil_headers_put(ngx_http_counterfoil_bytes(&h->key),
                                   ngx_http_counterfoil_bytes(&h->value),
                                   NULL, 0);
    }

    return bytes;
}


ngx_int_t
ngx_http_counterfoil_snapshot_headers(ngx_http_request_t *r,
    const struct cfoil_route *route, struct cfoil_bytes *framed)
{
    ngx_str_t                     type;
    ngx_http_counterfoil_frame_t  frame;

    if (ngx_http_counterfoil_whole_type(r, &type) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_memzero(&frame, sizeof(frame));
    frame.route = route;
    frame.out_bytes = ngx_http_counterfoil_snapshot_bytes(r, &type);

    frame.out = ngx_pnalloc(r->pool, frame.out_bytes);
    if (frame.out == NULL) {
        return NGX_ERROR;
    }

    ngx_http_counterfoil_frame(r, &type, &frame);

    *framed = cfoil_bytes_of(frame.out, frame.len);

    return NGX_OK;
}


ngx_int_t
ngx_http_counterfoil_redact(ngx_pool_t *pool, const struct cfoil_route *route,
    struct cfoil_bytes *body)
{
    size_t                          cuts, len;
    uint8_t                        *out;
    enum cfoil_error                error;
    ngx_http_counterfoil_worker_t  *w;

    if (route->redact == NULL || body->len == 0) {
        return NGX_OK;
    }

    w = ngx_http_counterfoil_worker();

    error = cfoil_redactor_read(w->redactor, route->redact, *body, &cuts, &len);

    if (error == CFOIL_E_SYNTAX) {
        return NGX_DECLINED;
    }

    if (error != CFOIL_OK) {
        return NGX_ERROR;
    }

    if (cuts == 0) {
        return NGX_OK;
    }

    out = ngx_pnalloc(pool, len);
    if (out == NULL) {
        return NGX_ERROR;
    }

    cfoil_redactor_write(w->redactor, *body, out);

    *body = cfoil_bytes_of(out, len);

    return NGX_OK;
}
