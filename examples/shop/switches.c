/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the state behind /control and the reading of the X-Shop-… headers.
 * Invariant: remaining is -1 (no limit) or above 0 while the switch is set; at 0 the switch is
 * reset.
 */
#include "switches.h"

#include "arrivals.h"
#include "db.h"
#include "fields.h"
#include "handlers.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DELAY_MS_MAX = 3600 * 1000,
    STATUS_MIN = 200,
    STATUS_MAX = 599,
    REPLY_BODY_BYTES_MAX = 256 * 1024 * 1024,
    MATCH_BYTES_MAX = 255,
    METHOD_BYTES_MAX = 31,
};

struct setting {
    struct shop_mischief mischief;
    json_int_t remaining; /* -1: no limit. */
    char match[MATCH_BYTES_MAX + 1];
    char method[METHOD_BYTES_MAX + 1];
};

struct shop_switches {
    pthread_mutex_t lock;
    struct setting setting;
};

static const char *const FAIL_WORDS[] = {
    [SHOP_FAIL_NONE] = "none",
    [SHOP_FAIL_500] = "500",
    [SHOP_FAIL_502] = "502",
    [SHOP_FAIL_503] = "503",
    [SHOP_FAIL_RESET_BEFORE] = "reset_before",
    [SHOP_FAIL_RESET_AFTER_EFFECT] = "reset_after_effect",
    [SHOP_FAIL_CLOSE_AFTER_EFFECT] = "close_after_effect",
    [SHOP_FAIL_HANG_AFTER_EFFECT] = "hang_after_effect",
};

static const struct setting SETTING_RESET = {.remaining = -1};

struct shop_switches *shop_switches_new(void)
{
    struct shop_switches *switches = calloc(1, sizeof(*switches));

    if (switches == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&switches->lock, NULL) != 0) {
        free(switches);
        return NULL;
    }
    switches->setting = SETTING_RESET;
    return switches;
}

void shop_switches_free(struct shop_switches *switches)
{
    if (switches == NULL) {
        return;
    }
    (void)pthread_mutex_destroy(&switches->lock);
    free(switches);
}

static bool fail_of_word(const char *where, const char *word, enum shop_fail *fail,
                         struct shop_reply *reply)
{
    for (size_t i = 0; i < sizeof(FAIL_WORDS) / sizeof(FAIL_WORDS[0]); i++) {
        if (strcmp(FAIL_WORDS[i], word) == 0) {
            *fail = (enum shop_fail)i;
            return true;
        }
    }
    shop_reply_error(reply, 400,
                     "%s is \"%s\"; use none, 500, 502, 503, reset_before, reset_after_effect, "
                     "close_after_effect or hang_after_effect",
                     where, word);
    return false;
}

/* Reads a number from a header; left as it is if the header is absent. */
static bool header_number(const struct shop_request *request, const char *name, json_int_t minimum,
                          json_int_t maximum, json_int_t *number, struct shop_reply *reply)
{
    const char *text = shop_request_header(request, name);
    char *end = NULL;
    long long value;

    if (text == NULL) {
        return true;
    }
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < minimum || value > maximum) {
        shop_reply_error(reply, 400,
                         "%s is \"%s\"; it must be a whole number between %" JSON_INTEGER_FORMAT
                         " and %" JSON_INTEGER_FORMAT,
                         name, text, minimum, maximum);
        return false;
    }
    *number = value;
    return true;
}

static bool headers_apply(const struct shop_request *request, struct shop_mischief *mischief,
                          struct shop_reply *reply)
{
    const char *fail = shop_request_header(request, "X-Shop-Fail");
    json_int_t chunked = mischief->chunked ? 1 : 0;

    if (fail != NULL && !fail_of_word("X-Shop-Fail", fail, &mischief->fail, reply)) {
        return false;
    }
    if (!header_number(request, "X-Shop-Delay-Ms", 0, DELAY_MS_MAX, &mischief->delay_ms, reply) ||
        !header_number(request, "X-Shop-Delay-After-Ms", 0, DELAY_MS_MAX, &mischief->delay_after_ms,
                       reply) ||
        !header_number(request, "X-Shop-Status", STATUS_MIN, STATUS_MAX, &mischief->status,
                       reply) ||
        !header_number(request, "X-Shop-Body-Bytes", 0, REPLY_BODY_BYTES_MAX, &mischief->body_bytes,
                       reply) ||
        !header_number(request, "X-Shop-Chunked", 0, 1, &chunked, reply)) {
        return false;
    }
    mischief->chunked = chunked == 1;
    return true;
}

static bool setting_matches(const struct setting *setting, const struct shop_request *request)
{
    size_t match_bytes = strlen(setting->match);

    if (setting->method[0] != '\0' && strcmp(setting->method, request->method) != 0) {
        return false;
    }
    return match_bytes <= request->path_bytes &&
           memcmp(setting->match, request->target, match_bytes) == 0;
}

bool shop_switches_take(struct shop_switches *switches, const struct shop_request *request,
                        struct shop_mischief *mischief, struct shop_reply *reply)
{
    memset(mischief, 0, sizeof(*mischief));
    (void)pthread_mutex_lock(&switches->lock);
    if (setting_matches(&switches->setting, request)) {
        *mischief = switches->setting.mischief;
        if (switches->setting.remaining > 0) {
            switches->setting.remaining--;
        }
        if (switches->setting.remaining == 0) {
            switches->setting = SETTING_RESET;
        }
    }
    (void)pthread_mutex_unlock(&switches->lock);
    return headers_apply(request, mischief, reply);
}

