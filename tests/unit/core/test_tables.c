/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, answers and error classes as the design prints them: they are a public contract, so they
 * stand here a second time, typed by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/protocol.h"

struct name_row {
    int value;
    const char *name;
};

static const struct name_row states[] = {
    {CFOIL_STATE_ABSENT, "ABSENT"},
    {CFOIL_STATE_ISSUED, "ISSUED"},
    {CFOIL_STATE_PROCESSING, "PROCESSING"},
    {CFOIL_STATE_SUCCEEDED, "SUCCEEDED"},
    {CFOIL_STATE_FAILED_FINAL, "FAILED_FINAL"},
    {CFOIL_STATE_FAILED, "FAILED"},
    {CFOIL_STATE_IN_DOUBT, "IN_DOUBT"},
    {CFOIL_STATE_TOMBSTONE, "TOMBSTONE"},
};

static void states_have_the_names_of_the_design(void **state)
{
    size_t i;

    (void)state;
    assert_int_equal(sizeof(states) / sizeof(states[0]), CFOIL_STATE_COUNT);
    for (i = 0; i < CFOIL_STATE_COUNT; i++) {
        enum cfoil_state value = (enum cfoil_state)states[i].value;

        assert_string_equal(cfoil_state_name(value), states[i].name);
        assert_int_equal(cfoil_state_by_name(cfoil_bytes_text(states[i].name)), value);
    }
    assert_string_equal(cfoil_state_name(CFOIL_STATE_COUNT), "?");
    assert_string_equal(cfoil_state_name((enum cfoil_state)99), "?");
}

static void a_word_that_is_no_state_is_told_apart(void **state)
{
    static const char *const words[] = {"",        "succeeded", "SUCCEEDE", "SUCCEEDEDX",
                                        "FAILED_", "FAIL",      "DONE",     " FAILED"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_int_equal(cfoil_state_by_name(cfoil_bytes_text(words[i])), CFOIL_STATE_COUNT);
    assert_int_equal(cfoil_state_by_name(cfoil_bytes_of("FAILED_FINAL", 6)), CFOIL_STATE_FAILED);
    assert_int_equal(cfoil_state_by_name(cfoil_bytes_of(NULL, 0)), CFOIL_STATE_COUNT);
}

static void settled_are_the_three_that_end_a_claim_for_good(void **state)
{
    (void)state;
    assert_true(cfoil_state_is_settled(CFOIL_STATE_SUCCEEDED));
    assert_true(cfoil_state_is_settled(CFOIL_STATE_FAILED_FINAL));
    assert_true(cfoil_state_is_settled(CFOIL_STATE_FAILED));
    assert_false(cfoil_state_is_settled(CFOIL_STATE_PROCESSING));
    assert_false(cfoil_state_is_settled(CFOIL_STATE_IN_DOUBT));
    assert_false(cfoil_state_is_settled(CFOIL_STATE_ISSUED));
    assert_false(cfoil_state_is_settled(CFOIL_STATE_ABSENT));
}

/* DESIGN.md section 2, last paragraph. */
static void verdicts_have_their_variable_and_answer(void **state)
{
    static const struct {
        enum cfoil_verdict verdict;
        const char *name;
        const char *variable;
        const char *code;
    } rows[] = {
        {CFOIL_VERDICT_EXECUTE, "EXECUTE", "execute", NULL},
        {CFOIL_VERDICT_REPLAY, "REPLAY", "replay", NULL},
        {CFOIL_VERDICT_IN_PROGRESS, "IN_PROGRESS", "in_progress", "IDEMPOTENCY_PENDING"},
        {CFOIL_VERDICT_MISMATCH, "MISMATCH", "mismatch", "IDEMPOTENCY_KEY_CONFLICT"},
        {CFOIL_VERDICT_OUTCOME_UNKNOWN, "OUTCOME_UNKNOWN", "outcome_unknown",
         "IDEMPOTENCY_OUTCOME_UNKNOWN"},
        {CFOIL_VERDICT_NOT_STORED, "NOT_STORED", "not_stored", "IDEMPOTENCY_RESPONSE_NOT_STORED"},
        {CFOIL_VERDICT_KEY_EXPIRED, "KEY_EXPIRED", "key_expired", "IDEMPOTENCY_KEY_EXPIRED"},
        {CFOIL_VERDICT_PROBE, "PROBE", "probe", "IDEMPOTENCY_PENDING"},
    };
    size_t i;

    (void)state;
    assert_int_equal(sizeof(rows) / sizeof(rows[0]), CFOIL_VERDICT_COUNT - 1);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum cfoil_answer answer = cfoil_verdict_answer(rows[i].verdict);

        assert_string_equal(cfoil_verdict_name(rows[i].verdict), rows[i].name);
        assert_string_equal(cfoil_verdict_variable(rows[i].verdict), rows[i].variable);
        assert_int_equal(answer == CFOIL_ANSWER_NONE, rows[i].code == NULL);
        if (rows[i].code != NULL)
            assert_string_equal(cfoil_answer_row(answer)->code, rows[i].code);
    }
    assert_string_equal(cfoil_verdict_variable(CFOIL_VERDICT_NONE), "");
    assert_int_equal(cfoil_verdict_answer(CFOIL_VERDICT_NONE), CFOIL_ANSWER_NONE);
    assert_string_equal(cfoil_verdict_name(CFOIL_VERDICT_COUNT), "?");
}

