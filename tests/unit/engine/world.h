/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every engine test stands in: a scripted memory store behind a threadless lane, an engine, two
 * clocks that only the test moves, and callers who count what they are told.
 *
 *     caller --begin, settle, free--> engine --ops--> lane --world_turn--> script store
 *
 * Invariants checked here for every test, so that none can forget them: no callback runs inside a
 * call into the engine that is not poll or tick; each callback comes at most once per call that
 * asked for it; when a world is closed nothing is busy unless the test said so.
 */
#ifndef TESTS_ENGINE_WORLD_H
#define TESTS_ENGINE_WORLD_H

#include "engine/engine.h"

#include "script_store.h"

#define WORLD_LEASE_MS  15000
#define WORLD_TTL_MS    86400000
#define WORLD_FAILED_MS 600000
#define WORLD_TRUST_MS  60000
#define WORLD_PROBE_MS  5000

struct world {
    int64_t engine_ms;
    int64_t store_ms;
    bool may_call_back;
    bool expect_busy; /* close without the check that nothing is busy */
    struct cfoil_lane *lane;
    struct cfoil_engine *engine;
    struct cfoil_store *script;
    size_t logged;
    enum cfoil_error logged_error;
    char logged_text[256];
};

/* One request of a host, and what it was told. */
struct caller {
    struct world *world;
    struct cfoil_claim *claim;
    bool ready;
    bool free_in_callback;
    size_t answered;
    size_t settled;
    enum cfoil_settle_status status;
};

void world_open(struct world *world, bool with_look_up);
void world_close(struct world *world);

/* Flushes and polls until nothing is in flight. */
void world_turn(struct world *world);

/* Lets both clocks run, firing every timer at its time and serving the store after each. */
void world_advance(struct world *world, int64_t ms);

struct cfoil_engine_stats world_stats(const struct world *world);

/* Ids and requests. `body` other than 0 is another fingerprint. */
void world_id(uint8_t id[CFOIL_ID_BYTES], unsigned number);
struct cfoil_begin_request world_request(unsigned number, unsigned body);

/* Calls, each checked to call nobody back. begin asserts CFOIL_OK, try_begin returns the error. */
enum cfoil_error caller_try_begin(struct world *world, struct caller *caller,
                                  const struct cfoil_begin_request *request);
void caller_begin(struct world *world, struct caller *caller,
                  const struct cfoil_begin_request *request);
const struct cfoil_result *caller_result(const struct caller *caller);
enum cfoil_error caller_settle(struct caller *caller, enum cfoil_state outcome, const char *body);
enum cfoil_error caller_probe(struct caller *caller, enum cfoil_probe_answer answer,
                              const char *body);
void caller_free(struct caller *caller, enum cfoil_state unsettled, enum cfoil_cause cause);

/* begin and one turn; asserts the verdict. */
void caller_claims(struct world *world, struct caller *caller, unsigned number,
                   enum cfoil_verdict verdict);
/* The same with a request of the test's own. */
void caller_asks(struct world *world, struct caller *caller,
                 const struct cfoil_begin_request *request, enum cfoil_verdict verdict);
/* A claim that executed and was settled with SUCCEEDED and this body, and freed. */
void world_settled(struct world *world, unsigned number, const char *body);

/* An operator's act on a record, carried through in one turn; what its callback was told. */
enum cfoil_error world_operates(struct world *world, unsigned number,
                                const struct cfoil_event *event);

/* What stands in the store: its effective state, and the record copied without its views. */
enum cfoil_state world_state(struct world *world, unsigned number, struct cfoil_record *record);
bool world_has_body(struct world *world, unsigned number, const char *body);

#endif
