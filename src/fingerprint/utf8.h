/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Well-formed UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing over U+10FFFF.
 * Private to this room.
 */
#ifndef CFOIL_FINGERPRINT_UTF8_H
#define CFOIL_FINGERPRINT_UTF8_H

#include "core/bytes.h"

/*
 * `at` stands on a byte of 0x80 or more: how many bytes its sequence has (2 to 4), or 0 if it is
 * ill-formed. Reads past a byte only if that byte continues a sequence, so an ending NUL is enough.
 */
static inline unsigned cfoil_utf8_sequence(const uint8_t *at)
{
    uint8_t lead = at[0];
    if (lead >= 0xE0 && lead < 0xF0) {
        uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
        uint8_t high = lead == 0xED ? 0x9F : 0xBF;
        return at[1] >= low && at[1] <= high && (at[2] & 0xC0) == 0x80 ? 3 : 0;
    }
    if (lead >= 0xC2 && lead < 0xE0) {
        return (at[1] & 0xC0) == 0x80 ? 2 : 0;
    }
    if (lead < 0xF0 || lead > 0xF4) {
        return 0;
    }
    uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
    bool good = at[1] >= low && at[1] <= high && (at[2] & 0xC0) == 0x80 && (at[3] & 0xC0) == 0x80;
    return good ? 4 : 0;
}

/* Text that ends in a NUL behind its last byte. */
static inline bool cfoil_utf8_valid(struct cfoil_bytes text)
{
    for (size_t i = 0; i < text.len;) {
        unsigned bytes = text.data[i] < 0x80 ? 1 : cfoil_utf8_sequence(text.data + i);
        if (bytes == 0) {
            return false;
        }
        i += bytes;
    }
    return true;
}

#endif
