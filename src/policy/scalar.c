/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units, truth values and enums, and the choice among the syntaxes. See scalar.h. */
#include "policy/scalar.h"

#include <stdio.h>

#include "policy/limits.h"
#include "policy/pattern.h"
#include "policy/texts.h"

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit durations[] = {
    {"ms", 1},           {"s", CFOIL_SECOND_MS}, {"m", CFOIL_MINUTE_MS}, {"h", CFOIL_HOUR_MS},
    {"d", CFOIL_DAY_MS},
};

static const struct unit sizes[] = {{"B", 1}, {"KiB", CFOIL_KIB}, {"MiB", CFOIL_MIB}};

/* What people write instead of a unit, and the unit they mean. */
static const struct {
    const char *wrong;
    const char *right;
} slips[] = {
    {"sec", "s"},  {"secs", "s"},          {"second", "s"}, {"seconds", "s"}, {"S", "s"},
    {"min", "m"},  {"mins", "m"},          {"minute", "m"}, {"minutes", "m"}, {"M", "m"},
    {"hour", "h"}, {"hours", "h"},         {"hr", "h"},     {"hrs", "h"},     {"H", "h"},
    {"day", "d"},  {"days", "d"},          {"D", "d"},      {"msec", "ms"},   {"millis", "ms"},
    {"MS", "ms"},  {"milliseconds", "ms"},
};

static const struct {
    const char *wrong;
    const char *right;
} size_slips[] = {
    {"b", "B"},     {"k", "KiB"},  {"K", "KiB"},   {"kb", "KiB"}, {"kB", "KiB"}, {"KB", "KiB"},
    {"kib", "KiB"}, {"Ki", "KiB"}, {"m", "MiB"},   {"M", "MiB"},  {"mb", "MiB"}, {"MB", "MiB"},
    {"mib", "MiB"}, {"Mi", "MiB"}, {"bytes", "B"}, {"byte", "B"},
};

const char *cfoil_duration_text(int64_t ms, char *out, size_t out_bytes)
{
    size_t unit = sizeof(durations) / sizeof(durations[0]) - 1;
    while (unit > 0 && (ms == 0 || ms % durations[unit].factor != 0)) {
        unit--;
    }
    (void)snprintf(out, out_bytes, "%lld%s", (long long)(ms / durations[unit].factor),
                   ms == 0 ? "s" : durations[unit].name);
    return out;
}

static const char *size_text(int64_t bytes, char *out, size_t out_bytes)
{
    size_t unit = sizeof(sizes) / sizeof(sizes[0]) - 1;
    while (unit > 0 && (bytes == 0 || bytes % sizes[unit].factor != 0)) {
        unit--;
    }
    (void)snprintf(out, out_bytes, "%lld%s", (long long)(bytes / sizes[unit].factor),
                   sizes[unit].name);
    return out;
}

/* Digits at the start; -1: none, INT64_MAX: more than fits. *used is how many. */
static int64_t read_digits(const char *text, size_t *used)
{
    int64_t value = 0;
    size_t at = 0;
    for (; text[at] >= '0' && text[at] <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[at] - '0', &value)) {
            value = INT64_MAX;
        }
    }
    *used = at;
    return at == 0 ? -1 : value;
}

static bool read_count(struct cfoil_node *node, const struct cfoil_field_row *row, char *why)
{
    size_t used;
    int64_t value = read_digits(node->text, &used);
    if (node->quoted || value < 0 || node->text[used] != '\0') {
        (void)snprintf(why, CFOIL_WHY_BYTES,
                       "takes a whole number%s, from %lld to %lld; `%.40s` is not one",
                       node->quoted ? " without quotes" : "", (long long)row->min,
                       (long long)row->max, node->text);
        return false;
    }
    if (row->min == row->max && value != row->min) {
        (void)snprintf(why, CFOIL_WHY_BYTES, "must be %lld, the only one this program knows",
                       (long long)row->min);
        return false;
    }
    if (value < row->min || value > row->max) {
        (void)snprintf(why, CFOIL_WHY_BYTES, "takes a number from %lld to %lld; %.20s is outside",
                       (long long)row->min, (long long)row->max, node->text);
        return false;
    }
    node->number = value;
    return true;
}

