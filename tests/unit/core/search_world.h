/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small world for the state-space search: one record in a store that compares and swaps, two or
 * three actors that ask cfoil_step what to do, replies that get lost, messages that arrive late, an
 * operator, and a backend that counts what was really executed.
 *
 *   IDLE --claim--> EXECUTOR --effect, renew, settle--> IDLE
 *     \------claim--> PROBER --ask the backend--> PROBE_FOUND, _ABSENT, _UNCLEAR --> ...
 *   a lost reply: read and ask again with the same event, or (not executed) withdraw
 *
 * Invariant: nothing in the world knows the protocol; every decision comes from cfoil_step, and
 * every rule is judged from outside (search_check.c) on what was applied and executed.
 */
#ifndef CFOIL_TEST_SEARCH_WORLD_H
#define CFOIL_TEST_SEARCH_WORLD_H

#include "core/protocol.h"

#define WORLD_ACTORS_MAX   3
#define WORLD_MESSAGES_MAX 2
#define WORLD_USED_MAX     40

/* Durations of the search's only policy, ms; ordered so that every boundary falls apart. */
enum {
    WORLD_LEASE = 10,
    WORLD_TTL = 50,
    WORLD_TOMBSTONE = 30,
    WORLD_FAILED = 20,
    WORLD_TRUST = 15,
    WORLD_PROBE_LEASE = 7,
    WORLD_RETRY_AFTER = 3
};

/* Rules broken on purpose, between the world and cfoil_step: the search must find each of them. */
enum mutant {
    MUTANT_NONE,
    MUTANT_SETTLE_IGNORES_OWNER,
    MUTANT_CLAIM_IGNORES_LEASE,
    MUTANT_HOLD_RETRIES,
    MUTANT_ABSENT_AT_TOMBSTONE,
    MUTANT_RENEWAL_KEEPS_GENERATION,
    MUTANT_WITHDRAW_LEAVES_ABSENT,
    MUTANT_WITHDRAW_LEAVES_GENERATION,
    MUTANT_ABSENT_TRUSTED_AT_ONCE,
    MUTANT_OLD_ANSWER_TAKEN_FOR_NEW
};

struct search_config {
    const char *name;
    unsigned actors;
    unsigned rounds; /* claims each actor may begin, one after the other */
    enum cfoil_in_doubt in_doubt;
    unsigned lost;      /* replies that may be lost; their cas arrives later or never */
    unsigned ticks;     /* jumps to the next deadline */
    unsigned operators; /* operator's acts */
    unsigned renewals;  /* per claim */
    enum mutant mutant;
};

/* The part of a record that the search varies. Token 0: none. */
struct cell {
    bool present;
    uint64_t generation;
    uint64_t fence;
    uint32_t attempt;
    enum cfoil_state state;
    enum cfoil_cause cause;
    int64_t at_ms[CFOIL_TIME_COUNT];
    enum cfoil_time_form form[CFOIL_TIME_COUNT]; /* of a draft under way */
    uint8_t owner;
    uint8_t prober;
    uint16_t status;
};

enum role { ROLE_IDLE, ROLE_EXECUTOR, ROLE_PROBER };
enum phase { PHASE_REST, PHASE_ASK, PHASE_LOST };

struct actor {
    enum role role;
    enum phase phase;
    enum cfoil_event_kind event; /* asked, or lost */
    uint8_t token;
    uint8_t rounds_left;
    uint8_t renewals_left;
    bool executed;
    bool revoked;                /* an operator ended its claim: it may still believe */
    enum cfoil_event_kind found; /* what the backend told a prober; COUNT: not asked yet */
    int64_t asked_ms;            /* store time known before the backend was asked */
    uint64_t asked_generation;   /* and the generation */
    enum cfoil_state outcome;
    enum cfoil_cause cause;
    uint64_t lost_expect;
    struct cell view;
    int64_t view_now;
    /* what its claim was given */
    int64_t lease_until;
    int64_t sign_of_life;
    uint32_t attempt;
    uint64_t fence;
    int64_t life;
};

struct message {
    bool under_way;
    uint8_t token;
    enum cfoil_event_kind event;
    uint64_t expect;
    bool withdrawn; /* its sender's withdrawal is complete */
    bool excused;   /* the record was gone or forgotten since: R12 promises nothing more */
    struct cell draft;
};

struct world {
    int64_t now;
    struct cell store;
    struct actor actors[WORLD_ACTORS_MAX];
    struct message messages[WORLD_MESSAGES_MAX];
    uint8_t lost_left;
    uint8_t ticks_left;
    uint8_t operators_left;
    uint8_t serial; /* source of entropy */
    uint8_t effects;
    bool excused;          /* operator acted, or a record that was not FAILED was gone */
    int64_t pending_until; /* a timed-out request may still take effect before this; 0: none */
    uint8_t used_count;
    uint64_t used[WORLD_USED_MAX]; /* generations ever applied, ascending */
};

void world_init(const struct search_config *config, struct world *world);

/* Whether readers take the cell for absent. */
bool cell_gone(const struct cell *cell, int64_t now_ms);

/* The event an actor (or, with its token, an operator) puts to the core. */
void world_event(const struct search_config *config, const struct world *world,
                 const struct actor *actor, enum cfoil_event_kind kind, struct cfoil_event *event);

/* cfoil_step on a cell, with the configured mutant between. `next` is the draft, if any. */
void world_step(const struct search_config *config, const struct cell *cell, int64_t now_ms,
                struct cfoil_event *event, struct cfoil_effect *effect, struct cell *next);

/* The draft with its times resolved at now. */
struct cell cell_stamp(const struct cell *draft, int64_t now_ms);

/*
 * 64-bit digest of what decides the world's future; times count relative to now. The generations
 * used so far are left out: they are checked along each path, and the next ones follow from those
 * in store, views and messages, or are fresh.
 */
uint64_t world_hash(const struct search_config *config, const struct world *world);

#endif
