/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three digests of a request: which part of it each covers, and that neither the cut of the
 * body nor what was fingerprinted before changes them.
 */
#include "support.h"

#include <stdlib.h>

enum { REQUEST = 1, RAW = 2, TARGET = 4 };

static struct cfoil_rules *plain;

static int set_up(void **state)
{
    (void)state;
    plain = rules_of(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cfoil_rules_free(plain);
    return 0;
}

/* Which digests differ, as a set of the bits above. */
static int differing(const struct cfoil_fingerprint *a, const struct cfoil_fingerprint *b)
{
    return (same_digest(a->request_hash, b->request_hash) ? 0 : REQUEST) |
           (same_digest(a->raw_hash, b->raw_hash) ? 0 : RAW) |
           (same_digest(a->target_hash, b->target_hash) ? 0 : TARGET);
}

static struct cfoil_request_view request(const char *method, const char *path, const char *query)
{
    return (struct cfoil_request_view){
        .method = cfoil_bytes_text(method),
        .path = cfoil_bytes_text(path),
        .query = cfoil_bytes_text(query),
    };
}

static int compare_requests(const struct cfoil_rules *rules, struct cfoil_request_view a,
                            struct cfoil_request_view b)
{
    struct cfoil_fingerprint first = fingerprint_request(rules, &a, "body", 4, SIZE_MAX);
    struct cfoil_fingerprint second = fingerprint_request(rules, &b, "body", 4, SIZE_MAX);
    return differing(&first, &second);
}

static void one_request_always_has_one_fingerprint(void **state)
{
    (void)state;
    assert_int_equal(
        compare_requests(plain, request("POST", "/a", "q=1"), request("POST", "/a", "q=1")), 0);
}

static void method_and_path_change_all_three(void **state)
{
    (void)state;
    const int all = REQUEST | RAW | TARGET;
    assert_int_equal(
        compare_requests(plain, request("POST", "/a", NULL), request("PUT", "/a", NULL)), all);
    assert_int_equal(
        compare_requests(plain, request("POST", "/a", NULL), request("POST", "/b", NULL)), all);
    assert_int_equal(
        compare_requests(plain, request("POST", "/a", NULL), request("POST", "/A", NULL)), all);
}

static void parts_cannot_be_moved_into_each_other(void **state)
{
    (void)state;
    const int all = REQUEST | RAW | TARGET;
    assert_int_equal(
        compare_requests(plain, request("POST", "/a", NULL), request("POS", "T/a", NULL)), all);
    assert_int_equal(
        compare_requests(plain, request("POST", "/ab", "c"), request("POST", "/a", "bc")), all);
    struct cfoil_request_view a = request("POST", "/a", "q");
    struct cfoil_fingerprint first = fingerprint_request(plain, &a, "xbody", 5, SIZE_MAX);
    struct cfoil_request_view b = request("POST", "/a", "qx");
    struct cfoil_fingerprint second = fingerprint_request(plain, &b, "body", 4, SIZE_MAX);
    assert_int_equal(differing(&first, &second), REQUEST | RAW);
}

static void the_query_counts_byte_by_byte(void **state)
{
    (void)state;
    assert_int_equal(
        compare_requests(plain, request("POST", "/a", "a=1&b=2"), request("POST", "/a", "b=2&a=1")),
        REQUEST | RAW);
    assert_int_equal(
        compare_requests(plain, request("POST", "/a", "a=%41"), request("POST", "/a", "a=A")),
        REQUEST | RAW);
    assert_int_equal(
        compare_requests(plain, request("POST", "/a", NULL), request("POST", "/a", "")),
        REQUEST | RAW);
}

static void without_the_query_rule_only_the_raw_digest_sees_it(void **state)
{
    (void)state;
    const struct cfoil_rules_source source = {.query = false};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    assert_int_equal(
        compare_requests(rules, request("POST", "/a", "a=1"), request("POST", "/a", "a=2")), RAW);
    cfoil_rules_free(rules);
}

static struct cfoil_rules *two_headers(void)
{
    static const char *const names[] = {"X-B", "X-A"};
    const struct cfoil_rules_source source = {.headers = names, .header_count = 2};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    return rules;
}

static int compare_headers(const char *a0, const char *a1, const char *b0, const char *b1)
{
    struct cfoil_rules *rules = two_headers();
    const struct cfoil_bytes a[] = {cfoil_bytes_text(a0), cfoil_bytes_text(a1)};
    const struct cfoil_bytes b[] = {cfoil_bytes_text(b0), cfoil_bytes_text(b1)};
    struct cfoil_request_view first = request("POST", "/a", NULL);
    struct cfoil_request_view second = first;
    first.header_values = a;
    second.header_values = b;
    int bits = compare_requests(rules, first, second);
    cfoil_rules_free(rules);
    return bits;
}

static void wanted_headers_count_in_the_request_digest_only(void **state)
{
    (void)state;
    assert_int_equal(compare_headers("EUR", "1", "EUR", "1"), 0);
    assert_int_equal(compare_headers("EUR", "1", "USD", "1"), REQUEST);
    assert_int_equal(compare_headers("EUR", "1", "1", "EUR"), REQUEST);
    assert_int_equal(compare_headers("EUR", "1", "eur", "1"), REQUEST);
    assert_int_equal(compare_headers("EU", "R1", "EUR", "1"), REQUEST);
}

static void an_absent_header_is_not_an_empty_one(void **state)
{
    (void)state;
    assert_int_equal(compare_headers(NULL, "1", "", "1"), REQUEST);
    assert_int_equal(compare_headers(NULL, NULL, "", ""), REQUEST);
    assert_int_equal(compare_headers(NULL, "1", "1", NULL), REQUEST);
    assert_int_equal(compare_headers(NULL, "1", NULL, "1"), 0);
}

static int compare_bodies(const char *type, const void *a, size_t a_bytes, const void *b,
                          size_t b_bytes)
{
    struct cfoil_fingerprint first = fingerprint_of(plain, type, a, a_bytes, SIZE_MAX);
    struct cfoil_fingerprint second = fingerprint_of(plain, type, b, b_bytes, SIZE_MAX);
    return differing(&first, &second);
}

static void every_byte_of_a_raw_body_counts(void **state)
{
    (void)state;
    assert_int_equal(compare_bodies("text/plain", "abc", 3, "abc", 3), 0);
    assert_int_equal(compare_bodies("text/plain", "abc", 3, "abd", 3), REQUEST | RAW);
    assert_int_equal(compare_bodies("text/plain", "abc", 3, "abc\0", 4), REQUEST | RAW);
    assert_int_equal(compare_bodies("text/plain", "", 0, " ", 1), REQUEST | RAW);
    assert_int_equal(compare_bodies("text/plain", "{\"a\":1}", 7, "{ \"a\":1}", 8), REQUEST | RAW);
}

static void json_respelled_changes_the_raw_digest_only(void **state)
{
    (void)state;
    assert_int_equal(compare_bodies("application/json", "{\"a\":1}", 7, "{ \"a\":1}", 8), RAW);
    assert_int_equal(compare_bodies("application/json", "{\"a\":1}", 7, "{\"a\":2}", 7),
                     REQUEST | RAW);
}

static void json_is_known_by_its_type(void **state)
{
    (void)state;
    static const char *const json[] = {
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json ;a=b",
        " application/json\t",
        "application/problem+json",
        "application/vnd.a.b+JSON; v=1",
    };
    static const char *const other[] = {
        NULL,
        "",
        "text/json",
        "application/jsonp",
        "application/json-seq",
        "application/xml",
        "json",
        "+json",
        "application/json+xml",
        "text/plain; x=application/json",
        "application/x-www-form-urlencoded",
        "application/json, text/plain",
        "application/jso",
    };
    for (size_t i = 0; i < sizeof(json) / sizeof(json[0]); i++) {
        assert_int_equal(compare_bodies(json[i], "[1]", 3, "[1.0]", 5), RAW);
    }
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        assert_int_equal(compare_bodies(other[i], "[1]", 3, "[1.0]", 5), REQUEST | RAW);
    }
}

