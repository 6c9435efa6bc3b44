/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record codec (layout in record.h). Fields are rows of a table, so that encode, decode and the
 * size of a record cannot disagree. Bytes to decode are a stranger's until both checksums passed,
 * and validated even then: another version of this program wrote them.
 */
#include "core/record.h"

#include <assert.h>
#include <endian.h>

#define OFFSET_PAYLOAD_BYTES 4
#define OFFSET_PAYLOAD_CRC   8
#define OFFSET_HEADER_CRC    12
#define OFFSET_GENERATION    16
#define OFFSET_FENCE         24
#define OFFSET_ATTEMPT       32
#define OFFSET_STATE         36
#define OFFSET_FORM          37
#define OFFSET_CAUSE         38
#define OFFSET_TIME_FORMS    40
#define OFFSET_TIMES         48
#define FIELD_HEAD_BYTES     6
#define TAG_CRITICAL         0x8000

enum field_kind { FIELD_FIXED, FIELD_VIEW, FIELD_U16, FIELD_ENUM, FIELD_U64 };

struct field {
    uint16_t tag;
    bool critical;
    enum field_kind kind;
    size_t offset;
    size_t bytes; /* FIXED: how many; U16, ENUM, U64: on the wire */
};

#define AT(member)    offsetof(struct cfoil_record, member)
#define FIXED(member) FIELD_FIXED, AT(member), sizeof(((struct cfoil_record *)0)->member)
#define VIEW(member)  FIELD_VIEW, AT(member), 0

/*
 * Ascending by tag; a tag is never used again for something else. Critical is what a claim or a
 * replay would get wrong without; the rest is for people.
 */
static const struct field fields[] = {
    {1, true, FIXED(owner)},
    {2, true, FIXED(prober)},
    {3, true, FIELD_U64, AT(fingerprint.rules), 8},
    {4, true, FIXED(fingerprint.request_hash)},
    {5, true, FIXED(fingerprint.raw_hash)},
    {6, true, FIXED(fingerprint.target_hash)},
    {7, true, FIELD_U16, AT(snapshot.status), 2},
    {8, true, VIEW(snapshot.headers)},
    {9, true, VIEW(snapshot.body)},
    {10, true, FIXED(target)},
    {11, true, FIELD_U64, AT(target_life_ms), 8},
    {12, false, VIEW(scope.layer)},
    {13, false, FIELD_ENUM, AT(scope.kind), 2},
    {14, false, FIELD_ENUM, AT(scope.tenant_class), 2},
    {15, false, VIEW(scope.tenant)},
    {16, false, VIEW(scope.endpoint)},
    {17, false, VIEW(scope.key)},
    {18, false, VIEW(first_request_id)},
    {19, false, VIEW(resource.type)},
    {20, false, VIEW(resource.id)},
    {21, false, VIEW(reason)},
    {22, false, FIELD_U64, AT(window_ms), 8},
    {23, false, FIELD_ENUM, AT(window_anchor), 2},
};

#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

_Static_assert(sizeof(enum cfoil_kind) == sizeof(uint32_t), "FIELD_ENUM reads 32 bits");
_Static_assert(sizeof(int64_t) == 8 && CFOIL_TIME_COUNT == 8, "the header has eight times");

/* The low `bytes` (at most 8) of a number, little-endian; one store where their count is known. */
static inline void put(uint8_t *out, uint64_t value, size_t bytes)
{
    uint64_t wire = htole64(value);
    memcpy(out, &wire, bytes);
}

static inline uint64_t get(const uint8_t *in, size_t bytes)
{
    uint64_t wire = 0;
    memcpy(&wire, in, bytes);
    return le64toh(wire);
}

static inline bool is_zero(const uint8_t *data, size_t len)
{
    static const uint8_t zero[CFOIL_DIGEST_BYTES];

    assert(len <= sizeof(zero));
    return memcmp(data, zero, len) == 0;
}

/* A number field's value, wherever it sits in the record. */
static uint64_t number_of(const struct field *field, const uint8_t *member)
{
    uint16_t u16 = 0;
    uint32_t u32 = 0;
    uint64_t u64 = 0;

    switch (field->kind) {
    case FIELD_U16:
        memcpy(&u16, member, sizeof(u16));
        return u16;
    case FIELD_ENUM:
        memcpy(&u32, member, sizeof(u32));
        return u32;
    case FIELD_U64:
        memcpy(&u64, member, sizeof(u64));
        return u64;
    case FIELD_FIXED:
    case FIELD_VIEW:
        break;
    }
    return 0;
}

