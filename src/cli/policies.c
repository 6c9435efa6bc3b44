/* SPDX-License-Identifier: Apache-2.0 */
/* See policies.h. */
#include "cli/policies.h"

#include "cli/terminal.h"

static void print_problem(FILE *file, const char *path, const struct cfoil_policy_problem *problem)
{
    (void)cfoil_text_print(file, cfoil_bytes_text(path));
    if (problem->line > 0) {
        (void)fprintf(file, ":%u:%u", problem->line, problem->column);
    }
    (void)fputs(": ", file);
    (void)cfoil_text_print(file, cfoil_bytes_text(problem->text));
    (void)fputc('\n', file);
}

enum cfoil_exit cfoil_policy_open(const char *path, FILE *file,
                                  struct cfoil_policy_problems *problems,
                                  struct cfoil_policy **policy)
{
    enum cfoil_error error =
        path != NULL
            ? cfoil_policy_load(path, policy, problems)
            : cfoil_policy_load_text(cfoil_bytes_text(cfoil_policy_default_text), policy, problems);
    if (error == CFOIL_OK) {
        return CFOIL_EXIT_OK;
    }
    for (size_t i = 0; i < problems->count && file != NULL; i++) {
        print_problem(file, path, &problems->item[i]);
    }
    if (problems->count == CFOIL_POLICY_PROBLEMS_MAX && file != NULL) {
        (void)cfoil_text_print(file, cfoil_bytes_text(path));
        (void)fprintf(file, ": there may be more; these are the first %d\n",
                      CFOIL_POLICY_PROBLEMS_MAX);
    }
    if (problems->count == 0) {
        cfoil_complain("%s: %s", path != NULL ? path : "the built-in policy",
                       cfoil_error_text(error));
        return CFOIL_EXIT_SYSTEM;
    }
    return CFOIL_EXIT_USAGE;
}

/* Whether an earlier route has the same rule, so that it is said once. */
static bool said_before(const struct cfoil_policy *policy, size_t index)
{
    const struct cfoil_tenant_rule *rule = &cfoil_policy_route(policy, index)->tenant;
    for (size_t i = 0; i < index; i++) {
        const struct cfoil_tenant_rule *other = &cfoil_policy_route(policy, i)->tenant;
        if (other->source == CFOIL_TENANT_FROM_HEADER &&
            strcasecmp(other->header, rule->header) == 0) {
            return true;
        }
    }
    return false;
}

bool cfoil_policy_advice(const struct cfoil_policy *policy, size_t *from, char *text,
                         size_t text_bytes)
{
    size_t count = cfoil_policy_route_count(policy);
    for (; *from < count; (*from)++) {
        const struct cfoil_route *route = cfoil_policy_route(policy, *from);
        if (route->tenant.source != CFOIL_TENANT_FROM_HEADER || said_before(policy, *from)) {
            continue;
        }
        (void)snprintf(text, text_bytes,
                       "tenants are taken from the header %s as it comes: something in front must "
                       "set it and remove what clients send, or a client can name any tenant",
                       route->tenant.header);
        (*from)++;
        return true;
    }
    return false;
}

static bool same_rule(const struct cfoil_tenant_rule *a, const struct cfoil_tenant_rule *b)
{
    return a->source == b->source && a->otherwise == b->otherwise &&
           (a->header == NULL || b->header == NULL || strcasecmp(a->header, b->header) == 0);
}

void cfoil_policy_tenants(const struct cfoil_policy *policy, char *text, size_t text_bytes)
{
    const struct cfoil_tenant_rule *first = &cfoil_policy_route(policy, 0)->tenant;
    bool same = true;
    for (size_t i = 1; i < cfoil_policy_route_count(policy) && same; i++) {
        same = same_rule(first, &cfoil_policy_route(policy, i)->tenant);
    }
    char rule[256];
    cfoil_tenant_rule_text(first, rule, sizeof(rule));
    (void)snprintf(text, text_bytes, "%s%s", same ? "" : "by route; the first: ", rule);
}