static void the_cut_of_the_body_does_not_matter(void **state)
{
    (void)state;
    static const char json[] = " {\"b\":[1.50,\"\\u00e9\xC3\xA9\\ud83d\\ude00\"],\"a\":-0} ";
    static const char broken[] = "{\"a\":\"\xC3\xA9\",\"a\":2}";
    for (size_t piece = 1; piece < sizeof(json); piece++) {
        struct cfoil_fingerprint whole =
            fingerprint_of(plain, "application/json", json, sizeof(json) - 1, SIZE_MAX);
        struct cfoil_fingerprint cut =
            fingerprint_of(plain, "application/json", json, sizeof(json) - 1, piece);
        assert_int_equal(differing(&whole, &cut), 0);
        whole = fingerprint_of(plain, "application/json", broken, sizeof(broken) - 1, SIZE_MAX);
        cut = fingerprint_of(plain, "application/json", broken, sizeof(broken) - 1, piece);
        assert_int_equal(differing(&whole, &cut), 0);
    }
}

static void one_fingerprinter_serves_many_requests(void **state)
{
    (void)state;
    static const char *const bodies[] = {"{\"a\":\"\\n\",\"b\":1e5}", "[", "\"\\ud800\"", "",
                                         "[1,2,{\"x\":[{}]}]"};
    const struct cfoil_request_view post = {.method = cfoil_bytes_text("POST"),
                                            .path = cfoil_bytes_text("/orders"),
                                            .content_type = cfoil_bytes_text("application/json")};
    struct cfoil_fingerprinter *fingerprinter = NULL;
    assert_int_equal(cfoil_fingerprinter_create(&fingerprinter), CFOIL_OK);
    for (int round = 0; round < 50; round++) {
        const char *body = bodies[round * 3 % 5];
        struct cfoil_fingerprint fresh =
            fingerprint_of(plain, "application/json", body, strlen(body), SIZE_MAX);
        struct cfoil_fingerprint print;
        const char *reason = NULL;
        cfoil_fingerprint_begin(fingerprinter, plain, &post);
        cfoil_fingerprint_body(fingerprinter, "abandoned", 9);
        cfoil_fingerprint_begin(fingerprinter, plain, &post);
        cfoil_fingerprint_body(fingerprinter, body, strlen(body));
        assert_int_equal(cfoil_fingerprint_end(fingerprinter, &print, &reason), CFOIL_OK);
        assert_int_equal(differing(&fresh, &print), 0);
        assert_true((reason != NULL) == (round * 3 % 5 >= 1 && round * 3 % 5 <= 3));
    }
    cfoil_fingerprinter_free(fingerprinter);
}

