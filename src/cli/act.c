/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one record, and an operator's act on it: the engine over a lane without a thread. */
#include <inttypes.h>
#include <time.h>

#include "cli/records.h"
#include "cli/render.h"
#include "fingerprint/digest.h"

static void note_done(struct cfoil_op *op)
{
    *(bool *)op->context = true;
}

enum cfoil_exit cfoil_records_get(struct cfoil_records *records, const uint8_t id[CFOIL_ID_BYTES],
                                  struct cfoil_op *op, struct cfoil_record *record,
                                  enum cfoil_error *error)
{
    bool done = false;
    op->kind = CFOIL_OP_GET;
    memcpy(op->id, id, CFOIL_ID_BYTES);
    op->done = note_done;
    op->context = &done;
    cfoil_lane_submit(records->lane, op);
    cfoil_lane_flush(records->lane);
    (void)cfoil_lane_poll(records->lane);

    *error = done && op->status == CFOIL_OP_CURRENT ? CFOIL_OK : op->error;
    if (*error == CFOIL_OK && op->current_bytes == 0) {
        cfoil_complain("there is no such record in %s", records->url);
        return CFOIL_EXIT_NO;
    }
    if (*error == CFOIL_OK) {
        *error = cfoil_record_decode(cfoil_bytes_of(op->current, op->current_bytes), record);
    }
    if (*error != CFOIL_OK && cfoil_error_class(*error) != CFOIL_CLASS_CORRUPT) {
        cfoil_complain("%s cannot be read: %s", records->url, cfoil_error_text(*error));
        return CFOIL_EXIT_SYSTEM;
    }
    return CFOIL_EXIT_OK;
}

struct outcome {
    bool done;
    enum cfoil_error error;
};

static void note_outcome(void *context, enum cfoil_error error)
{
    struct outcome *outcome = context;
    outcome->done = true;
    outcome->error = error;
}

/* Turns the engine's loop until the act is over. Without a thread a flush does the work itself. */
static void wait_for(struct cfoil_engine *engine, const struct outcome *outcome)
{
    while (!outcome->done) {
        cfoil_engine_flush(engine);
        cfoil_engine_poll(engine);
        int64_t due_ms = cfoil_engine_due_ms(engine);
        if (!outcome->done && due_ms > 0) {
            struct timespec pause = {due_ms / 1000, due_ms % 1000 * 1000000};
            (void)nanosleep(&pause, NULL);
        }
        cfoil_engine_tick(engine);
    }
}

static enum cfoil_exit explain(struct cfoil_records *records, const uint8_t *id,
                               const struct cfoil_event *event, enum cfoil_error error)
{
    if (cfoil_error_class(error) != CFOIL_CLASS_STATE) {
        cfoil_complain("not done: %s%s", cfoil_error_text(error),
                       cfoil_error_class(error) == CFOIL_CLASS_CORRUPT
                           ? "; only forget can end it: its key is then unknown again"
                           : "");
        return cfoil_error_class(error) == CFOIL_CLASS_CORRUPT ? CFOIL_EXIT_NO : CFOIL_EXIT_SYSTEM;
    }
    if (error == CFOIL_E_NOT_FOUND) {
        cfoil_complain("there is no such record in %s", records->url);
        return CFOIL_EXIT_NO;
    }

    struct cfoil_op op = {0};
    struct cfoil_record record;
    enum cfoil_error read_error;
    char until[CFOIL_TIME_TEXT_BYTES] = "-";
    const char *state = "?";
    if (cfoil_records_get(records, id, &op, &record, &read_error) == CFOIL_EXIT_OK &&
        read_error == CFOIL_OK) {
        (void)cfoil_time_text(record.at_ms[CFOIL_TIME_LEASE_UNTIL], until);
        state = cfoil_state_name(cfoil_record_effective(&record, op.now_ms));
    }
    cfoil_op_free_current(&op);
    if (error == CFOIL_E_LEASE_LIVE) {
        cfoil_complain(
            "refused: the claim may still be running, its lease is live until %s; wait%s", until,
            event->kind == CFOIL_EVENT_RELEASE
                ? ", or use --force if you know that it is not"
                : ", or release it with --force first if you know that it is not");
        return CFOIL_EXIT_NO;
    }
    cfoil_complain("refused: the record is %s already; forget it if its key is to be unknown again",
                   state);
    return CFOIL_EXIT_NO;
}

static enum cfoil_exit say_done(const uint8_t *id, const char *done, bool json)
{
    char hex[2 * CFOIL_ID_BYTES + 1];
    cfoil_hex(id, CFOIL_ID_BYTES, hex);
    if (!json) {
        (void)printf("%s %s\n", done, hex);
        return CFOIL_EXIT_OK;
    }
    json_t *object = json_object();
    (void)json_object_set_new(object, "id", json_string(hex));
    (void)json_object_set_new(object, "done", json_string(done));
    return cfoil_json_print(object, true) ? CFOIL_EXIT_OK : CFOIL_EXIT_SYSTEM;
}

enum cfoil_exit cfoil_records_act(struct cfoil_records *records, const uint8_t id[CFOIL_ID_BYTES],
                                  const struct cfoil_event *event, const char *done, bool json)
{
    struct cfoil_engine *engine = NULL;
    struct cfoil_engine_options options = {.lane = records->lane};
    struct outcome outcome = {false, CFOIL_OK};
    enum cfoil_error error = cfoil_engine_create(&options, &engine);
    if (error == CFOIL_OK) {
        error = cfoil_operate(engine, id, event, note_outcome, &outcome);
    }
    if (error == CFOIL_OK) {
        wait_for(engine, &outcome);
        error = outcome.error;
    }
    cfoil_engine_free(engine);
    return error == CFOIL_OK ? say_done(id, done, json) : explain(records, id, event, error);
}
