/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil sweep: one whole pass that removes records which are gone. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/records.h"

static enum cfoil_exit sweep(struct cfoil_records *records, bool json)
{
    struct cfoil_sweep step = {0};
    uint64_t examined = 0;
    uint64_t removed = 0;
    do {
        enum cfoil_error error = records->ops->sweep(records->store, &step, CFOIL_SWEEP_STEP_MAX);
        if (error != CFOIL_OK) {
            cfoil_complain("%s cannot be swept: %s", records->url, cfoil_error_text(error));
            return CFOIL_EXIT_SYSTEM;
        }
        examined += step.examined;
        removed += step.removed;
    } while (!step.wrapped);

    (void)printf(json ? "{\"examined\": %" PRIu64 ", \"removed\": %" PRIu64 "}\n"
                      : "%" PRIu64 " looked at, %" PRIu64 " removed\n",
                 examined, removed);
    return CFOIL_EXIT_OK;
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    struct cfoil_records records;
    enum cfoil_exit status = cfoil_records_open(arguments, false, &records);
    if (status != CFOIL_EXIT_OK) {
        return status;
    }
    status = sweep(&records, cfoil_flag(arguments, "--json"));
    cfoil_records_close(&records);
    return status;
}

static const struct cfoil_option options[] = {
    CFOIL_OPTION_STORE,
    CFOIL_OPTION_JSON,
    {0},
};

const struct cfoil_command cfoil_command_sweep = {
    .name = "sweep",
    .summary = "remove the records that are gone",
    .usage = "[--store URL] [--json]",
    .text =
        "A record past its retention and tombstone is gone whether it was swept or not; sweeping\n"
        "gives its room back. A running gateway does it by itself. Records that cannot be read\n"
        "are left.\n\n"
        "Exit status: 0; 2 wrong arguments; 3 the store does not serve.\n",
    .example = "  counterfoil sweep --store lmdb:/var/lib/counterfoil/store\n",
    .options = options,
    .run = run,
};
