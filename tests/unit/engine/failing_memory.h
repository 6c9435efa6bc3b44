/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out on demand. Linked with --wrap for malloc, calloc, realloc, strdup and free,
 * it counts what is alive, and fails the n-th allocation from now on, or that and every later one.
 * One thread only.
 */
#ifndef TESTS_ENGINE_FAILING_MEMORY_H
#define TESTS_ENGINE_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* 0: never. */
void failing_memory_arm(unsigned nth, bool and_all_later);

/* Whether an allocation was failed since it was armed. */
bool failing_memory_hit(void);

/* Allocations that were not freed again. */
long failing_memory_alive(void);

#endif
