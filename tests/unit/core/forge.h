/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-made record bytes, by the layout in core/record.h and with a CRC-32C of its own: what a
 * newer version, a broken disk or an enemy with the right checksum would leave in a store.
 */
#ifndef CFOIL_TEST_FORGE_H
#define CFOIL_TEST_FORGE_H

#include "core/record.h"

/* Offsets of core/record.h's layout. */
enum {
    FORGE_VERSION = 3,
    FORGE_PAYLOAD_BYTES = 4,
    FORGE_PAYLOAD_CRC = 8,
    FORGE_HEADER_CRC = 12,
    FORGE_GENERATION = 16,
    FORGE_FENCE = 24,
    FORGE_ATTEMPT = 32,
    FORGE_STATE = 36,
    FORGE_FORM = 37,
    FORGE_CAUSE = 38,
    FORGE_RESERVED = 39,
    FORGE_TIME_FORMS = 40,
    FORGE_TIMES = 48,
    FORGE_FIELDS = 112
};

/* A tag without its critical bit: what fields ascend by. */
enum { FORGE_TAG_NUMBER = 0x7fff };

struct forged {
    uint8_t *data; /* exactly len bytes on the heap, so that a sanitizer sees one byte too far */
    size_t len;
};

/* CRC-32C, bit by bit. */
uint32_t forge_crc(const uint8_t *data, size_t len, const uint8_t *more, size_t more_len);

/* The draft encoded and stamped by the code under test. Free with forge_free. */
struct forged forge_stamped(const struct cfoil_draft *draft, int64_t now_ms);
void forge_free(struct forged *forged);

/* Makes payload_bytes and both checksums true again. */
void forge_seal(struct forged *forged);

/* Inserts a field where its tag belongs, unsealed; `claimed` is the length it tells. */
void forge_insert(struct forged *forged, uint16_t tag, struct cfoil_bytes value, uint32_t claimed);

/* Offset of the index-th field; `forged->len` if there are not so many. */
size_t forge_field(const struct forged *forged, unsigned index);

/* A field's tag, without its critical bit. */
unsigned forge_tag(const uint8_t *field);

void forge_put(uint8_t *at, uint64_t value, unsigned bytes);
uint64_t forge_get(const uint8_t *at, unsigned bytes);

/* Decodes from a heap copy of exactly `len` bytes. */
enum cfoil_error forge_decode(const struct forged *forged, size_t len, struct cfoil_record *record);

#endif
