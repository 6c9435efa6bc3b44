/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key in a header's value. Bare, or as an RFC 8941 string (in quotes, with \" and \\ as the only
 * escapes, without parameters); both spellings name the same key. White space around it is not part
 * of it. A format only validates: upper and lower case stay different keys.
 */
#include "policy/policy.h"

/* Copies `value` as a key: 1-255 bytes of visible ASCII. */
static bool read_bare(struct cfoil_bytes value, char *out, size_t *out_len)
{
    if (value.len == 0 || value.len > CFOIL_KEY_BYTES_MAX) {
        return false;
    }
    bool visible = true;
    for (size_t i = 0; i < value.len; i++) {
        visible &= value.data[i] >= 0x21 && value.data[i] <= 0x7E;
    }
    memcpy(out, value.data, value.len);
    *out_len = value.len;
    return visible;
}

static bool read_string(struct cfoil_bytes value, char *out, size_t *out_len)
{
    size_t len = 0;
    size_t i = 1;
    for (; i < value.len && value.data[i] != '"'; i++) {
        uint8_t byte = value.data[i];
        if (byte == '\\') {
            i++;
            byte = i < value.len ? value.data[i] : 0;
            if (byte != '"' && byte != '\\') {
                return false;
            }
        }
        if (byte < 0x21 || byte > 0x7E || len == CFOIL_KEY_BYTES_MAX) {
            return false;
        }
        out[len++] = (char)byte;
    }
    *out_len = len;
    return len > 0 && i + 1 == value.len;
}

/* Without a branch, so that a loop over it can be done many bytes at a time. */
static bool is_hex(char byte)
{
    const uint8_t lower = (uint8_t)byte | 0x20;
    return (uint8_t)(byte - '0') <= 9 || (uint8_t)(lower - 'a') <= 5;
}

static bool all_hex(const char *text, size_t len)
{
    bool hex = true;
    for (size_t i = 0; i < len; i++) {
        hex &= is_hex(text[i]);
    }
    return hex;
}

static bool is_uuid(const char *key, size_t len)
{
    return len == 36 && key[8] == '-' && key[13] == '-' && key[18] == '-' && key[23] == '-' &&
           all_hex(key, 8) && all_hex(key + 9, 4) && all_hex(key + 14, 4) && all_hex(key + 19, 4) &&
           all_hex(key + 24, 12);
}

/* Version 4 of RFC 9562: the version digit and the two bits of the variant. */
static bool is_uuid4(const char *key, size_t len)
{
    return is_uuid(key, len) && key[14] == '4' && strchr("89abAB", key[19]) != NULL;
}

/* 26 digits of Crockford's base 32; the first is at most 7, or it would be over 128 bits. */
static bool is_ulid(const char *key, size_t len)
{
    if (len != 26 || key[0] < '0' || key[0] > '7') {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz", key[i]) == NULL) {
            return false;
        }
    }
    return true;
}

bool cfoil_key_normalise(enum cfoil_key_format format, struct cfoil_bytes value, char *out,
                         size_t *out_len)
{
    struct cfoil_bytes bare = cfoil_bytes_trimmed(value);
    bool string = bare.len > 0 && bare.data[0] == '"';
    if (!(string ? read_string(bare, out, out_len) : read_bare(bare, out, out_len))) {
        return false;
    }

    switch (format) {
    case CFOIL_KEY_FORMAT_ANY:
        return true;
    case CFOIL_KEY_FORMAT_UUID:
        return is_uuid(out, *out_len);
    case CFOIL_KEY_FORMAT_UUID4:
        return is_uuid4(out, *out_len);
    case CFOIL_KEY_FORMAT_ULID:
        return is_ulid(out, *out_len);
    }
    return false;
}
