/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells to records and back, the mutants, and the digest of a world (search_world.h).
 */
#include "search_world.h"

enum { WORLD_START_MS = 1000, STATUS_CREATED = 201 };

void world_init(const struct search_config *config, struct world *world)
{
    unsigned i;

    memset(world, 0, sizeof(*world));
    world->now = WORLD_START_MS;
    world->lost_left = (uint8_t)config->lost;
    world->ticks_left = (uint8_t)config->ticks;
    world->operators_left = (uint8_t)config->operators;
    for (i = 0; i < config->actors; i++)
        world->actors[i].rounds_left = (uint8_t)config->rounds;
}

bool cell_gone(const struct cell *cell, int64_t now_ms)
{
    return !cell->present || now_ms >= cell->at_ms[CFOIL_TIME_GONE_AT];
}

static void record_of(const struct cell *cell, struct cfoil_record *record)
{
    memset(record, 0, sizeof(*record));
    record->generation = cell->generation;
    record->fence = cell->fence;
    record->attempt = cell->attempt;
    record->state = cell->state;
    record->cause = cell->cause;
    memcpy(record->at_ms, cell->at_ms, sizeof(record->at_ms));
    memset(record->owner, cell->owner, CFOIL_OWNER_BYTES);
    memset(record->prober, cell->prober, CFOIL_OWNER_BYTES);
    record->snapshot.status = cell->status;
}

static void cell_of(const struct cfoil_draft *draft, struct cell *cell)
{
    memset(cell, 0, sizeof(*cell));
    cell->present = true;
    cell->generation = draft->record.generation;
    cell->fence = draft->record.fence;
    cell->attempt = draft->record.attempt;
    cell->state = draft->record.state;
    cell->cause = draft->record.cause;
    memcpy(cell->at_ms, draft->record.at_ms, sizeof(cell->at_ms));
    memcpy(cell->form, draft->form, sizeof(cell->form));
    cell->owner = draft->record.owner[0];
    cell->prober = draft->record.prober[0];
    cell->status = draft->record.snapshot.status;
}

struct cell cell_stamp(const struct cell *draft, int64_t now_ms)
{
    struct cell stamped = *draft;
    unsigned i;

    for (i = 0; i < CFOIL_TIME_COUNT; i++)
        stamped.at_ms[i] = cfoil_time_resolve(draft->form[i], draft->at_ms[i], now_ms);
    memset(stamped.form, 0, sizeof(stamped.form));
    return stamped;
}

void world_event(const struct search_config *config, const struct world *world,
                 const struct actor *actor, enum cfoil_event_kind kind, struct cfoil_event *event)
{
    memset(event, 0, sizeof(*event));
    event->kind = kind;
    memset(event->owner, actor->token, CFOIL_OWNER_BYTES);
    event->entropy = ((uint64_t)world->serial + 1) * 64;
    event->terms.semantics = CFOIL_SEMANTICS_STRICT;
    event->terms.in_doubt = config->in_doubt;
    event->terms.lease_ms = WORLD_LEASE;
    event->terms.ttl_ms = WORLD_TTL;
    event->terms.tombstone_ms = WORLD_TOMBSTONE;
    event->terms.failed_ms = WORLD_FAILED;
    event->terms.trust_absent_after_ms = WORLD_TRUST;
    event->terms.probe_lease_ms = WORLD_PROBE_LEASE;
    event->terms.retry_after_ms = WORLD_RETRY_AFTER;
    event->origin.attempt = actor->attempt;
    event->origin.fence = actor->fence;
    event->origin.life_ms = actor->life;
    event->outcome = actor->outcome;
    event->cause = actor->cause;
    if (kind == CFOIL_EVENT_PROBE_FOUND || actor->outcome == CFOIL_STATE_SUCCEEDED)
        event->snapshot.status = STATUS_CREATED;
    event->asked_ms = actor->asked_ms;
    event->asked_generation = actor->asked_generation;
    event->lost_expect = actor->lost_expect;
}

/* Twists what goes in. Returns false if the record is to be withheld. */
static bool mutate_before(enum mutant mutant, struct cfoil_record *record, int64_t *now_ms,
                          struct cfoil_event *event)
{
    bool claims = event->kind == CFOIL_EVENT_CLAIM;

    if (mutant == MUTANT_SETTLE_IGNORES_OWNER && event->kind == CFOIL_EVENT_SETTLE)
        memcpy(record->owner, event->owner, CFOIL_OWNER_BYTES);
    if (mutant == MUTANT_CLAIM_IGNORES_LEASE && claims && record->state == CFOIL_STATE_PROCESSING &&
        *now_ms < record->at_ms[CFOIL_TIME_LEASE_UNTIL])
        *now_ms = record->at_ms[CFOIL_TIME_LEASE_UNTIL];
    if (mutant == MUTANT_HOLD_RETRIES)
        event->terms.in_doubt = CFOIL_IN_DOUBT_RETRY;
    if (mutant == MUTANT_OLD_ANSWER_TAKEN_FOR_NEW) {
        event->asked_ms = *now_ms;
        event->asked_generation = record->generation;
    }
    if (mutant == MUTANT_ABSENT_TRUSTED_AT_ONCE)
        event->terms.trust_absent_after_ms = 0;
    return !(mutant == MUTANT_ABSENT_AT_TOMBSTONE && claims &&
             *now_ms >= record->at_ms[CFOIL_TIME_REPLAY_UNTIL]);
}

static void mutate_after(enum mutant mutant, const struct cfoil_event *event,
                         struct cfoil_effect *effect)
{
    bool withdraws = event->kind == CFOIL_EVENT_WITHDRAW && effect->action == CFOIL_ACTION_WRITE;
    bool absent = effect->expect == CFOIL_EXPECT_ABSENT;

