/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the engine only. Three layers: a timer heap (timer.c), a job (job.c: one event carried
 * through to one record, by as many operations as it takes), and the claims and operator's acts
 * made of jobs (claim.c, settle.c, operate.c).
 */
#ifndef CFOIL_ENGINE_INTERNAL_H
#define CFOIL_ENGINE_INTERNAL_H

#include "engine/engine.h"

#define CFOIL_SPARE_CLAIMS_MAX 128         /* claims kept for the next requests */
#define CFOIL_SPARE_DRAFTS_MAX 128         /* buffers kept for the next drafts */
#define CFOIL_SPARE_BYTES_MAX  (16 * 1024) /* of each buffer that is kept */

/* Due times in a binary heap. A timer knows its place, so that it can leave from the middle. */
struct timer {
    int64_t due_ms;
    size_t place; /* 0: not armed; else index + 1 */
    void (*fire)(struct timer *timer);
    void *context;
};

struct timers {
    struct timer **heap;
    size_t count;
    size_t capacity;
};

/*
 * What the engine still holds in memory: a claim or an operator's act. drop frees it, unless an
 * operation of it is still with the lane; then the last one to come home calls drop again.
 */
struct work {
    struct work *next;
    struct work **place; /* what points here; NULL: not in the list */
    struct cfoil_engine *engine;
    void (*drop)(struct work *work);
};

/* What a step said, without the record it made. */
struct decision {
    enum cfoil_verdict verdict;
    bool body_differs;
    bool other_rules;
    int64_t retry_after_ms;
};

/*
 * A job carries one event to one record:
 *
 *   step --ANSWER, REFUSE--> finish          .---------------.
 *    |                                       v               |
 *    '--WRITE--> cas --APPLIED--> finish   step <--CURRENT-- cas
 *                 |--UNKNOWN--> get --CURRENT--> step (the same owner is recognised)
 *                 '--FAILED--> finish with the error
 *
 * `known` is the record as last seen or written, and while a cas is under way what that would make of
 * it (has_known is false then); its views point into op.current, the claim's arena or the event, all of
 * which live as long as the job. `decision` is what the last step said. finish is called from
 * job_complete, last.
 */
struct job {
    struct cfoil_engine *engine;
    struct work *work; /* the claim or act it belongs to */
    struct cfoil_op op;
    struct cfoil_event event;
    bool has_known;
    bool active;
    bool lost; /* a cas stayed unknown: it may still be applied */
    uint64_t lost_expect;
    int64_t now_ms; /* store time last told */
    unsigned cas_attempts;
    unsigned unknown_attempts;
    uint8_t *draft; /* borrowed from the engine from the first encode to the job's end */
    size_t draft_capacity;
    void (*finish)(struct job *job, enum cfoil_error error);
    void *context;
    /* Always written before they are read, so that an init leaves them as they are. */
    struct decision decision;
    struct cfoil_record known;
    enum cfoil_time_form form[CFOIL_TIME_COUNT]; /* of known's times, while its cas is under way */
};

enum claim_phase {
    CLAIM_BEGINNING,
    CLAIM_ANSWERED, /* a verdict that is neither EXECUTE nor PROBE, or an error */
    CLAIM_EXECUTING,
    CLAIM_PROBING,   /* the host asks the backend */
    CLAIM_REPORTING, /* the probe's report is on its way */
    CLAIM_SETTLING,
    CLAIM_WITHDRAWING,
    CLAIM_OVER
};

struct cfoil_claim {
    struct work work; /* first: a claim is found by it */
    struct cfoil_engine *engine;
    enum claim_phase phase;
    bool freed;
    bool waited; /* settle_wait is over: the host was told */
    enum cfoil_state unsettled;
    enum cfoil_cause unsettled_cause;
    struct timer pace; /* renewal while executing; the pause between background attempts */
    struct timer wait; /* settle_wait */
    int64_t pause_ms;
    struct cfoil_result result;
    uint8_t owner[CFOIL_OWNER_BYTES];
    uint8_t *arena; /* the request's bytes */
    size_t arena_capacity;
    uint8_t *ending_arena;      /* the ending's bytes */
    struct cfoil_ending *early; /* settled before its begin had an answer, for which this waits */
    cfoil_claim_done done;
    cfoil_settle_done settle_done;
    void *done_context;
    struct job main;   /* the jobs last: what is before them is zeroed in one go */
    struct job *renew; /* NULL until the first renewal, which most claims never see */
};

