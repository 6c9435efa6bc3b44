/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scope's frame: its bytes by hand, and that nothing two scopes differ in can get lost in it
 * (R10 stands on it). Once released, these bytes must never change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scope.h"

enum { FRAME_MAX = 32768 };

struct frame {
    uint8_t data[FRAME_MAX];
    size_t len;
    unsigned pieces;
};

static uint8_t filler[FRAME_MAX];

static void take(void *context, const void *data, size_t len)
{
    struct frame *frame = context;

    assert_true(len <= FRAME_MAX - frame->len);
    if (len > 0)
        memcpy(frame->data + frame->len, data, len);
    frame->len += len;
    frame->pieces++;
}

static struct cfoil_scope scope_of(const char *layer, const char *tenant, const char *endpoint,
                                   const char *key)
{
    struct cfoil_scope scope = {.layer = cfoil_bytes_text(layer),
                                .kind = CFOIL_KIND_KEY,
                                .tenant_class = CFOIL_TENANT_NAMED,
                                .tenant = cfoil_bytes_text(tenant),
                                .endpoint = cfoil_bytes_text(endpoint),
                                .key = cfoil_bytes_text(key)};
    return scope;
}

static enum cfoil_error frame_of(const struct cfoil_scope *scope, struct frame *frame)
{
    frame->len = 0;
    frame->pieces = 0;
    return cfoil_scope_frame(scope, take, frame);
}

static void a_frame_has_the_bytes_of_the_layout(void **state)
{
    static const uint8_t expected[] = {
        1,                                                     /* scope version */
        4,   'h', 't', 't', 'p',                               /* layer */
        1,   1,                                                /* key, named */
        0,   0,   0,   4,   'a', 'c', 'm', 'e',                /* tenant */
        0,   0,   0,   12,  'P', 'O', 'S', 'T', ' ', '/', 'o', /* endpoint */
        'r', 'd', 'e', 'r', 's', 0,   0,   0,   2,   'k', '1', /* key */
    };
    struct cfoil_scope scope = scope_of("http", "acme", "POST /orders", "k1");
    struct frame frame;

    (void)state;
    assert_int_equal(frame_of(&scope, &frame), CFOIL_OK);
    assert_int_equal(frame.len, sizeof(expected));
    assert_memory_equal(frame.data, expected, sizeof(expected));
}

static void an_anonymous_token_frame_has_the_bytes_of_the_layout(void **state)
{
    static const uint8_t expected[] = {1, 3, 'a', 'p', 'p', 4, 3, 0, 0, 0,
                                       0, 0, 0,   0,   0,   0, 0, 0, 1, 'z'};
    struct cfoil_scope scope = scope_of("app", "", "", "z");
    struct frame frame;

    (void)state;
    scope.kind = CFOIL_KIND_TOKEN;
    scope.tenant_class = CFOIL_TENANT_NONE;
    assert_int_equal(frame_of(&scope, &frame), CFOIL_OK);
    assert_int_equal(frame.len, sizeof(expected));
    assert_memory_equal(frame.data, expected, sizeof(expected));
}

/* Lengths are big-endian over four bytes: a short frame shows one byte of them only. */
static void long_parts_have_big_endian_lengths(void **state)
{
    struct cfoil_scope scope = scope_of("http", "", "", "k");
    struct frame frame;

    (void)state;
    memset(filler, 'e', sizeof(filler));
    scope.endpoint = cfoil_bytes_of(filler, 0x1234);
    assert_int_equal(frame_of(&scope, &frame), CFOIL_OK);
    assert_int_equal(frame.len, 1 + 5 + 2 + 4 + 4 + 0x1234 + 4 + 1);
    assert_memory_equal(frame.data + 12, "\x00\x00\x12\x34", 4);
}