static void events_have_their_names(void **state)
{
    static const struct name_row events[] = {
        {CFOIL_EVENT_ISSUE, "ISSUE"},
        {CFOIL_EVENT_CLAIM, "CLAIM"},
        {CFOIL_EVENT_RENEW, "RENEW"},
        {CFOIL_EVENT_SETTLE, "SETTLE"},
        {CFOIL_EVENT_PROBE_FOUND, "PROBE_FOUND"},
        {CFOIL_EVENT_PROBE_ABSENT, "PROBE_ABSENT"},
        {CFOIL_EVENT_PROBE_UNCLEAR, "PROBE_UNCLEAR"},
        {CFOIL_EVENT_RESOLVE, "RESOLVE"},
        {CFOIL_EVENT_RELEASE, "RELEASE"},
        {CFOIL_EVENT_FORGET, "FORGET"},
        {CFOIL_EVENT_WITHDRAW, "WITHDRAW"},
        {CFOIL_EVENT_CLOSE, "CLOSE"},
        {CFOIL_EVENT_GUARD, "GUARD"},
        {CFOIL_EVENT_ALIAS, "ALIAS"},
    };
    size_t i;

    (void)state;
    assert_int_equal(sizeof(events) / sizeof(events[0]), CFOIL_EVENT_COUNT);
    for (i = 0; i < CFOIL_EVENT_COUNT; i++)
        assert_string_equal(cfoil_event_name((enum cfoil_event_kind)events[i].value),
                            events[i].name);
    assert_string_equal(cfoil_event_name(CFOIL_EVENT_COUNT), "?");
}

/*
 * DESIGN.md, "Answers": its table, the numbers of `answers: envelope` above it, and the statuses of
 * profile stripe there: 400 for a conflict, else as default.
 */
static const struct {
    enum cfoil_answer answer;
    enum cfoil_message message;
    struct cfoil_answer_row row;
    const char *zh_cn;
    const char *en;
} answers[] = {
    {CFOIL_ANSWER_KEY_MISSING,
     CFOIL_MESSAGE_KEY_MISSING,
     {"IDEMPOTENCY_KEY_MISSING", {400, 400, 400}, 4001, false},
     "缺少或无效的幂等键",
     "Missing or invalid idempotency key"},
    {CFOIL_ANSWER_KEY_INVALID,
     CFOIL_MESSAGE_KEY_INVALID,
     {"IDEMPOTENCY_KEY_INVALID", {400, 400, 400}, 4002, false},
     "缺少或无效的幂等键",
     "Missing or invalid idempotency key"},
    {CFOIL_ANSWER_KEY_CONFLICT,
     CFOIL_MESSAGE_KEY_CONFLICT,
     {"IDEMPOTENCY_KEY_CONFLICT", {409, 422, 400}, 4091, false},
     "同一个 key 提交了不同的内容，请生成新的 key 再提交",
     "This key was used for a different request; use a new key"},
    {CFOIL_ANSWER_PENDING,
     CFOIL_MESSAGE_PENDING,
     {"IDEMPOTENCY_PENDING", {409, 409, 409}, 4090, true},
     "处理中，请稍后重试",
     "Still processing; retry shortly"},
    {CFOIL_ANSWER_OUTCOME_UNKNOWN,
     CFOIL_MESSAGE_OUTCOME_UNKNOWN,
     {"IDEMPOTENCY_OUTCOME_UNKNOWN", {409, 409, 409}, 4092, false},
     "上次结果尚未确认，请先查询，请勿重复提交",
     "The first attempt's result is not known yet; check before submitting again"},
    {CFOIL_ANSWER_RESPONSE_NOT_STORED,
     CFOIL_MESSAGE_RESPONSE_NOT_STORED,
     {"IDEMPOTENCY_RESPONSE_NOT_STORED", {409, 409, 409}, 4093, false},
     "您之前已经提交成功，请查询结果",
     "Already done; look the result up"},
    {CFOIL_ANSWER_KEY_EXPIRED,
     CFOIL_MESSAGE_KEY_EXPIRED,
     {"IDEMPOTENCY_KEY_EXPIRED", {409, 409, 409}, 4094, false},
     "该 key 已过期，请确认后使用新的 key",
     "This key has expired; check, then use a new one"},
    {CFOIL_ANSWER_TOKEN_UNKNOWN,
     CFOIL_MESSAGE_TOKEN_UNKNOWN,
     {"IDEMPOTENCY_TOKEN_UNKNOWN", {400, 400, 400}, 4003, false},
     "表单已失效，请刷新页面",
     "This form has expired; reload the page"},
    {CFOIL_ANSWER_STORE_UNAVAILABLE,
     CFOIL_MESSAGE_STORE_UNAVAILABLE,
     {"IDEMPOTENCY_STORE_UNAVAILABLE", {503, 503, 503}, 5030, true},
     "服务暂时不可用，请稍后用同一个 key 重试",
     "Temporarily unavailable; retry with the same key"},
};

