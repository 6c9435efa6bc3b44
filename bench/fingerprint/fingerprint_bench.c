/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fingerprint costs beside a plain SHA-256 over the same bytes, for a JSON order of about 1
 * KiB and a list of such orders of about 1 MiB. Prints the best of several rounds, the two
 * measured in turn. A fingerprint includes all three digests of the request, so the same body is
 * measured as text/plain too: the difference is what canonicalising and hashing the canonical text
 * add.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fingerprint/fingerprint.h"

#define ROUNDS      15
#define ROUND_NS    40000000
#define SMALL_BYTES 1024U
#define LARGE_BYTES (1024U * 1024)

struct work {
    struct cfoil_digester *digester;
    struct cfoil_fingerprinter *fingerprinter;
    const struct cfoil_rules *rules;
    struct cfoil_request_view request;
    uint8_t *body;
    size_t body_bytes;
};

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void hash_once(struct work *work)
{
    uint8_t digest[CFOIL_DIGEST_BYTES];
    cfoil_digest_begin(work->digester);
    cfoil_digest_update(work->digester, work->body, work->body_bytes);
    if (cfoil_digest_end(work->digester, digest) != CFOIL_OK) {
        abort();
    }
}

static void fingerprint_once(struct work *work)
{
    struct cfoil_fingerprint fingerprint;
    const char *raw_reason = NULL;
    cfoil_fingerprint_begin(work->fingerprinter, work->rules, &work->request);
    cfoil_fingerprint_body(work->fingerprinter, work->body, work->body_bytes);
    if (cfoil_fingerprint_end(work->fingerprinter, &fingerprint, &raw_reason) != CFOIL_OK) {
        abort();
    }
    if (raw_reason != NULL) {
        fprintf(stderr, "the body was hashed raw: %s\n", raw_reason);
        exit(1);
    }
}

static double best_of_round(void (*once)(struct work *), struct work *work, double best_ns)
{
    double start = now_ns();
    long count = 0;
    do {
        once(work);
        count++;
    } while (count % 16 != 0 || now_ns() - start < ROUND_NS);
    double each = (now_ns() - start) / (double)count;
    return best_ns == 0 || each < best_ns ? each : best_ns;
}

/* One order; `number` varies its values. Returns the bytes written. */
static size_t put_order(char *out, size_t room, unsigned number)
{
    int wrote = snprintf(
        out, room,
        "{\"order_no\":\"A%08u\",\"user_id\":%u,\"currency\":\"EUR\",\"amount\":%u.%02u,"
        "\"items\":[{\"sku\":\"SKU-%05u\",\"qty\":%u,\"price\":19.99,\"gift\":false},"
        "{\"sku\":\"SKU-%05u\",\"qty\":1,\"price\":5,\"gift\":true,\"note\":null}],"
        "\"ship_to\":{\"name\":\"Zo\u00eb Example\",\"street\":\"12 Long Road, Back Entrance\","
        "\"city\":\"Utrecht\",\"zip\":\"3511 AB\",\"country\":\"NL\"},"
        "\"client_time\":\"2024-05-06T07:08:09.123Z\",\"trace_id\":\"%08x%08x%08x%08x\","
        "\"remark\":\"please leave the parcel with the neighbours if nobody answers\"}",
        number, number * 7, number, number % 100, number % 99999, number % 9 + 1,
        (number * 31) % 99999, number, number * 3, number * 5, number * 7);
    return wrote > 0 && (size_t)wrote < room ? (size_t)wrote : 0;
}

/* A list of orders of about body_bytes, always fewer than body_bytes + 1 KiB. */
static void make_body(struct work *work, size_t body_bytes)
{
    size_t room = body_bytes + 1024;
    char *body = malloc(room);
    if (body == NULL) {
        abort();
    }
    size_t used = 0;
    unsigned number = 1;
    body[used++] = '[';
    while (used < body_bytes - 512) {
        used += put_order(body + used, room - used, number++);
        body[used++] = ',';
    }
    body[used - 1] = ']';
    work->body = (uint8_t *)body;
    work->body_bytes = used;
}

static void measure(struct work *work, size_t body_bytes)
{
    double hash_ns = 0;
    double raw_ns = 0;
    double json_ns = 0;
    make_body(work, body_bytes);
    for (int i = 0; i < ROUNDS; i++) {
        hash_ns = best_of_round(hash_once, work, hash_ns);
        work->request.content_type = cfoil_bytes_text("text/plain");
        raw_ns = best_of_round(fingerprint_once, work, raw_ns);
        work->request.content_type = cfoil_bytes_text("application/json");
        json_ns = best_of_round(fingerprint_once, work, json_ns);
    }
    printf(
        "%8zu bytes  sha256 %8.0f ns  as text %8.0f ns (%.2f)  as JSON %8.0f ns (%.2f, %.0f MB/s)"
        "  JSON alone %.2f\n",
        work->body_bytes, hash_ns, raw_ns, raw_ns / hash_ns, json_ns, json_ns / hash_ns,
        (double)work->body_bytes * 1e3 / json_ns, (json_ns - raw_ns) / hash_ns);
    free(work->body);
}

int main(void)
{
    static const char *const ignore[] = {"/*/client_time", "/*/retry_count", "/*/trace_id"};
    const struct cfoil_rules_source plain = {.query = true};
    const struct cfoil_rules_source ruled = {.ignore = ignore, .ignore_count = 3, .query = true};
    const struct cfoil_rules_source *sources[] = {&plain, &ruled};
    struct work work = {
        .request = {.method = cfoil_bytes_text("POST"), .path = cfoil_bytes_text("/api/orders")}};
    if (cfoil_digester_create(&work.digester) != CFOIL_OK ||
        cfoil_fingerprinter_create(&work.fingerprinter) != CFOIL_OK) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        struct cfoil_rules *rules = NULL;
        if (cfoil_rules_create(sources[i], &rules, NULL, 0) != CFOIL_OK) {
            return 1;
        }
        printf("%s\n", i == 0 ? "no pointers" : "three ignore pointers");
        work.rules = rules;
        measure(&work, SMALL_BYTES);
        measure(&work, LARGE_BYTES);
        cfoil_rules_free(rules);
    }
    cfoil_fingerprinter_free(work.fingerprinter);
    cfoil_digester_free(work.digester);
    return 0;
}
