/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the key in a header. The first byte chooses the format, the rest is the value.
 * Checked besides crashes: a key is visible ASCII of a key's length, it is its own normal form, its
 * spelling as an RFC 8941 string names the same key, a format refuses keys and changes none, and what
 * is refused in any format is no key by the words of policy.h.
 */
#include <stdlib.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_visible(const char *key, size_t len)
{
    if (len == 0 || len > CFOIL_KEY_BYTES_MAX) {
        abort();
    }
    for (size_t i = 0; i < len; i++) {
        if (key[i] < 0x21 || key[i] > 0x7E) {
            abort();
        }
    }
}

static void check_names(enum cfoil_key_format format, const char *spelled, size_t bytes,
                        const char *key, size_t len)
{
    char again[CFOIL_KEY_BYTES_MAX];
    size_t again_len = 0;

    if (!cfoil_key_normalise(format, cfoil_bytes_of((const uint8_t *)spelled, bytes), again,
                             &again_len) ||
        again_len != len || memcmp(again, key, len) != 0) {
        abort();
    }
}

static void check_string(enum cfoil_key_format format, const char *key, size_t len)
{
    char spelled[2 * CFOIL_KEY_BYTES_MAX + 2] = "\"";
    size_t bytes = 1;

    for (size_t i = 0; i < len; i++) {
        if (key[i] == '"' || key[i] == '\\') {
            spelled[bytes++] = '\\';
        }
        spelled[bytes++] = key[i];
    }
    spelled[bytes++] = '"';
    check_names(format, spelled, bytes, key, len);
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* Refused though it stands there bare, in the one spelling that needs no reading. */
static void check_refused(struct cfoil_bytes value)
{
    while (value.len > 0 && is_blank(value.data[0])) {
        value = cfoil_bytes_of(value.data + 1, value.len - 1);
    }
    while (value.len > 0 && is_blank(value.data[value.len - 1])) {
        value.len--;
    }
    if (value.len == 0 || value.len > CFOIL_KEY_BYTES_MAX || value.data[0] == '"') {
        return;
    }
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < 0x21 || value.data[i] > 0x7E) {
            return;
        }
    }
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char key[CFOIL_KEY_BYTES_MAX];
    size_t len = 0;

    if (bytes == 0) {
        return 0;
    }
    enum cfoil_key_format format = (enum cfoil_key_format)(data[0] % 4);
    const struct cfoil_bytes value = cfoil_bytes_of(data + 1, bytes - 1);
    if (!cfoil_key_normalise(format, value, key, &len)) {
        if (format == CFOIL_KEY_FORMAT_ANY) {
            check_refused(value);
        }
        return 0;
    }
    check_names(CFOIL_KEY_FORMAT_ANY, (const char *)value.data, value.len, key, len);
    check_visible(key, len);
    check_string(format, key, len);
    if (key[0] != '"') {
        check_names(format, key, len, key, len);
    }
    return 0;
}
