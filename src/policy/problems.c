/* SPDX-License-Identifier: Apache-2.0 */
/* See problems.h. */
#include "policy/problems.h"

#include <stdarg.h>
#include <stdio.h>

static bool known(const struct cfoil_policy_problems *problems,
                  const struct cfoil_policy_problem *problem)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct cfoil_policy_problem *other = &problems->item[i];
        if (other->line == problem->line && other->column == problem->column &&
            strcmp(other->text, problem->text) == 0) {
            return true;
        }
    }
    return false;
}

void cfoil_problem_add(struct cfoil_policy_problems *problems, unsigned line, unsigned column,
                       const char *format, ...)
{
    if (problems->count == CFOIL_POLICY_PROBLEMS_MAX) {
        return;
    }

    struct cfoil_policy_problem *problem = &problems->item[problems->count];
    problem->line = line;
    problem->column = column;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(problem->text, sizeof(problem->text), format, arguments);
    va_end(arguments);

    /* What `defaults` get wrong is met again in every route. */
    if (!known(problems, problem)) {
        problems->count++;
    }
}

static bool stands_after(const struct cfoil_policy_problem *a, const struct cfoil_policy_problem *b)
{
    return a->line != b->line ? a->line > b->line : a->column > b->column;
}

void cfoil_problems_sort(struct cfoil_policy_problems *problems)
{
    for (size_t i = 1; i < problems->count; i++) {
        struct cfoil_policy_problem moved = problems->item[i];
        size_t at = i;
        while (at > 0 && stands_after(&problems->item[at - 1], &moved)) {
            problems->item[at] = problems->item[at - 1];
            at--;
        }
        problems->item[at] = moved;
    }
}
