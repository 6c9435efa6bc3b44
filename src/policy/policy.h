/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy: what a repeated request means, per route (DESIGN.md section 5). Loaded whole from one
 * YAML file, checked whole, then immutable; the gateway, the library and the tools read the same one.
 *
 * Every field of the design is known to the schema (policy/fields.def) with its shape and unit. A
 * field that is known but does not work yet is an error, "not available in this version", never
 * ignored. Every error names file, line, column and the fix; loading goes on to collect up to
 * CFOIL_POLICY_PROBLEMS_MAX of them.
 *
 * Threads: a loaded policy may be read by any number of threads. All memory belongs to the policy.
 */
#ifndef CFOIL_POLICY_POLICY_H
#define CFOIL_POLICY_POLICY_H

#include "core/outcome.h"
#include "core/protocol.h"
#include "fingerprint/fingerprint.h"
#include "policy/response.h"

#define CFOIL_POLICY_PROBLEMS_MAX 50
#define CFOIL_POLICY_BYTES_MAX    (4U * 1024 * 1024)
#define CFOIL_POLICY_ROUTES_MAX   10000
#define CFOIL_MATCHES_MAX         64 /* patterns in one route */
#define CFOIL_KEY_HEADER_DEFAULT  "Idempotency-Key"
#define CFOIL_KEY_VALUE_BYTES_MAX                                                                  \
    (2 * CFOIL_KEY_BYTES_MAX + 2) /* a quoted key, all of it escaped */

enum cfoil_profile {
#define CFOIL_PROFILE(id, name, statuses, answers, key_required, key_format, ttl_hours,            \
                      tombstone_hours, other_5xx, archive)                                         \
    CFOIL_PROFILE_##id,
#include "policy/profiles.def"
    CFOIL_PROFILE_COUNT
};

/* The shape of our own answers. The first two are the values of `answers`. */
enum cfoil_answers { CFOIL_ANSWERS_PROBLEM, CFOIL_ANSWERS_ENVELOPE, CFOIL_ANSWERS_STRIPE };

enum cfoil_key_format {
    CFOIL_KEY_FORMAT_ANY, /* 1-255 visible ASCII */
    CFOIL_KEY_FORMAT_UUID,
    CFOIL_KEY_FORMAT_UUID4,
    CFOIL_KEY_FORMAT_ULID
};

/* Where a tenant comes from. */
enum cfoil_tenant_source {
    CFOIL_TENANT_FROM_HEADER,
    CFOIL_TENANT_FROM_COOKIE,
    CFOIL_TENANT_FROM_QUERY,
    CFOIL_TENANT_FROM_PATH,
    CFOIL_TENANT_FROM_VARIABLE,
    CFOIL_TENANT_FROM_AUTHORIZATION,
    CFOIL_TENANT_FROM_NONE
};

struct cfoil_tenant_rule {
    enum cfoil_tenant_source source;
    const char *name; /* of the header, cookie, argument, path parameter or variable; else NULL */
    enum cfoil_tenant_source otherwise; /* where the source gives nothing; NONE or AUTHORIZATION */
};

/* The path template of a probe; "{key}" stands for the key, percent-encoded, others for path parameters. */
struct cfoil_probe_rule {
    const char *method; /* "GET" */
    const char *path;   /* "/api/orders/by-key/{key}" */
    uint16_t replay_status;
    int64_t timeout_ms;
};

struct cfoil_pattern;

/* Of the rules that match a response header the last one counts; none: it is kept. */
struct cfoil_header_rule {
    const char *pattern; /* lower case; "name" or "prefix*" */
    bool keep;
};

struct cfoil_route {
    const char *name; /* unique; "route-N" where the file gives none */
    enum cfoil_profile profile;
    enum cfoil_statuses statuses; /* of our own answers */
    enum cfoil_answers answers;

    const struct cfoil_pattern *const *patterns; /* opaque; for the paths below */
    size_t pattern_count;

    struct cfoil_tenant_rule tenant;

    const char *key_header; /* where the key stands, and in any case how it is forwarded */
    const char *key_query;  /* the argument of the query that it stands in instead; NULL: none */
    bool key_required;
    enum cfoil_key_format key_format;

    struct cfoil_rules *rules;
    struct cfoil_terms terms; /* trust_absent_after_ms -1: the upstream read time-out */

    struct cfoil_outcome_rules outcome; /* other_5xx is the profile's */
    struct cfoil_body_rule body;
    struct cfoil_resource_rule resource;

    struct cfoil_probe_rule probe; /* where terms.in_doubt is PROBE */

    int64_t wait_ms;         /* while_pending: wait; 0: the pending answer at once */
    const char *accept_path; /* while_pending: accept; a template like a probe's, else NULL */

