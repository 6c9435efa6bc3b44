/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fingerprint of a request: what it means, in three digests (core/record.h, cfoil_fingerprint).
 *
 *   request_hash  method, concrete path, query, chosen headers, body; the body canonical if JSON
 *   raw_hash      method, concrete path, query, body bytes as they came and whether their content
 *                 type is JSON: no rules at all
 *   target_hash   method and concrete path
 *
 * Every part goes in framed by a tag and its length (a body's text comes last and ends with the
 * message), so that no two different requests can frame alike, and a canonical body can never equal
 * a raw one.
 *
 * Under rules that count no header, equal raw_hash means equal request_hash and target_hash; so a
 * request that is found in a record by its raw_hash needs no canonical form (core/protocol.h,
 * cfoil_fingerprint_infer).
 *
 * Use: begin, body any number of times, end; or raw and, if it is needed, rest for end. Memory: a body that is not JSON is hashed as it
 * streams, in constant memory; a JSON body is kept up to CFOIL_JSON_BYTES_MAX, over that it is
 * raw. Which of the two it is depends on the bytes, the content type and the rules alone, never on
 * how they were cut nor on memory: want of memory is an error, so that no request can differ from
 * itself. No recursion.
 *
 * Canonical: no white space; members sorted by the bytes of their unescaped names; strings in UTF-8
 * with the escapes JSON requires and no others, without Unicode normalisation; each decimal value
 * in one spelling, exact; ignored values left out; the elements of an unordered array sorted. Not
 * canonicalised but hashed raw: what is not JSON (RFC 8259) to the last byte, an empty body, a byte
 * order mark, ill-formed UTF-8, lone surrogates, two members of one name, and what passes a limit
 * below. Ignored values must be well-formed too.
 *
 * Threads: a fingerprinter belongs to one thread and does one request at a time.
 */
#ifndef CFOIL_FINGERPRINT_FINGERPRINT_H
#define CFOIL_FINGERPRINT_FINGERPRINT_H

#include "fingerprint/digest.h"

#define CFOIL_JSON_BYTES_MAX         (8U * 1024 * 1024)
#define CFOIL_JSON_DEPTH_MAX         512        /* open containers; deeper is hashed raw */
#define CFOIL_JSON_VALUES_MAX        (1U << 20) /* values in all; more is hashed raw */
#define CFOIL_JSON_EXPONENT_MAX      100000000  /* as in d.ddd x 10^e, either sign; beyond is raw */
#define CFOIL_RULES_POINTERS_MAX     256        /* of each list */
#define CFOIL_RULES_HEADERS_MAX      64
#define CFOIL_RULES_HEADER_BYTES_MAX 256
#define CFOIL_POINTER_BYTES_MAX      1024

/* A route's fingerprint rules, compiled; immutable, may be shared by threads. */
struct cfoil_rules;

struct cfoil_rules_source {
    /*
     * JSON pointers (RFC 6901); a token "*" stands for every element or member of its level, also
     * for one named "*". One that matches nothing in a document is fine. "" in unordered is the
     * whole body. An element's index counts ignored elements too.
     */
    const char *const *ignore;
    size_t ignore_count;
    const char *const *unordered;
    size_t unordered_count;
    bool query;
    const char *const *headers; /* names, any case */
    size_t header_count;
};

/*
 * Compiles rules; the source is not needed afterwards. `problem` (may be NULL) receives what is
 * wrong and how to fix it, "" on other errors. Errors: SYNTAX (a pointer that is not one, an
 * ignore pointer "", a header name that is not one), LIMIT, NO_MEMORY, SYSTEM.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_rules_create(const struct cfoil_rules_source *source,
                                                     struct cfoil_rules **rules, char *problem,
                                                     size_t problem_bytes);
void cfoil_rules_free(struct cfoil_rules *rules);

/*
 * Names the rules: equal for sources that mean the same (case of header names, order and repetition
 * of names and pointers do not matter), different otherwise; includes the version of the canonical
 * form.
 */
uint64_t cfoil_rules_version(const struct cfoil_rules *rules);

/*
 * How many headers the rules want, and their names in lower case, in the order they are hashed:
 * that of the bytes of their names, each once. NULL for an index out of range.
 */
size_t cfoil_rules_header_count(const struct cfoil_rules *rules);
const char *cfoil_rules_header(const struct cfoil_rules *rules, size_t index);

struct cfoil_fingerprinter;

/* Errors: NO_MEMORY, SYSTEM. */
CFOIL_MUST_CHECK enum cfoil_error
cfoil_fingerprinter_create(struct cfoil_fingerprinter **fingerprinter);
void cfoil_fingerprinter_free(struct cfoil_fingerprinter *fingerprinter);

/*
 * The request without its body. header_values: as many as the rules want, in their order; an
 * absent header is {NULL, 0}, which differs from an empty one ({non-NULL, 0}). query without "?",
 * {NULL, 0} if there is none. content_type as the request has it; JSON is application/json and
 * anything that ends in +json, parameters and case aside. Views and rules must live until
 * the end. A begin throws away an unfinished request.
 */
struct cfoil_request_view {
    struct cfoil_bytes method;
    struct cfoil_bytes path; /* concrete, as nginx normalised it */
    struct cfoil_bytes query;
    struct cfoil_bytes content_type;
    const struct cfoil_bytes *header_values;
};

/* Whether a body of this content type is read as JSON. */
bool cfoil_content_type_is_json(struct cfoil_bytes content_type);

void cfoil_fingerprint_begin(struct cfoil_fingerprinter *fingerprinter,
                             const struct cfoil_rules *rules,
                             const struct cfoil_request_view *request);

/* A piece of the body, of any length, 0 too. Memory that runs out is told by the end. */
void cfoil_fingerprint_body(struct cfoil_fingerprinter *fingerprinter, const void *data,
                            size_t len);

/*
 * Errors: NO_MEMORY (to canonicalise a JSON body), SYSTEM (libcrypto failed); `fingerprint` is
 * undefined then. What is not JSON after all is no error but hashed raw. raw_reason, if not NULL,
 * receives a static text that says why a JSON body was hashed raw ("it is nested too deeply"), or
 * NULL if it was not.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_fingerprint_end(struct cfoil_fingerprinter *fingerprinter,
                                                        struct cfoil_fingerprint *fingerprint,
                                                        const char **raw_reason);

/*
 * The two halves of an end. raw fills in rules and raw_hash; rest the other two, and may be left out:
 * the next begin throws the request away. Errors: raw SYSTEM; rest as end.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_fingerprint_raw(struct cfoil_fingerprinter *fingerprinter,
                                                        struct cfoil_fingerprint *fingerprint);
CFOIL_MUST_CHECK enum cfoil_error cfoil_fingerprint_rest(struct cfoil_fingerprinter *fingerprinter,
                                                         struct cfoil_fingerprint *fingerprint,
                                                         const char **raw_reason);

/*
 * The canonical form itself, for `counterfoil fingerprint` and tests: *out is malloc'd text (no
 * NUL) the caller frees. Errors: SYNTAX (hashed raw; *raw_reason, if not NULL, says why),
 * NO_MEMORY.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_json_canonical(const struct cfoil_rules *rules,
                                                       struct cfoil_bytes json, uint8_t **out,
                                                       size_t *out_bytes, const char **raw_reason);

#endif
