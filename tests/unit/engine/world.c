/* SPDX-License-Identifier: Apache-2.0 */
/* The engine tests' world; see world.h. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#define TURNS_MAX 1000

static int64_t engine_now_ms(void *context)
{
    const struct world *world = context;
    return world->engine_ms;
}

static int64_t store_now_ms(void *context)
{
    const struct world *world = context;
    return world->store_ms;
}

static void note_log(void *context, enum cfoil_error error, const char *text)
{
    struct world *world = context;

    world->logged++;
    world->logged_error = error;
    snprintf(world->logged_text, sizeof(world->logged_text), "%s", text);
}

void world_open(struct world *world, bool with_look_up)
{
    char problem[256] = "";

    memset(world, 0, sizeof(*world));
    world->engine_ms = 1000;
    world->store_ms = 1700000000000;
    struct cfoil_lane_options lane = {
        .store = {.url = "memory:",
                  .mode = CFOIL_OPEN_CREATE,
                  .clock = {store_now_ms, store_now_ms, "test-boot", world}},
        .ops = with_look_up ? &script_store : &script_store_no_look,
        .threadless = true};
    assert_int_equal(cfoil_lane_open(&lane, &world->lane, problem, sizeof(problem)), CFOIL_OK);
    world->script = script_of(world->lane);
    struct cfoil_engine_options engine = {
        .lane = world->lane, .now_ms = engine_now_ms, .context = world, .log = note_log};
    assert_int_equal(cfoil_engine_create(&engine, &world->engine), CFOIL_OK);
}

void world_close(struct world *world)
{
    if (!world->expect_busy) {
        assert_int_equal(cfoil_engine_busy(world->engine), 0);
        assert_int_equal(cfoil_engine_due_ms(world->engine), -1);
    }
    cfoil_engine_free(world->engine);
    cfoil_lane_close(world->lane);
}

void world_turn(struct world *world)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        cfoil_engine_flush(world->engine);
        world->may_call_back = true;
        cfoil_engine_poll(world->engine);
        world->may_call_back = false;
        if (cfoil_lane_pending(world->lane) == 0) {
            return;
        }
    }
    fail_msg("the engine does not come to rest");
}

static void pass(struct world *world, int64_t ms)
{
    world->engine_ms += ms;
    world->store_ms += ms;
}

void world_advance(struct world *world, int64_t ms)
{
    int64_t left_ms = ms;

    world_turn(world);
    for (;;) {
        int64_t due_ms = cfoil_engine_due_ms(world->engine);
        if (due_ms < 0 || due_ms > left_ms) {
            break;
        }
        pass(world, due_ms);
        left_ms -= due_ms;
        world->may_call_back = true;
        cfoil_engine_tick(world->engine);
        world->may_call_back = false;
        world_turn(world);
    }
    pass(world, left_ms);
}

struct cfoil_engine_stats world_stats(const struct world *world)
{
    struct cfoil_engine_stats stats;

    cfoil_engine_read_stats(world->engine, &stats);
    return stats;
}

void world_id(uint8_t id[CFOIL_ID_BYTES], unsigned number)
{
    memset(id, 0, CFOIL_ID_BYTES);
    id[0] = (uint8_t)(number * 37);
    id[1] = (uint8_t)number;
    id[31] = 7;
}

struct cfoil_begin_request world_request(unsigned number, unsigned body)
{
    struct cfoil_begin_request request = {.terms = {.semantics = CFOIL_SEMANTICS_STRICT,
                                                    .in_doubt = CFOIL_IN_DOUBT_HOLD,
                                                    .lease_ms = WORLD_LEASE_MS,
                                                    .ttl_ms = WORLD_TTL_MS,
                                                    .failed_ms = WORLD_FAILED_MS,
                                                    .trust_absent_after_ms = WORLD_TRUST_MS,
                                                    .probe_lease_ms = WORLD_PROBE_MS,
                                                    .retry_after_ms = 2000}};
    struct cfoil_origin *origin = &request.origin;

    world_id(request.id, number);
    origin->scope.layer = cfoil_bytes_text("app");
    origin->scope.kind = CFOIL_KIND_KEY;
    origin->scope.tenant_class = CFOIL_TENANT_NAMED;
    origin->scope.tenant = cfoil_bytes_text("acme");
    origin->scope.endpoint = cfoil_bytes_text("POST /api/orders");
    origin->scope.key = cfoil_bytes_text("key-1");
    origin->first_request_id = cfoil_bytes_text("request-1");
    origin->fingerprint.rules = 1;
    memset(origin->fingerprint.request_hash, (int)(10 + body), CFOIL_DIGEST_BYTES);
    memset(origin->fingerprint.raw_hash, (int)(20 + body), CFOIL_DIGEST_BYTES);
    memset(origin->fingerprint.target_hash, 30, CFOIL_DIGEST_BYTES);
    return request;
}

static void on_answer(void *context, struct cfoil_claim *claim)
{
    struct caller *caller = context;

    assert_true(caller->world->may_call_back);
    assert_ptr_equal(claim, caller->claim);
    caller->answered++;
    if (caller->free_in_callback) {
        cfoil_claim_free(claim, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        caller->claim = NULL;
    }
}

static void on_settled(void *context, struct cfoil_claim *claim, enum cfoil_settle_status status)
{
    struct caller *caller = context;

    assert_true(caller->world->may_call_back);
    assert_ptr_equal(claim, caller->claim);
    caller->settled++;
    caller->status = status;
    if (caller->free_in_callback) {
        cfoil_claim_free(claim, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
        caller->claim = NULL;
    }
}

/* What was given is spoiled after the call: everything must have been copied. */
enum cfoil_error caller_try_begin(struct world *world, struct caller *caller,
                                  const struct cfoil_begin_request *request)
{
    struct cfoil_begin_request given = *request;
    char key[64];

    snprintf(key, sizeof(key), "%.*s", (int)request->origin.scope.key.len,
             (const char *)request->origin.scope.key.data);
    given.origin.scope.key = cfoil_bytes_text(key);
    caller->world = world;
    enum cfoil_error error =
        cfoil_begin(world->engine, &given, on_answer, caller, &caller->claim, &caller->ready);
    memset(key, 'X', sizeof(key));
    return error;
}

