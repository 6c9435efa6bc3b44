/* SPDX-License-Identifier: Apache-2.0 */
/* The rules R1, R2, R5, R9 and R11 over the search's world; R12 is in search_walk.c (delivery). */
#include "search_check.h"

const char *check_decision(const struct actor *actor, const struct cfoil_effect *effect,
                           enum cfoil_event_kind kind)
{
    const struct cell *view = &actor->view;
    bool gone = cell_gone(view, actor->view_now);
    bool owner_acts = kind == CFOIL_EVENT_RENEW || kind == CFOIL_EVENT_SETTLE;
    bool writes = effect->action == CFOIL_ACTION_WRITE;

    if (writes && (effect->expect == CFOIL_EXPECT_ABSENT) != gone)
        return "R9: absent was expected of a record that is not gone, or not of one that is";
    if (owner_acts && !gone && view->owner == actor->token && effect->error == CFOIL_E_NOT_OWNER)
        return "R2: the owner was refused while nobody had changed the owner";
    if (owner_acts && !gone && view->owner == actor->token &&
        view->state == CFOIL_STATE_PROCESSING && !writes)
        return "R2: the owner of an unsettled claim could not renew or settle it";
    if (owner_acts && !gone && view->owner != actor->token && effect->action != CFOIL_ACTION_REFUSE)
        return "R2: a late owner was not refused";
    return NULL;
}

static const char *check_times(const struct cell *after)
{
    const int64_t *at = after->at_ms;

    if (at[CFOIL_TIME_GONE_AT] < at[CFOIL_TIME_REPLAY_UNTIL])
        return "R9: gone before its replay is over";
    if (after->state == CFOIL_STATE_PROCESSING &&
        at[CFOIL_TIME_REPLAY_UNTIL] < at[CFOIL_TIME_LEASE_UNTIL] &&
        at[CFOIL_TIME_GONE_AT] > at[CFOIL_TIME_UPDATED])
        return "R9: an unsettled record expires before its lease";
    if (after->generation == 0 || after->generation > (uint64_t)CFOIL_GENERATION_MAX)
        return "R11: a generation out of range";
    return NULL;
}

/* A new executor over a record that is there: FAILED, or in doubt as the policy allows. */
static const char *check_take(const struct search_config *config, const struct world *world,
                              enum cfoil_event_kind kind)
{
    const struct cell *before = &world->store;
    bool in_doubt = before->state == CFOIL_STATE_IN_DOUBT ||
                    (before->state == CFOIL_STATE_PROCESSING &&
                     world->now >= before->at_ms[CFOIL_TIME_LEASE_UNTIL]);

    if (before->state == CFOIL_STATE_FAILED)
        return NULL;
    if (!in_doubt)
        return "R1: a second claim while the first was live or settled";
    if (config->in_doubt == CFOIL_IN_DOUBT_HOLD)
        return "hold: a second execution of a record that is neither FAILED, forgotten nor gone";
    if (config->in_doubt == CFOIL_IN_DOUBT_PROBE && kind != CFOIL_EVENT_PROBE_ABSENT)
        return "probe: a take-over without a probe's answer";
    return NULL;
}

static const char *check_change(const struct search_config *config, const struct world *world,
                                enum cfoil_event_kind kind, uint8_t token, const struct cell *after)
{
    const struct cell *before = &world->store;
    bool replays =
        before->state == CFOIL_STATE_SUCCEEDED || before->state == CFOIL_STATE_FAILED_FINAL;
    bool forgotten = kind == CFOIL_EVENT_FORGET;

    if (after->at_ms[CFOIL_TIME_LIFE] != before->at_ms[CFOIL_TIME_LIFE])
        return "life changed within one life";
    if (after->fence < before->fence || after->attempt < before->attempt)
        return "fence or attempt went back within one life";
    if (replays && (after->state != before->state || after->status != before->status))
        return "R5: what was settled was changed";
    if (replays && !forgotten &&
        after->at_ms[CFOIL_TIME_REPLAY_UNTIL] != before->at_ms[CFOIL_TIME_REPLAY_UNTIL])
        return "R9: retention of a settled record was moved";
    if ((kind == CFOIL_EVENT_RENEW || kind == CFOIL_EVENT_SETTLE) && before->owner != token)
        return "R2: applied on a record of another owner";
    if (after->fence != before->fence)
        return check_take(config, world, kind);
    return NULL;
}

const char *check_applied(const struct search_config *config, const struct world *world,
                          enum cfoil_event_kind kind, uint8_t token, const struct cell *after)
{
    const char *broken = check_times(after);
    unsigned i;

    if (broken != NULL)
        return broken;
    for (i = 0; i < world->used_count; i++) {
        if (world->used[i] == after->generation)
            return "R11: a generation was used twice";
    }
    if (cell_gone(&world->store, world->now))
        return NULL;
    return check_change(config, world, kind, token, after);
}

const char *check_world(const struct search_config *config, const struct world *world)
{
    unsigned live = 0, i;

    for (i = 0; i < config->actors; i++) {
        const struct actor *actor = &world->actors[i];

        bool ending = actor->phase != PHASE_REST && actor->event == CFOIL_EVENT_SETTLE;

        /* Who has begun to settle executes no more, whether or not its settle has arrived. */
        if (actor->role == ROLE_EXECUTOR && !ending && !actor->revoked &&
            actor->lease_until > world->now)
            live++;
    }
    if (live > 1)
        return "R1: two executors with a live claim";
    if (world->effects > 1 && !world->excused && config->in_doubt != CFOIL_IN_DOUBT_RETRY)
        return "the backend executed twice without operator, expiry or `retry`";
    return NULL;
}
