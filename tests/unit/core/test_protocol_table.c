/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every stored state x event x policy x ownership x fingerprint x time, against the oracle. One
 * test per event of protocol.def, so that an event added there without an oracle is seen at once.
 *
 * Invariant: what the oracle does not call open is compared, field by field, and record and event
 * are unchanged afterwards (the core is pure).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "compare.h"
#include "oracle.h"

struct tally {
    unsigned long judged;
    unsigned long open;
};

static const char *result_difference(const struct cfoil_record *got,
                                     const struct cfoil_record *want, unsigned open)
{
    if ((open & ORACLE_OPEN_REASON) == 0 && !cfoil_bytes_equal(got->reason, want->reason))
        return "reason";
    if ((open & ORACLE_OPEN_SNAPSHOT) != 0)
        return NULL;
    if (!snapshot_equal(&got->snapshot, &want->snapshot))
        return "snapshot";
    if (!resource_equal(&got->resource, &want->resource))
        return "resource";
    return NULL;
}

static const char *time_difference(const struct cfoil_draft *got, const struct cfoil_draft *want,
                                   unsigned open)
{
    static const char *const names[CFOIL_TIME_COUNT] = {
        "life",         "updated", "sign_of_life",   "lease_until",
        "replay_until", "gone_at", "in_doubt_since", "probe_until",
    };
    unsigned i;

    for (i = 0; i < CFOIL_TIME_COUNT; i++) {
        if (i == CFOIL_TIME_SIGN_OF_LIFE && (open & ORACLE_OPEN_SIGN_OF_LIFE) != 0)
            continue;
        if (got->form[i] != want->form[i] || got->record.at_ms[i] != want->record.at_ms[i])
            return names[i];
    }
    return NULL;
}

static bool generation_good(uint64_t got, uint64_t want)
{
    if (want != 0)
        return got == want;
    return got >= 1 && got <= (uint64_t)CFOIL_GENERATION_MAX && got != 1;
}

/* Where the content is open: whose it is, and when it ends. */
static const char *ending_difference(const struct cfoil_draft *got, const struct cfoil_draft *want)
{
    static const enum cfoil_time ends[] = {CFOIL_TIME_REPLAY_UNTIL, CFOIL_TIME_GONE_AT};
    unsigned i;

    if (memcmp(got->record.owner, want->record.owner, CFOIL_OWNER_BYTES) != 0)
        return "owner";
    for (i = 0; i < 2; i++) {
        if (got->form[ends[i]] != want->form[ends[i]] ||
            got->record.at_ms[ends[i]] != want->record.at_ms[ends[i]])
            return "replay_until or gone_at";
    }
    return NULL;
}

/* The name of the first field that is not as expected, or NULL. */
static const char *draft_difference(const struct cfoil_draft *got, const struct cfoil_draft *want,
                                    unsigned open)
{
    const struct cfoil_record *g = &got->record;
    const struct cfoil_record *w = &want->record;
    const char *difference;

    if (!generation_good(g->generation, w->generation))
        return "generation";
    if ((open & ORACLE_OPEN_CONTENT) != 0)
        return ending_difference(got, want);
    if ((open & ORACLE_OPEN_COUNTERS) == 0 && g->attempt != w->attempt)
        return "attempt";
    if ((open & ORACLE_OPEN_COUNTERS) == 0 && g->fence != w->fence)
        return "fence";
    if (g->state != w->state || g->form != w->form || g->cause != w->cause)
        return "state, form or cause";
    if (memcmp(g->owner, w->owner, CFOIL_OWNER_BYTES) != 0)
        return "owner";
    if (memcmp(g->prober, w->prober, CFOIL_OWNER_BYTES) != 0)
        return "prober";
    if (!fingerprint_equal(&g->fingerprint, &w->fingerprint))
        return "fingerprint";
    if (!scope_equal(&g->scope, &w->scope))
        return "scope";
    if (!cfoil_bytes_equal(g->first_request_id, w->first_request_id))
        return "first_request_id";
    if (memcmp(g->target, w->target, CFOIL_DIGEST_BYTES) != 0 ||
        g->target_life_ms != w->target_life_ms)
        return "target";
    if (g->window_ms != w->window_ms || g->window_anchor != w->window_anchor)
        return "window";
    difference = result_difference(g, w, open);
    return difference != NULL ? difference : time_difference(got, want, open);
}

