/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: the model every other store is compared with, and the floor of the mechanism in
 * benchmarks. Private to its handle and gone with it: for tests and for one worker only.
 *
 *     buckets[first 18 bits of the id] --> entry -> entry -> ...    ascending by id
 *
 * Ids are digests, so the buckets fill evenly, and walking them in order is ascending order of id.
 * Each run of buckets has a mutex of its own, so that the loop's lookup seldom waits for a batch. Time
 * is told under it: no operation on a record has an earlier now than one before it.
 * Invariant: each list is strictly ascending, and an entry's bytes are a stamped draft (or what a
 * test put there).
 *
 * It has no place outside the handle: opening never fails for a missing store, and an identity that
 * is expected is taken over.
 */
#include "store/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "store/clock.h"
#include "store/judge.h"

#define BUCKET_BITS      18
#define BUCKET_COUNT     (1U << BUCKET_BITS)
#define MUTEX_COUNT      64U
#define ENTRY_STEP_BYTES 1024 /* so that a settle mostly fits where its claim was */

struct entry {
    struct entry *next;
    uint8_t id[CFOIL_ID_BYTES];
    size_t len;
    size_t capacity;
    uint8_t bytes[];
};

struct cfoil_store {
    pthread_mutex_t mutexes[MUTEX_COUNT]; /* apply on one thread, lookup on another */
    bool read_only;
    uint8_t store_id[CFOIL_STORE_ID_BYTES];
    struct cfoil_timebase time;
    struct entry *buckets[BUCKET_COUNT];
};

static enum cfoil_error memory_open(const struct cfoil_store_options *options,
                                    struct cfoil_store **store, char *problem, size_t problem_bytes)
{
    enum cfoil_error error = CFOIL_OK;

    if (strcmp(options->url, "memory:") != 0) {
        cfoil_problem(problem, problem_bytes, "'%s': the memory store is written 'memory:'",
                      options->url);
        return CFOIL_E_INVALID;
    }
    struct cfoil_store *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    made->read_only = options->mode == CFOIL_OPEN_READ_ONLY;
    memcpy(made->store_id, options->expect_store_id, CFOIL_STORE_ID_BYTES);
    if (cfoil_store_id_is_none(made->store_id)) {
        error = cfoil_store_id_random(made->store_id);
    }
    if (error == CFOIL_OK) {
        error = cfoil_timebase_init(&made->time, &options->clock);
    }
    if (error != CFOIL_OK) {
        cfoil_problem(problem, problem_bytes, "memory: no randomness or no boot id");
        free(made);
        return error;
    }
    cfoil_timebase_anchor(&made->time, 0);
    for (size_t i = 0; i < MUTEX_COUNT; i++) {
        (void)pthread_mutex_init(&made->mutexes[i], NULL);
    }
    *store = made;
    return CFOIL_OK;
}

static void memory_close(struct cfoil_store *store)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        struct entry *entry = store->buckets[i];
        while (entry != NULL) {
            struct entry *next = entry->next;
            free(entry);
            entry = next;
        }
    }
    for (size_t i = 0; i < MUTEX_COUNT; i++) {
        (void)pthread_mutex_destroy(&store->mutexes[i]);
    }
    free(store);
}

static void memory_identity(const struct cfoil_store *store, uint8_t *store_id)
{
    memcpy(store_id, store->store_id, CFOIL_STORE_ID_BYTES);
}

static size_t bucket_of(const uint8_t *id)
{
    size_t first = (size_t)id[0] << 16 | (size_t)id[1] << 8 | id[2];
    return first >> (24 - BUCKET_BITS);
}

static pthread_mutex_t *mutex_of(struct cfoil_store *store, const uint8_t *id)
{
    return &store->mutexes[bucket_of(id) / (BUCKET_COUNT / MUTEX_COUNT)];
}

static void lock_all(struct cfoil_store *store)
{
    for (size_t i = 0; i < MUTEX_COUNT; i++) {
        (void)pthread_mutex_lock(&store->mutexes[i]);
    }
}

