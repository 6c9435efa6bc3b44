/* SPDX-License-Identifier: Apache-2.0 */
/* Several problems at once, limits of the list, and files that cannot be read or are too long. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct cfoil_policy_problems *load_bad(const char *text, enum cfoil_error wanted)
{
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    assert_int_equal(cfoil_policy_load_text(cfoil_bytes_text(text), &policy, problems), wanted);
    assert_null(policy);
    return problems;
}

static void all_problems_are_found_in_the_files_order(void **state)
{
    (void)state;
    struct cfoil_policy_problems *problems = load_bad("version: 2\n"
                                                      "routes:\n"
                                                      "  - match: POST /x\n"
                                                      "    retention: {ttl: 24}\n"
                                                      "    semnatics: strict\n"
                                                      "  - match: post /y\n"
                                                      "    lease: [1s]\n",
                                                      CFOIL_E_POLICY);
    const unsigned places[][2] = {{1, 10}, {4, 22}, {5, 5}, {6, 12}, {7, 12}};
    assert_int_equal(problems->count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(problems->item[i].line, places[i][0]);
        assert_int_equal(problems->item[i].column, places[i][1]);
    }
    test_free(problems);
}

static void a_faulty_route_does_not_hide_contradictions_in_others(void **state)
{
    (void)state;
    struct cfoil_policy_problems *problems = load_bad("version: 1\n"
                                                      "routes:\n"
                                                      "  - {match: POST /y, lease: 2s, "
                                                      "retention: {ttl: 1s}}\n"
                                                      "  - {match: POST /x, lese: 5s}\n",
                                                      CFOIL_E_POLICY);
    assert_int_equal(problems->count, 2);
    assert_int_equal(problems->item[0].line, 3);
    assert_int_equal(problems->item[0].column, 29);
    assert_int_equal(problems->item[1].line, 4);
    test_free(problems);
}

static void what_defaults_get_wrong_is_said_once(void **state)
{
    (void)state;
    struct cfoil_policy_problems *problems = load_bad("version: 1\n"
                                                      "defaults: {retention: {ttl: 1s}}\n"
                                                      "routes:\n"
                                                      "  - {match: POST /x}\n"
                                                      "  - {match: POST /y}\n",
                                                      CFOIL_E_POLICY);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->item[0].line, 2);
    assert_int_equal(problems->item[0].column, 23);
    test_free(problems);
}

static void more_problems_than_the_list_holds_are_cut_off(void **state)
{
    (void)state;
    char text[8192];
    size_t len = (size_t)snprintf(text, sizeof(text), "version: 1\nroutes:\n");
    for (int i = 0; i < 80; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "  - {match: post /%d, in_doubt: {probe: \"GET /{key}\"}}\n", i);
    }
    struct cfoil_policy_problems *problems = load_bad(text, CFOIL_E_POLICY);
    assert_int_equal(problems->count, CFOIL_POLICY_PROBLEMS_MAX);
    assert_int_equal(problems->item[49].line, 52);
    test_free(problems);
}

static void a_text_over_the_limit_is_refused_unread(void **state)
{
    (void)state;
    char *text = malloc(CFOIL_POLICY_BYTES_MAX + 2);
    assert_non_null(text);
    memset(text, '#', CFOIL_POLICY_BYTES_MAX + 1);
    text[CFOIL_POLICY_BYTES_MAX + 1] = '\0';
    struct cfoil_policy_problems *problems = load_bad(text, CFOIL_E_LIMIT);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->item[0].line, 0);
    assert_non_null(strstr(problems->item[0].text, "4194304 bytes"));
    test_free(problems);
    free(text);
}

static void more_routes_than_the_limit_are_refused(void **state)
{
    (void)state;
    size_t bytes = (CFOIL_POLICY_ROUTES_MAX + 1) * 24 + 64;
    char *text = malloc(bytes);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, bytes, "version: 1\nroutes:\n");
    for (size_t i = 0; i <= CFOIL_POLICY_ROUTES_MAX; i++) {
        len += (size_t)snprintf(text + len, bytes - len, "- match: POST /%zu\n", i);
    }
    struct cfoil_policy_problems *problems = load_bad(text, CFOIL_E_POLICY);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->item[0].line, 3);
    assert_non_null(strstr(problems->item[0].text, "10001"));
    test_free(problems);
    free(text);
}

static void a_missing_file_is_named_as_such(void **state)
{
    (void)state;
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    assert_int_equal(cfoil_policy_load("/nonexistent/policy.yaml", &policy, problems),
                     CFOIL_E_SYSTEM);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->item[0].line, 0);
    assert_non_null(strstr(problems->item[0].text, "No such file"));
    test_free(problems);
}

static void a_directory_is_no_policy(void **state)
{
    (void)state;
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    assert_int_equal(cfoil_policy_load("/", &policy, problems), CFOIL_E_SYSTEM);
    assert_non_null(strstr(problems->item[0].text, "Is a directory"));
    test_free(problems);
}

static void a_file_is_loaded_like_its_text(void **state)
{
    (void)state;
    char path[] = "/tmp/cfoil-policy-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    size_t len = strlen(cfoil_policy_default_text);
    assert_int_equal(write(descriptor, cfoil_policy_default_text, len), len);
    assert_int_equal(close(descriptor), 0);

    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    enum cfoil_error error = cfoil_policy_load(path, &policy, problems);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(error, CFOIL_OK);
    assert_string_equal(only_route(policy)->name, "default");
    cfoil_policy_free(policy);
    test_free(problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_problems_are_found_in_the_files_order),
        cmocka_unit_test(a_faulty_route_does_not_hide_contradictions_in_others),
        cmocka_unit_test(what_defaults_get_wrong_is_said_once),
        cmocka_unit_test(more_problems_than_the_list_holds_are_cut_off),
        cmocka_unit_test(a_text_over_the_limit_is_refused_unread),
        cmocka_unit_test(more_routes_than_the_limit_are_refused),
        cmocka_unit_test(a_missing_file_is_named_as_such),
        cmocka_unit_test(a_directory_is_no_policy),
        cmocka_unit_test(a_file_is_loaded_like_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
