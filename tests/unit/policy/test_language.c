/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accept-Language as RFC 9110 (section 12.5.4) and RFC 4647 mean it, for a server that has English
 * and simplified Chinese: q=0 is "not acceptable", a wider range reaches what no narrower one speaks
 * of, and English is what everybody else gets.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#define ZH CFOIL_LANGUAGE_ZH_CN
#define EN CFOIL_LANGUAGE_EN

struct row {
    const char *name; /* the header's value */
    enum cfoil_language wanted;
};

static const struct row rows[] = {
    /* Nothing said, nothing usable. */
    {"", EN},
    {" ", EN},
    {",", EN},
    {";;q=,,", EN},
    {"fr", EN},
    {"fr, de;q=0.3", EN},
    {"zhongwen", EN},
    {"zho", EN},
    {"z", EN},
    {"english", EN},
    /* Every Chinese that there is rather reads zh-CN than English. */
    {"zh", ZH},
    {"ZH", ZH},
    {"zh-CN", ZH},
    {"zh-cn", ZH},
    {"zh-Hans", ZH},
    {"zh-Hans-CN", ZH},
    {"zh-TW", ZH},
    {"zh-Hant", ZH},
    {"zh-Hant-HK", ZH},
    {"zh-SG", ZH},
    {"en-GB", EN},
    /* Order counts where weights are equal, weights before order. */
    {"zh-CN, en", ZH},
    {"en, zh-CN", EN},
    {"en;q=0.5, zh-CN;q=0.5", EN},
    {"zh-CN;q=0.5, en;q=0.5", ZH},
    {"en;q=0.5, zh-CN;q=0.9", ZH},
    {"zh-CN;q=0.2, en", EN},
    {"zh-CN,zh;q=0.9,en;q=0.8", ZH},
    {"en-US,en;q=0.9,zh-CN;q=0.8,zh;q=0.7", EN},
    {"en-US,zh-CN;q=0.9,en;q=0.8", EN},
    {"zh-TW,en;q=0.9,zh-CN;q=0.3", ZH},
    {"fr, zh-CN;q=0.1", ZH},
    {"fr, en;q=0.1, zh;q=0.2", ZH},
    /* Weights have up to three decimals; more precise than that is nothing. */
    {"en;q=0.998, zh;q=0.999", ZH},
    {"en;q=0.999, zh;q=0.998", EN},
    {"en;q=0.001, zh;q=0.000", EN},
    {"zh;q=0.001", ZH},
    {"en;q=0.9, zh;q=1.000", ZH},
    {"en;q=0.9, zh;q=1.", ZH},
    {"en;q=1, zh;q=1.5", EN},
    {"en;Q=0.1, zh;Q=0.2", ZH},
    /* Blanks where the grammar has them. */
    {"en ; q=0.1 , zh ; q=0.2", ZH},
    {"\ten;\tq=0.2\t,\tzh;q=0.1", EN},
    /* What is no weight says nothing, neither for nor against. */
    {"zh-CN;q=x, en", EN},
    {"zh-CN;q=x", EN},
    {"zh-CN;q=0.5x", EN},
    {"zh-CN;q=", EN},
    {"zh-CN;level=1", EN},
    {"zh-CN;q=-1", EN},
    {"zh-CN;q=2", EN},
    {"en;q=x, zh;q=0.1", ZH},
    /* q=0 is a refusal. */
    {"zh-CN;q=0", EN},
    {"en;q=0", EN},
    {"en;q=0, zh-CN", ZH},
    {"zh-CN;q=0, en;q=0.1", EN},
    {"zh;q=0, en;q=0", EN},
    {"zh-CN;q=0, zh", EN},
    {"zh, zh-CN;q=0", EN},
    {"zh-Hans;q=0, zh;q=0.5, en;q=0.1", EN},
    {"zh;q=0, zh-CN", ZH},
    {"zh-CN, zh;q=0, en;q=0.5", ZH},
    {"zh-TW;q=0, zh", ZH},
    {"zh-TW;q=0", EN},
    {"zh-TW;q=0, zh-CN;q=0.4, en;q=0.3", ZH},
    {"en-GB;q=0, en;q=0.5, zh;q=0.4", EN},
    /* "*" stands for whatever is not named. */
    {"*", EN},
    {"*;q=0", EN},
    {"*;q=0, zh", ZH},
    {"zh;q=0.5, *;q=0", ZH},
    {"*, zh", ZH},
    {"*, en", EN},
    {"zh;q=0.5, *", EN},
    {"zh;q=0.5, *;q=0.4", ZH},
    {"en;q=0.5, *", ZH},
    {"en;q=0.5, *;q=0.5", EN},
    {"en;q=0, *", ZH},
    {"en;q=0, *;q=0.1", ZH},
    {"zh;q=0, *", EN},
    {"fr, en;q=0.5, *;q=0.1", EN},
    {"*;q=0.9, en;q=0.5, *;q=0.1", ZH},
};

static void is_answered(void **state)
{
    const struct row *row = *state;
    assert_int_equal(cfoil_language_wanted(cfoil_bytes_text(row->name)), row->wanted);
}

static void no_header_is_english(void **state)
{
    (void)state;
    assert_int_equal(cfoil_language_wanted(cfoil_bytes_of(NULL, 0)), EN);
}

/* Not one byte past the end is read, whatever the value ends with (seen under AddressSanitizer). */
static void every_beginning_of_a_value_can_be_read(void **state)
{
    (void)state;
    static const char value[] = "zh-Hans-CN;q=0.85 , en ;q=1.000,*; q=0,zh-TW;q=";
    for (size_t len = 0; len < sizeof(value); len++) {
        uint8_t *copy = malloc(len + (len == 0));
        assert_non_null(copy);
        memcpy(copy, value, len);
        (void)cfoil_language_wanted(cfoil_bytes_of(copy, len));
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_header_is_english),
        cmocka_unit_test(every_beginning_of_a_value_can_be_read),
    };
    const struct row_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]),
                                    is_answered};
    return run_rows("policy/language", &table, tests, sizeof(tests) / sizeof(tests[0]));
}
