/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills a store with settled records under random ids, for figures at a given size: preload DIR COUNT.
 * A tool of the benchmark; it goes through the store's own contract and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/protocol.h"
#include "store/store.h"

#define BATCH  CFOIL_STORE_BATCH_MAX
#define TTL_MS (24 * 3600 * 1000LL)
#define BODY   "{\"code\":0,\"data\":{\"payment_id\":\"p-1\",\"order_id\":\"o-1\",\"amount\":4200}}"

struct preload {
    const struct cfoil_store_ops *ops;
    struct cfoil_store *store;
    struct cfoil_op op[BATCH];
    struct cfoil_op *sorted[BATCH];
    uint8_t draft[BATCH][1024];
};

static void make_draft(struct cfoil_op *op, uint8_t *out, size_t out_bytes)
{
    struct cfoil_event event = {.kind = CFOIL_EVENT_SETTLE, .outcome = CFOIL_STATE_SUCCEEDED};
    struct cfoil_effect effect;

    memcpy(event.owner, op->id, CFOIL_OWNER_BYTES);
    memcpy(&event.entropy, op->id + CFOIL_OWNER_BYTES, sizeof(event.entropy));
    event.terms.ttl_ms = TTL_MS;
    event.origin.scope.layer = cfoil_bytes_text("http");
    event.origin.scope.kind = CFOIL_KIND_KEY;
    event.origin.scope.tenant_class = CFOIL_TENANT_NONE;
    event.origin.scope.endpoint = cfoil_bytes_text("POST /api/payments");
    event.origin.scope.key = cfoil_bytes_text("00000000-0000-4000-8000-000000000000");
    memcpy(event.origin.fingerprint.request_hash, op->id, CFOIL_DIGEST_BYTES);
    memcpy(event.origin.fingerprint.raw_hash, op->id, CFOIL_DIGEST_BYTES);
    memcpy(event.origin.fingerprint.target_hash, op->id, CFOIL_DIGEST_BYTES);
    event.snapshot.status = 201;
    event.snapshot.body = cfoil_bytes_text(BODY);
    cfoil_step(NULL, 0, &event, &effect);
    if (cfoil_draft_encode(&effect.next, out, out_bytes, &op->draft.len) != CFOIL_OK) {
        fprintf(stderr, "preload: the record does not fit its buffer\n");
        exit(1);
    }
    op->draft.data = out;
}

static void put_batch(struct preload *preload, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cfoil_op *op = &preload->op[i];
        op->kind = CFOIL_OP_CAS;
        op->status = CFOIL_OP_PENDING;
        op->expect = CFOIL_EXPECT_ABSENT;
        if (getrandom(op->id, sizeof(op->id), 0) != (ssize_t)sizeof(op->id)) {
            fprintf(stderr, "preload: no randomness\n");
            exit(1);
        }
        make_draft(op, preload->draft[i], sizeof(preload->draft[i]));
        preload->sorted[i] = op;
    }
    cfoil_ops_sort(preload->sorted, count);
    if (preload->ops->apply(preload->store, preload->sorted, count) != CFOIL_OK ||
        preload->op[0].status != CFOIL_OP_APPLIED) {
        fprintf(stderr, "preload: the store refused: %s\n", cfoil_error_text(preload->op[0].error));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static struct preload preload;
    char url[4096];
    char problem[512] = "";

    if (argc != 3) {
        fprintf(stderr, "usage: preload DIR COUNT\n");
        return 2;
    }
    snprintf(url, sizeof(url), "lmdb:%s", argv[1]);
    struct cfoil_store_options options = {.url = url, .mode = CFOIL_OPEN_CREATE};
    preload.ops = &cfoil_store_lmdb;
    if (preload.ops->open(&options, &preload.store, problem, sizeof(problem)) != CFOIL_OK) {
        fprintf(stderr, "preload: %s\n", problem);
        return 1;
    }
    for (unsigned long left = strtoul(argv[2], NULL, 10); left > 0;) {
        size_t count = left < BATCH ? left : BATCH;
        put_batch(&preload, count);
        left -= count;
    }
    preload.ops->close(preload.store);
    return 0;
}
