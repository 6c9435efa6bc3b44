/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests per second through a lane, with so many of them kept in flight: each is a claim, and then
 * the settle of it. Owns nothing but the store it is given: use a new one, or one filled before.
 *
 *   store_bench URL [SECONDS [FILL]]       for example: store_bench lmdb:/var/tmp/bench 3 1000000
 *
 * A claim is cas(ABSENT) on a random id with a small record; a settle is cas(generation) on it with a
 * larger one. FILL puts so many settled records there first. A result other than APPLIED ends the run.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "store/lane.h"

#define CLAIM_BODY_BYTES  0
#define SETTLE_BODY_BYTES 200
#define IN_FLIGHT_MAX     256

struct bench {
    struct cfoil_lane *lane;
    uint64_t random;
    uint8_t claim[1024];
    uint8_t settle[1024];
    size_t claim_bytes;
    size_t settle_bytes;
    size_t left; /* to be made by a fill; 0: none, or no limit */
    bool filling;
    bool stopping;
    uint64_t settled;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "store_bench: %s\n", what);
    exit(1);
}

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t next_random(struct bench *bench)
{
    uint64_t z = bench->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t encode(uint64_t generation, enum cfoil_state state, size_t body_bytes, uint8_t *out,
                     size_t out_bytes)
{
    static const uint8_t body[SETTLE_BODY_BYTES];
    struct cfoil_draft draft = {0};
    size_t len = 0;

    draft.record.generation = generation;
    draft.record.fence = 1;
    draft.record.attempt = 1;
    draft.record.state = state;
    memset(draft.record.owner, 7, sizeof(draft.record.owner));
    draft.record.snapshot.status = body_bytes > 0 ? 201 : 0;
    draft.record.snapshot.body = cfoil_bytes_of(body, body_bytes);
    draft.record.at_ms[CFOIL_TIME_GONE_AT] = 86400000;
    draft.form[CFOIL_TIME_GONE_AT] = CFOIL_TIME_AFTER;
    if (cfoil_draft_encode(&draft, out, out_bytes, &len) != CFOIL_OK) {
        die("the draft does not encode");
    }
    return len;
}

static bool is_claim(const struct bench *bench, const struct cfoil_op *op)
{
    return op->draft.data == bench->claim;
}

/* A settle follows its claim; a fill settles what was never claimed. False: nothing more to do. */
static bool prepare(struct bench *bench, struct cfoil_op *op)
{
    if (is_claim(bench, op)) {
        op->expect = 1;
        op->draft = cfoil_bytes_of(bench->settle, bench->settle_bytes);
        return true;
    }
    if (bench->stopping || (bench->filling && bench->left == 0)) {
        return false;
    }
    for (size_t i = 0; i < CFOIL_ID_BYTES; i += 8) {
        uint64_t random = next_random(bench);
        memcpy(op->id + i, &random, 8);
    }
    op->expect = CFOIL_EXPECT_ABSENT;
    op->draft = cfoil_bytes_of(bench->claim, bench->claim_bytes);
    if (bench->filling) {
        op->draft = cfoil_bytes_of(bench->settle, bench->settle_bytes);
        bench->left--;
    }
    return true;
}

static void done(struct cfoil_op *op)
{
    struct bench *bench = op->context;

    if (op->status != CFOIL_OP_APPLIED) {
        die(op->error != CFOIL_OK ? cfoil_error_text(op->error) : "a conflict on a new id");
    }
    bench->settled += is_claim(bench, op) ? 0 : 1;
    if (prepare(bench, op)) {
        cfoil_lane_submit(bench->lane, op);
    }
}

/* Submits `count` fresh ops. */
static void start(struct bench *bench, struct cfoil_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ops[i] = (struct cfoil_op){.kind = CFOIL_OP_CAS, .done = done, .context = bench};
        if (prepare(bench, &ops[i])) {
            cfoil_lane_submit(bench->lane, &ops[i]);
        }
    }
}

static void turn(struct bench *bench)
{
    struct pollfd fd = {cfoil_lane_fd(bench->lane), POLLIN, 0};

    cfoil_lane_flush(bench->lane);
    (void)poll(&fd, 1, -1);
    (void)cfoil_lane_poll(bench->lane);
}

/* One half begins a batch later, so that claims and settles are mixed as they are in a gateway. */
static double run(struct bench *bench, size_t in_flight, double seconds)
{
    static struct cfoil_op ops[IN_FLIGHT_MAX];
    size_t late = in_flight / 2;
    double began = seconds_now();

    bench->settled = 0;
    bench->stopping = false;
    start(bench, ops + late, in_flight - late);
    turn(bench);
    start(bench, ops, late);
    while (cfoil_lane_pending(bench->lane) > 0) {
        turn(bench);
        bench->stopping = seconds > 0 && seconds_now() - began >= seconds;
    }
    return (double)bench->settled / (seconds_now() - began);
}

static void report(struct bench *bench, size_t in_flight, double seconds)
{
    struct cfoil_lane_stats before;
    struct cfoil_lane_stats after;

    cfoil_lane_read_stats(bench->lane, &before);
    double rate = run(bench, in_flight, seconds);
    cfoil_lane_read_stats(bench->lane, &after);
    double batches = (double)(after.batches - before.batches);
    (void)printf("in flight %3zu: %8.0f requests/s, %5.1f operations per batch, %5.1f us of thread "
                 "CPU per request\n",
                 in_flight, rate, (double)(after.operations - before.operations) / batches,
                 (double)(after.thread_cpu_us - before.thread_cpu_us) / (double)bench->settled);
}

static void fill(struct bench *bench, size_t records)
{
    bench->left = records;
    bench->filling = records > 0;
    if (records > 0) {
        (void)run(bench, IN_FLIGHT_MAX, 0);
    }
    bench->filling = false;
}

int main(int argc, char **argv)
{
    static const size_t pressures[] = {1, 16, 64};
    struct bench bench = {.random = (uint64_t)time(NULL)};
    struct cfoil_lane_options options = {0};
    char problem[512] = "";

    if (argc < 2) {
        die("usage: store_bench URL [SECONDS [FILL]]");
    }
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 3;
    size_t records = argc > 3 ? (size_t)strtoull(argv[3], NULL, 10) : 0;
    options.store.url = argv[1];
    options.store.mode = CFOIL_OPEN_CREATE;
    if (cfoil_lane_open(&options, &bench.lane, problem, sizeof(problem)) != CFOIL_OK) {
        die(problem);
    }
    bench.claim_bytes =
        encode(1, CFOIL_STATE_PROCESSING, CLAIM_BODY_BYTES, bench.claim, sizeof(bench.claim));
    bench.settle_bytes =
        encode(2, CFOIL_STATE_SUCCEEDED, SETTLE_BODY_BYTES, bench.settle, sizeof(bench.settle));
    fill(&bench, records);
    for (size_t i = 0; i < sizeof(pressures) / sizeof(pressures[0]); i++) {
        report(&bench, pressures[i], seconds);
    }
    cfoil_lane_close(bench.lane);
    return 0;
}