static void unlock_all(struct cfoil_store *store)
{
    for (size_t i = 0; i < MUTEX_COUNT; i++) {
        (void)pthread_mutex_unlock(&store->mutexes[i]);
    }
}

/* The link that points at the first entry with an id >= `id`, in the bucket of `id`. */
static struct entry **place_of(struct cfoil_store *store, const uint8_t *id)
{
    struct entry **link = &store->buckets[bucket_of(id)];

    while (*link != NULL && memcmp((*link)->id, id, CFOIL_ID_BYTES) < 0) {
        link = &(*link)->next;
    }
    return link;
}

static bool is_at(struct entry *const *link, const uint8_t *id)
{
    return *link != NULL && memcmp((*link)->id, id, CFOIL_ID_BYTES) == 0;
}

/* Puts an entry with room for the draft at the link, in the place of the one that is there. */
static enum cfoil_error make_entry(struct entry **link, const struct cfoil_op *op)
{
    size_t bytes = sizeof(struct entry) + op->draft.len;

    bytes = (bytes + ENTRY_STEP_BYTES - 1) & ~(size_t)(ENTRY_STEP_BYTES - 1);
    struct entry *made = malloc(bytes);
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    memcpy(made->id, op->id, CFOIL_ID_BYTES);
    made->capacity = bytes - sizeof(struct entry);
    made->next = *link;
    if (is_at(link, op->id)) {
        struct entry *old = *link;
        made->next = old->next;
        free(old);
    }
    *link = made;
    return CFOIL_OK;
}

static enum cfoil_error write_entry(struct entry **link, const struct cfoil_op *op, int64_t now_ms)
{
    if (!is_at(link, op->id) || (*link)->capacity < op->draft.len) {
        enum cfoil_error error = make_entry(link, op);
        if (error != CFOIL_OK) {
            return error;
        }
    }
    (*link)->len = op->draft.len;
    cfoil_draft_stamp(op->draft, now_ms, (*link)->bytes);
    return CFOIL_OK;
}

static void run_write(struct cfoil_store *store, struct cfoil_op *op, struct entry **link,
                      int64_t now_ms)
{
    enum cfoil_error error = CFOIL_E_STORE_READ_ONLY;

    if (!store->read_only) {
        error = write_entry(link, op, now_ms);
    }
    if (error != CFOIL_OK) {
        cfoil_op_finish(op, CFOIL_OP_FAILED, error, 0);
        return;
    }
    cfoil_op_finish(op, CFOIL_OP_APPLIED, CFOIL_OK, now_ms);
}

/* The mutex of the id is held. */
static void run_locked(struct cfoil_store *store, struct cfoil_op *op)
{
    int64_t now_ms = cfoil_timebase_now(&store->time);
    struct entry **link = place_of(store, op->id);
    struct cfoil_bytes found = {NULL, 0};
    enum cfoil_error error = CFOIL_OK;

    if (is_at(link, op->id)) {
        found = cfoil_bytes_of((*link)->bytes, (*link)->len);
    }
    switch (cfoil_store_judge(op, found, now_ms, &error)) {
    case CFOIL_JUDGE_WRITE:
        run_write(store, op, link, now_ms);
        return;
    case CFOIL_JUDGE_SHOW:
        cfoil_op_finish(op, CFOIL_OP_CURRENT, CFOIL_OK, now_ms);
        error = cfoil_op_set_current(op, found);
        break;
    case CFOIL_JUDGE_SHOW_ABSENT:
        cfoil_op_finish(op, CFOIL_OP_CURRENT, CFOIL_OK, now_ms);
        break;
    case CFOIL_JUDGE_FAIL:
        break;
    }
    if (error != CFOIL_OK) {
        cfoil_op_finish(op, CFOIL_OP_FAILED, error, 0);
    }
}

static void run(struct cfoil_store *store, struct cfoil_op *op)
{
    pthread_mutex_t *mutex = mutex_of(store, op->id);

    (void)pthread_mutex_lock(mutex);
    run_locked(store, op);
    (void)pthread_mutex_unlock(mutex);
}

