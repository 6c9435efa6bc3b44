/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding, stamping and decoding of records that are as they should be, the framing of snapshot
 * headers, and the checksum. What is not as it should be: test_record_hostile.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "compare.h"
#include "forge.h"
#include "random_record.h"

enum { ROUNDS = 5000 };

static const int64_t now = 1700000000123;

static void random_records_come_back_as_they_were(void **state)
{
    struct random_source source;
    struct cfoil_draft draft;
    struct cfoil_record decoded;
    unsigned round, i;

    (void)state;
    random_init(&source);
    for (round = 0; round < ROUNDS; round++) {
        struct forged forged;

        random_draft(&source, &draft);
        forged = forge_stamped(&draft, now);
        assert_int_equal(cfoil_record_decode(cfoil_bytes_of(forged.data, forged.len), &decoded),
                         CFOIL_OK);
        for (i = 0; i < CFOIL_TIME_COUNT; i++)
            draft.record.at_ms[i] = cfoil_time_resolve(draft.form[i], draft.record.at_ms[i], now);
        assert_ptr_equal(record_difference(&draft.record, &decoded), NULL);
        forge_free(&forged);
    }
}

static void the_head_is_read_without_the_fields(void **state)
{
    struct random_source source;
    struct cfoil_draft draft;
    struct cfoil_record_head head;
    struct cfoil_record record;
    struct forged forged;

    (void)state;
    random_init(&source);
    random_draft(&source, &draft);
    forged = forge_stamped(&draft, now);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(forged.data, forged.len), &record),
                     CFOIL_OK);
    assert_int_equal(cfoil_record_peek(cfoil_bytes_of(forged.data, forged.len), &head), CFOIL_OK);
    assert_true(head.generation == draft.record.generation);
    assert_int_equal(head.state, draft.record.state);
    assert_int_equal(head.form, draft.record.form);
    assert_true(head.life_ms == record.at_ms[CFOIL_TIME_LIFE]);
    assert_true(head.lease_until_ms == record.at_ms[CFOIL_TIME_LEASE_UNTIL]);
    assert_true(head.replay_until_ms == record.at_ms[CFOIL_TIME_REPLAY_UNTIL]);
    assert_true(head.gone_at_ms == record.at_ms[CFOIL_TIME_GONE_AT]);
    forge_free(&forged);
}

/* The layout is what other versions will read: checked byte for byte, not through the decoder. */
static void the_header_lies_where_the_layout_says(void **state)
{
    struct cfoil_draft draft = {.record = {.generation = UINT64_C(0x0102030405060708),
                                           .fence = UINT64_C(0x1112131415161718),
                                           .attempt = UINT32_C(0x21222324),
                                           .state = CFOIL_STATE_IN_DOUBT,
                                           .cause = CFOIL_CAUSE_TIMEOUT}};
    struct forged forged;
    const uint8_t *data;
    size_t payload;

    (void)state;
    draft.record.owner[0] = 1;
    draft.record.scope.layer = cfoil_bytes_text("http");
    draft.record.scope.kind = CFOIL_KIND_KEY;
    draft.record.scope.tenant_class = CFOIL_TENANT_NONE;
    draft.record.scope.key = cfoil_bytes_text("k");
    draft.record.at_ms[CFOIL_TIME_LIFE] = 5;
    draft.form[CFOIL_TIME_GONE_AT] = CFOIL_TIME_AFTER;
    draft.record.at_ms[CFOIL_TIME_GONE_AT] = 1000;
    forged = forge_stamped(&draft, now);
    data = forged.data;
    payload = forged.len - FORGE_FIELDS;
    assert_memory_equal(data, "CFR\x01", 4);
    assert_true(forge_get(data + FORGE_PAYLOAD_BYTES, 4) == payload);
    assert_true(forge_get(data + FORGE_PAYLOAD_CRC, 4) ==
                forge_crc(data + FORGE_FIELDS, payload, NULL, 0));
    assert_true(forge_get(data + FORGE_HEADER_CRC, 4) ==
                forge_crc(data, FORGE_HEADER_CRC, data + FORGE_GENERATION,
                          FORGE_FIELDS - FORGE_GENERATION));
    assert_true(forge_get(data + FORGE_GENERATION, 8) == UINT64_C(0x0102030405060708));
    assert_true(forge_get(data + FORGE_FENCE, 8) == UINT64_C(0x1112131415161718));
    assert_true(forge_get(data + FORGE_ATTEMPT, 4) == UINT32_C(0x21222324));
    assert_int_equal(data[FORGE_STATE], CFOIL_STATE_IN_DOUBT);
    assert_int_equal(data[FORGE_FORM], CFOIL_FORM_RECORD);
    assert_int_equal(data[FORGE_CAUSE], CFOIL_CAUSE_TIMEOUT);
    assert_int_equal(data[FORGE_RESERVED], 0);
    assert_true(forge_get(data + FORGE_TIME_FORMS, 8) == 0);
    assert_true(forge_get(data + FORGE_TIMES + 8 * CFOIL_TIME_LIFE, 8) == 5);
    assert_true(forge_get(data + FORGE_TIMES + 8 * CFOIL_TIME_GONE_AT, 8) == (uint64_t)now + 1000);
    forge_free(&forged);
}