    size_t snapshot_body_bytes_max;
    struct cfoil_rules *redact; /* what cfoil_redactor_read cuts out of a body; NULL: nothing */
    const struct cfoil_header_rule *header_rules; /* cfoil_route_keeps_header reads them */
    size_t header_rule_count;

    const char *messages[CFOIL_LANGUAGE_COUNT][CFOIL_MESSAGE_COUNT]; /* UTF-8; none is NULL */
    const char
        *replay_messages[CFOIL_LANGUAGE_COUNT]; /* percent-encoded; NULL: replays have none */

    bool store_open; /* store_unavailable: open */
    bool archive;
};

struct cfoil_policy;

/* One finding. text says what and how to fix it, without the position. */
struct cfoil_policy_problem {
    unsigned line; /* 1-based; 0: the file as a whole */
    unsigned column;
    char text[400];
};

struct cfoil_policy_problems {
    size_t count;
    struct cfoil_policy_problem item[CFOIL_POLICY_PROBLEMS_MAX];
};

/*
 * Loads from a file, or from memory (`name` is what messages call it). On POLICY the problems say
 * why. Errors: POLICY, SYSTEM (the file cannot be read; problem 0 says why), LIMIT, NO_MEMORY.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_policy_load(const char *path, struct cfoil_policy **policy,
                                                    struct cfoil_policy_problems *problems);
CFOIL_MUST_CHECK enum cfoil_error cfoil_policy_load_text(struct cfoil_bytes text,
                                                         struct cfoil_policy **policy,
                                                         struct cfoil_policy_problems *problems);
void cfoil_policy_free(struct cfoil_policy *policy);

/*
 * What `serve` uses without a policy: every POST and PATCH carrying an Idempotency-Key, strict, the
 * endpoint is the concrete path, tenant by authorization or none. Its text is printable.
 */
extern const char cfoil_policy_default_text[];

size_t cfoil_policy_route_count(const struct cfoil_policy *policy);
const struct cfoil_route *cfoil_policy_route(const struct cfoil_policy *policy, size_t index);
/* NULL if there is none of that name. */
const struct cfoil_route *cfoil_policy_route_by_name(const struct cfoil_policy *policy,
                                                     const char *name);

/*
 * The first route that matches a method and normalised path, or NULL. `endpoint` receives METHOD,
 * space and the template with nameless parameters ("POST /orders/{}/pay"; the concrete rest for
 * "**"), not NUL-ended. Errors inside (endpoint longer than the buffer) match nothing: give
 * CFOIL_ENDPOINT_BYTES_MAX.
 */
const struct cfoil_route *cfoil_policy_match(const struct cfoil_policy *policy,
                                             struct cfoil_bytes method, struct cfoil_bytes path,
                                             char *endpoint, size_t endpoint_bytes,
                                             size_t *endpoint_len);

/*
 * Fills a probe's path for a request that matched `route` by `path`: {key} and named path parameters,
 * percent-encoded. Returns the length, or 0 if it does not fit.
 */
size_t cfoil_probe_path(const struct cfoil_route *route, struct cfoil_bytes method,
                        struct cfoil_bytes path, struct cfoil_bytes key, char *out,
                        size_t out_bytes);

/* The same for `while_pending: {accept: ...}`: where a duplicate is told to look. */
size_t cfoil_accept_path(const struct cfoil_route *route, struct cfoil_bytes method,
                         struct cfoil_bytes path, struct cfoil_bytes key, char *out,
                         size_t out_bytes);

/*
 * What stands in the path for a parameter of the route's pattern that a request matched; {NULL, 0} if it
 * has none of that name.
 */
struct cfoil_bytes cfoil_route_parameter(const struct cfoil_route *route, struct cfoil_bytes method,
                                         struct cfoil_bytes path, const char *name);

/*
 * The key in a header's value: bare, or an RFC 8941 string; both name the same key. `out` has room
 * for CFOIL_KEY_BYTES_MAX. False: not of the route's format.
 */
bool cfoil_key_normalise(enum cfoil_key_format format, struct cfoil_bytes value, char *out,
                         size_t *out_len);

/* The language a client reads, by its Accept-Language ("" or NULL where it sent none). */
enum cfoil_language cfoil_language_wanted(struct cfoil_bytes accept_language);

/*
 * Whether a response header is kept in the snapshot. Where bodies are redacted, none that was made from
 * the whole body is.
 */
bool cfoil_route_keeps_header(const struct cfoil_route *route, struct cfoil_bytes name);

/* One line that says how tenants are told apart ("header X-Tenant-Id, otherwise authorization"). */
void cfoil_tenant_rule_text(const struct cfoil_tenant_rule *rule, char *out, size_t out_bytes);

#endif
