/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil completion: what a shell needs to complete commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

static void print_bash(void)
{
    (void)puts("_counterfoil()\n"
               "{\n"
               "    local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
               "    case \"${COMP_WORDS[1]}\" in");
    for (size_t i = 0; cfoil_commands[i] != NULL; i++) {
        (void)printf("    %s) words=\"", cfoil_commands[i]->name);
        const struct cfoil_option *option = cfoil_commands[i]->options;
        for (; option->name != NULL; option++) {
            (void)printf("%s ", option->name);
        }
        (void)puts("--help\" ;;");
    }
    (void)printf("    esac\n"
                 "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                 "        words=\"");
    for (size_t i = 0; cfoil_commands[i] != NULL; i++) {
        (void)printf("%s%s", i > 0 ? " " : "", cfoil_commands[i]->name);
    }
    (void)puts("\"\n"
               "    elif [[ \"$word\" != -* ]]; then\n"
               "        words=\"\"\n"
               "    fi\n"
               "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
               "}\n"
               "complete -o default -F _counterfoil counterfoil");
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    if (strcmp(arguments->words[0], "bash") != 0) {
        cfoil_complain("completion is available for bash, not for `%s`", arguments->words[0]);
        return CFOIL_EXIT_USAGE;
    }
    print_bash();
    return CFOIL_EXIT_OK;
}

static const struct cfoil_option options[] = {{0}};

const struct cfoil_command cfoil_command_completion = {
    .name = "completion",
    .summary = "print a script that completes commands and options in a shell",
    .usage = "bash",
    .text = "Exit status: 0; 2 for a shell it does not know.\n",
    .example = "  source <(counterfoil completion bash)\n",
    .words_min = 1,
    .words_max = 1,
    .options = options,
    .run = run,
};
