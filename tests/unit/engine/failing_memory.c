/* SPDX-License-Identifier: Apache-2.0 */
/* See failing_memory.h. Its counters are the one state a linker's wrapper can have. */
#include "failing_memory.h"

#include <string.h>

/* The names are the linker's. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *old);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *old);

struct state {
    unsigned left;
    bool and_all_later;
    bool hit;
    long alive;
};

static struct state now;

void failing_memory_arm(unsigned nth, bool and_all_later)
{
    now.left = nth;
    now.and_all_later = and_all_later;
    now.hit = false;
}

bool failing_memory_hit(void)
{
    return now.hit;
}

long failing_memory_alive(void)
{
    return now.alive;
}

static bool must_fail(void)
{
    if (now.left == 0 || --now.left > 0) {
        return false;
    }
    now.left = now.and_all_later ? 1 : 0;
    now.hit = true;
    return true;
}

static void *counted(void *made)
{
    now.alive += made != NULL;
    return made;
}

void *__wrap_malloc(size_t bytes)
{
    return must_fail() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return must_fail() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (must_fail()) {
        return NULL;
    }
    return old == NULL ? counted(__real_malloc(bytes)) : __real_realloc(old, bytes);
}

char *__wrap_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *made = __wrap_malloc(bytes);

    return made != NULL ? memcpy(made, text, bytes) : NULL;
}

void __wrap_free(void *old)
{
    now.alive -= old != NULL;
    __real_free(old);
}
