/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the end of what needs no thought: the innermost loops of the JSON reader. Private to
 * this room. All of them rely on the document being followed by CFOIL_JSON_PAD_BYTES of zeros: a
 * zero byte ends every scan, and a load may overshoot into them.
 */
#ifndef CFOIL_FINGERPRINT_SCAN_H
#define CFOIL_FINGERPRINT_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)

#include <emmintrin.h>

/*
 * The first byte that is a quote, a backslash, a control character or not ASCII. Sixteen at a time;
 * compared as signed, what is not ASCII is less than a space too.
 */
static inline uint8_t *cfoil_scan_plain(uint8_t *at)
{
    const __m128i space = _mm_set1_epi8(' ');
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    for (;;) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i marks = _mm_or_si128(_mm_cmplt_epi8(bytes, space), _mm_cmpeq_epi8(bytes, quote));
        marks = _mm_or_si128(marks, _mm_cmpeq_epi8(bytes, backslash));
        unsigned mask = (unsigned)_mm_movemask_epi8(marks);
        if (mask != 0) {
            return at + __builtin_ctz(mask);
        }
        at += sizeof(bytes);
    }
}

#else

#include <endian.h>

#define CFOIL_SCAN_REPEAT(byte) (0x0101010101010101ULL * (byte))

/*
 * The same with eight bytes in a machine word. The subtractions may also mark bytes above a marked
 * one, so only the lowest mark is looked at.
 */
static inline uint8_t *cfoil_scan_plain(uint8_t *at)
{
    for (;;) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        word = le64toh(word);
        uint64_t quote = word ^ CFOIL_SCAN_REPEAT('"');
        uint64_t backslash = word ^ CFOIL_SCAN_REPEAT('\\');
        uint64_t marks = (word - CFOIL_SCAN_REPEAT(0x20)) | (quote - CFOIL_SCAN_REPEAT(1)) |
                         (backslash - CFOIL_SCAN_REPEAT(1));
        marks = (marks | word) & CFOIL_SCAN_REPEAT(0x80);
        if (marks != 0) {
            return at + (unsigned)__builtin_ctzll(marks) / 8;
        }
        at += sizeof(word);
    }
}

#endif

static inline bool cfoil_is_digit(uint8_t c)
{
    return (uint8_t)(c - '0') < 10;
}

static inline uint8_t *cfoil_scan_digits(uint8_t *at)
{
    while (cfoil_is_digit(*at)) {
        at++;
    }
    return at;
}

static inline uint8_t *cfoil_scan_space(uint8_t *at)
{
    while (*at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

#endif
