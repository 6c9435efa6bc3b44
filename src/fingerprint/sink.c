/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathering and framing of what is hashed; sink.h has the layout. Owns the buffer, not the
 * digester.
 */
#include "fingerprint/sink.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>

enum cfoil_error cfoil_sink_create(struct cfoil_sink *sink, struct cfoil_digester *digester)
{
    *sink = (struct cfoil_sink){.capacity = CFOIL_SINK_BYTES, .digester = digester};
    sink->bytes = malloc(CFOIL_SINK_BYTES + CFOIL_SINK_SLACK);
    return sink->bytes != NULL ? CFOIL_OK : CFOIL_E_NO_MEMORY;
}

void cfoil_sink_free(struct cfoil_sink *sink)
{
    free(sink->bytes);
    sink->bytes = NULL;
}

void cfoil_sink_flush(struct cfoil_sink *sink)
{
    assert(sink->digester != NULL);
    cfoil_digest_update(sink->digester, sink->bytes, sink->used);
    sink->used = 0;
}

static bool grow(struct cfoil_sink *sink, size_t need)
{
    size_t capacity = sink->capacity * 2;
    if (capacity < sink->used + need) {
        capacity = sink->used + need;
    }
    uint8_t *bytes = sink->failed ? NULL : realloc(sink->bytes, capacity + CFOIL_SINK_SLACK);
    if (bytes == NULL) {
        sink->failed = true;
        return false;
    }
    sink->bytes = bytes;
    sink->capacity = capacity;
    return true;
}

bool cfoil_sink_room(struct cfoil_sink *sink, size_t need)
{
    if (need <= sink->capacity - sink->used) {
        return true;
    }
    if (sink->digester == NULL) {
        return grow(sink, need);
    }
    cfoil_sink_flush(sink);
    return need <= sink->capacity;
}

void cfoil_sink_put(struct cfoil_sink *sink, const void *data, size_t len)
{
    if (len == 0) {
        return;
    }
    if (cfoil_sink_room(sink, len)) {
        memcpy(sink->bytes + sink->used, data, len);
        sink->used += len;
        return;
    }
    if (sink->digester != NULL) {
        cfoil_digest_update(sink->digester, data, len);
    }
}

void cfoil_sink_frame(struct cfoil_sink *sink, enum cfoil_tag tag, struct cfoil_bytes part)
{
    const uint64_t length = htobe64(part.len);
    uint8_t head[1 + sizeof(length)] = {(uint8_t)tag};
    memcpy(head + 1, &length, sizeof(length));
    cfoil_sink_put(sink, head, sizeof(head));
    cfoil_sink_put(sink, part.data, part.len);
}

void cfoil_sink_begin(struct cfoil_sink *sink, struct cfoil_digester *digester, enum cfoil_tag tag)
{
    const uint8_t head[2] = {(uint8_t)tag, CFOIL_FRAME_VERSION};
    sink->used = 0;
    sink->digester = digester;
    cfoil_digest_begin(digester);
    cfoil_sink_put(sink, head, sizeof(head));
}
