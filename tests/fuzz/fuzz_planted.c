/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target with a fault in it: it reads one byte behind its input when that begins with "bug". A run
 * that does not find it finds nothing, and scripts/fuzz says so.
 */
#include <stdlib.h>

#include "core/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes >= 3 && data[0] == 'b' && data[1] == 'u' && data[2] == 'g') {
        uint8_t *copy = malloc(bytes);
        if (copy != NULL) {
            memcpy(copy, data, bytes);
            volatile uint8_t behind = copy[bytes];
            (void)behind;
            free(copy);
        }
    }
    return 0;
}
