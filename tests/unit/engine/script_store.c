/* SPDX-License-Identifier: Apache-2.0 */
/* The misbehaving store; see script_store.h. Asserts on its own mistakes and on nothing else. */
#include "script_store.h"

#include <assert.h>
#include <stdlib.h>

#include "store/judge.h"

#define RULES_MAX     16
#define HELD_MAX      256
#define GARBAGE_BYTES 2000 /* more than any test record, so that a stale view is seen */

struct rule {
    enum script_kind kind;
    enum script_act act;
    unsigned turns;
    enum cfoil_error error;
};

struct cfoil_store {
    struct cfoil_store *inner;
    struct rule rules[RULES_MAX];
    size_t rule_count;
    struct cfoil_op *held[HELD_MAX];
    size_t held_count;
    size_t seen;
};

static enum cfoil_error script_open(const struct cfoil_store_options *options,
                                    struct cfoil_store **store, char *problem, size_t problem_bytes)
{
    struct cfoil_store *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }

    enum cfoil_error error = cfoil_store_memory.open(options, &made->inner, problem, problem_bytes);
    if (error != CFOIL_OK) {
        free(made);
        return error;
    }
    *store = made;
    return CFOIL_OK;
}

static void free_copy(struct cfoil_op *op)
{
    free((void *)(uintptr_t)op->draft.data);
    cfoil_op_free_current(op);
    free(op);
}

static void script_close(struct cfoil_store *script)
{
    for (size_t i = 0; i < script->held_count; i++) {
        free_copy(script->held[i]);
    }
    cfoil_store_memory.close(script->inner);
    free(script);
}

static void script_identity(const struct cfoil_store *script, uint8_t *store_id)
{
    cfoil_store_memory.identity(script->inner, store_id);
}

static void apply_inner(struct cfoil_store *script, struct cfoil_op *op)
{
    enum cfoil_error error = cfoil_store_memory.apply(script->inner, &op, 1);
    assert(error == CFOIL_OK);
    (void)error;
}

static void hold(struct cfoil_store *script, const struct cfoil_op *op)
{
    struct cfoil_op *copy = calloc(1, sizeof(*copy));
    uint8_t *bytes = malloc(op->draft.len + 1);

    assert(copy != NULL && bytes != NULL && script->held_count < HELD_MAX);
    copy->kind = op->kind;
    copy->overwrite_corrupt = op->overwrite_corrupt;
    memcpy(copy->id, op->id, CFOIL_ID_BYTES);
    copy->expect = op->expect;
    if (op->draft.len > 0) {
        memcpy(bytes, op->draft.data, op->draft.len);
    }
    copy->draft = cfoil_bytes_of(bytes, op->draft.len);
    script->held[script->held_count++] = copy;
}

static void show_garbage(struct cfoil_op *op)
{
    uint8_t garbage[GARBAGE_BYTES];

    memset(garbage, 0xa5, sizeof(garbage));
    cfoil_op_finish(op, CFOIL_OP_CURRENT, CFOIL_OK, 1);
    enum cfoil_error error = cfoil_op_set_current(op, cfoil_bytes_of(garbage, sizeof(garbage)));
    assert(error == CFOIL_OK);
    (void)error;
}

/* The same record again, with the next generation: what a quick other writer would leave. */
static void race(struct cfoil_store *script, const uint8_t *id)
{
    struct cfoil_op op = {.kind = CFOIL_OP_GET};
    struct cfoil_draft draft = {0};

    if (script_read(script, id, &op, &draft.record)) {
        draft.record.generation++;
        script_write(script, id, &draft);
    }
    cfoil_op_free_current(&op);
}

