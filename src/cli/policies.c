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

static bool same_rule(const struct cfoil_tenant_rule *a, const struct cfoil_tenant_rule *b)
{
    if (a->source != b->source || a->otherwise != b->otherwise) {
        return false;
    }
    if (a->source == CFOIL_TENANT_FROM_HEADER) {
        return strcasecmp(a->name, b->name) == 0;
    }
    return a->name == NULL || strcmp(a->name, b->name) == 0;
}

/* What the client itself writes, where nothing in front does: NULL for what it cannot choose. */
static const char *client_writes(enum cfoil_tenant_source source)
{
    switch (source) {
    case CFOIL_TENANT_FROM_HEADER:
        return "header";
    case CFOIL_TENANT_FROM_COOKIE:
        return "cookie";
    case CFOIL_TENANT_FROM_QUERY:
        return "query argument";
    case CFOIL_TENANT_FROM_PATH:
        return "path parameter";
    case CFOIL_TENANT_FROM_VARIABLE:
    case CFOIL_TENANT_FROM_AUTHORIZATION:
    case CFOIL_TENANT_FROM_NONE:
        break;
    }
    return NULL;
}

/* Whether an earlier route has the same rule, so that it is said once. */
static bool said_before(const struct cfoil_policy *policy, size_t index)
{
    const struct cfoil_tenant_rule *rule = &cfoil_policy_route(policy, index)->tenant;
    for (size_t i = 0; i < index; i++) {
        if (same_rule(&cfoil_policy_route(policy, i)->tenant, rule)) {
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
        const struct cfoil_tenant_rule *rule = &cfoil_policy_route(policy, *from)->tenant;
        const char *what = client_writes(rule->source);
        if (what == NULL || said_before(policy, *from)) {
            continue;
        }
        (void)snprintf(
            text, text_bytes,
            "tenants are taken from the %s %s as it comes: something in front must set it "
            "and remove what clients send, or a client can name any tenant",
            what, rule->name);
        (*from)++;
        return true;
    }
    return false;
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
