/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that misbehaves on demand: the memory store behind a list of rules. Each operation takes
 * the first rule that fits its kind and has turns left; without one it passes through.
 *
 *     apply --rule?--> PASS | LOSE_AFTER | LOSE_BEFORE | DELAY | FAIL | GARBAGE | DAMAGE | RACE
 *                                            '--> held --script_release--> applied late
 *
 * Owns the memory store, the rules and the held operations; a test reaches it through the lane that
 * opened it. Invariant: a held operation is applied at most once, and never after it was dropped.
 */
#ifndef TESTS_ENGINE_SCRIPT_STORE_H
#define TESTS_ENGINE_SCRIPT_STORE_H

#include "store/lane.h"
#include "store/store.h"

enum script_act {
    SCRIPT_PASS,
    SCRIPT_LOSE_AFTER,  /* applied, then the reply is lost */
    SCRIPT_LOSE_BEFORE, /* lost on its way: never applied */
    SCRIPT_DELAY,       /* the reply is lost now, the operation arrives when it is released */
    SCRIPT_FAIL,        /* FAILED with the rule's error */
    SCRIPT_GARBAGE,     /* CURRENT with bytes that are no record */
    SCRIPT_DAMAGE,      /* CURRENT with the true record, one byte of its payload turned over */
    SCRIPT_RACE,        /* another writer gives the record a new generation first */
    SCRIPT_SILENT       /* FAILED without saying why: a store that breaks the contract */
};

enum script_kind { SCRIPT_GET, SCRIPT_CAS, SCRIPT_ANY };

#define SCRIPT_ALWAYS 0x7fffffffU

extern const struct cfoil_store_ops script_store;         /* with look-up */
extern const struct cfoil_store_ops script_store_no_look; /* without */

/* The handle behind a threadless lane over one of the two. */
struct cfoil_store *script_of(struct cfoil_lane *lane);

/* Appends a rule for the next `turns` operations of that kind. error counts for FAIL. */
void script_add(struct cfoil_store *script, enum script_kind kind, enum script_act act,
                unsigned turns, enum cfoil_error error);
void script_clear(struct cfoil_store *script);

/* Applies what was delayed, in order; returns how many were APPLIED. */
size_t script_release(struct cfoil_store *script);
size_t script_held(const struct cfoil_store *script);

/* Operations seen by apply since the last time this was asked. */
size_t script_seen(struct cfoil_store *script);

/* Reads a record past every rule. False: absent. The op owns the bytes the record points into. */
bool script_read(struct cfoil_store *script, const uint8_t *id, struct cfoil_op *op,
                 struct cfoil_record *record);

/* Puts a record there as an operator of the store itself would, whatever stands there. */
void script_write(struct cfoil_store *script, const uint8_t *id, const struct cfoil_draft *draft);

/* Spoils what stands there: its magic (peek fails) or one byte of its payload (decode fails). */
void script_spoil(struct cfoil_store *script, const uint8_t *id, bool header);

/* Makes the id absent, as a failover to an older copy does. */
void script_remove(struct cfoil_store *script, const uint8_t *id);

#endif
