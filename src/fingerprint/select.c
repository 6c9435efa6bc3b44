/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the tree of json.h from the root, one token at a time. See select.h. */
#include "fingerprint/select.h"

#include <stdlib.h>

#include "fingerprint/json.h"

#define NO_NODE UINT32_MAX

struct cfoil_selector {
    struct cfoil_json json;
    struct cfoil_rules *rules; /* none: every value is seen, in arrays in its order */
    bool has_document;
};

enum cfoil_error cfoil_selector_create(struct cfoil_selector **selector)
{
    struct cfoil_rules_source nothing = {0};
    struct cfoil_selector *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    enum cfoil_error error = cfoil_rules_create(&nothing, &made->rules, NULL, 0);
    if (error != CFOIL_OK) {
        free(made);
        return error;
    }
    *selector = made;
    return CFOIL_OK;
}

void cfoil_selector_free(struct cfoil_selector *selector)
{
    if (selector == NULL) {
        return;
    }
    cfoil_json_free(&selector->json);
    cfoil_rules_free(selector->rules);
    free(selector);
}

static enum cfoil_error read(struct cfoil_json *json, const struct cfoil_rules *rules,
                             struct cfoil_bytes text)
{
    if (text.len > CFOIL_JSON_BYTES_MAX) {
        json->reason = "it is over 8 MiB";
        return CFOIL_E_SYNTAX;
    }
    enum cfoil_error error = cfoil_json_append(json, text.data, text.len);
    return error == CFOIL_OK ? cfoil_json_read(json, rules) : error;
}

enum cfoil_error cfoil_selector_read(struct cfoil_selector *selector, struct cfoil_bytes json,
                                     const char **reason)
{
    cfoil_json_reset(&selector->json);
    enum cfoil_error error = read(&selector->json, selector->rules, json);
    selector->has_document = error == CFOIL_OK;
    if (reason != NULL) {
        *reason = error == CFOIL_E_SYNTAX ? selector->json.reason : NULL;
    }
    return error;
}

/* Takes the next token, up to its "/" or the end. */
static struct cfoil_bytes take_token(const char **pointer)
{
    const char *start = *pointer + 1;
    size_t len = strcspn(start, "/");
    *pointer = start + len;
    return cfoil_bytes_of(start, len);
}

/* Whether an escaped token names this member. */
static bool is_named(struct cfoil_bytes token, const uint8_t *name, size_t name_bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < token.len; i++, at++) {
        uint8_t c = token.data[i];
        if (c == '~' && i + 1 < token.len) {
            c = token.data[++i] == '0' ? '~' : '/';
        }
        if (at == name_bytes || name[at] != c) {
            return false;
        }
    }
    return at == name_bytes;
}

/* The index a token is, or UINT32_MAX: no array has so many elements. */
static uint32_t index_of(struct cfoil_bytes token)
{
    uint64_t index = 0;
    if (token.len == 0 || token.len > 9 || (token.len > 1 && token.data[0] == '0')) {
        return UINT32_MAX;
    }
    for (size_t i = 0; i < token.len; i++) {
        if (token.data[i] < '0' || token.data[i] > '9') {
            return UINT32_MAX;
        }
        index = index * 10 + (uint64_t)(token.data[i] - '0');
    }
    return (uint32_t)index;
}

static uint32_t next_sibling(const struct cfoil_json_node *node)
{
    return (node->flags & CFOIL_JSON_LAST) != 0 ? NO_NODE : node->next;
}

static uint32_t child_at(const struct cfoil_json *json, uint32_t container,
                         struct cfoil_bytes token)
{
    const struct cfoil_json_node *nodes = json->nodes;
    if (nodes[container].kind < CFOIL_JSON_ARRAY || nodes[container].first == 0) {
        return NO_NODE;
    }
    bool object = nodes[container].kind == CFOIL_JSON_OBJECT;
    uint32_t wanted = object ? 0 : index_of(token);
    uint32_t index = 0;
    for (uint32_t at = nodes[container].first; at != NO_NODE; at = next_sibling(&nodes[at])) {
        if (object ? is_named(token, json->text + nodes[at].name_at, nodes[at].name_bytes)
                   : index++ == wanted) {
            return at;
        }
    }
    return NO_NODE;
}

static struct cfoil_value value_of(const struct cfoil_json *json,
                                   const struct cfoil_json_node *node)
{
    static const enum cfoil_value_kind kinds[] = {
        [CFOIL_JSON_NULL] = CFOIL_VALUE_NULL,     [CFOIL_JSON_FALSE] = CFOIL_VALUE_FALSE,
        [CFOIL_JSON_TRUE] = CFOIL_VALUE_TRUE,     [CFOIL_JSON_NUMBER] = CFOIL_VALUE_NUMBER,
        [CFOIL_JSON_STRING] = CFOIL_VALUE_STRING, [CFOIL_JSON_ARRAY] = CFOIL_VALUE_ARRAY,
        [CFOIL_JSON_OBJECT] = CFOIL_VALUE_OBJECT,
    };
    struct cfoil_value value = {.kind = kinds[node->kind]};
    if (node->kind < CFOIL_JSON_ARRAY) {
        value.text = cfoil_bytes_of(json->text + node->text_at, node->text_bytes);
    }
    return value;
}

struct cfoil_value cfoil_selector_at(const struct cfoil_selector *selector, const char *pointer)
{
    struct cfoil_value absent = {.kind = CFOIL_VALUE_ABSENT};
    uint32_t at = 0;
    if (!selector->has_document) {
        return absent;
    }
    while (*pointer != '\0') {
        at = child_at(&selector->json, at, take_token(&pointer));
        if (at == NO_NODE) {
            return absent;
        }
    }
    return value_of(&selector->json, &selector->json.nodes[at]);
}
