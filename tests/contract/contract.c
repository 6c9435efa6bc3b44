/* SPDX-License-Identifier: Apache-2.0 */
/* The table of stores and what every topic of the contract suite uses; see contract.h. */
#include "contract.h"

#include <ftw.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const struct contract_store contract_stores[] = {
    {"memory", &cfoil_store_memory, "memory:", NULL, NULL},
    {"lmdb", &cfoil_store_lmdb, "lmdb:%s", "lmdb:%s?map_size=1MiB", &contract_lmdb_hands},
};

static const struct contract_store *chosen;

const struct contract_store *contract_chosen(void)
{
    return chosen;
}

int contract_run(int argc, char **argv, const char *topic, const struct CMUnitTest *tests,
                 size_t count)
{
    for (size_t i = 0; i < sizeof(contract_stores) / sizeof(contract_stores[0]); i++) {
        if (argc > 1 && strcmp(contract_stores[i].name, argv[1]) == 0) {
            chosen = &contract_stores[i];
        }
    }
    if (chosen == NULL) {
        (void)fprintf(stderr, "%s: name a store of the table in contract.c\n", argv[0]);
        return 2;
    }
    /* A test program that hangs is a failed one. */
    (void)alarm(300);
    return _cmocka_run_group_tests(topic, tests, count, NULL, NULL);
}

static int64_t fake_boot_ms(void *context)
{
    struct contract_clock *clock = context;
    return atomic_load(&clock->boot_ms);
}

static int64_t fake_wall_ms(void *context)
{
    struct contract_clock *clock = context;
    return atomic_load(&clock->wall_ms);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void contract_remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void contract_copy_store(const char *from, const char *to)
{
    char path[CONTRACT_PATH_BYTES];
    char block[65536];
    size_t got;

    assert_int_equal(mkdir(to, 0700), 0);
    (void)snprintf(path, sizeof(path), "%.200s/data.mdb", from);
    FILE *in = fopen(path, "rb");
    (void)snprintf(path, sizeof(path), "%.200s/data.mdb", to);
    FILE *out = fopen(path, "wb");
    assert_non_null(in);
    assert_non_null(out);
    while ((got = fread(block, 1, sizeof(block), in)) > 0) {
        assert_int_equal(fwrite(block, 1, got, out), got);
    }
    (void)fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void make_base(struct contract *contract)
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(contract->base, sizeof(contract->base), "%s/cfoil-contract-XXXXXX",
                   tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(contract->base));
    int len = snprintf(contract->dir, sizeof(contract->dir), "%s/store", contract->base);
    assert_in_range(len, 1, sizeof(contract->dir) - 1);
}

void contract_set_url(struct contract *contract)
{
    /* The format is a row of the table above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(contract->url, sizeof(contract->url), contract->url_format, contract->dir);
#pragma GCC diagnostic pop
}

static int setup_with(void **state, const char *url_format)
{
    struct contract *contract = calloc(1, sizeof(*contract));

    assert_non_null(contract);
    contract->store = chosen;
    contract->state = CFOIL_STATE_PROCESSING;
    contract->ops = chosen->ops;
    atomic_init(&contract->clock.boot_ms, CONTRACT_BOOT_MS);
    atomic_init(&contract->clock.wall_ms, CONTRACT_WALL_MS);
    (void)snprintf(contract->clock.boot_id, sizeof(contract->clock.boot_id), "boot-1");
    make_base(contract);
    contract->url_format = url_format;
    contract_set_url(contract);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_CREATE), CFOIL_OK);
    *state = contract;
    return 0;
}

int contract_setup(void **state)
{
    return setup_with(state, chosen->url_format);
}

int contract_setup_small(void **state)
{
    return setup_with(state, chosen->small_format);
}

static int settled(int rc, void **state)
{
    struct contract *contract = *state;

    contract->state = CFOIL_STATE_SUCCEEDED;
    return rc;
}

int contract_setup_settled(void **state)
{
    return settled(contract_setup(state), state);
}

int contract_setup_small_settled(void **state)
{
    return settled(contract_setup_small(state), state);
}

int contract_teardown(void **state)
{
    struct contract *contract = *state;

    contract_close(contract);
    contract_remove_tree(contract->base);
    for (size_t i = 0; i < contract->owned_count; i++) {
        free(contract->owned[i]);
    }
    free(contract);
    return 0;
}

struct cfoil_store_options contract_options(struct contract *contract, enum cfoil_open_mode mode)
{
    struct cfoil_store_options options = {.url = contract->url, .mode = mode};

    if (contract->real_clock) {
        return options;
    }
    options.clock.boot_ms = fake_boot_ms;
    options.clock.wall_ms = fake_wall_ms;
    options.clock.boot_id = contract->clock.boot_id;
    options.clock.context = &contract->clock;
    return options;
}

enum cfoil_error contract_open(struct contract *contract, enum cfoil_open_mode mode)
{
    struct cfoil_store_options options = contract_options(contract, mode);
    char problem[512] = "";

    contract->handle = NULL;
    enum cfoil_error error =
        contract->ops->open(&options, &contract->handle, problem, sizeof(problem));
    if (error != CFOIL_OK) {
        assert_null(contract->handle);
        assert_true(problem[0] != '\0'); /* an operator is told what to do */
    }
    return error;
}

