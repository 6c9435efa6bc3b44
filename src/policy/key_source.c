/* SPDX-License-Identifier: Apache-2.0 */
/* Where a route's key stands, and what it must be like. See compile.h. */
#include <strings.h>

#include "policy/compile.h"
#include "policy/profiles.h"

void cfoil_one_source_check(struct cfoil_compile *compile, const struct cfoil_node *mapping)
{
    const struct cfoil_node *found = NULL;
    const struct cfoil_node *member =
        mapping != NULL && mapping->kind == CFOIL_NODE_MAPPING ? mapping->first : NULL;
    for (; member != NULL; member = member->next) {
        if (!cfoil_field_is_source(member->field)) {
            continue;
        }
        if (found != NULL) {
            const char *of = cfoil_field_row(cfoil_field_row(found->field)->parent)->name;
            cfoil_problem_add(
                compile->problems, member->key_line, member->key_column,
                "%s: has both %s and %s; a %s stands in one place, remove one of them", of,
                cfoil_field_row(found->field)->name, cfoil_field_row(member->field)->name, of);
            return;
        }
        found = member;
    }
}

static void check_tenant_header(struct cfoil_compile *compile, const struct cfoil_route *route)
{
    bool same = route->key_query == NULL && route->tenant.source == CFOIL_TENANT_FROM_HEADER &&
                route->tenant.name != NULL &&
                strcasecmp(route->tenant.name, route->key_header) == 0;
    if (same) {
        const struct cfoil_node *blame = cfoil_blame(compile, CFOIL_FIELD_KEY_HEADER);
        cfoil_problem_add(compile->problems, blame->line, blame->column,
                          "key.header: %.60s is the tenant's header too; one header cannot be both",
                          route->key_header);
    }
}

static void check_tenant_argument(struct cfoil_compile *compile, const struct cfoil_route *route)
{
    bool same = route->key_query != NULL && route->tenant.source == CFOIL_TENANT_FROM_QUERY &&
                route->tenant.name != NULL && strcmp(route->tenant.name, route->key_query) == 0;
    if (same) {
        const struct cfoil_node *blame = cfoil_blame(compile, CFOIL_FIELD_KEY_QUERY);
        cfoil_problem_add(compile->problems, blame->line, blame->column,
                          "key.query: %.60s is the tenant's argument too; one argument cannot be "
                          "both",
                          route->key_query);
    }
}

void cfoil_key_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    const struct cfoil_profile_row *profile = cfoil_profile_row(route->profile);
    const struct cfoil_merged *merged = &compile->merged;
    const struct cfoil_node *header = merged->at[CFOIL_FIELD_KEY_HEADER];
    const struct cfoil_node *query = merged->at[CFOIL_FIELD_KEY_QUERY];

    cfoil_one_source_check(compile, cfoil_node_member(compile->defaults_node, CFOIL_FIELD_KEY));
    cfoil_one_source_check(compile, cfoil_node_member(compile->node, CFOIL_FIELD_KEY));
    route->key_header = header != NULL ? header->text : CFOIL_KEY_HEADER_DEFAULT;
    route->key_query = query != NULL ? query->text : NULL;
    route->key_required =
        cfoil_merged_number(merged, CFOIL_FIELD_KEY_REQUIRED, profile->key_required) != 0;
    route->key_format = (enum cfoil_key_format)cfoil_merged_number(merged, CFOIL_FIELD_KEY_FORMAT,
                                                                   profile->key_format);
    check_tenant_header(compile, route);
    check_tenant_argument(compile, route);
}
