/* SPDX-License-Identifier: Apache-2.0 */
/* See operator.h. */
#include "cli/operator.h"

#define MINUTE_MS      INT64_C(60000)
#define TTL_DEFAULT_MS (24 * 60 * MINUTE_MS)
#define FAILED_MS      (10 * MINUTE_MS)

enum cfoil_exit cfoil_operator_run(const struct cfoil_arguments *arguments, cfoil_operator_act act,
                                   void *context)
{
    struct cfoil_records records;
    enum cfoil_exit status = cfoil_records_open(arguments, false, &records);
    if (status != CFOIL_EXIT_OK) {
        return status;
    }
    uint8_t id[CFOIL_ID_BYTES];
    status = cfoil_records_find(&records, arguments, id);
    if (status == CFOIL_EXIT_OK) {
        status = act(&records, arguments, id, context);
    }
    cfoil_records_close(&records);
    return status;
}

enum cfoil_exit cfoil_operator_terms(struct cfoil_records *records, const uint8_t *id,
                                     struct cfoil_terms *terms)
{
    terms->ttl_ms = TTL_DEFAULT_MS;
    terms->failed_ms = FAILED_MS;
    struct cfoil_op op = {0};
    struct cfoil_record record;
    enum cfoil_error error;
    enum cfoil_exit status = cfoil_records_get(records, id, &op, &record, &error);
    if (status != CFOIL_EXIT_OK || error != CFOIL_OK) {
        /* A corrupt one is refused by the act itself, with the reason. */
        cfoil_op_free_current(&op);
        return status;
    }

    const int64_t *at = record.at_ms;
    /* The last claim, renewal or settle set both; a probe's mark moves neither. */
    int64_t replay_ms = at[CFOIL_TIME_REPLAY_UNTIL] - at[CFOIL_TIME_SIGN_OF_LIFE];
    int64_t tombstone_ms = at[CFOIL_TIME_GONE_AT] - at[CFOIL_TIME_REPLAY_UNTIL];
    /* A FAILED record's own times are those of a failure, not of an answer. */
    if (record.state != CFOIL_STATE_FAILED && replay_ms > 0 && tombstone_ms >= 0) {
        terms->ttl_ms = replay_ms;
        terms->tombstone_ms = tombstone_ms;
    }
    cfoil_op_free_current(&op);
    return CFOIL_EXIT_OK;
}
