/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which route a request belongs to and what its endpoint is called: the first route in the file's
 * order, whatever the index does. Random policies are compared with a plain loop written here.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char sample[] = "version: 1\n"
                             "routes:\n"
                             "  - {name: pay, match: \"POST /orders/{id}/pay\"}\n"
                             "  - {name: special, match: POST /orders/special}\n"
                             "  - {name: order, match: [\"POST|PUT /orders/{id}\", PATCH /o]}\n"
                             "  - {name: rest, match: \"POST /files/**\"}\n"
                             "  - {name: shadowed, match: POST /files/a}\n"
                             "  - {name: slash, match: POST /x/}\n"
                             "  - {name: root, match: POST /}\n"
                             "  - {name: two, match: \"POST /{a}/{b}/**\"}\n";

struct row {
    const char *name;
    const char *method;
    const char *path;
    const char *route;
    const char *endpoint;
};

static const struct row rows[] = {
    {"a parameter", "POST", "/orders/17/pay", "pay", "POST /orders/{}/pay"},
    {"a literal before a parameter", "POST", "/orders/special", "special", "POST /orders/special"},
    {"a parameter alone", "POST", "/orders/17", "order", "POST /orders/{}"},
    {"the second method", "PUT", "/orders/17", "order", "PUT /orders/{}"},
    {"a literal under another method", "PUT", "/orders/special", "order", "PUT /orders/{}"},
    {"the second pattern", "PATCH", "/o", "order", "PATCH /o"},
    {"a method of no route", "DELETE", "/orders/17", "-", ""},
    {"a method in lower case", "post", "/orders/17", "-", ""},
    {"a path of no route", "POST", "/none", "-", ""},
    {"a segment too many", "PUT", "/orders/17/x", "-", ""},
    {"a parameter is not empty", "PUT", "/orders/", "-", ""},
    {"an empty segment within", "POST", "/orders//pay", "-", ""},
    {"the rest", "POST", "/files/a/b.txt", "rest", "POST /files/a/b.txt"},
    {"the rest before a later literal", "POST", "/files/a", "rest", "POST /files/a"},
    {"the rest is empty", "POST", "/files/", "rest", "POST /files/"},
    {"the rest needs its slash", "POST", "/files", "-", ""},
    {"a last slash counts", "POST", "/x/", "slash", "POST /x/"},
    {"no last slash counts", "POST", "/x", "-", ""},
    {"the root", "POST", "/", "root", "POST /"},
    {"parameters and a rest", "POST", "/a/b/c/d", "two", "POST /{}/{}/c/d"},
    {"parameters and an empty rest", "POST", "/a/b/", "two", "POST /{}/{}/"},
    {"going back from a literal", "POST", "/orders/special/pay", "pay", "POST /orders/{}/pay"},
    {"going back to the rest", "POST", "/orders/17/other", "two", "POST /{}/{}/other"},
    {"upper case is another path", "POST", "/Orders/17/pay", "two", "POST /{}/{}/pay"},
    {"no path", "POST", "", "-", ""},
    {"a star for a path", "POST", "*", "-", ""},
    {"braces from a client", "POST", "/orders/{}", "order", "POST /orders/{}"},
};

static void finds_the_route(void **state)
{
    const struct row *row = *state;
    struct cfoil_policy *policy = load_good(sample);
    char endpoint[256];
    assert_string_equal(matched(policy, row->method, row->path, endpoint), row->route);
    assert_string_equal(endpoint, row->endpoint);
    cfoil_policy_free(policy);
}

static void an_endpoint_that_does_not_fit_matches_nothing(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_good(sample);
    char endpoint[15];
    size_t len = 77;
    struct cfoil_bytes method = cfoil_bytes_text("POST");
    struct cfoil_bytes path = cfoil_bytes_text("/orders/1");
    assert_non_null(cfoil_policy_match(policy, method, path, endpoint, 15, &len));
    assert_int_equal(len, 15); /* "POST /orders/{}" */
    assert_null(cfoil_policy_match(policy, method, path, endpoint, 14, &len));
    cfoil_policy_free(policy);
}

static void routes_are_found_by_name(void **state)
{
    (void)state;
    struct cfoil_policy *policy = load_good(sample);
    assert_string_equal(cfoil_policy_route_by_name(policy, "slash")->name, "slash");
    assert_ptr_equal(cfoil_policy_route_by_name(policy, "pay"), cfoil_policy_route(policy, 0));
    assert_null(cfoil_policy_route_by_name(policy, "nobody"));
    assert_null(cfoil_policy_route(policy, 8));
    cfoil_policy_free(policy);
}