static void act_on(struct cfoil_store *script, struct cfoil_op *op, const struct rule *rule)
{
    switch (rule->act) {
    case SCRIPT_LOSE_AFTER:
        apply_inner(script, op);
        break;
    case SCRIPT_DELAY:
        hold(script, op);
        break;
    case SCRIPT_FAIL:
        cfoil_op_finish(op, CFOIL_OP_FAILED, rule->error, 0);
        return;
    case SCRIPT_SILENT:
        cfoil_op_finish(op, CFOIL_OP_FAILED, CFOIL_OK, 0);
        return;
    case SCRIPT_GARBAGE:
        show_garbage(op);
        return;
    case SCRIPT_DAMAGE:
        apply_inner(script, op);
        if (op->current_bytes > CFOIL_RECORD_HEADER_BYTES) {
            op->current[op->current_bytes - 1] ^= 0x40;
        }
        return;
    case SCRIPT_RACE:
        race(script, op->id);
        apply_inner(script, op);
        return;
    case SCRIPT_PASS:
        apply_inner(script, op);
        return;
    case SCRIPT_LOSE_BEFORE:
        break;
    }
    cfoil_op_finish(op, CFOIL_OP_UNKNOWN, CFOIL_E_REPLY_LOST, 0);
}

static struct rule *rule_for(struct cfoil_store *script, const struct cfoil_op *op)
{
    enum script_kind kind = op->kind == CFOIL_OP_GET ? SCRIPT_GET : SCRIPT_CAS;

    for (size_t i = 0; i < script->rule_count; i++) {
        struct rule *rule = &script->rules[i];
        if (rule->turns > 0 && (rule->kind == SCRIPT_ANY || rule->kind == kind)) {
            return rule;
        }
    }
    return NULL;
}

static enum cfoil_error script_apply(struct cfoil_store *script, struct cfoil_op **ops,
                                     size_t count)
{
    static const struct rule pass = {SCRIPT_ANY, SCRIPT_PASS, 1, CFOIL_OK};

    for (size_t i = 0; i < count; i++) {
        struct rule *rule = rule_for(script, ops[i]);
        script->seen++;
        if (rule != NULL && rule->turns != SCRIPT_ALWAYS) {
            rule->turns--;
        }
        act_on(script, ops[i], rule != NULL ? rule : &pass);
    }
    return CFOIL_OK;
}

/* A look-up passes unless gets are told to fail, so that a store can be down for both. */
static void script_lookup(struct cfoil_store *script, struct cfoil_op *op)
{
    struct rule *rule = rule_for(script, op);

    if (rule != NULL && rule->act == SCRIPT_FAIL) {
        cfoil_op_finish(op, CFOIL_OP_FAILED, rule->error, 0);
        return;
    }
    if (rule != NULL && rule->act == SCRIPT_GARBAGE) {
        show_garbage(op);
        return;
    }
    cfoil_store_memory.lookup(script->inner, op);
}

static enum cfoil_error script_scan(struct cfoil_store *script, const uint8_t *cursor,
                                    uint64_t limit, cfoil_scan_visit visit, void *context)
{
    return cfoil_store_memory.scan(script->inner, cursor, limit, visit, context);
}

static enum cfoil_error script_sweep(struct cfoil_store *script, struct cfoil_sweep *sweep,
                                     uint64_t limit)
{
    return cfoil_store_memory.sweep(script->inner, sweep, limit);
}

struct cfoil_store *script_of(struct cfoil_lane *lane)
{
    const struct cfoil_store_ops *ops = NULL;
    struct cfoil_store *script = cfoil_lane_store(lane, &ops);

    assert(ops == &script_store || ops == &script_store_no_look);
    return script;
}

void script_add(struct cfoil_store *script, enum script_kind kind, enum script_act act,
                unsigned turns, enum cfoil_error error)
{
    assert(script->rule_count < RULES_MAX);
    script->rules[script->rule_count++] = (struct rule){kind, act, turns, error};
}

void script_clear(struct cfoil_store *script)
{
    script->rule_count = 0;
}

size_t script_release(struct cfoil_store *script)
{
    size_t applied = 0;

    for (size_t i = 0; i < script->held_count; i++) {
        apply_inner(script, script->held[i]);
        applied += script->held[i]->status == CFOIL_OP_APPLIED;
        free_copy(script->held[i]);
    }
    script->held_count = 0;
    return applied;
}

