/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three digests of a request. Owns how they are put together; sink.h has the frames, json.h the
 * canonical form.
 *
 *   raw     = SHA-256(RAW,     version, method, path, query, body)         while the body streams
 *   target  = SHA-256(TARGET,  version, method, path)
 *   request = SHA-256(REQUEST, version, target, query?, headers, JSON text or what stands for the body)
 *
 * For a body that is not canonical stands the raw digest where the query counts, and the digest of
 * its bytes alone where it does not; so a raw body is read once, a JSON body twice. The raw digest comes
 * first and needs neither of the others: whoever finds it in a record of the same rules is spared
 * the rest. Therefore it also says whether the body passes for JSON: equal raw digests under rules
 * without headers mean equal request digests.
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
    struct cfoil_digester *raw;
    struct cfoil_digester *body; /* used where the query does not count */
    struct cfoil_digester *request;
    struct cfoil_sink sink;          /* of one digest after the other */
    const struct cfoil_rules *rules; /* NULL between requests */
    struct cfoil_request_view view;
    uint64_t body_bytes;
    bool body_wanted; /* the digest of the bytes alone */
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

bool cfoil_content_type_is_json(struct cfoil_bytes content_type)
{
    static const char json[] = "application/json";
    static const char suffix[] = "+json";
    const size_t json_bytes = sizeof(json) - 1;
    const size_t suffix_bytes = sizeof(suffix) - 1;
    const uint8_t *semicolon =
        content_type.len > 0 ? memchr(content_type.data, ';', content_type.len) : NULL;
    if (semicolon != NULL) {
        content_type.len = (size_t)(semicolon - content_type.data);
    }
    struct cfoil_bytes type = cfoil_bytes_trimmed(content_type);
    if (type.len == json_bytes) {
        return equal_ignoring_case(type.data, json, json_bytes);
    }
    return type.len > suffix_bytes &&
           equal_ignoring_case(type.data + type.len - suffix_bytes, suffix, suffix_bytes);
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
    fingerprinter->rules = rules;
    fingerprinter->view = *request;
    fingerprinter->body_bytes = 0;
    fingerprinter->body_wanted = !rules->query;
    fingerprinter->json_wanted = cfoil_content_type_is_json(request->content_type);
    fingerprinter->json_no_memory = false;
    cfoil_json_reset(&fingerprinter->json);

    cfoil_sink_begin(sink, fingerprinter->raw, CFOIL_TAG_RAW);
    cfoil_sink_frame(sink, CFOIL_TAG_METHOD, request->method);
    cfoil_sink_frame(sink, CFOIL_TAG_PATH, request->path);
    frame_query(sink, request->query);
    const uint8_t tag =
        fingerprinter->json_wanted ? CFOIL_TAG_BODY_TYPED_JSON : CFOIL_TAG_BODY_BYTES;
    cfoil_sink_put(sink, &tag, 1);
    cfoil_sink_flush(sink);
    if (fingerprinter->body_wanted) {
        cfoil_digest_begin(fingerprinter->body);
    }
}

void cfoil_fingerprint_body(struct cfoil_fingerprinter *fingerprinter, const void *data, size_t len)
{
    assert(fingerprinter->rules != NULL);
    cfoil_digest_update(fingerprinter->raw, data, len);
    if (fingerprinter->body_wanted) {
        cfoil_digest_update(fingerprinter->body, data, len);
    }
    fingerprinter->body_bytes += len;
    if (!fingerprinter->json_wanted || fingerprinter->body_bytes > CFOIL_JSON_BYTES_MAX ||
        fingerprinter->json_no_memory) {
        return;
    }
    if (cfoil_json_append(&fingerprinter->json, data, len) != CFOIL_OK) {
        fingerprinter->json_no_memory = true;
    }
}

static enum cfoil_error end_target(struct cfoil_fingerprinter *fingerprinter,
                                   struct cfoil_fingerprint *fingerprint)
{
    struct cfoil_sink *sink = &fingerprinter->sink;

    cfoil_sink_begin(sink, fingerprinter->request, CFOIL_TAG_TARGET);
    cfoil_sink_frame(sink, CFOIL_TAG_METHOD, fingerprinter->view.method);
    cfoil_sink_frame(sink, CFOIL_TAG_PATH, fingerprinter->view.path);
    cfoil_sink_flush(sink);
    return cfoil_digest_end(fingerprinter->request, fingerprint->target_hash);
}

/* Appends the canonical text to the request's digest. Errors: SYNTAX (json.reason), NO_MEMORY. */
static enum cfoil_error end_json(struct cfoil_fingerprinter *fingerprinter)
{
    const uint8_t tag = CFOIL_TAG_BODY_JSON;

