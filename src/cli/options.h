/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a command's arguments by its table of options: `--name value`, `--name=value`, flags, and
 * words; `--` ends the options. An unknown option, a missing value, a second value or too many words
 * are complained about, with the nearest name.
 */
#ifndef CFOIL_CLI_OPTIONS_H
#define CFOIL_CLI_OPTIONS_H

#include "cli/command.h"

struct cfoil_given {
    const struct cfoil_option *option;
    const char *value; /* "" for a flag */
};

struct cfoil_arguments {
    const struct cfoil_command *command;
    struct cfoil_given given[CFOIL_ARGUMENTS_MAX];
    size_t given_count;
    const char *words[CFOIL_ARGUMENTS_MAX];
    size_t word_count;
    bool help; /* --help or -h was among them: nothing else was checked */
};

/* Reads argv[0..argc), which follow the command's name. False: it has been complained. */
bool cfoil_arguments_read(struct cfoil_arguments *arguments, const struct cfoil_command *command,
                          int argc, char *const *argv);

/* The option's value, or NULL if it was not given. `name` must be in the command's table. */
const char *cfoil_option(const struct cfoil_arguments *arguments, const char *name);
bool cfoil_flag(const struct cfoil_arguments *arguments, const char *name);

/* The values of a repeatable option, in order; returns how many were put into values (at most max). */
size_t cfoil_option_all(const struct cfoil_arguments *arguments, const char *name,
                        const char **values, size_t max);

/* A whole number of decimal digits from min to max. False: complained, as `name`'s. */
bool cfoil_number_read(const char *name, const char *text, long min, long max, long *number);

#endif