static void no_reason_is_given_for_a_body_that_is_not_json_at_all(void **state)
{
    (void)state;
    struct cfoil_fingerprinter *fingerprinter = NULL;
    struct cfoil_fingerprint print;
    const char *reason = "unset";
    const struct cfoil_request_view post = request("POST", "/a", NULL);
    assert_int_equal(cfoil_fingerprinter_create(&fingerprinter), CFOIL_OK);
    cfoil_fingerprint_begin(fingerprinter, plain, &post);
    cfoil_fingerprint_body(fingerprinter, "{", 1);
    assert_int_equal(cfoil_fingerprint_end(fingerprinter, &print, &reason), CFOIL_OK);
    assert_null(reason);
    cfoil_fingerprinter_free(fingerprinter);
}

/* A JSON string of exactly so many bytes, quotes included, white space at the front. */
static char *json_of(size_t bytes, size_t spaces)
{
    char *json = malloc(bytes);
    assert_non_null(json);
    memset(json, ' ', spaces);
    memset(json + spaces, 'x', bytes - spaces);
    json[spaces] = '"';
    json[bytes - 1] = '"';
    return json;
}

static void json_is_canonicalised_up_to_its_limit_and_raw_over_it(void **state)
{
    (void)state;
    const size_t max = CFOIL_JSON_BYTES_MAX;
    char *at_limit = json_of(max, 0);
    char *spaced = json_of(max, 1);
    char *shorter = json_of(max - 1, 0);
    assert_int_equal(compare_bodies("application/json", spaced, max, shorter, max - 1), RAW);
    assert_int_equal(compare_bodies("application/json", spaced, max, at_limit, max), REQUEST | RAW);
    char *over = json_of(max + 1, 1);
    assert_int_equal(compare_bodies("application/json", over, max + 1, at_limit, max),
                     REQUEST | RAW);
    struct cfoil_fingerprint whole =
        fingerprint_of(plain, "application/json", over, max + 1, SIZE_MAX);
    struct cfoil_fingerprint cut = fingerprint_of(plain, "application/json", over, max + 1, 65536);
    assert_int_equal(differing(&whole, &cut), 0);
    free(over);
    free(shorter);
    free(spaced);
    free(at_limit);
}

