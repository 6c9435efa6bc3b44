/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `messages`: texts per code and language, laid over those of `defaults` one by one, and what is
 * refused of them, with its place and the fix.
 */
#include "support.h"

#include <stdio.h>

#define ZH      CFOIL_LANGUAGE_ZH_CN
#define EN      CFOIL_LANGUAGE_EN
#define MAX_512 512 /* bytes of a message, as docs/reference/policy.md says */

static void without_messages_the_built_in_ones_count(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_route("", "");
    const struct cfoil_route *route = only_route(policy);
    for (int message = 1; message < CFOIL_MESSAGE_COUNT; message++) {
        for (int language = 0; language < CFOIL_LANGUAGE_COUNT; language++) {
            assert_string_equal(
                route->messages[language][message],
                cfoil_message_text((enum cfoil_message)message, (enum cfoil_language)language));
        }
    }
    assert_null(route->replay_messages[ZH]);
    assert_null(route->replay_messages[EN]);
    cfoil_policy_free(policy);
}

static void every_code_and_the_replay_have_a_text_in_each_language(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        enum cfoil_message message;
    } codes[] = {
        {"IDEMPOTENCY_KEY_MISSING", CFOIL_MESSAGE_KEY_MISSING},
        {"IDEMPOTENCY_KEY_INVALID", CFOIL_MESSAGE_KEY_INVALID},
        {"IDEMPOTENCY_KEY_CONFLICT", CFOIL_MESSAGE_KEY_CONFLICT},
        {"IDEMPOTENCY_PENDING", CFOIL_MESSAGE_PENDING},
        {"IDEMPOTENCY_OUTCOME_UNKNOWN", CFOIL_MESSAGE_OUTCOME_UNKNOWN},
        {"IDEMPOTENCY_RESPONSE_NOT_STORED", CFOIL_MESSAGE_RESPONSE_NOT_STORED},
        {"IDEMPOTENCY_KEY_EXPIRED", CFOIL_MESSAGE_KEY_EXPIRED},
        {"IDEMPOTENCY_TOKEN_UNKNOWN", CFOIL_MESSAGE_TOKEN_UNKNOWN},
        {"IDEMPOTENCY_STORE_UNAVAILABLE", CFOIL_MESSAGE_STORE_UNAVAILABLE},
        {"REPLAY", CFOIL_MESSAGE_REPLAY},
    };
    assert_int_equal(sizeof(codes) / sizeof(codes[0]), CFOIL_MESSAGE_COUNT - 1);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        char fields[256];
        (void)snprintf(fields, sizeof(fields),
                       "    messages: {zh-CN: {%s: 中文}, en: {%s: English}}\n", codes[i].code,
                       codes[i].code);
        struct cfoil_policy *policy = load_route("", fields);
        const struct cfoil_route *route = only_route(policy);
        for (int message = 1; message < CFOIL_MESSAGE_COUNT; message++) {
            bool own = message == (int)codes[i].message;
            assert_int_equal(strcmp(route->messages[ZH][message], "中文") == 0, own);
            assert_int_equal(strcmp(route->messages[EN][message], "English") == 0, own);
        }
        cfoil_policy_free(policy);
    }
}

static void a_route_lays_its_messages_over_those_of_defaults(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_good("version: 1\n"
                  "defaults:\n"
                  "  messages: {on_replay: true, en: {REPLAY: one, IDEMPOTENCY_PENDING: two},\n"
                  "             zh-CN: {IDEMPOTENCY_PENDING: 二}}\n"
                  "routes:\n"
                  "  - match: POST /a\n"
                  "  - {match: POST /b, messages: {en: {IDEMPOTENCY_PENDING: three}}}\n"
                  "  - {match: POST /c, messages: {on_replay: false, zh-CN: {REPLAY: 四}}}\n");
    const struct cfoil_route *a = cfoil_policy_route(policy, 0);
    const struct cfoil_route *b = cfoil_policy_route(policy, 1);
    const struct cfoil_route *c = cfoil_policy_route(policy, 2);
    assert_string_equal(a->messages[EN][CFOIL_MESSAGE_PENDING], "two");
    assert_string_equal(a->replay_messages[EN], "one");
    assert_string_equal(b->messages[EN][CFOIL_MESSAGE_PENDING], "three");
    assert_string_equal(b->messages[EN][CFOIL_MESSAGE_REPLAY], "one");
    assert_string_equal(b->messages[ZH][CFOIL_MESSAGE_PENDING], "二");
    assert_string_equal(b->replay_messages[EN], "one");
    assert_string_equal(c->messages[EN][CFOIL_MESSAGE_PENDING], "two");
    assert_string_equal(c->messages[ZH][CFOIL_MESSAGE_REPLAY], "四");
    assert_null(c->replay_messages[EN]);
    assert_null(c->replay_messages[ZH]);
    cfoil_policy_free(policy);
}

