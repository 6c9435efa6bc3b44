/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a policy as a whole, and finding a route by name or request. The contract is policy.h. */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/compile.h"
#include "policy/limits.h"
#include "policy/pattern.h"
#include "policy/schema.h"
#include "policy/trie.h"

struct cfoil_policy {
    struct cfoil_pool pool;
    struct cfoil_route *routes;
    size_t route_count;
    const struct cfoil_route **by_name;
    const struct cfoil_pattern **patterns; /* of all routes, in the file's order */
    uint32_t *pattern_route;
    size_t pattern_count;
    struct cfoil_trie trie;
};

const char cfoil_policy_default_text[] =
    "# What counterfoil serves without a policy: every POST and PATCH that carries a key.\n"
    "version: 1\n"
    "tenant: authorization\n"
    "routes:\n"
    "  - name: default\n"
    "    match: POST|PATCH /**\n"
    "    key: {header: Idempotency-Key, required: false}\n"
    "    semantics: strict\n";

static const struct cfoil_node *name_node(const struct cfoil_node *route)
{
    const struct cfoil_node *name = cfoil_node_member(route, CFOIL_FIELD_NAME);
    return name != NULL ? name : route;
}

static int compare_names(const void *a, const void *b)
{
    const struct cfoil_route *const *left = a;
    const struct cfoil_route *const *right = b;
    int order = strcmp((*left)->name, (*right)->name);
    return order != 0 ? order : (*left > *right) - (*left < *right);
}

/* Names the nameless, sorts by name, and refuses what stands twice. */
static enum cfoil_error index_names(struct cfoil_policy *policy, const struct cfoil_node **nodes,
                                    struct cfoil_policy_problems *problems)
{
    policy->by_name =
        cfoil_pool_array(&policy->pool, policy->route_count + 1, sizeof(struct cfoil_route *));
    if (policy->by_name == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    for (size_t i = 0; i < policy->route_count; i++) {
        struct cfoil_route *route = &policy->routes[i];
        if (route->name == NULL) {
            char name[32];
            int len = snprintf(name, sizeof(name), "route-%zu", i + 1);
            route->name = cfoil_pool_text(&policy->pool, name, (size_t)len);
        }
        if (route->name == NULL) {
            return CFOIL_E_NO_MEMORY;
        }
        policy->by_name[i] = route;
    }

    qsort(policy->by_name, policy->route_count, sizeof(policy->by_name[0]), compare_names);
    for (size_t i = 1; i < policy->route_count; i++) {
        if (strcmp(policy->by_name[i - 1]->name, policy->by_name[i]->name) == 0) {
            const struct cfoil_node *second = name_node(nodes[policy->by_name[i] - policy->routes]);
            cfoil_problem_add(
                problems, second->line, second->column,
                "name: a route %.60s stands on line %u already; give each its own name",
                policy->by_name[i]->name,
                name_node(nodes[policy->by_name[i - 1] - policy->routes])->line);
        }
    }
    return CFOIL_OK;
}

static size_t pattern_total(const struct cfoil_node **nodes, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        const struct cfoil_node *match = cfoil_node_member(nodes[i], CFOIL_FIELD_MATCH);
        total += match->kind == CFOIL_NODE_LIST ? match->count : 1;
    }
    return total;
}

static void pattern_add(struct cfoil_policy *policy, const struct cfoil_node *node, size_t route)
{
    policy->patterns[policy->pattern_count] = node->pattern;
    policy->pattern_route[policy->pattern_count++] = (uint32_t)route;
}

