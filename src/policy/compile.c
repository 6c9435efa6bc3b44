/* SPDX-License-Identifier: Apache-2.0 */
/* The route as a whole, its profile, tenant, key and times. See compile.h. */
#include "policy/compile.h"

#include <stdio.h>

#include "policy/limits.h"
#include "policy/profiles.h"
#include "policy/scalar.h"

#define FAILED_DEFAULT_MS        (10 * CFOIL_MINUTE_MS)
#define LEASE_DEFAULT_MS         (15 * CFOIL_SECOND_MS)
#define RETRY_AFTER_DEFAULT_MS   (2 * CFOIL_SECOND_MS)
#define PROBE_TIMEOUT_DEFAULT_MS (5 * CFOIL_SECOND_MS)

const struct cfoil_node *cfoil_blame(const struct cfoil_compile *compile, enum cfoil_field field)
{
    const struct cfoil_node *node = compile->merged.at[field];
    return node != NULL ? node : compile->node;
}

static const char *text_of(const struct cfoil_compile *compile, enum cfoil_field field,
                           const char *otherwise)
{
    const struct cfoil_node *node = compile->merged.at[field];
    return node != NULL ? node->text : otherwise;
}

static int64_t number_of(const struct cfoil_compile *compile, enum cfoil_field field,
                         int64_t otherwise)
{
    return cfoil_merged_number(&compile->merged, field, otherwise);
}

/* ttl, or the sum of the three; both in one mapping contradict each other. */
static void check_retention(struct cfoil_compile *compile, const struct cfoil_node *layer)
{
    const struct cfoil_node *retention = cfoil_node_member(layer, CFOIL_FIELD_RETENTION);
    const struct cfoil_node *ttl = cfoil_node_member(retention, CFOIL_FIELD_RETENTION_TTL);
    if (ttl == NULL) {
        return;
    }
    static const enum cfoil_field terms[] = {CFOIL_FIELD_RETENTION_RETRY_WINDOW,
                                             CFOIL_FIELD_RETENTION_DELAY_BOUND,
                                             CFOIL_FIELD_RETENTION_OBSERVATION};
    for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
        if (cfoil_node_member(retention, terms[i]) != NULL) {
            cfoil_problem_add(compile->problems, ttl->key_line, ttl->key_column,
                              "retention.ttl: contradicts %s beside it; give ttl, or retry_window, "
                              "delay_bound and observation, whose sum is the ttl",
                              cfoil_field_row(terms[i])->name);
            return;
        }
    }
}

static int64_t ttl_ms(const struct cfoil_compile *compile, enum cfoil_profile profile)
{
    const struct cfoil_node *const *at = compile->merged.at;
    if (at[CFOIL_FIELD_RETENTION_RETRY_WINDOW] == NULL &&
        at[CFOIL_FIELD_RETENTION_DELAY_BOUND] == NULL &&
        at[CFOIL_FIELD_RETENTION_OBSERVATION] == NULL) {
        return number_of(compile, CFOIL_FIELD_RETENTION_TTL, cfoil_profile_row(profile)->ttl_ms);
    }
    return number_of(compile, CFOIL_FIELD_RETENTION_RETRY_WINDOW, 0) +
           number_of(compile, CFOIL_FIELD_RETENTION_DELAY_BOUND, 0) +
           number_of(compile, CFOIL_FIELD_RETENTION_OBSERVATION, 0);
}

static void check_times(struct cfoil_compile *compile, const struct cfoil_terms *terms)
{
    char ttl[32];
    char lease[32];
    (void)cfoil_duration_text(terms->ttl_ms, ttl, sizeof(ttl));
    (void)cfoil_duration_text(terms->lease_ms, lease, sizeof(lease));
    const struct cfoil_node *blame = cfoil_blame(compile, CFOIL_FIELD_RETENTION);
    if (terms->ttl_ms > CFOIL_DURATION_MAX_MS || terms->ttl_ms == 0) {
        cfoil_problem_add(compile->problems, blame->line, blame->column,
                          "retention: retry_window, delay_bound and observation add up to %s; the "
                          "sum must be over 0s and at most 3650d",
                          ttl);
        return;
    }
    if (terms->lease_ms > terms->ttl_ms) {
        blame = cfoil_blame(compile, CFOIL_FIELD_LEASE);
        blame = blame == compile->node ? cfoil_blame(compile, CFOIL_FIELD_RETENTION) : blame;
        cfoil_problem_add(compile->problems, blame->line, blame->column,
                          "lease: %s is longer than the retention of %s; a record must outlive its "
                          "claim, so shorten lease or lengthen retention",
                          lease, ttl);
    }
}

