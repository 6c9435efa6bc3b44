/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State-space search: two and three actors over the real cfoil_step, every interleaving within
 * small budgets of lost replies, time and operators. R1, R2, R5, R9, R11, R12 and the backend's own
 * count of executions are checked after every step (search_check.c).
 *
 * A second half breaks one rule at a time on purpose and demands that the search finds it: a search
 * that cannot fail would prove nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "search_walk.h"

enum { STATES_MAX = 4000000 };

static void print_path(const struct walk_result *result)
{
    unsigned i;

    for (i = 0; i < result->depth; i++) {
        const struct walk_step *step = &result->path[i];

        if (step->actor == WORLD_ACTORS_MAX)
            print_error("%4lld  -        %s", (long long)step->now, step->what);
        else
            print_error("%4lld  actor %u  %s", (long long)step->now, step->actor, step->what);
        print_error("  (%s)\n", cfoil_state_name(step->state));
    }
}

static void holds(const struct search_config *config)
{
    struct walk_result result;
    bool finished = search_walk(config, STATES_MAX, &result);

    printf("# %s: %lu states, %lu transitions\n", config->name, result.states, result.transitions);
    if (result.broken != NULL) {
        print_path(&result);
        fail_msg("%s", result.broken);
    }
    assert_true(finished);
    assert_true(result.states > 1000);
}

static void catches(const struct search_config *config, const char *rule)
{
    struct search_config sound = *config;
    struct walk_result result;

    assert_true(search_walk(config, STATES_MAX, &result));
    if (result.broken == NULL)
        fail_msg("%s: the broken rule was not found in %lu states", config->name, result.states);
    printf("# %s: found after %lu states, %u steps: %s\n", config->name, result.states,
           result.depth, result.broken);
    if (strncmp(result.broken, rule, strlen(rule)) != 0) {
        print_path(&result);
        fail_msg("expected %s, found %s", rule, result.broken);
    }
    /* The same world without the mutant is sound, so that the finding is the mutant's. */
    sound.mutant = MUTANT_NONE;
    assert_true(search_walk(&sound, STATES_MAX, &result));
    assert_null(result.broken);
}

static void two_actors_hold_with_lost_replies(void **state)
{
    struct search_config config = {.name = "two actors, hold, two lost replies",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_HOLD,
                                   .lost = 2,
                                   .ticks = 3,
                                   .renewals = 1};

    (void)state;
    holds(&config);
}

static void two_actors_hold_ask_twice(void **state)
{
    struct search_config config = {.name = "two actors, hold, two claims each, one lost reply",
                                   .actors = 2,
                                   .rounds = 2,
                                   .in_doubt = CFOIL_IN_DOUBT_HOLD,
                                   .lost = 1,
                                   .ticks = 3};

    (void)state;
    holds(&config);
}

static void two_actors_retry_with_lost_replies(void **state)
{
    struct search_config config = {.name = "two actors, retry, two lost replies",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_RETRY,
                                   .lost = 2,
                                   .ticks = 2,
                                   .renewals = 1};

    (void)state;
    holds(&config);
}

static void two_actors_probe_with_a_lost_reply(void **state)
{
    struct search_config config = {.name = "two actors, probe, one lost reply",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_PROBE,
                                   .lost = 1,
                                   .ticks = 4,
                                   .renewals = 1};

    (void)state;
    holds(&config);
}

static void two_actors_probe_ask_twice(void **state)
{
    struct search_config config = {.name = "two actors, probe, two claims each",
                                   .actors = 2,
                                   .rounds = 2,
                                   .in_doubt = CFOIL_IN_DOUBT_PROBE,
                                   .ticks = 4};

    (void)state;
    holds(&config);
}

static void two_actors_and_an_operator(void **state)
{
    struct search_config config = {.name = "two actors, hold, an operator, one lost reply",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_HOLD,
                                   .lost = 1,
                                   .ticks = 3,
                                   .operators = 1,
                                   .renewals = 1};

    (void)state;
    holds(&config);
}

static void three_actors_hold(void **state)
{
    struct search_config config = {.name = "three actors, hold, one lost reply",
                                   .actors = 3,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_HOLD,
                                   .lost = 1,
                                   .ticks = 3};

    (void)state;
    holds(&config);
}

static void three_actors_retry(void **state)
{
    struct search_config config = {.name = "three actors, retry, one lost reply",
                                   .actors = 3,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_RETRY,
                                   .lost = 1,
                                   .ticks = 2};

    (void)state;
    holds(&config);
}

static void three_actors_probe(void **state)
{
    struct search_config config = {.name = "three actors, probe",
                                   .actors = 3,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_PROBE,
                                   .lost = 0,
                                   .ticks = 3};

    (void)state;
    holds(&config);
}

