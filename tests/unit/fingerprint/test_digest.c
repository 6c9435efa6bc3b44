/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests, hex, randomness and record ids. Expected digests are those of FIPS 180-4's examples and
 * RFC 4231; ids are held against a SHA-256 over a frame typed by hand from core/scope.h.
 */
#include "support.h"

#include "fingerprint/digest.h"

static struct cfoil_digester *digester_new(void)
{
    struct cfoil_digester *digester = NULL;
    assert_int_equal(cfoil_digester_create(&digester), CFOIL_OK);
    return digester;
}

static void assert_hex(const uint8_t digest[CFOIL_DIGEST_BYTES], const char *expected)
{
    char text[2 * CFOIL_DIGEST_BYTES + 1];
    cfoil_hex(digest, CFOIL_DIGEST_BYTES, text);
    assert_string_equal(text, expected);
}

static void sha256_gives_the_published_digests(void **state)
{
    (void)state;
    uint8_t digest[CFOIL_DIGEST_BYTES];
    struct cfoil_digester *digester = digester_new();
    cfoil_digest_begin(digester);
    cfoil_digest_update(digester, "abc", 3);
    assert_int_equal(cfoil_digest_end(digester, digest), CFOIL_OK);
    assert_hex(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

    cfoil_digest_begin(digester);
    cfoil_digest_update(digester, NULL, 0);
    assert_int_equal(cfoil_digest_end(digester, digest), CFOIL_OK);
    assert_hex(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    cfoil_digester_free(digester);
}

static void a_begin_throws_away_an_unfinished_digest(void **state)
{
    (void)state;
    uint8_t digest[CFOIL_DIGEST_BYTES];
    struct cfoil_digester *digester = digester_new();
    cfoil_digest_begin(digester);
    cfoil_digest_update(digester, "somebody else's bytes", 21);
    cfoil_digest_begin(digester);
    cfoil_digest_update(digester, "a", 1);
    cfoil_digest_update(digester, "bc", 2);
    assert_int_equal(cfoil_digest_end(digester, digest), CFOIL_OK);
    assert_hex(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    cfoil_digester_free(digester);
}

static void an_end_without_a_begin_gives_no_digest(void **state)
{
    (void)state;
    uint8_t digest[CFOIL_DIGEST_BYTES];
    struct cfoil_digester *digester = digester_new();
    assert_int_equal(cfoil_digest_end(digester, digest), CFOIL_E_SYSTEM);
    cfoil_digest_begin(digester);
    assert_int_equal(cfoil_digest_end(digester, digest), CFOIL_OK);
    assert_int_equal(cfoil_digest_end(digester, digest), CFOIL_E_SYSTEM);
    cfoil_digester_free(digester);
}

static struct cfoil_hmac_key *hmac_key_of(struct cfoil_bytes secret)
{
    struct cfoil_hmac_key *key = NULL;
    assert_int_equal(cfoil_hmac_key_create(secret, &key), CFOIL_OK);
    return key;
}

static void hmac_gives_the_published_codes(void **state)
{
    (void)state;
    uint8_t code[CFOIL_DIGEST_BYTES];
    uint8_t long_key[131];
    memset(long_key, 0xaa, sizeof(long_key));
    struct cfoil_hmac_key *jefe = hmac_key_of(cfoil_bytes_text("Jefe"));
    struct cfoil_hmac_key *large = hmac_key_of(cfoil_bytes_of(long_key, sizeof(long_key)));
    for (int i = 0; i < 2; i++) { /* the second time with a context that was used before */
        assert_int_equal(cfoil_hmac(jefe, cfoil_bytes_text("what do ya want for nothing?"), code),
                         CFOIL_OK);
        assert_hex(code, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
    assert_int_equal(
        cfoil_hmac(large,
                   cfoil_bytes_text("Test Using Larger Than Block-Size Key - Hash Key First"),
                   code),
        CFOIL_OK);
    cfoil_hmac_key_free(jefe);
    cfoil_hmac_key_free(large);
    assert_hex(code, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void an_empty_secret_is_refused(void **state)
{
    (void)state;
    struct cfoil_hmac_key *key = NULL;
    assert_int_equal(cfoil_hmac_key_create(cfoil_bytes_text(""), &key), CFOIL_E_INVALID);
    assert_null(key);
}

static struct cfoil_scope shop_scope(void)
{
    return (struct cfoil_scope){
        .layer = cfoil_bytes_text("http"),
        .kind = CFOIL_KIND_KEY,
        .tenant_class = CFOIL_TENANT_NAMED,
        .tenant = cfoil_bytes_text("t1"),
        .endpoint = cfoil_bytes_text("POST /a"),
        .key = cfoil_bytes_text("k"),
    };
}

static void a_record_id_is_the_digest_of_the_scope_frame(void **state)
{
    (void)state;
    static const char frame[] = "\x01\x04http\x01\x01"
                                "\0\0\0\x02t1"
                                "\0\0\0\x07POST /a"
                                "\0\0\0\x01k";
    uint8_t id[CFOIL_DIGEST_BYTES];
    uint8_t expected[CFOIL_DIGEST_BYTES];
    struct cfoil_digester *digester = digester_new();
    struct cfoil_scope scope = shop_scope();
    assert_int_equal(cfoil_scope_id(digester, &scope, id), CFOIL_OK);
    cfoil_digest_begin(digester);
    cfoil_digest_update(digester, frame, sizeof(frame) - 1);
    assert_int_equal(cfoil_digest_end(digester, expected), CFOIL_OK);
    assert_memory_equal(id, expected, sizeof(id));
    cfoil_digester_free(digester);
}

static void a_scope_that_does_not_frame_has_no_id(void **state)
{
    (void)state;
    uint8_t id[CFOIL_DIGEST_BYTES];
    struct cfoil_digester *digester = digester_new();
    struct cfoil_scope scope = shop_scope();
    scope.key = cfoil_bytes_text("");
    assert_int_equal(cfoil_scope_id(digester, &scope, id), CFOIL_E_INVALID);
    cfoil_digester_free(digester);
}

static void hex_goes_there_and_back(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x00, 0x7f, 0x80, 0xff, 0x1a};
    uint8_t back[5] = {0};
    char text[11];
    cfoil_hex(bytes, sizeof(bytes), text);
    assert_string_equal(text, "007f80ff1a");
    assert_true(cfoil_unhex(cfoil_bytes_text("007F80ff1A"), back, sizeof(back)));
    assert_memory_equal(back, bytes, sizeof(bytes));
}

static void what_is_not_hex_of_that_length_is_refused(void **state)
{
    (void)state;
    uint8_t back[2];
    assert_false(cfoil_unhex(cfoil_bytes_text("00f"), back, 2));
    assert_false(cfoil_unhex(cfoil_bytes_text("00f"), back, 1));
    assert_false(cfoil_unhex(cfoil_bytes_text("00ff00"), back, 2));
    assert_false(cfoil_unhex(cfoil_bytes_text("00fg"), back, 2));
    assert_false(cfoil_unhex(cfoil_bytes_text("0x0f"), back, 2));
    assert_false(cfoil_unhex(cfoil_bytes_text("00: "), back, 2));
    assert_true(cfoil_unhex(cfoil_bytes_text(""), back, 0));
}

static void random_owners_do_not_repeat(void **state)
{
    (void)state;
    enum { OWNERS = 256 };
    uint8_t owners[OWNERS][CFOIL_OWNER_BYTES];
    for (int i = 0; i < OWNERS; i++) {
        assert_int_equal(cfoil_random(owners[i], sizeof(owners[i])), CFOIL_OK);
        for (int k = 0; k < i; k++) {
            assert_memory_not_equal(owners[i], owners[k], sizeof(owners[i]));
        }
    }
}

static void random_fills_every_byte_of_a_long_request(void **state)
{
    (void)state;
    enum { BYTES = 4096 };
    uint8_t seen[BYTES] = {0};
    uint8_t bytes[BYTES];
    for (int round = 0; round < 8; round++) {
        memset(bytes, 0, sizeof(bytes));
        assert_int_equal(cfoil_random(bytes, sizeof(bytes)), CFOIL_OK);
        for (int i = 0; i < BYTES; i++) {
            seen[i] |= bytes[i];
        }
    }
    for (int i = 0; i < BYTES; i++) {
        assert_int_not_equal(seen[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_digests),
        cmocka_unit_test(a_begin_throws_away_an_unfinished_digest),
        cmocka_unit_test(an_end_without_a_begin_gives_no_digest),
        cmocka_unit_test(hmac_gives_the_published_codes),
        cmocka_unit_test(an_empty_secret_is_refused),
        cmocka_unit_test(a_record_id_is_the_digest_of_the_scope_frame),
        cmocka_unit_test(a_scope_that_does_not_frame_has_no_id),
        cmocka_unit_test(hex_goes_there_and_back),
        cmocka_unit_test(what_is_not_hex_of_that_length_is_refused),
        cmocka_unit_test(random_owners_do_not_repeat),
        cmocka_unit_test(random_fills_every_byte_of_a_long_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