/* A plain matcher: segments one by one, "{x}" for any that is not empty, "**" for what is left. */
static bool loop_matches(const char *pattern, const char *path)
{
    for (;;) {
        if (*pattern != '/' || *path != '/') {
            return *pattern == *path;
        }
        pattern++;
        path++;
        size_t wanted = strcspn(pattern, "/");
        size_t given = strcspn(path, "/");
        if (strcmp(pattern, "**") == 0) {
            return true;
        }
        bool parameter = pattern[0] == '{';
        if (parameter ? given == 0 : wanted != given || strncmp(pattern, path, given) != 0) {
            return false;
        }
        pattern += wanted;
        path += given;
    }
}

static unsigned next_random(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245U + 12345U;
    return (*seed >> 16) % below;
}

static void random_pattern(unsigned *seed, char *out, size_t bytes)
{
    static const char *const segments[] = {"a", "b", "{p}", "{q}", "ab"};
    size_t len = 0;
    unsigned depth = 1 + next_random(seed, 4);
    bool used[2] = {false, false};
    for (unsigned i = 0; i < depth; i++) {
        unsigned pick = next_random(seed, 5);
        if (pick == 2 || pick == 3) {
            pick = used[pick - 2] ? 0 : pick;
            used[pick >= 2 ? pick - 2 : 0] |= pick >= 2;
        }
        len += (size_t)snprintf(out + len, bytes - len, "/%s", segments[pick]);
    }
    unsigned end = next_random(seed, 6);
    (void)snprintf(out + len, bytes - len, "%s", end == 0 ? "/**" : end == 1 ? "/" : "");
}

static void random_path(unsigned *seed, char *out, size_t bytes)
{
    static const char *const segments[] = {"a", "b", "ab", "c", ""};
    size_t len = 0;
    unsigned depth = 1 + next_random(seed, 5);
    for (unsigned i = 0; i < depth; i++) {
        len += (size_t)snprintf(out + len, bytes - len, "/%s", segments[next_random(seed, 5)]);
    }
}

static void the_index_agrees_with_a_plain_loop(void **state)
{
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("# seed %u\n", seed);
    for (int round = 0; round < 60; round++) {
        char patterns[40][64];
        char text[8192];
        size_t len = (size_t)snprintf(text, sizeof(text), "version: 1\nroutes:\n");
        for (int i = 0; i < 40; i++) {
            random_pattern(&seed, patterns[i], sizeof(patterns[i]));
            len += (size_t)snprintf(text + len, sizeof(text) - len, "  - {match: \"POST %s\"}\n",
                                    patterns[i]);
        }
        struct cfoil_policy *policy = load_good(text);
        for (int i = 0; i < 500; i++) {
            char path[64];
            char wanted[32] = "-";
            char endpoint[256];
            random_path(&seed, path, sizeof(path));
            for (int p = 39; p >= 0; p--) {
                if (loop_matches(patterns[p], path)) {
                    (void)snprintf(wanted, sizeof(wanted), "route-%d", p + 1);
                }
            }
            assert_string_equal(matched(policy, "POST", path, endpoint), wanted);
        }
        cfoil_policy_free(policy);
    }
}

static void ten_thousand_routes_load_and_match(void **state)
{
    (void)state;
    size_t bytes = 10000 * 64;
    char *text = malloc(bytes);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, bytes, "version: 1\nroutes:\n");
    for (int i = 0; i < 10000; i++) {
        len += (size_t)snprintf(text + len, bytes - len, "- match: POST /v1/s%d/{id}/do\n", i);
    }
    struct cfoil_policy *policy = load_good(text);
    char endpoint[256];
    assert_string_equal(matched(policy, "POST", "/v1/s9999/7/do", endpoint), "route-10000");
    assert_string_equal(endpoint, "POST /v1/s9999/{}/do");
    assert_string_equal(matched(policy, "POST", "/v1/s10000/7/do", endpoint), "-");
    cfoil_policy_free(policy);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endpoint_that_does_not_fit_matches_nothing),
        cmocka_unit_test(routes_are_found_by_name),
        cmocka_unit_test(the_index_agrees_with_a_plain_loop),
        cmocka_unit_test(ten_thousand_routes_load_and_match),
    };
    const struct row_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]),
                                    finds_the_route};
    return run_rows("policy/match", &table, tests, sizeof(tests) / sizeof(tests[0]));
}
