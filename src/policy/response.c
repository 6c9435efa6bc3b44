/* SPDX-License-Identifier: Apache-2.0 */
/* The rules applied, and made of their fields. See response.h and compile.h. */
#include "policy/response.h"

#include "policy/compile.h"
#include "policy/scalar.h"

enum cfoil_state cfoil_body_outcome(const struct cfoil_body_rule *rule, uint16_t status,
                                    struct cfoil_value value)
{
    if (value.kind == CFOIL_VALUE_ABSENT && (status == 502 || status == 504)) {
        return CFOIL_STATE_ABSENT;
    }
    for (size_t i = 0; i < rule->value_count; i++) {
        const struct cfoil_body_value *listed = &rule->values[i];
        if (listed->kind == value.kind && cfoil_bytes_equal(listed->text, value.text)) {
            return listed->outcome;
        }
    }
    return rule->otherwise;
}

struct cfoil_resource cfoil_resource_of(const struct cfoil_resource_rule *rule,
                                        struct cfoil_value value)
{
    struct cfoil_resource resource = {.type = cfoil_bytes_text(rule->type), .id = value.text};
    bool names_one = (value.kind == CFOIL_VALUE_STRING || value.kind == CFOIL_VALUE_NUMBER) &&
                     value.text.len > 0 && value.text.len <= CFOIL_RESOURCE_ID_BYTES_MAX;
    return names_one ? resource : (struct cfoil_resource){0};
}

static const struct {
    enum cfoil_field field;
    enum cfoil_state outcome;
} lists[] = {
    {CFOIL_FIELD_OUTCOME_BODY_SUCCEEDED, CFOIL_STATE_SUCCEEDED},
    {CFOIL_FIELD_OUTCOME_BODY_FAILED_FINAL, CFOIL_STATE_FAILED_FINAL},
    {CFOIL_FIELD_OUTCOME_BODY_FAILED, CFOIL_STATE_FAILED},
    {CFOIL_FIELD_OUTCOME_BODY_IN_DOUBT, CFOIL_STATE_IN_DOUBT},
};

#define LIST_COUNT (sizeof(lists) / sizeof(lists[0]))

/* The order of the values in fields.def. */
static const enum cfoil_state otherwise_states[] = {CFOIL_STATE_SUCCEEDED, CFOIL_STATE_FAILED_FINAL,
                                                    CFOIL_STATE_FAILED, CFOIL_STATE_IN_DOUBT};

static bool looks_like_a_number(const char *text)
{
    return text[0] == '-' || text[0] == '+' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
}

/*
 * A plain item means what it would mean in JSON, and text otherwise; a quoted one is text. False: a
 * problem was added.
 */
static bool read_item(struct cfoil_compile *compile, struct cfoil_selector *selector,
                      const struct cfoil_node *item, struct cfoil_value *value)
{
    *value = (struct cfoil_value){CFOIL_VALUE_STRING, cfoil_bytes_of(item->text, item->len)};
    if (item->quoted || cfoil_selector_read(selector, value->text, NULL) != CFOIL_OK) {
        if (item->quoted || !looks_like_a_number(item->text)) {
            return true;
        }
        cfoil_problem_add(compile->problems, item->line, item->column,
                          "outcome.body: %.60s is not a number as JSON writes it; write it as the "
                          "body has it, or in quotes if it is text there",
                          item->text);
        return false;
    }
    *value = cfoil_selector_at(selector, "");
    return true;
}

struct taking {
    struct cfoil_compile *compile;
    struct cfoil_selector *selector;
    struct cfoil_body_value *values;
    const struct cfoil_node **items; /* that gave them */
    size_t count;
};

/* The item that gave this value before, or NULL. */
static const struct cfoil_node *given_by(const struct taking *taking, struct cfoil_value value)
{
    for (size_t i = 0; i < taking->count; i++) {
        const struct cfoil_body_value *listed = &taking->values[i];
        if (listed->kind == value.kind && cfoil_bytes_equal(listed->text, value.text)) {
            return taking->items[i];
        }
    }
    return NULL;
}

