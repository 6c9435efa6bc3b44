/* SPDX-License-Identifier: Apache-2.0 */
/* See schema.h. The recursion is as deep as fields.def, not as the file. */
#include "policy/schema.h"

#include <stdio.h>

#include "policy/limits.h"
#include "policy/scalar.h"

struct check {
    struct cfoil_pool *pool;
    struct cfoil_policy_problems *problems;
    bool no_memory;
};

static void check_value(struct check *check, struct cfoil_node *node, enum cfoil_field field);

/* `defaults` has the fields of a route except those that tell one route from another. */
static bool belongs(enum cfoil_field owner, enum cfoil_field field)
{
    bool identity = field == CFOIL_FIELD_NAME || field == CFOIL_FIELD_MATCH;
    return cfoil_field_row(field)->parent == cfoil_field_members(owner) &&
           field != CFOIL_FIELD_ROOT && !(owner == CFOIL_FIELD_DEFAULTS && identity);
}

static enum cfoil_field field_by_name(enum cfoil_field owner, const char *name)
{
    for (int i = 1; i < CFOIL_FIELD_COUNT; i++) {
        enum cfoil_field field = (enum cfoil_field)i;
        if (belongs(owner, field) && strcmp(cfoil_field_row(field)->name, name) == 0) {
            return field;
        }
    }
    return CFOIL_FIELD_COUNT;
}

/* Which names there are, where they are not to be guessed. */
static const char *names_of(enum cfoil_field owner)
{
    if (owner == CFOIL_FIELD_MESSAGES) {
        return "; the languages are zh-CN and en, and there is on_replay";
    }
    bool codes = owner == CFOIL_FIELD_MESSAGES_EN || owner == CFOIL_FIELD_MESSAGES_ZH_CN;
    return codes ? "; write a code of docs/reference/answers.md, or REPLAY" : "";
}

/* What a person may have meant: a name alike at this place, or the same name at another. */
static void explain_unknown(struct check *check, const struct cfoil_node *member,
                            enum cfoil_field owner)
{
    const char *names[CFOIL_FIELD_COUNT];
    size_t count = 0;
    enum cfoil_field elsewhere = CFOIL_FIELD_COUNT;
    for (int i = 1; i < CFOIL_FIELD_COUNT; i++) {
        enum cfoil_field field = (enum cfoil_field)i;
        if (belongs(owner, field)) {
            names[count++] = cfoil_field_row(field)->name;
        }
        if (elsewhere == CFOIL_FIELD_COUNT &&
            strcmp(cfoil_field_row(field)->name, member->key) == 0) {
            elsewhere = field;
        }
    }

    char path[96];
    char text[160] = "";
    const char *near = cfoil_nearest(member->key, names, count);
    if (near != NULL) {
        (void)snprintf(text, sizeof(text), "; did you mean `%s`?", near);
    } else if (elsewhere != CFOIL_FIELD_COUNT) {
        bool in_routes = cfoil_field_row(elsewhere)->parent == CFOIL_FIELD_ROUTES;
        (void)snprintf(text, sizeof(text), "; did you mean `%s`%s?",
                       cfoil_field_path(elsewhere, path, sizeof(path)),
                       in_routes ? " of a route" : "");
    }

    if (text[0] == '\0') {
        (void)snprintf(text, sizeof(text), "%s", names_of(owner));
    }

    const char *place = owner == CFOIL_FIELD_ROOT ? "the policy" : "";
    place = owner == CFOIL_FIELD_ROUTES ? "a route" : place;
    place = place[0] == '\0' ? cfoil_field_path(owner, path, sizeof(path)) : place;
    cfoil_problem_add(check->problems, member->key_line, member->key_column,
                      "unknown field `%.60s` in %s%s", member->key, place, text);
}

static void check_members(struct check *check, struct cfoil_node *mapping, enum cfoil_field owner)
{
    for (struct cfoil_node *member = mapping->first; member != NULL; member = member->next) {
        enum cfoil_field field = field_by_name(owner, member->key);
        member->field = field;
        if (field == CFOIL_FIELD_COUNT) {
            explain_unknown(check, member, owner);
            continue;
        }

        size_t before = check->problems->count;
        if (!cfoil_field_row(field)->available) {
            char path[96];
            cfoil_problem_add(check->problems, member->key_line, member->key_column,
                              "`%s` is not available in this version; remove it",
                              cfoil_field_path(field, path, sizeof(path)));
        }
        check_value(check, member, field);
        member->faulty = check->problems->count > before;
    }
}

static void check_scalar(struct check *check, struct cfoil_node *node, enum cfoil_field field)
{
    char why[CFOIL_WHY_BYTES];
    char path[96];
    node->field = field;
    if (cfoil_node_is_null(node)) {
        cfoil_problem_add(check->problems, node->line, node->column,
                          "%s: a value is missing; give one or remove it",
                          cfoil_field_path(field, path, sizeof(path)));
        return;
    }
    if (cfoil_scalar_read(check->pool, node, field, why)) {
        return;
    }
    if (why[0] == '\0') {
        check->no_memory = true;
        return;
    }
    cfoil_problem_add(check->problems, node->line, node->column, "%s: %s",
                      cfoil_field_path(field, path, sizeof(path)), why);
}

