/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the policy loader. Checked besides crashes: what is refused is refused with
 * words that a terminal may show, each at a place within the text, once, in the order of the text; what
 * is accepted is within the limits, finds every route by its name, and answers questions about paths.
 */
#include <stdlib.h>

#include "policy/limits.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Bytes of the line break at `at`: YAML 1.1 has more of them than editors do. 0: there is none. */
static size_t break_bytes(struct cfoil_bytes text, size_t at, bool of_yaml)
{
    static const char *const breaks[] = {"\n",       "\r\n",         "\r",
                                         "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};
    const size_t count = of_yaml ? sizeof(breaks) / sizeof(breaks[0]) : 1;
    for (size_t i = 0; i < count; i++) {
        const size_t len = strlen(breaks[i]);
        if (text.len - at >= len && memcmp(text.data + at, breaks[i], len) == 0) {
            return len;
        }
    }
    return 0;
}

/*
 * The place is on a character of the text or right behind one, or begins the line behind the last, where
 * libyaml puts what it misses at the end.
 */
static bool is_inside(struct cfoil_bytes text, unsigned line, unsigned column, bool of_yaml)
{
    unsigned at_line = 1;
    unsigned at_column = 1;
    for (size_t at = 0; at < text.len && at_line <= line; at++) {
        if (at_line == line && at_column == column) {
            return true;
        }
        const size_t skipped = break_bytes(text, at, of_yaml);
        if (skipped > 0) {
            at += skipped - 1;
            at_line++;
            at_column = 1;
            continue;
        }
        at_column += (text.data[at] & 0xC0) != 0x80;
    }
    return (at_line == line && at_column == column) || (at_line + 1 == line && column == 1);
}

static void check_text(const char *text)
{
    size_t len = strnlen(text, sizeof(((struct cfoil_policy_problem *)0)->text));
    if (len == 0 || len == sizeof(((struct cfoil_policy_problem *)0)->text)) {
        abort();
    }
    for (size_t i = 0; i < len; i++) {
        if ((uint8_t)text[i] < ' ' || text[i] == 0x7F) {
            abort();
        }
    }
}

static void check_problems(const struct cfoil_policy_problems *problems, struct cfoil_bytes text)
{
    if (problems->count == 0 || problems->count > CFOIL_POLICY_PROBLEMS_MAX) {
        abort();
    }
    for (size_t i = 0; i < problems->count; i++) {
        const struct cfoil_policy_problem *problem = &problems->item[i];
        check_text(problem->text);
        if (problem->line != 0 && !is_inside(text, problem->line, problem->column, true) &&
            !is_inside(text, problem->line, problem->column, false)) {
            abort();
        }
        if (i == 0) {
            continue;
        }
        const struct cfoil_policy_problem *before = &problem[-1];
        if (before->line > problem->line ||
            (before->line == problem->line && before->column > problem->column) ||
            (before->line == problem->line && before->column == problem->column &&
             strcmp(before->text, problem->text) == 0)) {
            abort();
        }
    }
}

static bool is_duration(int64_t ms)
{
    return ms >= 0 && ms <= CFOIL_DURATION_MAX_MS;
}

static void check_route(const struct cfoil_policy *policy, const struct cfoil_route *route)
{
    const struct cfoil_terms *terms = &route->terms;
    if (cfoil_policy_route_by_name(policy, route->name) != route || route->rules == NULL ||
        route->pattern_count == 0 || route->key_header == NULL || route->key_header[0] == '\0') {
        abort();
    }
    if (terms->lease_ms < CFOIL_LEASE_MIN_MS || terms->lease_ms > CFOIL_LEASE_MAX_MS ||
        !is_duration(terms->ttl_ms) || !is_duration(terms->tombstone_ms) ||
        !is_duration(terms->failed_ms) || terms->trust_absent_after_ms < -1 ||
        !is_duration(terms->retry_after_ms) ||
        route->snapshot_body_bytes_max > CFOIL_SNAPSHOT_BODY_BYTES_MAX) {
        abort();
    }
    if (terms->in_doubt == CFOIL_IN_DOUBT_PROBE &&
        (route->probe.path == NULL || route->probe.path[0] != '/' ||
         route->probe.timeout_ms <= 0)) {
        abort();
    }
    (void)cfoil_route_keeps_header(route, cfoil_bytes_text("X-Trace"));
    if (cfoil_route_keeps_header(route, cfoil_bytes_text("Connection"))) {
        abort();
    }
}

static bool is_route_of(const struct cfoil_policy *policy, const struct cfoil_route *route)
{
    for (size_t i = 0; i < cfoil_policy_route_count(policy); i++) {
        if (cfoil_policy_route(policy, i) == route) {
            return true;
        }
    }
    return false;
}

static void ask(const struct cfoil_policy *policy, struct cfoil_bytes method,
                struct cfoil_bytes path)
{
    char endpoint[CFOIL_ENDPOINT_BYTES_MAX];
    char probe[1024];
    size_t len = 0;
    const struct cfoil_route *route =
        cfoil_policy_match(policy, method, path, endpoint, sizeof(endpoint), &len);
    if (route == NULL) {
        return;
    }
    if (!is_route_of(policy, route) || len > sizeof(endpoint) || len <= method.len ||
        memcmp(endpoint, method.data, method.len) != 0 || endpoint[method.len] != ' ') {
        abort();
    }
    if (route->terms.in_doubt == CFOIL_IN_DOUBT_PROBE &&
        cfoil_probe_path(route, method, path, cfoil_bytes_text("a/b?c"), probe, sizeof(probe)) >
            sizeof(probe)) {
        abort();
    }
}

static void check_policy(const struct cfoil_policy *policy)
{
    static const char *const paths[] = {
        "/", "/api/payments", "/api/orders/7/items", "//", "/a%2Fb", "/a", "/a/1/b/2", ""};
    static const char *const methods[] = {"POST", "GET", "PATCH"};
    if (cfoil_policy_route_count(policy) == 0) {
        abort();
    }
    for (size_t i = 0; i < cfoil_policy_route_count(policy); i++) {
        check_route(policy, cfoil_policy_route(policy, i));
    }
    for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
        for (size_t m = 0; m < sizeof(methods) / sizeof(methods[0]); m++) {
            ask(policy, cfoil_bytes_text(methods[m]), cfoil_bytes_text(paths[p]));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct cfoil_policy_problems problems;
    const struct cfoil_bytes text = cfoil_bytes_of(data, bytes);
    struct cfoil_policy *policy = NULL;

    enum cfoil_error error = cfoil_policy_load_text(text, &policy, &problems);
    if (error == CFOIL_OK) {
        check_policy(policy);
        cfoil_policy_free(policy);
    }
    if (error == CFOIL_OK ? problems.count != 0 : error != CFOIL_E_POLICY) {
        abort();
    }
    if (error == CFOIL_E_POLICY) {
        check_problems(&problems, text);
    }
    return 0;
}