/* A contradiction is shown at the later of the two places: the earlier may be in `defaults`. */
static void twice(const struct taking *taking, const struct cfoil_node *a,
                  const struct cfoil_node *b)
{
    bool swap = a->line > b->line || (a->line == b->line && a->column > b->column);
    const struct cfoil_node *first = swap ? b : a;
    const struct cfoil_node *second = swap ? a : b;
    cfoil_problem_add(taking->compile->problems, second->line, second->column,
                      "outcome.body: %.60s is listed on line %u already, in %s; one value has one "
                      "outcome",
                      second->text, first->line, cfoil_field_row(first->field)->name);
}

static enum cfoil_error take_item(struct taking *taking, const struct cfoil_node *item,
                                  enum cfoil_state outcome)
{
    struct cfoil_value value;
    if (!read_item(taking->compile, taking->selector, item, &value)) {
        return CFOIL_OK;
    }
    const struct cfoil_node *before = given_by(taking, value);
    if (before != NULL) {
        twice(taking, before, item);
        return CFOIL_OK;
    }
    char *text =
        cfoil_pool_text(taking->compile->pool, (const char *)value.text.data, value.text.len);
    if (text == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    taking->items[taking->count] = item;
    taking->values[taking->count++] =
        (struct cfoil_body_value){value.kind, cfoil_bytes_of(text, value.text.len), outcome};
    return CFOIL_OK;
}

static enum cfoil_error take_lists(struct taking *taking)
{
    for (size_t i = 0; i < LIST_COUNT; i++) {
        const struct cfoil_node *list = taking->compile->merged.at[lists[i].field];
        const struct cfoil_node *item = list != NULL ? list->first : NULL;
        for (; item != NULL; item = item->next) {
            enum cfoil_error error = take_item(taking, item, lists[i].outcome);
            if (error != CFOIL_OK) {
                return error;
            }
        }
    }
    return CFOIL_OK;
}

static size_t count_items(const struct cfoil_compile *compile)
{
    size_t count = 0;
    for (size_t i = 0; i < LIST_COUNT; i++) {
        const struct cfoil_node *list = compile->merged.at[lists[i].field];
        count += list != NULL ? list->count : 0;
    }
    return count;
}

/* Room for `count` values. Error: NO_MEMORY; no room where they are too many. */
static enum cfoil_error make_room(struct taking *taking, size_t count)
{
    struct cfoil_compile *compile = taking->compile;
    if (count > CFOIL_BODY_VALUES_MAX) {
        const struct cfoil_node *blame = cfoil_blame(compile, CFOIL_FIELD_OUTCOME_BODY);
        cfoil_problem_add(compile->problems, blame->line, blame->column,
                          "outcome.body: lists %zu values, at most %d are allowed; leave those to "
                          "`otherwise` that mean the same",
                          count, CFOIL_BODY_VALUES_MAX);
        return CFOIL_OK;
    }
    taking->values = cfoil_pool_array(compile->pool, count + 1, sizeof(*taking->values));
    taking->items = cfoil_pool_array(compile->pool, count + 1, sizeof(struct cfoil_node *));
    return taking->values != NULL && taking->items != NULL ? CFOIL_OK : CFOIL_E_NO_MEMORY;
}

/* Whether the field's pointer names one value; else a problem was added. */
static bool is_single(struct cfoil_compile *compile, enum cfoil_field field)
{
    const struct cfoil_node *node = compile->merged.at[field];
    char path[96];
    for (const char *at = node->text; (at = strstr(at, "/*")) != NULL; at += 2) {
        if (at[2] == '/' || at[2] == '\0') {
            cfoil_problem_add(compile->problems, node->line, node->column,
                              "%s: %.200s has a \"*\", which stands for many values; name one",
                              cfoil_field_path(field, path, sizeof(path)), node->text);
            return false;
        }
    }
    return true;
}

static enum cfoil_error compile_values(struct cfoil_compile *compile, size_t count,
                                       struct cfoil_body_rule *rule)
{
    struct taking taking = {.compile = compile};
    enum cfoil_error error = make_room(&taking, count);
    if (error != CFOIL_OK || taking.values == NULL) {
        return error;
    }
    error = cfoil_selector_create(&taking.selector);
    if (error == CFOIL_OK) {
        error = take_lists(&taking);
    }
    cfoil_selector_free(taking.selector);
    rule->values = taking.values;
    rule->value_count = taking.count;
    return error;
}

enum cfoil_error cfoil_body_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    const struct cfoil_node *node = compile->merged.at[CFOIL_FIELD_OUTCOME_BODY];
    const struct cfoil_node *at = compile->merged.at[CFOIL_FIELD_OUTCOME_BODY_AT];
    const struct cfoil_node *otherwise = compile->merged.at[CFOIL_FIELD_OUTCOME_BODY_OTHERWISE];
    size_t count = count_items(compile);
    if (node == NULL) {
        return CFOIL_OK;
    }
    if (at == NULL) {
        cfoil_problem_add(compile->problems, node->line, node->column,
                          "outcome.body: says not where the value stands; add `at`, a JSON pointer "
                          "such as /code");
        return CFOIL_OK;
    }
    if (count == 0 && otherwise == NULL) {
        cfoil_problem_add(
            compile->problems, node->line, node->column,
            "outcome.body: says nothing of any value; list some, or give `otherwise`");
        return CFOIL_OK;
    }
    if (!is_single(compile, CFOIL_FIELD_OUTCOME_BODY_AT)) {
        return CFOIL_OK;
    }
    route->body.at = at->text;
    route->body.otherwise =
        otherwise != NULL ? otherwise_states[otherwise->number] : CFOIL_STATE_ABSENT;
    return compile_values(compile, count, &route->body);
}

