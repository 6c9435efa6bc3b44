/* SPDX-License-Identifier: Apache-2.0 */
/* See compare.h. */
#include "compare.h"

bool snapshot_equal(const struct cfoil_snapshot *a, const struct cfoil_snapshot *b)
{
    return a->status == b->status && cfoil_bytes_equal(a->headers, b->headers) &&
           cfoil_bytes_equal(a->body, b->body);
}

bool scope_equal(const struct cfoil_scope *a, const struct cfoil_scope *b)
{
    return cfoil_bytes_equal(a->layer, b->layer) && a->kind == b->kind &&
           a->tenant_class == b->tenant_class && cfoil_bytes_equal(a->tenant, b->tenant) &&
           cfoil_bytes_equal(a->endpoint, b->endpoint) && cfoil_bytes_equal(a->key, b->key);
}

bool fingerprint_equal(const struct cfoil_fingerprint *a, const struct cfoil_fingerprint *b)
{
    return a->rules == b->rules &&
           memcmp(a->request_hash, b->request_hash, CFOIL_DIGEST_BYTES) == 0 &&
           memcmp(a->raw_hash, b->raw_hash, CFOIL_DIGEST_BYTES) == 0 &&
           memcmp(a->target_hash, b->target_hash, CFOIL_DIGEST_BYTES) == 0;
}

bool resource_equal(const struct cfoil_resource *a, const struct cfoil_resource *b)
{
    return cfoil_bytes_equal(a->type, b->type) && cfoil_bytes_equal(a->id, b->id);
}

static const char *head_difference(const struct cfoil_record *a, const struct cfoil_record *b)
{
    if (a->generation != b->generation)
        return "generation";
    if (a->fence != b->fence || a->attempt != b->attempt)
        return "fence or attempt";
    if (a->state != b->state || a->form != b->form || a->cause != b->cause)
        return "state, form or cause";
    if (memcmp(a->at_ms, b->at_ms, sizeof(a->at_ms)) != 0)
        return "a time";
    return NULL;
}

const char *record_difference(const struct cfoil_record *a, const struct cfoil_record *b)
{
    const char *difference = head_difference(a, b);

    if (difference != NULL)
        return difference;
    if (memcmp(a->owner, b->owner, CFOIL_OWNER_BYTES) != 0)
        return "owner";
    if (memcmp(a->prober, b->prober, CFOIL_OWNER_BYTES) != 0)
        return "prober";
    if (!fingerprint_equal(&a->fingerprint, &b->fingerprint))
        return "fingerprint";
    if (!scope_equal(&a->scope, &b->scope))
        return "scope";
    if (!cfoil_bytes_equal(a->first_request_id, b->first_request_id))
        return "first_request_id";
    if (!snapshot_equal(&a->snapshot, &b->snapshot))
        return "snapshot";
    if (!resource_equal(&a->resource, &b->resource))
        return "resource";
    if (!cfoil_bytes_equal(a->reason, b->reason))
        return "reason";
    if (memcmp(a->target, b->target, CFOIL_DIGEST_BYTES) != 0 ||
        a->target_life_ms != b->target_life_ms)
        return "target";
    if (a->window_ms != b->window_ms || a->window_anchor != b->window_anchor)
        return "window";
    return NULL;
}
