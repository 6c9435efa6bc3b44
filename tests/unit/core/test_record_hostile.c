/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are no record: damaged, cut, written by a newer version, or forged with the right
 * checksums. Every one is refused by name (R6: never absent) or reads as exactly what was written.
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

static const int64_t now = 1700000000123;

static struct forged sample(struct random_source *source)
{
    struct cfoil_draft draft;

    random_draft(source, &draft);
    return forge_stamped(&draft, now);
}

static bool refused_as_unreadable(enum cfoil_error error)
{
    return error == CFOIL_E_RECORD_CORRUPT || error == CFOIL_E_RECORD_VERSION ||
           error == CFOIL_E_RECORD_CRITICAL;
}

static void every_flipped_bit_is_refused(void **state)
{
    struct random_source source;
    struct cfoil_record record;
    unsigned round, bit;
    size_t at;

    (void)state;
    random_init(&source);
    for (round = 0; round < 20; round++) {
        struct forged forged = sample(&source);

        for (at = 0; at < forged.len; at++) {
            for (bit = 0; bit < 8; bit++) {
                forged.data[at] ^= (uint8_t)(1U << bit);
                assert_true(refused_as_unreadable(forge_decode(&forged, forged.len, &record)));
                forged.data[at] ^= (uint8_t)(1U << bit);
            }
        }
        assert_int_equal(forge_decode(&forged, forged.len, &record), CFOIL_OK);
        forge_free(&forged);
    }
}

static void every_changed_byte_is_refused(void **state)
{
    struct random_source source;
    struct cfoil_record record;
    struct forged forged;
    unsigned change;
    size_t at;

    (void)state;
    random_init(&source);
    forged = sample(&source);
    for (at = 0; at < forged.len; at++) {
        for (change = 1; change < 256; change++) {
            forged.data[at] ^= (uint8_t)change;
            assert_true(refused_as_unreadable(forge_decode(&forged, forged.len, &record)));
            forged.data[at] ^= (uint8_t)change;
        }
    }
    forge_free(&forged);
}

static void every_flipped_bit_of_the_header_is_seen_by_peek(void **state)
{
    struct random_source source;
    struct cfoil_record_head head;
    struct forged forged;
    size_t at;
    unsigned bit;

    (void)state;
    random_init(&source);
    forged = sample(&source);
    for (at = 0; at < CFOIL_RECORD_HEADER_BYTES; at++) {
        for (bit = 0; bit < 8; bit++) {
            forged.data[at] ^= (uint8_t)(1U << bit);
            assert_true(refused_as_unreadable(
                cfoil_record_peek(cfoil_bytes_of(forged.data, forged.len), &head)));
            forged.data[at] ^= (uint8_t)(1U << bit);
        }
    }
    forge_free(&forged);
}

static void every_truncation_is_refused(void **state)
{
    struct random_source source;
    struct cfoil_record record;
    struct cfoil_record_head head;
    unsigned round;
    size_t len;

    (void)state;
    random_init(&source);
    for (round = 0; round < 20; round++) {
        struct forged forged = sample(&source);

        for (len = 0; len < forged.len; len++)
            assert_int_equal(forge_decode(&forged, len, &record), CFOIL_E_RECORD_CORRUPT);
        for (len = 0; len < CFOIL_RECORD_HEADER_BYTES; len++)
            assert_int_equal(cfoil_record_peek(cfoil_bytes_of(forged.data, len), &head),
                             CFOIL_E_RECORD_CORRUPT);
        forge_free(&forged);
    }
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(NULL, 0), &record), CFOIL_E_RECORD_CORRUPT);
}

static bool has_field(const struct forged *forged, unsigned tag)
{
    unsigned index;

    for (index = 0; forge_field(forged, index) < forged->len; index++) {
        if (forge_tag(forged->data + forge_field(forged, index)) == tag)
            return true;
    }
    return false;
}