static void fields_ascend_by_tag_and_fill_the_payload(void **state)
{
    struct random_source source;
    struct cfoil_draft draft;
    unsigned round;

    (void)state;
    random_init(&source);
    for (round = 0; round < 200; round++) {
        struct forged forged;
        unsigned last = 0;
        unsigned index = 0;
        size_t at;

        random_draft(&source, &draft);
        forged = forge_stamped(&draft, now);
        for (at = forge_field(&forged, index); at < forged.len; at = forge_field(&forged, index)) {
            unsigned tag = forge_tag(forged.data + at);

            assert_true(at + 6 + forge_get(forged.data + at + 2, 4) <= forged.len);
            assert_true(index == 0 || tag > last);
            last = tag;
            index++;
        }
        assert_true(index > 0);
        forge_free(&forged);
    }
}

static void a_buffer_one_byte_small_is_refused_and_untouched(void **state)
{
    struct random_source source;
    struct cfoil_draft draft;
    uint8_t out[4096];
    size_t bytes, len = 77;

    (void)state;
    random_init(&source);
    random_draft(&source, &draft);
    bytes = cfoil_draft_encoded_bytes(&draft);
    assert_in_range(bytes, CFOIL_RECORD_HEADER_BYTES + 1, sizeof(out) - 1);
    memset(out, 0xa5, sizeof(out));
    assert_int_equal(cfoil_draft_encode(&draft, out, bytes - 1, &len), CFOIL_E_BUFFER_SMALL);
    assert_int_equal(len, 77);
    assert_int_equal(out[bytes - 1], 0xa5);
    assert_int_equal(cfoil_draft_encode(&draft, out, bytes, &len), CFOIL_OK);
    assert_int_equal(len, bytes);
    assert_int_equal(out[bytes], 0xa5);
}

static void a_record_over_the_limit_is_refused(void **state)
{
    struct random_source source;
    struct cfoil_draft draft;
    size_t bytes = (size_t)CFOIL_RECORD_BYTES_MAX + 4096, len = 77;
    uint8_t *big = calloc(1, bytes);
    uint8_t *out = calloc(1, bytes + 8192);

    (void)state;
    assert_non_null(big);
    assert_non_null(out);
    random_init(&source);
    random_draft(&source, &draft);
    draft.record.snapshot.status = 200;
    draft.record.snapshot.body = cfoil_bytes_of(big, (size_t)CFOIL_RECORD_BYTES_MAX + 1);
    assert_int_equal(cfoil_draft_encode(&draft, out, bytes + 8192, &len), CFOIL_E_LIMIT);
    draft.record.snapshot.body = cfoil_bytes_of(big, CFOIL_RECORD_BYTES_MAX);
    assert_int_equal(cfoil_draft_encode(&draft, out, bytes + 8192, &len), CFOIL_E_LIMIT);
    assert_int_equal(len, 77);
    free(out);
    free(big);
}

/* "Or the whole over": exactly at the maximum is a record, one byte more is not. */
static void a_record_of_exactly_the_limit_is_encoded(void **state)
{
    struct random_source source;
    struct cfoil_draft draft;
    uint8_t *big = calloc(1, CFOIL_RECORD_BYTES_MAX);
    uint8_t *out = calloc(1, (size_t)CFOIL_RECORD_BYTES_MAX + 1);
    size_t len = 0, without;

    (void)state;
    assert_non_null(big);
    assert_non_null(out);
    random_init(&source);
    random_draft(&source, &draft);
    draft.record.snapshot.status = 200;
    draft.record.snapshot.body = cfoil_bytes_of(big, 1);
    without = cfoil_draft_encoded_bytes(&draft) - 1;
    draft.record.snapshot.body = cfoil_bytes_of(big, CFOIL_RECORD_BYTES_MAX - without);
    assert_int_equal(cfoil_draft_encode(&draft, out, (size_t)CFOIL_RECORD_BYTES_MAX + 1, &len),
                     CFOIL_OK);
    assert_int_equal(len, CFOIL_RECORD_BYTES_MAX);
    draft.record.snapshot.body.len++;
    assert_int_equal(cfoil_draft_encode(&draft, out, (size_t)CFOIL_RECORD_BYTES_MAX + 1, &len),
                     CFOIL_E_LIMIT);
    free(out);
    free(big);
}

