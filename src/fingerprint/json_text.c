/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings and numbers of JSON: checking them and bringing them to the one form in which equal
 * values are equal bytes.
 *
 * A string becomes its unescaped UTF-8, in place: no escape is shorter than what it stands for. No
 * Unicode normalisation: what looks alike is not the same text.
 *
 * A number becomes its exact decimal value, never through a double: digits without leading and
 * trailing zeros and the position of the point, spelled in one way for each value. With d digits of
 * which the point follows the p-th:
 *
 *   integer, no zeros to add, or p <= 21   9007199254740993  1000
 *   point inside the digits                12.5
 *   -6 < p <= 0                            0.00125
 *   else                                   1.25e-7  1e21
 */
#include "fingerprint/json.h"

#include "fingerprint/scan.h"
#include "fingerprint/utf8.h"

#include <assert.h>

#define PLAIN_POINT_MIN (-5)
#define EXPONENT_STOP   1000000000000 /* a literal exponent this large is not read further */
#define NUMBER_EXTRA    40            /* bytes a spelling needs besides its digits */

static uint8_t *fail(struct cfoil_json *json, const char *reason)
{
    json->reason = reason;
    return NULL;
}

/* Four hex digits; -1 if they are none. The padding ends them at the latest. */
static int32_t read_hex4(const uint8_t *at)
{
    uint8_t bytes[2];
    if (!cfoil_unhex(cfoil_bytes_of(at, 4), bytes, sizeof(bytes))) {
        return -1;
    }
    return bytes[0] << 8 | bytes[1];
}

static uint8_t *put_utf8(uint8_t *out, uint32_t point)
{
    if (point < 0x80) {
        *out++ = (uint8_t)point;
        return out;
    }
    if (point < 0x800) {
        *out++ = (uint8_t)(0xC0 | point >> 6);
        *out++ = (uint8_t)(0x80 | (point & 0x3F));
        return out;
    }
    if (point < 0x10000) {
        *out++ = (uint8_t)(0xE0 | point >> 12);
        *out++ = (uint8_t)(0x80 | (point >> 6 & 0x3F));
        *out++ = (uint8_t)(0x80 | (point & 0x3F));
        return out;
    }
    *out++ = (uint8_t)(0xF0 | point >> 18);
    *out++ = (uint8_t)(0x80 | (point >> 12 & 0x3F));
    *out++ = (uint8_t)(0x80 | (point >> 6 & 0x3F));
    *out++ = (uint8_t)(0x80 | (point & 0x3F));
    return out;
}

