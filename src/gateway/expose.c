/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of our headers a browser's script of another origin may read: to a request with an Origin,
 * Access-Control-Expose-Headers names those of ours that the answer has. What the backend exposes
 * stays, its header is extended, and "*" is left alone. Whether the script may read the answer at
 * all (Access-Control-Allow-Origin) is not ours to say.
 *
 * Invariant: what is added is for this answer on the wire and nothing else. It is taken back once
 * the head is written, so that no snapshot made later has it.
 */
#include "gateway/gateway.h"
#include "policy/answer.h"


#define NGX_HTTP_COUNTERFOIL_EXPOSE  "Access-Control-Expose-Headers"


static ngx_flag_t
ngx_http_counterfoil_has_origin(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &r->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {
        if (ngx_http_counterfoil_header_is(h, "Origin")) {
            return 1;
        }
    }

    return 0;
}


/* These two are ours in an answer of our own only; the backend's are the backend's to expose. */
static ngx_flag_t
ngx_http_counterfoil_is_exposed(ngx_http_counterfoil_ctx_t *ctx,
    ngx_table_elt_t *h)
{
    if (h->key.len > sizeof("Counterfoil-") - 1
        && ngx_strncasecmp(h->key.data, (u_char *) "Counterfoil-",
                           sizeof("Counterfoil-") - 1)
           == 0)
    {
        return 1;
    }

    if (ngx_http_counterfoil_header_is(h, "Idempotent-Replayed")) {
        return 1;
    }

    return ctx->answer != CFOIL_ANSWER_NONE
           && (ngx_http_counterfoil_header_is(h, "Retry-After")
               || ngx_http_counterfoil_header_is(h, "Location"));
}


/* Where the backend's own list stands, and the room our names need. 0: there is none of ours. */
static size_t
ngx_http_counterfoil_expose_room(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_table_elt_t **last)
{
    size_t            room;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    room = 0;
    *last = NULL;

    part = &r->headers_out.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {

        if (h->hash == 0) {
            continue;
        }

        if (ngx_http_counterfoil_header_is(h, NGX_HTTP_COUNTERFOIL_EXPOSE)) {
            *last = h;

        } else if (ngx_http_counterfoil_is_exposed(ctx, h)) {
            room += h->key.len + sizeof(", ") - 1;
        }
    }

    return room;
}


/* Whether any of the headers that are there names it, or everything. */
static ngx_flag_t
ngx_http_counterfoil_exposed_already(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &r->headers_out.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {

        if (h->hash != 0
            && ngx_http_counterfoil_header_is(h, NGX_HTTP_COUNTERFOIL_EXPOSE)
            && cfoil_exposes(ngx_http_counterfoil_bytes(&h->value),
                             ngx_http_counterfoil_bytes(name)))
        {
            return 1;
        }
    }

    return 0;
}


/* Appends every name of ours that neither the answer's headers nor `value` have. */
static void
ngx_http_counterfoil_expose_names(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_str_t *value)
{
    u_char           *p;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &r->headers_out.headers.part;
    i = 0;

    while ((h = ngx_http_counterfoil_header_next(&part, &i)) != NULL) {

        if (h->hash == 0
            || !ngx_http_counterfoil_is_exposed(ctx, h)
            || ngx_http_counterfoil_exposed_already(r, &h->key)
            || cfoil_exposes(ngx_http_counterfoil_bytes(value),
                             ngx_http_counterfoil_bytes(&h->key)))
        {
            continue;
        }

        p = value->data + value->len;
        p = ngx_sprintf(p, "%s%V", value->len ? ", " : "", &h->key);
        value->len = p - value->data;
    }

    value->data[value->len] = '\0';
}


/* A copy of what is there, without a comma at its end, with room for names and a NUL. */
static ngx_int_t
ngx_http_counterfoil_expose_copy(ngx_http_request_t *r, ngx_table_elt_t *last,
    size_t room, ngx_str_t *value)
{
    ngx_str_t  before;

    ngx_str_null(&before);

    if (last) {
        before = last->value;
    }

    while (before.len && (before.data[before.len - 1] == ' '
                          || before.data[before.len - 1] == ','))
    {
        before.len--;
    }

    value->len = before.len;
    value->data = ngx_pnalloc(r->pool, before.len + room + 1);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    if (before.len) {
        ngx_memcpy(value->data, before.data, before.len);
    }

    return NGX_OK;
}


/* To be called when the answer has all its headers; `exposed` is for what takes it back. */
ngx_int_t
ngx_http_counterfoil_expose(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_http_counterfoil_exposed_t *exposed)
{
    size_t            room, len;
    ngx_str_t         name, value;
    ngx_table_elt_t  *last;

    exposed->header = NULL;

    if (!ngx_http_counterfoil_has_origin(r)) {
        return NGX_OK;
    }

    room = ngx_http_counterfoil_expose_room(r, ctx, &last);

    if (room == 0) {
        return NGX_OK;
    }

    if (ngx_http_counterfoil_expose_copy(r, last, room, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    len = value.len;

    ngx_http_counterfoil_expose_names(r, ctx, &value);

    if (value.len == len) {
        return NGX_OK;
    }

    if (last) {
        exposed->added = 0;
        exposed->before = last->value;
        last->value = value;

    } else {
        ngx_str_set(&name, NGX_HTTP_COUNTERFOIL_EXPOSE);

        last = ngx_http_counterfoil_header_out(r, &name, &value);
        if (last == NULL) {
            return NGX_ERROR;
        }

        exposed->added = 1;
    }

    exposed->header = last;

    return NGX_OK;
}


/* The head is written: the list is again what it was. */
void
ngx_http_counterfoil_unexpose(ngx_http_counterfoil_exposed_t *exposed)
{
    if (exposed->header == NULL) {
        return;
    }

    if (exposed->added) {
        exposed->header->hash = 0;
        return;
    }

    exposed->header->value = exposed->before;
}
