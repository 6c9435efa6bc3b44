/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the policy loader. Checked besides crashes: what is refused is refused with
 * words and a place within the text, and what is accepted answers questions about paths.
 */
#include <stdlib.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_problems(const struct cfoil_policy_problems *problems, const uint8_t *data,
                           size_t bytes)
{
    unsigned lines = 1;

    for (size_t i = 0; i < bytes; i++) {
        lines += data[i] == '\n' || data[i] == '\r' ? 1U : 0U;
    }
    if (problems->count == 0 || problems->count > CFOIL_POLICY_PROBLEMS_MAX) {
        abort();
    }
    for (size_t i = 0; i < problems->count; i++) {
        const struct cfoil_policy_problem *problem = &problems->item[i];
        if (problem->text[0] == '\0' ||
            memchr(problem->text, '\0', sizeof(problem->text)) == NULL ||
            problem->line > lines + 1) {
            abort();
        }
    }
}

static void ask(const struct cfoil_policy *policy)
{
    static const char *const paths[] = {"/", "/api/payments", "/api/orders/7/items", "//",
                                        "/a%2Fb"};
    static const char *const methods[] = {"POST", "GET", "PATCH"};
    char endpoint[512];
    size_t len = 0;

    for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
        for (size_t m = 0; m < sizeof(methods) / sizeof(methods[0]); m++) {
            const struct cfoil_route *route =
                cfoil_policy_match(policy, cfoil_bytes_text(methods[m]), cfoil_bytes_text(paths[p]),
                                   endpoint, sizeof(endpoint), &len);
            if (route != NULL && (len > sizeof(endpoint) || route->name == NULL)) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct cfoil_policy_problems problems;
    struct cfoil_policy *policy = NULL;

    problems.count = 0;
    enum cfoil_error error =
        cfoil_policy_load_text(cfoil_bytes_of(data, bytes), &policy, &problems);
    if (error == CFOIL_E_POLICY) {
        check_problems(&problems, data, bytes);
    }
    if (error == CFOIL_OK) {
        ask(policy);
        cfoil_policy_free(policy);
    }
    return 0;
}