size_t script_held(const struct cfoil_store *script)
{
    return script->held_count;
}

size_t script_seen(struct cfoil_store *script)
{
    size_t seen = script->seen;

    script->seen = 0;
    return seen;
}

bool script_read(struct cfoil_store *script, const uint8_t *id, struct cfoil_op *op,
                 struct cfoil_record *record)
{
    op->kind = CFOIL_OP_GET;
    memcpy(op->id, id, CFOIL_ID_BYTES);
    cfoil_store_memory.lookup(script->inner, op);
    if (op->status != CFOIL_OP_CURRENT || op->current_bytes == 0) {
        return false;
    }
    return cfoil_record_decode(cfoil_bytes_of(op->current, op->current_bytes), record) == CFOIL_OK;
}

/* Writes encoded bytes over whatever stands there. */
static void overwrite(struct cfoil_store *script, const uint8_t *id, struct cfoil_bytes draft)
{
    struct cfoil_op op = {.kind = CFOIL_OP_GET, .draft = draft};
    struct cfoil_record_head head;

    memcpy(op.id, id, CFOIL_ID_BYTES);
    cfoil_store_memory.lookup(script->inner, &op);
    op.expect = CFOIL_EXPECT_ABSENT;
    if (op.current_bytes > 0 &&
        cfoil_record_peek(cfoil_bytes_of(op.current, op.current_bytes), &head) == CFOIL_OK) {
        op.expect = head.generation;
    }
    op.kind = CFOIL_OP_CAS;
    op.overwrite_corrupt = true;
    apply_inner(script, &op);
    assert(op.status == CFOIL_OP_APPLIED);
    cfoil_op_free_current(&op);
}

void script_write(struct cfoil_store *script, const uint8_t *id, const struct cfoil_draft *draft)
{
    size_t bytes = cfoil_draft_encoded_bytes(draft);
    uint8_t *encoded = malloc(bytes);
    size_t len = 0;

    assert(encoded != NULL);
    enum cfoil_error error = cfoil_draft_encode(draft, encoded, bytes, &len);
    assert(error == CFOIL_OK);
    (void)error;
    overwrite(script, id, cfoil_bytes_of(encoded, len));
    free(encoded);
}

void script_spoil(struct cfoil_store *script, const uint8_t *id, bool header)
{
    struct cfoil_op op = {.kind = CFOIL_OP_GET};

    memcpy(op.id, id, CFOIL_ID_BYTES);
    cfoil_store_memory.lookup(script->inner, &op);
    assert(op.status == CFOIL_OP_CURRENT && op.current_bytes > CFOIL_RECORD_HEADER_BYTES);
    op.current[header ? 0 : op.current_bytes - 1] ^= 0x40;
    overwrite(script, id, cfoil_bytes_of(op.current, op.current_bytes));
    cfoil_op_free_current(&op);
}

void script_remove(struct cfoil_store *script, const uint8_t *id)
{
    struct cfoil_op op = {.kind = CFOIL_OP_GET};
    struct cfoil_draft draft = {0};

    if (script_read(script, id, &op, &draft.record)) {
        draft.record.at_ms[CFOIL_TIME_REPLAY_UNTIL] = 1;
        draft.record.at_ms[CFOIL_TIME_GONE_AT] = 1;
        script_write(script, id, &draft);
    }
    cfoil_op_free_current(&op);
}

#define SCRIPT_OPS(look_up)                                                                        \
    {                                                                                              \
        .scheme = "memory", .has_lookup = look_up, .open = script_open, .close = script_close,     \
        .identity = script_identity, .apply = script_apply, .lookup = script_lookup,               \
        .scan = script_scan, .sweep = script_sweep,                                                \
    }

const struct cfoil_store_ops script_store = SCRIPT_OPS(true);
const struct cfoil_store_ops script_store_no_look = SCRIPT_OPS(false);