static void pairs_that_a_delimiter_would_join_stay_apart(void **state)
{
    static const char *const parts[][4] = {
        {"http", "a", "b", "c"},   {"http", "ab", "", "c"},    {"http", "", "ab", "c"},
        {"http", "a", "", "bc"},   {"http", "", "a", "bc"},    {"http", "", "", "abc"},
        {"httpa", "b", "c", "d"},  {"http", "ab", "c", "d"},   {"http", "a|b", "c", "d"},
        {"http", "a", "b|c", "d"}, {"http", "a:b", "", "d"},   {"http", "a", ":b", "d"},
        {"http", "a/b", "c", "d"}, {"http", "a", "/b/c", "d"}, {"http", "A", "b", "c"},
        {"http", "a", "b", "C"},   {"http", "a ", "b", "c"},   {"http", "a", "b", " c"},
        {"app", "a", "b", "c"},    {"http", "b", "a", "c"},    {"http", "a", "b", "c\n"},
        {"http", "a", "b", "cc"},  {"http", "\x01", "b", "c"},
    };
    static struct frame frames[sizeof(parts) / sizeof(parts[0])];
    size_t count = sizeof(parts) / sizeof(parts[0]), i, j;

    (void)state;
    for (i = 0; i < count; i++) {
        struct cfoil_scope scope = scope_of(parts[i][0], parts[i][1], parts[i][2], parts[i][3]);

        assert_int_equal(frame_of(&scope, &frames[i]), CFOIL_OK);
        for (j = 0; j < i; j++)
            assert_false(frames[i].len == frames[j].len &&
                         memcmp(frames[i].data, frames[j].data, frames[i].len) == 0);
    }
}