void contract_close(struct contract *contract)
{
    if (contract->handle != NULL) {
        contract->ops->close(contract->handle);
        contract->handle = NULL;
    }
}

void contract_reopen(struct contract *contract)
{
    contract_close(contract);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
}

void contract_pass_ms(struct contract *contract, int64_t ms)
{
    atomic_fetch_add(&contract->clock.boot_ms, ms);
    atomic_fetch_add(&contract->clock.wall_ms, ms);
}

void contract_step_wall_ms(struct contract *contract, int64_t ms)
{
    atomic_fetch_add(&contract->clock.wall_ms, ms);
}

void contract_reboot(struct contract *contract, int64_t wall_ms)
{
    assert_null(contract->handle);
    contract->clock.boot_id[5]++;
    atomic_store(&contract->clock.boot_ms, 20000);
    atomic_store(&contract->clock.wall_ms, wall_ms);
}

void contract_id(uint8_t *id, uint64_t number)
{
    memset(id, 0, CFOIL_ID_BYTES);
    for (size_t i = 0; i < 8; i++) {
        id[i] = (uint8_t)(number >> (8 * (7 - i)));
    }
    id[CFOIL_ID_BYTES - 1] = 1; /* no id of a test is all zero */
}

struct cfoil_bytes contract_draft(struct contract *contract, uint64_t generation,
                                  int64_t gone_after_ms, size_t body_bytes)
{
    return contract_draft_in(contract, contract->state, generation, gone_after_ms, body_bytes);
}

struct cfoil_bytes contract_draft_in(struct contract *contract, enum cfoil_state record_state,
                                     uint64_t generation, int64_t gone_after_ms, size_t body_bytes)
{
    struct cfoil_draft draft = {0};
    size_t len = 0;
    uint8_t *body = malloc(body_bytes + 1);

    assert_non_null(body);
    memset(body, (int)(generation & 0xff), body_bytes);
    draft.record.generation = generation;
    draft.record.fence = 1;
    draft.record.attempt = 1;
    draft.record.state = record_state;
    memset(draft.record.owner, 0xa5, sizeof(draft.record.owner));
    draft.record.snapshot.body = cfoil_bytes_of(body, body_bytes);
    draft.form[CFOIL_TIME_UPDATED] = CFOIL_TIME_AFTER; /* the store's now */
    if (gone_after_ms > 0) {
        draft.record.at_ms[CFOIL_TIME_GONE_AT] = gone_after_ms;
        draft.form[CFOIL_TIME_GONE_AT] = CFOIL_TIME_AFTER;
    }

    size_t bytes = cfoil_draft_encoded_bytes(&draft);
    uint8_t *encoded = malloc(bytes);
    assert_non_null(encoded);
    assert_int_equal(cfoil_draft_encode(&draft, encoded, bytes, &len), CFOIL_OK);
    free(body);
    assert_in_range(contract->owned_count, 0,
                    sizeof(contract->owned) / sizeof(contract->owned[0]) - 1);
    contract->owned[contract->owned_count++] = encoded;
    return cfoil_bytes_of(encoded, len);
}

