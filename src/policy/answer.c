/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See answer.h. The shapes:
 *
 *   problem    {"type": "about:blank", "title": "Conflict", "status": 409,
 *               "code": "IDEMPOTENCY_PENDING", "message": "...", "resource": {"type", "id"}}
 *   envelope   {"code": 4090, "message": "...", "data": null}
 *   stripe     {"error": {"type": "idempotency_error", "code": "IDEMPOTENCY_PENDING",
 *               "message": "...", "resource": {...}}}
 *
 * The resource stands only where it is known. Each ends with a line feed.
 */
#include "policy/answer.h"

#include <stdio.h>

struct writer {
    char *out;
    size_t bytes;
    size_t len;
};

static void put(struct writer *writer, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (writer->len < writer->bytes) {
            writer->out[writer->len] = text[i];
        }
        writer->len++;
    }
}

static void put_text(struct writer *writer, const char *text)
{
    put(writer, text, strlen(text));
}

static void put_number(struct writer *writer, unsigned number)
{
    char digits[16];
    int len = snprintf(digits, sizeof(digits), "%u", number);
    put(writer, digits, (size_t)len);
}

/* A JSON string. Control characters, quotes and backslashes are escaped; UTF-8 stays as it is. */
static void put_string(struct writer *writer, struct cfoil_bytes text)
{
    put_text(writer, "\"");
    for (size_t i = 0; i < text.len; i++) {
        char escape[8];
        char byte = (char)text.data[i];
        if (text.data[i] < 0x20 || text.data[i] == 0x7F) {
            int len = snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)text.data[i]);
            put(writer, escape, (size_t)len);
            continue;
        }
        if (byte == '"' || byte == '\\') {
            put_text(writer, "\\");
        }
        put(writer, &byte, 1);
    }
    put_text(writer, "\"");
}

static void put_resource(struct writer *writer, const struct cfoil_resource *resource)
{
    if (resource == NULL) {
        return;
    }
    put_text(writer, ", \"resource\": {\"type\": ");
    put_string(writer, resource->type);
    put_text(writer, ", \"id\": ");
    put_string(writer, resource->id);
    put_text(writer, "}");
}

static const char *title(uint16_t status)
{
    switch (status) {
    case 202:
        return "Accepted";
    case 400:
        return "Bad Request";
    case 409:
        return "Conflict";
    case 422:
        return "Unprocessable Content";
    case 502:
        return "Bad Gateway";
    case 503:
        return "Service Unavailable";
    default:
        return "Problem";
    }
}

static void put_problem(struct writer *writer, const struct cfoil_document *document)
{
    put_text(writer, "{\"type\": \"about:blank\", \"title\": ");
    put_string(writer, cfoil_bytes_text(title(document->status)));
    put_text(writer, ", \"status\": ");
    put_number(writer, document->status);
    put_text(writer, ", \"code\": ");
    put_string(writer, cfoil_bytes_text(cfoil_answer_row(document->answer)->code));
    put_text(writer, ", \"message\": ");
    put_string(writer, cfoil_bytes_text(document->message));
    put_resource(writer, document->resource);
    put_text(writer, "}\n");
}

static void put_envelope(struct writer *writer, const struct cfoil_document *document)
{
    put_text(writer, "{\"code\": ");
    put_number(writer, cfoil_answer_row(document->answer)->envelope);
    put_text(writer, ", \"message\": ");
    put_string(writer, cfoil_bytes_text(document->message));
    put_text(writer, ", \"data\": null}\n");
}

static void put_stripe(struct writer *writer, const struct cfoil_document *document)
{
    put_text(writer, "{\"error\": {\"type\": \"idempotency_error\", \"code\": ");
    put_string(writer, cfoil_bytes_text(cfoil_answer_row(document->answer)->code));
    put_text(writer, ", \"message\": ");
    put_string(writer, cfoil_bytes_text(document->message));
    put_resource(writer, document->resource);
    put_text(writer, "}}\n");
}

static const struct {
    const char *type;
    void (*write)(struct writer *writer, const struct cfoil_document *document);
} shapes[] = {
    [CFOIL_ANSWERS_PROBLEM] = {"application/problem+json", put_problem},
    [CFOIL_ANSWERS_ENVELOPE] = {"application/json", put_envelope},
    [CFOIL_ANSWERS_STRIPE] = {"application/json", put_stripe},
};

uint16_t cfoil_answer_status(const struct cfoil_route *route, enum cfoil_answer answer)
{
    return cfoil_answer_row(answer)->status[route->statuses];
}

const char *cfoil_document_type(enum cfoil_answers shape)
{
    return shapes[shape].type;
}

size_t cfoil_document_write(const struct cfoil_document *document, char *out, size_t out_bytes)
{
    struct writer writer = {out, out_bytes, 0};
    shapes[document->shape].write(&writer, document);
    return writer.len;
}
