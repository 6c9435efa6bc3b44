/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pattern of a route's `match`, parsed: "POST|PUT /orders/{id}/pay".
 *
 *   path      a leading slash, then segments joined by slashes; each is a literal, or {name}, which
 *             stands for exactly one segment that is not empty; the last may be **
 *   **        stands for zero or more bytes after its slash: after "/x/" it matches "/x/" and
 *             "/x/a/b", not "/x"
 *
 * Paths are compared as bytes, as nginx normalised them: decoded, dots resolved, slashes merged.
 * A template is the path with its parameters nameless, up to and without the **.
 */
#ifndef CFOIL_POLICY_PATTERN_H
#define CFOIL_POLICY_PATTERN_H

#include "core/bytes.h"
#include "policy/pool.h"

struct cfoil_segment {
    struct cfoil_bytes text; /* the literal, or the parameter's name */
    bool parameter;
};

struct cfoil_pattern {
    struct cfoil_bytes *methods;
    size_t method_count;
    struct cfoil_segment *segments; /* ** is not among them */
    size_t segment_count;
    bool rest; /* ends in ** */
    struct cfoil_bytes template;
};

/*
 * Parses `text`. NULL: either *why was filled with what is wrong and the fix, or, where why[0] is
 * 0, there is no memory. Views point into the pool.
 */
struct cfoil_pattern *cfoil_pattern_parse(struct cfoil_pool *pool, struct cfoil_bytes text,
                                          char *why, size_t why_bytes);

/* The next segment of a path from *offset on (after its slash); false at the end of the path. */
bool cfoil_path_segment(struct cfoil_bytes path, size_t *offset, struct cfoil_bytes *segment);

/* Whether the path matches, methods aside. */
bool cfoil_pattern_matches(const struct cfoil_pattern *pattern, struct cfoil_bytes path);

/* The value of a parameter in a path that matches; {NULL, 0} if the pattern has none of that name. */
struct cfoil_bytes cfoil_pattern_parameter(const struct cfoil_pattern *pattern,
                                           struct cfoil_bytes path, struct cfoil_bytes name);

/* What ** stands for in a path that matches; {NULL, 0} for a pattern without it. */
struct cfoil_bytes cfoil_pattern_rest(const struct cfoil_pattern *pattern, struct cfoil_bytes path);

/* Whether the pattern has a parameter of that name. */
bool cfoil_pattern_has(const struct cfoil_pattern *pattern, struct cfoil_bytes name);

/* A parameter's name: a letter or _, then letters, digits or _. */
bool cfoil_parameter_name_valid(struct cfoil_bytes name);

#endif
