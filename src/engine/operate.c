/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's act: one job on one record, read first, with memory of its own. */
#include <stdlib.h>

#include "engine/internal.h"

struct act {
    struct work work; /* first: an act is found by it */
    struct job job;
    uint8_t *arena;
    cfoil_operate_done done;
    void *context;
};

static void act_free(struct act *act)
{
    cfoil_job_free(&act->job);
    free(act->arena);
    cfoil_work_remove(&act->work);
    free(act);
}

static void act_drop(struct work *work)
{
    struct act *act = (struct act *)work;

    if (!act->job.active) {
        act_free(act);
    }
}

/* After a lost reply we asked again: what refuses us now may be our own act, applied before. */
static bool refused_by_itself(const struct job *job, enum cfoil_error error)
{
    if (!job->lost) {
        return false;
    }
    if (job->event.kind == CFOIL_EVENT_FORGET) {
        return error == CFOIL_E_NOT_FOUND;
    }
    return error == CFOIL_E_SETTLED && job->has_known &&
           memcmp(job->known.owner, job->event.owner, CFOIL_OWNER_BYTES) == 0;
}

static void act_finished(struct job *job, enum cfoil_error error)
{
    struct act *act = job->context;

    act->done(act->context, refused_by_itself(job, error) ? CFOIL_OK : error);
    act_free(act);
}

static enum cfoil_error fill_event(struct act *act, struct cfoil_engine *engine,
                                   const struct cfoil_event *event)
{
    struct cfoil_ending ending = {event->outcome, event->cause, event->snapshot, event->resource};
    struct cfoil_event *own = &act->job.event;

    *own = *event;
    memset(&own->origin, 0, sizeof(own->origin));
    enum cfoil_error error = cfoil_ending_copy(&ending, &own->reason, &act->arena);
    if (error != CFOIL_OK) {
        return error;
    }
    cfoil_event_take_ending(own, &ending);
    error = cfoil_engine_random(engine, own->owner, sizeof(own->owner));
    if (error != CFOIL_OK) {
        return error;
    }
    own->owner[0] |= 1; /* never all zero */
    return CFOIL_OK;
}

enum cfoil_error cfoil_operate(struct cfoil_engine *engine, const uint8_t id[CFOIL_ID_BYTES],
                               const struct cfoil_event *event, cfoil_operate_done done,
                               void *context)
{
    if (event->kind != CFOIL_EVENT_RESOLVE && event->kind != CFOIL_EVENT_RELEASE &&
        event->kind != CFOIL_EVENT_FORGET) {
        return CFOIL_E_INVALID;
    }

    struct act *act = calloc(1, sizeof(*act));
    if (act == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    cfoil_work_add(engine, &act->work, act_drop);
    cfoil_job_init(&act->job, &act->work, id);
    act->job.context = act;
    act->job.finish = act_finished;
    act->done = done;
    act->context = context;
    enum cfoil_error error = fill_event(act, engine, event);
    if (error != CFOIL_OK) {
        act_free(act);
        return error;
    }
    (void)cfoil_job_start_get(&act->job, &error);
    return CFOIL_OK;
}
