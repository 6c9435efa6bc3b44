/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the JSON reader and the canonical form. The first byte chooses rules and the
 * cut of the body, the rest is the body. Checked besides crashes: the cut changes nothing; and a
 * text from which ignored values were cut out has the same canonical form, and the same cuts; where
 * no rule could apply to it twice, a canonical text is its own canonical text, and another reader of
 * JSON, jansson, finds the same in it as in the body.
 */
#include <jansson.h>
#include <stdlib.h>

#include "fingerprint/fingerprint.h"
#include "fingerprint/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct cfoil_rules *make_rules(bool pointers)
{
    static const char *const ignore[] = {"/a", "/*/0", "/b/*/c", "/*/*/~0"};
    static const char *const unordered[] = {"", "/*", "/b/*", "/*/*/*"};
    struct cfoil_rules_source source = {.query = true};
    struct cfoil_rules *rules = NULL;
    if (pointers) {
        source.ignore = ignore;
        source.ignore_count = 4;
        source.unordered = unordered;
        source.unordered_count = 4;
    }
    if (cfoil_rules_create(&source, &rules, NULL, 0) != CFOIL_OK) {
        abort();
    }
    return rules;
}

static struct cfoil_fingerprint fingerprint(const struct cfoil_rules *rules, const uint8_t *body,
                                            size_t bytes, size_t piece)
{
    const struct cfoil_request_view request = {.method = cfoil_bytes_text("POST"),
                                               .path = cfoil_bytes_text("/"),
                                               .content_type =
                                                   cfoil_bytes_text("application/json")};
    static struct cfoil_fingerprinter *fingerprinter;
    struct cfoil_fingerprint print;
    if (fingerprinter == NULL && cfoil_fingerprinter_create(&fingerprinter) != CFOIL_OK) {
        abort();
    }
    cfoil_fingerprint_begin(fingerprinter, rules, &request);
    for (size_t sent = 0; sent < bytes; sent += piece) {
        cfoil_fingerprint_body(fingerprinter, body + sent,
                               bytes - sent < piece ? bytes - sent : piece);
    }
    if (cfoil_fingerprint_end(fingerprinter, &print, NULL) != CFOIL_OK) {
        abort();
    }
    return print;
}

/* jansson reads every number as a double, so it may refuse a body that we do not, never the reverse. */
static json_t *read_by_other(struct cfoil_bytes text)
{
    return json_loadb(
        (const char *)text.data, text.len,
        JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
}

static void check_meaning(struct cfoil_bytes body, struct cfoil_bytes canonical)
{
    json_t *said = read_by_other(body);
    if (said == NULL) {
        return;
    }
    json_t *written = read_by_other(canonical);
    if (written == NULL || json_equal(said, written) != 1) {
        abort();
    }
    json_decref(said);
    json_decref(written);
}

static void check_canonical(const struct cfoil_rules *rules, struct cfoil_bytes body)
{
    uint8_t *once = NULL;
    uint8_t *twice = NULL;
    size_t once_bytes = 0;
    size_t twice_bytes = 0;
    if (cfoil_json_canonical(rules, body, &once, &once_bytes, NULL) != CFOIL_OK) {
        return;
    }
    if (cfoil_json_canonical(rules, cfoil_bytes_of(once, once_bytes), &twice, &twice_bytes, NULL) !=
            CFOIL_OK ||
        once_bytes != twice_bytes || memcmp(once, twice, once_bytes) != 0) {
        abort();
    }
    check_meaning(body, cfoil_bytes_of(once, once_bytes));
    free(once);
    free(twice);
}

/* Whether both texts have one canonical form. Abort: one has none. */
static void check_same_form(const struct cfoil_rules *rules, struct cfoil_bytes a,
                            struct cfoil_bytes b)
{
    uint8_t *one = NULL;
    uint8_t *other = NULL;
    size_t one_bytes = 0;
    size_t other_bytes = 0;
    if (cfoil_json_canonical(rules, a, &one, &one_bytes, NULL) != CFOIL_OK ||
        cfoil_json_canonical(rules, b, &other, &other_bytes, NULL) != CFOIL_OK ||
        one_bytes != other_bytes || memcmp(one, other, one_bytes) != 0) {
        abort();
    }
    free(one);
    free(other);
}

static void check_redacted(const struct cfoil_rules *rules, struct cfoil_bytes body)
{
    static struct cfoil_redactor *redactor;
    size_t cuts = 0;
    size_t again = 0;
    size_t len = 0;
    if (redactor == NULL && cfoil_redactor_create(&redactor) != CFOIL_OK) {
        abort();
    }
    if (cfoil_redactor_read(redactor, rules, body, &cuts, &len) != CFOIL_OK) {
        return;
    }
    uint8_t *text = malloc(len + 1);
    if (text == NULL) {
        abort();
    }
    cfoil_redactor_write(redactor, body, text);
    struct cfoil_bytes redacted = cfoil_bytes_of(text, len);
    check_same_form(rules, body, redacted);
    if (cfoil_redactor_read(redactor, rules, redacted, &again, &len) != CFOIL_OK || again != cuts ||
        len != redacted.len) {
        abort();
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct cfoil_rules *rules[2];
    if (bytes == 0) {
        return 0;
    }
    if (rules[0] == NULL) {
        rules[0] = make_rules(false);
        rules[1] = make_rules(true);
    }
    const struct cfoil_rules *chosen = rules[data[0] & 1];
    size_t piece = 1 + (data[0] >> 1);
    struct cfoil_fingerprint whole = fingerprint(chosen, data + 1, bytes - 1, bytes);
    struct cfoil_fingerprint cut = fingerprint(chosen, data + 1, bytes - 1, piece);
    if (memcmp(&whole, &cut, sizeof(whole)) != 0) {
        abort();
    }
    if (chosen == rules[0]) {
        check_canonical(chosen, cfoil_bytes_of(data + 1, bytes - 1));
    }
    check_redacted(chosen, cfoil_bytes_of(data + 1, bytes - 1));
    return 0;
}
