/* SPDX-License-Identifier: Apache-2.0 */
/* See support.h. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

struct cfoil_policy *load_good(const char *text)
{
    static struct cfoil_policy_problems problems;
    struct cfoil_policy *policy = NULL;
    enum cfoil_error error = cfoil_policy_load_text(cfoil_bytes_text(text), &policy, &problems);
    for (size_t i = 0; i < problems.count; i++) {
        print_error("%u:%u: %s\n", problems.item[i].line, problems.item[i].column,
                    problems.item[i].text);
    }
    if (error != CFOIL_OK) {
        print_error("not loaded (%s):\n%s\n", cfoil_error_name(error), text);
    }
    assert_int_equal(error, CFOIL_OK);
    assert_int_equal(problems.count, 0);
    return policy;
}

struct cfoil_policy *load_route(const char *head, const char *fields)
{
    char text[4096];
    int len =
        snprintf(text, sizeof(text), "version: 1\n%sroutes:\n  - match: POST /x\n%s", head, fields);
    assert_in_range(len, 1, sizeof(text) - 1);
    return load_good(text);
}

const struct cfoil_route *only_route(const struct cfoil_policy *policy)
{
    assert_int_equal(cfoil_policy_route_count(policy), 1);
    return cfoil_policy_route(policy, 0);
}

const char *matched(const struct cfoil_policy *policy, const char *method, const char *path,
                    char *endpoint)
{
    size_t len = 0;
    const struct cfoil_route *route = cfoil_policy_match(
        policy, cfoil_bytes_text(method), cfoil_bytes_text(path), endpoint, 255, &len);
    endpoint[route != NULL ? len : 0] = '\0';
    return route != NULL ? route->name : "-";
}

int run_rows(const char *group, const struct row_table *table, const struct CMUnitTest *more,
             size_t more_count)
{
    struct CMUnitTest *tests = calloc(table->count + more_count, sizeof(*tests));
    if (tests == NULL) {
        return 1;
    }
    for (size_t i = 0; i < table->count; i++) {
        const char *row = (const char *)table->rows + i * table->row_bytes;
        const char *name;
        memcpy(&name, row, sizeof(name));
        tests[i] = (struct CMUnitTest){name, table->test, NULL, NULL, (void *)(uintptr_t)row};
    }
    for (size_t i = 0; i < more_count; i++) {
        tests[table->count + i] = more[i];
    }
    int failed = _cmocka_run_group_tests(group, tests, table->count + more_count, NULL, NULL);
    free(tests);
    return failed;
}