    if (mutant == MUTANT_RENEWAL_KEEPS_GENERATION && event->kind == CFOIL_EVENT_RENEW &&
        effect->action == CFOIL_ACTION_WRITE)
        effect->next.record.generation = effect->expect;
    if (mutant == MUTANT_WITHDRAW_LEAVES_ABSENT && withdraws && absent)
        effect->action = CFOIL_ACTION_ANSWER;
    if (mutant == MUTANT_WITHDRAW_LEAVES_GENERATION && withdraws && !absent)
        effect->action = CFOIL_ACTION_ANSWER;
}

void world_step(const struct search_config *config, const struct cell *cell, int64_t now_ms,
                struct cfoil_event *event, struct cfoil_effect *effect, struct cell *next)
{
    struct cfoil_record record;
    bool present = cell->present;

    record_of(cell, &record);
    if (present)
        present = mutate_before(config->mutant, &record, &now_ms, event);
    cfoil_step(present ? &record : NULL, now_ms, event, effect);
    mutate_after(config->mutant, event, effect);
    if (effect->action == CFOIL_ACTION_WRITE)
        cell_of(&effect->next, next);
}

/* FNV-1a over 64-bit words with a final mix: good enough to tell some millions of states apart. */
struct digest {
    uint64_t value;
};

static void mix(struct digest *digest, uint64_t word)
{
    digest->value ^= word + UINT64_C(0x9e3779b97f4a7c15);
    digest->value *= UINT64_C(0xff51afd7ed558ccd);
    digest->value ^= digest->value >> 32;
}

/* What is over stays over, however long: that is why deadlines are clipped at now. */
static uint64_t left(int64_t deadline_ms, int64_t now_ms)
{
    return deadline_ms > now_ms ? (uint64_t)(deadline_ms - now_ms) : 0;
}

static void mix_cell(struct digest *digest, const struct cell *cell, int64_t now_ms)
{
    const int64_t *at = cell->at_ms;

    mix(digest, cell_gone(cell, now_ms));
    if (cell_gone(cell, now_ms))
        return;
    mix(digest, cell->generation);
    mix(digest, cell->fence << 32 | cell->attempt);
    mix(digest, (uint64_t)cell->state << 48 | (uint64_t)cell->cause << 40 |
                    (uint64_t)cell->owner << 32 | (uint64_t)cell->prober << 24 | cell->status);
    mix(digest, left(at[CFOIL_TIME_LEASE_UNTIL], now_ms));
    mix(digest, left(at[CFOIL_TIME_REPLAY_UNTIL], now_ms));
    mix(digest, left(at[CFOIL_TIME_GONE_AT], now_ms));
    mix(digest, left(at[CFOIL_TIME_PROBE_UNTIL], now_ms));
    mix(digest, left(at[CFOIL_TIME_SIGN_OF_LIFE] + WORLD_TRUST, now_ms));
}

static void mix_actor(struct digest *digest, const struct actor *actor, int64_t now_ms)
{
    mix(digest, (uint64_t)actor->role << 56 | (uint64_t)actor->phase << 48 |
                    (uint64_t)actor->event << 40 | (uint64_t)actor->token << 32 |
                    (uint64_t)actor->rounds_left << 24 | (uint64_t)actor->renewals_left << 16 |
                    (uint64_t)actor->executed << 9 | (uint64_t)actor->revoked << 8 |
                    (uint64_t)actor->found);
    if (actor->role == ROLE_IDLE && actor->phase == PHASE_REST)
        return;
    mix(digest, (uint64_t)actor->outcome << 8 | (uint64_t)actor->cause);
    mix(digest, actor->lost_expect);
    mix(digest, left(actor->lease_until, now_ms));
    mix(digest, left(actor->sign_of_life + WORLD_TRUST, now_ms));
    mix(digest, actor->fence << 32 | actor->attempt);
    mix(digest, actor->asked_generation == actor->view.generation);
    mix(digest, (uint64_t)(now_ms - actor->view_now) << 32 | (uint32_t)(now_ms - actor->asked_ms));
    mix_cell(digest, &actor->view, actor->view_now);
}

static void mix_message(struct digest *digest, const struct message *message, int64_t now_ms)
{
    unsigned i;

    mix(digest, message->under_way);
    if (!message->under_way)
        return;
    mix(digest, (uint64_t)message->token << 32 | (uint64_t)message->event << 8 |
                    (uint64_t)message->withdrawn << 1 | (uint64_t)message->excused);
    mix(digest, message->expect);
    mix(digest, message->draft.generation);
    mix(digest, (uint64_t)message->draft.state << 32 | (uint64_t)message->draft.prober);
    for (i = 0; i < CFOIL_TIME_COUNT; i++) {
        bool at = message->draft.form[i] == CFOIL_TIME_AT;

        mix(digest, at ? left(message->draft.at_ms[i], now_ms) : (uint64_t)message->draft.at_ms[i]);
    }
}

uint64_t world_hash(const struct search_config *config, const struct world *world)
{
    struct digest digest = {UINT64_C(0xcbf29ce484222325)};
    unsigned i;

    mix_cell(&digest, &world->store, world->now);
    for (i = 0; i < config->actors; i++)
        mix_actor(&digest, &world->actors[i], world->now);
    for (i = 0; i < WORLD_MESSAGES_MAX; i++)
        mix_message(&digest, &world->messages[i], world->now);
    mix(&digest, (uint64_t)world->lost_left << 40 | (uint64_t)world->ticks_left << 32 |
                     (uint64_t)world->operators_left << 24 |
                     (uint64_t)(world->effects > 1 ? 2 : world->effects) << 8 |
                     (uint64_t)world->excused);
    mix(&digest, left(world->pending_until, world->now));
    return digest.value;
}
