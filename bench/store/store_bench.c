/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims and settles per second through a lane, with so many operations kept in flight. Owns nothing
 * but the store it is given: use a new one, or one filled before.
 *
 *   store_bench URL [SECONDS [FILL]]       for example: store_bench lmdb:/var/tmp/bench 3 1000000
 *
 * A claim is cas(ABSENT) on a random id with a small record; a settle is cas(generation) on an id
 * claimed before, with a larger one. A result other than APPLIED ends the run.
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
    uint8_t (*claimed)[CFOIL_ID_BYTES]; /* settled in the order they were claimed */
    size_t claimed_count;
    size_t claimed_max;
    size_t settled_count;
    bool settling;
    bool stopping;
    uint64_t finished;
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

/* Sets the op's next operation; false when there is none left. */
static bool prepare(struct bench *bench, struct cfoil_op *op)
{
    if (bench->settling) {
        if (bench->settled_count == bench->claimed_count) {
            return false;
        }
        memcpy(op->id, bench->claimed[bench->settled_count++], CFOIL_ID_BYTES);
        op->expect = 1;
        op->draft = cfoil_bytes_of(bench->settle, bench->settle_bytes);
        return true;
    }
    if (bench->claimed_count == bench->claimed_max) {
        return false;
    }
    for (size_t i = 0; i < CFOIL_ID_BYTES; i += 8) {
        uint64_t random = next_random(bench);
        memcpy(op->id + i, &random, 8);
    }
    memcpy(bench->claimed[bench->claimed_count++], op->id, CFOIL_ID_BYTES);
    op->expect = CFOIL_EXPECT_ABSENT;
    op->draft = cfoil_bytes_of(bench->claim, bench->claim_bytes);
    return true;
}

static void done(struct cfoil_op *op)
{
    struct bench *bench = op->context;

    if (op->status != CFOIL_OP_APPLIED) {
        die(op->error != CFOIL_OK ? cfoil_error_text(op->error) : "a conflict on a new id");
    }
    bench->finished++;
    if (!bench->stopping && prepare(bench, op)) {
        cfoil_lane_submit(bench->lane, op);
    }
}

static double run(struct bench *bench, size_t in_flight, double seconds)
{
    static struct cfoil_op ops[IN_FLIGHT_MAX];
    struct pollfd fd = {cfoil_lane_fd(bench->lane), POLLIN, 0};
    double start = seconds_now();

    bench->finished = 0;
    bench->stopping = false;
    for (size_t i = 0; i < in_flight; i++) {
        ops[i].kind = CFOIL_OP_CAS;
        ops[i].done = done;
        ops[i].context = bench;
        if (prepare(bench, &ops[i])) {
            cfoil_lane_submit(bench->lane, &ops[i]);
        }
    }
    while (cfoil_lane_pending(bench->lane) > 0) {
        cfoil_lane_flush(bench->lane);
        (void)poll(&fd, 1, -1);
        (void)cfoil_lane_poll(bench->lane);
        bench->stopping = seconds > 0 && seconds_now() - start >= seconds;
    }
    return (double)bench->finished / (seconds_now() - start);
}

static void report(struct bench *bench, const char *what, size_t in_flight, double seconds)
{
    struct cfoil_lane_stats before;
    struct cfoil_lane_stats after;

    cfoil_lane_read_stats(bench->lane, &before);
    double rate = run(bench, in_flight, seconds);
    cfoil_lane_read_stats(bench->lane, &after);
    double operations = (double)(after.operations - before.operations);
    double batches = (double)(after.batches - before.batches);
    (void)printf("%-7s in flight %3zu: %8.0f/s, %5.1f per batch, %5.1f us of thread CPU each\n",
                 what, in_flight, rate, operations / batches,
                 (double)(after.thread_cpu_us - before.thread_cpu_us) / operations);
}

static void fill(struct bench *bench, size_t records)
{
    bench->claimed_max = records;
    if (records > 0) {
        (void)run(bench, IN_FLIGHT_MAX, 0);
    }
    bench->claimed_count = 0;
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
    size_t room = records > 4000000 ? records : 4000000;
    options.store.url = argv[1];
    options.store.mode = CFOIL_OPEN_CREATE;
    bench.claimed = malloc(room * sizeof(*bench.claimed));
    if (bench.claimed == NULL ||
        cfoil_lane_open(&options, &bench.lane, problem, sizeof(problem)) != CFOIL_OK) {
        die(problem);
    }
    bench.claim_bytes =
        encode(1, CFOIL_STATE_PROCESSING, CLAIM_BODY_BYTES, bench.claim, sizeof(bench.claim));
    bench.settle_bytes =
        encode(2, CFOIL_STATE_SUCCEEDED, SETTLE_BODY_BYTES, bench.settle, sizeof(bench.settle));
    fill(&bench, records);
    bench.claimed_max = room;
    for (size_t i = 0; i < sizeof(pressures) / sizeof(pressures[0]); i++) {
        bench.claimed_count = 0;
        bench.settled_count = 0;
        bench.settling = false;
        report(&bench, "claims", pressures[i], seconds);
        bench.settling = true;
        report(&bench, "settles", pressures[i], seconds);
    }
    cfoil_lane_close(bench.lane);
    free(bench.claimed);
    return 0;
}
