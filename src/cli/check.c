/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil check: what is wrong with a policy, and what an operator must know about it. */
#include <stdlib.h>

#include "cli/options.h"
#include "cli/policies.h"
#include "cli/render.h"

/* Path and text may hold bytes that are no UTF-8. */
static json_t *problem_json(const char *path, const struct cfoil_policy_problem *problem)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "file", cfoil_text_json(cfoil_bytes_text(path)));
    (void)json_object_set_new(object, "line", json_integer(problem->line));
    (void)json_object_set_new(object, "column", json_integer(problem->column));
    (void)json_object_set_new(object, "text", cfoil_text_json(cfoil_bytes_text(problem->text)));
    return object;
}

static bool print_json(const char *path, const struct cfoil_policy_problems *problems,
                       const struct cfoil_policy *policy)
{
    json_t *list = json_array();
    for (size_t i = 0; i < problems->count; i++) {
        (void)json_array_append_new(list, problem_json(path, &problems->item[i]));
    }
    json_t *advice = json_array();
    char text[512];
    size_t from = 0;
    while (policy != NULL && cfoil_policy_advice(policy, &from, text, sizeof(text))) {
        (void)json_array_append_new(advice, cfoil_text_json(cfoil_bytes_text(text)));
    }
    json_t *object = json_object();
    (void)json_object_set_new(object, "valid", json_boolean(policy != NULL));
    (void)json_object_set_new(object, "problems", list);
    (void)json_object_set_new(object, "advice", advice);
    return cfoil_json_print(object, false);
}

static void print_good(const char *path, const struct cfoil_policy *policy)
{
    char text[512];
    size_t from = 0;
    size_t count = cfoil_policy_route_count(policy);
    (void)cfoil_text_print(stdout, cfoil_bytes_text(path));
    (void)printf(": good, %zu route%s\n", count, count == 1 ? "" : "s");
    while (cfoil_policy_advice(policy, &from, text, sizeof(text))) {
        (void)cfoil_text_print(stdout, cfoil_bytes_text(path));
        (void)fputs(": note: ", stdout);
        (void)cfoil_text_print(stdout, cfoil_bytes_text(text));
        (void)putchar('\n');
    }
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    if (cfoil_option(arguments, "--against") != NULL) {
        cfoil_complain("--against is not available in this version");
        return CFOIL_EXIT_USAGE;
    }
    bool json = cfoil_flag(arguments, "--json");
    const char *path = arguments->words[0];
    struct cfoil_policy *policy = NULL;
    struct cfoil_policy_problems *problems = calloc(1, sizeof(*problems));
    if (problems == NULL) {
        cfoil_complain("out of memory");
        return CFOIL_EXIT_SYSTEM;
    }

    enum cfoil_exit status = cfoil_policy_open(path, json ? NULL : stdout, problems, &policy);
    if (json && !print_json(path, problems, policy)) {
        status = CFOIL_EXIT_SYSTEM;
    }
    if (!json && policy != NULL) {
        print_good(path, policy);
    }
    cfoil_policy_free(policy);
    free(problems);
    return status;
}

static const struct cfoil_option options[] = {
    {"--against", "OLD", "compare with an older policy; not available in this version", false},
    {"--json", NULL, "for machines", false},
    {0},
};

const struct cfoil_command cfoil_command_check = {
    .name = "check",
    .summary = "check a policy file",
    .usage = "POLICY [--json]",
    .text =
        "Prints every problem as FILE:LINE:COLUMN with the fix, and what is right but has to be\n"
        "known, as notes.\n\n"
        "Exit status: 0 the policy can be used; 2 it cannot.\n",
    .example = "  counterfoil check policy.yaml\n",
    .words_min = 1,
    .words_max = 1,
    .options = options,
    .run = run,
};