/* The record reads as before with an optional field of this tag among its own. */
static void skipped(const struct forged *forged, uint16_t tag)
{
    struct forged longer = {malloc(forged->len), forged->len};
    struct cfoil_record before, after;

    assert_non_null(longer.data);
    memcpy(longer.data, forged->data, forged->len);
    forge_insert(&longer, tag, cfoil_bytes_text("from the future"), 15);
    forge_seal(&longer);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(forged->data, forged->len), &before),
                     CFOIL_OK);
    assert_int_equal(cfoil_record_decode(cfoil_bytes_of(longer.data, longer.len), &after),
                     CFOIL_OK);
    assert_ptr_equal(record_difference(&before, &after), NULL);
    forge_free(&longer);
}

/* Tags from 200 on are not given away yet; a newer version may well put one before ours. */
static void an_unknown_optional_field_is_skipped(void **state)
{
    struct random_source source;
    unsigned round;

    (void)state;
    random_init(&source);
    for (round = 0; round < 200; round++) {
        struct forged forged = sample(&source);

        assert_false(has_field(&forged, 200));
        skipped(&forged, 200);
        skipped(&forged, FORGE_TAG_NUMBER);
        forge_free(&forged);
    }
}

static void an_unknown_critical_field_is_refused_by_name(void **state)
{
    struct random_source source;
    struct cfoil_record record;
    struct forged forged;

    (void)state;
    random_init(&source);
    forged = sample(&source);
    forge_insert(&forged, 0xfffe, cfoil_bytes_text("from the future"), 15);
    forge_seal(&forged);
    assert_int_equal(forge_decode(&forged, forged.len, &record), CFOIL_E_RECORD_CRITICAL);
    forge_free(&forged);
}

static void a_newer_version_is_refused_by_name(void **state)
{
    struct random_source source;
    struct cfoil_record record;
    struct cfoil_record_head head;
    struct forged forged;

    (void)state;
    random_init(&source);
    forged = sample(&source);
    forged.data[FORGE_VERSION] = CFOIL_RECORD_VERSION + 1;
    forge_seal(&forged);
    assert_int_equal(forge_decode(&forged, forged.len, &record), CFOIL_E_RECORD_VERSION);
    assert_int_equal(cfoil_record_peek(cfoil_bytes_of(forged.data, forged.len), &head),
                     CFOIL_E_RECORD_VERSION);
    forge_free(&forged);
}

/* A store that forgot to stamp would leave durations where times belong. */
static void an_unstamped_draft_is_refused(void **state)
{
    struct random_source source;
    struct cfoil_draft draft;
    struct cfoil_record record;
    struct cfoil_record_head head;
    uint8_t encoded[4096];
    size_t len;
    unsigned round, i;

    (void)state;
    random_init(&source);
    for (round = 0; round < 100; round++) {
        random_draft(&source, &draft);
        for (i = 0; round % 2 == 0 && i < CFOIL_TIME_COUNT; i++)
            draft.form[i] = CFOIL_TIME_AT;
        assert_int_equal(cfoil_draft_encode(&draft, encoded, sizeof(encoded), &len), CFOIL_OK);
        assert_int_equal(cfoil_record_decode(cfoil_bytes_of(encoded, len), &record),
                         CFOIL_E_RECORD_CORRUPT);
        assert_int_equal(cfoil_record_peek(cfoil_bytes_of(encoded, len), &head),
                         CFOIL_E_RECORD_CORRUPT);
    }
}

/* Sets one header byte, makes the checksums true, and expects a refusal all the same. */
static void refused_with(size_t at, uint8_t value)
{
    struct random_source source;
    struct cfoil_record record;
    struct cfoil_record_head head;
    struct forged forged;

    random_init(&source);
    forged = sample(&source);
    forge_seal(&forged);
    assert_int_equal(forge_decode(&forged, forged.len, &record), CFOIL_OK);
    forged.data[at] = value;
    forge_seal(&forged);
    assert_int_equal(forge_decode(&forged, forged.len, &record), CFOIL_E_RECORD_CORRUPT);
    assert_int_equal(cfoil_record_peek(cfoil_bytes_of(forged.data, forged.len), &head),
                     CFOIL_E_RECORD_CORRUPT);
    forge_free(&forged);
}

