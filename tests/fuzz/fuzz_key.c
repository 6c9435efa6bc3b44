/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the key in a header. The first byte chooses the format, the rest is the value.
 * Checked besides crashes: a key is visible ASCII of a key's length, it is its own normal form, and
 * its spelling as an RFC 8941 string names the same key.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char key[CFOIL_KEY_BYTES_MAX];
    size_t len = 0;

    if (bytes == 0) {
        return 0;
    }
    enum cfoil_key_format format = (enum cfoil_key_format)(data[0] % 4);
    if (!cfoil_key_normalise(format, cfoil_bytes_of(data + 1, bytes - 1), key, &len)) {
        return 0;
    }
    check_visible(key, len);
    check_string(format, key, len);
    if (key[0] != '"') {
        check_names(format, key, len, key, len);
    }
    return 0;
}
