/* SPDX-License-Identifier: Apache-2.0 */
/* Which header values are keys, and that a bare key and its RFC 8941 string are the same one. */
#include "support.h"

struct row {
    const char *name;
    enum cfoil_key_format format;
    const char *value;
    const char *key; /* NULL: refused */
};

#define ANY   CFOIL_KEY_FORMAT_ANY
#define UUID  CFOIL_KEY_FORMAT_UUID
#define UUID4 CFOIL_KEY_FORMAT_UUID4
#define ULID  CFOIL_KEY_FORMAT_ULID

static const struct row rows[] = {
    {"bare", ANY, "abc", "abc"},
    {"in quotes", ANY, "\"abc\"", "abc"},
    {"white space around", ANY, " \tabc \t", "abc"},
    {"white space around quotes", ANY, "  \"abc\" ", "abc"},
    {"an escaped quote", ANY, "\"a\\\"b\"", "a\"b"},
    {"an escaped backslash", ANY, "\"a\\\\b\"", "a\\b"},
    {"a bare quote within", ANY, "a\"b", "a\"b"},
    {"a bare backslash", ANY, "a\\b", "a\\b"},
    {"the ends of visible ASCII", ANY, "!~", "!~"},
    {"nothing", ANY, "", NULL},
    {"white space only", ANY, "   ", NULL},
    {"empty quotes", ANY, "\"\"", NULL},
    {"one quote", ANY, "\"", NULL},
    {"an open quote", ANY, "\"abc", NULL},
    {"text after the quote", ANY, "\"abc\"d", NULL},
    {"parameters after the string", ANY, "\"abc\";a=1", NULL},
    {"another escape", ANY, "\"a\\nb\"", NULL},
    {"a backslash at the end", ANY, "\"abc\\", NULL},
    {"a space within", ANY, "a b", NULL},
    {"a space within quotes", ANY, "\"a b\"", NULL},
    {"a control character", ANY, "a\x01", NULL},
    {"a tab within", ANY, "a\tb", NULL},
    {"a DEL", ANY, "a\x7f", NULL},
    {"a DEL in quotes", ANY, "\"a\x7f\"", NULL},
    {"a byte over ASCII", ANY, "a\xc3\xa9", NULL},
    {"a UUID", UUID, "018f3a7e-1111-7abc-8def-0123456789ab",
     "018f3a7e-1111-7abc-8def-0123456789ab"},
    {"a UUID in upper case stays so", UUID, "018F3A7E-1111-7ABC-8DEF-0123456789AB",
     "018F3A7E-1111-7ABC-8DEF-0123456789AB"},
    {"a UUID in quotes", UUID, "\"018f3a7e-1111-7abc-8def-0123456789ab\"",
     "018f3a7e-1111-7abc-8def-0123456789ab"},
    {"a UUID without dashes", UUID, "018f3a7e11117abc8def0123456789ab", NULL},
    {"a UUID with a letter beyond f", UUID, "018f3a7e-1111-7abc-8def-0123456789ag", NULL},
    {"a UUID with a dash moved", UUID, "018f3a7-e1111-7abc-8def-0123456789ab", NULL},
    {"a UUID one short", UUID, "018f3a7e-1111-7abc-8def-0123456789a", NULL},
    {"a word for a UUID", UUID, "abc", NULL},
    {"a UUID of version 4", UUID4, "f47ac10b-58cc-4372-a567-0e02b2c3d479",
     "f47ac10b-58cc-4372-a567-0e02b2c3d479"},
    {"a UUID of version 7 for 4", UUID4, "018f3a7e-1111-7abc-8def-0123456789ab", NULL},
    {"a UUID of another variant", UUID4, "f47ac10b-58cc-4372-c567-0e02b2c3d479", NULL},
    {"a ULID", ULID, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    {"a ULID in lower case", ULID, "01arz3ndektsv4rrffq69g5fav", "01arz3ndektsv4rrffq69g5fav"},
    {"a ULID over 128 bits", ULID, "81ARZ3NDEKTSV4RRFFQ69G5FAV", NULL},
    {"a ULID with a U", ULID, "01URZ3NDEKTSV4RRFFQ69G5FAV", NULL},
    {"a ULID one short", ULID, "01ARZ3NDEKTSV4RRFFQ69G5FA", NULL},
};

static void is_read(void **state)
{
    const struct row *row = *state;
    char out[CFOIL_KEY_BYTES_MAX];
    size_t len = 0;
    bool good = cfoil_key_normalise(row->format, cfoil_bytes_text(row->value), out, &len);
    assert_int_equal(good, row->key != NULL);
    if (row->key != NULL) {
        assert_int_equal(len, strlen(row->key));
        assert_memory_equal(out, row->key, len);
    }
}

/* A key of `count` letters, bare or in quotes; whether it is one. */
static bool is_key_of(size_t count, bool quoted)
{
    char value[300];
    char out[CFOIL_KEY_BYTES_MAX];
    size_t len = 0;
    memset(value, 'k', sizeof(value));
    value[0] = quoted ? '"' : 'k';
    value[count + 1] = '"';
    struct cfoil_bytes view = cfoil_bytes_of(value, quoted ? count + 2 : count);
    bool good = cfoil_key_normalise(ANY, view, out, &len);
    assert_true(!good || len == count);
    return good;
}

static void a_key_has_at_most_255_characters(void **state)
{
    (void)state;
    assert_true(is_key_of(255, false));
    assert_false(is_key_of(256, false));
    assert_true(is_key_of(255, true));
    assert_false(is_key_of(256, true));
}

static void a_nul_is_no_part_of_a_key(void **state)
{
    (void)state;
    char out[CFOIL_KEY_BYTES_MAX];
    size_t len;
    assert_false(cfoil_key_normalise(ANY, cfoil_bytes_of("a\0b", 3), out, &len));
    assert_false(cfoil_key_normalise(ANY, cfoil_bytes_of("\"a\0\"", 4), out, &len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_at_most_255_characters),
        cmocka_unit_test(a_nul_is_no_part_of_a_key),
    };
    const struct row_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]), is_read};
    return run_rows("policy/key", &table, tests, sizeof(tests) / sizeof(tests[0]));
}