static void answers_are_the_table_of_the_design(void **state)
{
    size_t i, statuses;

    (void)state;
    assert_int_equal(sizeof(answers) / sizeof(answers[0]), CFOIL_ANSWER_COUNT - 1);
    for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const struct cfoil_answer_row *want = &answers[i].row;
        const struct cfoil_answer_row *got = cfoil_answer_row(answers[i].answer);
        enum cfoil_message message = answers[i].message;

        assert_non_null(got);
        assert_string_equal(got->code, want->code);
        for (statuses = 0; statuses < CFOIL_STATUSES_COUNT; statuses++)
            assert_int_equal(got->status[statuses], want->status[statuses]);
        assert_int_equal(got->envelope, want->envelope);
        assert_int_equal(got->retry_after, want->retry_after);
        assert_string_equal(cfoil_message_text(message, CFOIL_LANGUAGE_ZH_CN), answers[i].zh_cn);
        assert_string_equal(cfoil_message_text(message, CFOIL_LANGUAGE_EN), answers[i].en);
    }
}

static void a_replay_has_a_message_and_no_answer(void **state)
{
    (void)state;
    assert_int_equal(CFOIL_MESSAGE_COUNT, CFOIL_ANSWER_COUNT + 1);
    assert_string_equal(cfoil_message_text(CFOIL_MESSAGE_REPLAY, CFOIL_LANGUAGE_ZH_CN),
                        "您之前已经提交成功");
    assert_string_equal(cfoil_message_text(CFOIL_MESSAGE_REPLAY, CFOIL_LANGUAGE_EN),
                        "Already done; this is the first answer");
    assert_int_equal(cfoil_verdict_answer(CFOIL_VERDICT_REPLAY), CFOIL_ANSWER_NONE);
}

static void languages_have_the_tags_clients_use(void **state)
{
    (void)state;
    assert_int_equal(CFOIL_LANGUAGE_COUNT, 2);
    assert_string_equal(cfoil_language_name(CFOIL_LANGUAGE_EN), "en");
    assert_string_equal(cfoil_language_name(CFOIL_LANGUAGE_ZH_CN), "zh-CN");
}

static void a_name_is_never_null(void **state)
{
    int value;

    (void)state;
    for (value = -3; value < 300; value++) {
        assert_non_null(cfoil_state_name((enum cfoil_state)value));
        assert_non_null(cfoil_event_name((enum cfoil_event_kind)value));
        assert_non_null(cfoil_verdict_name((enum cfoil_verdict)value));
        assert_non_null(cfoil_verdict_variable((enum cfoil_verdict)value));
        assert_non_null(cfoil_error_name((enum cfoil_error)value));
        assert_non_null(cfoil_error_text((enum cfoil_error)value));
        assert_non_null(cfoil_message_text((enum cfoil_message)value, CFOIL_LANGUAGE_EN));
        assert_non_null(cfoil_message_text(CFOIL_MESSAGE_REPLAY, (enum cfoil_language)value));
        assert_non_null(cfoil_language_name((enum cfoil_language)value));
    }
}

