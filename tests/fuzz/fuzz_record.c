/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the record codec. The first byte says whether length and checksums are set
 * right before the bytes are decoded, so that what lies behind them is reached; the rest is the
 * record. Checked besides crashes: peek and decode agree, what decodes encodes to bytes that decode to
 * the same record, and to the very bytes it came from where a record could be written so; headers that
 * are read are those that were put, and the times of a draft resolve as record.h says.
 */
#include <stdlib.h>

#include "compare.h"

#define SEALED_BYTES_MAX 4096
#define NOW_MS           INT64_C(1800000000000)

/* By the drawing in record.h. Of the tags, those up to the critical ones decide what a client gets. */
enum { FIELD_HEAD_BYTES = 6, LAST_TAG = 21, LAST_CRITICAL_TAG = 11, CRITICAL = 0x8000 };

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
        head.life_ms != record->at_ms[CFOIL_TIME_LIFE] ||
        head.lease_until_ms != record->at_ms[CFOIL_TIME_LEASE_UNTIL] ||
        head.replay_until_ms != record->at_ms[CFOIL_TIME_REPLAY_UNTIL] ||
        head.gone_at_ms != record->at_ms[CFOIL_TIME_GONE_AT]) {
        abort();
    }
}

static bool is_view(unsigned tag)
{
    return tag == 8 || tag == 9 || tag == 12 || tag >= 15;
}

static bool is_zero(struct cfoil_bytes value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Whether this program could have written the fields: all known, marked as they are, none unset. */
static bool is_our_own(struct cfoil_bytes fields)
{
    for (size_t at = 0; at < fields.len;) {
        const uint8_t *field = fields.data + at;
        const unsigned wire = field[0] | (unsigned)field[1] << 8;
        const unsigned tag = wire & ~(unsigned)CRITICAL;
        const size_t bytes = field[2] | (size_t)field[3] << 8; /* no input is longer */
        const bool critical = (wire & CRITICAL) != 0;
        if (tag > LAST_TAG || critical != (tag <= LAST_CRITICAL_TAG) ||
            (!is_view(tag) && is_zero(cfoil_bytes_of(field + FIELD_HEAD_BYTES, bytes)))) {
            return false;
        }
        at += FIELD_HEAD_BYTES + bytes;
    }
    return true;
}

static struct cfoil_bytes fields_of(struct cfoil_bytes record)
{
    return cfoil_bytes_of(record.data + CFOIL_RECORD_HEADER_BYTES,
                          record.len - CFOIL_RECORD_HEADER_BYTES);
}

static void check_round_trip(struct cfoil_bytes encoded, const struct cfoil_record *record)
{
    struct cfoil_record again;
    size_t bytes = 0;
    uint8_t *written = encoded_of(record, &bytes);
    const struct cfoil_bytes view = cfoil_bytes_of(written, bytes);

    if (cfoil_record_decode(view, &again) != CFOIL_OK ||
        record_difference(record, &again) != NULL) {
        abort();
    }
    if (is_our_own(fields_of(encoded)) && !cfoil_bytes_equal(fields_of(encoded), fields_of(view))) {
        abort();
    }
    free(written);
}

/* Any bytes at all may be walked; what is read lies inside of them, and was put as it stands there. */
static void walk_headers(struct cfoil_bytes headers)
{
    static uint8_t put[SEALED_BYTES_MAX];
    struct cfoil_bytes name;
    struct cfoil_bytes value;
    size_t cursor = 0;
    size_t before = 0;

    while (cfoil_headers_next(headers, &cursor, &name, &value)) {
        size_t bytes = cfoil_headers_put(name, value, put, sizeof(put));
        if (cursor > headers.len || bytes != cursor - before ||
            memcmp(put, headers.data + before, bytes) != 0) {
            abort();
        }
        before = cursor;
    }
}

static int64_t added(__int128 a, __int128 b)
{
    return a + b > INT64_MAX ? INT64_MAX : (int64_t)(a + b);
}

/* The record's times as a draft would give them, in every form; durations are not negative. */
static void check_times(const struct cfoil_record *record)
{
    for (size_t i = 0; i < CFOIL_TIME_COUNT; i++) {
        int64_t ms = record->at_ms[i];
        int64_t now_ms = (int64_t)(record->fence >> 1);
        if (cfoil_time_resolve(CFOIL_TIME_AT, ms, now_ms) != ms) {
            abort();
        }
        if (ms >= 0 && cfoil_time_resolve(CFOIL_TIME_AFTER, ms, now_ms) != added(now_ms, ms)) {
            abort();
        }
        if (ms > 0 && cfoil_time_resolve(CFOIL_TIME_NEXT_MULTIPLE, ms, now_ms) !=
                          added(now_ms - now_ms % ms, ms)) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct cfoil_record record;

    if (bytes < 2 || bytes - 1 > SEALED_BYTES_MAX) {
        return 0;
    }
    uint8_t *copy = malloc(bytes - 1); /* no byte more, so that reading one is seen */
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, data + 1, bytes - 1);
    if ((data[0] & 1) != 0 && bytes - 1 >= CFOIL_RECORD_HEADER_BYTES) {
        seal(copy, bytes - 1);
    }
    const struct cfoil_bytes encoded = cfoil_bytes_of(copy, bytes - 1);
    walk_headers(encoded);
    enum cfoil_error error = cfoil_record_decode(encoded, &record);
    if (error == CFOIL_OK) {
        check_peek(encoded, &record);
        check_round_trip(encoded, &record);
        walk_headers(record.snapshot.headers);
        check_times(&record);
    } else if (error != CFOIL_E_RECORD_CORRUPT && error != CFOIL_E_RECORD_VERSION &&
               error != CFOIL_E_RECORD_CRITICAL) {
        abort();
    }
    free(copy);
    return 0;
}