static void each_form_of_time_resolves_as_named(void **state)
{
    (void)state;
    assert_true(cfoil_time_resolve(CFOIL_TIME_AT, 42, 1000) == 42);
    assert_true(cfoil_time_resolve(CFOIL_TIME_AT, 0, 1000) == 0);
    assert_true(cfoil_time_resolve(CFOIL_TIME_AFTER, 42, 1000) == 1042);
    assert_true(cfoil_time_resolve(CFOIL_TIME_AFTER, 0, 1000) == 1000);
    assert_true(cfoil_time_resolve(CFOIL_TIME_NEXT_MULTIPLE, 300, 1000) == 1200);
    assert_true(cfoil_time_resolve(CFOIL_TIME_NEXT_MULTIPLE, 300, 1199) == 1200);
    /* "floor(now / ms) * ms + ms": at a multiple it is the next one. */
    assert_true(cfoil_time_resolve(CFOIL_TIME_NEXT_MULTIPLE, 300, 1200) == 1500);
}

static void stamping_resolves_each_form_in_the_bytes(void **state)
{
    struct random_source source;
    struct cfoil_draft draft;
    struct cfoil_record record;
    struct forged forged;

    (void)state;
    random_init(&source);
    random_draft(&source, &draft);
    draft.form[CFOIL_TIME_LIFE] = CFOIL_TIME_AT;
    draft.record.at_ms[CFOIL_TIME_LIFE] = 4242;
    draft.form[CFOIL_TIME_LEASE_UNTIL] = CFOIL_TIME_AFTER;
    draft.record.at_ms[CFOIL_TIME_LEASE_UNTIL] = 30000;
    draft.form[CFOIL_TIME_GONE_AT] = CFOIL_TIME_NEXT_MULTIPLE;
    draft.record.at_ms[CFOIL_TIME_GONE_AT] = 86400000;
    forged = forge_stamped(&draft, 1700000000123);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(forged.data, forged.len), &record),
                     CFOIL_OK);
    assert_true(record.at_ms[CFOIL_TIME_LIFE] == 4242);
    assert_true(record.at_ms[CFOIL_TIME_LEASE_UNTIL] == 1700000030123);
    assert_true(record.at_ms[CFOIL_TIME_GONE_AT] == 1700006400000); /* 2023-11-15 00:00 UTC */
    forge_free(&forged);
}

/* A store repeats a batch under another time: the draft must not remember the first. */
static void a_draft_can_be_stamped_again_at_another_time(void **state)
{
    struct random_source source;
    struct cfoil_draft draft;
    struct cfoil_record first, second;
    uint8_t encoded[4096], kept[4096], one[4096], two[4096];
    size_t len;

    (void)state;
    random_init(&source);
    random_draft(&source, &draft);
    draft.form[CFOIL_TIME_UPDATED] = CFOIL_TIME_AFTER;
    draft.record.at_ms[CFOIL_TIME_UPDATED] = 0;
    assert_int_equal(cfoil_draft_encode(&draft, encoded, sizeof(encoded), &len), CFOIL_OK);
    memcpy(kept, encoded, len);
    cfoil_draft_stamp(cfoil_bytes_of(encoded, len), 1000, one);
    assert_memory_equal(kept, encoded, len);
    cfoil_draft_stamp(cfoil_bytes_of(encoded, len), 5000, two);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(one, len), &first), CFOIL_OK);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(two, len), &second), CFOIL_OK);
    assert_true(first.at_ms[CFOIL_TIME_UPDATED] == 1000);
    assert_true(second.at_ms[CFOIL_TIME_UPDATED] == 5000);
}

static void headers_keep_order_names_and_bytes(void **state)
{
    static const uint8_t expected[] = {4,   0,   'L', 'i', 'n', 'k', 3,   0,   0, 0, '<',
                                       'a', '>', 4,   0,   'L', 'i', 'n', 'k', 3, 0, 0,
                                       0,   '<', ',', '>', 1,   0,   'X', 0,   0, 0, 0};
    struct cfoil_bytes name, value;
    uint8_t out[64];
    size_t cursor = 0, at = 0;

    (void)state;
    at += cfoil_headers_put(cfoil_bytes_text("Link"), cfoil_bytes_text("<a>"), out, sizeof(out));
    at += cfoil_headers_put(cfoil_bytes_text("Link"), cfoil_bytes_text("<,>"), out + at,
                            sizeof(out) - at);
    at +=
        cfoil_headers_put(cfoil_bytes_text("X"), cfoil_bytes_text(""), out + at, sizeof(out) - at);
    assert_int_equal(at, sizeof(expected));
    assert_memory_equal(out, expected, sizeof(expected));
    assert_true(cfoil_headers_next(cfoil_bytes_of(out, at), &cursor, &name, &value));
    assert_true(cfoil_bytes_equal(name, cfoil_bytes_text("Link")));
    assert_true(cfoil_bytes_equal(value, cfoil_bytes_text("<a>")));
    assert_true(cfoil_headers_next(cfoil_bytes_of(out, at), &cursor, &name, &value));
    assert_true(cfoil_bytes_equal(value, cfoil_bytes_text("<,>")));
    assert_true(cfoil_headers_next(cfoil_bytes_of(out, at), &cursor, &name, &value));
    assert_true(cfoil_bytes_equal(name, cfoil_bytes_text("X")));
    assert_int_equal(value.len, 0);
    assert_false(cfoil_headers_next(cfoil_bytes_of(out, at), &cursor, &name, &value));
}