static void set_number(const struct field *field, uint8_t *member, uint64_t value)
{
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;

    if (field->kind == FIELD_U16) {
        memcpy(member, &u16, sizeof(u16));
    } else if (field->kind == FIELD_ENUM) {
        memcpy(member, &u32, sizeof(u32));
    } else {
        memcpy(member, &value, sizeof(value));
    }
}

/* Bytes of the field's value; 0 means it is unset and not written at all. */
static size_t value_bytes(const struct field *field, const struct cfoil_record *record)
{
    const uint8_t *member = (const uint8_t *)record + field->offset;
    struct cfoil_bytes view;

    if (field->kind == FIELD_VIEW) {
        memcpy(&view, member, sizeof(view));
        return view.len;
    }
    if (field->kind == FIELD_FIXED) {
        return is_zero(member, field->bytes) ? 0 : field->bytes;
    }
    return number_of(field, member) == 0 ? 0 : field->bytes;
}

static void put_value(const struct field *field, const struct cfoil_record *record, uint8_t *out)
{
    const uint8_t *member = (const uint8_t *)record + field->offset;
    struct cfoil_bytes view;

    if (field->kind == FIELD_VIEW) {
        memcpy(&view, member, sizeof(view));
        memcpy(out, view.data, view.len);
    } else if (field->kind == FIELD_FIXED) {
        memcpy(out, member, field->bytes);
    } else {
        put(out, number_of(field, member), field->bytes);
    }
}

/* Bytes of the encoding, and of each field's value. SIZE_MAX: a field is too large. */
static size_t measure(const struct cfoil_record *record, size_t bytes[FIELD_COUNT])
{
    size_t total = CFOIL_RECORD_HEADER_BYTES;

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        bytes[i] = value_bytes(&fields[i], record);
        if (bytes[i] > CFOIL_RECORD_BYTES_MAX) {
            return SIZE_MAX;
        }
        total += bytes[i] > 0 ? FIELD_HEAD_BYTES + bytes[i] : 0;
    }
    return total;
}

size_t cfoil_draft_encoded_bytes(const struct cfoil_draft *draft)
{
    size_t bytes[FIELD_COUNT];

    return measure(&draft->record, bytes);
}

static void encode_header(const struct cfoil_draft *draft, uint8_t *out)
{
    const struct cfoil_record *record = &draft->record;

    memset(out, 0, CFOIL_RECORD_HEADER_BYTES);
    memcpy(out, "CFR", 3);
    out[3] = CFOIL_RECORD_VERSION;
    put(out + OFFSET_GENERATION, record->generation, 8);
    put(out + OFFSET_FENCE, record->fence, 8);
    put(out + OFFSET_ATTEMPT, record->attempt, 4);
    out[OFFSET_STATE] = (uint8_t)record->state;
    out[OFFSET_FORM] = (uint8_t)record->form;
    out[OFFSET_CAUSE] = (uint8_t)record->cause;
    for (size_t i = 0; i < CFOIL_TIME_COUNT; i++) {
        out[OFFSET_TIME_FORMS + i] = (uint8_t)draft->form[i];
        put(out + OFFSET_TIMES + 8 * i, (uint64_t)record->at_ms[i], 8);
    }
}

enum cfoil_error cfoil_draft_encode(const struct cfoil_draft *draft, uint8_t *out, size_t out_bytes,
                                    size_t *len)
{
    size_t bytes[FIELD_COUNT];
    size_t total = measure(&draft->record, bytes);

    if (total > CFOIL_RECORD_BYTES_MAX) {
        return CFOIL_E_LIMIT;
    }
    if (total > out_bytes) {
        return CFOIL_E_BUFFER_SMALL;
    }
    encode_header(draft, out);
    uint8_t *cursor = out + CFOIL_RECORD_HEADER_BYTES;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (bytes[i] == 0) {
            continue;
        }
        put(cursor, fields[i].tag | (fields[i].critical ? TAG_CRITICAL : 0U), 2);
        put(cursor + 2, bytes[i], 4);
        put_value(&fields[i], &draft->record, cursor + FIELD_HEAD_BYTES);
        cursor += FIELD_HEAD_BYTES + bytes[i];
    }

    size_t payload = total - CFOIL_RECORD_HEADER_BYTES;
    put(out + OFFSET_PAYLOAD_BYTES, payload, 4);
    put(out + OFFSET_PAYLOAD_CRC,
        cfoil_crc32c(0, cfoil_bytes_of(out + CFOIL_RECORD_HEADER_BYTES, payload)), 4);
    *len = total;
    return CFOIL_OK;
}