    if (fingerprinter->json_no_memory) {
        return CFOIL_E_NO_MEMORY;
    }
    enum cfoil_error error = cfoil_json_read(&fingerprinter->json, fingerprinter->rules);
    if (error != CFOIL_OK) {
        return error;
    }
    cfoil_sink_put(&fingerprinter->sink, &tag, 1);
    cfoil_json_write(&fingerprinter->json, &fingerprinter->sink);
    return CFOIL_OK;
}

/* ... or what stands for the body. Error: SYSTEM. */
static enum cfoil_error end_raw_body(struct cfoil_fingerprinter *fingerprinter,
                                     const struct cfoil_fingerprint *fingerprint)
{
    uint8_t body[CFOIL_DIGEST_BYTES];
    struct cfoil_bytes stands = cfoil_bytes_of(fingerprint->raw_hash, CFOIL_DIGEST_BYTES);

    if (fingerprinter->body_wanted) {
        enum cfoil_error error = cfoil_digest_end(fingerprinter->body, body);
        if (error != CFOIL_OK) {
            return error;
        }
        stands = cfoil_bytes_of(body, sizeof(body));
    }
    cfoil_sink_frame(&fingerprinter->sink, CFOIL_TAG_BODY_RAW, stands);
    return CFOIL_OK;
}

/* Appends the body to the request's digest in the one form its bytes have. */
static enum cfoil_error end_body(struct cfoil_fingerprinter *fingerprinter,
                                 const struct cfoil_fingerprint *fingerprint,
                                 const char **raw_reason)
{
    if (!fingerprinter->json_wanted) {
        return end_raw_body(fingerprinter, fingerprint);
    }
    *raw_reason = "it is over 8 MiB";
    if (fingerprinter->body_bytes <= CFOIL_JSON_BYTES_MAX) {
        enum cfoil_error error = end_json(fingerprinter);
        *raw_reason = error == CFOIL_OK ? NULL : fingerprinter->json.reason;
        if (error != CFOIL_E_SYNTAX) {
            return error;
        }
    }
    return end_raw_body(fingerprinter, fingerprint);
}

static enum cfoil_error end_request(struct cfoil_fingerprinter *fingerprinter,
                                    struct cfoil_fingerprint *fingerprint, const char **raw_reason)
{
    struct cfoil_sink *sink = &fingerprinter->sink;

    cfoil_sink_begin(sink, fingerprinter->request, CFOIL_TAG_REQUEST);
    cfoil_sink_frame(sink, CFOIL_TAG_TARGET_HASH,
                     cfoil_bytes_of(fingerprint->target_hash, CFOIL_DIGEST_BYTES));
    if (fingerprinter->rules->query) {
        frame_query(sink, fingerprinter->view.query);
    }
    frame_headers(sink, fingerprinter->rules, fingerprinter->view.header_values);
    enum cfoil_error error = end_body(fingerprinter, fingerprint, raw_reason);
    if (error != CFOIL_OK) {
        return error;
    }
    cfoil_sink_flush(sink);
    return cfoil_digest_end(fingerprinter->request, fingerprint->request_hash);
}

enum cfoil_error cfoil_fingerprint_raw(struct cfoil_fingerprinter *fingerprinter,
                                       struct cfoil_fingerprint *fingerprint)
{
    assert(fingerprinter->rules != NULL);
    fingerprint->rules = fingerprinter->rules->version;
    return cfoil_digest_end(fingerprinter->raw, fingerprint->raw_hash);
}

enum cfoil_error cfoil_fingerprint_rest(struct cfoil_fingerprinter *fingerprinter,
                                        struct cfoil_fingerprint *fingerprint,
                                        const char **raw_reason)
{
    const char *reason = NULL;

    assert(fingerprinter->rules != NULL);
    enum cfoil_error error = end_target(fingerprinter, fingerprint);
    if (error == CFOIL_OK) {
        error = end_request(fingerprinter, fingerprint, &reason);
    }
    if (raw_reason != NULL) {
        *raw_reason = reason;
    }
    fingerprinter->rules = NULL;
    cfoil_json_reset(&fingerprinter->json);
    return error;
}

enum cfoil_error cfoil_fingerprint_end(struct cfoil_fingerprinter *fingerprinter,
                                       struct cfoil_fingerprint *fingerprint,
                                       const char **raw_reason)
{
    enum cfoil_error error = cfoil_fingerprint_raw(fingerprinter, fingerprint);
    if (error != CFOIL_OK) {
        return error;
    }
    return cfoil_fingerprint_rest(fingerprinter, fingerprint, raw_reason);
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