static const char *effect_difference(const struct cfoil_effect *got,
                                     const struct oracle_expected *want,
                                     const struct cfoil_record *record)
{
    if (got->action != want->action)
        return "action";
    if (got->verdict != want->verdict)
        return "verdict";
    if ((want->open & ORACLE_OPEN_ERROR) == 0 && got->error != want->error)
        return "error";
    if ((got->action == CFOIL_ACTION_REFUSE) != (got->error != CFOIL_OK))
        return "error without refusal or refusal without error";
    if ((want->open & ORACLE_OPEN_RECOGNISED) == 0 && got->recognised != want->recognised)
        return "recognised";
    if ((want->open & ORACLE_OPEN_BODY_DIFFERS) == 0 && got->body_differs != want->body_differs)
        return "body_differs";
    if ((want->open & ORACLE_OPEN_OTHER_RULES) == 0 && got->other_rules != want->other_rules)
        return "other_rules";
    if (got->retry_after_ms != want->retry_after_ms)
        return "retry_after_ms";
    if (got->action != CFOIL_ACTION_WRITE)
        return NULL;
    if (got->expect != (want->expect_absent ? CFOIL_EXPECT_ABSENT : record->generation))
        return "expect";
    return draft_difference(&got->next, &want->next, want->open);
}

static void fail_case(const struct table_case *c, const char *difference,
                      const struct cfoil_effect *got, const struct oracle_expected *want)
{
    char text[640];

    print_error("%s\n", table_case_text(c, text, sizeof(text)));
    print_error("action %d (expected %d), verdict %s (%s), error %s (%s), recognised %d (%d), "
                "retry_after %lld (%lld), state %s (%s)\n",
                (int)got->action, (int)want->action, cfoil_verdict_name(got->verdict),
                cfoil_verdict_name(want->verdict), cfoil_error_name(got->error),
                cfoil_error_name(want->error), got->recognised, want->recognised,
                (long long)got->retry_after_ms, (long long)want->retry_after_ms,
                cfoil_state_name(got->next.record.state),
                cfoil_state_name(want->next.record.state));
    fail_msg("not as the design says: %s", difference);
}

static void judge(const struct table_case *c, struct tally *tally)
{
    struct cfoil_record record, record_before;
    struct cfoil_event event, event_before;
    struct cfoil_effect effect;
    struct oracle_expected want;
    const char *difference;

    table_case_build(c, &record, &event);
    record_before = record;
    event_before = event;
    oracle_expect(c, &record, &event, &want);
    memset(&effect, 0xee, sizeof(effect));
    cfoil_step(c->present ? &record : NULL, TABLE_NOW, &event, &effect);
    if (memcmp(&record, &record_before, sizeof(record)) != 0 ||
        memcmp(&event, &event_before, sizeof(event)) != 0)
        fail_case(c, "record or event was changed", &effect, &want);
    if ((want.open & ORACLE_OPEN_WHOLE) != 0) {
        tally->open++;
        return;
    }
    tally->judged++;
    difference = effect_difference(&effect, &want, &record);
    if (difference != NULL)
        fail_case(c, difference, &effect, &want);
    if (cfoil_record_effective(c->present ? &record : NULL, TABLE_NOW) != oracle_reads_as(c))
        fail_case(c, "the effective state", &effect, &want);
}

static void judge_policies(struct table_case *c, struct tally *tally)
{
    unsigned variants = table_case_variants(c->event);
    unsigned variant, in_doubt, semantics, terms;

    for (variant = 0; variant < variants; variant++) {
        table_case_vary(c, variant);
        for (in_doubt = 0; in_doubt < CFOIL_IN_DOUBT_COUNT; in_doubt++) {
            for (semantics = 0; semantics < CFOIL_SEMANTICS_COUNT; semantics++) {
                for (terms = 0; terms < CASE_TERMS_COUNT; terms++) {
                    c->in_doubt = (enum cfoil_in_doubt)in_doubt;
                    c->semantics = (enum cfoil_semantics)semantics;
                    c->terms = (enum case_terms)terms;
                    judge(c, tally);
                }
            }
        }
    }
}

/* A window meets what its end may depend on; generations and most marks are independent of it. */
static void judge_asked(struct table_case *c, struct tally *tally)
{
    unsigned asked, window;

    for (window = 0; window < CASE_WINDOW_COUNT; window++) {
        c->window = (enum case_window)window;
        if (!table_case_possible(c))
            continue;
        if (window != WINDOW_NONE && (c->mark > MARK_MINE_LIVE || c->form != CFOIL_FORM_RECORD ||
                                      c->generation == GENERATION_LAST))
            continue;
        for (asked = 0; asked < CASE_ASKED_COUNT; asked++) {
            c->asked = (enum case_asked)asked;
            judge_policies(c, tally);
        }
    }
    c->window = WINDOW_NONE;
}

static void judge_relations(struct table_case *c, struct tally *tally)
{
    unsigned owner, mark, time;

    for (owner = 0; owner < CASE_OWNER_COUNT; owner++) {
        for (mark = 0; mark < CASE_MARK_COUNT; mark++) {
            for (time = 0; time < CASE_TIME_COUNT; time++) {
                c->owner = (enum case_owner)owner;
                c->mark = (enum case_mark)mark;
                c->time = (enum case_time)time;
                judge_asked(c, tally);
            }
        }
    }
}