static void a_state_that_cannot_be_stored_is_refused(void **state)
{
    (void)state;
    refused_with(FORGE_STATE, CFOIL_STATE_ABSENT);
    refused_with(FORGE_STATE, CFOIL_STATE_TOMBSTONE);
    refused_with(FORGE_STATE, CFOIL_STATE_COUNT);
    refused_with(FORGE_STATE, 255);
}

static void a_form_or_cause_out_of_range_is_refused(void **state)
{
    (void)state;
    refused_with(FORGE_FORM, CFOIL_FORM_COUNT);
    refused_with(FORGE_CAUSE, CFOIL_CAUSE_COUNT);
}

static void an_unresolved_time_is_refused_whatever_the_checksum(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < CFOIL_TIME_COUNT; i++)
        refused_with(FORGE_TIME_FORMS + i, CFOIL_TIME_AFTER);
}

static void generations_out_of_range_are_refused(void **state)
{
    static const uint64_t bad[] = {0, (uint64_t)CFOIL_GENERATION_MAX + 1, UINT64_MAX};
    struct random_source source;
    struct cfoil_record record;
    size_t i;

    (void)state;
    random_init(&source);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct forged forged = sample(&source);

        forge_put(forged.data + FORGE_GENERATION, bad[i], 8);
        forge_seal(&forged);
        assert_int_equal(forge_decode(&forged, forged.len, &record), CFOIL_E_RECORD_CORRUPT);
        forge_free(&forged);
    }
}

static void a_field_longer_than_the_record_is_refused(void **state)
{
    static const uint32_t claims[] = {16, 17, 4096, 0x7fffffff, 0xfffffff0, 0xffffffff};
    struct random_source source;
    struct cfoil_record record;
    size_t i;

    (void)state;
    random_init(&source);
    for (i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        struct forged forged = sample(&source);

        /* The last field, so that there is nothing behind it to be taken for its own. */
        forge_insert(&forged, 0xffff, cfoil_bytes_text("from the future"), claims[i]);
        forge_seal(&forged);
        assert_true(refused_as_unreadable(forge_decode(&forged, forged.len, &record)));
        forge_free(&forged);
    }
}

/* A known field twice could be read as either: neither is right. */
static void a_field_that_comes_twice_is_refused(void **state)
{
    struct random_source source;
    struct cfoil_record record;
    struct forged forged;
    unsigned index;

    (void)state;
    random_init(&source);
    forged = sample(&source);
    for (index = 0; forge_field(&forged, index) < forged.len; index++) {
        struct forged twice = {malloc(forged.len), forged.len};
        size_t at = forge_field(&forged, index);
        uint16_t tag = (uint16_t)forge_get(forged.data + at, 2);
        uint32_t bytes = (uint32_t)forge_get(forged.data + at + 2, 4);

        assert_non_null(twice.data);
        memcpy(twice.data, forged.data, forged.len);
        forge_insert(&twice, tag, cfoil_bytes_of(forged.data + at + 6, bytes), bytes);
        forge_seal(&twice);
        assert_int_equal(forge_decode(&twice, twice.len, &record), CFOIL_E_RECORD_CORRUPT);
        forge_free(&twice);
    }
    assert_true(index > 1);
    forge_free(&forged);
}

static void a_known_field_of_another_size_is_refused_or_read_as_it_is(void **state)
{
    struct random_source source;
    struct cfoil_record record;
    struct forged forged;
    unsigned index;

    (void)state;
    random_init(&source);
    forged = sample(&source);
    for (index = 0; forge_field(&forged, index) < forged.len; index++) {
        size_t at = forge_field(&forged, index);
        size_t bytes = (size_t)forge_get(forged.data + at + 2, 4);
        size_t cut;

        for (cut = 1; cut <= bytes; cut++) {
            struct forged shorter = {malloc(forged.len), forged.len - cut};
            enum cfoil_error error;

            assert_non_null(shorter.data);
            memcpy(shorter.data, forged.data, at + 6 + bytes - cut);
            memcpy(shorter.data + at + 6 + bytes - cut, forged.data + at + 6 + bytes,
                   forged.len - at - 6 - bytes);
            forge_put(shorter.data + at + 2, bytes - cut, 4);
            forge_seal(&shorter);
            error = forge_decode(&shorter, shorter.len, &record);
            assert_true(error == CFOIL_OK || error == CFOIL_E_RECORD_CORRUPT);
            forge_free(&shorter);
        }
    }
    forge_free(&forged);
}

