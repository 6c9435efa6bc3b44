/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks in a list, newest first; a request too big for a chunk gets one of its own. See pool.h. */
#include "policy/pool.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)64 * 1024)
#define ALIGNMENT   alignof(max_align_t)

struct cfoil_pool_chunk {
    struct cfoil_pool_chunk *next;
    size_t used;
    size_t capacity;
    alignas(max_align_t) unsigned char data[];
};

static struct cfoil_pool_chunk *chunk_add(struct cfoil_pool *pool, size_t bytes)
{
    size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    struct cfoil_pool_chunk *chunk = calloc(1, sizeof(*chunk) + capacity);
    if (chunk == NULL) {
        return NULL;
    }

    chunk->capacity = capacity;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    return chunk;
}

void *cfoil_pool_take(struct cfoil_pool *pool, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

    struct cfoil_pool_chunk *chunk = pool->chunks;
    if (chunk == NULL || chunk->capacity - chunk->used < bytes) {
        chunk = chunk_add(pool, bytes);
        if (chunk == NULL) {
            return NULL;
        }
    }

    void *memory = chunk->data + chunk->used;
    chunk->used += bytes;
    return memory;
}

void *cfoil_pool_array(struct cfoil_pool *pool, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        return NULL;
    }
    return cfoil_pool_take(pool, total);
}

char *cfoil_pool_text(struct cfoil_pool *pool, const char *text, size_t len)
{
    char *copy = cfoil_pool_take(pool, len + 1);
    if (copy == NULL) {
        return NULL;
    }
    if (len > 0) {
        memcpy(copy, text, len);
    }
    return copy;
}

void cfoil_pool_free(struct cfoil_pool *pool)
{
    struct cfoil_pool_chunk *chunk = pool->chunks;
    while (chunk != NULL) {
        struct cfoil_pool_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    pool->chunks = NULL;
}
