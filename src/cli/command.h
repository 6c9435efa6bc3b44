/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command is: one const struct in a file of its own, which names its options, its help and
 * its function. main.c finds it by name, options.c reads its arguments, and help, completion and the
 * checks of unknown options are made from the same struct.
 */
#ifndef CFOIL_CLI_COMMAND_H
#define CFOIL_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses, the same in every command. */
enum cfoil_exit {
    CFOIL_EXIT_OK = 0,
    CFOIL_EXIT_NO = 1,    /* understood, and the answer is no: not found, refused, different */
    CFOIL_EXIT_USAGE = 2, /* the arguments or a file given are not valid */
    CFOIL_EXIT_SYSTEM = 3 /* the store or the operating system does not serve */
};

#define CFOIL_ARGUMENTS_MAX 128 /* options and words in one call */
#define CFOIL_HEADERS_MAX   32  /* --header in one call */

struct cfoil_option {
    const char *name;  /* "--store" */
    const char *value; /* what its value is called, "URL"; NULL: it has none */
    const char *help;
    bool repeatable;
};

struct cfoil_arguments;

struct cfoil_command {
    const char *name;
    const char *summary; /* one clause */
    const char *usage;   /* what stands behind the name */
    const char *text;    /* paragraphs of help; exit statuses where they need words */
    const char *example; /* one or more lines, as typed */
    size_t words_min;    /* arguments that are no options */
    size_t words_max;
    const struct cfoil_option *options; /* ended by a NULL name */
    enum cfoil_exit (*run)(const struct cfoil_arguments *arguments);
};

#define CFOIL_COMMAND(name) extern const struct cfoil_command cfoil_command_##name;
#include "cli/commands.def"

/* Every command there is, ended by NULL. */
extern const struct cfoil_command *const cfoil_commands[];

/* NULL if there is none of that name; *later is its summary if it is one of later versions. */
const struct cfoil_command *cfoil_command_find(const char *name, const char **later);

/* Prints a command's help, or, for NULL, the list of commands. */
void cfoil_help_print(const struct cfoil_command *command);

/* An error on standard error: "counterfoil: ...", one line, with what, where and the fix. */
void cfoil_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
