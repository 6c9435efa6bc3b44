/* SPDX-License-Identifier: Apache-2.0 */
/* The concrete paths of a probe and of a place to look, and what stands in the path of a request. See policy.h. */
#include "policy/pattern.h"
#include "policy/percent.h"
#include "policy/policy.h"
#include "policy/texts.h"

struct writer {
    char *out;
    size_t bytes;
    size_t len;
    bool full;
};

static void put(struct writer *writer, char byte)
{
    if (writer->len == writer->bytes) {
        writer->full = true;
        return;
    }
    writer->out[writer->len++] = byte;
}

static void put_raw(struct writer *writer, struct cfoil_bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        put(writer, (char)text.data[i]);
    }
}

static void put_encoded(struct writer *writer, struct cfoil_bytes text)
{
    char spelling[CFOIL_PERCENT_GROWTH];
    for (size_t i = 0; i < text.len; i++) {
        size_t len = cfoil_percent_put(text.data[i], spelling);
        put_raw(writer, cfoil_bytes_of(spelling, len));
    }
}

/* The pattern of this route, not of an earlier one, that the request matched. */
static const struct cfoil_pattern *matched(const struct cfoil_route *route,
                                           struct cfoil_bytes method, struct cfoil_bytes path)
{
    for (size_t i = 0; i < route->pattern_count; i++) {
        const struct cfoil_pattern *pattern = route->patterns[i];
        for (size_t m = 0; m < pattern->method_count; m++) {
            if (cfoil_bytes_equal(pattern->methods[m], method) &&
                cfoil_pattern_matches(pattern, path)) {
                return pattern;
            }
        }
    }
    return NULL;
}

/* What a request has to fill a template with. */
struct filling {
    const struct cfoil_pattern *pattern; /* NULL: it matches none */
    struct cfoil_bytes path;
    struct cfoil_bytes key;
};

static size_t fill(const char *text, const struct filling *filling, char *out, size_t out_bytes)
{
    if (text == NULL || filling->pattern == NULL) {
        return 0;
    }

    struct writer writer = {out, out_bytes, 0, false};
    struct cfoil_bytes template = cfoil_bytes_text(text);
    struct cfoil_bytes before;
    struct cfoil_bytes name;
    size_t offset = 0;
    while (cfoil_placeholder_next(template, &offset, &before, &name)) {
        put_raw(&writer, before);
        bool is_key = cfoil_bytes_equal(name, cfoil_bytes_text("key"));
        put_encoded(&writer, is_key
                                 ? filling->key
                                 : cfoil_pattern_parameter(filling->pattern, filling->path, name));
    }
    put_raw(&writer, before);
    return writer.full ? 0 : writer.len;
}

size_t cfoil_probe_path(const struct cfoil_route *route, struct cfoil_bytes method,
                        struct cfoil_bytes path, struct cfoil_bytes key, char *out,
                        size_t out_bytes)
{
    struct filling filling = {matched(route, method, path), path, key};
    return fill(route->probe.path, &filling, out, out_bytes);
}

size_t cfoil_accept_path(const struct cfoil_route *route, struct cfoil_bytes method,
                         struct cfoil_bytes path, struct cfoil_bytes key, char *out,
                         size_t out_bytes)
{
    struct filling filling = {matched(route, method, path), path, key};
    return fill(route->accept_path, &filling, out, out_bytes);
}

struct cfoil_bytes cfoil_route_parameter(const struct cfoil_route *route, struct cfoil_bytes method,
                                         struct cfoil_bytes path, const char *name)
{
    const struct cfoil_pattern *pattern = matched(route, method, path);
    return pattern != NULL ? cfoil_pattern_parameter(pattern, path, cfoil_bytes_text(name))
                           : cfoil_bytes_of(NULL, 0);
}
