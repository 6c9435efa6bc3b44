/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling and naming of fingerprint rules. Owns what a valid rule is; places.c owns the tree its
 * pointers become.
 *
 * Invariant: two sources have the same version exactly if they list the same pointers, the same
 * header names in any case, and the same choice about the query, in whatever order and however
 * often; and if they were compiled for the same canonical form.
 */
#include "fingerprint/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fingerprint/sink.h"
#include "fingerprint/utf8.h"

/* To be changed with any canonical text or frame: old records are then compared by raw_hash. */
#define CANONICAL_FORM_VERSION 1

__attribute__((format(printf, 3, 4))) static void explain(char *problem, size_t problem_bytes,
                                                          const char *format, ...)
{
    if (problem == NULL || problem_bytes == 0) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(problem, problem_bytes, format, arguments);
    va_end(arguments);
}

struct problem {
    char *text;
    size_t bytes;
};

static enum cfoil_error check_escapes(const char *kind, const char *text, struct problem problem)
{
    for (const char *at = strchr(text, '~'); at != NULL; at = strchr(at + 1, '~')) {
        if (at[1] != '0' && at[1] != '1') {
            explain(problem.text, problem.bytes,
                    "%s pointer \"%s\": \"~\" must be followed by 0 or 1; write \"~0\" for \"~\" "
                    "and \"~1\" for \"/\"",
                    kind, text);
            return CFOIL_E_SYNTAX;
        }
    }
    return CFOIL_OK;
}

static enum cfoil_error check_pointer(const char *text, enum cfoil_place_flag flag,
                                      struct problem problem)
{
    const char *kind = flag == CFOIL_PLACE_IGNORE ? "ignore" : "unordered";
    size_t len = strlen(text);
    if (len > CFOIL_POINTER_BYTES_MAX) {
        explain(problem.text, problem.bytes, "%s pointer of %zu bytes: at most %d are allowed",
                kind, len, CFOIL_POINTER_BYTES_MAX);
        return CFOIL_E_LIMIT;
    }
    if (len == 0 && flag == CFOIL_PLACE_IGNORE) {
        explain(
            problem.text, problem.bytes,
            "ignore pointer \"\" would ignore the whole body; name members, as in \"/trace_id\"");
        return CFOIL_E_SYNTAX;
    }
    if (len > 0 && text[0] != '/') {
        explain(problem.text, problem.bytes,
                "%s pointer \"%s\" must start with \"/\"; write \"/%s\"", kind, text, text);
        return CFOIL_E_SYNTAX;
    }
    if (!cfoil_utf8_valid(cfoil_bytes_text(text))) {
        explain(problem.text, problem.bytes,
                "%s pointer is not valid UTF-8; no member name could match it", kind);
        return CFOIL_E_SYNTAX;
    }
    return check_escapes(kind, text, problem);
}

static int order_pointers(const void *left, const void *right)
{
    const struct cfoil_pointer *a = left;
    const struct cfoil_pointer *b = right;
    if (a->flag != b->flag) {
        return a->flag < b->flag ? -1 : 1;
    }
    return strcmp(a->text, b->text);
}

static enum cfoil_error collect(const char *const *texts, size_t count, enum cfoil_place_flag flag,
                                struct cfoil_pointer *pointers, struct problem problem)
{
    for (size_t i = 0; i < count; i++) {
        enum cfoil_error error = check_pointer(texts[i], flag, problem);
        if (error != CFOIL_OK) {
            return error;
        }
        pointers[i] = (struct cfoil_pointer){texts[i], strlen(texts[i]), flag};
    }
    return CFOIL_OK;
}

static size_t drop_repeated_pointers(struct cfoil_pointer *pointers, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || order_pointers(&pointers[kept - 1], &pointers[i]) != 0) {
            pointers[kept++] = pointers[i];
        }
    }
    return kept;
}