/* Random payloads under true checksums: any answer but a crash, and nothing read outside. */
static void random_payloads_never_lead_outside(void **state)
{
    struct random_source source;
    unsigned round;

    (void)state;
    random_init(&source);
    for (round = 0; round < 20000; round++) {
        struct forged forged = sample(&source);
        struct cfoil_record record;
        enum cfoil_error error;
        unsigned hits = 1 + (unsigned)random_below(&source, 4);

        while (hits-- > 0) {
            size_t at = FORGE_FIELDS + (size_t)random_below(&source, forged.len - FORGE_FIELDS);

            forged.data[at] = (uint8_t)random_next(&source);
        }
        forge_seal(&forged);
        error = forge_decode(&forged, forged.len, &record);
        assert_true(error == CFOIL_OK || refused_as_unreadable(error));
        forge_free(&forged);
    }
}

static void snapshot_headers_with_bad_framing_end(void **state)
{
    static const uint8_t hostile[][12] = {
        {1},                                           /* half a length */
        {5, 0, 'a', 'b'},                              /* the name is longer than the rest */
        {1, 0, 'a', 2, 0, 0},                          /* half a value length */
        {1, 0, 'a', 5, 0, 0, 0, 'x', 'y'},             /* the value is longer than the rest */
        {1, 0, 'a', 0xff, 0xff, 0xff, 0xff, 'x', 'y'}, /* so long that a sum would wrap */
        {0xff, 0xff, 'a', 0xff, 0xff, 0xff, 0xff, 'x'},
    };
    static const size_t lengths[] = {1, 4, 6, 9, 9, 8};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct cfoil_bytes name, value;
        uint8_t *copy = malloc(lengths[i]);
        size_t cursor = 0;

        assert_non_null(copy);
        memcpy(copy, hostile[i], lengths[i]);
        assert_false(cfoil_headers_next(cfoil_bytes_of(copy, lengths[i]), &cursor, &name, &value));
        free(copy);
    }
}

static void a_cursor_past_the_end_ends(void **state)
{
    struct cfoil_bytes name, value;
    uint8_t out[16];
    size_t cursor = SIZE_MAX;
    size_t len = cfoil_headers_put(cfoil_bytes_text("A"), cfoil_bytes_text("b"), out, sizeof(out));

    (void)state;
    assert_false(cfoil_headers_next(cfoil_bytes_of(out, len), &cursor, &name, &value));
    cursor = 0;
    assert_false(cfoil_headers_next(cfoil_bytes_of(NULL, 0), &cursor, &name, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(every_changed_byte_is_refused),
        cmocka_unit_test(every_flipped_bit_of_the_header_is_seen_by_peek),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(an_unknown_optional_field_is_skipped),
        cmocka_unit_test(an_unknown_critical_field_is_refused_by_name),
        cmocka_unit_test(a_newer_version_is_refused_by_name),
        cmocka_unit_test(an_unstamped_draft_is_refused),
        cmocka_unit_test(a_state_that_cannot_be_stored_is_refused),
        cmocka_unit_test(a_form_or_cause_out_of_range_is_refused),
        cmocka_unit_test(an_unresolved_time_is_refused_whatever_the_checksum),
        cmocka_unit_test(generations_out_of_range_are_refused),
        cmocka_unit_test(a_field_longer_than_the_record_is_refused),
        cmocka_unit_test(a_field_that_comes_twice_is_refused),
        cmocka_unit_test(a_known_field_of_another_size_is_refused_or_read_as_it_is),
        cmocka_unit_test(random_payloads_never_lead_outside),
        cmocka_unit_test(snapshot_headers_with_bad_framing_end),
        cmocka_unit_test(a_cursor_past_the_end_ends),
    };

    return cmocka_run_group_tests_name("hostile records", tests, NULL, NULL);
}
