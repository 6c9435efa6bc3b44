/* SPDX-License-Identifier: Apache-2.0 */
/* `semantics: window` and `window`: how they are read, and what does not go together. */
#include "support.h"

#include <stdio.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)

struct row {
    const char *name;
    const char *text; /* what follows the version */
    unsigned line;
    unsigned column;
    const char *what;
    const char *other_line; /* the second line the message names, or "" */
};

static const struct row rows[] = {
    {"a ttl beside a window",
     "routes:\n  - match: POST /x\n    semantics: window\n    retention: {ttl: 1h}\n", 5, 17,
     "retention.ttl (line 5)", "(line 4)"},
    {"a tombstone beside a window",
     "routes:\n  - match: POST /x\n    retention: {tombstone: 7d}\n    semantics: window\n", 4, 17,
     "retention.tombstone (line 4)", "(line 5)"},
    {"a retry window beside a window",
     "routes:\n  - match: POST /x\n    retention: {retry_window: 1h}\n    semantics: window\n", 4,
     17, "retention.retry_window (line 4)", "(line 5)"},
    {"a time for failures beside a window",
     "routes:\n  - match: POST /x\n    retention: {failed: 1m}\n    semantics: window\n", 4, 17,
     "retention.failed (line 4)", "(line 5)"},
    {"a ttl under the window of defaults",
     "defaults: {semantics: window}\nroutes:\n  - match: POST /x\n    retention: {ttl: 1h}\n", 5,
     17, "retention.ttl (line 5)", "(line 2)"},
    {"a ttl beside the window, both in defaults",
     "defaults:\n  semantics: window\n  retention: {ttl: 1h}\nroutes:\n  - match: POST /x\n", 4, 15,
     "retention.ttl (line 4)", "(line 3)"},
    {"a window alone", "routes:\n  - match: POST /x\n    window: 10m\n", 4, 5, "window (line 4)",
     "add that"},
    {"a window under strict",
     "routes:\n  - match: POST /x\n    semantics: strict\n    window: {length: 10m}\n", 5, 5,
     "window (line 5)", "`semantics: strict` (line 4)"},
    {"a window under the loose of defaults",
     "defaults: {semantics: loose}\nroutes:\n  - match: POST /x\n    window: 10m\n", 5, 5,
     "window (line 5)", "`semantics: loose` (line 2)"},
    {"a window and strict, both in defaults",
     "defaults:\n  semantics: strict\n  window: 10m\nroutes:\n  - match: POST /x\n", 4, 3,
     "window (line 4)", "(line 3)"},
    {"a length of nothing", "routes:\n  - match: POST /x\n    semantics: window\n    window: 0\n",
     5, 13, "window", ""},
    {"a length over the limit",
     "routes:\n  - match: POST /x\n    semantics: window\n    window: {length: 3651d}\n", 5, 22,
     "window.length", ""},
    {"an anchor misspelt",
     "routes:\n  - match: POST /x\n    semantics: window\n    window: {anchor: frist}\n", 5, 22,
     "`first`", ""},
    {"a comparison misspelt",
     "routes:\n  - match: POST /x\n    semantics: window\n    window: {compare: keys}\n", 5, 23,
     "`key`", ""},
};

static void is_refused(void **state)
{
    const struct row *row = *state;
    char text[512];
    (void)snprintf(text, sizeof(text), "version: 1\n%s", row->text);
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    assert_int_equal(cfoil_policy_load_text(cfoil_bytes_text(text), &policy, problems),
                     CFOIL_E_POLICY);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->item[0].line, row->line);
    assert_int_equal(problems->item[0].column, row->column);
    assert_non_null(strstr(problems->item[0].text, row->what));
    assert_non_null(strstr(problems->item[0].text, row->other_line));
    test_free(problems);
}

static void expect(const char *fields, int64_t length_ms, enum cfoil_anchor anchor,
                   enum cfoil_semantics semantics)
{
    struct cfoil_policy *policy = load_route("", fields);
    const struct cfoil_terms *terms = &only_route(policy)->terms;
    assert_int_equal(terms->window_ms, length_ms);
    assert_int_equal(terms->window_anchor, anchor);
    assert_int_equal(terms->semantics, semantics);
    cfoil_policy_free(policy);
}

static void windows_in_every_shape(void **state)
{
    (void)state;
    expect("    semantics: window\n", 10 * MINUTE, CFOIL_ANCHOR_FIRST, CFOIL_SEMANTICS_WINDOW);
    expect("    semantics: window\n    window: 5s\n", 5 * SECOND, CFOIL_ANCHOR_FIRST,
           CFOIL_SEMANTICS_WINDOW);
    expect("    semantics: window\n    window: {anchor: clock}\n", 10 * MINUTE, CFOIL_ANCHOR_CLOCK,
           CFOIL_SEMANTICS_WINDOW);
    expect("    semantics: window\n    window: {length: 1ms, anchor: first, compare: body}\n", 1,
           CFOIL_ANCHOR_FIRST, CFOIL_SEMANTICS_WINDOW);
    expect("    semantics: window\n    window: {length: 3650d, compare: key}\n",
           3650 * 24 * 60 * MINUTE, CFOIL_ANCHOR_FIRST, CFOIL_SEMANTICS_WINDOW_KEY);
    expect("    profile: payment\n    semantics: window\n", 10 * MINUTE, CFOIL_ANCHOR_FIRST,
           CFOIL_SEMANTICS_WINDOW);
}

static void a_window_may_be_shorter_than_the_lease(void **state)
{
    (void)state;
    expect("    semantics: window\n    window: 1s\n    lease: 15s\n", SECOND, CFOIL_ANCHOR_FIRST,
           CFOIL_SEMANTICS_WINDOW);
}

static void defaults_hold_a_window_for_those_who_ask(void **state)
{
    (void)state;
    struct cfoil_policy *policy =
        load_good("version: 1\n"
                  "defaults: {window: {length: 1m, anchor: clock}, retention: {ttl: 1h}}\n"
                  "routes:\n"
                  "  - {match: POST /strict}\n"
                  "  - {match: POST /own, semantics: window, window: {length: 2m}}\n"
                  "  - {match: POST /theirs, semantics: window}\n");
    assert_int_equal(cfoil_policy_route(policy, 0)->terms.semantics, CFOIL_SEMANTICS_STRICT);
    assert_int_equal(cfoil_policy_route(policy, 0)->terms.ttl_ms, 60 * MINUTE);
    assert_int_equal(cfoil_policy_route(policy, 1)->terms.window_ms, 2 * MINUTE);
    assert_int_equal(cfoil_policy_route(policy, 1)->terms.window_anchor, CFOIL_ANCHOR_CLOCK);
    assert_int_equal(cfoil_policy_route(policy, 2)->terms.window_ms, MINUTE);
    cfoil_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_in_every_shape),
        cmocka_unit_test(a_window_may_be_shorter_than_the_lease),
        cmocka_unit_test(defaults_hold_a_window_for_those_who_ask),
    };
    const struct row_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]),
                                    is_refused};
    return run_rows("policy/window", &table, tests, sizeof(tests) / sizeof(tests[0]));
}