static void judge_state(struct table_case *c, struct tally *tally)
{
    unsigned cause, snapshot, generation;

    for (cause = 0; cause < CFOIL_CAUSE_COUNT; cause++) {
        for (snapshot = 0; snapshot < 2; snapshot++) {
            c->cause = (enum cfoil_cause)cause;
            c->snapshot = snapshot != 0;
            /* The generation is independent of everything else: one pass alternates it. */
            for (generation = 0; generation < CASE_GENERATION_COUNT; generation++) {
                c->generation = (enum case_generation)generation;
                if (generation == GENERATION_LAST && cause != CFOIL_CAUSE_NONE)
                    continue;
                judge_relations(c, tally);
            }
        }
    }
}

static void judge_event(enum cfoil_event_kind event)
{
    static const enum cfoil_state stored[] = {CFOIL_STATE_ISSUED,    CFOIL_STATE_PROCESSING,
                                              CFOIL_STATE_SUCCEEDED, CFOIL_STATE_FAILED_FINAL,
                                              CFOIL_STATE_FAILED,    CFOIL_STATE_IN_DOUBT};
    struct table_case c = {.event = event, .stored = CFOIL_STATE_PROCESSING};
    struct tally tally = {0, 0};
    unsigned form;
    size_t i;

    for (c.asked = 0; c.asked < CASE_ASKED_COUNT; c.asked++)
        judge_policies(&c, &tally);
    c.present = true;
    for (i = 0; i < sizeof(stored) / sizeof(stored[0]); i++) {
        for (form = 0; form < CFOIL_FORM_COUNT; form++) {
            c.stored = stored[i];
            c.form = (enum cfoil_form)form;
            judge_state(&c, &tally);
        }
    }
    printf("# %s: %lu cases judged, %lu left open by the design\n", cfoil_event_name(event),
           tally.judged, tally.open);
    assert_true(tally.judged > tally.open);
}

#define CFOIL_EVENT(name, actor, text)                                                             \
    static void every_##name##_is_as_the_design_says(void **state)                                 \
    {                                                                                              \
        (void)state;                                                                               \
        judge_event(CFOIL_EVENT_##name);                                                           \
    }
#include "core/protocol.def"
#undef CFOIL_EVENT

/* A policy may say "for ever": sums of such durations must not come out as times long past. */
static void endless_durations_do_not_wrap(void **state)
{
    struct table_case c = {.event = CFOIL_EVENT_CLAIM};
    struct cfoil_record record;
    struct cfoil_event event;
    struct cfoil_effect effect;
    const int64_t *at = effect.next.record.at_ms;

    (void)state;
    table_case_vary(&c, 0);
    table_case_build(&c, &record, &event);
    event.terms.lease_ms = INT64_MAX;
    event.terms.ttl_ms = INT64_MAX;
    event.terms.tombstone_ms = INT64_MAX;
    cfoil_step(NULL, TABLE_NOW, &event, &effect);
    assert_int_equal(effect.verdict, CFOIL_VERDICT_EXECUTE);
    assert_true(at[CFOIL_TIME_LEASE_UNTIL] == INT64_MAX);
    assert_true(at[CFOIL_TIME_REPLAY_UNTIL] == INT64_MAX);
    assert_true(at[CFOIL_TIME_GONE_AT] == INT64_MAX);
    assert_true(cfoil_time_resolve(CFOIL_TIME_AFTER, INT64_MAX, TABLE_NOW) == INT64_MAX);
}

static void an_endless_trust_is_never_over(void **state)
{
    struct table_case c = {.event = CFOIL_EVENT_PROBE_ABSENT,
                           .present = true,
                           .stored = CFOIL_STATE_IN_DOUBT,
                           .cause = CFOIL_CAUSE_TIMEOUT,
                           .mark = MARK_MINE_LIVE};
    struct cfoil_record record;
    struct cfoil_event event;
    struct cfoil_effect effect;

    (void)state;
    table_case_vary(&c, TRUST_PAST);
    table_case_build(&c, &record, &event);
    event.terms.trust_absent_after_ms = INT64_MAX;
    cfoil_step(&record, TABLE_NOW, &event, &effect);
    assert_int_equal(effect.verdict, CFOIL_VERDICT_IN_PROGRESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CFOIL_EVENT(name, actor, text) cmocka_unit_test(every_##name##_is_as_the_design_says),
#include "core/protocol.def"
#undef CFOIL_EVENT
        cmocka_unit_test(endless_durations_do_not_wrap),
        cmocka_unit_test(an_endless_trust_is_never_over),
    };

    return cmocka_run_group_tests_name("protocol table", tests, NULL, NULL);
}
