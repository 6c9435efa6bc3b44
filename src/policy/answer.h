/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own answers as bytes: what stands in the body, in the shape a route asks for. Pure; who sends
 * it, and with which headers, is the caller's.
 */
#ifndef CFOIL_POLICY_ANSWER_H
#define CFOIL_POLICY_ANSWER_H

#include "policy/policy.h"

struct cfoil_document {
    enum cfoil_answers shape;
    enum cfoil_answer answer;
    uint16_t status;
    const char *message;                   /* UTF-8 */
    const struct cfoil_resource *resource; /* NULL: none is known */
};

/* The status of an answer on this route. */
uint16_t cfoil_answer_status(const struct cfoil_route *route, enum cfoil_answer answer);

/* "application/problem+json" or "application/json". */
const char *cfoil_document_type(enum cfoil_answers shape);

/*
 * Writes as much as fits, without a NUL, and returns the length of the whole: call it with 0 bytes
 * to measure.
 */
size_t cfoil_document_write(const struct cfoil_document *document, char *out, size_t out_bytes);

/* Whether a value of Access-Control-Expose-Headers names a header, in any case, or all ("*"). */
bool cfoil_exposes(struct cfoil_bytes value, struct cfoil_bytes name);

#endif
