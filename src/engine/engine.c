/* SPDX-License-Identifier: Apache-2.0 */
/* The engine itself: its clock, its randomness, its timers and the two calls a host's loop makes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/internal.h"
#include "fingerprint/digest.h"

#define LOG_ID_BYTES 6 /* of an id, shown in a log line */

static int64_t monotonic_ms(void *context)
{
    struct timespec now;

    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum cfoil_error cfoil_engine_create(const struct cfoil_engine_options *options,
                                     struct cfoil_engine **engine)
{
    struct cfoil_engine *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    made->lane = options->lane;
    made->settle_wait_ms =
        options->settle_wait_ms > 0 ? options->settle_wait_ms : CFOIL_SETTLE_WAIT_MS;
    made->now_ms = options->now_ms != NULL ? options->now_ms : monotonic_ms;
    made->context = options->context;
    made->log = options->log;
    *engine = made;
    return CFOIL_OK;
}

static void release(struct cfoil_engine *engine)
{
    for (size_t i = 0; i < engine->spare_count; i++) {
        cfoil_claim_free_memory(engine->spares[i]);
    }
    for (size_t i = 0; i < engine->draft_count; i++) {
        free(engine->drafts[i].bytes);
    }
    free(engine->timers.heap);
    free(engine);
}

/*
 * Operations that are still with the lane cannot be taken back: their claims and acts, and with
 * them the engine, live on until they have come home, by a poll or by the lane's close.
 */
void cfoil_engine_free(struct cfoil_engine *engine)
{
    if (engine == NULL) {
        return;
    }
    engine->closed = true;
    struct work *work = engine->works;
    if (work == NULL) {
        release(engine);
        return;
    }
    while (work != NULL) {
        struct work *next = work->next;
        work->drop(work); /* the last one may take the engine with it */
        work = next;
    }
}

void cfoil_work_add(struct cfoil_engine *engine, struct work *work, void (*drop)(struct work *work))
{
    work->engine = engine;
    work->drop = drop;
    work->next = engine->works;
    work->place = &engine->works;
    if (work->next != NULL) {
        work->next->place = &work->next;
    }
    engine->works = work;
}

void cfoil_work_remove(struct work *work)
{
    struct cfoil_engine *engine = work->engine;

    *work->place = work->next;
    if (work->next != NULL) {
        work->next->place = work->place;
    }
    if (engine->closed && engine->works == NULL) {
        release(engine);
    }
}

int64_t cfoil_engine_now_ms(const struct cfoil_engine *engine)
{
    return engine->now_ms(engine->context);
}

enum cfoil_error cfoil_engine_random(struct cfoil_engine *engine, void *out, size_t len)
{
    if (engine->entropy_left < len) {
        enum cfoil_error error = cfoil_random(engine->entropy, sizeof(engine->entropy));
        if (error != CFOIL_OK) {
            return error;
        }
        engine->entropy_left = sizeof(engine->entropy);
    }
    engine->entropy_left -= len;
    memcpy(out, engine->entropy + engine->entropy_left, len);
    return CFOIL_OK;
}

void cfoil_engine_log(const struct cfoil_engine *engine, enum cfoil_error error, const uint8_t *id,
                      const char *what)
{
    char hex[2 * LOG_ID_BYTES + 1];
    char text[256];

    if (engine->log == NULL) {
        return;
    }
    cfoil_hex(id, LOG_ID_BYTES, hex);
    snprintf(text, sizeof(text), "record %s: %s: %s", hex, what, cfoil_error_text(error));
    engine->log(engine->context, error, text);
}

int cfoil_engine_fd(const struct cfoil_engine *engine)
{
    return cfoil_lane_fd(engine->lane);
}

void cfoil_engine_poll(struct cfoil_engine *engine)
{
    cfoil_lane_poll(engine->lane);
}

void cfoil_engine_flush(struct cfoil_engine *engine)
{
    cfoil_lane_flush(engine->lane);
}

int64_t cfoil_engine_due_ms(const struct cfoil_engine *engine)
{
    if (engine->timers.count == 0) {
        return -1;
    }

    int64_t left_ms = engine->timers.heap[0]->due_ms - cfoil_engine_now_ms(engine);
    return left_ms > 0 ? left_ms : 0;
}

void cfoil_engine_tick(struct cfoil_engine *engine)
{
    int64_t now_ms = cfoil_engine_now_ms(engine);

    while (engine->timers.count > 0 && engine->timers.heap[0]->due_ms <= now_ms) {
        struct timer *timer = engine->timers.heap[0];
        cfoil_timer_disarm(&engine->timers, timer);
        timer->fire(timer);
    }
}

size_t cfoil_engine_busy(const struct cfoil_engine *engine)
{
    return engine->busy;
}

void cfoil_engine_read_stats(const struct cfoil_engine *engine, struct cfoil_engine_stats *stats)
{
    *stats = engine->stats;
}