/* Over the header without the checksum itself. */
static uint32_t header_crc(const uint8_t *header)
{
    uint32_t crc = cfoil_crc32c(0, cfoil_bytes_of(header, OFFSET_HEADER_CRC));
    return cfoil_crc32c(crc, cfoil_bytes_of(header + OFFSET_GENERATION,
                                            CFOIL_RECORD_HEADER_BYTES - OFFSET_GENERATION));
}

enum cfoil_state cfoil_draft_state(struct cfoil_bytes draft)
{
    assert(draft.len >= CFOIL_RECORD_HEADER_BYTES && draft.data[OFFSET_STATE] < CFOIL_STATE_COUNT);
    return (enum cfoil_state)draft.data[OFFSET_STATE];
}

void cfoil_draft_stamp(struct cfoil_bytes draft, int64_t now_ms, uint8_t *out)
{
    assert(draft.len >= CFOIL_RECORD_HEADER_BYTES);
    memcpy(out, draft.data, draft.len);
    for (size_t i = 0; i < CFOIL_TIME_COUNT; i++) {
        enum cfoil_time_form form = (enum cfoil_time_form)out[OFFSET_TIME_FORMS + i];
        int64_t value = (int64_t)get(out + OFFSET_TIMES + 8 * i, 8);
        assert((unsigned)form < CFOIL_TIME_FORM_COUNT);
        put(out + OFFSET_TIMES + 8 * i, (uint64_t)cfoil_time_resolve(form, value, now_ms), 8);
        out[OFFSET_TIME_FORMS + i] = 0;
    }
    put(out + OFFSET_HEADER_CRC, header_crc(out), 4);
}

static int64_t time_of(const uint8_t *header, enum cfoil_time time)
{
    return (int64_t)get(header + OFFSET_TIMES + 8 * (size_t)time, 8);
}

static bool header_is_sane(const uint8_t *header)
{
    uint8_t state = header[OFFSET_STATE];
    uint64_t generation = get(header + OFFSET_GENERATION, 8);

    return state > CFOIL_STATE_ABSENT && state < CFOIL_STATE_TOMBSTONE &&
           header[OFFSET_FORM] < CFOIL_FORM_COUNT && header[OFFSET_CAUSE] < CFOIL_CAUSE_COUNT &&
           generation > 0 && generation <= CFOIL_GENERATION_MAX &&
           is_zero(header + OFFSET_TIME_FORMS, CFOIL_TIME_COUNT);
}

enum cfoil_error cfoil_record_peek(struct cfoil_bytes encoded, struct cfoil_record_head *head)
{
    const uint8_t *header = encoded.data;

    if (encoded.len < CFOIL_RECORD_HEADER_BYTES || memcmp(header, "CFR", 3) != 0) {
        return CFOIL_E_RECORD_CORRUPT;
    }
    if (header[3] > CFOIL_RECORD_VERSION) {
        return CFOIL_E_RECORD_VERSION;
    }
    if (header[3] != CFOIL_RECORD_VERSION ||
        get(header + OFFSET_HEADER_CRC, 4) != header_crc(header) || !header_is_sane(header) ||
        get(header + OFFSET_PAYLOAD_BYTES, 4) != encoded.len - CFOIL_RECORD_HEADER_BYTES) {
        return CFOIL_E_RECORD_CORRUPT;
    }
    head->generation = get(header + OFFSET_GENERATION, 8);
    head->state = (enum cfoil_state)header[OFFSET_STATE];
    head->form = (enum cfoil_form)header[OFFSET_FORM];
    head->life_ms = time_of(header, CFOIL_TIME_LIFE);
    head->lease_until_ms = time_of(header, CFOIL_TIME_LEASE_UNTIL);
    head->replay_until_ms = time_of(header, CFOIL_TIME_REPLAY_UNTIL);
    head->gone_at_ms = time_of(header, CFOIL_TIME_GONE_AT);
    return CFOIL_OK;
}

static const struct field *field_by_tag(unsigned tag)
{
    return tag >= 1 && tag <= FIELD_COUNT ? &fields[tag - 1] : NULL;
}

static enum cfoil_error decode_value(const struct field *field, struct cfoil_bytes value,
                                     struct cfoil_record *record)
{
    uint8_t *member = (uint8_t *)record + field->offset;