/* RFC 3986: all but letters, digits and - . _ ~ as the bytes of their UTF-8. */
static void a_replays_message_is_percent_encoded(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_route("", "    messages: {on_replay: true, zh-CN: {REPLAY: \"好\"},\n"
                       "               en: {REPLAY: \"aZ09-._~ 100%, \\\"é\\\"/\"}}\n");
    const struct cfoil_route *route = only_route(policy);
    assert_string_equal(route->replay_messages[ZH], "%E5%A5%BD");
    assert_string_equal(route->replay_messages[EN], "aZ09-._~%20100%25%2C%20%22%C3%A9%22%2F");
    cfoil_policy_free(policy);
}

static void load_bytes(size_t bytes, enum cfoil_error *error,
                       struct cfoil_policy_problems *problems)
{
    char text[1024];
    char message[MAX_512 + 2];
    memset(message, 'm', bytes);
    message[bytes] = '\0';
    (void)snprintf(text, sizeof(text),
                   "version: 1\nroutes:\n  - match: POST /x\n"
                   "    messages: {en: {REPLAY: %s}}\n",
                   message);
    struct cfoil_policy *policy = NULL;
    *error = cfoil_policy_load_text(cfoil_bytes_text(text), &policy, problems);
    cfoil_policy_free(policy);
}

static void a_message_has_at_most_512_bytes(void **state)
{
    (void)state;
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    enum cfoil_error error;
    load_bytes(MAX_512 - 1, &error, problems);
    assert_int_equal(error, CFOIL_OK);
    load_bytes(MAX_512, &error, problems);
    assert_int_equal(error, CFOIL_OK);
    load_bytes(MAX_512 + 1, &error, problems);
    assert_int_equal(error, CFOIL_E_POLICY);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->item[0].line, 4);
    assert_int_equal(problems->item[0].column, 29);
    assert_non_null(strstr(problems->item[0].text, "messages.en.REPLAY"));
    assert_non_null(strstr(problems->item[0].text, "513 bytes"));
    assert_non_null(strstr(problems->item[0].text, "at most 512"));
    test_free(problems);
}

struct row {
    const char *name;
    const char *fields; /* line 4 of the policy */
    unsigned column;
    const char *what;
    const char *fix;
};