static void three_actors_and_an_operator(void **state)
{
    struct search_config config = {.name = "three actors, retry, an operator",
                                   .actors = 3,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_RETRY,
                                   .ticks = 2,
                                   .operators = 1};

    (void)state;
    holds(&config);
}

static void a_settle_that_ignores_the_owner_is_caught(void **state)
{
    struct search_config config = {.name = "mutant: settle ignores the owner",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_RETRY,
                                   .ticks = 2,
                                   .mutant = MUTANT_SETTLE_IGNORES_OWNER};

    (void)state;
    catches(&config, "R2");
}

static void a_claim_that_ignores_the_lease_is_caught(void **state)
{
    struct search_config config = {.name = "mutant: claim ignores the lease",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_RETRY,
                                   .ticks = 1,
                                   .mutant = MUTANT_CLAIM_IGNORES_LEASE};

    (void)state;
    catches(&config, "R1");
}

static void a_hold_that_retries_is_caught(void **state)
{
    struct search_config config = {.name = "mutant: hold retries",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_HOLD,
                                   .ticks = 1,
                                   .mutant = MUTANT_HOLD_RETRIES};

    (void)state;
    catches(&config, "hold");
}

static void a_tombstone_taken_for_absent_is_caught(void **state)
{
    struct search_config config = {.name = "mutant: absent at tombstone",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_HOLD,
                                   .ticks = 3,
                                   .mutant = MUTANT_ABSENT_AT_TOMBSTONE};

    (void)state;
    catches(&config, "R9");
}

static void a_renewal_without_a_new_generation_is_caught(void **state)
{
    struct search_config config = {.name = "mutant: renewal keeps the generation",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_HOLD,
                                   .ticks = 1,
                                   .renewals = 1,
                                   .mutant = MUTANT_RENEWAL_KEEPS_GENERATION};

    (void)state;
    catches(&config, "R11");
}

static void a_withdrawal_that_leaves_the_key_absent_is_caught(void **state)
{
    struct search_config config = {.name = "mutant: withdrawal leaves absent",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_HOLD,
                                   .lost = 1,
                                   .ticks = 1,
                                   .mutant = MUTANT_WITHDRAW_LEAVES_ABSENT};

    (void)state;
    catches(&config, "R12");
}

static void a_withdrawal_that_leaves_the_generation_is_caught(void **state)
{
    struct search_config config = {.name = "mutant: withdrawal leaves the generation",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_RETRY,
                                   .lost = 1,
                                   .ticks = 1,
                                   .mutant = MUTANT_WITHDRAW_LEAVES_GENERATION};

    (void)state;
    catches(&config, "R12");
}

static void a_probe_trusted_at_once_is_caught(void **state)
{
    struct search_config config = {.name = "mutant: absent trusted at once",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_PROBE,
                                   .ticks = 1,
                                   .mutant = MUTANT_ABSENT_TRUSTED_AT_ONCE};

    (void)state;
    catches(&config, "the backend executed twice");
}

/* Why a probe's time is that of its question: what it was told may be old when it is judged. */
static void a_prober_that_takes_its_old_answer_for_new_is_caught(void **state)
{
    struct search_config config = {.name = "mutant: an old answer taken for new",
                                   .actors = 2,
                                   .rounds = 1,
                                   .in_doubt = CFOIL_IN_DOUBT_PROBE,
                                   .ticks = 2,
                                   .mutant = MUTANT_OLD_ANSWER_TAKEN_FOR_NEW};

    (void)state;
    catches(&config, "the backend executed twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_actors_hold_with_lost_replies),
        cmocka_unit_test(two_actors_hold_ask_twice),
        cmocka_unit_test(two_actors_retry_with_lost_replies),
        cmocka_unit_test(two_actors_probe_with_a_lost_reply),
        cmocka_unit_test(two_actors_probe_ask_twice),
        cmocka_unit_test(two_actors_and_an_operator),
        cmocka_unit_test(three_actors_hold),
        cmocka_unit_test(three_actors_retry),
        cmocka_unit_test(three_actors_probe),
        cmocka_unit_test(three_actors_and_an_operator),
        cmocka_unit_test(a_settle_that_ignores_the_owner_is_caught),
        cmocka_unit_test(a_claim_that_ignores_the_lease_is_caught),
        cmocka_unit_test(a_hold_that_retries_is_caught),
        cmocka_unit_test(a_tombstone_taken_for_absent_is_caught),
        cmocka_unit_test(a_renewal_without_a_new_generation_is_caught),
        cmocka_unit_test(a_withdrawal_that_leaves_the_key_absent_is_caught),
        cmocka_unit_test(a_withdrawal_that_leaves_the_generation_is_caught),
        cmocka_unit_test(a_probe_trusted_at_once_is_caught),
        cmocka_unit_test(a_prober_that_takes_its_old_answer_for_new_is_caught),
    };

    return cmocka_run_group_tests_name("protocol search", tests, NULL, NULL);
}
