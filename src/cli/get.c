/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil get: one record in full. */
#include "cli/records.h"
#include "cli/render.h"

static enum cfoil_exit show(struct cfoil_records *records, const struct cfoil_arguments *arguments)
{
    uint8_t id[CFOIL_ID_BYTES];
    enum cfoil_exit status = cfoil_records_find(records, arguments, id);
    if (status != CFOIL_EXIT_OK) {
        return status;
    }

    struct cfoil_op op = {0};
    struct cfoil_record record;
    enum cfoil_error error;
    bool json = cfoil_flag(arguments, "--json");
    status = cfoil_records_get(records, id, &op, &record, &error);
    if (status == CFOIL_EXIT_OK && error != CFOIL_OK) {
        cfoil_complain("the record is CORRUPT: %s; requests with its key are refused until forget "
                       "makes the key unknown",
                       cfoil_error_text(error));
        status = CFOIL_EXIT_NO;
        if (json && !cfoil_json_print(cfoil_corrupt_json(id, error), false)) {
            status = CFOIL_EXIT_SYSTEM;
        }
    } else if (status == CFOIL_EXIT_OK && !json) {
        cfoil_record_print(id, &record, op.now_ms, cfoil_colour_wanted(stdout));
    } else if (status == CFOIL_EXIT_OK &&
               !cfoil_json_print(cfoil_record_json(id, &record, op.now_ms), false)) {
        cfoil_complain("out of memory");
        status = CFOIL_EXIT_SYSTEM;
    }
    cfoil_op_free_current(&op);
    return status;
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    struct cfoil_records records;
    enum cfoil_exit status = cfoil_records_open(arguments, true, &records);
    if (status != CFOIL_EXIT_OK) {
        return status;
    }
    status = show(&records, arguments);
    cfoil_records_close(&records);
    return status;
}

static const struct cfoil_option options[] = {
    CFOIL_OPTION_STORE,
    CFOIL_OPTIONS_SCOPE,
    CFOIL_OPTION_JSON,
    {0},
};

const struct cfoil_command cfoil_command_get = {
    .name = "get",
    .summary = "show one record",
    .usage = "[--store URL] ID | --key K [--tenant T] [--endpoint E] [--json]",
    .text = "Shows the record as a reader sees it now: a claim whose lease is over is IN_DOUBT, a\n"
            "record past its retention a TOMBSTONE. The store may be in use by a gateway.\n\n"
            "Exit status: 0; 1 if there is no such record, several, or one that cannot be read;\n"
            "2 wrong arguments; 3 the store does not serve.\n",
    .example = "  counterfoil get --store lmdb:/var/lib/counterfoil/store --key 7d0c1a52\n",
    .words_max = 1,
    .options = options,
    .run = run,
};