static const char *duration_slip(const char *unit)
{
    for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
        if (strcmp(unit, slips[i].wrong) == 0) {
            return slips[i].right;
        }
    }
    return NULL;
}

static const char *size_slip(const char *unit)
{
    for (size_t i = 0; i < sizeof(size_slips) / sizeof(size_slips[0]); i++) {
        if (strcmp(unit, size_slips[i].wrong) == 0) {
            return size_slips[i].right;
        }
    }
    return NULL;
}

/* Says what is wrong with a number and its unit, and what to write instead. */
static void explain_unit(const char *text, size_t used, bool duration, char *why)
{
    const char *what = duration ? "a duration is one whole number and one of ms, s, m, h, d"
                                : "a size is one whole number and one of B, KiB, MiB";
    const char *rest = text + used;
    if (used == 0) {
        (void)snprintf(why, CFOIL_WHY_BYTES, "`%.40s` is not a %s: %s, as in %s", text,
                       duration ? "duration" : "size", what, duration ? "90s" : "64KiB");
        return;
    }
    if (*rest == '\0') {
        (void)snprintf(why, CFOIL_WHY_BYTES,
                       "%.20s has no unit: %s; write %.20s%s if you mean that", text, what, text,
                       duration ? "s" : "KiB");
        return;
    }

    while (*rest == ' ') {
        rest++;
    }
    const char *right = duration ? duration_slip(rest) : size_slip(rest);
    for (size_t i = 0; i < (duration ? 5 : 3) && right == NULL; i++) {
        const struct unit *unit = duration ? &durations[i] : &sizes[i];
        right = strcmp(rest, unit->name) == 0 ? unit->name : NULL;
    }
    if (right != NULL) {
        (void)snprintf(why, CFOIL_WHY_BYTES, "`%.40s` has a wrong unit: %s; write %.*s%s", text,
                       what, (int)(used > 20 ? 20 : used), text, right);
        return;
    }
    (void)snprintf(why, CFOIL_WHY_BYTES, "`%.40s` has a wrong unit: %s; write for example %s", text,
                   what, duration ? "90m instead of 1h30m" : "512KiB instead of 0.5MiB");
}

static bool read_measure(const char *text, int64_t min, int64_t max, bool duration, int64_t *number,
                         char *why)
{
    const struct unit *units = duration ? durations : sizes;
    size_t count =
        duration ? sizeof(durations) / sizeof(durations[0]) : sizeof(sizes) / sizeof(sizes[0]);
    size_t used;
    int64_t value = read_digits(text, &used);
    /* A zero needs no unit. */
    int64_t factor = value == 0 && text[used] == '\0' ? 1 : 0;
    for (size_t i = 0; i < count && value >= 0; i++) {
        if (strcmp(text + used, units[i].name) == 0) {
            factor = units[i].factor;
        }
    }
    if (factor == 0) {
        explain_unit(text, used, duration, why);
        return false;
    }

    if (__builtin_mul_overflow(value, factor, &value)) {
        value = INT64_MAX;
    }
    if (value < min || value > max) {
        char low[32];
        char high[32];
        (void)snprintf(why, CFOIL_WHY_BYTES, "must be from %s to %s; %.40s is outside",
                       duration ? cfoil_duration_text(min, low, sizeof(low))
                                : size_text(min, low, sizeof(low)),
                       duration ? cfoil_duration_text(max, high, sizeof(high))
                                : size_text(max, high, sizeof(high)),
                       text);
        return false;
    }
    *number = value;
    return true;
}

bool cfoil_duration_read(const char *text, int64_t min_ms, int64_t max_ms, int64_t *ms,
                         char why[CFOIL_WHY_BYTES])
{
    return read_measure(text, min_ms, max_ms, true, ms, why);
}

static bool read_bool(struct cfoil_node *node, const struct cfoil_field_row *row, char *why)
{
    bool yes = strcmp(node->text, "true") == 0;
    if (node->quoted || (!yes && strcmp(node->text, "false") != 0)) {
        (void)snprintf(why, CFOIL_WHY_BYTES, "takes true or false%s; `%.40s` is neither",
                       node->quoted ? ", without quotes" : "", node->text);
        return false;
    }
    if (yes && strcmp(row->values, "!true") == 0) {
        (void)snprintf(why, CFOIL_WHY_BYTES,
                       "true is not available in this version; write false or remove the line");
        return false;
    }
    node->number = yes;
    return true;
}

