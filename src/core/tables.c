/* SPDX-License-Identifier: Apache-2.0 */
/* The name, answer and message rows of protocol.def as functions. */
#include "core/protocol.h"

#include <assert.h>

struct state_row {
    const char *name;
    bool settled;
};

static const struct state_row states[CFOIL_STATE_COUNT] = {
#define CFOIL_STATE(name, stored, settled, text) [CFOIL_STATE_##name] = {#name, settled},
#include "core/protocol.def"
};

static const char *const events[CFOIL_EVENT_COUNT] = {
#define CFOIL_EVENT(name, actor, text) [CFOIL_EVENT_##name] = #name,
#include "core/protocol.def"
};

struct verdict_row {
    const char *name;
    const char *variable;
    enum cfoil_answer answer;
};

static const struct verdict_row verdicts[CFOIL_VERDICT_COUNT] = {
    [CFOIL_VERDICT_NONE] = {"NONE", "", CFOIL_ANSWER_NONE},
#define CFOIL_VERDICT(name, variable, answer, text)                                                \
    [CFOIL_VERDICT_##name] = {#name, variable, CFOIL_ANSWER_##answer},
#include "core/protocol.def"
};

static const struct cfoil_answer_row answers[CFOIL_ANSWER_COUNT] = {
    [CFOIL_ANSWER_NONE] = {"", {0}, 0, false},
#define CFOIL_ANSWER(name, status, ietf, stripe, envelope, retry_after, zh_cn, en)                 \
    [CFOIL_ANSWER_##name] = {"IDEMPOTENCY_" #name, {status, ietf, stripe}, envelope, retry_after},
#include "core/protocol.def"
};

/* In the order of enum cfoil_language. */
static const char *const messages[CFOIL_MESSAGE_COUNT][CFOIL_LANGUAGE_COUNT] = {
    [CFOIL_MESSAGE_NONE] = {"", ""},
#define CFOIL_ANSWER(name, status, ietf, stripe, envelope, retry_after, zh_cn, en)                 \
    [CFOIL_MESSAGE_##name] = {en, zh_cn},
#define CFOIL_MESSAGE(name, zh_cn, en) [CFOIL_MESSAGE_##name] = {en, zh_cn},
#include "core/protocol.def"
};

/* An answer's message has the answer's number. */
#define CFOIL_ANSWER(name, status, ietf, stripe, envelope, retry_after, zh_cn, en)                 \
    static_assert((int)CFOIL_ANSWER_##name == (int)CFOIL_MESSAGE_##name, #name);
#include "core/protocol.def"

static const char *const languages[CFOIL_LANGUAGE_COUNT] = {"en", "zh-CN"};

const char *cfoil_state_name(enum cfoil_state state)
{
    return (unsigned)state < CFOIL_STATE_COUNT ? states[state].name : "?";
}

bool cfoil_state_is_settled(enum cfoil_state state)
{
    return (unsigned)state < CFOIL_STATE_COUNT && states[state].settled;
}

enum cfoil_state cfoil_state_by_name(struct cfoil_bytes name)
{
    for (int i = 0; i < CFOIL_STATE_COUNT; i++) {
        if (cfoil_bytes_equal(name, cfoil_bytes_text(states[i].name))) {
            return (enum cfoil_state)i;
        }
    }
    return CFOIL_STATE_COUNT;
}

const char *cfoil_event_name(enum cfoil_event_kind kind)
{
    return (unsigned)kind < CFOIL_EVENT_COUNT ? events[kind] : "?";
}

const char *cfoil_verdict_name(enum cfoil_verdict verdict)
{
    return (unsigned)verdict < CFOIL_VERDICT_COUNT ? verdicts[verdict].name : "?";
}

const char *cfoil_verdict_variable(enum cfoil_verdict verdict)
{
    return (unsigned)verdict < CFOIL_VERDICT_COUNT ? verdicts[verdict].variable : "?";
}

enum cfoil_answer cfoil_verdict_answer(enum cfoil_verdict verdict)
{
    return (unsigned)verdict < CFOIL_VERDICT_COUNT ? verdicts[verdict].answer : CFOIL_ANSWER_NONE;
}

const struct cfoil_answer_row *cfoil_answer_row(enum cfoil_answer answer)
{
    return &answers[(unsigned)answer < CFOIL_ANSWER_COUNT ? answer : CFOIL_ANSWER_NONE];
}

const char *cfoil_message_text(enum cfoil_message message, enum cfoil_language language)
{
    bool known =
        (unsigned)message < CFOIL_MESSAGE_COUNT && (unsigned)language < CFOIL_LANGUAGE_COUNT;
    return known ? messages[message][language] : "";
}

const char *cfoil_language_name(enum cfoil_language language)
{
    return languages[(unsigned)language < CFOIL_LANGUAGE_COUNT ? language : CFOIL_LANGUAGE_EN];
}
