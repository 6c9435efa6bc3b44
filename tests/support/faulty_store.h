/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that misbehaves as told, around a real one: for engine and lane tests.
 *
 *   lane options:  .ops = &cfoil_store_faulty, .store.url = "faulty:memory:" (or "faulty:lmdb:DIR")
 *
 * The plan is one per process, so that it outlives the handle when a lane reopens the store; a test
 * program runs one case at a time and calls cfoil_faulty_reset in its setup. Each cas that is applied
 * takes the next fault of the plan; when the plan is empty everything works. Gets and lookups never
 * take a fault.
 *
 * Threads: every function here may be called while a lane's thread uses the store.
 */
#ifndef CFOIL_TESTS_FAULTY_STORE_H
#define CFOIL_TESTS_FAULTY_STORE_H

#include "store/store.h"

enum cfoil_fault {
    CFOIL_FAULT_NONE,
    CFOIL_FAULT_LOST_APPLIED,     /* run by the store; the answer is UNKNOWN, REPLY_LOST */
    CFOIL_FAULT_LOST_NOT_APPLIED, /* never run; the answer is UNKNOWN, REPLY_LOST */
    CFOIL_FAULT_LATE,             /* UNKNOWN now; run when cfoil_faulty_release_late says so */
    CFOIL_FAULT_FULL,             /* FAILED, STORE_FULL */
    CFOIL_FAULT_UNAVAILABLE,      /* FAILED, STORE_UNAVAILABLE */
    CFOIL_FAULT_HANDLE_LOST /* FAILED, and apply says the handle is of no use: a lane reopens */
};

extern const struct cfoil_store_ops cfoil_store_faulty;

/* Empties the plan, forgets late operations and counts, and ends refusal to open. */
void cfoil_faulty_reset(void);

/* The next `count` cas get this fault, after those already planned. */
void cfoil_faulty_plan(enum cfoil_fault fault, size_t count);

/* Faults of the first four kinds at random for this share of cas, once the plan is empty. */
void cfoil_faulty_random(uint64_t seed, unsigned percent);

/* Every apply waits so long first. */
void cfoil_faulty_delay_ms(int64_t delay_ms);

/* Opening fails with this error until it is set to OK. */
void cfoil_faulty_refuse_open(enum cfoil_error error);

/* The held operations run before the next apply; true if there are any. */
bool cfoil_faulty_release_late(void);

/* How many cas took a fault since reset. */
size_t cfoil_faulty_count(void);

#endif