static void compile_terms(struct cfoil_compile *compile, struct cfoil_route *route)
{
    struct cfoil_terms *terms = &route->terms;
    const struct cfoil_profile_row *profile = cfoil_profile_row(route->profile);
    terms->semantics =
        (enum cfoil_semantics)number_of(compile, CFOIL_FIELD_SEMANTICS, CFOIL_SEMANTICS_STRICT);
    terms->lease_ms = number_of(compile, CFOIL_FIELD_LEASE, LEASE_DEFAULT_MS);
    terms->ttl_ms = ttl_ms(compile, route->profile);
    terms->tombstone_ms =
        number_of(compile, CFOIL_FIELD_RETENTION_TOMBSTONE, profile->tombstone_ms);
    terms->failed_ms = number_of(compile, CFOIL_FIELD_RETENTION_FAILED, FAILED_DEFAULT_MS);
    terms->retry_after_ms = number_of(compile, CFOIL_FIELD_RETRY_AFTER, RETRY_AFTER_DEFAULT_MS);
    terms->trust_absent_after_ms = number_of(compile, CFOIL_FIELD_PROBE_TRUST, -1);

    route->probe.timeout_ms =
        number_of(compile, CFOIL_FIELD_PROBE_TIMEOUT, PROBE_TIMEOUT_DEFAULT_MS);
    route->probe.replay_status = (uint16_t)number_of(compile, CFOIL_FIELD_PROBE_STATUS, 200);
    terms->probe_lease_ms = route->probe.timeout_ms + CFOIL_PROBE_LEASE_ADD_MS;

    const struct cfoil_node *in_doubt = compile->merged.at[CFOIL_FIELD_IN_DOUBT];
    terms->in_doubt = CFOIL_IN_DOUBT_HOLD;
    if (in_doubt != NULL) {
        terms->in_doubt = in_doubt->kind == CFOIL_NODE_MAPPING
                              ? CFOIL_IN_DOUBT_PROBE
                              : (enum cfoil_in_doubt)in_doubt->number;
    }
    if (terms->semantics != CFOIL_SEMANTICS_WINDOW) {
        check_times(compile, terms); /* what has not ended outlives its window */
    }
}

static void check_match(struct cfoil_compile *compile)
{
    const struct cfoil_node *match = compile->merged.at[CFOIL_FIELD_MATCH];
    if (match == NULL || (match->kind == CFOIL_NODE_LIST && match->count == 0)) {
        const struct cfoil_node *blame = match != NULL ? match : compile->node;
        cfoil_problem_add(compile->problems, blame->line, blame->column,
                          "a route needs `match`: a method and a path, as in "
                          "`match: POST /orders`");
    }
}

enum cfoil_error cfoil_route_compile(struct cfoil_compile *compile, const struct cfoil_node *node,
                                     struct cfoil_route *route)
{
    compile->node = node;
    compile->merged = compile->defaults;
    cfoil_merge_layer(&compile->merged, node);

    route->name = text_of(compile, CFOIL_FIELD_NAME, NULL);
    route->profile =
        (enum cfoil_profile)number_of(compile, CFOIL_FIELD_PROFILE, CFOIL_PROFILE_STANDARD);
    const struct cfoil_profile_row *profile = cfoil_profile_row(route->profile);
    route->statuses = profile->statuses;
    route->answers =
        (enum cfoil_answers)number_of(compile, CFOIL_FIELD_ANSWERS, (int64_t)profile->answers);
    route->store_open = number_of(compile, CFOIL_FIELD_STORE_UNAVAILABLE, 0) != 0;
    route->archive = number_of(compile, CFOIL_FIELD_ARCHIVE, profile->archive) != 0;
    route->snapshot_body_bytes_max =
        (size_t)number_of(compile, CFOIL_FIELD_SNAPSHOT_MAX_BODY, CFOIL_MIB);
    route->outcome.other_5xx = profile->other_5xx;

    check_match(compile);
    check_retention(compile, compile->defaults_node);
    check_retention(compile, node);
    cfoil_tenant_compile(compile, route);
    cfoil_key_compile(compile, route);
    compile_terms(compile, route);
    cfoil_window_compile(compile, route);
    cfoil_outcome_compile(compile, route);
    cfoil_probe_compile(compile, route);
    cfoil_resource_compile(compile, route);
    cfoil_pending_compile(compile, route);

    enum cfoil_error error = cfoil_messages_compile(compile, route);
    if (error == CFOIL_OK) {
        error = cfoil_headers_compile(compile, route);
    }
    if (error == CFOIL_OK) {
        error = cfoil_body_compile(compile, route);
    }
    if (error == CFOIL_OK) {
        error = cfoil_redact_compile(compile, route);
    }
    if (error != CFOIL_OK) {
        return error;
    }
    return cfoil_rules_compile(compile, route);
}
