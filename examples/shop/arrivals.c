/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns a ring of the last keys. A scan of 4096 hashes costs less than the rest of a request, so
 * there is no index.
 *
 *     entries[0 … used)  each: hash, key, text     next: the one to be replaced when the ring is
 * full
 */
#include "arrivals.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct arrival {
    uint64_t hash;
    char *key; /* Owned. */
    size_t key_bytes;
    char *text; /* Owned; a JSON object. */
};

struct shop_arrivals {
    pthread_mutex_t lock;
    size_t used;
    size_t next;
    struct arrival entries[SHOP_ARRIVALS_MAX];
};

/* FNV-1a. */
static uint64_t key_hash(const char *key, size_t key_bytes)
{
    uint64_t hash = 14695981039346656037U;

    for (size_t i = 0; i < key_bytes; i++) {
        hash = (hash ^ (unsigned char)key[i]) * 1099511628211U;
    }
    return hash;
}

struct shop_arrivals *shop_arrivals_new(void)
{
    struct shop_arrivals *arrivals = calloc(1, sizeof(*arrivals));

    if (arrivals != NULL && pthread_mutex_init(&arrivals->lock, NULL) != 0) {
        free(arrivals);
        return NULL;
    }
    return arrivals;
}

void shop_arrivals_free(struct shop_arrivals *arrivals)
{
    if (arrivals == NULL) {
        return;
    }
    shop_arrivals_clear(arrivals);
    (void)pthread_mutex_destroy(&arrivals->lock);
    free(arrivals);
}

void shop_arrivals_clear(struct shop_arrivals *arrivals)
{
    (void)pthread_mutex_lock(&arrivals->lock);
    for (size_t i = 0; i < arrivals->used; i++) {
        free(arrivals->entries[i].key);
        free(arrivals->entries[i].text);
    }
    arrivals->used = 0;
    arrivals->next = 0;
    (void)pthread_mutex_unlock(&arrivals->lock);
}

/* The entry of a key, or NULL. The lock is held. */
static struct arrival *arrival_of(struct shop_arrivals *arrivals, const char *key, size_t key_bytes)
{
    uint64_t hash = key_hash(key, key_bytes);

    for (size_t i = 0; i < arrivals->used; i++) {
        struct arrival *entry = &arrivals->entries[i];

        if (entry->hash == hash && entry->key_bytes == key_bytes &&
            memcmp(entry->key, key, key_bytes) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* A fresh entry, the oldest one emptied if the ring is full. The lock is held. */
static struct arrival *arrival_new(struct shop_arrivals *arrivals)
{
    struct arrival *entry = &arrivals->entries[arrivals->next];

    if (arrivals->used < SHOP_ARRIVALS_MAX) {
        arrivals->used++;
    } else {
        free(entry->key);
        free(entry->text);
    }
    arrivals->next = (arrivals->next + 1) % SHOP_ARRIVALS_MAX;
    memset(entry, 0, sizeof(*entry));
    return entry;
}

static char *arrival_text(const struct shop_request *request)
{
    json_t *object = json_pack("{s:s, s:o, s:o, s:s, s:I}", "method", request->method, "target",
                               shop_json_text(request->target, strlen(request->target)), "headers",
                               shop_request_headers(request), "body_sha256", request->body_sha256,
                               "body_bytes", (json_int_t)request->body_bytes);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);

    json_decref(object);
    return text;
}

bool shop_arrivals_note(struct shop_arrivals *arrivals, const struct shop_request *request)
{
    char *text = arrival_text(request);
    char *key = malloc(request->key_bytes + 1);
    struct arrival *entry;

    if (text == NULL || key == NULL) {
        free(text);
        free(key);
        return false;
    }
    memcpy(key, request->key, request->key_bytes);
    (void)pthread_mutex_lock(&arrivals->lock);
    entry = arrival_of(arrivals, request->key, request->key_bytes);
    if (entry == NULL) {
        entry = arrival_new(arrivals);
    } else {
        free(entry->key);
        free(entry->text);
    }
    entry->hash = key_hash(key, request->key_bytes);
    entry->key = key;
    entry->key_bytes = request->key_bytes;
    entry->text = text;
    (void)pthread_mutex_unlock(&arrivals->lock);
    return true;
}

char *shop_arrivals_find(struct shop_arrivals *arrivals, const char *key, size_t key_bytes)
{
    const struct arrival *entry;
    char *text;

    (void)pthread_mutex_lock(&arrivals->lock);
    entry = arrival_of(arrivals, key, key_bytes);
    text = entry == NULL ? NULL : strdup(entry->text);
    (void)pthread_mutex_unlock(&arrivals->lock);
    return text;
}
