/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of the core: effective states, the comparison of fingerprints, and cfoil_step. Owns no
 * memory and no time; what each event does is in claim.c and ending.c.
 */
#include "core/protocol.h"

#include "core/step.h"

enum cfoil_state cfoil_record_effective(const struct cfoil_record *record, int64_t now_ms)
{
    if (record == NULL || now_ms >= record->at_ms[CFOIL_TIME_GONE_AT]) {
        return CFOIL_STATE_ABSENT;
    }
    if (now_ms >= record->at_ms[CFOIL_TIME_REPLAY_UNTIL]) {
        return CFOIL_STATE_TOMBSTONE;
    }
    if (record->state == CFOIL_STATE_PROCESSING &&
        now_ms >= record->at_ms[CFOIL_TIME_LEASE_UNTIL]) {
        return CFOIL_STATE_IN_DOUBT;
    }
    return record->state;
}

bool cfoil_fingerprint_infer(const struct cfoil_fingerprint *recorded,
                             struct cfoil_fingerprint *asked)
{
    if (recorded->rules != asked->rules ||
        memcmp(recorded->raw_hash, asked->raw_hash, CFOIL_DIGEST_BYTES) != 0) {
        return false;
    }
    *asked = *recorded;
    return true;
}

/*
 * Method and concrete path decide under every semantics. The body and query decide by the digest of
 * equal rules, else by the rule-free one: unequal there is a mismatch, never an execution.
 */
bool cfoil_fingerprint_same(const struct cfoil_fingerprint *recorded,
                            const struct cfoil_fingerprint *asked, enum cfoil_semantics semantics,
                            bool *body_differs, bool *other_rules)
{
    bool same_target = memcmp(recorded->target_hash, asked->target_hash, CFOIL_DIGEST_BYTES) == 0;
    bool same_rules = recorded->rules == asked->rules;
    bool same_body =
        same_rules ? memcmp(recorded->request_hash, asked->request_hash, CFOIL_DIGEST_BYTES) == 0
                   : memcmp(recorded->raw_hash, asked->raw_hash, CFOIL_DIGEST_BYTES) == 0;

    *other_rules = !same_rules;
    *body_differs = false;
    if (semantics == CFOIL_SEMANTICS_STRICT || semantics == CFOIL_SEMANTICS_WINDOW) {
        return same_target && same_body;
    }
    *body_differs = same_target && !same_body;
    return same_target;
}

static void step_dispatch(const struct step *step)
{
    switch (step->event->kind) {
    case CFOIL_EVENT_ISSUE:
        cfoil_step_issue(step);
        return;
    case CFOIL_EVENT_CLAIM:
        cfoil_step_claim(step);
        return;
    case CFOIL_EVENT_RENEW:
        cfoil_step_renew(step);
        return;
    case CFOIL_EVENT_SETTLE:
        cfoil_step_settle(step);
        return;
    case CFOIL_EVENT_PROBE_FOUND:
        cfoil_step_probe_found(step);
        return;
    case CFOIL_EVENT_PROBE_ABSENT:
        cfoil_step_probe_absent(step);
        return;
    case CFOIL_EVENT_PROBE_UNCLEAR:
        cfoil_step_probe_unclear(step);
        return;
    case CFOIL_EVENT_RESOLVE:
        cfoil_step_resolve(step);
        return;
    case CFOIL_EVENT_RELEASE:
        cfoil_step_release(step);
        return;
    case CFOIL_EVENT_FORGET:
        cfoil_step_forget(step);
        return;
    case CFOIL_EVENT_WITHDRAW:
        cfoil_step_withdraw(step);
        return;
    case CFOIL_EVENT_CLOSE:
        cfoil_step_close(step);
        return;
    case CFOIL_EVENT_GUARD:
    case CFOIL_EVENT_ALIAS:
    case CFOIL_EVENT_COUNT:
        break;
    }
    cfoil_step_refuse(step, CFOIL_E_NOT_AVAILABLE);
}

void cfoil_step(const struct cfoil_record *record, int64_t now_ms, const struct cfoil_event *event,
                struct cfoil_effect *effect)
{
    struct step step = {record, cfoil_record_effective(record, now_ms), now_ms, event, effect};

    memset(effect, 0, sizeof(*effect));
    if (step.state == CFOIL_STATE_ABSENT) {
        step.record = NULL;
    }
    if (step.record != NULL && step.record->form != CFOIL_FORM_RECORD &&
        event->kind != CFOIL_EVENT_FORGET) {
        cfoil_step_refuse(&step, CFOIL_E_NOT_AVAILABLE);
        return;
    }
    step_dispatch(&step);
}