struct cfoil_op contract_cas_op(uint64_t number, uint64_t expect, struct cfoil_bytes draft)
{
    struct cfoil_op op = {.kind = CFOIL_OP_CAS, .expect = expect, .draft = draft};

    contract_id(op.id, number);
    return op;
}

struct cfoil_op contract_get_op(uint64_t number)
{
    struct cfoil_op op = {.kind = CFOIL_OP_GET};

    contract_id(op.id, number);
    return op;
}

void contract_apply(struct contract *contract, struct cfoil_op *op)
{
    assert_int_equal(contract->ops->apply(contract->handle, &op, 1), CFOIL_OK);
}

void contract_claim(struct contract *contract, uint64_t number, uint64_t generation,
                    int64_t gone_after_ms)
{
    struct cfoil_op op = contract_cas_op(number, CFOIL_EXPECT_ABSENT,
                                         contract_draft(contract, generation, gone_after_ms, 20));

    contract_apply(contract, &op);
    assert_applied(&op);
}

void assert_applied(const struct cfoil_op *op)
{
    assert_int_equal(op->status, CFOIL_OP_APPLIED);
    assert_int_equal(op->error, CFOIL_OK);
    assert_true(op->now_ms > 0);
    assert_int_equal(op->current_bytes, 0);
}

void assert_shows(const struct cfoil_op *op, uint64_t generation)
{
    struct cfoil_record record;

    assert_int_equal(op->status, CFOIL_OP_CURRENT);
    assert_int_equal(op->error, CFOIL_OK);
    assert_true(op->now_ms > 0);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(op->current, op->current_bytes), &record),
                     CFOIL_OK);
    assert_int_equal(record.generation, generation);
}

void assert_absent(const struct cfoil_op *op)
{
    assert_int_equal(op->status, CFOIL_OP_CURRENT);
    assert_int_equal(op->error, CFOIL_OK);
    assert_true(op->now_ms > 0);
    assert_int_equal(op->current_bytes, 0);
}

void assert_failed(const struct cfoil_op *op, enum cfoil_error error)
{
    assert_int_equal(op->status, CFOIL_OP_FAILED);
    assert_int_equal(op->error, error);
    assert_int_equal(op->now_ms, 0);
    assert_int_equal(op->current_bytes, 0);
}

void assert_get_shows(struct contract *contract, uint64_t number, uint64_t generation)
{
    struct cfoil_op op = contract_get_op(number);

    contract_apply(contract, &op);
    assert_shows(&op, generation);
    cfoil_op_free_current(&op);
}

void assert_get_absent(struct contract *contract, uint64_t number)
{
    struct cfoil_op op = contract_get_op(number);

    contract_apply(contract, &op);
    assert_absent(&op);
    cfoil_op_free_current(&op);
}

void assert_get_fails(struct contract *contract, uint64_t number, enum cfoil_error error)
{
    struct cfoil_op op = contract_get_op(number);

    contract_apply(contract, &op);
    assert_failed(&op, error);
    cfoil_op_free_current(&op);
}

static size_t places_of(struct contract *contract, uint64_t number)
{
    uint8_t id[CFOIL_ID_BYTES];

    contract_id(id, number);
    assert_null(contract->handle);
    struct contract_places places = contract->store->hands->places(contract->dir, id);
    return (places.pending ? 1U : 0U) + (places.records ? 1U : 0U);
}

static bool has_places(const struct contract *contract)
{
    return contract->store->hands != NULL && contract->store->hands->places != NULL;
}

void assert_stands_once(struct contract *contract, uint64_t number)
{
    if (has_places(contract)) {
        assert_int_equal(places_of(contract, number), 1);
    }
}

void assert_stands_at_most_once(struct contract *contract, uint64_t number)
{
    if (has_places(contract)) {
        assert_in_range(places_of(contract, number), 0, 1);
    }
}

uint64_t contract_seed(void)
{
    const char *given = getenv("CFOIL_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);

    print_message("# CFOIL_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

uint64_t contract_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
