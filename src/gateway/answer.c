/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own answers: a document in the route's shape with the stable code and the message in the
 * client's language, and Retry-After where a retry can help. The rows are core/protocol.def's, the
 * bytes policy/answer.h's; this file only sends them.
 */
#include "gateway/gateway.h"
#include "policy/answer.h"


#define NGX_HTTP_COUNTERFOIL_MS  1000


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


static ngx_buf_t *
ngx_http_counterfoil_document(ngx_http_request_t *r,
    const struct cfoil_document *document)
{
    size_t      len;
    ngx_buf_t  *b;

    len = cfoil_document_write(document, NULL, 0);

    b = ngx_create_temp_buf(r->pool, len);
    if (b == NULL) {
        return NULL;
    }

    b->last += cfoil_document_write(document, (char *) b->last, len);

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


/* status 0: the answer's own on this route. NULL on lack of memory. */
ngx_buf_t *
ngx_http_counterfoil_answer_build(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, enum cfoil_answer answer,
    ngx_uint_t status)
{
    ngx_buf_t              *b;
    const char             *type;
    struct cfoil_document   document;
    enum cfoil_language     language;

    language = ngx_http_counterfoil_language(r);

    document.shape = ctx->route->answers;
    document.answer = answer;
    document.status = status ? status
                             : cfoil_answer_status(ctx->route, answer);
    document.message = ctx->route->messages[language][answer];
    document.resource = ngx_http_counterfoil_resource(ctx);

    b = ngx_http_counterfoil_document(r, &document);
    if (b == NULL) {
        return NULL;
    }

    type = cfoil_document_type(document.shape);

    r->headers_out.status = document.status;
    ngx_http_counterfoil_status_line(r);
    r->headers_out.content_length_n = b->last - b->pos;
    r->headers_out.content_type = ngx_http_counterfoil_str(type,
                                                           ngx_strlen(type));
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    if (ngx_http_counterfoil_mark(r, "Content-Language",
                                  cfoil_language_name(language)) != NGX_OK
        || ngx_http_counterfoil_mark(r, "Cache-Control", "no-store") != NGX_OK)
    {
        return NULL;
    }

    if (cfoil_answer_row(answer)->retry_after
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

    return ngx_http_counterfoil_respond(r, ctx, b);
}


ngx_int_t
ngx_http_counterfoil_respond(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_buf_t *b)
{
    ngx_int_t                       rc;
    ngx_chain_t                     out;
    ngx_http_counterfoil_exposed_t  exposed;

    r->disable_not_modified = 1;

    if (ngx_http_counterfoil_expose(r, ctx, &exposed) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_send_header(r);

    ngx_http_counterfoil_unexpose(&exposed);

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
