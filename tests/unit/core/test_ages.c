/* SPDX-License-Identifier: Apache-2.0 */
/* Ages of repeats fall under the bound they are below, to the millisecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/ages.h"

/* Where an age is counted, all other counts being zero. */
static const char *under(int64_t age_ms)
{
    struct cfoil_ages ages = {0};
    const char *name = NULL;

    cfoil_ages_add(&ages, age_ms);
    for (size_t i = 0; i < CFOIL_AGES_COUNT; i++) {
        if (ages.count[i] != 0) {
            assert_null(name);
            assert_int_equal(ages.count[i], 1);
            name = cfoil_ages_name(i);
        }
    }
    return name;
}

static void an_age_is_counted_under_the_bound_it_is_below(void **state)
{
    (void)state;
    assert_string_equal(under(0), "1s");
    assert_string_equal(under(999), "1s");
    assert_string_equal(under(1000), "5s");
    assert_string_equal(under(4999), "5s");
    assert_string_equal(under(5000), "30s");
    assert_string_equal(under(9 * 60 * 1000), "10m");
    assert_string_equal(under(INT64_C(86399999)), "24h");
    assert_string_equal(under(INT64_C(86400000)), "2d");
    assert_string_equal(under(INT64_C(604799999)), "7d");
    assert_string_equal(under(INT64_C(604800000)), "later");
}

static void what_cannot_be_is_counted_at_the_ends(void **state)
{
    (void)state;
    assert_string_equal(under(-1), "1s");
    assert_string_equal(under(INT64_MIN), "1s");
    assert_string_equal(under(INT64_MAX), "later");
}

static void counts_add_up(void **state)
{
    struct cfoil_ages ages = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        cfoil_ages_add(&ages, 70 * 1000);
    }
    cfoil_ages_add(&ages, 10);
    assert_int_equal(ages.count[0], 1);
    assert_int_equal(ages.count[3], 3);
}

static void bounds_grow_and_are_what_their_names_say(void **state)
{
    (void)state;
    for (size_t i = 1; i < CFOIL_AGES_COUNT; i++) {
        assert_true(cfoil_ages_bound_ms(i) > cfoil_ages_bound_ms(i - 1));
    }
    assert_string_equal(cfoil_ages_name(0), "1s");
    assert_int_equal(cfoil_ages_bound_ms(0), 1000);
    assert_string_equal(cfoil_ages_name(4), "10m");
    assert_int_equal(cfoil_ages_bound_ms(4), 600000);
    assert_int_equal(cfoil_ages_bound_ms(CFOIL_AGES_COUNT - 1), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_age_is_counted_under_the_bound_it_is_below),
        cmocka_unit_test(what_cannot_be_is_counted_at_the_ends),
        cmocka_unit_test(counts_add_up),
        cmocka_unit_test(bounds_grow_and_are_what_their_names_say),
    };

    return cmocka_run_group_tests_name("ages", tests, NULL, NULL);
}
