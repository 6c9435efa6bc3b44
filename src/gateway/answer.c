/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own answers: problem details (RFC 9457) with the stable code, the message in the client's
 * language, and Retry-After where a retry can help. The rows are core/protocol.def's; this file
 * only writes them down.
 */
#include "gateway/gateway.h"


#define NGX_HTTP_COUNTERFOIL_MS  1000


/* Control characters, quotes and backslashes; everything else passes, UTF-8 included. */
static u_char *
ngx_http_counterfoil_json(u_char *p, struct cfoil_bytes text)
{
    size_t         i;
    const uint8_t  *s;

    s = text.data;

    for (i = 0; i < text.len; i++) {

        if (s[i] < 0x20 || s[i] == 0x7f) {
            p = ngx_sprintf(p, "\\u%04xd", (int) s[i]);
            continue;
        }

        if (s[i] == '"' || s[i] == '\\') {
            *p++ = '\\';
        }

        *p++ = s[i];
    }

    return p;
}


#define NGX_HTTP_COUNTERFOIL_JSON_GROWTH  (sizeof("\\u0000") - 1)


/* The resource of a settled record, for answers that can only point at it. */
static const struct cfoil_resource *
ngx_http_counterfoil_resource(ngx_http_counterfoil_ctx_t *ctx)
{
    const struct cfoil_record  *record;

    if (ctx->claim == NULL
        || (ctx->verdict != CFOIL_VERDICT_NOT_STORED
            && ctx->verdict != CFOIL_VERDICT_KEY_EXPIRED))
    {
        return NULL;
    }

    record = cfoil_claim_result(ctx->claim)->record;

    if (record == NULL || record->resource.id.len == 0) {
        return NULL;
    }

    return &record->resource;
}


static const char *
ngx_http_counterfoil_title(ngx_uint_t status)
{
    switch (status) {

    case NGX_HTTP_ACCEPTED:
        return "Accepted";

    case NGX_HTTP_BAD_REQUEST:
        return "Bad Request";

    case NGX_HTTP_CONFLICT:
        return "Conflict";

    case 422:
        return "Unprocessable Content";

    case NGX_HTTP_BAD_GATEWAY:
        return "Bad Gateway";

    case NGX_HTTP_SERVICE_UNAVAILABLE:
        return "Service Unavailable";

    default:
        return "Problem";
    }
}


static ngx_buf_t *
ngx_http_counterfoil_problem(ngx_http_request_t *r,
    const struct cfoil_answer_row *row, const char *message, ngx_uint_t status,
    const struct cfoil_resource *resource)
{
    size_t      len;
    ngx_buf_t  *b;

    len = 256 + ngx_strlen(row->code) + ngx_strlen(message);

    if (resource) {
        len += (resource->type.len + resource->id.len)
               * NGX_HTTP_COUNTERFOIL_JSON_GROWTH;
    }

    b = ngx_create_temp_buf(r->pool, len);
    if (b == NULL) {
        return NULL;
    }

    b->last = ngx_sprintf(b->last,
                          "{\"type\": \"about:blank\", \"title\": \"%s\", "
                          "\"status\": %ui, \"code\": \"%s\", "
                          "\"message\": \"",
                          ngx_http_counterfoil_title(status), status,
                          row->code);

    b->last = ngx_http_counterfoil_json(b->last, cfoil_bytes_text(message));
    *b->last++ = '"';

    if (resource) {
        b->last = ngx_sprintf(b->last, ", \"resource\": {\"type\": \"");
        b->last = ngx_http_counterfoil_json(b->last, resource->type);
        b->last = ngx_sprintf(b->last, "\", \"id\": \"");
        b->last = ngx_http_counterfoil_json(b->last, resource->id);
        b->last = ngx_sprintf(b->last, "\"}");
    }

    *b->last++ = '}';
    *b->last++ = LF;

    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;

    return b;
}


/* Whole seconds, rounded up, at least one. */
static ngx_int_t
ngx_http_counterfoil_retry_after(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx)
{
    int64_t    ms;
    ngx_str_t  name, value;

    ms = ctx->retry_after_ms ? ctx->retry_after_ms
                             : ctx->route->terms.retry_after_ms;

    ms = (ms + NGX_HTTP_COUNTERFOIL_MS - 1) / NGX_HTTP_COUNTERFOIL_MS;

    value.data = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%L", ms > 0 ? ms : 1) - value.data;

    ngx_str_set(&name, "Retry-After");

    if (ngx_http_counterfoil_header_out(r, &name, &value) == NULL) {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* status 0: the row's, by the route's profile. NULL on lack of memory. */
ngx_buf_t *
ngx_http_counterfoil_answer_build(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, enum cfoil_answer answer,
    ngx_uint_t status)
{
    ngx_buf_t                      *b;
    ngx_flag_t                      chinese;
    const struct cfoil_answer_row  *row;

    row = cfoil_answer_row(answer);

    if (status == 0) {
        status = (ctx->route->profile == CFOIL_PROFILE_IETF) ? row->status_ietf
                                                             : row->status;
    }

    chinese = ngx_http_counterfoil_wants_chinese(r);

    b = ngx_http_counterfoil_problem(r, row, chinese ? row->zh_cn : row->en,
                                     status,
                                     ngx_http_counterfoil_resource(ctx));
    if (b == NULL) {
        return NULL;
    }

    r->headers_out.status = status;
    ngx_http_counterfoil_status_line(r);
    r->headers_out.content_length_n = b->last - b->pos;
    ngx_str_set(&r->headers_out.content_type, "application/problem+json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    if (ngx_http_counterfoil_mark(r, "Content-Language",
                                  chinese ? "zh-CN" : "en") != NGX_OK
        || ngx_http_counterfoil_mark(r, "Cache-Control", "no-store") != NGX_OK)
    {
        return NULL;
    }

    if (row->retry_after
        && ngx_http_counterfoil_retry_after(r, ctx) != NGX_OK)
    {
        return NULL;
    }

    ctx->answer = answer;

    return b;
}


ngx_int_t
ngx_http_counterfoil_answer(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, enum cfoil_answer answer)
{
    ngx_int_t    rc;
    ngx_buf_t   *b;
    ngx_uint_t   status;

    ctx->state = NGX_HTTP_COUNTERFOIL_ANSWERED;
    status = 0;

    /* an answer before the body was read keeps the connection in step */

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    if (answer == CFOIL_ANSWER_PENDING
        && ngx_http_counterfoil_accept(r, ctx, &status) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b = ngx_http_counterfoil_answer_build(r, ctx, answer, status);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_counterfoil_respond(r, b);
}


ngx_int_t
ngx_http_counterfoil_respond(ngx_http_request_t *r, ngx_buf_t *b)
{
    ngx_int_t    rc;
    ngx_chain_t  out;

    r->disable_not_modified = 1;

    rc = ngx_http_send_header(r);

    if (rc == NGX_OK && !r->header_only) {
        out.buf = b;
        out.next = NULL;

        rc = ngx_http_output_filter(r, &out);
    }

    if (rc == NGX_AGAIN) {
        ngx_http_counterfoil_stay(r);
    }

    /* NGX_OK from a phase handler would mean "go on with the next phase" */

    ngx_http_finalize_request(r, rc);

    return NGX_DONE;
}
