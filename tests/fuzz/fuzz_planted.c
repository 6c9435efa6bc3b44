/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target with a fault in it: where the input begins with "bug", it gives the key parser 16 bytes of
 * room instead of a key's length. Only who is guided by coverage comes by "bug", and only sanitizers
 * within our own code see the write behind the room. A run that does not find it finds nothing, and
 * scripts/fuzz says so.
 */
#include <stdlib.h>

#include "policy/policy.h"

#define ROOM_BYTES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes >= 3 && data[0] == 'b' && data[1] == 'u' && data[2] == 'g') {
        char *key = malloc(ROOM_BYTES);
        size_t len = 0;
        if (key == NULL) {
            abort();
        }
        (void)cfoil_key_normalise(CFOIL_KEY_FORMAT_ANY, cfoil_bytes_of(data, bytes), key, &len);
        free(key);
    }
    return 0;
}