/* A part may hold bytes that look like the framing of the next part. */
static void a_part_that_imitates_the_framing_stays_apart(void **state)
{
    static const uint8_t imitation[] = {'a', 0, 0, 0, 1, 'b'};
    struct cfoil_scope honest = scope_of("http", "a", "b", "c");
    struct cfoil_scope crafted = scope_of("http", "", "", "c");
    struct frame one, two;

    (void)state;
    crafted.tenant = cfoil_bytes_of(imitation, sizeof(imitation));
    assert_int_equal(frame_of(&honest, &one), CFOIL_OK);
    assert_int_equal(frame_of(&crafted, &two), CFOIL_OK);
    assert_false(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
}

static void a_nul_in_a_part_is_kept(void **state)
{
    struct cfoil_scope one = scope_of("http", "a", "b", "k");
    struct cfoil_scope two = one;
    struct frame frame_one, frame_two;

    (void)state;
    one.key = cfoil_bytes_of("k\0x", 3);
    two.key = cfoil_bytes_of("k\0y", 3);
    assert_int_equal(frame_of(&one, &frame_one), CFOIL_OK);
    assert_int_equal(frame_of(&two, &frame_two), CFOIL_OK);
    assert_int_equal(frame_one.len, frame_two.len);
    assert_memory_not_equal(frame_one.data, frame_two.data, frame_one.len);
}

static void kind_and_class_are_in_the_frame_by_their_numbers(void **state)
{
    struct cfoil_scope scope = scope_of("http", "a", "b", "c");
    struct frame frame;
    unsigned kind, class;

    (void)state;
    for (kind = 1; kind <= 5; kind++) {
        for (class = 1; class <= 2; class ++) {
            scope.kind = (enum cfoil_kind)kind;
            scope.tenant_class = (enum cfoil_tenant_class) class;
            assert_int_equal(frame_of(&scope, &frame), CFOIL_OK);
            assert_int_equal(frame.data[6], kind);
            assert_int_equal(frame.data[7], class);
        }
    }
}

/* Each part at its limit less one, at it, and over it. */
static void every_part_has_its_limit(void **state)
{
    static const size_t limits[] = {32, 1024, 16384, 255}; /* layer, tenant, endpoint, key */
    struct cfoil_scope scope = scope_of("http", "a", "b", "c");
    struct cfoil_bytes *parts[] = {&scope.layer, &scope.tenant, &scope.endpoint, &scope.key};
    struct frame frame;
    size_t i, step;

    (void)state;
    memset(filler, 'x', sizeof(filler));
    for (i = 0; i < 4; i++) {
        for (step = 0; step < 3; step++) {
            scope = scope_of("http", "a", "b", "c");
            *parts[i] = cfoil_bytes_of(filler, limits[i] - 1 + step);
            assert_int_equal(frame_of(&scope, &frame), step < 2 ? CFOIL_OK : CFOIL_E_LIMIT);
            assert_true(step < 2 || frame.pieces == 0);
        }
    }
}

static void a_scope_without_layer_or_key_is_invalid(void **state)
{
    struct cfoil_scope no_layer = scope_of("", "a", "b", "c");
    struct cfoil_scope no_key = scope_of("http", "a", "b", "");
    struct frame frame;

    (void)state;
    assert_int_equal(frame_of(&no_layer, &frame), CFOIL_E_INVALID);
    assert_int_equal(frame.pieces, 0);
    assert_int_equal(frame_of(&no_key, &frame), CFOIL_E_INVALID);
    assert_int_equal(frame.pieces, 0);
}

static void a_kind_or_class_out_of_range_is_invalid(void **state)
{
    static const unsigned bad_kinds[] = {0, 6, 255, 256 + 1};
    static const unsigned bad_classes[] = {0, 4, 255, 256 + 1};
    struct frame frame;
    size_t i;

    (void)state;
    for (i = 0; i < 4; i++) {
        struct cfoil_scope scope = scope_of("http", "a", "b", "c");

        scope.kind = (enum cfoil_kind)bad_kinds[i];
        assert_int_equal(frame_of(&scope, &frame), CFOIL_E_INVALID);
        assert_int_equal(frame.pieces, 0);
        scope = scope_of("http", "a", "b", "c");
        scope.tenant_class = (enum cfoil_tenant_class)bad_classes[i];
        assert_int_equal(frame_of(&scope, &frame), CFOIL_E_INVALID);
        assert_int_equal(frame.pieces, 0);
    }
}

/* The words of DESIGN.md section 2, row "scope". */
static void names_are_the_words_of_the_design(void **state)
{
    (void)state;
    assert_string_equal(cfoil_kind_name(CFOIL_KIND_KEY), "key");
    assert_string_equal(cfoil_kind_name(CFOIL_KIND_BUSINESS), "business");
    assert_string_equal(cfoil_kind_name(CFOIL_KIND_GUARD), "guard");
    assert_string_equal(cfoil_kind_name(CFOIL_KIND_TOKEN), "token");
    assert_string_equal(cfoil_kind_name(CFOIL_KIND_DRY_RUN), "dry_run");
    assert_string_equal(cfoil_tenant_class_name(CFOIL_TENANT_NAMED), "named");
    assert_string_equal(cfoil_tenant_class_name(CFOIL_TENANT_AUTHORIZATION), "authorization");
    assert_string_equal(cfoil_tenant_class_name(CFOIL_TENANT_NONE), "none");
    assert_string_equal(cfoil_kind_name((enum cfoil_kind)0), "?");
    assert_string_equal(cfoil_kind_name((enum cfoil_kind)6), "?");
    assert_string_equal(cfoil_tenant_class_name((enum cfoil_tenant_class)0), "?");
    assert_string_equal(cfoil_tenant_class_name((enum cfoil_tenant_class)4), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_has_the_bytes_of_the_layout),
        cmocka_unit_test(an_anonymous_token_frame_has_the_bytes_of_the_layout),
        cmocka_unit_test(long_parts_have_big_endian_lengths),
        cmocka_unit_test(pairs_that_a_delimiter_would_join_stay_apart),
        cmocka_unit_test(a_part_that_imitates_the_framing_stays_apart),
        cmocka_unit_test(a_nul_in_a_part_is_kept),
        cmocka_unit_test(kind_and_class_are_in_the_frame_by_their_numbers),
        cmocka_unit_test(every_part_has_its_limit),
        cmocka_unit_test(a_scope_without_layer_or_key_is_invalid),
        cmocka_unit_test(a_kind_or_class_out_of_range_is_invalid),
        cmocka_unit_test(names_are_the_words_of_the_design),
    };

    return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
