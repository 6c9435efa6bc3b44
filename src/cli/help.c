/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil help: the list of commands, or one command's page. */
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

#define OPTION_COLUMNS 28

static void print_option(const char *name, const char *value, const char *help)
{
    char left[64];
    int len = snprintf(left, sizeof(left), "%s%s%s", name, value != NULL ? " " : "",
                       value != NULL ? value : "");
    (void)printf("  %-*s", OPTION_COLUMNS, left);
    if (len >= OPTION_COLUMNS) {
        (void)printf("\n  %-*s", OPTION_COLUMNS, "");
    }
    /* A line break in a help text begins under the text, not under the option. */
    for (; *help != '\0'; help++) {
        (void)putchar(*help);
        if (*help == '\n') {
            (void)printf("  %-*s", OPTION_COLUMNS, "");
        }
    }
    (void)putchar('\n');
}

static void print_commands(void)
{
    (void)puts(
        "counterfoil stands before an HTTP backend and lets a repeated request happen once.\n"
        "\n"
        "usage: counterfoil COMMAND [OPTIONS]\n");
    for (size_t i = 0; cfoil_commands[i] != NULL; i++) {
        (void)printf("  %-12s %s\n", cfoil_commands[i]->name, cfoil_commands[i]->summary);
    }
    (void)puts("\nNot available in this version:");
#define CFOIL_LATER(name, summary) (void)printf("  %-12s %s\n", #name, summary);
#include "cli/commands.def"
    (void)puts("\ncounterfoil COMMAND --help shows a command's options and an example.\n"
               "Exit status: 0 done; 1 the answer is no (not found, refused, different); 2 wrong\n"
               "arguments or files; 3 the store or the system does not serve.");
}

void cfoil_help_print(const struct cfoil_command *command)
{
    if (command == NULL) {
        print_commands();
        return;
    }
    (void)printf("counterfoil %s: %s\n\nusage: counterfoil %s %s\n\n%s\n", command->name,
                 command->summary, command->name, command->usage, command->text);
    (void)puts("Options:");
    for (const struct cfoil_option *option = command->options; option->name != NULL; option++) {
        print_option(option->name, option->value, option->help);
    }
    print_option("--help", NULL, "show this page");
    (void)printf("\nExample:\n%s", command->example);
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    if (arguments->word_count == 0) {
        cfoil_help_print(NULL);
        return CFOIL_EXIT_OK;
    }
    const char *later;
    const struct cfoil_command *command = cfoil_command_find(arguments->words[0], &later);
    if (command == NULL) {
        cfoil_complain("there is no help for `%s`%s; counterfoil help shows the commands",
                       arguments->words[0],
                       later != NULL ? ", which is not available in this version" : "");
        return CFOIL_EXIT_USAGE;
    }
    cfoil_help_print(command);
    return CFOIL_EXIT_OK;
}

static const struct cfoil_option options[] = {{0}};

const struct cfoil_command cfoil_command_help = {
    .name = "help",
    .summary = "show the commands, or one command's options",
    .usage = "[COMMAND]",
    .text = "Exit status: 0; 2 if there is no such command.\n",
    .example = "  counterfoil help serve\n",
    .words_max = 1,
    .options = options,
    .run = run,
};
