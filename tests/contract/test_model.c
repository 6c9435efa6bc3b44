/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chosen store against the memory model: the same random operations under the same clock must give
 * the same results, to the byte. The store is also closed and opened again now and then, which the
 * model is not.
 */
#include "contract.h"

#define BATCHES   2000
#define BATCH_MAX 40
#define IDS       60

struct pair {
    struct contract *contract;
    struct cfoil_store *model;
    uint64_t random;
    uint64_t generations[IDS]; /* the last one written, maybe gone by now */
    uint64_t next_generation;
};

static uint64_t below(struct pair *pair, uint64_t limit)
{
    return contract_random(&pair->random) % limit;
}

/* Half of them are being executed, as where requests come in. */
static enum cfoil_state random_state(struct pair *pair)
{
    static const enum cfoil_state others[] = {CFOIL_STATE_ISSUED, CFOIL_STATE_SUCCEEDED,
                                              CFOIL_STATE_FAILED_FINAL, CFOIL_STATE_FAILED,
                                              CFOIL_STATE_IN_DOUBT};

    return below(pair, 2) == 0 ? CFOIL_STATE_PROCESSING : others[below(pair, 5)];
}

static struct cfoil_op random_op(struct pair *pair, uint8_t *bytes, size_t max)
{
    static const size_t sizes[] = {0, 10, 100, 300, 1800, 1900, 2000, 2100, 5000};
    uint64_t number = below(pair, IDS);
    struct cfoil_draft draft = {0};
    uint8_t body[5000];
    size_t len = 0;

    if (below(pair, 4) == 0) {
        return contract_get_op(number);
    }
    memset(body, (int)below(pair, 256), sizeof(body));
    draft.record.generation = pair->next_generation++;
    draft.record.state = random_state(pair);
    draft.record.snapshot.body = cfoil_bytes_of(body, sizes[below(pair, 9)]);
    if (below(pair, 5) > 0) {
        draft.record.at_ms[CFOIL_TIME_GONE_AT] = 1 + (int64_t)below(pair, 3000);
        draft.form[CFOIL_TIME_GONE_AT] =
            below(pair, 4) == 0 ? CFOIL_TIME_NEXT_MULTIPLE : CFOIL_TIME_AFTER;
    }
    assert_int_equal(cfoil_draft_encode(&draft, bytes, max, &len), CFOIL_OK);
    uint64_t expect = below(pair, 2) == 0 ? 0 : pair->generations[number];
    struct cfoil_op op = contract_cas_op(number, expect, cfoil_bytes_of(bytes, len));
    op.overwrite_corrupt = below(pair, 10) == 0;
    return op;
}

static void assert_same(const struct cfoil_op *store, const struct cfoil_op *model)
{
    assert_int_equal(store->status, model->status);
    assert_int_equal(store->error, model->error);
    assert_int_equal(store->now_ms, model->now_ms);
    assert_int_equal(store->current_bytes, model->current_bytes);
    if (model->current_bytes > 0) {
        assert_memory_equal(store->current, model->current, model->current_bytes);
    }
}

static void run_batch(struct pair *pair)
{
    static uint8_t drafts[BATCH_MAX][6000];
    static struct cfoil_op ops[BATCH_MAX];
    static struct cfoil_op copies[BATCH_MAX];
    struct cfoil_op *list[BATCH_MAX];
    struct cfoil_op *model_list[BATCH_MAX];
    size_t count = 1 + (size_t)below(pair, BATCH_MAX);

    for (size_t i = 0; i < count; i++) {
        ops[i] = random_op(pair, drafts[i], sizeof(drafts[i]));
        list[i] = &ops[i];
    }
    cfoil_ops_sort(list, count);
    for (size_t i = 0; i < count; i++) {
        copies[i] = *list[i];
        model_list[i] = &copies[i];
    }
    assert_int_equal(pair->contract->ops->apply(pair->contract->handle, list, count), CFOIL_OK);
    assert_int_equal(cfoil_store_memory.apply(pair->model, model_list, count), CFOIL_OK);
    for (size_t i = 0; i < count; i++) {
        struct cfoil_record_head head;
        assert_same(list[i], &copies[i]);
        size_t number = list[i]->id[7];
        if (list[i]->current_bytes > 0) {
            struct cfoil_bytes shown = cfoil_bytes_of(list[i]->current, list[i]->current_bytes);
            assert_int_equal(cfoil_record_peek(shown, &head), CFOIL_OK);
            pair->generations[number] = head.generation;
        }
        cfoil_op_free_current(list[i]);
        cfoil_op_free_current(&copies[i]);
    }
}