/* Appends one framed part: tag, length in eight bytes, bytes. */
static size_t put_part(uint8_t *out, uint8_t tag, const void *part, size_t bytes)
{
    memset(out, 0, 9);
    out[0] = tag;
    out[7] = (uint8_t)(bytes >> 8);
    out[8] = (uint8_t)bytes;
    memcpy(out + 9, part, bytes);
    return 9 + bytes;
}

/* Appends a text that goes to the end: tag, bytes. */
static size_t put_text(uint8_t *out, uint8_t tag, const char *text)
{
    out[0] = tag;
    memcpy(out + 1, text, strlen(text));
    return 1 + strlen(text);
}

static void digest_of(const void *data, size_t bytes, uint8_t digest[CFOIL_DIGEST_BYTES])
{
    struct cfoil_digester *digester = NULL;
    assert_int_equal(cfoil_digester_create(&digester), CFOIL_OK);
    cfoil_digest_begin(digester);
    cfoil_digest_update(digester, data, bytes);
    assert_int_equal(cfoil_digest_end(digester, digest), CFOIL_OK);
    cfoil_digester_free(digester);
}

/*
 * Records outlive the program that wrote them, so the frames are typed here by hand: method 16,
 * path 17, target 18, query 19, absent query 20, header name 21, absent header 23, raw body 24,
 * canonical JSON 25, the body's bytes 26, the same typed as JSON 27.
 */
static void the_frames_of_the_three_digests_do_not_change(void **state)
{
    (void)state;
    static const char *const name = "X-A";
    static const char body[] = "{ \"b\": 1.0, \"a\": [] }";
    static const char canonical[] = "{\"a\":[],\"b\":1}";
    char path[300];
    uint8_t frame[1024];
    uint8_t target[CFOIL_DIGEST_BYTES];
    uint8_t expected[CFOIL_DIGEST_BYTES];
    const struct cfoil_bytes absent = {NULL, 0};
    const struct cfoil_rules_source source = {.query = true, .headers = &name, .header_count = 1};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    memset(path, 'p', sizeof(path));
    struct cfoil_request_view view = request("POST", NULL, "q=1");
    view.path = cfoil_bytes_of(path, sizeof(path));
    view.content_type = cfoil_bytes_text("application/json");
    view.header_values = &absent;
    struct cfoil_fingerprint print =
        fingerprint_request(rules, &view, body, sizeof(body) - 1, SIZE_MAX);

    memcpy(frame, "\x01\x01", 2);
    size_t used = 2;
    used += put_part(frame + used, 16, "POST", 4);
    used += put_part(frame + used, 17, path, sizeof(path));
    digest_of(frame, used, target);
    assert_memory_equal(print.target_hash, target, sizeof(target));

    memcpy(frame, "\x03\x01", 2);
    used += put_part(frame + used, 19, "q=1", 3);
    used += put_text(frame + used, 27, body);
    digest_of(frame, used, expected);
    assert_memory_equal(print.raw_hash, expected, sizeof(expected));

    memcpy(frame, "\x02\x01", 2);
    used = 2;
    used += put_part(frame + used, 18, target, sizeof(target));
    used += put_part(frame + used, 19, "q=1", 3);
    used += put_part(frame + used, 21, "x-a", 3);
    used += put_part(frame + used, 23, "", 0);
    used += put_text(frame + used, 25, canonical);
    digest_of(frame, used, expected);
    assert_memory_equal(print.request_hash, expected, sizeof(expected));
    cfoil_rules_free(rules);
}

