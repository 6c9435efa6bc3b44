/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the core only: what the parts of one step share. A step is one call of cfoil_step; it
 * reads a record and an event and fills one effect. Nothing of it outlives the call.
 */
#ifndef CFOIL_CORE_STEP_H
#define CFOIL_CORE_STEP_H

#include "core/protocol.h"

/* Everything a step looks at, so that its parts take one argument. */
struct step {
    const struct cfoil_record *record; /* NULL: absent or gone */
    enum cfoil_state state;            /* effective */
    int64_t now_ms;
    const struct cfoil_event *event;
    struct cfoil_effect *effect;
};

/* Tools (step.c). */
bool cfoil_step_is_mine(const struct step *step);
bool cfoil_step_mark_is_mine(const struct step *step);
bool cfoil_step_mark_is_set(const struct cfoil_record *record);
void cfoil_step_answer(const struct step *step, enum cfoil_verdict verdict);
void cfoil_step_refuse(const struct step *step, enum cfoil_error why);
int64_t cfoil_step_retry_after(const struct step *step, int64_t left_ms);

/* Opens a write: the draft starts as the record stands, or empty, with its new generation (R11). */
struct cfoil_draft *cfoil_step_write_next(const struct step *step);
void cfoil_step_set_owner(struct cfoil_draft *draft, const struct cfoil_event *event);
void cfoil_step_clear_mark(struct cfoil_draft *draft);
void cfoil_step_set_running(struct cfoil_draft *draft, const struct cfoil_event *event);
void cfoil_step_set_ended(struct cfoil_draft *draft, const struct cfoil_event *event,
                          enum cfoil_state outcome);

/* Events: a caller's and a prober's (claim.c), an owner's, operator's and the engine's (ending.c).
 */
void cfoil_step_claim(const struct step *step);
void cfoil_step_renew(const struct step *step);
void cfoil_step_probe_found(const struct step *step);
void cfoil_step_probe_absent(const struct step *step);
void cfoil_step_probe_unclear(const struct step *step);
void cfoil_step_settle(const struct step *step);
void cfoil_step_resolve(const struct step *step);
void cfoil_step_release(const struct step *step);
void cfoil_step_forget(const struct step *step);
void cfoil_step_withdraw(const struct step *step);
void cfoil_step_close(const struct step *step);
void cfoil_step_issue(const struct step *step);

#endif
