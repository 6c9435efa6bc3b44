/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actions of actors, messages, operator and time, and the depth-first walk over them.
 * Each action copies the world, changes the copy, has it checked and walks on from there.
 */
#include "search_walk.h"

#include <stdlib.h>

#include "search_check.h"

enum { OPERATOR_TOKEN = 200 };

struct walk {
    const struct search_config *config;
    struct walk_result *result;
    uint64_t *seen; /* open addressing, 0 free */
    size_t seen_mask;
    unsigned long states_max;
    unsigned depth;
    bool overflow;
};

static bool walk_on(struct walk *walk, struct world *world);

/* True the first time a state is met. */
static bool remember(struct walk *walk, const struct world *world)
{
    uint64_t hash = world_hash(walk->config, world) | 1;
    size_t slot = (size_t)hash & walk->seen_mask;

    while (walk->seen[slot] != 0) {
        if (walk->seen[slot] == hash)
            return false;
        slot = (slot + 1) & walk->seen_mask;
    }
    walk->seen[slot] = hash;
    walk->result->states++;
    if (walk->result->states >= walk->states_max)
        walk->overflow = true;
    return true;
}

/* Ends one action: judge it, and walk on if the state is new. False stops the whole walk. */
static bool arrive(struct walk *walk, struct world *world, unsigned actor, const char *what,
                   const char *broken)
{
    bool going;

    walk->result->transitions++;
    if (walk->depth >= WALK_DEPTH_MAX) {
        walk->overflow = true;
        return false;
    }
    walk->result->path[walk->depth].actor = actor;
    walk->result->path[walk->depth].what = what;
    walk->result->path[walk->depth].now = world->now;
    walk->result->path[walk->depth].state =
        world->store.present ? world->store.state : CFOIL_STATE_ABSENT;
    walk->depth++;
    if (broken == NULL)
        broken = check_world(walk->config, world);
    if (broken != NULL) {
        walk->result->broken = broken;
        walk->result->depth = walk->depth;
        return false;
    }
    going = walk_on(walk, world);
    walk->depth--;
    return going;
}

static void use_generation(struct world *world, uint64_t generation)
{
    unsigned i = world->used_count;

    if (world->used_count == WORLD_USED_MAX)
        abort();
    while (i > 0 && world->used[i - 1] > generation) {
        world->used[i] = world->used[i - 1];
        i--;
    }
    world->used[i] = generation;
    world->used_count++;
}

/* One cas. Returns whether it was applied; *broken tells a rule it broke. */
static bool cas(struct walk *walk, struct world *world, enum cfoil_event_kind kind, uint8_t token,
                uint64_t expect, const struct cell *draft, const char **broken)
{
    bool gone = cell_gone(&world->store, world->now);
    struct cell after;

    if (expect == CFOIL_EXPECT_ABSENT ? !gone : gone || world->store.generation != expect)
        return false;
    after = cell_stamp(draft, world->now);
    *broken = check_applied(walk->config, world, kind, token, &after);
    use_generation(world, after.generation);
    world->store = after;
    return true;
}

static void rest(struct actor *actor)
{
    uint8_t rounds_left = actor->rounds_left;

    memset(actor, 0, sizeof(*actor));
    actor->rounds_left = rounds_left;
}

static void become_executor(struct walk *walk, struct actor *actor, const struct cell *record)
{
    actor->role = ROLE_EXECUTOR;
    actor->phase = PHASE_REST;
    actor->renewals_left = (uint8_t)walk->config->renewals;
    actor->lease_until = record->at_ms[CFOIL_TIME_LEASE_UNTIL];
    actor->sign_of_life = record->at_ms[CFOIL_TIME_SIGN_OF_LIFE];
    actor->life = record->at_ms[CFOIL_TIME_LIFE];
    actor->fence = record->fence;
    actor->attempt = record->attempt;
    actor->lost_expect = 0;
}

static void withdrawn(struct world *world, uint8_t token)
{
    unsigned i;

    for (i = 0; i < WORLD_MESSAGES_MAX; i++) {
        if (world->messages[i].under_way && world->messages[i].token == token)
            world->messages[i].withdrawn = true;
    }
}