static enum cfoil_error memory_apply(struct cfoil_store *store, struct cfoil_op **ops, size_t count)
{
    assert(count <= CFOIL_STORE_BATCH_MAX);
    for (size_t i = 0; i < count; i++) {
        run(store, ops[i]);
    }
    return CFOIL_OK;
}

static void memory_lookup(struct cfoil_store *store, struct cfoil_op *op)
{
    assert(op->kind == CFOIL_OP_GET);
    run(store, op);
}

/* The link to the first entry at or after `link`'s place, moving on over empty buckets. */
static struct entry **settle_link(struct cfoil_store *store, struct entry **link, size_t *bucket)
{
    while (*link == NULL && *bucket + 1 < BUCKET_COUNT) {
        (*bucket)++;
        link = &store->buckets[*bucket];
    }
    return link;
}

/* Where a walk after `cursor` begins; NULL or all zero is the very start. */
static struct entry **walk_start(struct cfoil_store *store, const uint8_t *cursor, size_t *bucket)
{
    static const uint8_t zero[CFOIL_ID_BYTES];
    struct entry **link = &store->buckets[0];

    *bucket = 0;
    if (cursor != NULL && memcmp(cursor, zero, CFOIL_ID_BYTES) != 0) {
        *bucket = bucket_of(cursor);
        link = place_of(store, cursor);
        if (is_at(link, cursor)) {
            link = &(*link)->next;
        }
    }
    return settle_link(store, link, bucket);
}

static bool entry_is_gone(const struct entry *entry, int64_t now_ms)
{
    struct cfoil_record_head head;
    struct cfoil_bytes bytes = {entry->bytes, entry->len};

    return cfoil_record_peek(bytes, &head) == CFOIL_OK && cfoil_record_is_gone(&head, now_ms);
}

static enum cfoil_error memory_scan(struct cfoil_store *store, const uint8_t *cursor,
                                    uint64_t limit, cfoil_scan_visit visit, void *context)
{
    size_t bucket;
    uint64_t visited = 0;

    lock_all(store);
    int64_t now_ms = cfoil_timebase_now(&store->time);
    struct entry **link = walk_start(store, cursor, &bucket);
    for (; *link != NULL && visited < limit; link = settle_link(store, &(*link)->next, &bucket)) {
        const struct entry *entry = *link;
        if (entry_is_gone(entry, now_ms)) {
            continue;
        }
        visited++;
        if (!visit(context, entry->id, cfoil_bytes_of(entry->bytes, entry->len), now_ms)) {
            break;
        }
    }
    unlock_all(store);
    return CFOIL_OK;
}

static enum cfoil_error memory_sweep(struct cfoil_store *store, struct cfoil_sweep *sweep,
                                     uint64_t limit)
{
    size_t bucket;

    if (store->read_only) {
        return CFOIL_E_STORE_READ_ONLY;
    }
    sweep->examined = 0;
    sweep->removed = 0;
    lock_all(store);
    int64_t now_ms = cfoil_timebase_now(&store->time);
    struct entry **link = walk_start(store, sweep->cursor, &bucket);
    while (*link != NULL && sweep->examined < limit) {
        struct entry *entry = *link;
        sweep->examined++;
        memcpy(sweep->cursor, entry->id, CFOIL_ID_BYTES);
        if (entry_is_gone(entry, now_ms)) {
            *link = entry->next;
            free(entry);
            sweep->removed++;
        } else {
            link = &entry->next;
        }
        link = settle_link(store, link, &bucket);
    }
    sweep->wrapped = *link == NULL;
    if (sweep->wrapped) {
        memset(sweep->cursor, 0, CFOIL_ID_BYTES);
    }
    unlock_all(store);
    return CFOIL_OK;
}

const struct cfoil_store_ops cfoil_store_memory = {
    .scheme = "memory",
    .has_lookup = true,
    .open = memory_open,
    .close = memory_close,
    .identity = memory_identity,
    .apply = memory_apply,
    .lookup = memory_lookup,
    .scan = memory_scan,
    .sweep = memory_sweep,
};
