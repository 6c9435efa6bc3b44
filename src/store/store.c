/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all stores share: the meaning of an operation (judge.h), the order of a batch, and results.
 * Owns no store; keeps no state.
 */
#include "store/store.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "store/judge.h"

#define CURRENT_STEP_BYTES 512 /* `current` grows in such steps, so that a reused op seldom grows */

static const struct cfoil_store_ops *const stores[] = {&cfoil_store_lmdb, &cfoil_store_memory};

const struct cfoil_store_ops *cfoil_store_for_url(const char *url)
{
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
        size_t len = strlen(stores[i]->scheme);
        if (strncmp(url, stores[i]->scheme, len) == 0 && url[len] == ':') {
            return stores[i];
        }
    }
    return NULL;
}

void cfoil_op_free_current(struct cfoil_op *op)
{
    free(op->current);
    op->current = NULL;
    op->current_bytes = 0;
    op->current_capacity = 0;
}

enum cfoil_error cfoil_op_set_current(struct cfoil_op *op, struct cfoil_bytes bytes)
{
    if (bytes.len > op->current_capacity) {
        size_t capacity = (bytes.len + CURRENT_STEP_BYTES - 1) & ~(size_t)(CURRENT_STEP_BYTES - 1);
        cfoil_op_free_current(op);
        op->current = malloc(capacity);
        if (op->current == NULL) {
            return CFOIL_E_NO_MEMORY;
        }
        op->current_capacity = capacity;
    }
    memcpy(op->current, bytes.data, bytes.len);
    op->current_bytes = bytes.len;
    return CFOIL_OK;
}

void cfoil_op_finish(struct cfoil_op *op, enum cfoil_op_status status, enum cfoil_error error,
                     int64_t now_ms)
{
    op->status = status;
    op->error = error;
    op->now_ms = now_ms;
    op->current_bytes = 0;
}

bool cfoil_record_is_gone(const struct cfoil_record_head *head, int64_t now_ms)
{
    return head->gone_at_ms != 0 && now_ms >= head->gone_at_ms;
}

enum cfoil_judgement cfoil_store_judge(const struct cfoil_op *op, struct cfoil_bytes found,
                                       int64_t now_ms, enum cfoil_error *error)
{
    struct cfoil_record_head head = {0};
    bool absent = found.data == NULL;

    if (!absent) {
        enum cfoil_error peeked = cfoil_record_peek(found, &head);
        if (peeked != CFOIL_OK && op->kind == CFOIL_OP_CAS && op->overwrite_corrupt) {
            return CFOIL_JUDGE_WRITE;
        }
        if (peeked != CFOIL_OK) {
            *error = peeked;
            return CFOIL_JUDGE_FAIL;
        }
        absent = cfoil_record_is_gone(&head, now_ms);
    }
    if (op->kind == CFOIL_OP_CAS && absent && op->expect == CFOIL_EXPECT_ABSENT) {
        return CFOIL_JUDGE_WRITE;
    }
    if (absent) {
        return CFOIL_JUDGE_SHOW_ABSENT;
    }
    if (op->kind == CFOIL_OP_CAS && op->expect == head.generation) {
        return CFOIL_JUDGE_WRITE;
    }
    return CFOIL_JUDGE_SHOW;
}

/* Merges the sorted runs [0, middle) and [middle, count) of `from` into `to`; equal ids keep order. */
static void merge(struct cfoil_op **from, size_t middle, size_t count, struct cfoil_op **to)
{
    size_t left = 0;
    size_t right = middle;

    for (size_t i = 0; i < count; i++) {
        bool take_left = right == count || (left < middle && memcmp(from[left]->id, from[right]->id,
                                                                    CFOIL_ID_BYTES) <= 0);
        to[i] = take_left ? from[left++] : from[right++];
    }
}

void cfoil_ops_sort(struct cfoil_op **ops, size_t count)
{
    struct cfoil_op *scratch[CFOIL_STORE_BATCH_MAX];

    assert(count <= CFOIL_STORE_BATCH_MAX);
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t span = count - start < 2 * width ? count - start : 2 * width;
            size_t middle = span < width ? span : width;
            merge(ops + start, middle, span, scratch + start);
        }
        memcpy(ops, scratch, count * sizeof(*ops));
    }
}

void cfoil_problem(char *problem, size_t problem_bytes, const char *format, ...)
{
    va_list arguments;

    if (problem_bytes == 0) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(problem, problem_bytes, format, arguments);
    va_end(arguments);
}

enum cfoil_error cfoil_store_id_random(uint8_t *store_id)
{
    ssize_t got = getrandom(store_id, CFOIL_STORE_ID_BYTES, 0);
    return got == CFOIL_STORE_ID_BYTES ? CFOIL_OK : CFOIL_E_SYSTEM;
}

bool cfoil_store_id_is_none(const uint8_t *store_id)
{
    static const uint8_t none[CFOIL_STORE_ID_BYTES];
    return memcmp(store_id, none, CFOIL_STORE_ID_BYTES) == 0;
}
