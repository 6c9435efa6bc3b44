/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil forget: the key is unknown again. */
#include "cli/operator.h"

static enum cfoil_exit forget(struct cfoil_records *records,
                              const struct cfoil_arguments *arguments, const uint8_t *id,
                              void *context)
{
    (void)context;
    struct cfoil_event event = {.kind = CFOIL_EVENT_FORGET};
    return cfoil_records_act(records, id, &event, "forgotten", cfoil_flag(arguments, "--json"));
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    return cfoil_operator_run(arguments, forget, NULL);
}

static const struct cfoil_option options[] = {
    CFOIL_OPTION_STORE,
    CFOIL_OPTIONS_SCOPE,
    CFOIL_OPTION_JSON,
    {0},
};

const struct cfoil_command cfoil_command_forget = {
    .name = "forget",
    .summary = "make a key unknown again",
    .usage = "[--store URL] ID | --key K [--tenant T] [--endpoint E]",
    .text =
        "Ends the record in whatever state it is, also one that cannot be read: the next request\n"
        "with its key is a first one, and is executed. A claim that is running still gets its\n"
        "backend's answer, which is not stored.\n\n"
        "Exit status: 0; 1 no such record, or several; 2 wrong arguments; 3 the store does not\n"
        "serve.\n",
    .example = "  counterfoil forget --store lmdb:/var/lib/counterfoil/store --key 7d0c1a52\n",
    .words_max = 1,
    .options = options,
    .run = run,
};
