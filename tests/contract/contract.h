/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store contract as tests: what any store must do, whatever it is made of. A store takes part by a
 * row in contract_stores (contract.c); what cannot be done through the contract itself (damaging
 * bytes, dying while holding a lock) is done by the store's own hands, and where a row has none the
 * topic does not apply.
 *
 * Every case gets a fresh private directory, an open store made there, and a clock of its own.
 */
#ifndef CFOIL_TESTS_CONTRACT_H
#define CFOIL_TESTS_CONTRACT_H

/* cmocka wants these before its header, in this order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "store/store.h"

#define CONTRACT_PATH_BYTES 256
#define CONTRACT_WALL_MS    INT64_C(1700000000000) /* where the clock of a case starts */
#define CONTRACT_BOOT_MS    INT64_C(5000000)
#define HOUR_MS             INT64_C(3600000)

/* Where an id stands, in a store that keeps what is being executed apart from the rest. */
struct contract_places {
    bool pending;
    bool records;
};

struct contract_hands {
    /* Puts these very bytes in the record's place. */
    void (*put_raw)(const char *dir, const uint8_t *id, struct cfoil_bytes bytes);
    /* NULL where a store has one place only. */
    struct contract_places (*places)(const char *dir, const uint8_t *id);
    /* Sets the format number that the store carries. */
    void (*set_format)(const char *dir, uint32_t format);
    /* Makes the store one of the format before, empty. */
    void (*make_older)(const char *dir);
    /* In a child: write without committing, or begin to read, say so on fd, and wait for the end. */
    void (*hold_write)(const char *dir, const uint8_t *id, int ready_fd);
    void (*hold_read)(const char *dir, int ready_fd);
    /* Makes a directory that is no store of ours but of the same engine. */
    void (*make_stranger)(const char *dir);
    const char *data_file; /* in the directory */
    const char *lock_file;
};

struct contract_store {
    const char *name;
    const struct cfoil_store_ops *ops;
    const char *url_format;   /* with the directory */
    const char *small_format; /* likewise, with as little room as the store can be given */
    const struct contract_hands *hands; /* NULL: not persistent, one handle only */
};

struct contract_clock {
    _Atomic int64_t boot_ms;
    _Atomic int64_t wall_ms;
    char boot_id[40];
};

struct contract {
    const struct contract_store *store;
    const struct cfoil_store_ops *ops;
    const char *url_format;
    char base[CONTRACT_PATH_BYTES]; /* private, removed at the end */
    char dir[CONTRACT_PATH_BYTES];  /* base/store */
    char url[CONTRACT_PATH_BYTES + 64];
    struct contract_clock clock;
    bool real_clock;        /* the next open takes the system's clocks instead */
    enum cfoil_state state; /* of what contract_draft makes */
    struct cfoil_store *handle;
    void *owned[4096]; /* drafts, freed at the end */
    size_t owned_count;
};

extern const struct contract_hands contract_lmdb_hands;

/* For main: picks the store by name (argv[1]), prints it, and runs the group. */
int contract_run(int argc, char **argv, const char *topic, const struct CMUnitTest *tests,
                 size_t count);

/* Setup and teardown of a case; *state is the struct contract. */
int contract_setup(void **state);
int contract_setup_small(void **state);
int contract_setup_settled(void **state); /* drafts are SUCCEEDED; else PROCESSING */
int contract_setup_small_settled(void **state);
int contract_teardown(void **state);

#define CONTRACT_CASE(name) cmocka_unit_test_setup_teardown(name, contract_setup, contract_teardown)
#define CONTRACT_CASE_SMALL(name)                                                                  \
    cmocka_unit_test_setup_teardown(name, contract_setup_small, contract_teardown)
#define CONTRACT_CASE_SETTLED(name)                                                                \
    {                                                                                              \
#name " (settled)", name, contract_setup_settled, contract_teardown, NULL                  \
    }
#define CONTRACT_CASE_SMALL_SETTLED(name)                                                          \
    {                                                                                              \
#name " (settled)", name, contract_setup_small_settled, contract_teardown, NULL            \
    }

/* The store chosen on the command line. */
const struct contract_store *contract_chosen(void);

/* --- open and close --- */

/* Sets the URL for the case's directory. */
void contract_set_url(struct contract *contract);

/* Fills the options with the case's URL and clock; mode as given, no expected identity. */
struct cfoil_store_options contract_options(struct contract *contract, enum cfoil_open_mode mode);
enum cfoil_error contract_open(struct contract *contract, enum cfoil_open_mode mode);
void contract_close(struct contract *contract);
void contract_reopen(struct contract *contract); /* close, then EXISTING must succeed */

/* --- time --- */
void contract_pass_ms(struct contract *contract, int64_t ms); /* boot and wall together */
void contract_step_wall_ms(struct contract *contract, int64_t ms);
void contract_reboot(struct contract *contract, int64_t wall_ms); /* the store must be closed */

/* --- records --- */
void contract_id(uint8_t *id, uint64_t number); /* ascending with the number */

/* A draft that is gone so long after it was applied (0: never), with a body of so many bytes. */
struct cfoil_bytes contract_draft(struct contract *contract, uint64_t generation,
                                  int64_t gone_after_ms, size_t body_bytes);
struct cfoil_bytes contract_draft_in(struct contract *contract, enum cfoil_state record_state,
                                     uint64_t generation, int64_t gone_after_ms, size_t body_bytes);

/* --- operations; the op's current must be freed with cfoil_op_free_current --- */
struct cfoil_op contract_cas_op(uint64_t number, uint64_t expect, struct cfoil_bytes draft);
struct cfoil_op contract_get_op(uint64_t number);
void contract_apply(struct contract *contract, struct cfoil_op *op);
void contract_claim(struct contract *contract, uint64_t number, uint64_t generation,
                    int64_t gone_after_ms); /* must be applied */

void assert_applied(const struct cfoil_op *op);
void assert_shows(const struct cfoil_op *op, uint64_t generation);
void assert_absent(const struct cfoil_op *op);
void assert_failed(const struct cfoil_op *op, enum cfoil_error error);

/* What a get of this record comes to; assert_* of it, in one line. */
void assert_get_shows(struct contract *contract, uint64_t number, uint64_t generation);
void assert_get_absent(struct contract *contract, uint64_t number);
void assert_get_fails(struct contract *contract, uint64_t number, enum cfoil_error error);

/* --- places; nothing where the store has one only. The store is closed meanwhile. --- */
void assert_stands_once(struct contract *contract, uint64_t number);
void assert_stands_at_most_once(struct contract *contract, uint64_t number);

/* --- randomness with a printed seed (CFOIL_TEST_SEED repeats a run) --- */
uint64_t contract_seed(void);
uint64_t contract_random(uint64_t *state);

/* Removes a directory and everything in it. */
void contract_remove_tree(const char *path);

/* Copies an embedded store that nobody has open, as an operator's backup would. */
void contract_copy_store(const char *from, const char *to);

#endif