/* Collects every route's patterns in order and builds the tree over them. */
static enum cfoil_error index_patterns(struct cfoil_policy *policy, const struct cfoil_node **nodes,
                                       struct cfoil_policy_problems *problems)
{
    size_t total = pattern_total(nodes, policy->route_count);
    policy->patterns = cfoil_pool_array(&policy->pool, total, sizeof(const struct cfoil_pattern *));
    policy->pattern_route = cfoil_pool_array(&policy->pool, total, sizeof(uint32_t));
    if (policy->patterns == NULL || policy->pattern_route == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    for (size_t i = 0; i < policy->route_count; i++) {
        const struct cfoil_node *match = cfoil_node_member(nodes[i], CFOIL_FIELD_MATCH);
        bool single = match->kind == CFOIL_NODE_SCALAR;
        policy->routes[i].patterns = policy->patterns + policy->pattern_count;
        policy->routes[i].pattern_count = single ? 1 : match->count;
        if (single) {
            pattern_add(policy, match, i);
            continue;
        }
        for (const struct cfoil_node *item = match->first; item != NULL; item = item->next) {
            pattern_add(policy, item, i);
        }
    }

    enum cfoil_error error =
        cfoil_trie_build(&policy->trie, &policy->pool, policy->patterns, policy->pattern_count);
    if (error == CFOIL_E_LIMIT) {
        cfoil_problem_add(
            problems, 0, 0,
            "the patterns are too many or have too many methods (limits: %d different "
            "methods, %u segments in all); use fewer methods or shorter paths",
            CFOIL_ALL_METHODS_MAX, CFOIL_TRIE_NODES_MAX);
        return CFOIL_E_POLICY;
    }
    return error;
}

static void missing(struct cfoil_policy_problems *problems, const struct cfoil_node *root,
                    const char *text)
{
    cfoil_problem_add(problems, root->line, root->column, "%s", text);
}

/* True if the file as a whole has what every policy needs. */
static bool root_complete(const struct cfoil_node *root, struct cfoil_policy_problems *problems)
{
    size_t before = problems->count;
    const struct cfoil_node *routes = cfoil_node_member(root, CFOIL_FIELD_ROUTES);
    if (cfoil_node_member(root, CFOIL_FIELD_VERSION) == NULL) {
        missing(problems, root, "`version: 1` is missing; begin the policy with it");
    }
    if (routes == NULL || (routes->kind == CFOIL_NODE_LIST && routes->count == 0)) {
        missing(
            problems, routes != NULL ? routes : root,
            "a policy needs `routes` with at least one route; without one nothing is protected");
    }
    return problems->count == before && routes->kind == CFOIL_NODE_LIST &&
           routes->count <= CFOIL_POLICY_ROUTES_MAX;
}

/* `defaults` and `tenant`, merged; false if either is not to be used. */
static bool prepare(struct cfoil_compile *compile, const struct cfoil_node *root)
{
    const struct cfoil_node *tenant = cfoil_node_member(root, CFOIL_FIELD_FILE_TENANT);
    compile->defaults_node = cfoil_node_member(root, CFOIL_FIELD_DEFAULTS);
    if ((tenant != NULL && tenant->faulty) ||
        (compile->defaults_node != NULL && compile->defaults_node->faulty)) {
        return false;
    }
    cfoil_merge_value(&compile->defaults, CFOIL_FIELD_TENANT, tenant);
    cfoil_merge_layer(&compile->defaults, compile->defaults_node);
    return true;
}

/* Compiles every route that passed the schema; nodes[i] becomes route i's mapping. */
static enum cfoil_error compile_routes(struct cfoil_policy *policy, struct cfoil_compile *compile,
                                       const struct cfoil_node *list,
                                       const struct cfoil_node ***nodes)
{
    policy->routes = cfoil_pool_array(&policy->pool, list->count, sizeof(*policy->routes));
    *nodes = cfoil_pool_array(&policy->pool, list->count, sizeof(const struct cfoil_node *));
    if (policy->routes == NULL || *nodes == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    for (const struct cfoil_node *node = list->first; node != NULL; node = node->next) {
        struct cfoil_route *route = &policy->routes[policy->route_count];
        (*nodes)[policy->route_count++] = node;
        if (node->faulty || node->kind != CFOIL_NODE_MAPPING) {
            continue;
        }
        enum cfoil_error error = cfoil_route_compile(compile, node, route);
        if (error != CFOIL_OK) {
            return error;
        }
    }
    return CFOIL_OK;
}

static enum cfoil_error load_tree(struct cfoil_policy *policy, struct cfoil_node *root,
                                  struct cfoil_policy_problems *problems)
{
    enum cfoil_error error = cfoil_schema_check(&policy->pool, root, problems);
    if (error != CFOIL_OK) {
        return error;
    }
    /* Once the list is full, a node that is wrong can no longer be told from one that is not. */
    if (problems->count == CFOIL_POLICY_PROBLEMS_MAX) {
        return CFOIL_E_POLICY;
    }
    struct cfoil_compile *compile = cfoil_pool_take(&policy->pool, sizeof(*compile));
    if (compile == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    compile->pool = &policy->pool;
    compile->problems = problems;
    if (!root_complete(root, problems) || !prepare(compile, root)) {
        return CFOIL_E_POLICY;
    }

    const struct cfoil_node **nodes;
    error = compile_routes(policy, compile, cfoil_node_member(root, CFOIL_FIELD_ROUTES), &nodes);
    if (error == CFOIL_OK) {
        error = index_names(policy, nodes, problems);
    }
    if (error == CFOIL_OK && problems->count > 0) {
        return CFOIL_E_POLICY;
    }
    return error == CFOIL_OK ? index_patterns(policy, nodes, problems) : error;
}

enum cfoil_error cfoil_policy_load_text(struct cfoil_bytes text, struct cfoil_policy **policy,
                                        struct cfoil_policy_problems *problems)
{
    problems->count = 0;
    if (text.len > CFOIL_POLICY_BYTES_MAX) {
        cfoil_problem_add(problems, 0, 0, "a policy has at most %u bytes, this one more; split it",
                          CFOIL_POLICY_BYTES_MAX);
        return CFOIL_E_LIMIT;
    }
    struct cfoil_policy *loaded = calloc(1, sizeof(*loaded));
    if (loaded == NULL) {
        return CFOIL_E_NO_MEMORY;
    }

    struct cfoil_node *root = NULL;
    enum cfoil_error error = cfoil_tree_read(&loaded->pool, text, &root, problems);
    if (error == CFOIL_OK) {
        error = load_tree(loaded, root, problems);
    }
    cfoil_problems_sort(problems);
    if (error != CFOIL_OK) {
        cfoil_policy_free(loaded);
        return error;
    }
    *policy = loaded;
    return CFOIL_OK;
}

static enum cfoil_error cannot_read(struct cfoil_policy_problems *problems, const char *why)
{
    cfoil_problem_add(problems, 0, 0, "the file cannot be read: %s; check its name and permissions",
                      why);
    return CFOIL_E_SYSTEM;
}

enum cfoil_error cfoil_policy_load(const char *path, struct cfoil_policy **policy,
                                   struct cfoil_policy_problems *problems)
{
    problems->count = 0;
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return cannot_read(problems, strerror(errno));
    }
    /* One byte more than allowed tells a file that is too long from one that just fits. */
    uint8_t *text = malloc(CFOIL_POLICY_BYTES_MAX + 1);
    if (text == NULL) {
        (void)fclose(file);
        return CFOIL_E_NO_MEMORY;
    }

    errno = 0;
    size_t len = fread(text, 1, CFOIL_POLICY_BYTES_MAX + 1, file);
    int failed = ferror(file) != 0 ? errno : 0;
    (void)fclose(file);
    enum cfoil_error error =
        failed != 0 ? cannot_read(problems, strerror(failed))
                    : cfoil_policy_load_text(cfoil_bytes_of(text, len), policy, problems);
    free(text);
    return error;
}

void cfoil_policy_free(struct cfoil_policy *policy)
{
    if (policy == NULL) {
        return;
    }
    for (size_t i = 0; i < policy->route_count; i++) {
        cfoil_rules_free(policy->routes[i].rules);
        cfoil_rules_free(policy->routes[i].redact);
    }
    cfoil_pool_free(&policy->pool);
    free(policy);
}

size_t cfoil_policy_route_count(const struct cfoil_policy *policy)
{
    return policy->route_count;
}

const struct cfoil_route *cfoil_policy_route(const struct cfoil_policy *policy, size_t index)
{
    return index < policy->route_count ? &policy->routes[index] : NULL;
}

static int compare_name(const void *name, const void *element)
{
    const struct cfoil_route *const *route = element;
    return strcmp(name, (*route)->name);
}

const struct cfoil_route *cfoil_policy_route_by_name(const struct cfoil_policy *policy,
                                                     const char *name)
{
    const struct cfoil_route *const *found = bsearch(name, policy->by_name, policy->route_count,
                                                     sizeof(policy->by_name[0]), compare_name);
    return found != NULL ? *found : NULL;
}

static const struct cfoil_pattern *find(const struct cfoil_policy *policy,
                                        struct cfoil_bytes method, struct cfoil_bytes path,
                                        const struct cfoil_route **route)
{
    uint32_t number = cfoil_trie_find(&policy->trie, method, path);
    if (number == CFOIL_TRIE_NONE) {
        return NULL;
    }
    *route = &policy->routes[policy->pattern_route[number]];
    return policy->patterns[number];
}

const struct cfoil_route *cfoil_policy_match(const struct cfoil_policy *policy,
                                             struct cfoil_bytes method, struct cfoil_bytes path,
                                             char *endpoint, size_t endpoint_bytes,
                                             size_t *endpoint_len)
{
    const struct cfoil_route *route = NULL;
    const struct cfoil_pattern *pattern = find(policy, method, path, &route);
    if (pattern == NULL) {
        return NULL;
    }

    struct cfoil_bytes rest = cfoil_pattern_rest(pattern, path);
    struct cfoil_bytes parts[] = {method, cfoil_bytes_text(" "), pattern->template, rest};
    size_t len = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].len > endpoint_bytes - len) {
            return NULL;
        }
        if (parts[i].len > 0) {
            memcpy(endpoint + len, parts[i].data, parts[i].len);
        }
        len += parts[i].len;
    }
    *endpoint_len = len;
    return route;
}
