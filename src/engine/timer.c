/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of due times; see internal.h. The earliest is at the root. */
#include <assert.h>
#include <stdlib.h>

#include "engine/internal.h"

static void put(struct timers *timers, size_t index, struct timer *timer)
{
    timers->heap[index] = timer;
    timer->place = index + 1;
}

static void rise(struct timers *timers, size_t index)
{
    struct timer *timer = timers->heap[index];

    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (timers->heap[parent]->due_ms <= timer->due_ms) {
            break;
        }
        put(timers, index, timers->heap[parent]);
        index = parent;
    }
    put(timers, index, timer);
}

static void sink(struct timers *timers, size_t index)
{
    struct timer *timer = timers->heap[index];

    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= timers->count) {
            break;
        }
        if (child + 1 < timers->count &&
            timers->heap[child + 1]->due_ms < timers->heap[child]->due_ms) {
            child++;
        }
        if (timer->due_ms <= timers->heap[child]->due_ms) {
            break;
        }
        put(timers, index, timers->heap[child]);
        index = child;
    }
    put(timers, index, timer);
}

enum cfoil_error cfoil_timers_reserve(struct timers *timers, size_t count)
{
    if (count <= timers->capacity) {
        return CFOIL_OK;
    }

    size_t capacity = count * 2 + 64;
    struct timer **heap = realloc(timers->heap, capacity * sizeof(*heap));
    if (heap == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    timers->heap = heap;
    timers->capacity = capacity;
    return CFOIL_OK;
}

void cfoil_timer_disarm(struct timers *timers, struct timer *timer)
{
    if (timer->place == 0) {
        return;
    }

    size_t index = timer->place - 1;
    struct timer *last = timers->heap[--timers->count];
    timer->place = 0;
    if (last == timer) {
        return;
    }
    put(timers, index, last);
    rise(timers, index);
    sink(timers, last->place - 1);
}

void cfoil_timer_arm(struct timers *timers, struct timer *timer, int64_t due_ms)
{
    cfoil_timer_disarm(timers, timer);
    assert(timers->count < timers->capacity);
    timer->due_ms = due_ms;
    put(timers, timers->count++, timer);
    rise(timers, timers->count - 1);
}