size_t cfoil_values_split(const char *values, char buffer[160], const char *names[8],
                          bool available[8])
{
    (void)snprintf(buffer, 160, "%s", values);
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(buffer, " ", &rest); word != NULL && count < 8;
         word = strtok_r(NULL, " ", &rest)) {
        available[count] = word[0] != '!';
        names[count++] = word[0] == '!' ? word + 1 : word;
    }
    return count;
}

static void explain_enum(const struct cfoil_node *node, const char *const *names,
                         const bool *available, size_t count, char *why)
{
    int len = snprintf(why, CFOIL_WHY_BYTES, "does not take `%.40s`", node->text);
    const char *near = cfoil_nearest(node->text, names, count);
    if (near != NULL) {
        len += snprintf(why + len, CFOIL_WHY_BYTES - (size_t)len, "; did you mean `%s`?", near);
    }
    const char *joint = near != NULL ? " It takes " : "; it takes ";
    for (size_t i = 0; i < count; i++) {
        if (available[i]) {
            len += snprintf(why + len, CFOIL_WHY_BYTES - (size_t)len, "%s%s", joint, names[i]);
            joint = ", ";
        }
    }
}

static bool read_enum(struct cfoil_node *node, enum cfoil_field field, char *why)
{
    const struct cfoil_field_row *row = cfoil_field_row(field);
    char buffer[160];
    const char *names[8];
    bool available[8];
    size_t count = cfoil_values_split(row->values, buffer, names, available);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(node->text, names[i]) != 0) {
            continue;
        }
        if (!available[i]) {
            (void)snprintf(why, CFOIL_WHY_BYTES, "%s is not available in this version", names[i]);
            return false;
        }
        node->number = (int64_t)i;
        return true;
    }

    for (size_t other = 0; other < CFOIL_FIELD_COUNT; other++) {
        const struct cfoil_field_row *member = cfoil_field_row((enum cfoil_field)other);
        if (member->parent == cfoil_field_members(field) && other != CFOIL_FIELD_ROOT &&
            strcmp(member->name, node->text) == 0) {
            (void)snprintf(why, CFOIL_WHY_BYTES, "needs a value for %s; write %s: {%s: ...}",
                           member->name, row->name, member->name);
            return false;
        }
    }
    explain_enum(node, names, available, count, why);
    return false;
}

bool cfoil_scalar_read(struct cfoil_pool *pool, struct cfoil_node *node, enum cfoil_field field,
                       char why[CFOIL_WHY_BYTES])
{
    const struct cfoil_field_row *row = cfoil_field_row(field);
    why[0] = '\0';
    switch (row->syntax) {
    case CFOIL_SYNTAX_ENUM:
        return read_enum(node, field, why);
    case CFOIL_SYNTAX_BOOL:
        return read_bool(node, row, why);
    case CFOIL_SYNTAX_COUNT:
        return read_count(node, row, why);
    case CFOIL_SYNTAX_DURATION:
    case CFOIL_SYNTAX_SIZE:
        return read_measure(node->text, row->min, row->max, row->syntax == CFOIL_SYNTAX_DURATION,
                            &node->number, why);
    case CFOIL_SYNTAX_PATTERN:
        node->pattern =
            cfoil_pattern_parse(pool, cfoil_bytes_of(node->text, node->len), why, CFOIL_WHY_BYTES);
        return node->pattern != NULL;
    case CFOIL_SYNTAX_NONE:
    case CFOIL_SYNTAX_TEXT:
    case CFOIL_SYNTAX_MESSAGE:
    case CFOIL_SYNTAX_NAME:
    case CFOIL_SYNTAX_STATUS:
    case CFOIL_SYNTAX_HEADER:
    case CFOIL_SYNTAX_HEADERS:
    case CFOIL_SYNTAX_POINTER:
    case CFOIL_SYNTAX_PROBE:
    case CFOIL_SYNTAX_PATH:
        return cfoil_text_valid(node, row->syntax, why);
    }
    return false;
}
