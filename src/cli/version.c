/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil version, and --version. */
#include <stdio.h>

#include "cli/options.h"

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    (void)printf(cfoil_flag(arguments, "--json") ? "{\"version\": \"%s\"}\n" : "counterfoil %s\n",
                 CFOIL_VERSION);
    return CFOIL_EXIT_OK;
}

static const struct cfoil_option options[] = {
    {"--json", NULL, "for machines", false},
    {0},
};

const struct cfoil_command cfoil_command_version = {
    .name = "version",
    .summary = "show the version",
    .usage = "[--json]",
    .text = "Exit status: 0.\n",
    .example = "  counterfoil --version\n",
    .options = options,
    .run = run,
};