static void explain_shape(struct check *check, const struct cfoil_node *node,
                          enum cfoil_field field)
{
    static const char *const kinds[] = {"a single value", "a list", "a mapping"};
    unsigned shapes = cfoil_field_row(field)->shapes;
    const char *wanted = "";
    if ((shapes & (CFOIL_SHAPE_MAP | CFOIL_SHAPE_OPEN)) != 0) {
        wanted = "a mapping, as in {name: value}";
    }
    if ((shapes & CFOIL_SHAPE_MAPS) != 0) {
        wanted = "a list of mappings, each begun with `- `";
    }
    if ((shapes & CFOIL_SHAPE_LIST) != 0) {
        wanted = "a list, as in [one, two]";
    }
    if ((shapes & CFOIL_SHAPE_ONE) != 0) {
        wanted = shapes == CFOIL_SHAPE_ONE ? "a single value" : wanted;
        wanted = shapes == (CFOIL_SHAPE_ONE | CFOIL_SHAPE_LIST) ? "a value or a list" : wanted;
        wanted = shapes == (CFOIL_SHAPE_ONE | CFOIL_SHAPE_MAP) ? "a value or a mapping" : wanted;
    }
    char path[96];
    bool empty = node->kind == CFOIL_NODE_MAPPING && node->count == 0;
    cfoil_problem_add(check->problems, node->line, node->column, "%s: takes %s, not %s",
                      cfoil_field_path(field, path, sizeof(path)), wanted,
                      empty ? "an empty mapping" : kinds[node->kind]);
}

static void check_items(struct check *check, struct cfoil_node *list, enum cfoil_field field)
{
    unsigned shapes = cfoil_field_row(field)->shapes;
    size_t max = field == CFOIL_FIELD_ROUTES ? CFOIL_POLICY_ROUTES_MAX : CFOIL_LIST_ITEMS_MAX;
    max = field == CFOIL_FIELD_MATCH ? CFOIL_MATCHES_MAX : max;
    char path[96];
    if (list->count > max) {
        cfoil_problem_add(check->problems, list->line, list->column,
                          "%s: a list of %zu; the limit is %zu",
                          cfoil_field_path(field, path, sizeof(path)), list->count, max);
        return;
    }

    for (struct cfoil_node *item = list->first; item != NULL; item = item->next) {
        item->field = field;
        if (item->kind == CFOIL_NODE_SCALAR && (shapes & CFOIL_SHAPE_LIST) != 0) {
            check_scalar(check, item, field);
            continue;
        }
        if (item->kind == CFOIL_NODE_MAPPING && (shapes & CFOIL_SHAPE_MAPS) != 0) {
            size_t before = check->problems->count;
            check_members(check, item, field);
            item->faulty = check->problems->count > before;
            continue;
        }
        cfoil_problem_add(check->problems, item->line, item->column, "%s: each item must be %s",
                          cfoil_field_path(field, path, sizeof(path)),
                          (shapes & CFOIL_SHAPE_LIST) != 0 ? "a single value" : "a mapping");
    }
}

static void check_value(struct check *check, struct cfoil_node *node, enum cfoil_field field)
{
    unsigned shapes = cfoil_field_row(field)->shapes;
    node->field = field;
    if (node->kind == CFOIL_NODE_SCALAR &&
        ((shapes & CFOIL_SHAPE_ONE) != 0 || cfoil_node_is_null(node))) {
        check_scalar(check, node, field);
        return;
    }
    if (node->kind == CFOIL_NODE_LIST && (shapes & (CFOIL_SHAPE_LIST | CFOIL_SHAPE_MAPS)) != 0) {
        check_items(check, node, field);
        return;
    }
    if (node->kind == CFOIL_NODE_MAPPING && (shapes & CFOIL_SHAPE_MAP) != 0) {
        if (node->count == 0 && (shapes & CFOIL_SHAPE_ONE) != 0) {
            explain_shape(check, node, field);
        }
        check_members(check, node, field);
        return;
    }
    if (node->kind == CFOIL_NODE_MAPPING && (shapes & CFOIL_SHAPE_OPEN) != 0) {
        return;
    }
    explain_shape(check, node, field);
}

enum cfoil_error cfoil_schema_check(struct cfoil_pool *pool, struct cfoil_node *root,
                                    struct cfoil_policy_problems *problems)
{
    struct check check = {.pool = pool, .problems = problems};
    check_members(&check, root, CFOIL_FIELD_ROOT);
    return check.no_memory ? CFOIL_E_NO_MEMORY : CFOIL_OK;
}
