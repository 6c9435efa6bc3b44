/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/scalar.h"

static const struct cfoil_option *find(const struct cfoil_command *command, const char *name,
                                       size_t len)
{
    for (const struct cfoil_option *option = command->options; option->name != NULL; option++) {
        if (strlen(option->name) == len && strncmp(option->name, name, len) == 0) {
            return option;
        }
    }
    return NULL;
}

static bool complain_unknown(const struct cfoil_command *command, const char *name, size_t len)
{
    char word[64];
    const char *names[32];
    size_t count = 0;
    for (const struct cfoil_option *option = command->options; option->name != NULL; option++) {
        names[count++] = option->name;
    }
    len = len < sizeof(word) - 1 ? len : sizeof(word) - 1;
    memcpy(word, name, len);
    word[len] = '\0';

    const char *near = cfoil_nearest(word, names, count);
    cfoil_complain("%s has no option %s%s%s; counterfoil %s --help shows what it has",
                   command->name, word, near != NULL ? "; did you mean " : "",
                   near != NULL ? near : "", command->name);
    return false;
}

static bool is_given(const struct cfoil_arguments *arguments, const struct cfoil_option *option)
{
    for (size_t i = 0; i < arguments->given_count; i++) {
        if (arguments->given[i].option == option) {
            return true;
        }
    }
    return false;
}

/* Takes one option; *used is how many arguments it has taken. */
static bool take_option(struct cfoil_arguments *arguments, int argc, char *const *argv, int *used)
{
    const char *equals = strchr(argv[0], '=');
    size_t len = equals != NULL ? (size_t)(equals - argv[0]) : strlen(argv[0]);
    const struct cfoil_option *option = find(arguments->command, argv[0], len);
    if (option == NULL) {
        return complain_unknown(arguments->command, argv[0], len);
    }
    if (!option->repeatable && is_given(arguments, option)) {
        cfoil_complain("%s is given twice; give it once", option->name);
        return false;
    }

    const char *value = equals != NULL ? equals + 1 : "";
    *used = 1;
    if (option->value == NULL && equals != NULL) {
        cfoil_complain("%s takes no value; write it alone", option->name);
        return false;
    }
    if (option->value != NULL && equals == NULL) {
        if (argc < 2) {
            cfoil_complain("%s needs a value: %s %s", option->name, option->name, option->value);
            return false;
        }
        value = argv[1];
        *used = 2;
    }
    arguments->given[arguments->given_count++] = (struct cfoil_given){option, value};
    return true;
}

static bool wants_help(int argc, char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

static bool check_words(const struct cfoil_arguments *arguments)
{
    const struct cfoil_command *command = arguments->command;
    if (arguments->word_count > command->words_max) {
        cfoil_complain("%s does not know what to do with `%s`; usage: counterfoil %s %s",
                       command->name, arguments->words[command->words_max], command->name,
                       command->usage);
        return false;
    }
    if (arguments->word_count < command->words_min) {
        cfoil_complain("%s needs more arguments; usage: counterfoil %s %s", command->name,
                       command->name, command->usage);
        return false;
    }
    return true;
}

bool cfoil_arguments_read(struct cfoil_arguments *arguments, const struct cfoil_command *command,
                          int argc, char *const *argv)
{
    memset(arguments, 0, sizeof(*arguments));
    arguments->command = command;
    arguments->help = wants_help(argc, argv);
    if (arguments->help) {
        return true;
    }
    if (argc > CFOIL_ARGUMENTS_MAX) {
        cfoil_complain("more than %d arguments", CFOIL_ARGUMENTS_MAX);
        return false;
    }

    bool options = true;
    for (int i = 0; i < argc;) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
            i++;
            continue;
        }
        /* A lone "-" is a word: it stands for standard input. */
        if (!options || argv[i][0] != '-' || argv[i][1] == '\0') {
            arguments->words[arguments->word_count++] = argv[i++];
            continue;
        }
        int used = 1;
        if (!take_option(arguments, argc - i, argv + i, &used)) {
            return false;
        }
        i += used;
    }
    return check_words(arguments);
}

const char *cfoil_option(const struct cfoil_arguments *arguments, const char *name)
{
    assert(find(arguments->command, name, strlen(name)) != NULL);
    for (size_t i = 0; i < arguments->given_count; i++) {
        if (strcmp(arguments->given[i].option->name, name) == 0) {
            return arguments->given[i].value;
        }
    }
    return NULL;
}

bool cfoil_flag(const struct cfoil_arguments *arguments, const char *name)
{
    return cfoil_option(arguments, name) != NULL;
}

size_t cfoil_option_all(const struct cfoil_arguments *arguments, const char *name,
                        const char **values, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < arguments->given_count && count < max; i++) {
        if (strcmp(arguments->given[i].option->name, name) == 0) {
            values[count++] = arguments->given[i].value;
        }
    }
    return count;
}

bool cfoil_number_read(const char *name, const char *text, long min, long max, long *number)
{
    char *end = NULL;
    errno = 0;
    *number = strtol(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9' && *end == '\0';
    if (!digits || errno != 0 || *number < min || *number > max) {
        cfoil_complain("%s takes a whole number from %ld to %ld; `%s` is not one", name, min, max,
                       text);
        return false;
    }
    return true;
}