struct spare_draft {
    uint8_t *bytes;
    size_t capacity;
};

struct cfoil_engine {
    struct cfoil_lane *lane;
    int64_t settle_wait_ms;
    int64_t (*now_ms)(void *context);
    void *context;
    void (*log)(void *context, enum cfoil_error error, const char *text);
    struct timers timers;
    struct work *works; /* every claim and act alive */
    bool closed;        /* freed by the host; lives until its last operation has come home */
    size_t claims;      /* alive; each may have two timers armed */
    size_t busy;        /* active jobs, settles not ended, and freed claims that still have work */
    struct cfoil_engine_stats stats;
    uint8_t entropy[4096]; /* drawn in one call, used up piece by piece */
    size_t entropy_left;
    struct cfoil_claim *spares[CFOIL_SPARE_CLAIMS_MAX]; /* destroyed, their memory kept */
    size_t spare_count;
    struct spare_draft drafts[CFOIL_SPARE_DRAFTS_MAX];
    size_t draft_count;
    struct cfoil_effect effect; /* of one step; nothing of it outlives advance */
};

/*
 * timer.c: reserve makes room for `count` armed timers in all, so that arm cannot fail; arm moves a
 * timer that is armed already.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_timers_reserve(struct timers *timers, size_t count);
void cfoil_timer_arm(struct timers *timers, struct timer *timer, int64_t due_ms);
void cfoil_timer_disarm(struct timers *timers, struct timer *timer);

/* engine.c. The engine may be gone after a remove: it is the last thing done with it. */
void cfoil_work_add(struct cfoil_engine *engine, struct work *work,
                    void (*drop)(struct work *work));
void cfoil_work_remove(struct work *work);
int64_t cfoil_engine_now_ms(const struct cfoil_engine *engine);
CFOIL_MUST_CHECK enum cfoil_error cfoil_engine_random(struct cfoil_engine *engine, void *out,
                                                      size_t len);
void cfoil_engine_log(const struct cfoil_engine *engine, enum cfoil_error error, const uint8_t *id,
                      const char *what);

/*
 * job.c: init takes a job that is zeroed or was used before, and keeps its buffers; trim frees those
 * over CFOIL_SPARE_BYTES_MAX. look_up asks the store without the lane, where that can be done, for a
 * start to go on from; its errors are those of a record that does not decode. start runs to its first
 * operation; true: it finished at once (finish was not called).
 */
void cfoil_job_init(struct job *job, struct work *work, const uint8_t *id);
void cfoil_job_trim(struct job *job);
void cfoil_job_free(struct job *job);
void cfoil_job_look_up(struct job *job, enum cfoil_error *error);
bool cfoil_job_start(struct job *job, enum cfoil_error *error);
bool cfoil_job_start_get(struct job *job, enum cfoil_error *error);

/* Whether the background must go on trying after this error. */
bool cfoil_error_is_passing(enum cfoil_error error);

/* claim.c and settle.c */
void cfoil_claim_free_memory(struct cfoil_claim *claim);
void cfoil_claim_release_if_over(struct cfoil_claim *claim);
void cfoil_claim_arm_renewal(struct cfoil_claim *claim);
void cfoil_claim_pace(struct timer *timer);
void cfoil_claim_settle_wait(struct timer *timer);
void cfoil_claim_start_settle(struct cfoil_claim *claim);
void cfoil_claim_start_withdraw(struct cfoil_claim *claim);
void cfoil_claim_renewed(struct job *job, enum cfoil_error error);

void cfoil_claim_settle_early(struct cfoil_claim *claim);
void cfoil_claim_abandon(struct cfoil_claim *claim);

/*
 * Copies what the views in ending and reason hold into one malloc'd arena and points them there. Errors:
 * LIMIT (it would not fit a record), NO_MEMORY; then nothing was changed.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_ending_copy(struct cfoil_ending *ending,
                                                    struct cfoil_bytes *reason, uint8_t **arena);

/* Makes the event that of an ending, whose views it takes over. */
void cfoil_event_take_ending(struct cfoil_event *event, const struct cfoil_ending *ending);

#endif
