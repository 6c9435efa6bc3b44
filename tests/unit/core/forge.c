/* SPDX-License-Identifier: Apache-2.0 */
/* See forge.h. */
#include "forge.h"

#include <stdlib.h>

enum { FIELD_HEAD_BYTES = 6 };

static uint32_t crc_bytes(uint32_t crc, const uint8_t *data, size_t len)
{
    size_t i;
    unsigned bit;

    for (i = 0; i < len; i++) {
        crc ^= data[i];
        for (bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? crc >> 1 ^ UINT32_C(0x82f63b78) : crc >> 1;
    }
    return crc;
}

uint32_t forge_crc(const uint8_t *data, size_t len, const uint8_t *more, size_t more_len)
{
    return ~crc_bytes(crc_bytes(UINT32_MAX, data, len), more, more_len);
}

void forge_put(uint8_t *at, uint64_t value, unsigned bytes)
{
    unsigned i;

    for (i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

uint64_t forge_get(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    unsigned i;

    for (i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static uint8_t *exactly(size_t bytes)
{
    uint8_t *memory = malloc(bytes > 0 ? bytes : 1);

    if (memory == NULL)
        abort();
    return memory;
}

struct forged forge_stamped(const struct cfoil_draft *draft, int64_t now_ms)
{
    size_t bytes = cfoil_draft_encoded_bytes(draft);
    uint8_t *encoded = exactly(bytes);
    struct forged forged = {exactly(bytes), 0};

    if (cfoil_draft_encode(draft, encoded, bytes, &forged.len) != CFOIL_OK || forged.len != bytes)
        abort();
    cfoil_draft_stamp(cfoil_bytes_of(encoded, bytes), now_ms, forged.data);
    free(encoded);
    return forged;
}

void forge_free(struct forged *forged)
{
    free(forged->data);
    forged->data = NULL;
    forged->len = 0;
}

void forge_seal(struct forged *forged)
{
    uint8_t *data = forged->data;
    size_t payload = forged->len - FORGE_FIELDS;

    forge_put(data + FORGE_PAYLOAD_BYTES, payload, 4);
    forge_put(data + FORGE_PAYLOAD_CRC, forge_crc(data + FORGE_FIELDS, payload, NULL, 0), 4);
    forge_put(
        data + FORGE_HEADER_CRC,
        forge_crc(data, FORGE_HEADER_CRC, data + FORGE_GENERATION, FORGE_FIELDS - FORGE_GENERATION),
        4);
}

size_t forge_field(const struct forged *forged, unsigned index)
{
    size_t at = FORGE_FIELDS;

    while (index > 0 && at < forged->len) {
        at += FIELD_HEAD_BYTES + (size_t)forge_get(forged->data + at + 2, 4);
        index--;
    }
    return at < forged->len ? at : forged->len;
}

unsigned forge_tag(const uint8_t *field)
{
    return (unsigned)forge_get(field, 2) & FORGE_TAG_NUMBER;
}

void forge_insert(struct forged *forged, uint16_t tag, struct cfoil_bytes value, uint32_t claimed)
{
    size_t added = FIELD_HEAD_BYTES + value.len;
    uint8_t *data = exactly(forged->len + added);
    size_t at = FORGE_FIELDS;
    unsigned index = 0;

    while (at < forged->len && forge_tag(forged->data + at) < (tag & FORGE_TAG_NUMBER))
        at = forge_field(forged, ++index);
    memcpy(data, forged->data, at);
    forge_put(data + at, tag, 2);
    forge_put(data + at + 2, claimed, 4);
    if (value.len > 0)
        memcpy(data + at + FIELD_HEAD_BYTES, value.data, value.len);
    memcpy(data + at + added, forged->data + at, forged->len - at);
    free(forged->data);
    forged->data = data;
    forged->len += added;
}

enum cfoil_error forge_decode(const struct forged *forged, size_t len, struct cfoil_record *record)
{
    uint8_t *copy = exactly(len);
    enum cfoil_error error;

    memcpy(copy, forged->data, len);
    error = cfoil_record_decode(cfoil_bytes_of(copy, len), record);
    free(copy);
    return error;
}
