/* SPDX-License-Identifier: Apache-2.0 */
/* See random_record.h. */
#include "random_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEED = 20240917 };

void random_init(struct random_source *source)
{
    const char *given = getenv("CFOIL_TEST_SEED");
    size_t i;

    source->state = given != NULL ? strtoull(given, NULL, 10) : SEED;
    printf("# CFOIL_TEST_SEED=%" PRIu64 "\n", source->state);
    for (i = 0; i < RANDOM_POOL_BYTES; i++)
        source->pool[i] = (uint8_t)random_next(source);
}

/* splitmix64 */
uint64_t random_next(struct random_source *source)
{
    uint64_t z = source->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t random_below(struct random_source *source, uint64_t bound)
{
    return random_next(source) % bound;
}

static struct cfoil_bytes random_bytes(struct random_source *source, size_t min, size_t max)
{
    size_t len = min + (size_t)random_below(source, max - min + 1);
    size_t at = (size_t)random_below(source, RANDOM_POOL_BYTES - len + 1);

    return cfoil_bytes_of(source->pool + at, len);
}

static void random_fill(struct random_source *source, uint8_t *out, size_t bytes)
{
    size_t i;

    for (i = 0; i < bytes; i++)
        out[i] = (uint8_t)random_next(source);
}

static void random_times(struct random_source *source, struct cfoil_draft *draft)
{
    unsigned i;

    for (i = 0; i < CFOIL_TIME_COUNT; i++) {
        draft->form[i] = (enum cfoil_time_form)random_below(source, CFOIL_TIME_FORM_COUNT);
        draft->record.at_ms[i] = (int64_t)random_below(source, INT64_C(1) << 40);
        if (draft->form[i] == CFOIL_TIME_NEXT_MULTIPLE)
            draft->record.at_ms[i] = 1 + (int64_t)random_below(source, 1 << 30);
    }
}

static void random_scope(struct random_source *source, struct cfoil_scope *scope)
{
    scope->layer = random_bytes(source, 1, CFOIL_LAYER_BYTES_MAX);
    scope->kind = (enum cfoil_kind)(1 + random_below(source, 5));
    scope->tenant_class = (enum cfoil_tenant_class)(1 + random_below(source, 3));
    if (scope->tenant_class != CFOIL_TENANT_NONE)
        scope->tenant = random_bytes(source, 1, 40);
    scope->endpoint = random_bytes(source, 0, 60);
    scope->key = random_bytes(source, 1, CFOIL_KEY_BYTES_MAX);
}

void random_draft(struct random_source *source, struct cfoil_draft *draft)
{
    static const enum cfoil_state stored[] = {CFOIL_STATE_ISSUED,    CFOIL_STATE_PROCESSING,
                                              CFOIL_STATE_SUCCEEDED, CFOIL_STATE_FAILED_FINAL,
                                              CFOIL_STATE_FAILED,    CFOIL_STATE_IN_DOUBT};
    struct cfoil_record *record = &draft->record;

    memset(draft, 0, sizeof(*draft));
    record->generation = 1 + random_below(source, (uint64_t)CFOIL_GENERATION_MAX);
    record->fence = random_next(source);
    record->attempt = (uint32_t)random_next(source);
    record->state = stored[random_below(source, sizeof(stored) / sizeof(stored[0]))];
    record->form = (enum cfoil_form)random_below(source, CFOIL_FORM_COUNT);
    if (record->state == CFOIL_STATE_IN_DOUBT)
        record->cause = (enum cfoil_cause)random_below(source, CFOIL_CAUSE_COUNT);
    random_times(source, draft);
    random_fill(source, record->owner, CFOIL_OWNER_BYTES);
    if (random_below(source, 2) != 0)
        random_fill(source, record->prober, CFOIL_OWNER_BYTES);
    record->fingerprint.rules = random_next(source);
    random_fill(source, record->fingerprint.request_hash, CFOIL_DIGEST_BYTES);
    random_fill(source, record->fingerprint.raw_hash, CFOIL_DIGEST_BYTES);
    random_fill(source, record->fingerprint.target_hash, CFOIL_DIGEST_BYTES);
    random_scope(source, &record->scope);
    record->first_request_id = random_bytes(source, 0, 40);
    if (random_below(source, 2) != 0) {
        record->snapshot.status = (uint16_t)(200 + random_below(source, 400));
        record->snapshot.headers = random_bytes(source, 0, 200);
        record->snapshot.body = random_bytes(source, 0, 600);
    }
    record->resource.type = random_bytes(source, 0, 20);
    record->resource.id = random_bytes(source, 0, 20);
    record->reason = random_bytes(source, 0, 30);
    if (random_below(source, 2) != 0) {
        record->window_ms = 1 + (int64_t)random_below(source, 1 << 30);
        record->window_anchor = (enum cfoil_anchor)random_below(source, CFOIL_ANCHOR_COUNT);
    }
    if (record->form == CFOIL_FORM_RECORD)
        return;
    random_fill(source, record->target, CFOIL_DIGEST_BYTES);
    record->target_life_ms =
        record->form == CFOIL_FORM_ALIAS ? 1 + (int64_t)random_below(source, 1 << 30) : 0;
}