void cfoil_resource_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    const struct cfoil_node *node = compile->merged.at[CFOIL_FIELD_RESOURCE];
    const struct cfoil_node *type = compile->merged.at[CFOIL_FIELD_RESOURCE_TYPE];
    const struct cfoil_node *id = compile->merged.at[CFOIL_FIELD_RESOURCE_ID];
    if (node == NULL) {
        return;
    }
    if (type == NULL || id == NULL) {
        cfoil_problem_add(compile->problems, node->line, node->column,
                          "resource: needs type and id; write {type: order, id: /data/order_id}, "
                          "where id is the pointer to it in the response");
        return;
    }
    if (is_single(compile, CFOIL_FIELD_RESOURCE_ID)) {
        route->resource.type = type->text;
        route->resource.id = id->text;
    }
}

enum cfoil_error cfoil_redact_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    const struct cfoil_node *list = compile->merged.at[CFOIL_FIELD_SNAPSHOT_REDACT];
    if (list == NULL || list->count == 0) {
        return CFOIL_OK;
    }
    const char **pointers = cfoil_pool_array(compile->pool, list->count, sizeof(*pointers));
    if (pointers == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    struct cfoil_rules_source source = {.ignore = pointers};
    for (const struct cfoil_node *item = list->first; item != NULL; item = item->next) {
        if (item->len == 0) {
            cfoil_problem_add(compile->problems, item->line, item->column,
                              "snapshot.redact: \"\" is the whole body; to keep none of it write "
                              "snapshot: {max_body: 0}");
            return CFOIL_OK;
        }
        pointers[source.ignore_count++] = item->text;
    }

    char why[CFOIL_WHY_BYTES] = "";
    enum cfoil_error error = cfoil_rules_create(&source, &route->redact, why, sizeof(why));
    if (error == CFOIL_OK || error == CFOIL_E_NO_MEMORY) {
        return error;
    }
    cfoil_problem_add(compile->problems, list->line, list->column, "snapshot.redact: %s", why);
    return CFOIL_OK;
}
