/* SPDX-License-Identifier: Apache-2.0 */
/* See percent.h. */
#include "policy/percent.h"

#include <stdbool.h>

static bool is_unreserved(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

size_t cfoil_percent_put(uint8_t byte, char out[CFOIL_PERCENT_GROWTH])
{
    static const char hex[] = "0123456789ABCDEF";
    if (is_unreserved(byte)) {
        out[0] = (char)byte;
        return 1;
    }
    out[0] = '%';
    out[1] = hex[byte >> 4];
    out[2] = hex[byte & 15];
    return 3;
}