void caller_begin(struct world *world, struct caller *caller,
                  const struct cfoil_begin_request *request)
{
    assert_int_equal(caller_try_begin(world, caller, request), CFOIL_OK);
}

const struct cfoil_result *caller_result(const struct caller *caller)
{
    return cfoil_claim_result(caller->claim);
}

static struct cfoil_ending ending_of(enum cfoil_state outcome, const char *body)
{
    struct cfoil_ending ending = {.outcome = outcome};

    if (outcome == CFOIL_STATE_IN_DOUBT) {
        ending.cause = CFOIL_CAUSE_TIMEOUT;
    }
    if (body != NULL) {
        ending.snapshot.status = 201;
        ending.snapshot.body = cfoil_bytes_text(body);
    }
    return ending;
}

enum cfoil_error caller_settle(struct caller *caller, enum cfoil_state outcome, const char *body)
{
    struct cfoil_ending ending = ending_of(outcome, body);
    return cfoil_settle(caller->claim, &ending, on_settled, caller);
}

enum cfoil_error caller_probe(struct caller *caller, enum cfoil_probe_answer answer,
                              const char *body)
{
    struct cfoil_ending ending = ending_of(CFOIL_STATE_SUCCEEDED, body);
    return cfoil_probe_report(caller->claim, answer, &ending, on_answer, caller);
}

void caller_free(struct caller *caller, enum cfoil_state unsettled, enum cfoil_cause cause)
{
    cfoil_claim_free(caller->claim, unsettled, cause);
    caller->claim = NULL;
}

void caller_asks(struct world *world, struct caller *caller,
                 const struct cfoil_begin_request *request, enum cfoil_verdict verdict)
{
    size_t answered = caller->answered;

    caller_begin(world, caller, request);
    world_turn(world);
    assert_int_equal(caller->answered, answered + (caller->ready ? 0 : 1));
    assert_int_equal(caller_result(caller)->error, CFOIL_OK);
    assert_string_equal(cfoil_verdict_name(caller_result(caller)->verdict),
                        cfoil_verdict_name(verdict));
}

void caller_claims(struct world *world, struct caller *caller, unsigned number,
                   enum cfoil_verdict verdict)
{
    struct cfoil_begin_request request = world_request(number, 0);

    caller_asks(world, caller, &request, verdict);
}

void world_settled(struct world *world, unsigned number, const char *body)
{
    struct caller caller = {0};

    caller_claims(world, &caller, number, CFOIL_VERDICT_EXECUTE);
    assert_int_equal(caller_settle(&caller, CFOIL_STATE_SUCCEEDED, body), CFOIL_OK);
    world_turn(world);
    assert_int_equal(caller.status, CFOIL_SETTLE_DURABLE);
    assert_int_equal(caller.settled, 1);
    caller_free(&caller, CFOIL_STATE_FAILED, CFOIL_CAUSE_NONE);
}

struct act {
    struct world *world;
    size_t told;
    enum cfoil_error error;
};

static void on_operated(void *context, enum cfoil_error error)
{
    struct act *act = context;

    assert_true(act->world->may_call_back);
    act->told++;
    act->error = error;
}

enum cfoil_error world_operates(struct world *world, unsigned number,
                                const struct cfoil_event *event)
{
    struct act act = {.world = world};
    uint8_t id[CFOIL_ID_BYTES];

    world_id(id, number);
    assert_int_equal(cfoil_operate(world->engine, id, event, on_operated, &act), CFOIL_OK);
    world_turn(world);
    assert_int_equal(act.told, 1);
    return act.error;
}

enum cfoil_state world_state(struct world *world, unsigned number, struct cfoil_record *record)
{
    struct cfoil_op op = {.kind = CFOIL_OP_GET};
    struct cfoil_record read = {0};
    uint8_t id[CFOIL_ID_BYTES];

    world_id(id, number);
    bool there = script_read(world->script, id, &op, &read);
    enum cfoil_state state = cfoil_record_effective(there ? &read : NULL, world->store_ms);
    if (record != NULL) {
        *record = read;
    }
    cfoil_op_free_current(&op);
    return state;
}

bool world_has_body(struct world *world, unsigned number, const char *body)
{
    struct cfoil_op op = {.kind = CFOIL_OP_GET};
    struct cfoil_record read = {0};
    uint8_t id[CFOIL_ID_BYTES];

    world_id(id, number);
    bool has = script_read(world->script, id, &op, &read) && read.snapshot.status == 201 &&
               cfoil_bytes_equal(read.snapshot.body, cfoil_bytes_text(body));
    cfoil_op_free_current(&op);
    return has;
}
