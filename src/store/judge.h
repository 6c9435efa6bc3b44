/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place that says what a compare-and-swap means. A store finds the bytes of an id, asks here
 * what the operation comes to, and does it; no store compares generations or times on its own.
 *
 *     found bytes (or none) + op + now --> WRITE | SHOW | SHOW_ABSENT | FAIL(error)
 *
 * Pure: reads the record's header and nothing else. For stores, not for their callers.
 */
#ifndef CFOIL_STORE_JUDGE_H
#define CFOIL_STORE_JUDGE_H

#include "store/store.h"

enum cfoil_judgement {
    CFOIL_JUDGE_WRITE,       /* cas: stamp the draft in the record's place */
    CFOIL_JUDGE_SHOW,        /* answer with the found record */
    CFOIL_JUDGE_SHOW_ABSENT, /* answer with absent (also for a gone record) */
    CFOIL_JUDGE_FAIL         /* the bytes do not peek; *error says how */
};

/* `found` is {NULL, 0} where the store has nothing. *error is set with FAIL only. */
enum cfoil_judgement cfoil_store_judge(const struct cfoil_op *op, struct cfoil_bytes found,
                                       int64_t now_ms, enum cfoil_error *error);

/* R9: whether a peeked record is absent at now. A record without gone_at stays. */
bool cfoil_record_is_gone(const struct cfoil_record_head *head, int64_t now_ms);

/* Sets a result other than CURRENT with a record; current_bytes becomes 0. */
void cfoil_op_finish(struct cfoil_op *op, enum cfoil_op_status status, enum cfoil_error error,
                     int64_t now_ms);

/* Writes `text` (printf) to problem, cut to fit. problem may be NULL with 0 bytes. */
__attribute__((format(printf, 3, 4))) void cfoil_problem(char *problem, size_t problem_bytes,
                                                         const char *format, ...);

/* A random identity for a new store. Errors: SYSTEM. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_store_id_random(uint8_t *store_id);

/* Whether an identity is all zero, which means "none". */
bool cfoil_store_id_is_none(const uint8_t *store_id);

#endif