    if (field->kind == FIELD_VIEW) {
        memcpy(member, &value, sizeof(value));
        return CFOIL_OK;
    }
    if (value.len != field->bytes) {
        return CFOIL_E_RECORD_CORRUPT;
    }
    if (field->kind == FIELD_FIXED) {
        memcpy(member, value.data, value.len);
    } else {
        set_number(field, member, get(value.data, value.len));
    }
    return CFOIL_OK;
}

/* Decodes fields until the payload is used up; tags must ascend, lengths must fit. */
static enum cfoil_error decode_fields(struct cfoil_bytes payload, struct cfoil_record *record)
{
    size_t cursor = 0;
    unsigned last_tag = 0;

    while (cursor < payload.len) {
        if (payload.len - cursor < FIELD_HEAD_BYTES) {
            return CFOIL_E_RECORD_CORRUPT;
        }
        unsigned wire = (unsigned)get(payload.data + cursor, 2);
        size_t bytes = (size_t)get(payload.data + cursor + 2, 4);
        unsigned tag = wire & ~(unsigned)TAG_CRITICAL;
        cursor += FIELD_HEAD_BYTES;
        if (tag <= last_tag || bytes == 0 || bytes > payload.len - cursor) {
            return CFOIL_E_RECORD_CORRUPT;
        }
        const struct field *field = field_by_tag(tag);
        if (field == NULL && (wire & TAG_CRITICAL) != 0) {
            return CFOIL_E_RECORD_CRITICAL;
        }
        if (field != NULL) {
            enum cfoil_error error =
                decode_value(field, cfoil_bytes_of(payload.data + cursor, bytes), record);
            if (error != CFOIL_OK) {
                return error;
            }
        }
        cursor += bytes;
        last_tag = tag;
    }
    return CFOIL_OK;
}

enum cfoil_error cfoil_record_decode(struct cfoil_bytes encoded, struct cfoil_record *record)
{
    struct cfoil_record_head head;
    enum cfoil_error error = cfoil_record_peek(encoded, &head);
    if (error != CFOIL_OK) {
        return error;
    }

    const uint8_t *header = encoded.data;
    struct cfoil_bytes payload = {header + CFOIL_RECORD_HEADER_BYTES,
                                  encoded.len - CFOIL_RECORD_HEADER_BYTES};
    if (cfoil_crc32c(0, payload) != get(header + OFFSET_PAYLOAD_CRC, 4)) {
        return CFOIL_E_RECORD_CORRUPT;
    }
    memset(record, 0, sizeof(*record));
    record->generation = head.generation;
    record->fence = get(header + OFFSET_FENCE, 8);
    record->attempt = (uint32_t)get(header + OFFSET_ATTEMPT, 4);
    record->state = head.state;
    record->form = head.form;
    record->cause = (enum cfoil_cause)header[OFFSET_CAUSE];
    for (size_t i = 0; i < CFOIL_TIME_COUNT; i++) {
        record->at_ms[i] = time_of(header, (enum cfoil_time)i);
    }
    return decode_fields(payload, record);
}

size_t cfoil_headers_put(struct cfoil_bytes name, struct cfoil_bytes value, uint8_t *out,
                         size_t out_bytes)
{
    size_t needed = 2 + name.len + 4 + value.len;

    if (needed > out_bytes) {
        return needed;
    }
    put(out, name.len, 2);
    memcpy(out + 2, name.data, name.len);
    put(out + 2 + name.len, value.len, 4);
    if (value.len > 0) {
        memcpy(out + 6 + name.len, value.data, value.len);
    }
    return needed;
}

bool cfoil_headers_next(struct cfoil_bytes headers, size_t *cursor, struct cfoil_bytes *name,
                        struct cfoil_bytes *value)
{
    if (*cursor > headers.len || headers.len - *cursor < 6) {
        return false;
    }

    const uint8_t *p = headers.data + *cursor;
    size_t left = headers.len - *cursor - 6;
    size_t name_len = (size_t)get(p, 2);
    if (name_len > left) {
        return false;
    }
    size_t value_len = (size_t)get(p + 2 + name_len, 4);
    if (value_len > left - name_len) {
        return false;
    }
    *name = cfoil_bytes_of(p + 2, name_len);
    *value = cfoil_bytes_of(p + 6 + name_len, value_len);
    *cursor += 6 + name_len + value_len;
    return true;
}
