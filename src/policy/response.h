/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy reads of a response's body: how the execution ended, for APIs that answer 200 with
 * `{"code": 0}` or `{"code": 50001}` (`outcome.body`; DESIGN.md section 3, Outcome of an execution), and
 * what came into being (`resource`).
 */
#ifndef CFOIL_POLICY_RESPONSE_H
#define CFOIL_POLICY_RESPONSE_H

#include "core/protocol.h"
#include "fingerprint/select.h"

#define CFOIL_BODY_VALUES_MAX       256 /* in the lists of one route */
#define CFOIL_RESOURCE_ID_BYTES_MAX 256 /* longer ones are not kept */

struct cfoil_body_value {
    enum cfoil_value_kind kind; /* STRING, NUMBER, TRUE or FALSE */
    struct cfoil_bytes text;    /* as cfoil_value has it */
    enum cfoil_state outcome;
};

struct cfoil_body_rule {
    const char *at; /* a JSON pointer; NULL: the route has no such rule */
    const struct cfoil_body_value *values;
    size_t value_count;
    enum cfoil_state
        otherwise; /* ABSENT: the rule says nothing, the next row of the table counts */
};

struct cfoil_resource_rule {
    const char *type;
    const char *id; /* a JSON pointer; NULL: the route has no such rule */
};

/*
 * What the rule says of a value that was read at its place, ABSENT where there is none or the body is
 * no JSON. A value and a listed one are the same if kind and text are: 0 is not "0", 1 is 1.0. Returns
 * ABSENT where the rule says nothing.
 *
 * A 502 or 504 that has no such value says nothing whatever `otherwise` is: as a rule it was written by
 * something between us and the backend, which may have run the request.
 */
enum cfoil_state cfoil_body_outcome(const struct cfoil_body_rule *rule, uint16_t status,
                                    struct cfoil_value value);

/*
 * The resource that a value names, which was read at the rule's pointer: text or a number, of 1 to
 * CFOIL_RESOURCE_ID_BYTES_MAX bytes. Others, and none, give an empty one. Points into rule and value.
 */
struct cfoil_resource cfoil_resource_of(const struct cfoil_resource_rule *rule,
                                        struct cfoil_value value);

#endif
