/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a route says to people, per language: the policy's text of a code, else the built-in one. See
 * compile.h. That a text is one is the schema's to check; a replay's is put into a header, so it is
 * percent-encoded here, once.
 */
#include "policy/compile.h"
#include "policy/percent.h"

/* The field that may set a message. */
static const enum cfoil_field fields[CFOIL_LANGUAGE_COUNT][CFOIL_MESSAGE_COUNT] = {
    [CFOIL_LANGUAGE_EN] =
        {
#define CFOIL_ANSWER(name, status, ietf, stripe, envelope, retry_after, zh_cn, en)                 \
    [CFOIL_MESSAGE_##name] = CFOIL_FIELD_MESSAGES_EN_##name,
#define CFOIL_MESSAGE(name, zh_cn, en) [CFOIL_MESSAGE_##name] = CFOIL_FIELD_MESSAGES_EN_##name,
#include "core/protocol.def"
        },
    [CFOIL_LANGUAGE_ZH_CN] =
        {
#define CFOIL_ANSWER(name, status, ietf, stripe, envelope, retry_after, zh_cn, en)                 \
    [CFOIL_MESSAGE_##name] = CFOIL_FIELD_MESSAGES_ZH_CN_##name,
#define CFOIL_MESSAGE(name, zh_cn, en) [CFOIL_MESSAGE_##name] = CFOIL_FIELD_MESSAGES_ZH_CN_##name,
#include "core/protocol.def"
        },
};

static const char *encoded(struct cfoil_pool *pool, const char *text)
{
    char *out = cfoil_pool_array(pool, strlen(text) + 1, CFOIL_PERCENT_GROWTH);
    if (out == NULL) {
        return NULL;
    }
    size_t len = 0;
    for (const char *at = text; *at != '\0'; at++) {
        len += cfoil_percent_put((uint8_t)*at, out + len);
    }
    return out;
}

enum cfoil_error cfoil_messages_compile(struct cfoil_compile *compile, struct cfoil_route *route)
{
    bool on_replay = cfoil_merged_number(&compile->merged, CFOIL_FIELD_MESSAGES_ON_REPLAY, 0) != 0;
    for (unsigned language = 0; language < CFOIL_LANGUAGE_COUNT; language++) {
        const char **texts = route->messages[language];
        for (unsigned message = 0; message < CFOIL_MESSAGE_COUNT; message++) {
            const struct cfoil_node *node = compile->merged.at[fields[language][message]];
            texts[message] = message != CFOIL_MESSAGE_NONE && node != NULL
                                 ? node->text
                                 : cfoil_message_text((enum cfoil_message)message,
                                                      (enum cfoil_language)language);
        }
        if (!on_replay) {
            continue;
        }
        route->replay_messages[language] = encoded(compile->pool, texts[CFOIL_MESSAGE_REPLAY]);
        if (route->replay_messages[language] == NULL) {
            return CFOIL_E_NO_MEMORY;
        }
    }
    return CFOIL_OK;
}
