/* SPDX-License-Identifier: Apache-2.0 */
/* A look at one record on behalf of those who wait for its end. Decides nothing and writes nothing. */
#include <stdlib.h>

#include "engine/internal.h"

struct look {
    struct work work; /* first: a look is found by it */
    struct cfoil_op op;
    bool active; /* with the lane */
    bool followed;
    cfoil_glance_done done;
    void *context;
};

static void look_free(struct look *look)
{
    cfoil_op_free_current(&look->op);
    cfoil_work_remove(&look->work);
    free(look);
}

static void look_drop(struct work *work)
{
    struct look *look = (struct look *)work;

    if (!look->active) {
        look_free(look);
    }
}

static bool is_running(const struct cfoil_record *record, enum cfoil_state state, int64_t now_ms)
{
    return state == CFOIL_STATE_PROCESSING ||
           (state == CFOIL_STATE_IN_DOUBT && now_ms < record->at_ms[CFOIL_TIME_PROBE_UNTIL]);
}

/* What the op has found. False: an alias, whose primary's id now stands in the op. */
static bool read_op(struct look *look, struct cfoil_glance *glance)
{
    struct cfoil_op *op = &look->op;
    struct cfoil_record record;

    *glance = (struct cfoil_glance){.state = CFOIL_STATE_ABSENT};
    if (op->status != CFOIL_OP_CURRENT) {
        glance->error = op->error != CFOIL_OK ? op->error : CFOIL_E_STORE_UNAVAILABLE;
        return true;
    }
    if (op->current_bytes == 0) {
        return true;
    }
    glance->error = cfoil_record_decode(cfoil_bytes_of(op->current, op->current_bytes), &record);
    if (glance->error != CFOIL_OK) {
        return true;
    }
    glance->state = cfoil_record_effective(&record, op->now_ms);
    if (record.form != CFOIL_FORM_RECORD && glance->state != CFOIL_STATE_ABSENT &&
        !look->followed) {
        look->followed = true;
        memcpy(op->id, record.target, CFOIL_ID_BYTES);
        return false;
    }
    glance->running = is_running(&record, glance->state, op->now_ms);
    return true;
}

static void submit(struct look *look)
{
    look->op.status = CFOIL_OP_PENDING;
    cfoil_lane_submit(look->work.engine->lane, &look->op);
}

static void look_complete(struct cfoil_op *op)
{
    struct look *look = op->context;
    struct cfoil_glance glance;

    if (look->work.engine->closed) {
        look->active = false;
        look->work.drop(&look->work);
        return;
    }
    if (!read_op(look, &glance)) {
        submit(look);
        return;
    }
    look->active = false;
    look->work.engine->busy--;
    look->done(look->context, &glance);
    look_free(look);
}

/* By the store's own look-up, where it has one. True: the glance stands. */
static bool look_at_once(struct look *look, struct cfoil_glance *glance)
{
    while (cfoil_lane_lookup(look->work.engine->lane, &look->op) &&
           look->op.status == CFOIL_OP_CURRENT) {
        if (read_op(look, glance)) {
            return true;
        }
    }
    return false;
}

enum cfoil_error cfoil_look(struct cfoil_engine *engine, const uint8_t id[CFOIL_ID_BYTES],
                            cfoil_glance_done done, void *context, struct cfoil_glance *glance,
                            bool *ready)
{
    struct look *look = calloc(1, sizeof(*look));
    if (look == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    cfoil_work_add(engine, &look->work, look_drop);
    look->done = done;
    look->context = context;
    look->op.kind = CFOIL_OP_GET;
    look->op.done = look_complete;
    look->op.context = look;
    memcpy(look->op.id, id, CFOIL_ID_BYTES);
    engine->stats.looked++;

    *ready = look_at_once(look, glance);
    if (*ready) {
        look_free(look);
        return CFOIL_OK;
    }
    look->active = true;
    engine->busy++;
    submit(look);
    return CFOIL_OK;
}