/* What stands for a body that is not canonical: the raw digest, or its own where no query counts. */
static void the_frames_of_a_raw_body_do_not_change(void **state)
{
    (void)state;
    static const char body[] = "a=1&b=2";
    uint8_t frame[1024];
    uint8_t target[CFOIL_DIGEST_BYTES];
    uint8_t raw[CFOIL_DIGEST_BYTES];
    uint8_t bytes[CFOIL_DIGEST_BYTES];
    uint8_t expected[CFOIL_DIGEST_BYTES];
    struct cfoil_request_view view = request("PUT", "/p", NULL);
    struct cfoil_fingerprint print =
        fingerprint_request(plain, &view, body, sizeof(body) - 1, SIZE_MAX);

    memcpy(frame, "\x01\x01", 2);
    size_t used = 2;
    used += put_part(frame + used, 16, "PUT", 3);
    used += put_part(frame + used, 17, "/p", 2);
    digest_of(frame, used, target);
    memcpy(frame, "\x03\x01", 2);
    used += put_part(frame + used, 20, "", 0);
    used += put_text(frame + used, 26, body);
    digest_of(frame, used, raw);
    assert_memory_equal(print.raw_hash, raw, sizeof(raw));

    memcpy(frame, "\x02\x01", 2);
    used = 2;
    used += put_part(frame + used, 18, target, sizeof(target));
    size_t before_query = used;
    used += put_part(frame + used, 20, "", 0);
    used += put_part(frame + used, 24, raw, sizeof(raw));
    digest_of(frame, used, expected);
    assert_memory_equal(print.request_hash, expected, sizeof(expected));

    const struct cfoil_rules_source source = {.query = false};
    struct cfoil_rules *rules = NULL;
    assert_int_equal(cfoil_rules_create(&source, &rules, NULL, 0), CFOIL_OK);
    print = fingerprint_request(rules, &view, body, sizeof(body) - 1, 2);
    digest_of(body, sizeof(body) - 1, bytes);
    used = before_query + put_part(frame + before_query, 24, bytes, sizeof(bytes));
    digest_of(frame, used, expected);
    assert_memory_equal(print.request_hash, expected, sizeof(expected));
    assert_memory_equal(print.raw_hash, raw, sizeof(raw));
    cfoil_rules_free(rules);
}

/* What lets a replay do without a canonical form: one raw digest, one request digest. */
static void equal_raw_digests_mean_equal_request_digests(void **state)
{
    (void)state;
    static const char *const types[] = {"application/json", "text/plain", "application/x+json"};
    static const char *const bodies[] = {"{\"a\":1}", "{\"a\": 1}", "{\"a\":", "", "1", "1.0"};
    struct cfoil_fingerprint seen[3 * 6];
    size_t count = 0;

    for (size_t t = 0; t < 3; t++) {
        for (size_t b = 0; b < 6; b++) {
            seen[count++] = fingerprint_of(plain, types[t], bodies[b], strlen(bodies[b]), SIZE_MAX);
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (memcmp(seen[i].raw_hash, seen[j].raw_hash, CFOIL_DIGEST_BYTES) == 0) {
                assert_int_equal(differing(&seen[i], &seen[j]), 0);
                assert_int_equal(i % 6, j % 6);
            }
        }
    }
    /* The two JSON types are one, and nothing else is. */
    assert_int_equal(differing(&seen[0], &seen[12]), 0);
    assert_true((differing(&seen[0], &seen[6]) & RAW) != 0);
}

