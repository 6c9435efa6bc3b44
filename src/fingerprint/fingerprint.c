/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three digests of a request. Owns how they are put together; sink.h has the frames, json.h the
 * canonical form.
 *
 *   body    = SHA-256(the body's bytes)                                  while it streams
 *   target  = SHA-256(TARGET,  version, method, path)
 *   raw     = SHA-256(RAW,     version, target, query, body)
 *   request = SHA-256(REQUEST, version, target, query?, headers, JSON text or body)
 *
 * The body's bytes are hashed once, and their digest stands for them in both; so a raw body costs
 * one pass, and a JSON body two.
 *
 * Invariant: whether a body is canonical depends on its bytes, the content type and the rules.
 * Memory that runs out is an error, never another digest: the same request must not differ from
 * itself.
 */
#include "fingerprint/fingerprint.h"

#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "fingerprint/json.h"

struct cfoil_fingerprinter {
    struct cfoil_digester *body;
    struct cfoil_digester *raw;
    struct cfoil_digester *request;
    struct cfoil_sink sink;          /* of the request's digest while a request is under way */
    const struct cfoil_rules *rules; /* NULL between requests */
    enum cfoil_error error;          /* of a digest that failed in begin */
    uint8_t target_hash[CFOIL_DIGEST_BYTES];
    uint64_t body_bytes;
    bool json_wanted;
    bool json_no_memory;
    struct cfoil_json json;
};

enum cfoil_error cfoil_fingerprinter_create(struct cfoil_fingerprinter **fingerprinter)
{
    struct cfoil_fingerprinter *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    enum cfoil_error error = cfoil_digester_create(&made->body);
    if (error == CFOIL_OK) {
        error = cfoil_digester_create(&made->raw);
    }
    if (error == CFOIL_OK) {
        error = cfoil_digester_create(&made->request);
    }
    if (error == CFOIL_OK) {
        error = cfoil_sink_create(&made->sink, made->request);
    }
    if (error != CFOIL_OK) {
        cfoil_fingerprinter_free(made);
        return error;
    }
    *fingerprinter = made;
    return CFOIL_OK;
}

void cfoil_fingerprinter_free(struct cfoil_fingerprinter *fingerprinter)
{
    if (fingerprinter == NULL) {
        return;
    }
    cfoil_digester_free(fingerprinter->body);
    cfoil_digester_free(fingerprinter->raw);
    cfoil_digester_free(fingerprinter->request);
    cfoil_sink_free(&fingerprinter->sink);
    cfoil_json_free(&fingerprinter->json);
    free(fingerprinter);
}

static bool equal_ignoring_case(const uint8_t *text, const char *word, size_t len)
{
    return strncasecmp((const char *)text, word, len) == 0;
}

/* application/json and what ends in +json, whatever the case; parameters do not count. */
static bool is_json(struct cfoil_bytes content_type)
{
    static const char json[] = "application/json";
    static const char suffix[] = "+json";
    const size_t json_bytes = sizeof(json) - 1;
    const size_t suffix_bytes = sizeof(suffix) - 1;
    const uint8_t *type = content_type.data;
    size_t len = 0;
    while (len < content_type.len && type[len] != ';') {
        len++;
    }
    while (len > 0 && (type[len - 1] == ' ' || type[len - 1] == '\t')) {
        len--;
    }
    while (len > 0 && (*type == ' ' || *type == '\t')) {
        type++;
        len--;
    }
    if (len == json_bytes) {
        return equal_ignoring_case(type, json, json_bytes);
    }
    return len > suffix_bytes &&
           equal_ignoring_case(type + len - suffix_bytes, suffix, suffix_bytes);
}

static void frame_query(struct cfoil_sink *sink, struct cfoil_bytes query)
{
    cfoil_sink_frame(sink, query.data != NULL ? CFOIL_TAG_QUERY : CFOIL_TAG_QUERY_ABSENT, query);
}

static void frame_headers(struct cfoil_sink *sink, const struct cfoil_rules *rules,
                          const struct cfoil_bytes *values)
{
    for (size_t i = 0; i < rules->header_count; i++) {
        bool absent = values[i].data == NULL;
        cfoil_sink_frame(sink, CFOIL_TAG_HEADER_NAME, cfoil_bytes_text(rules->headers[i]));
        cfoil_sink_frame(sink, absent ? CFOIL_TAG_HEADER_ABSENT : CFOIL_TAG_HEADER_VALUE,
                         values[i]);
    }
}

void cfoil_fingerprint_begin(struct cfoil_fingerprinter *fingerprinter,
                             const struct cfoil_rules *rules,
                             const struct cfoil_request_view *request)
{
    struct cfoil_sink *sink = &fingerprinter->sink;
    const struct cfoil_bytes target =
        cfoil_bytes_of(fingerprinter->target_hash, CFOIL_DIGEST_BYTES);
    fingerprinter->rules = rules;
    fingerprinter->body_bytes = 0;
    fingerprinter->json_wanted = is_json(request->content_type);
    fingerprinter->json_no_memory = false;
    cfoil_json_reset(&fingerprinter->json);

    cfoil_sink_begin(sink, fingerprinter->body, CFOIL_TAG_TARGET);
    cfoil_sink_frame(sink, CFOIL_TAG_METHOD, request->method);
    cfoil_sink_frame(sink, CFOIL_TAG_PATH, request->path);
    cfoil_sink_flush(sink);
    fingerprinter->error = cfoil_digest_end(fingerprinter->body, fingerprinter->target_hash);

    cfoil_sink_begin(sink, fingerprinter->raw, CFOIL_TAG_RAW);
    cfoil_sink_frame(sink, CFOIL_TAG_TARGET_HASH, target);
    frame_query(sink, request->query);
    cfoil_sink_flush(sink);

    cfoil_sink_begin(sink, fingerprinter->request, CFOIL_TAG_REQUEST);
    cfoil_sink_frame(sink, CFOIL_TAG_TARGET_HASH, target);
    if (rules->query) {
        frame_query(sink, request->query);
    }
    frame_headers(sink, rules, request->header_values);

    cfoil_digest_begin(fingerprinter->body);
}

void cfoil_fingerprint_body(struct cfoil_fingerprinter *fingerprinter, const void *data, size_t len)
{
    assert(fingerprinter->rules != NULL);
    cfoil_digest_update(fingerprinter->body, data, len);
    fingerprinter->body_bytes += len;
    if (!fingerprinter->json_wanted || fingerprinter->body_bytes > CFOIL_JSON_BYTES_MAX ||
        fingerprinter->json_no_memory) {
        return;
    }
    if (cfoil_json_append(&fingerprinter->json, data, len) != CFOIL_OK) {
        fingerprinter->json_no_memory = true;
    }
}

/*
 * Appends the body to the request's digest in the one form its bytes have. Error: NO_MEMORY.
 */
static enum cfoil_error end_body(struct cfoil_fingerprinter *fingerprinter, struct cfoil_bytes raw,
                                 const char **raw_reason)
{
    struct cfoil_sink *sink = &fingerprinter->sink;
    const char *reason = NULL;
    if (fingerprinter->json_wanted) {
        reason = "it is over 8 MiB";
    }
    if (fingerprinter->json_wanted && fingerprinter->body_bytes <= CFOIL_JSON_BYTES_MAX) {
        if (fingerprinter->json_no_memory) {
            return CFOIL_E_NO_MEMORY;
        }
        enum cfoil_error error = cfoil_json_read(&fingerprinter->json, fingerprinter->rules);
        if (error == CFOIL_OK) {
            const uint8_t tag = CFOIL_TAG_BODY_JSON;
            cfoil_sink_put(sink, &tag, 1);
            cfoil_json_write(&fingerprinter->json, sink);
            return CFOIL_OK;
        }
        if (error != CFOIL_E_SYNTAX) {
            return error;
        }
        reason = fingerprinter->json.reason;
    }
    cfoil_sink_frame(sink, CFOIL_TAG_BODY_RAW, raw);
    if (raw_reason != NULL) {
        *raw_reason = reason;
    }
    return CFOIL_OK;
}

enum cfoil_error cfoil_fingerprint_end(struct cfoil_fingerprinter *fingerprinter,
                                       struct cfoil_fingerprint *fingerprint,
                                       const char **raw_reason)
{
    uint8_t body[CFOIL_DIGEST_BYTES];
    const struct cfoil_bytes body_hash = cfoil_bytes_of(body, sizeof(body));
    struct cfoil_sink *sink = &fingerprinter->sink;
    assert(fingerprinter->rules != NULL);
    if (raw_reason != NULL) {
        *raw_reason = NULL;
    }
    enum cfoil_error error = fingerprinter->error;
    if (error == CFOIL_OK) {
        error = cfoil_digest_end(fingerprinter->body, body);
    }
    if (error == CFOIL_OK) {
        error = end_body(fingerprinter, body_hash, raw_reason);
    }
    if (error != CFOIL_OK) {
        goto out;
    }

    cfoil_sink_flush(sink);
    error = cfoil_digest_end(fingerprinter->request, fingerprint->request_hash);
    if (error != CFOIL_OK) {
        goto out;
    }
    sink->digester = fingerprinter->raw;
    cfoil_sink_frame(sink, CFOIL_TAG_BODY_RAW, body_hash);
    cfoil_sink_flush(sink);
    error = cfoil_digest_end(fingerprinter->raw, fingerprint->raw_hash);
    if (error != CFOIL_OK) {
        goto out;
    }
    fingerprint->rules = fingerprinter->rules->version;
    memcpy(fingerprint->target_hash, fingerprinter->target_hash, CFOIL_DIGEST_BYTES);

out:
    fingerprinter->rules = NULL;
    cfoil_json_reset(&fingerprinter->json);
    return error;
}

enum cfoil_error cfoil_json_canonical(const struct cfoil_rules *rules, struct cfoil_bytes json,
                                      uint8_t **out, size_t *out_bytes, const char **raw_reason)
{
    if (raw_reason != NULL) {
        *raw_reason = NULL;
    }
    struct cfoil_json *workspace = calloc(1, sizeof(*workspace));
    struct cfoil_sink sink = {0};
    enum cfoil_error error = CFOIL_E_NO_MEMORY;
    if (workspace == NULL) {
        goto out;
    }
    if (json.len > CFOIL_JSON_BYTES_MAX) {
        workspace->reason = "it is over 8 MiB";
        error = CFOIL_E_SYNTAX;
        goto out;
    }
    error = cfoil_json_append(workspace, json.data, json.len);
    if (error == CFOIL_OK) {
        error = cfoil_json_read(workspace, rules);
    }
    if (error == CFOIL_OK) {
        error = cfoil_sink_create(&sink, NULL);
    }
    if (error != CFOIL_OK) {
        goto out;
    }
    cfoil_json_write(workspace, &sink);
    if (sink.failed) {
        error = CFOIL_E_NO_MEMORY;
        goto out;
    }
    *out = sink.bytes;
    *out_bytes = sink.used;
    sink.bytes = NULL;

out:
    if (workspace != NULL) {
        if (raw_reason != NULL) {
            *raw_reason = error == CFOIL_E_SYNTAX ? workspace->reason : NULL;
        }
        cfoil_json_free(workspace);
    }
    free(workspace);
    cfoil_sink_free(&sink);
    return error;
}