/* The actor learns the end of what it asked. Its view is the record as it is for it now. */
static void learn(struct walk *walk, struct world *world, struct actor *actor,
                  const struct cfoil_effect *effect)
{
    bool refused = effect->action == CFOIL_ACTION_REFUSE;

    if (actor->event == CFOIL_EVENT_RENEW) {
        actor->phase = PHASE_REST;
        actor->renewals_left = 0;
        if (!refused) {
            actor->lease_until = actor->view.at_ms[CFOIL_TIME_LEASE_UNTIL];
            actor->sign_of_life = actor->view.at_ms[CFOIL_TIME_SIGN_OF_LIFE];
        }
        return;
    }
    if (actor->event == CFOIL_EVENT_SETTLE) {
        if (world->pending_until != 0 && effect->action == CFOIL_ACTION_WRITE)
            world->pending_until = world->now + WORLD_TRUST;
        rest(actor);
        return;
    }
    if (actor->event == CFOIL_EVENT_WITHDRAW) {
        withdrawn(world, actor->token);
        rest(actor);
        return;
    }
    if (effect->verdict == CFOIL_VERDICT_EXECUTE) {
        become_executor(walk, actor, &actor->view);
        return;
    }
    if (effect->verdict != CFOIL_VERDICT_PROBE) {
        rest(actor);
        return;
    }
    actor->role = ROLE_PROBER;
    actor->asked_ms = actor->view_now;
    actor->asked_generation = actor->view.generation;
    actor->phase = PHASE_REST;
    actor->found = CFOIL_EVENT_COUNT;
}

static struct message *free_message(struct world *world)
{
    unsigned i;

    for (i = 0; i < WORLD_MESSAGES_MAX; i++) {
        if (!world->messages[i].under_way)
            return &world->messages[i];
    }
    return NULL;
}

/* What the core says to the actor's event on the actor's view. */
struct decision {
    struct cfoil_effect effect;
    struct cell draft;
    const char *broken;
};

static void decide(struct walk *walk, const struct world *world, const struct actor *actor,
                   struct decision *decision)
{
    struct cfoil_event event;

    world_event(walk->config, world, actor, actor->event, &event);
    world_step(walk->config, &actor->view, actor->view_now, &event, &decision->effect,
               &decision->draft);
    decision->broken = check_decision(actor, &decision->effect, actor->event);
}

/*
 * The actor sees the record as it is. An answer or refusal needs no cas, so it is taken at once;
 * a write is under way from here on, and others may come first.
 */
static bool look(struct walk *walk, struct world *world, unsigned index, const char *what)
{
    struct actor *actor = &world->actors[index];
    struct decision decision;

    actor->phase = PHASE_ASK;
    actor->view = world->store;
    actor->view_now = world->now;
    decide(walk, world, actor, &decision);
    if (decision.effect.action != CFOIL_ACTION_WRITE)
        learn(walk, world, actor, &decision.effect);
    return arrive(walk, world, index, what, decision.broken);
}

static bool lose(struct walk *walk, struct world *world, unsigned index,
                 const struct decision *decision)
{
    struct actor *actor = &world->actors[index];
    struct message *message = free_message(world);

    if (world->lost_left == 0 || message == NULL)
        return true;
    world->lost_left--;
    memset(message, 0, sizeof(*message));
    message->under_way = true;
    message->token = actor->token;
    message->event = actor->event;
    message->expect = decision->effect.expect;
    message->draft = decision->draft;
    if (actor->event != CFOIL_EVENT_WITHDRAW)
        actor->lost_expect = decision->effect.expect;
    actor->phase = PHASE_LOST;
    return arrive(walk, world, index, "its reply is lost", decision->broken);
}

/* Puts the actor's event to the core and carries the effect out; `loses` loses the reply. */
static bool ask(struct walk *walk, const struct world *from, unsigned index, bool loses)
{
    struct world world = *from;
    struct actor *actor = &world.actors[index];
    enum cfoil_event_kind kind = actor->event;
    struct decision decision;

    decide(walk, &world, actor, &decision);
    if (decision.effect.action != CFOIL_ACTION_WRITE) {
        if (loses)
            return true; /* there is no reply to lose */
        learn(walk, &world, actor, &decision.effect);
        return arrive(walk, &world, index, cfoil_event_name(kind), decision.broken);
    }
    if (decision.effect.expect == CFOIL_EXPECT_ABSENT)
        world.serial++;
    if (loses)
        return lose(walk, &world, index, &decision);
    if (!cas(walk, &world, kind, actor->token, decision.effect.expect, &decision.draft,
             &decision.broken))
        return look(walk, &world, index, "conflict");
    actor->view = world.store;
    actor->view_now = world.now;
    learn(walk, &world, actor, &decision.effect);
    return arrive(walk, &world, index, cfoil_event_name(kind), decision.broken);
}

static bool ask_both(struct walk *walk, const struct world *world, unsigned index)
{
    return ask(walk, world, index, false) && ask(walk, world, index, true);
}

static bool begin(struct walk *walk, const struct world *from, unsigned index,
                  enum cfoil_event_kind kind, enum cfoil_state outcome, enum cfoil_cause cause)
{
    struct world world = *from;
    struct actor *actor = &world.actors[index];

