/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which built-in language a client reads: the better weight in Accept-Language (RFC 9110, section
 * 12.5.4). We have "en" and "zh-CN".
 *
 *   accepted  the best weight of any range of that language, as RFC 4647's lookup would come to it:
 *             "en-GB" leads to "en", and who reads "zh-TW" rather reads zh-CN than English
 *   refused   the narrowest range that covers our text says q=0: "zh-CN;q=0, zh" is no zh-CN,
 *             "zh;q=0, zh-CN" is; "zh-TW;q=0" says nothing of zh-CN
 *   neither   what "*" says
 *
 * Of equal weights a language that is named counts before one that "*" stands for, then the one that
 * stands first, then English. What is not a range or not a weight says nothing.
 */
#include "policy/policy.h"

#include <strings.h>

#define WEIGHT_ONE 1000 /* a weight has three decimals */

struct wish {
    int weight;       /* of the best range; 0: none */
    unsigned place;   /* where that stands */
    unsigned accepts; /* how narrow the narrowest accepting range is; 0: none covers our text */
    unsigned refuses;
};

struct wishes {
    struct wish of[CFOIL_LANGUAGE_COUNT];
    int any;
};

/* The ranges that cover our text, by how narrow they are. */
static const struct {
    const char *range;
    enum cfoil_language language;
    unsigned narrow;
} ranges[] = {
    {"en", CFOIL_LANGUAGE_EN, 1},
    {"zh", CFOIL_LANGUAGE_ZH_CN, 1},
    {"zh-Hans", CFOIL_LANGUAGE_ZH_CN, 2},
    {"zh-CN", CFOIL_LANGUAGE_ZH_CN, 2},
    {"zh-Hans-CN", CFOIL_LANGUAGE_ZH_CN, 3},
};

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

static struct cfoil_bytes trimmed(struct cfoil_bytes text)
{
    while (text.len > 0 && is_blank(text.data[0])) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.data[text.len - 1])) {
        text.len--;
    }
    return text;
}

/* Takes what stands before `mark` off the front of *rest, which is empty after the last piece. */
static struct cfoil_bytes piece_of(struct cfoil_bytes *rest, uint8_t mark)
{
    size_t len = 0;
    while (len < rest->len && rest->data[len] != mark) {
        len++;
    }
    struct cfoil_bytes piece = cfoil_bytes_of(rest->data, len);
    size_t used = len < rest->len ? len + 1 : len;
    *rest = cfoil_bytes_of(rest->data + used, rest->len - used);
    return trimmed(piece);
}

/* "q=0.85" as 850. -1: not a weight. */
static int weight_of(struct cfoil_bytes text)
{
    const uint8_t *byte = text.data;
    if (text.len < 3 || (byte[0] != 'q' && byte[0] != 'Q') || byte[1] != '=' ||
        (byte[2] != '0' && byte[2] != '1') || (text.len > 3 && byte[3] != '.')) {
        return -1;
    }
    int weight = (byte[2] - '0') * WEIGHT_ONE;
    int digit = WEIGHT_ONE / 10;
    for (size_t i = 4; i < text.len; i++) {
        if (byte[i] < '0' || byte[i] > '9') {
            return -1;
        }
        weight += (byte[i] - '0') * digit;
        digit /= 10;
    }
    return weight < WEIGHT_ONE ? weight : WEIGHT_ONE;
}

static bool is_text(struct cfoil_bytes bytes, const char *text)
{
    return bytes.len == strlen(text) && strncasecmp((const char *)bytes.data, text, bytes.len) == 0;
}

static bool is_of_language(struct cfoil_bytes range, const char *primary)
{
    return range.len >= 2 && strncasecmp((const char *)range.data, primary, 2) == 0 &&
           (range.len == 2 || range.data[2] == '-');
}

static unsigned narrowness(struct cfoil_bytes range)
{
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (is_text(range, ranges[i].range)) {
            return ranges[i].narrow;
        }
    }
    return 0;
}

static void take_range(struct wishes *wishes, struct cfoil_bytes range, int weight, unsigned place)
{
    if (is_text(range, "*")) {
        wishes->any = weight > wishes->any ? weight : wishes->any;
        return;
    }
    bool chinese = is_of_language(range, "zh");
    if (!chinese && !is_of_language(range, "en")) {
        return;
    }

    struct wish *wish = &wishes->of[chinese ? CFOIL_LANGUAGE_ZH_CN : CFOIL_LANGUAGE_EN];
    unsigned narrow = narrowness(range);
    unsigned *narrowest = weight > 0 ? &wish->accepts : &wish->refuses;
    *narrowest = narrow > *narrowest ? narrow : *narrowest;
    if (weight > wish->weight) {
        wish->weight = weight;
        wish->place = place;
    }
}

/* What a wish comes to; *named: a range of the language itself says so. */
static int weigh(const struct wish *wish, int any, bool *named)
{
    *named = false;
    if (wish->refuses > wish->accepts) {
        return 0;
    }
    *named = wish->weight > 0;
    return *named ? wish->weight : any;
}

enum cfoil_language cfoil_language_wanted(struct cfoil_bytes accept_language)
{
    struct wishes wishes = {0};
    struct cfoil_bytes rest = accept_language;
    for (unsigned place = 0; rest.len > 0; place++) {
        struct cfoil_bytes entry = piece_of(&rest, ',');
        struct cfoil_bytes range = piece_of(&entry, ';');
        int weight = entry.len > 0 ? weight_of(trimmed(entry)) : WEIGHT_ONE;
        if (weight >= 0) {
            take_range(&wishes, range, weight, place);
        }
    }

    const struct wish *zh = &wishes.of[CFOIL_LANGUAGE_ZH_CN];
    const struct wish *en = &wishes.of[CFOIL_LANGUAGE_EN];
    bool zh_named;
    bool en_named;
    int zh_weight = weigh(zh, wishes.any, &zh_named);
    int en_weight = weigh(en, wishes.any, &en_named);
    bool first = zh_named && (!en_named || zh->place < en->place);
    bool chinese = zh_weight > en_weight || (zh_weight == en_weight && first);
    return chinese ? CFOIL_LANGUAGE_ZH_CN : CFOIL_LANGUAGE_EN;
}