/* The classes by their meaning in core/error.h: what the caller can do about it. */
static void every_error_says_what_the_caller_can_do(void **state)
{
    static const struct {
        enum cfoil_error error;
        const char *name;
        enum cfoil_error_class class;
    } rows[] = {
        {CFOIL_E_INVALID, "INVALID", CFOIL_CLASS_INPUT},
        {CFOIL_E_LIMIT, "LIMIT", CFOIL_CLASS_INPUT},
        {CFOIL_E_BUFFER_SMALL, "BUFFER_SMALL", CFOIL_CLASS_INPUT},
        {CFOIL_E_SYNTAX, "SYNTAX", CFOIL_CLASS_INPUT},
        {CFOIL_E_POLICY, "POLICY", CFOIL_CLASS_INPUT},
        {CFOIL_E_NOT_AVAILABLE, "NOT_AVAILABLE", CFOIL_CLASS_INPUT},
        {CFOIL_E_NOT_FOUND, "NOT_FOUND", CFOIL_CLASS_STATE},
        {CFOIL_E_NOT_OWNER, "NOT_OWNER", CFOIL_CLASS_STATE},
        {CFOIL_E_SETTLED, "SETTLED", CFOIL_CLASS_STATE},
        {CFOIL_E_LEASE_LIVE, "LEASE_LIVE", CFOIL_CLASS_STATE},
        {CFOIL_E_EXISTS, "EXISTS", CFOIL_CLASS_STATE},
        {CFOIL_E_CONTENDED, "CONTENDED", CFOIL_CLASS_RETRY},
        {CFOIL_E_STORE_UNAVAILABLE, "STORE_UNAVAILABLE", CFOIL_CLASS_STORE},
        {CFOIL_E_STORE_FULL, "STORE_FULL", CFOIL_CLASS_STORE},
        {CFOIL_E_STORE_READ_ONLY, "STORE_READ_ONLY", CFOIL_CLASS_STORE},
        {CFOIL_E_STORE_REPLACED, "STORE_REPLACED", CFOIL_CLASS_STORE},
        {CFOIL_E_STORE_VERSION, "STORE_VERSION", CFOIL_CLASS_STORE},
        {CFOIL_E_REPLY_LOST, "REPLY_LOST", CFOIL_CLASS_UNKNOWN},
        {CFOIL_E_RECORD_CORRUPT, "RECORD_CORRUPT", CFOIL_CLASS_CORRUPT},
        {CFOIL_E_RECORD_VERSION, "RECORD_VERSION", CFOIL_CLASS_CORRUPT},
        {CFOIL_E_RECORD_CRITICAL, "RECORD_CRITICAL", CFOIL_CLASS_CORRUPT},
        {CFOIL_E_NO_MEMORY, "NO_MEMORY", CFOIL_CLASS_SYSTEM},
        {CFOIL_E_SYSTEM, "SYSTEM", CFOIL_CLASS_SYSTEM},
        {CFOIL_E_CLOSING, "CLOSING", CFOIL_CLASS_SYSTEM},
    };
    size_t i;

    (void)state;
    assert_int_equal(sizeof(rows) / sizeof(rows[0]), CFOIL_E_COUNT - 1);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(cfoil_error_class(rows[i].error), rows[i].class);
        assert_string_equal(cfoil_error_name(rows[i].error), rows[i].name);
        assert_true(strlen(cfoil_error_text(rows[i].error)) > 0);
    }
    assert_int_equal(cfoil_error_class(CFOIL_OK), CFOIL_CLASS_OK);
}

static void an_unknown_error_is_the_systems(void **state)
{
    (void)state;
    assert_int_equal(cfoil_error_class(CFOIL_E_COUNT), CFOIL_CLASS_SYSTEM);
    assert_int_equal(cfoil_error_class((enum cfoil_error)10000), CFOIL_CLASS_SYSTEM);
    assert_int_equal(cfoil_error_class((enum cfoil_error) - 1), CFOIL_CLASS_SYSTEM);
}

/* Fingerprints without a record: the comparison alone, with its two flags. */
static void same(enum cfoil_semantics semantics, const struct cfoil_fingerprint *recorded,
                 const struct cfoil_fingerprint *asked, bool want, bool differs, bool other_rules)
{
    bool got_differs = !differs, got_other_rules = !other_rules;

    assert_int_equal(
        cfoil_fingerprint_same(recorded, asked, semantics, &got_differs, &got_other_rules), want);
    assert_int_equal(got_other_rules, other_rules);
    if (want)
        assert_int_equal(got_differs, differs);
}

