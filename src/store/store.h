/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store contract. A store keeps encoded records by id and compares and swaps one at a time:
 *
 *     cas(id, expect = ABSENT | generation, draft) -> APPLIED(now) | CURRENT(record or absent, now)
 *                                                   | UNKNOWN | FAILED
 *     get(id)                                      -> CURRENT(record or absent, now) | FAILED
 *
 * Operations come in batches. A store decides nothing: what to write was decided in the core, and a
 * store only resolves the draft's times against its own clock (R7) and checks the generation.
 *
 * Life of a batch: the caller fills ops (kind, id, expect, draft), calls apply, reads the results.
 * Ops are sorted by id; ops of one id stand in the order they were submitted, and each sees what the
 * ones before it did. Results, conflicts included, are set only once the batch is durable: never
 * before its commit. Nothing here assumes an embedded engine, threads, or one process.
 *
 * Invariants every store is held to by tests/contract:
 *   - at most one of any number of cas with the same expect is APPLIED (R1);
 *   - a record with now >= gone_at is ABSENT, swept or not (R9), also for expect = its generation
 *     (a record whose gone_at is unset stays);
 *   - APPLIED is durable and visible to every later operation of every process;
 *   - UNKNOWN may have been applied or may still be; FAILED certainly was not and never will be;
 *   - bytes that do not peek (record.h) are FAILED with a CORRUPT error, never ABSENT (R6), except
 *     that a cas with `overwrite_corrupt` may replace them (an operator's forget);
 *   - now never goes back, over restarts and clock steps.
 *
 * Threads: one store handle is used by one thread at a time, except lookup (see there).
 */
#ifndef CFOIL_STORE_STORE_H
#define CFOIL_STORE_STORE_H

#include "core/bytes.h"
#include "core/error.h"
#include "core/record.h"

#define CFOIL_ID_BYTES        32
#define CFOIL_STORE_ID_BYTES  16
#define CFOIL_STORE_BATCH_MAX 512  /* operations in one batch */
#define CFOIL_SWEEP_STEP_MAX  1000 /* records looked at in one sweep step */

enum cfoil_op_kind { CFOIL_OP_GET, CFOIL_OP_CAS };

enum cfoil_op_status {
    CFOIL_OP_PENDING, /* not applied yet */
    CFOIL_OP_APPLIED, /* cas: done, durable */
    CFOIL_OP_CURRENT, /* cas: conflict; get: the answer. current_bytes 0 is absent */
    CFOIL_OP_UNKNOWN, /* error says why */
    CFOIL_OP_FAILED   /* error says why; not applied */
};

/*
 * One operation. The submitter owns the struct and the draft's memory and keeps both until the
 * result is set. `current` is malloc'd (grown, reused) by the store, and is freed by
 * cfoil_op_free_current.
 */
struct cfoil_op {
    enum cfoil_op_kind kind;
    bool overwrite_corrupt;
    uint8_t id[CFOIL_ID_BYTES];
    uint64_t expect;
    struct cfoil_bytes draft; /* encoded, unstamped (record.h) */

    enum cfoil_op_status status;
    enum cfoil_error error;
    int64_t now_ms; /* store time of the result; 0 for UNKNOWN and FAILED */
    uint8_t *current;
    size_t current_bytes;
    size_t current_capacity;

    void (*done)(struct cfoil_op *op); /* lane only: called by cfoil_lane_poll */
    void *context;                     /* the submitter's */
    struct cfoil_op *link;             /* the lane's, while it holds the op */
};

void cfoil_op_free_current(struct cfoil_op *op);

/* Copies a found record into op->current. Error: NO_MEMORY. For stores. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_op_set_current(struct cfoil_op *op,
                                                       struct cfoil_bytes bytes);

/* Where a store's time comes from; NULL members mean the system's clocks. For tests. */
struct cfoil_clock {
    int64_t (*boot_ms)(void *context); /* CLOCK_BOOTTIME */
    int64_t (*wall_ms)(void *context); /* CLOCK_REALTIME */
    const char *boot_id;               /* of this boot; NULL: the kernel's */
    void *context;
};

enum cfoil_open_mode {
    CFOIL_OPEN_EXISTING, /* never creates: a missing store is STORE_UNAVAILABLE */
    CFOIL_OPEN_CREATE,   /* creates an empty one where there is none */
    CFOIL_OPEN_READ_ONLY /* existing, cas refused with STORE_READ_ONLY */
};

/*
 * expect_store_id: all zero, or the identity the store must have, else STORE_REPLACED. Every store
 * gets a random identity when it is created.
 */
struct cfoil_store_options {
    const char *url; /* "lmdb:DIR", "lmdb:DIR?map_size=64GiB", "memory:" */
    enum cfoil_open_mode mode;
    uint8_t expect_store_id[CFOIL_STORE_ID_BYTES];
    struct cfoil_clock clock;
};

struct cfoil_store; /* each store's own */

struct cfoil_sweep {
    uint8_t cursor
        [CFOIL_ID_BYTES]; /* in: start after this id (all zero: at the start); out: go on here */
    bool wrapped;         /* out: the end was reached, cursor is all zero again */
    uint64_t examined;
    uint64_t removed;
};

/*
 * Called per record in ascending id order with its encoded bytes (valid during the call only, maybe
 * corrupt) and the store's now. Gone records are not shown. Return false to stop.
 */
typedef bool (*cfoil_scan_visit)(void *context, const uint8_t *id, struct cfoil_bytes encoded,
                                 int64_t now_ms);

/*
 * A store, as one const struct. `problem` in open receives a sentence that says what, where and how
 * to fix it (problem_bytes long, cut to fit).
 */
struct cfoil_store_ops {
    const char *scheme; /* "lmdb" */
    bool has_lookup;

    CFOIL_MUST_CHECK enum cfoil_error (*open)(const struct cfoil_store_options *options,
                                              struct cfoil_store **store, char *problem,
                                              size_t problem_bytes);
    void (*close)(struct cfoil_store *store);
    void (*identity)(const struct cfoil_store *store, uint8_t *store_id);

    /*
     * A number that grows with every batch that wrote. A store that is opened again at a smaller one
     * than before is an older copy of itself, and must not be used. NULL: copies cannot come back
     * under a running process.
     */
    uint64_t (*position)(const struct cfoil_store *store);

    /*
     * Waits until this handle is the one that may write, for the next apply, which ends it like
     * release. Other writers' commits are waited for here, before a batch is made up, so that it is
     * the larger the longer that took. An error is the next apply's to meet again. NULL: writers do
     * not wait for each other.
     */
    void (*reserve)(struct cfoil_store *store);
    void (*release)(struct cfoil_store *store);

    /*
     * Applies count <= CFOIL_STORE_BATCH_MAX ops; sets status, error, now_ms and current of each.
     * Returns OK, or an error of class STORE or SYSTEM when the handle itself is no longer of use
     * and must be closed and opened again (every op then has a result all the same). A get never
     * ends as UNKNOWN. With count 0 it only looks whether the handle is still of use.
     */
    CFOIL_MUST_CHECK enum cfoil_error (*apply)(struct cfoil_store *store, struct cfoil_op **ops,
                                               size_t count);

    /*
     * A read-only get that does not block on writers; may be called from one other thread while
     * apply runs. Only where has_lookup.
     */
    void (*lookup)(struct cfoil_store *store, struct cfoil_op *op);

    /* Visits at most `limit` records after `cursor` (NULL: from the start). */
    CFOIL_MUST_CHECK enum cfoil_error (*scan)(struct cfoil_store *store, const uint8_t *cursor,
                                              uint64_t limit, cfoil_scan_visit visit,
                                              void *context);

    /* Removes gone records among at most `limit` looked at. Corrupt ones are left. */
    CFOIL_MUST_CHECK enum cfoil_error (*sweep)(struct cfoil_store *store, struct cfoil_sweep *sweep,
                                               uint64_t limit);
};

extern const struct cfoil_store_ops cfoil_store_memory;
extern const struct cfoil_store_ops cfoil_store_lmdb;

/* The store for a URL by its scheme, or NULL (then the message names the known schemes). */
const struct cfoil_store_ops *cfoil_store_for_url(const char *url);

/* Stable sort of ops by id, as apply wants them. */
void cfoil_ops_sort(struct cfoil_op **ops, size_t count);

#endif
