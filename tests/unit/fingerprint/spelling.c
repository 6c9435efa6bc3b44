/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random spellings of a document: white space, order of members, escapes, ways to write a number.
 */
#include "generator.h"

#include <stdio.h>
#include <stdlib.h>

struct pen {
    char *text;
    size_t used;
    size_t room;
    uint64_t *random;
};

static void put(struct pen *pen, const char *text, size_t bytes)
{
    if (pen->used + bytes + 1 > pen->room) {
        pen->room = 2 * (pen->used + bytes + 1);
        pen->text = realloc(pen->text, pen->room);
        assert_non_null(pen->text);
    }
    memcpy(pen->text + pen->used, text, bytes);
    pen->used += bytes;
    pen->text[pen->used] = '\0';
}

static void put_text(struct pen *pen, const char *text)
{
    put(pen, text, strlen(text));
}

static void put_space(struct pen *pen)
{
    while (random_below(pen->random, 4) == 0) {
        put(pen, &" \t\r\n"[random_below(pen->random, 4)], 1);
    }
}

static void put_utf8(struct pen *pen, uint32_t point)
{
    char bytes[4];
    size_t count = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned leads[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (size_t i = count; i-- > 1;) {
        bytes[i] = (char)(0x80 | (point & 0x3F));
        point >>= 6;
    }
    bytes[0] = (char)(leads[count] | point);
    put(pen, bytes, count);
}

static void put_unit(struct pen *pen, uint32_t unit)
{
    char escape[8];
    snprintf(escape, sizeof(escape), random_below(pen->random, 2) == 0 ? "\\u%04x" : "\\u%04X",
             unit & 0xFFFF);
    put_text(pen, escape);
}

static void put_point(struct pen *pen, uint32_t point)
{
    static const char shorts[] = "\"\\/\b\f\n\r\t";
    static const char letters[] = "\"\\/bfnrt";
    const char *known = point != 0 && point < 0x80 ? strchr(shorts, (int)point) : NULL;
    bool forced = point < 0x20 || point == '"' || point == '\\';
    if (known != NULL && random_below(pen->random, 2) == 0) {
        const char escape[2] = {'\\', letters[known - shorts]};
        put(pen, escape, 2);
        return;
    }
    if (!forced && random_below(pen->random, 4) != 0) {
        put_utf8(pen, point);
        return;
    }
    if (point >= 0x10000) {
        put_unit(pen, 0xD800 + ((point - 0x10000) >> 10));
        put_unit(pen, 0xDC00 + ((point - 0x10000) & 0x3FF));
        return;
    }
    put_unit(pen, point);
}

static void put_string(struct pen *pen, const struct doc_text *text)
{
    put_text(pen, "\"");
    for (int i = 0; i < text->count; i++) {
        put_point(pen, text->points[i]);
    }
    put_text(pen, "\"");
}

static void put_exponent(struct pen *pen, int exponent)
{
    char digits[16];
    put(pen, &"eE"[random_below(pen->random, 2)], 1);
    if (exponent < 0) {
        put_text(pen, "-");
    } else if (random_below(pen->random, 2) == 0) {
        put_text(pen, "+");
    }
    put_text(pen, &"000"[random_below(pen->random, 4)]);
    snprintf(digits, sizeof(digits), "%d", exponent < 0 ? -exponent : exponent);
    put_text(pen, digits);
}

/*
 * The digits with zeros around them, a point somewhere and the exponent that makes up for it. With
 * `whole` digits before the point, 0.DIGITS x 10^e is DIGITS with the point after `whole`, times
 * 10^(e - whole).
 */
static void put_number(struct pen *pen, const struct doc_value *value)
{
    char digits[128];
    int count = 0;
    int lead = (int)random_below(pen->random, 3);
    for (int i = 0; i < lead; i++) {
        digits[count++] = '0';
    }
    memcpy(digits + count, value->digits, (size_t)value->digit_count);
    count += value->digit_count;
    for (int i = (int)random_below(pen->random, 3); i > 0 || count == 0; i--) {
        digits[count++] = '0';
    }
    int whole = 1 + (int)random_below(pen->random, (uint32_t)count);
    int shift = value->exponent + lead - whole;
    int first = 0;
    while (first < whole - 1 && digits[first] == '0') {
        first++;
    }
    bool negative =
        value->negative || (value->digit_count == 0 && random_below(pen->random, 2) == 0);
    put_text(pen, negative ? "-" : "");
    put(pen, digits + first, (size_t)(whole - first));
    if (count > whole) {
        put_text(pen, ".");
        put(pen, digits + whole, (size_t)(count - whole));
    }
    if (shift != 0 || random_below(pen->random, 3) == 0) {
        put_exponent(pen, shift);
    }
}

static void shuffle(int *items, int count, uint64_t *random)
{
    for (int i = count - 1; i > 0; i--) {
        int k = (int)random_below(random, (uint32_t)i + 1);
        int swap = items[i];
        items[i] = items[k];
        items[k] = swap;
    }
}

static void put_noise(struct pen *pen, bool more)
{
    static const char *const values[] = {"1", "[1,{\"a\":[]}]", "null", "{\"noise\":{}}",
                                         "\"\\n\""};
    put_text(pen, "\"nois\\u0065\":");
    put_text(pen, values[random_below(pen->random, 5)]);
    put_text(pen, more ? "," : "");
}

static void put_scalar(struct pen *pen, const struct doc_value *value)
{
    static const char *const words[] = {"null", "false", "true"};
    if (value->kind == DOC_NUMBER) {
        put_number(pen, value);
    } else if (value->kind == DOC_STRING) {
        put_string(pen, &value->text);
    } else {
        put_text(pen, words[value->kind]);
    }
}

/* An open container while it is spelled. */
struct level {
    const struct doc_value *value;
    int order[DOC_CHILDREN_MAX + 1];
    int done;
};

static void open_level(struct pen *pen, struct level *level, const struct doc_value *value,
                       enum spelling spelling)
{
    bool object = value->kind == DOC_OBJECT;
    *level = (struct level){.value = value};
    memcpy(level->order, value->children, sizeof(level->order));
    if (object || (spelling & SPELL_SHUFFLED_ARRAYS) != 0) {
        shuffle(level->order, value->child_count, pen->random);
    }
    put_text(pen, object ? "{" : "[");
    put_space(pen);
    if (object && (spelling & SPELL_NOISE) != 0 && random_below(pen->random, 2) == 0) {
        put_noise(pen, value->child_count > 0);
    }
}

char *doc_spell(const struct doc *doc, uint64_t *random, enum spelling spelling)
{
    struct pen pen = {.random = random};
    struct level levels[DOC_DEPTH_MAX + 2];
    int depth = 1;
    put_space(&pen);
    open_level(&pen, &levels[0], &doc->values[0], spelling);
    while (depth > 0) {
        struct level *level = &levels[depth - 1];
        bool object = level->value->kind == DOC_OBJECT;
        put_space(&pen);
        if (level->done == level->value->child_count) {
            put_text(&pen, object ? "}" : "]");
            depth--;
            continue;
        }
        put_text(&pen, level->done > 0 ? "," : "");
        const struct doc_value *child = &doc->values[level->order[level->done++]];
        put_space(&pen);
        if (object) {
            put_string(&pen, &child->name);
            put_space(&pen);
            put_text(&pen, ":");
            put_space(&pen);
        }
        if (child->kind >= DOC_ARRAY) {
            open_level(&pen, &levels[depth++], child, spelling);
        } else {
            put_scalar(&pen, child);
        }
    }
    put_space(&pen);
    return pen.text;
}
