/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a route that are lists: outcome, fingerprint and the probe's places. See compile.h. */
#include <stdio.h>

#include "policy/compile.h"
#include "policy/limits.h"
#include "policy/pattern.h"
#include "policy/texts.h"

static const struct {
    enum cfoil_field field;
    enum cfoil_state state;
} outcomes[] = {
    {CFOIL_FIELD_OUTCOME_SUCCEEDED, CFOIL_STATE_SUCCEEDED},
    {CFOIL_FIELD_OUTCOME_FAILED_FINAL, CFOIL_STATE_FAILED_FINAL},
    {CFOIL_FIELD_OUTCOME_FAILED, CFOIL_STATE_FAILED},
    {CFOIL_FIELD_OUTCOME_IN_DOUBT, CFOIL_STATE_IN_DOUBT},
};

#define OUTCOME_COUNT (sizeof(outcomes) / sizeof(outcomes[0]))

/* The item of an earlier list that names the same status. */
static const struct cfoil_node *named_before(const struct cfoil_compile *compile, size_t lists,
                                             const struct cfoil_node *item)
{
    for (size_t i = 0; i <= lists; i++) {
        const struct cfoil_node *list = compile->merged.at[outcomes[i].field];
        const struct cfoil_node *other = list != NULL ? list->first : NULL;
        for (; other != NULL && other != item; other = other->next) {
            if (other->number == item->number) {
                return other;
            }
        }
        if (other == item && other != NULL) {
            break;
        }
    }
    return NULL;
}

/* A contradiction is shown at the later of the two places: the earlier may be in `defaults`. */
static void twice(struct cfoil_compile *compile, const struct cfoil_node *a,
                  const struct cfoil_node *b)
{
    bool swap = a->line > b->line || (a->line == b->line && a->column > b->column);
    const struct cfoil_node *first = swap ? b : a;
    const struct cfoil_node *second = swap ? a : b;
    char path[96];
    cfoil_problem_add(
        compile->problems, second->line, second->column,
        "%s: %s is named on line %u already, in outcome.%s; one status has one outcome",
        cfoil_field_path(second->field, path, sizeof(path)), second->text, first->line,
        cfoil_field_row(first->field)->name);
}

void cfoil_outcome_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    for (size_t i = 0; i < OUTCOME_COUNT; i++) {
        const struct cfoil_node *list = compile->merged.at[outcomes[i].field];
        const struct cfoil_node *item = list != NULL ? list->first : NULL;
        for (; item != NULL; item = item->next) {
            uint8_t *place = item->number < 0 ? &route->outcome.by_class[-item->number]
                                              : &route->outcome.exact[item->number];
            if (*place != CFOIL_STATE_ABSENT) {
                const struct cfoil_node *other = named_before(compile, i, item);
                twice(compile, other != NULL ? other : item, item);
                continue;
            }
            *place = (uint8_t)outcomes[i].state;
        }
    }
}

/* Whether every pattern of the route has the parameter. */
static bool all_have(const struct cfoil_node *match, struct cfoil_bytes name)
{
    if (match->kind == CFOIL_NODE_SCALAR) {
        return cfoil_pattern_has(match->pattern, name);
    }
    for (const struct cfoil_node *item = match->first; item != NULL; item = item->next) {
        if (!cfoil_pattern_has(item->pattern, name)) {
            return false;
        }
    }
    return true;
}

static bool any_has(const struct cfoil_node *match, struct cfoil_bytes name)
{
    if (match->kind == CFOIL_NODE_SCALAR) {
        return cfoil_pattern_has(match->pattern, name);
    }
    for (const struct cfoil_node *item = match->first; item != NULL; item = item->next) {
        if (cfoil_pattern_has(item->pattern, name)) {
            return true;
        }
    }
    return false;
}

void cfoil_places_check(struct cfoil_compile *compile, const struct cfoil_node *blame,
                        const char *field, const char *path)
{
    const struct cfoil_node *match = compile->merged.at[CFOIL_FIELD_MATCH];
    if (match == NULL) {
        return;
    }
    struct cfoil_bytes key = cfoil_bytes_text("key");
    struct cfoil_bytes before;
    struct cfoil_bytes name;
    size_t offset = 0;
    while (cfoil_placeholder_next(cfoil_bytes_text(path), &offset, &before, &name)) {
        bool is_key = cfoil_bytes_equal(name, key);
        if (is_key && any_has(match, key)) {
            cfoil_problem_add(compile->problems, blame->line, blame->column,
                              "%s: {key} is the idempotency key, but `match` has a "
                              "parameter {key} too; give that another name",
                              field);
        }
        if (!is_key && !all_have(match, name)) {
            cfoil_problem_add(compile->problems, blame->line, blame->column,
                              "%s: {%.*s} is not a parameter of every pattern in "
                              "`match`; use {key} or a parameter all of them have",
                              field, (int)name.len, (const char *)name.data);
        }
    }
}

void cfoil_probe_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    if (route->terms.in_doubt != CFOIL_IN_DOUBT_PROBE) {
        return;
    }
    const struct cfoil_node *probe = compile->merged.at[CFOIL_FIELD_PROBE];
    if (probe == NULL) {
        const struct cfoil_node *blame = cfoil_blame(compile, CFOIL_FIELD_IN_DOUBT);
        cfoil_problem_add(compile->problems, blame->line, blame->column,
                          "in_doubt: a mapping needs `probe`, as in {probe: \"GET "
                          "/orders/by-key/{key}\"}; or write hold or retry");
        return;
    }
    route->probe.method = "GET";
    route->probe.path = probe->text + 4;
    cfoil_places_check(compile, probe, "in_doubt.probe", route->probe.path);
}

/* The texts of a list as an array; an absent list is an empty one. */
static enum cfoil_error texts_of(struct cfoil_compile *compile, enum cfoil_field field,
                                 const char *const **texts, size_t *count)
{
    const struct cfoil_node *list = compile->merged.at[field];
    *texts = NULL;
    *count = 0;
    if (list == NULL || list->count == 0) {
        return CFOIL_OK;
    }
    const char **array = cfoil_pool_array(compile->pool, list->count, sizeof(*array));
    if (array == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    for (const struct cfoil_node *item = list->first; item != NULL; item = item->next) {
        array[(*count)++] = item->text;
    }
    *texts = array;
    return CFOIL_OK;
}

enum cfoil_error cfoil_rules_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    struct cfoil_rules_source source = {0};
    source.query = cfoil_merged_number(&compile->merged, CFOIL_FIELD_FINGERPRINT_QUERY, 1) != 0;
    enum cfoil_error error =
        texts_of(compile, CFOIL_FIELD_FINGERPRINT_IGNORE, &source.ignore, &source.ignore_count);
    if (error == CFOIL_OK) {
        error = texts_of(compile, CFOIL_FIELD_FINGERPRINT_UNORDERED, &source.unordered,
                         &source.unordered_count);
    }
    if (error == CFOIL_OK) {
        error = texts_of(compile, CFOIL_FIELD_FINGERPRINT_HEADERS, &source.headers,
                         &source.header_count);
    }
    if (error != CFOIL_OK) {
        return error;
    }

    char why[CFOIL_WHY_BYTES] = "";
    error = cfoil_rules_create(&source, &route->rules, why, sizeof(why));
    if (error == CFOIL_OK || error == CFOIL_E_NO_MEMORY) {
        return error;
    }
    const struct cfoil_node *blame = cfoil_blame(compile, CFOIL_FIELD_FINGERPRINT);
    cfoil_problem_add(compile->problems, blame->line, blame->column, "fingerprint: %s", why);
    return CFOIL_OK;
}