static const struct row rows[] = {
    {"a code that is written wrong", "    messages: {en: {IDEMPOTENCY_PENDNG: x}}\n", 21,
     "`IDEMPOTENCY_PENDNG` in messages.en", "did you mean `IDEMPOTENCY_PENDING`?"},
    {"a code in lower case", "    messages: {zh-CN: {replay: x}}\n", 24,
     "`replay` in messages.zh-CN", "REPLAY"},
    {"a code that does not exist", "    messages: {en: {TEAPOT: x}}\n", 21,
     "`TEAPOT` in messages.en", "docs/reference/answers.md"},
    {"a language there is not", "    messages: {fr: {REPLAY: x}}\n", 16, "`fr` in messages",
     "zh-CN and en"},
    {"a language by its short name", "    messages: {zh: {REPLAY: x}}\n", 16, "`zh` in messages",
     "zh-CN and en"},
    {"a number", "    messages: {en: {REPLAY: 409}}\n", 29, "messages.en.REPLAY", "quotes"},
    {"a number with a point", "    messages: {en: {REPLAY: -1.5e3}}\n", 29, "messages.en.REPLAY",
     "quotes"},
    {"a truth value", "    messages: {en: {REPLAY: true}}\n", 29, "messages.en.REPLAY", "quotes"},
    {"a truth value of YAML 1.1", "    messages: {en: {REPLAY: No}}\n", 29, "messages.en.REPLAY",
     "quotes"},
    {"nothing", "    messages: {en: {REPLAY: }}\n", 29, "messages.en.REPLAY", "give one"},
    {"null", "    messages: {en: {REPLAY: null}}\n", 29, "messages.en.REPLAY", "give one"},
    {"an empty text", "    messages: {en: {REPLAY: \"\"}}\n", 29, "messages.en.REPLAY", "remove"},
    {"blanks only", "    messages: {en: {REPLAY: \"  \"}}\n", 29, "messages.en.REPLAY", "remove"},
    {"a list", "    messages: {en: {REPLAY: [a, b]}}\n", 29, "messages.en.REPLAY",
     "a single value"},
    {"a mapping", "    messages: {en: {REPLAY: {a: b}}}\n", 29, "messages.en.REPLAY",
     "a single value"},
    {"a text for a language", "    messages: {en: hello}\n", 20, "messages.en", "a mapping"},
    {"a text for all", "    messages: hello\n", 15, "messages", "a mapping"},
    {"a line feed", "    messages: {en: {REPLAY: \"a\\nb\"}}\n", 29, "one line", "control"},
    {"a tab", "    messages: {en: {REPLAY: \"a\\tb\"}}\n", 29, "one line", "control"},
    {"an escape character", "    messages: {en: {REPLAY: \"a\\eb\"}}\n", 29, "one line", "control"},
    {"the delete character", "    messages: {en: {REPLAY: \"a\\x7fb\"}}\n", 29, "one line",
     "control"},
    {"a C1 control character", "    messages: {en: {REPLAY: \"a\\x9bb\"}}\n", 29,
     "messages.en.REPLAY", "control"},
    {"a next line", "    messages: {en: {REPLAY: \"a\\Nb\"}}\n", 29, "messages.en.REPLAY",
     "control"},
    {"on_replay that is neither", "    messages: {on_replay: yes}\n", 27, "messages.on_replay",
     "true or false"},
};

static void is_refused(void **state)
{
    const struct row *row = *state;
    char text[512];
    (void)snprintf(text, sizeof(text), "version: 1\nroutes:\n  - match: POST /x\n%s", row->fields);
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    assert_int_equal(cfoil_policy_load_text(cfoil_bytes_text(text), &policy, problems),
                     CFOIL_E_POLICY);
    assert_int_equal(problems->count, 1);
    print_message("%u:%u: %s\n", problems->item[0].line, problems->item[0].column,
                  problems->item[0].text);
    assert_int_equal(problems->item[0].line, 4);
    assert_int_equal(problems->item[0].column, row->column);
    assert_non_null(strstr(problems->item[0].text, row->what));
    assert_non_null(strstr(problems->item[0].text, row->fix));
    test_free(problems);
}

/* What looks like a number and is a text all the same, and what other scripts need. */
static void texts_of_every_kind_are_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {"\"409\"", "'true'",   "409 Conflict",    "1.2.3", "truest",
                                        "-5 a",    "infinite", "héllo ✓ 🎟", "x"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char fields[128];
        (void)snprintf(fields, sizeof(fields), "    messages:\n      en:\n        REPLAY: %s\n",
                       texts[i]);
        cfoil_policy_free(load_route("", fields));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_messages_the_built_in_ones_count),
        cmocka_unit_test(every_code_and_the_replay_have_a_text_in_each_language),
        cmocka_unit_test(a_route_lays_its_messages_over_those_of_defaults),
        cmocka_unit_test(a_replays_message_is_percent_encoded),
        cmocka_unit_test(a_message_has_at_most_512_bytes),
        cmocka_unit_test(texts_of_every_kind_are_texts),
    };
    const struct row_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]),
                                    is_refused};
    return run_rows("policy/messages", &table, tests, sizeof(tests) / sizeof(tests[0]));
}
