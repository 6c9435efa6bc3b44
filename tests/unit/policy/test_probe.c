/* SPDX-License-Identifier: Apache-2.0 */
/* The concrete path of a probe: placeholders filled and percent-encoded, or nothing at all. */
#include "support.h"

#include <stdio.h>

static const char sample[] =
    "version: 1\n"
    "routes:\n"
    "  - match: [\"POST /shops/{shop}/orders/{id}\", \"PUT /s/{shop}/o/{id}\"]\n"
    "    in_doubt: {probe: \"GET /shops/{shop}/orders/{id}/by-key/{key}.json?k={key}\"}\n";

static size_t probe(const char *method, const char *path, const char *key, char *out, size_t bytes)
{
    struct cfoil_policy *policy = load_good(sample);
    size_t len = cfoil_probe_path(only_route(policy), cfoil_bytes_text(method),
                                  cfoil_bytes_text(path), cfoil_bytes_text(key), out, bytes - 1);
    out[len] = '\0';
    cfoil_policy_free(policy);
    return len;
}

static void parameters_and_key_are_filled_in(void **state)
{
    (void)state;
    char out[256];
    assert_true(probe("POST", "/shops/a/orders/7", "k-1", out, sizeof(out)) > 0);
    assert_string_equal(out, "/shops/a/orders/7/by-key/k-1.json?k=k-1");
}

static void the_pattern_that_matched_gives_the_parameters(void **state)
{
    (void)state;
    char out[256];
    assert_true(probe("PUT", "/s/b/o/8", "k", out, sizeof(out)) > 0);
    assert_string_equal(out, "/shops/b/orders/8/by-key/k.json?k=k");
}

static void nothing_a_client_sends_can_change_the_path(void **state)
{
    (void)state;
    char out[256];
    assert_true(probe("POST", "/shops/..%2F/orders/\xe4\xb8\xad ?", "a/../b?c#d&e=\"%", out,
                      sizeof(out)) > 0);
    assert_string_equal(out,
                        "/shops/..%252F/orders/%E4%B8%AD%20%3F/by-key/"
                        "a%2F..%2Fb%3Fc%23d%26e%3D%22%25.json?k=a%2F..%2Fb%3Fc%23d%26e%3D%22%25");
}

static void expect_a(const char *match, const char *path, const char *wanted)
{
    char text[256];
    char out[64];
    (void)snprintf(text, sizeof(text),
                   "version: 1\nroutes: [{match: %s, in_doubt: {probe: \"GET /p/{a}\"}}]\n", match);
    struct cfoil_policy *policy = load_good(text);
    size_t len = cfoil_probe_path(only_route(policy), cfoil_bytes_text("POST"),
                                  cfoil_bytes_text(path), cfoil_bytes_text("k"), out, 63);
    out[len] = '\0';
    assert_string_equal(out, wanted);
    cfoil_policy_free(policy);
}

static void the_rest_of_a_pattern_needs_its_slash_here_too(void **state)
{
    (void)state;
    expect_a("[\"POST /{a}/{b}/**\", \"POST /{b}/{a}\"]", "/x/y", "/p/y");
    expect_a("[\"POST /{a}/{b}/**\", \"POST /{b}/{a}\"]", "/x/y/", "/p/x");
}

static void a_parameter_is_not_empty_here_either(void **state)
{
    (void)state;
    expect_a("[\"POST /{b}/{a}\", \"POST /{a}/\"]", "/x/", "/p/x");
}

static void what_does_not_fit_is_nothing(void **state)
{
    (void)state;
    char out[64];
    /* "/shops/a/orders/7/by-key/k.json?k=k" has 35 bytes. */
    assert_int_equal(probe("POST", "/shops/a/orders/7", "k", out, 36), 35);
    assert_int_equal(probe("POST", "/shops/a/orders/7", "k", out, 35), 0);
}

static void a_request_of_no_pattern_has_no_probe(void **state)
{
    (void)state;
    char out[256];
    assert_int_equal(probe("POST", "/other", "k", out, sizeof(out)), 0);
    assert_int_equal(probe("DELETE", "/shops/a/orders/7", "k", out, sizeof(out)), 0);
}

static void a_route_without_probe_has_none(void **state)
{
    (void)state;
    char out[64];
    struct cfoil_policy *policy = load_route("", "");
    assert_int_equal(cfoil_probe_path(only_route(policy), cfoil_bytes_text("POST"),
                                      cfoil_bytes_text("/x"), cfoil_bytes_text("k"), out,
                                      sizeof(out)),
                     0);
    cfoil_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_and_key_are_filled_in),
        cmocka_unit_test(the_pattern_that_matched_gives_the_parameters),
        cmocka_unit_test(nothing_a_client_sends_can_change_the_path),
        cmocka_unit_test(the_rest_of_a_pattern_needs_its_slash_here_too),
        cmocka_unit_test(a_parameter_is_not_empty_here_either),
        cmocka_unit_test(what_does_not_fit_is_nothing),
        cmocka_unit_test(a_request_of_no_pattern_has_no_probe),
        cmocka_unit_test(a_route_without_probe_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