struct listing {
    uint8_t *bytes;
    size_t len;
    size_t count;
};

static bool list_one(void *context, const uint8_t *id, struct cfoil_bytes encoded, int64_t now_ms)
{
    struct listing *listing = context;

    (void)now_ms;
    listing->bytes = realloc(listing->bytes, listing->len + CFOIL_ID_BYTES + encoded.len);
    assert_non_null(listing->bytes);
    memcpy(listing->bytes + listing->len, id, CFOIL_ID_BYTES);
    memcpy(listing->bytes + listing->len + CFOIL_ID_BYTES, encoded.data, encoded.len);
    listing->len += CFOIL_ID_BYTES + encoded.len;
    listing->count++;
    return true;
}

static void compare_listings(struct pair *pair)
{
    struct listing store = {NULL, 0, 0};
    struct listing model = {NULL, 0, 0};
    uint8_t cursor[CFOIL_ID_BYTES];
    uint64_t limit = 1 + below(pair, IDS);

    contract_id(cursor, below(pair, IDS));
    const uint8_t *from = below(pair, 2) == 0 ? NULL : cursor;
    assert_int_equal(
        pair->contract->ops->scan(pair->contract->handle, from, limit, list_one, &store), CFOIL_OK);
    assert_int_equal(cfoil_store_memory.scan(pair->model, from, limit, list_one, &model), CFOIL_OK);
    assert_int_equal(store.count, model.count);
    assert_int_equal(store.len, model.len);
    if (model.len > 0) {
        assert_memory_equal(store.bytes, model.bytes, model.len);
    }
    free(store.bytes);
    free(model.bytes);
}

static void compare_sweeps(struct pair *pair)
{
    struct cfoil_sweep store = {0};
    struct cfoil_sweep model = {0};
    uint64_t limit = 1 + below(pair, IDS + 10);

    contract_id(store.cursor, below(pair, IDS));
    memcpy(model.cursor, store.cursor, CFOIL_ID_BYTES);
    assert_int_equal(pair->contract->ops->sweep(pair->contract->handle, &store, limit), CFOIL_OK);
    assert_int_equal(cfoil_store_memory.sweep(pair->model, &model, limit), CFOIL_OK);
    assert_int_equal(store.examined, model.examined);
    assert_int_equal(store.removed, model.removed);
    assert_int_equal(store.wrapped, model.wrapped);
    assert_memory_equal(store.cursor, model.cursor, CFOIL_ID_BYTES);
}

static void compare_lookup(struct pair *pair)
{
    struct cfoil_op store = contract_get_op(below(pair, IDS));
    struct cfoil_op model = store;

    if (pair->contract->ops->has_lookup) {
        pair->contract->ops->lookup(pair->contract->handle, &store);
        cfoil_store_memory.lookup(pair->model, &model);
        assert_same(&store, &model);
        cfoil_op_free_current(&store);
        cfoil_op_free_current(&model);
    }
}

static void assert_none_stands_twice(struct contract *contract)
{
    contract_close(contract);
    for (uint64_t i = 0; i < IDS; i++) {
        assert_stands_at_most_once(contract, i);
    }
    contract_reopen(contract);
}

static void random_operations_give_the_model_s_results(void **state)
{
    static struct pair pair;
    struct cfoil_store_options options = contract_options(*state, CFOIL_OPEN_CREATE);
    char problem[512] = "";

    memset(&pair, 0, sizeof(pair));
    pair.contract = *state;
    pair.random = contract_seed();
    pair.next_generation = 1;
    options.url = "memory:";
    assert_int_equal(cfoil_store_memory.open(&options, &pair.model, problem, sizeof(problem)),
                     CFOIL_OK);
    for (size_t i = 0; i < BATCHES; i++) {
        run_batch(&pair);
        switch (below(&pair, 6)) {
        case 0:
            contract_pass_ms(pair.contract, (int64_t)below(&pair, 800));
            break;
        case 1:
            compare_listings(&pair);
            break;
        case 2:
            compare_sweeps(&pair);
            break;
        case 3:
            compare_lookup(&pair);
            break;
        case 4:
            contract_step_wall_ms(pair.contract, (int64_t)below(&pair, 10000) - 5000);
            break;
        default:
            if (pair.contract->store->hands != NULL && below(&pair, 10) == 0) {
                assert_none_stands_twice(pair.contract);
            }
        }
    }
    cfoil_store_memory.close(pair.model);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(random_operations_give_the_model_s_results),
    };
    return contract_run(argc, argv, "model", tests, sizeof(tests) / sizeof(tests[0]));
}
