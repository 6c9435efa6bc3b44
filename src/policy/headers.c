/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which response headers a snapshot keeps. The built-in rules come first, then those of `defaults`,
 * then the route's; drop_headers adds a dropping rule and keep_headers a keeping one, and the last
 * rule that matches counts. Headers that belong to one connection or frame one body are never kept.
 */
#include <stdio.h>

#include "policy/compile.h"
#include "policy/limits.h"

static const struct cfoil_header_rule built_in[] = {
    {"set-cookie", false}, {"www-authenticate", false}, {"date", false},        {"server", false},
    {"age", false},        {"alt-svc", false},          {"ratelimit-*", false},
};

#define BUILT_IN_COUNT (sizeof(built_in) / sizeof(built_in[0]))

/* Hop-by-hop, and Content-Length, which every replay computes anew. */
static const char *const never_kept[] = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
};

static bool is_never_kept(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(never_kept) / sizeof(never_kept[0]); i++) {
        if (strlen(never_kept[i]) == len && strncasecmp(never_kept[i], name, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool rule_matches(const char *pattern, struct cfoil_bytes name)
{
    size_t len = strlen(pattern);
    const char *text = (const char *)name.data;
    if (pattern[len - 1] == '*') {
        return name.len >= len - 1 && strncasecmp(pattern, text, len - 1) == 0;
    }
    return name.len == len && strncasecmp(pattern, text, len) == 0;
}

/* Headers that are made from the body: a reader would check them against what is left of it. */
static bool is_of_the_body(struct cfoil_bytes name)
{
    static const char *const names[] = {"etag", "content-md5", "digest", "content-digest",
                                        "repr-digest"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (name.len == strlen(names[i]) &&
            strncasecmp((const char *)name.data, names[i], name.len) == 0) {
            return true;
        }
    }
    return false;
}

bool cfoil_route_keeps_header(const struct cfoil_route *route, struct cfoil_bytes name)
{
    if (name.len == 0 || is_never_kept((const char *)name.data, name.len)) {
        return false;
    }
    if (route->redact != NULL && is_of_the_body(name)) {
        return false;
    }
    for (size_t i = route->header_rule_count; i > 0; i--) {
        const struct cfoil_header_rule *rule = &route->header_rules[i - 1];
        if (rule_matches(rule->pattern, name)) {
            return rule->keep;
        }
    }
    return true;
}

static enum cfoil_error add_rules(struct cfoil_compile *compile, const struct cfoil_node *list,
                                  bool keep, struct cfoil_header_rule *rules, size_t *count)
{
    const struct cfoil_node *item = list != NULL ? list->first : NULL;
    for (; item != NULL; item = item->next) {
        char *pattern = cfoil_pool_text(compile->pool, item->text, item->len);
        if (pattern == NULL) {
            return CFOIL_E_NO_MEMORY;
        }
        for (size_t i = 0; i < item->len; i++) {
            bool upper = pattern[i] >= 'A' && pattern[i] <= 'Z';
            pattern[i] = (char)(upper ? pattern[i] - 'A' + 'a' : pattern[i]);
        }
        if (keep && is_never_kept(pattern, item->len)) {
            cfoil_problem_add(compile->problems, item->line, item->column,
                              "snapshot.keep_headers: %.60s belongs to one connection or body and "
                              "is never stored; remove it",
                              item->text);
        }
        rules[*count].pattern = pattern;
        rules[(*count)++].keep = keep;
    }
    return CFOIL_OK;
}

static void check_both(struct cfoil_compile *compile, const struct cfoil_node *drop,
                       const struct cfoil_node *keep)
{
    const struct cfoil_node *kept = keep != NULL ? keep->first : NULL;
    for (; kept != NULL; kept = kept->next) {
        const struct cfoil_node *dropped = drop != NULL ? drop->first : NULL;
        for (; dropped != NULL; dropped = dropped->next) {
            if (strcasecmp(kept->text, dropped->text) == 0) {
                cfoil_problem_add(compile->problems, kept->line, kept->column,
                                  "snapshot.keep_headers: %.60s is in drop_headers too; list it in "
                                  "one of the two",
                                  kept->text);
            }
        }
    }
}

static size_t items(const struct cfoil_node *list)
{
    return list != NULL ? list->count : 0;
}

enum cfoil_error cfoil_headers_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    const struct cfoil_node *layers[] = {compile->defaults_node, compile->node};
    const struct cfoil_node *drop[2];
    const struct cfoil_node *keep[2];
    size_t count = BUILT_IN_COUNT;
    for (size_t i = 0; i < 2; i++) {
        const struct cfoil_node *snapshot = cfoil_node_member(layers[i], CFOIL_FIELD_SNAPSHOT);
        drop[i] = cfoil_node_member(snapshot, CFOIL_FIELD_SNAPSHOT_DROP);
        keep[i] = cfoil_node_member(snapshot, CFOIL_FIELD_SNAPSHOT_KEEP);
        count += items(drop[i]) + items(keep[i]);
    }
    route->header_rules = built_in;
    route->header_rule_count = BUILT_IN_COUNT;
    if (count == BUILT_IN_COUNT) {
        return CFOIL_OK;
    }

    struct cfoil_header_rule *rules = cfoil_pool_array(compile->pool, count, sizeof(*rules));
    if (rules == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    memcpy(rules, built_in, sizeof(built_in));
    size_t filled = BUILT_IN_COUNT;
    for (size_t i = 0; i < 2; i++) {
        check_both(compile, drop[i], keep[i]);
        enum cfoil_error error = add_rules(compile, drop[i], false, rules, &filled);
        if (error == CFOIL_OK) {
            error = add_rules(compile, keep[i], true, rules, &filled);
        }
        if (error != CFOIL_OK) {
            return error;
        }
    }
    route->header_rules = rules;
    route->header_rule_count = filled;
    return CFOIL_OK;
}
