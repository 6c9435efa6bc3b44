/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil check: what is wrong with a policy, and what an operator must know about it. */
#include <stdlib.h>

#include "cli/observed.h"
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

static json_t *observed_json(const struct cfoil_observed_route *observed)
{
    json_t *counts = json_object();
    for (size_t i = 0; i < CFOIL_AGES_COUNT; i++) {
        (void)json_object_set_new(counts, cfoil_ages_name(i),
                                  json_integer((json_int_t)observed->ages.count[i]));
    }
    json_t *object = json_object();
    (void)json_object_set_new(object, "route", cfoil_text_json(cfoil_bytes_text(observed->name)));
    (void)json_object_set_new(object, "repeats", counts);
    return object;
}

static json_t *advice_json(const struct cfoil_policy *policy, const struct cfoil_observed *observed)
{
    json_t *advice = json_array();
    char text[512];
    size_t from = 0;
    while (cfoil_policy_advice(policy, &from, text, sizeof(text))) {
        (void)json_array_append_new(advice, cfoil_text_json(cfoil_bytes_text(text)));
    }
    for (size_t i = 0; i < observed->count; i++) {
        if (cfoil_observed_advice(&observed->routes[i], policy, text, sizeof(text))) {
            (void)json_array_append_new(advice, cfoil_text_json(cfoil_bytes_text(text)));
        }
    }
    return advice;
}

static bool print_json(const char *path, const struct cfoil_policy_problems *problems,
                       const struct cfoil_policy *policy, const struct cfoil_observed *observed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < problems->count; i++) {
        (void)json_array_append_new(list, problem_json(path, &problems->item[i]));
    }
    json_t *object = json_object();
    (void)json_object_set_new(object, "valid", json_boolean(policy != NULL));
    (void)json_object_set_new(object, "problems", list);
    (void)json_object_set_new(object, "advice",
                              policy != NULL ? advice_json(policy, observed) : json_array());
    if (observed->count > 0) {
        json_t *routes = json_array();
        for (size_t i = 0; i < observed->count; i++) {
            (void)json_array_append_new(routes, observed_json(&observed->routes[i]));
        }
        (void)json_object_set_new(object, "observed", routes);
    }
    return cfoil_json_print(object, false);
}

static void print_line(const char *path, const char *kind, const char *text)
{
    (void)cfoil_text_print(stdout, cfoil_bytes_text(path));
    (void)printf(": %s: ", kind);
    (void)cfoil_text_print(stdout, cfoil_bytes_text(text));
    (void)putchar('\n');
}

static void print_good(const char *path, const struct cfoil_policy *policy,
                       const struct cfoil_observed *observed)
{
    char text[512];
    size_t from = 0;
    size_t count = cfoil_policy_route_count(policy);
    (void)cfoil_text_print(stdout, cfoil_bytes_text(path));
    (void)printf(": good, %zu route%s\n", count, count == 1 ? "" : "s");
    while (cfoil_policy_advice(policy, &from, text, sizeof(text))) {
        print_line(path, "note", text);
    }
    for (size_t i = 0; i < observed->count; i++) {
        cfoil_observed_summary(&observed->routes[i], policy, text, sizeof(text));
        print_line(path, "observed", text);
        if (cfoil_observed_advice(&observed->routes[i], policy, text, sizeof(text))) {
            print_line(path, "note", text);
        }
    }
}

static enum cfoil_exit check(const struct cfoil_arguments *arguments,
                             const struct cfoil_observed *observed)
{
    bool json = cfoil_flag(arguments, "--json");
    const char *path = arguments->words[0];
    struct cfoil_policy *policy = NULL;
    struct cfoil_policy_problems *problems = calloc(1, sizeof(*problems));
    if (problems == NULL) {
        cfoil_complain("out of memory");
        return CFOIL_EXIT_SYSTEM;
    }

    enum cfoil_exit status = cfoil_policy_open(path, json ? NULL : stdout, problems, &policy);
    if (json && !print_json(path, problems, policy, observed)) {
        status = CFOIL_EXIT_SYSTEM;
    }
    if (!json && policy != NULL) {
        print_good(path, policy, observed);
    }
    cfoil_policy_free(policy);
    free(problems);
    return status;
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    struct cfoil_observed observed = {0};
    const char *log = cfoil_option(arguments, "--observed");

    if (cfoil_option(arguments, "--against") != NULL) {
        cfoil_complain("--against is not available in this version");
        return CFOIL_EXIT_USAGE;
    }
    if (log != NULL && !cfoil_observed_read(log, &observed)) {
        return CFOIL_EXIT_USAGE;
    }
    enum cfoil_exit status = check(arguments, &observed);
    cfoil_observed_free(&observed);
    return status;
}

static const struct cfoil_option options[] = {
    {"--against", "OLD", "compare with an older policy; not available in this version", false},
    {"--observed", "LOG", "the gateway's error log: how late repeats really come", false},
    {"--json", NULL, "for machines", false},
    {0},
};

const struct cfoil_command cfoil_command_check = {
    .name = "check",
    .summary = "check a policy file",
    .usage = "POLICY [--observed LOG] [--json]",
    .text =
        "Prints every problem as FILE:LINE:COLUMN with the fix, and what is right but has to be\n"
        "known, as notes. With --observed also how old records were when their keys came again, "
        "as\n"
        "the gateway counted it, and whether answers are kept long enough for that.\n\n"
        "Exit status: 0 the policy can be used; 2 it cannot.\n",
    .example = "  counterfoil check policy.yaml\n"
               "  counterfoil check policy.yaml --observed /var/log/nginx/error.log\n",
    .words_min = 1,
    .words_max = 1,
    .options = options,
    .run = run,
};
