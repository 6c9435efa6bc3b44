/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil release: PROCESSING or IN_DOUBT becomes FAILED, and the next request runs. */
#include "cli/operator.h"

static enum cfoil_exit release(struct cfoil_records *records,
                               const struct cfoil_arguments *arguments, const uint8_t *id,
                               void *context)
{
    (void)context;
    struct cfoil_event event = {.kind = CFOIL_EVENT_RELEASE};
    event.force = cfoil_flag(arguments, "--force");
    event.reason = cfoil_bytes_text(cfoil_option(arguments, "--reason"));
    enum cfoil_exit status = cfoil_operator_terms(records, id, &event.terms);
    if (status != CFOIL_EXIT_OK) {
        return status;
    }
    return cfoil_records_act(records, id, &event, "released", cfoil_flag(arguments, "--json"));
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    return cfoil_operator_run(arguments, release, NULL);
}

static const struct cfoil_option options[] = {
    CFOIL_OPTION_STORE,
    CFOIL_OPTIONS_SCOPE,
    {"--reason", "TEXT", "why, kept in the record", false},
    {"--force", NULL,
     "also while the claim's lease is live: it may still be running, and\n"
     "its answer will not be stored",
     false},
    CFOIL_OPTION_JSON,
    {0},
};

const struct cfoil_command cfoil_command_release = {
    .name = "release",
    .summary = "let a record that is PROCESSING or IN_DOUBT run again",
    .usage = "[--store URL] ID | --key K [--tenant T] [--endpoint E] [--reason TEXT] [--force]",
    .text =
        "The record becomes FAILED: the next request with its key is executed. Use it when the\n"
        "backend's books say that it did not happen.\n\n"
        "Exit status: 0; 1 no such record, several, a live lease, or settled already; 2 wrong\n"
        "arguments; 3 the store does not serve.\n",
    .example = "  counterfoil release --store lmdb:/var/lib/counterfoil/store --key 7d0c1a52 \\\n"
               "      --reason 'not in the books'\n",
    .words_max = 1,
    .options = options,
    .run = run,
};