/* `at` stands behind "\u". Writes the character to *out and returns where its escapes end. */
static uint8_t *unescape_unicode(struct cfoil_json *json, uint8_t *at, uint8_t **out)
{
    int32_t unit = read_hex4(at);
    if (unit < 0) {
        return fail(json, "\\u is not followed by four hex digits");
    }
    at += 4;
    uint32_t point = (uint32_t)unit;
    if (point >= 0xD800 && point < 0xE000) {
        int32_t low = point < 0xDC00 && at[0] == '\\' && at[1] == 'u' ? read_hex4(at + 2) : -1;
        if (low < 0xDC00 || low >= 0xE000) {
            return fail(json, "a lone surrogate stands in a string");
        }
        at += 6;
        point = 0x10000 + ((point - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
    }
    *out = put_utf8(*out, point);
    return at;
}

/* `at` stands behind a backslash; like unescape_unicode. */
static uint8_t *unescape(struct cfoil_json *json, uint8_t *at, uint8_t **out)
{
    static const char escapes[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    if (*at == 'u') {
        return unescape_unicode(json, at + 1, out);
    }
    const char *escape = *at != 0 ? strchr(escapes, *at) : NULL;
    if (escape == NULL) {
        return fail(json, "a string has an unknown escape");
    }
    *(*out)++ = (uint8_t)meanings[escape - escapes];
    return at + 1;
}

static bool needs_escape(uint8_t c)
{
    return c == '"' || c == '\\' || c < 0x20;
}

/*
 * The part of a string from its first byte that is not plain. Text moves down by what escapes have
 * saved; the closing quote is set again behind it, so that it can be written out as one piece.
 */
uint8_t *cfoil_json_string_rest(struct cfoil_json *json, uint8_t *start, uint8_t *at,
                                struct cfoil_json_span *span)
{
    uint8_t *out = at;
    span->at = (uint32_t)(start - json->text);
    span->escape = 0;
    for (;;) {
        uint8_t c = *at;
        uint8_t *piece = at;
        if (c == '"') {
            *out = '"';
            span->bytes = (uint32_t)(out - start);
            return at + 1;
        }
        if (c < 0x20) {
            return fail(json, "a string has a control character or does not end");
        }
        if (c == '\\') {
            uint8_t *written = out;
            at = unescape(json, at + 1, &out);
            if (at == NULL) {
                return NULL;
            }
            span->escape |= needs_escape(*written);
            continue;
        }
        while (*at >= 0x80) {
            unsigned bytes = cfoil_utf8_sequence(at);
            if (bytes == 0) {
                return fail(json, "it is not valid UTF-8");
            }
            at += bytes;
        }
        at = cfoil_scan_plain(at);
        if (out != piece) {
            memmove(out, piece, (size_t)(at - piece));
        }
        out += at - piece;
    }
}

/* The parts of a number as they stand in the text; offsets, because the text may move. */
struct literal {
    const uint8_t *text;
    size_t whole_at;
    size_t whole_digits;
    size_t fraction_at;
    size_t fraction_digits;
    int64_t exponent; /* not beyond EXPONENT_STOP by much */
    bool negative;
};

/* The digit at a position counted over both parts. */
static uint8_t digit_at(const struct literal *literal, size_t position)
{
    if (position < literal->whole_digits) {
        return literal->text[literal->whole_at + position];
    }
    return literal->text[literal->fraction_at + position - literal->whole_digits];
}

static uint8_t *put_digits(uint8_t *out, const struct literal *literal, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        *out++ = digit_at(literal, i);
    }
    return out;
}

static uint8_t *put_zeros(uint8_t *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        *out++ = '0';
    }
    return out;
}

static uint8_t *put_exponent(uint8_t *out, int64_t exponent)
{
    uint8_t digits[20];
    int count = 0;
    *out++ = 'e';
    if (exponent < 0) {
        *out++ = '-';
        exponent = -exponent;
    }
    for (; exponent > 0; exponent /= 10) {
        digits[count++] = (uint8_t)('0' + exponent % 10);
    }
    assert(count > 0); /* an exponent of zero has a plain spelling */
    while (count > 0) {
        *out++ = digits[--count];
    }
    return out;
}

/* Spells digits [from, to) of which the point follows the `point`-th; returns where it ends. */
static uint8_t *spell(uint8_t *out, const struct literal *literal, size_t from, size_t to,
                      int64_t point)
{
    int64_t count = (int64_t)(to - from);
    if (literal->negative) {
        *out++ = '-';
    }
    if (point == count || (point > count && point <= CFOIL_JSON_PLAIN_DIGITS)) {
        out = put_digits(out, literal, from, to);
        return put_zeros(out, point - count);
    }
    if (point > 0 && point < count) {
        out = put_digits(out, literal, from, from + (size_t)point);
        *out++ = '.';
        return put_digits(out, literal, from + (size_t)point, to);
    }
    if (point <= 0 && point >= PLAIN_POINT_MIN) {
        *out++ = '0';
        *out++ = '.';
        out = put_zeros(out, -point);
        return put_digits(out, literal, from, to);
    }
    out = put_digits(out, literal, from, from + 1);
    if (count > 1) {
        *out++ = '.';
        out = put_digits(out, literal, from + 1, to);
    }
    return put_exponent(out, point - 1);
}

/* Gives the number new text behind the document; false with json->reason or json->no_memory. */
static bool respell(struct cfoil_json *json, struct literal *literal, struct cfoil_json_span *span)
{
    size_t digits = literal->whole_digits + literal->fraction_digits;
    size_t from = 0;
    size_t to = digits;
    if (!cfoil_json_more_text(json, digits + NUMBER_EXTRA)) {
        return false;
    }
    literal->text = json->text;
    while (from < to && digit_at(literal, from) == '0') {
        from++;
    }
    while (to > from && digit_at(literal, to - 1) == '0') {
        to--;
    }
    int64_t point = (int64_t)literal->whole_digits - (int64_t)from + literal->exponent;
    int64_t exponent = point - 1; /* with one digit before the point */
    if (from < to && (exponent > CFOIL_JSON_EXPONENT_MAX || exponent < -CFOIL_JSON_EXPONENT_MAX)) {
        json->reason = "a number's exponent is too large";
        return false;
    }

    uint8_t *start = json->text + json->text_used;
    uint8_t *out = start;
    if (from == to) {
        *out++ = '0'; /* whatever its sign and exponent: zero is one value */
    } else {
        out = spell(out, literal, from, to, point);
    }
    span->at = (uint32_t)json->text_used;
    span->bytes = (uint32_t)(out - start);
    json->text_used += span->bytes;
    return true;
}

/* `at` stands behind the "e". NULL if there are no digits. */
static uint8_t *read_exponent(uint8_t *at, int64_t *exponent)
{
    bool negative = *at == '-';
    if (*at == '+' || *at == '-') {
        at++;
    }
    if (!cfoil_is_digit(*at)) {
        return NULL;
    }
    int64_t value = 0;
    for (; cfoil_is_digit(*at); at++) {
        value = value < EXPONENT_STOP ? value * 10 + (*at - '0') : value;
    }
    *exponent = negative ? -value : value;
    return at;
}

/* Whether a literal without exponent is already spelled as `spell` would. */
static bool is_canonical(const struct literal *literal)
{
    const uint8_t *whole = literal->text + literal->whole_at;
    const uint8_t *fraction = literal->text + literal->fraction_at;
    if (literal->fraction_digits == 0) {
        if (whole[0] == '0') {
            return !literal->negative;
        }
        return literal->whole_digits <= CFOIL_JSON_PLAIN_DIGITS ||
               whole[literal->whole_digits - 1] != '0';
    }
    if (fraction[literal->fraction_digits - 1] == '0') {
        return false;
    }
    if (whole[0] != '0') {
        return true;
    }
    size_t zeros = 0;
    while (fraction[zeros] == '0') {
        zeros++;
    }
    return zeros <= -PLAIN_POINT_MIN;
}

uint8_t *cfoil_json_number(struct cfoil_json *json, uint8_t *at, struct cfoil_json_span *span)
{
    const size_t start = (size_t)(at - json->text);
    struct literal literal = {.text = json->text, .negative = *at == '-'};
    at += literal.negative;
    literal.whole_at = start + literal.negative;
    uint8_t *end = *at == '0' ? at + 1 : cfoil_scan_digits(at);
    literal.whole_digits = (size_t)(end - at);
    bool good = end > at;
    at = end;
    if (good && *at == '.') {
        end = cfoil_scan_digits(++at);
        literal.fraction_at = (size_t)(at - json->text);
        literal.fraction_digits = (size_t)(end - at);
        good = end > at;
        at = end;
    }
    bool scientific = good && (*at == 'e' || *at == 'E');
    if (scientific) {
        at = read_exponent(at + 1, &literal.exponent);
        good = at != NULL;
    }
    if (!good) {
        return fail(json, "a number is not spelled as JSON has it");
    }

    const size_t bytes = (size_t)(at - json->text) - start;
    span->escape = 0;
    if (!scientific && is_canonical(&literal)) {
        span->at = (uint32_t)start;
        span->bytes = (uint32_t)bytes;
        return at;
    }
    return respell(json, &literal, span) ? json->text + start + bytes : NULL;
}