static void the_first_half_of_an_end_is_the_rule_free_digest(void **state)
{
    (void)state;
    static const char body[] = "{\"a\":1}";
    struct cfoil_fingerprinter *fingerprinter = NULL;
    struct cfoil_fingerprint halves;
    struct cfoil_request_view view = request("POST", "/p", NULL);
    view.content_type = cfoil_bytes_text("application/json");
    struct cfoil_fingerprint whole =
        fingerprint_request(plain, &view, body, sizeof(body) - 1, SIZE_MAX);

    memset(&halves, 0, sizeof(halves));
    assert_int_equal(cfoil_fingerprinter_create(&fingerprinter), CFOIL_OK);
    cfoil_fingerprint_begin(fingerprinter, plain, &view);
    cfoil_fingerprint_body(fingerprinter, body, sizeof(body) - 1);
    assert_int_equal(cfoil_fingerprint_raw(fingerprinter, &halves), CFOIL_OK);
    assert_int_equal(halves.rules, whole.rules);
    assert_memory_equal(halves.raw_hash, whole.raw_hash, CFOIL_DIGEST_BYTES);
    assert_int_equal(cfoil_fingerprint_rest(fingerprinter, &halves, NULL), CFOIL_OK);
    assert_int_equal(differing(&halves, &whole), 0);

    /* One whose second half is left out is thrown away by the next. */
    cfoil_fingerprint_begin(fingerprinter, plain, &view);
    cfoil_fingerprint_body(fingerprinter, "[2]", 3);
    assert_int_equal(cfoil_fingerprint_raw(fingerprinter, &halves), CFOIL_OK);
    cfoil_fingerprint_begin(fingerprinter, plain, &view);
    cfoil_fingerprint_body(fingerprinter, body, sizeof(body) - 1);
    assert_int_equal(cfoil_fingerprint_end(fingerprinter, &halves, NULL), CFOIL_OK);
    assert_int_equal(differing(&halves, &whole), 0);
    cfoil_fingerprinter_free(fingerprinter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_request_always_has_one_fingerprint),
        cmocka_unit_test(method_and_path_change_all_three),
        cmocka_unit_test(parts_cannot_be_moved_into_each_other),
        cmocka_unit_test(the_query_counts_byte_by_byte),
        cmocka_unit_test(without_the_query_rule_only_the_raw_digest_sees_it),
        cmocka_unit_test(wanted_headers_count_in_the_request_digest_only),
        cmocka_unit_test(an_absent_header_is_not_an_empty_one),
        cmocka_unit_test(every_byte_of_a_raw_body_counts),
        cmocka_unit_test(json_respelled_changes_the_raw_digest_only),
        cmocka_unit_test(json_is_known_by_its_type),
        cmocka_unit_test(the_cut_of_the_body_does_not_matter),
        cmocka_unit_test(one_fingerprinter_serves_many_requests),
        cmocka_unit_test(no_reason_is_given_for_a_body_that_is_not_json_at_all),
        cmocka_unit_test(the_frames_of_the_three_digests_do_not_change),
        cmocka_unit_test(the_frames_of_a_raw_body_do_not_change),
        cmocka_unit_test(equal_raw_digests_mean_equal_request_digests),
        cmocka_unit_test(the_first_half_of_an_end_is_the_rule_free_digest),
        cmocka_unit_test(json_is_canonicalised_up_to_its_limit_and_raw_over_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