static void setting_reply(const struct setting *setting, struct shop_reply *reply)
{
    const struct shop_mischief *mischief = &setting->mischief;
    json_t *count = setting->remaining < 0 ? json_string("all") : json_integer(setting->remaining);

    shop_reply_json(reply, 200,
                    json_pack("{s:I, s:I, s:s, s:I, s:I, s:b, s:s, s:s, s:o}", "delay_ms",
                              mischief->delay_ms, "delay_after_ms", mischief->delay_after_ms,
                              "fail", FAIL_WORDS[mischief->fail], "status", mischief->status,
                              "body_bytes", mischief->body_bytes, "chunked", mischief->chunked,
                              "match", setting->match, "method", setting->method, "count", count));
}

void shop_control_get(struct shop *shop, const struct shop_request *request,
                      struct shop_reply *reply)
{
    struct setting setting;

    (void)request;
    (void)pthread_mutex_lock(&shop->switches->lock);
    setting = shop->switches->setting;
    (void)pthread_mutex_unlock(&shop->switches->lock);
    setting_reply(&setting, reply);
}

/* Copies an optional string of the body; left as it is if absent. */
static bool control_text(const json_t *body, const char *name, char *out, size_t bytes_max,
                         struct shop_reply *reply)
{
    const char *text = NULL;

    if (json_object_get(body, name) == NULL) {
        return true;
    }
    if (!shop_field_text(body, name, &text, reply)) {
        return false;
    }
    if (strlen(text) > bytes_max) {
        shop_reply_error(reply, 400, "%s is longer than %zu bytes", name, bytes_max);
        return false;
    }
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static bool control_flag(const json_t *body, const char *name, bool *flag, struct shop_reply *reply)
{
    const json_t *value = json_object_get(body, name);

    if (value != NULL && !json_is_boolean(value)) {
        shop_reply_error(reply, 400, "%s must be true or false", name);
        return false;
    }
    *flag = json_is_true(value);
    return true;
}

/* A misspelt switch would be a test that tests nothing, so an unknown name is an error. */
static bool control_names(json_t *body, struct shop_reply *reply)
{
    static const char *const names[] = {"delay_ms",   "delay_after_ms", "fail",  "status",
                                        "body_bytes", "chunked",        "match", "method",
                                        "count",      "clear_books"};
    const char *name;
    json_t *value;

    json_object_foreach(body, name, value)
    {
        bool known = false;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            known = known || strcmp(name, names[i]) == 0;
        }
        if (!known) {
            shop_reply_error(reply, 400,
                             "\"%s\" is no switch; known are delay_ms, delay_after_ms, fail, "
                             "status, body_bytes, chunked, match, method, count, clear_books",
                             name);
            return false;
        }
    }
    return true;
}

static bool control_read(const json_t *body, struct setting *setting, struct shop_reply *reply)
{
    struct shop_mischief *mischief = &setting->mischief;
    const char *fail = NULL;

    if (json_object_get(body, "fail") != NULL &&
        (!shop_field_text(body, "fail", &fail, reply) ||
         !fail_of_word("fail", fail, &mischief->fail, reply))) {
        return false;
    }
    return shop_field_number(body, "delay_ms", 0, DELAY_MS_MAX, &mischief->delay_ms, reply) &&
           shop_field_number(body, "delay_after_ms", 0, DELAY_MS_MAX, &mischief->delay_after_ms,
                             reply) &&
           shop_field_number(body, "status", STATUS_MIN, STATUS_MAX, &mischief->status, reply) &&
           shop_field_number(body, "body_bytes", 0, REPLY_BODY_BYTES_MAX, &mischief->body_bytes,
                             reply) &&
           shop_field_number(body, "count", 1, INT32_MAX, &setting->remaining, reply) &&
           control_flag(body, "chunked", &mischief->chunked, reply) &&
           control_text(body, "match", setting->match, MATCH_BYTES_MAX, reply) &&
           control_text(body, "method", setting->method, METHOD_BYTES_MAX, reply);
}

void shop_control_set(struct shop *shop, const struct shop_request *request,
                      struct shop_reply *reply)
{
    struct setting setting = SETTING_RESET;
    json_t *body = shop_body_object(request, reply);
    bool clear_books = false;
    bool only_clear;

    if (body == NULL || !control_names(body, reply) || !control_read(body, &setting, reply) ||
        !control_flag(body, "clear_books", &clear_books, reply)) {
        json_decref(body);
        return;
    }
    only_clear = clear_books && json_object_size(body) == 1;
    json_decref(body);

    if (clear_books) {
        if (!shop_db_clear(shop->db)) {
            shop_reply_error(reply, 500, "the books could not be emptied; look at the --db file");
            return;
        }
        shop_arrivals_clear(shop->arrivals);
    }
    (void)pthread_mutex_lock(&shop->switches->lock);
    if (only_clear) {
        setting = shop->switches->setting;
    } else {
        shop->switches->setting = setting;
    }
    (void)pthread_mutex_unlock(&shop->switches->lock);
    setting_reply(&setting, reply);
}