    actor->event = kind;
    actor->outcome = outcome;
    actor->cause = cause;
    return ask_both(walk, &world, index);
}

/* Claims without looking first: the duplicate's conflict brings the record. */
static bool begin_claim(struct walk *walk, const struct world *from, unsigned index)
{
    struct world world = *from;
    struct actor *actor = &world.actors[index];

    if (actor->rounds_left == 0)
        return true;
    actor->token =
        (uint8_t)(1 + index * walk->config->rounds + (walk->config->rounds - actor->rounds_left));
    actor->rounds_left--;
    actor->view_now = world.now;
    actor->event = CFOIL_EVENT_CLAIM;
    return ask_both(walk, &world, index);
}

/* A request that timed out may take effect later, but within trust of the last sign of life. */
static bool settle_timed_out(struct walk *walk, const struct world *from, unsigned index)
{
    struct world world = *from;
    struct actor *actor = &world.actors[index];

    if (!actor->executed && world.now < actor->sign_of_life + WORLD_TRUST)
        world.pending_until = actor->sign_of_life + WORLD_TRUST;
    return begin(walk, &world, index, CFOIL_EVENT_SETTLE, CFOIL_STATE_IN_DOUBT,
                 CFOIL_CAUSE_TIMEOUT);
}

static bool act_executor(struct walk *walk, const struct world *from, unsigned index)
{
    const struct actor *actor = &from->actors[index];
    bool may_send = walk->config->in_doubt != CFOIL_IN_DOUBT_PROBE ||
                    from->now < actor->sign_of_life + WORLD_TRUST;

    if (!actor->executed && may_send) {
        struct world world = *from;

        world.actors[index].executed = true;
        world.effects++;
        if (!arrive(walk, &world, index, "the backend executes", NULL))
            return false;
    }
    if (actor->renewals_left > 0 &&
        !begin(walk, from, index, CFOIL_EVENT_RENEW, CFOIL_STATE_ABSENT, CFOIL_CAUSE_NONE))
        return false;
    if (!settle_timed_out(walk, from, index))
        return false;
    if (!begin(walk, from, index, CFOIL_EVENT_SETTLE, CFOIL_STATE_IN_DOUBT,
               CFOIL_CAUSE_BACKEND_CLOSED))
        return false;
    return begin(walk, from, index, CFOIL_EVENT_SETTLE,
                 actor->executed ? CFOIL_STATE_SUCCEEDED : CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
}

/* The backend answers a probe with the truth of that moment, or not at all. */
static bool ask_backend(struct walk *walk, const struct world *from, unsigned index, bool clear)
{
    struct world world = *from;
    struct actor *actor = &world.actors[index];

    actor->found = CFOIL_EVENT_PROBE_UNCLEAR;
    if (clear)
        actor->found = world.effects > 0 ? CFOIL_EVENT_PROBE_FOUND : CFOIL_EVENT_PROBE_ABSENT;
    return arrive(walk, &world, index, cfoil_event_name(actor->found), NULL);
}

static bool act_prober(struct walk *walk, const struct world *from, unsigned index)
{
    struct world world = *from;
    struct actor *actor = &world.actors[index];

    if (actor->found == CFOIL_EVENT_COUNT)
        return ask_backend(walk, from, index, true) && ask_backend(walk, from, index, false);
    /* As engines do: the record is read again, and the answer may be old by then. */
    actor->view = world.store;
    actor->view_now = world.now;
    actor->event = actor->found;
    return ask_both(walk, &world, index);
}

static bool act_lost(struct walk *walk, const struct world *from, unsigned index)
{
    struct world world = *from;
    struct actor *actor = &world.actors[index];
    bool unexecuted = actor->role != ROLE_EXECUTOR && actor->event != CFOIL_EVENT_WITHDRAW;

    if (!look(walk, &world, index, "reads"))
        return false;
    if (!unexecuted)
        return true;
    world = *from;
    actor->event = CFOIL_EVENT_WITHDRAW;
    return look(walk, &world, index, "reads, to withdraw");
}

static bool act(struct walk *walk, const struct world *world, unsigned index)
{
    const struct actor *actor = &world->actors[index];

    if (actor->phase == PHASE_LOST)
        return act_lost(walk, world, index);
    if (actor->phase == PHASE_ASK)
        return ask_both(walk, world, index);
    if (actor->role == ROLE_EXECUTOR)
        return act_executor(walk, world, index);
    if (actor->role == ROLE_PROBER)
        return act_prober(walk, world, index);
    return begin_claim(walk, world, index);
}

/* R12: what was withdrawn never applies, as long as the record was not gone in between. */
static bool deliver(struct walk *walk, const struct world *from, unsigned index)
{
    struct world world = *from;
    struct message message = world.messages[index];
    const char *broken = NULL;

    memset(&world.messages[index], 0, sizeof(world.messages[index]));
    if (cas(walk, &world, message.event, message.token, message.expect, &message.draft, &broken) &&
        message.withdrawn && !message.excused)
        broken = "R12: a withdrawn cas arrived late and was applied";
    return arrive(walk, &world, WORLD_ACTORS_MAX, "a lost cas arrives", broken);
}

static void excuse(struct world *world)
{
    unsigned i;

    for (i = 0; i < WORLD_MESSAGES_MAX; i++) {
        if (world->messages[i].withdrawn)
            world->messages[i].excused = true;
    }
}

static void sooner(int64_t deadline_ms, int64_t now_ms, int64_t *next)
{
    if (deadline_ms > now_ms && (*next == 0 || deadline_ms < *next))
        *next = deadline_ms;
}

/* Time jumps to the next deadline that anybody minds. */
static bool tick(struct walk *walk, const struct world *from)
{
    struct world world = *from;
    const int64_t *at = world.store.at_ms;
    int64_t next = 0;

    if (world.ticks_left == 0 || !world.store.present)
        return true;
    sooner(at[CFOIL_TIME_LEASE_UNTIL], world.now, &next);
    sooner(at[CFOIL_TIME_REPLAY_UNTIL], world.now, &next);
    sooner(at[CFOIL_TIME_GONE_AT], world.now, &next);
    sooner(at[CFOIL_TIME_PROBE_UNTIL], world.now, &next);
    sooner(at[CFOIL_TIME_SIGN_OF_LIFE] + WORLD_TRUST, world.now, &next);
    if (next == 0)
        return true;
    world.ticks_left--;
    world.now = next;
    if (cell_gone(&world.store, world.now)) {
        excuse(&world);
        if (world.store.state != CFOIL_STATE_FAILED)
            world.excused = true;
    }
    return arrive(walk, &world, WORLD_ACTORS_MAX, "time passes", NULL);
}

/* An operator reads and writes in one go; who executes believes on, but is no longer counted. */
static bool operate(struct walk *walk, const struct world *from, enum cfoil_event_kind kind,
                    bool force)
{
    struct world world = *from;
    struct actor operator= {.token = (uint8_t)(OPERATOR_TOKEN + world.operators_left),
                            .outcome = CFOIL_STATE_SUCCEEDED};
    struct cfoil_event event;
    struct cfoil_effect effect;
    struct cell draft;
    const char *broken = NULL;
    unsigned i;

    world_event(walk->config, &world, &operator, kind, &event);
    event.force = force;
    world_step(walk->config, &world.store, world.now, &event, &effect, &draft);
    if (effect.action != CFOIL_ACTION_WRITE)
        return true;
    world.operators_left--;
    if (!cas(walk, &world, kind, operator.token, effect.expect, &draft, &broken))
        return true;
    for (i = 0; i < walk->config->actors; i++)
        world.actors[i].revoked = world.actors[i].role == ROLE_EXECUTOR;
    world.excused = true;
    if (kind == CFOIL_EVENT_FORGET)
        excuse(&world);
    return arrive(walk, &world, WORLD_ACTORS_MAX, cfoil_event_name(kind), broken);
}

static bool walk_on(struct walk *walk, struct world *world)
{
    unsigned i;

    if (!remember(walk, world))
        return true;
    if (walk->overflow)
        return false;
    for (i = 0; i < walk->config->actors; i++) {
        if (!act(walk, world, i))
            return false;
    }
    for (i = 0; i < WORLD_MESSAGES_MAX; i++) {
        if (world->messages[i].under_way && !deliver(walk, world, i))
            return false;
    }
    if (world->operators_left > 0 && world->store.present) {
        if (!operate(walk, world, CFOIL_EVENT_FORGET, false) ||
            !operate(walk, world, CFOIL_EVENT_RELEASE, true) ||
            !operate(walk, world, CFOIL_EVENT_RESOLVE, false))
            return false;
    }
    return tick(walk, world);
}

bool search_walk(const struct search_config *config, unsigned long states_max,
                 struct walk_result *result)
{
    struct walk walk = {.config = config, .result = result, .states_max = states_max};
    struct world world;
    size_t slots = 1;

    memset(result, 0, sizeof(*result));
    while (slots < states_max * 2)
        slots *= 2;
    walk.seen = calloc(slots, sizeof(*walk.seen));
    if (walk.seen == NULL)
        return false;
    walk.seen_mask = slots - 1;
    world_init(config, &world);
    (void)walk_on(&walk, &world);
    free(walk.seen);
    return !walk.overflow;
}
