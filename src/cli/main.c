/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command and runs it. Owns the list of commands and the one way to complain. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/terminal.h"
#include "policy/scalar.h"

const struct cfoil_command *const cfoil_commands[] = {
#define CFOIL_COMMAND(name) &cfoil_command_##name,
#include "cli/commands.def"
    NULL,
};

static const struct {
    const char *name;
    const char *summary;
} later_commands[] = {
#define CFOIL_LATER(name, summary) {#name, summary},
#include "cli/commands.def"
};

const struct cfoil_command *cfoil_command_find(const char *name, const char **later)
{
    *later = NULL;
    for (size_t i = 0; cfoil_commands[i] != NULL; i++) {
        if (strcmp(cfoil_commands[i]->name, name) == 0) {
            return cfoil_commands[i];
        }
    }
    for (size_t i = 0; i < sizeof(later_commands) / sizeof(later_commands[0]); i++) {
        if (strcmp(later_commands[i].name, name) == 0) {
            *later = later_commands[i].summary;
        }
    }
    return NULL;
}

void cfoil_complain(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int len = vasprintf(&text, format, arguments);
    va_end(arguments);
    (void)fflush(stdout);
    (void)fputs("counterfoil: ", stderr);
    /* A complaint repeats what it was given, which may come from a client by way of a script. */
    (void)cfoil_text_print(stderr, cfoil_bytes_text(len >= 0 ? text : "out of memory"));
    (void)fputc('\n', stderr);
    free(text);
}

static enum cfoil_exit complain_unknown(const char *name, const char *later)
{
    if (later != NULL) {
        cfoil_complain("%s (%s) is not available in this version; counterfoil help shows what is",
                       name, later);
        return CFOIL_EXIT_USAGE;
    }
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; cfoil_commands[i] != NULL; i++) {
        names[count++] = cfoil_commands[i]->name;
    }
    const char *near = cfoil_nearest(name, names, count);
    cfoil_complain("there is no command `%s`%s%s; counterfoil help shows the commands", name,
                   near != NULL ? "; did you mean " : "", near != NULL ? near : "");
    return CFOIL_EXIT_USAGE;
}

static const char *command_name(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        return "help";
    }
    return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ? "version" : word;
}

/* What was printed counts only if it got there: a full disk must not look like success. */
static int end(enum cfoil_exit status)
{
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        cfoil_complain("standard output cannot be written");
        return CFOIL_EXIT_SYSTEM;
    }
    return (int)status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        cfoil_help_print(NULL);
        (void)end(CFOIL_EXIT_OK);
        return CFOIL_EXIT_USAGE;
    }

    const char *later;
    const struct cfoil_command *command = cfoil_command_find(command_name(argv[1]), &later);
    if (command == NULL) {
        return (int)complain_unknown(argv[1], later);
    }
    struct cfoil_arguments arguments;
    if (!cfoil_arguments_read(&arguments, command, argc - 2, argv + 2)) {
        return CFOIL_EXIT_USAGE;
    }
    if (arguments.help) {
        cfoil_help_print(command);
        return end(CFOIL_EXIT_OK);
    }
    return end(command->run(&arguments));
}