static void a_header_that_does_not_fit_is_measured_and_not_written(void **state)
{
    struct cfoil_bytes name = cfoil_bytes_text("Link"), value = cfoil_bytes_text("<a>");
    uint8_t out[13];

    (void)state;
    assert_int_equal(cfoil_headers_put(name, value, NULL, 0), 13);
    memset(out, 0xa5, sizeof(out));
    assert_int_equal(cfoil_headers_put(name, value, out, 12), 13);
    assert_int_equal(out[0], 0xa5);
    assert_int_equal(out[11], 0xa5);
    assert_int_equal(cfoil_headers_put(name, value, out, 13), 13);
    assert_int_equal(out[0], 4);
}

/* RFC 3720, appendix B.4, and the check value of the CRC catalogue. */
static void the_checksum_is_crc32c(void **state)
{
    uint8_t bytes[32];
    unsigned i;

    (void)state;
    assert_true(cfoil_crc32c(0, cfoil_bytes_text("123456789")) == UINT32_C(0xe3069283));
    assert_true(cfoil_crc32c(0, cfoil_bytes_text("")) == 0);
    memset(bytes, 0, sizeof(bytes));
    assert_true(cfoil_crc32c(0, cfoil_bytes_of(bytes, 32)) == UINT32_C(0x8a9136aa));
    memset(bytes, 0xff, sizeof(bytes));
    assert_true(cfoil_crc32c(0, cfoil_bytes_of(bytes, 32)) == UINT32_C(0x62a8ab43));
    for (i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_true(cfoil_crc32c(0, cfoil_bytes_of(bytes, 32)) == UINT32_C(0x46dd794e));
    for (i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    assert_true(cfoil_crc32c(0, cfoil_bytes_of(bytes, 32)) == UINT32_C(0x113fdb5c));
}

static void the_checksum_continues_wherever_it_is_cut(void **state)
{
    struct random_source source;
    size_t cut;

    (void)state;
    random_init(&source);
    for (cut = 0; cut <= 100; cut++) {
        uint32_t first = cfoil_crc32c(0, cfoil_bytes_of(source.pool + 3, cut));
        uint32_t whole = cfoil_crc32c(first, cfoil_bytes_of(source.pool + 3 + cut, 100 - cut));

        assert_true(whole == forge_crc(source.pool + 3, 100, NULL, 0));
    }
}

static void the_checksum_is_the_same_without_the_instruction(void **state)
{
    struct random_source source;
    size_t len;

    (void)state;
    random_init(&source);
    for (len = 0; len <= 100; len++) {
        uint32_t seed = (uint32_t)len * 2654435761U;
        struct cfoil_bytes bytes = cfoil_bytes_of(source.pool + len % 8, len);

        assert_true(cfoil_crc32c_by_table(0, bytes) == forge_crc(bytes.data, len, NULL, 0));
        assert_true(cfoil_crc32c_by_table(seed, bytes) == cfoil_crc32c(seed, bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_records_come_back_as_they_were),
        cmocka_unit_test(the_head_is_read_without_the_fields),
        cmocka_unit_test(the_header_lies_where_the_layout_says),
        cmocka_unit_test(fields_ascend_by_tag_and_fill_the_payload),
        cmocka_unit_test(a_buffer_one_byte_small_is_refused_and_untouched),
        cmocka_unit_test(a_record_over_the_limit_is_refused),
        cmocka_unit_test(a_record_of_exactly_the_limit_is_encoded),
        cmocka_unit_test(each_form_of_time_resolves_as_named),
        cmocka_unit_test(stamping_resolves_each_form_in_the_bytes),
        cmocka_unit_test(a_draft_can_be_stamped_again_at_another_time),
        cmocka_unit_test(headers_keep_order_names_and_bytes),
        cmocka_unit_test(a_header_that_does_not_fit_is_measured_and_not_written),
        cmocka_unit_test(the_checksum_is_crc32c),
        cmocka_unit_test(the_checksum_continues_wherever_it_is_cut),
        cmocka_unit_test(the_checksum_is_the_same_without_the_instruction),
    };

    return cmocka_run_group_tests_name("record codec", tests, NULL, NULL);
}
