/* SPDX-License-Identifier: Apache-2.0 */
/* Reading Access-Control-Expose-Headers. See answer.h. */
#include <strings.h>

#include "policy/answer.h"

static bool same_name(struct cfoil_bytes one, struct cfoil_bytes other)
{
    return one.len == other.len &&
           strncasecmp((const char *)one.data, (const char *)other.data, one.len) == 0;
}

bool cfoil_exposes(struct cfoil_bytes value, struct cfoil_bytes name)
{
    size_t at = 0;
    while (at < value.len) {
        size_t end = at;
        while (end < value.len && value.data[end] != ',') {
            end++;
        }
        struct cfoil_bytes item = cfoil_bytes_trimmed(cfoil_bytes_of(value.data + at, end - at));
        if (same_name(item, name) || same_name(item, cfoil_bytes_text("*"))) {
            return true;
        }
        at = end + 1;
    }
    return false;
}