static void fingerprints_compare_as_the_semantics_say(void **state)
{
    struct cfoil_fingerprint recorded = {.rules = 1};
    struct cfoil_fingerprint body = recorded, rules = recorded, rules_body = recorded,
                             target = recorded;

    (void)state;
    body.request_hash[31] = 1;
    body.raw_hash[31] = 1;
    rules.rules = 2;
    rules.request_hash[0] = 1; /* other rules make another digest of the same request */
    rules_body = rules;
    rules_body.raw_hash[0] = 1;
    target = body;
    target.target_hash[31] = 1;
    same(CFOIL_SEMANTICS_STRICT, &recorded, &recorded, true, false, false);
    same(CFOIL_SEMANTICS_LOOSE, &recorded, &recorded, true, false, false);
    same(CFOIL_SEMANTICS_STRICT, &recorded, &body, false, false, false);
    same(CFOIL_SEMANTICS_LOOSE, &recorded, &body, true, true, false);
    same(CFOIL_SEMANTICS_STRICT, &recorded, &rules, true, false, true);
    same(CFOIL_SEMANTICS_LOOSE, &recorded, &rules, true, false, true);
    same(CFOIL_SEMANTICS_STRICT, &recorded, &rules_body, false, false, true);
    same(CFOIL_SEMANTICS_LOOSE, &recorded, &rules_body, true, true, true);
    same(CFOIL_SEMANTICS_LOOSE, &recorded, &target, false, false, false);
    same(CFOIL_SEMANTICS_WINDOW, &recorded, &body, false, false, false);
    same(CFOIL_SEMANTICS_WINDOW_KEY, &recorded, &body, true, true, false);
}

/* After a failure one of those who wait executes; what answers everybody alike wakes them all. */
static void one_is_woken_where_one_executes(void **state)
{
    static const struct {
        enum cfoil_state state;
        enum cfoil_wake hold, retry, probe;
    } rows[] = {
        {CFOIL_STATE_ABSENT, CFOIL_WAKE_ONE, CFOIL_WAKE_ONE, CFOIL_WAKE_ONE},
        {CFOIL_STATE_ISSUED, CFOIL_WAKE_ONE, CFOIL_WAKE_ONE, CFOIL_WAKE_ONE},
        {CFOIL_STATE_SUCCEEDED, CFOIL_WAKE_ALL, CFOIL_WAKE_ALL, CFOIL_WAKE_ALL},
        {CFOIL_STATE_FAILED_FINAL, CFOIL_WAKE_ALL, CFOIL_WAKE_ALL, CFOIL_WAKE_ALL},
        {CFOIL_STATE_FAILED, CFOIL_WAKE_ONE, CFOIL_WAKE_ONE, CFOIL_WAKE_ONE},
        {CFOIL_STATE_IN_DOUBT, CFOIL_WAKE_ALL, CFOIL_WAKE_ONE, CFOIL_WAKE_ONE},
        {CFOIL_STATE_TOMBSTONE, CFOIL_WAKE_ALL, CFOIL_WAKE_ALL, CFOIL_WAKE_ALL},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(cfoil_wake_of(rows[i].state, CFOIL_IN_DOUBT_HOLD), rows[i].hold);
        assert_int_equal(cfoil_wake_of(rows[i].state, CFOIL_IN_DOUBT_RETRY), rows[i].retry);
        assert_int_equal(cfoil_wake_of(rows[i].state, CFOIL_IN_DOUBT_PROBE), rows[i].probe);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_have_the_names_of_the_design),
        cmocka_unit_test(a_word_that_is_no_state_is_told_apart),
        cmocka_unit_test(settled_are_the_three_that_end_a_claim_for_good),
        cmocka_unit_test(verdicts_have_their_variable_and_answer),
        cmocka_unit_test(events_have_their_names),
        cmocka_unit_test(answers_are_the_table_of_the_design),
        cmocka_unit_test(a_replay_has_a_message_and_no_answer),
        cmocka_unit_test(languages_have_the_tags_clients_use),
        cmocka_unit_test(a_name_is_never_null),
        cmocka_unit_test(every_error_says_what_the_caller_can_do),
        cmocka_unit_test(an_unknown_error_is_the_systems),
        cmocka_unit_test(one_is_woken_where_one_executes),
        cmocka_unit_test(fingerprints_compare_as_the_semantics_say),
    };

    return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
