/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink: where frames and canonical text go. It gathers small writes, because one update of a
 * digest with a kilobyte costs far less than fifty with twenty bytes. Private to this room.
 *
 *   bytes [ used ......... | free ......... | CFOIL_SINK_SLACK ]
 *                                            capacity
 *
 * With a digester the gathered bytes are flushed into it; without one the sink grows and keeps all.
 * Invariant: after cfoil_sink_room(sink, n) returned true, n bytes can be written at bytes + used,
 * and CFOIL_SINK_SLACK more may be scribbled over.
 */
#ifndef CFOIL_FINGERPRINT_SINK_H
#define CFOIL_FINGERPRINT_SINK_H

#include "fingerprint/digest.h"

#define CFOIL_SINK_SLACK    64
#define CFOIL_SINK_BYTES    (16 * 1024)
#define CFOIL_FRAME_VERSION 1

/*
 * Tags of the parts of a fingerprint. The numbers are in the digests: never renumber. Every part
 * is framed as tag, length (u64, big-endian), bytes, but canonical text and a body's bytes: they follow
 * their tag as the last part, so the end of the message frames them.
 */
enum cfoil_tag {
    CFOIL_TAG_TARGET = 1,
    CFOIL_TAG_REQUEST = 2,
    CFOIL_TAG_RAW = 3,
    CFOIL_TAG_RULES = 4,
    CFOIL_TAG_METHOD = 16,
    CFOIL_TAG_PATH = 17,
    CFOIL_TAG_TARGET_HASH = 18,
    CFOIL_TAG_QUERY = 19,
    CFOIL_TAG_QUERY_ABSENT = 20,
    CFOIL_TAG_HEADER_NAME = 21,
    CFOIL_TAG_HEADER_VALUE = 22,
    CFOIL_TAG_HEADER_ABSENT = 23,
    CFOIL_TAG_BODY_RAW = 24,        /* followed by the digest that stands for the body */
    CFOIL_TAG_BODY_JSON = 25,       /* followed by the canonical text, to the end */
    CFOIL_TAG_BODY_BYTES = 26,      /* followed by the body as it came, to the end */
    CFOIL_TAG_BODY_TYPED_JSON = 27, /* the same, of a content type that is JSON */
    CFOIL_TAG_IGNORE = 32,
    CFOIL_TAG_UNORDERED = 33,
    CFOIL_TAG_RULES_QUERY = 34
};

struct cfoil_sink {
    uint8_t *bytes;
    size_t used;
    size_t capacity; /* without the slack */
    struct cfoil_digester *digester;
    bool failed; /* memory ran out while growing; everything after is dropped */
};

/* Makes a sink of CFOIL_SINK_BYTES. Errors: NO_MEMORY. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_sink_create(struct cfoil_sink *sink,
                                                    struct cfoil_digester *digester);
void cfoil_sink_free(struct cfoil_sink *sink);

/*
 * Makes room for `need` bytes by flushing or growing. False: they cannot fit (memory ran out, or a
 * digest's sink is smaller than that; then cfoil_sink_put is the way).
 */
bool cfoil_sink_room(struct cfoil_sink *sink, size_t need);

/* Appends bytes, however many. */
void cfoil_sink_put(struct cfoil_sink *sink, const void *data, size_t len);

/* Gives what is gathered to the digester. */
void cfoil_sink_flush(struct cfoil_sink *sink);

/* Appends one framed part. */
void cfoil_sink_frame(struct cfoil_sink *sink, enum cfoil_tag tag, struct cfoil_bytes part);

/* Begins the message of one digest: flushes nothing, throws away what was gathered. */
void cfoil_sink_begin(struct cfoil_sink *sink, struct cfoil_digester *digester, enum cfoil_tag tag);

#endif