/* Header names are tokens (RFC 9110, 5.6.2). */
static bool is_token_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static enum cfoil_error copy_header(const char *name, char **copy, struct problem problem)
{
    size_t len = strlen(name);
    if (len > CFOIL_RULES_HEADER_BYTES_MAX) {
        explain(problem.text, problem.bytes, "header name of %zu bytes: at most %d are allowed",
                len, CFOIL_RULES_HEADER_BYTES_MAX);
        return CFOIL_E_LIMIT;
    }
    for (size_t i = 0; i < len || len == 0; i++) {
        if (len == 0 || !is_token_character(name[i])) {
            explain(problem.text, problem.bytes,
                    "\"%s\" is not a header name; write one like \"X-Currency\"", name);
            return CFOIL_E_SYNTAX;
        }
    }
    *copy = malloc(len + 1);
    if (*copy == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    for (size_t i = 0; i <= len; i++) {
        bool upper = name[i] >= 'A' && name[i] <= 'Z';
        (*copy)[i] = (char)(upper ? name[i] - 'A' + 'a' : name[i]);
    }
    return CFOIL_OK;
}

static int order_texts(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

static void sort_headers(struct cfoil_rules *rules)
{
    if (rules->header_count == 0) {
        return;
    }
    qsort(rules->headers, rules->header_count, sizeof(*rules->headers), order_texts);
    size_t kept = 1;
    for (size_t i = 1; i < rules->header_count; i++) {
        if (strcmp(rules->headers[kept - 1], rules->headers[i]) == 0) {
            free(rules->headers[i]);
            continue;
        }
        rules->headers[kept++] = rules->headers[i];
    }
    rules->header_count = kept;
}

static enum cfoil_error compile_headers(struct cfoil_rules *rules,
                                        const struct cfoil_rules_source *source,
                                        struct problem problem)
{
    rules->headers = calloc(source->header_count + 1, sizeof(*rules->headers));
    if (rules->headers == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    for (size_t i = 0; i < source->header_count; i++) {
        enum cfoil_error error = copy_header(source->headers[i], &rules->headers[i], problem);
        if (error != CFOIL_OK) {
            return error;
        }
        rules->header_count++;
    }
    sort_headers(rules);
    return CFOIL_OK;
}

static enum cfoil_error name_version(struct cfoil_rules *rules,
                                     const struct cfoil_pointer *pointers, size_t count)
{
    struct cfoil_digester *digester = NULL;
    struct cfoil_sink sink = {0};
    uint8_t digest[CFOIL_DIGEST_BYTES];
    enum cfoil_error error = cfoil_digester_create(&digester);
    if (error == CFOIL_OK) {
        error = cfoil_sink_create(&sink, digester);
    }
    if (error != CFOIL_OK) {
        goto out;
    }

    const uint8_t form[2] = {CANONICAL_FORM_VERSION, rules->query ? 1 : 0};
    cfoil_sink_begin(&sink, digester, CFOIL_TAG_RULES);
    cfoil_sink_frame(&sink, CFOIL_TAG_RULES_QUERY, cfoil_bytes_of(form, sizeof(form)));
    for (size_t i = 0; i < count; i++) {
        bool ignore = pointers[i].flag == CFOIL_PLACE_IGNORE;
        cfoil_sink_frame(&sink, ignore ? CFOIL_TAG_IGNORE : CFOIL_TAG_UNORDERED,
                         cfoil_bytes_of(pointers[i].text, pointers[i].len));
    }
    for (size_t i = 0; i < rules->header_count; i++) {
        cfoil_sink_frame(&sink, CFOIL_TAG_HEADER_NAME, cfoil_bytes_text(rules->headers[i]));
    }
    cfoil_sink_flush(&sink);
    error = cfoil_digest_end(digester, digest);
    for (int i = 0; error == CFOIL_OK && i < 8; i++) {
        rules->version = rules->version << 8 | digest[i];
    }

out:
    cfoil_sink_free(&sink);
    cfoil_digester_free(digester);
    return error;
}

static enum cfoil_error compile(struct cfoil_rules *rules, const struct cfoil_rules_source *source,
                                struct cfoil_pointer *pointers, struct problem problem)
{
    enum cfoil_error error =
        collect(source->ignore, source->ignore_count, CFOIL_PLACE_IGNORE, pointers, problem);
    if (error != CFOIL_OK) {
        return error;
    }
    error = collect(source->unordered, source->unordered_count, CFOIL_PLACE_UNORDERED,
                    pointers + source->ignore_count, problem);
    if (error != CFOIL_OK) {
        return error;
    }
    size_t count = source->ignore_count + source->unordered_count;
    if (count > 0) {
        qsort(pointers, count, sizeof(*pointers), order_pointers);
    }
    count = drop_repeated_pointers(pointers, count);
    error = cfoil_places_build(rules, pointers, count);
    if (error != CFOIL_OK) {
        return error;
    }
    error = compile_headers(rules, source, problem);
    if (error != CFOIL_OK) {
        return error;
    }
    return name_version(rules, pointers, count);
}

enum cfoil_error cfoil_rules_create(const struct cfoil_rules_source *source,
                                    struct cfoil_rules **rules, char *problem, size_t problem_bytes)
{
    explain(problem, problem_bytes, "%s", "");
    if (source->ignore_count > CFOIL_RULES_POINTERS_MAX ||
        source->unordered_count > CFOIL_RULES_POINTERS_MAX) {
        explain(problem, problem_bytes, "at most %d pointers are allowed in one list",
                CFOIL_RULES_POINTERS_MAX);
        return CFOIL_E_LIMIT;
    }
    if (source->header_count > CFOIL_RULES_HEADERS_MAX) {
        explain(problem, problem_bytes, "at most %d headers are allowed", CFOIL_RULES_HEADERS_MAX);
        return CFOIL_E_LIMIT;
    }

    size_t count = source->ignore_count + source->unordered_count;
    struct cfoil_rules *made = calloc(1, sizeof(*made));
    struct cfoil_pointer *pointers = calloc(count + 1, sizeof(*pointers));
    enum cfoil_error error = CFOIL_E_NO_MEMORY;
    if (made != NULL && pointers != NULL) {
        made->query = source->query;
        error = compile(made, source, pointers, (struct problem){problem, problem_bytes});
    }
    free(pointers);
    if (error != CFOIL_OK) {
        cfoil_rules_free(made);
        return error;
    }
    *rules = made;
    return CFOIL_OK;
}

void cfoil_rules_free(struct cfoil_rules *rules)
{
    if (rules == NULL) {
        return;
    }
    for (size_t i = 0; i < rules->header_count; i++) {
        free(rules->headers[i]);
    }
    free(rules->headers);
    free(rules->places);
    free(rules->edges);
    free(rules->tokens);
    free(rules);
}

uint64_t cfoil_rules_version(const struct cfoil_rules *rules)
{
    return rules->version;
}

size_t cfoil_rules_header_count(const struct cfoil_rules *rules)
{
    return rules->header_count;
}

const char *cfoil_rules_header(const struct cfoil_rules *rules, size_t index)
{
    return index < rules->header_count ? rules->headers[index] : NULL;
}
