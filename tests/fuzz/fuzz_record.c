/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the record codec. The first byte says whether length and checksums are set
 * right before the bytes are decoded, so that what lies behind them is reached; the rest is the
 * record. Checked besides crashes: what decodes peeks alike, and encodes to bytes that decode to the
 * same again; snapshot headers are walked to their end.
 */
#include <stdlib.h>

#include "core/record.h"

#define SEALED_BYTES_MAX 4096
#define NOW_MS           INT64_C(1800000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void put_u32(uint8_t *out, uint32_t value)
{
    for (size_t i = 0; i < 4; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

static void seal(uint8_t *record, size_t bytes)
{
    const size_t payload = bytes - CFOIL_RECORD_HEADER_BYTES;

    put_u32(record + 4, (uint32_t)payload);
    put_u32(record + 8,
            cfoil_crc32c(0, cfoil_bytes_of(record + CFOIL_RECORD_HEADER_BYTES, payload)));
    uint32_t crc = cfoil_crc32c(0, cfoil_bytes_of(record, 12));
    put_u32(record + 12,
            cfoil_crc32c(crc, cfoil_bytes_of(record + 16, CFOIL_RECORD_HEADER_BYTES - 16)));
}

/* The record's own encoding, stamped; malloc'd. */
static uint8_t *encoded_of(const struct cfoil_record *record, size_t *len)
{
    const struct cfoil_draft draft = {.record = *record};
    size_t bytes = cfoil_draft_encoded_bytes(&draft);
    uint8_t *encoded = malloc(bytes);
    uint8_t *stamped = malloc(bytes);

    if (encoded == NULL || stamped == NULL ||
        cfoil_draft_encode(&draft, encoded, bytes, len) != CFOIL_OK || *len != bytes) {
        abort();
    }
    cfoil_draft_stamp(cfoil_bytes_of(encoded, bytes), NOW_MS, stamped);
    free(encoded);
    return stamped;
}

static void check_peek(struct cfoil_bytes encoded, const struct cfoil_record *record)
{
    struct cfoil_record_head head;

    if (cfoil_record_peek(encoded, &head) != CFOIL_OK || head.generation != record->generation ||
        head.state != record->state || head.form != record->form ||
        head.gone_at_ms != record->at_ms[CFOIL_TIME_GONE_AT]) {
        abort();
    }
}

static void check_round_trip(const struct cfoil_record *record)
{
    struct cfoil_record again;
    size_t once_bytes = 0;
    size_t twice_bytes = 0;
    uint8_t *once = encoded_of(record, &once_bytes);

    if (cfoil_record_decode(cfoil_bytes_of(once, once_bytes), &again) != CFOIL_OK) {
        abort();
    }
    uint8_t *twice = encoded_of(&again, &twice_bytes);
    if (once_bytes != twice_bytes || memcmp(once, twice, once_bytes) != 0) {
        abort();
    }
    free(once);
    free(twice);
}

static void walk_headers(struct cfoil_bytes headers)
{
    struct cfoil_bytes name;
    struct cfoil_bytes value;
    size_t cursor = 0;
    size_t before = 0;

    while (cfoil_headers_next(headers, &cursor, &name, &value)) {
        if (cursor <= before || cursor > headers.len) {
            abort();
        }
        before = cursor;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t copy[SEALED_BYTES_MAX];
    struct cfoil_record record;

    if (bytes < 1 || bytes - 1 > sizeof(copy)) {
        return 0;
    }
    memcpy(copy, data + 1, bytes - 1);
    if ((data[0] & 1) != 0 && bytes - 1 >= CFOIL_RECORD_HEADER_BYTES) {
        seal(copy, bytes - 1);
    }
    const struct cfoil_bytes encoded = cfoil_bytes_of(copy, bytes - 1);
    if (cfoil_record_decode(encoded, &record) != CFOIL_OK) {
        return 0;
    }
    check_peek(encoded, &record);
    check_round_trip(&record);
    walk_headers(record.snapshot.headers);
    return 0;
}
