/* SPDX-License-Identifier: Apache-2.0 */
/* How tenants are told apart: the rule made of its fields, and said in a sentence. See policy.h. */
#include <stdio.h>

#include "policy/compile.h"
#include "policy/pattern.h"

/* Where a tenant may stand in a request. */
static const struct {
    enum cfoil_field field;
    enum cfoil_tenant_source source;
    const char *what;
} sources[] = {
    {CFOIL_FIELD_TENANT_HEADER, CFOIL_TENANT_FROM_HEADER, "header"},
    {CFOIL_FIELD_TENANT_COOKIE, CFOIL_TENANT_FROM_COOKIE, "cookie"},
    {CFOIL_FIELD_TENANT_QUERY, CFOIL_TENANT_FROM_QUERY, "query argument"},
    {CFOIL_FIELD_TENANT_PATH, CFOIL_TENANT_FROM_PATH, "path parameter"},
    {CFOIL_FIELD_TENANT_VARIABLE, CFOIL_TENANT_FROM_VARIABLE, "variable"},
};

#define SOURCE_COUNT (sizeof(sources) / sizeof(sources[0]))

/* The order of the values in fields.def: authorization, none. */
static enum cfoil_tenant_source without_name(int64_t number)
{
    return number == 0 ? CFOIL_TENANT_FROM_AUTHORIZATION : CFOIL_TENANT_FROM_NONE;
}

/* The place that counts, or SOURCE_COUNT. */
static size_t named_source(const struct cfoil_compile *compile)
{
    size_t found = 0;
    while (found < SOURCE_COUNT && compile->merged.at[sources[found].field] == NULL) {
        found++;
    }
    return found;
}

static void check_pattern(const struct cfoil_compile *compile, const struct cfoil_node *node,
                          const struct cfoil_node *match)
{
    if (!cfoil_pattern_has(match->pattern, cfoil_bytes_text(node->text))) {
        cfoil_problem_add(compile->problems, node->line, node->column,
                          "tenant.path: `%.100s` has no parameter {%.60s}; every pattern of the "
                          "route must have it, for a tenant must not be missing",
                          match->text, node->text);
    }
}

static void check_path(const struct cfoil_compile *compile)
{
    const struct cfoil_node *node = compile->merged.at[CFOIL_FIELD_TENANT_PATH];
    const struct cfoil_node *match = compile->merged.at[CFOIL_FIELD_MATCH];
    if (match == NULL) {
        return;
    }
    if (match->kind == CFOIL_NODE_SCALAR) {
        check_pattern(compile, node, match);
        return;
    }
    for (const struct cfoil_node *item = match->first; item != NULL; item = item->next) {
        check_pattern(compile, node, item);
    }
}

/* Without any `tenant` a policy tells tenants apart as `serve` without a policy does. */
void cfoil_tenant_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    const struct cfoil_node *node = compile->merged.at[CFOIL_FIELD_TENANT];
    struct cfoil_tenant_rule *tenant = &route->tenant;
    tenant->otherwise = CFOIL_TENANT_FROM_NONE;
    if (node == NULL || node->kind == CFOIL_NODE_SCALAR) {
        tenant->source = without_name(node != NULL ? node->number : 0);
        return;
    }

    cfoil_one_source_check(compile, cfoil_node_member(compile->defaults_node, CFOIL_FIELD_TENANT));
    cfoil_one_source_check(compile, node);
    size_t found = named_source(compile);
    if (found == SOURCE_COUNT) {
        cfoil_problem_add(compile->problems, node->line, node->column,
                          "tenant: says not where tenants come from; write {header: NAME, "
                          "otherwise: authorization}, or authorization, or none");
        return;
    }
    tenant->source = sources[found].source;
    tenant->name = compile->merged.at[sources[found].field]->text;
    tenant->otherwise =
        without_name(cfoil_merged_number(&compile->merged, CFOIL_FIELD_TENANT_OTHERWISE, 1));
    if (tenant->source == CFOIL_TENANT_FROM_PATH) {
        check_path(compile);
    }
}

void cfoil_tenant_rule_text(const struct cfoil_tenant_rule *rule, char *out, size_t out_bytes)
{
    const char *otherwise = rule->otherwise == CFOIL_TENANT_FROM_AUTHORIZATION
                                ? "authorization, otherwise none"
                                : "none (one anonymous tenant)";
    for (size_t i = 0; i < SOURCE_COUNT; i++) {
        if (rule->source == sources[i].source) {
            (void)snprintf(out, out_bytes, "%s %s, otherwise %s", sources[i].what, rule->name,
                           otherwise);
            return;
        }
    }
    (void)snprintf(out, out_bytes, "%s",
                   rule->source == CFOIL_TENANT_FROM_AUTHORIZATION
                       ? "authorization, otherwise none (one anonymous tenant)"
                       : "none (one anonymous tenant)");
}
