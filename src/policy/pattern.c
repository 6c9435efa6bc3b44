/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing patterns and taking paths apart. See pattern.h. */
#include "policy/pattern.h"

#include <stdarg.h>
#include <stdio.h>

#include "policy/limits.h"

struct parse {
    struct cfoil_pool *pool;
    struct cfoil_pattern *pattern;
    char *why;
    size_t why_bytes;
};

/* Says why; false, so that a caller can return it. */
static bool refuse(struct parse *parse, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(struct parse *parse, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(parse->why, parse->why_bytes, format, arguments);
    va_end(arguments);
    return false;
}

static struct cfoil_bytes slice(struct cfoil_bytes text, size_t from, size_t to)
{
    return cfoil_bytes_of(text.data + from, to - from);
}

static size_t find(struct cfoil_bytes text, size_t from, uint8_t byte)
{
    while (from < text.len && text.data[from] != byte) {
        from++;
    }
    return from;
}

static bool is_upper(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z';
}

static bool is_word(uint8_t byte)
{
    return is_upper(byte) || (byte >= 'a' && byte <= 'z') || byte == '_';
}

bool cfoil_parameter_name_valid(struct cfoil_bytes name)
{
    if (name.len == 0 || !is_word(name.data[0])) {
        return false;
    }
    for (size_t i = 1; i < name.len; i++) {
        bool digit = name.data[i] >= '0' && name.data[i] <= '9';
        if (!is_word(name.data[i]) && !digit) {
            return false;
        }
    }
    return true;
}

static bool method_valid(struct cfoil_bytes method)
{
    for (size_t i = 0; i < method.len; i++) {
        if (!is_upper(method.data[i]) && method.data[i] != '-') {
            return false;
        }
    }
    return method.len > 0 && method.len <= 32;
}

static bool parse_methods(struct parse *parse, struct cfoil_bytes text)
{
    struct cfoil_pattern *pattern = parse->pattern;
    pattern->methods = cfoil_pool_array(parse->pool, CFOIL_METHODS_MAX, sizeof(*pattern->methods));
    if (pattern->methods == NULL) {
        return false;
    }

    for (size_t at = 0; at <= text.len;) {
        size_t end = find(text, at, '|');
        struct cfoil_bytes method = slice(text, at, end);
        if (!method_valid(method)) {
            return refuse(parse,
                          "`%.*s` is not a method; methods are upper case, joined by | "
                          "without spaces, as in `POST|PUT /orders`",
                          (int)(method.len > 40 ? 40 : method.len), (const char *)method.data);
        }
        for (size_t i = 0; i < pattern->method_count; i++) {
            if (cfoil_bytes_equal(pattern->methods[i], method)) {
                return refuse(parse, "the method %.*s stands here twice; keep one", (int)method.len,
                              (const char *)method.data);
            }
        }
        if (pattern->method_count == CFOIL_METHODS_MAX) {
            return refuse(parse, "more than %d methods in one pattern; write several patterns",
                          CFOIL_METHODS_MAX);
        }
        pattern->methods[pattern->method_count++] = method;
        at = end + 1;
    }
    return true;
}

static bool parse_parameter(struct parse *parse, struct cfoil_bytes text)
{
    struct cfoil_pattern *pattern = parse->pattern;
    struct cfoil_bytes name = slice(text, 1, text.len - 1);
    if (!cfoil_parameter_name_valid(name)) {
        return refuse(parse,
                      "{%.*s} is not a parameter; its name is letters, digits and _, as in "
                      "`/orders/{id}`",
                      (int)(name.len > 40 ? 40 : name.len), (const char *)name.data);
    }
    if (cfoil_pattern_has(pattern, name)) {
        return refuse(parse, "the parameter {%.*s} stands here twice; give each its own name",
                      (int)(name.len > 40 ? 40 : name.len), (const char *)name.data);
    }
    pattern->segments[pattern->segment_count++] = (struct cfoil_segment){name, true};
    return true;
}

static bool parse_literal(struct parse *parse, struct cfoil_bytes text, bool last)
{
    if (text.len == 0 && !last) {
        return refuse(parse, "// never arrives: slashes are merged before matching; write one /");
    }
    if (cfoil_bytes_equal(text, cfoil_bytes_text(".")) ||
        cfoil_bytes_equal(text, cfoil_bytes_text(".."))) {
        return refuse(parse, "a . or .. segment never arrives: paths are resolved before matching; "
                             "write the path without it");
    }
    for (size_t i = 0; i < text.len; i++) {
        const char *problem = NULL;
        switch (text.data[i]) {
        case '{':
        case '}':
            problem = "a {name} must be a whole segment, as in `/orders/{id}`";
            break;
        case '*':
            problem = "write {name} for one segment, or ** as the last one for all that follows";
            break;
        case '?':
        case '#':
            problem = "a pattern is method and path only; take away ? or # and what follows";
            break;
        case '%':
            problem = "paths are decoded before matching; write the character itself instead of %";
            break;
        case ' ':
            problem =
                "a pattern is one method list, one space and one path; for a path with spaces "
                "use {name} or **";
            break;
        default:
            break;
        }
        if (problem != NULL) {
            return refuse(parse, "%s", problem);
        }
    }
    parse->pattern->segments[parse->pattern->segment_count++] = (struct cfoil_segment){text, false};
    return true;
}

static bool parse_segment(struct parse *parse, struct cfoil_bytes text, bool last)
{
    if (parse->pattern->segment_count == CFOIL_SEGMENTS_MAX) {
        return refuse(parse, "more than %d segments in one path", CFOIL_SEGMENTS_MAX);
    }
    if (last && cfoil_bytes_equal(text, cfoil_bytes_text("**"))) {
        parse->pattern->rest = true;
        return true;
    }
    if (cfoil_bytes_equal(text, cfoil_bytes_text("**"))) {
        return refuse(parse, "** stands at the end only; write {name} for one segment in between");
    }
    if (text.len >= 2 && text.data[0] == '{' && find(text, 0, '}') == text.len - 1) {
        return parse_parameter(parse, text);
    }
    return parse_literal(parse, text, last);
}

static bool parse_path(struct parse *parse, struct cfoil_bytes path)
{
    struct cfoil_pattern *pattern = parse->pattern;
    if (path.len == 0 || path.data[0] != '/') {
        return refuse(parse, "a path begins with /; write a method, a space and a path, as in "
                             "`POST /orders`");
    }
    size_t slashes = 0;
    for (size_t i = 0; i < path.len; i++) {
        slashes += path.data[i] == '/';
    }
    pattern->segments = cfoil_pool_array(parse->pool, slashes, sizeof(*pattern->segments));
    if (pattern->segments == NULL) {
        return false;
    }

    for (size_t at = 1; at <= path.len;) {
        size_t end = find(path, at, '/');
        if (!parse_segment(parse, slice(path, at, end), end == path.len)) {
            return false;
        }
        at = end + 1;
    }
    return true;
}

static bool make_template(struct parse *parse, size_t path_bytes)
{
    struct cfoil_pattern *pattern = parse->pattern;
    /* "{}" is never longer than "{name}", and an empty path has its slash. */
    char *out = cfoil_pool_take(parse->pool, path_bytes + 1);
    if (out == NULL) {
        return false;
    }

    size_t len = 0;
    for (size_t i = 0; i < pattern->segment_count; i++) {
        struct cfoil_bytes text = pattern->segments[i].text;
        if (pattern->segments[i].parameter) {
            text = cfoil_bytes_text("{}");
        }
        out[len++] = '/';
        if (text.len > 0) {
            memcpy(out + len, text.data, text.len);
        }
        len += text.len;
    }
    if (pattern->rest) {
        out[len++] = '/';
    }
    pattern->template = cfoil_bytes_of(out, len);
    return true;
}

struct cfoil_pattern *cfoil_pattern_parse(struct cfoil_pool *pool, struct cfoil_bytes text,
                                          char *why, size_t why_bytes)
{
    why[0] = '\0';
    struct parse parse = {pool, cfoil_pool_take(pool, sizeof(*parse.pattern)), why, why_bytes};
    char *copy = cfoil_pool_text(pool, (const char *)text.data, text.len);
    if (parse.pattern == NULL || copy == NULL) {
        return NULL;
    }

    struct cfoil_bytes kept = cfoil_bytes_of(copy, text.len);
    size_t space = find(kept, 0, ' ');
    if (space > 0 && find(kept, 0, '/') < space && kept.data[0] == '/') {
        space = 0; /* a path without a method: say so, not that the path is no method */
    }
    if (space == 0 || space == kept.len) {
        (void)refuse(&parse, "a pattern is a method, a space and a path, as in `POST /orders`");
        return NULL;
    }

    struct cfoil_bytes path = slice(kept, space + 1, kept.len);
    bool good = parse_methods(&parse, slice(kept, 0, space)) && parse_path(&parse, path) &&
                make_template(&parse, path.len);
    return good ? parse.pattern : NULL;
}

bool cfoil_path_segment(struct cfoil_bytes path, size_t *offset, struct cfoil_bytes *segment)
{
    if (*offset > path.len) {
        return false;
    }
    const uint8_t *start = path.data + *offset;
    size_t left = path.len - *offset;
    const uint8_t *slash = left > 0 ? memchr(start, '/', left) : NULL;
    segment->data = start;
    segment->len = slash != NULL ? (size_t)(slash - start) : left;
    *offset += segment->len + 1;
    return true;
}

bool cfoil_pattern_matches(const struct cfoil_pattern *pattern, struct cfoil_bytes path)
{
    if (path.len == 0 || path.data[0] != '/') {
        return false;
    }

    size_t offset = 1;
    struct cfoil_bytes segment;
    for (size_t i = 0; i < pattern->segment_count; i++) {
        if (!cfoil_path_segment(path, &offset, &segment)) {
            return false;
        }
        const struct cfoil_segment *wanted = &pattern->segments[i];
        bool same = wanted->parameter ? segment.len > 0 : cfoil_bytes_equal(wanted->text, segment);
        if (!same) {
            return false;
        }
    }
    return pattern->rest ? offset <= path.len : offset == path.len + 1;
}

struct cfoil_bytes cfoil_pattern_parameter(const struct cfoil_pattern *pattern,
                                           struct cfoil_bytes path, struct cfoil_bytes name)
{
    size_t offset = 1;
    struct cfoil_bytes segment;
    for (size_t i = 0; i < pattern->segment_count; i++) {
        if (!cfoil_path_segment(path, &offset, &segment)) {
            break;
        }
        if (pattern->segments[i].parameter && cfoil_bytes_equal(pattern->segments[i].text, name)) {
            return segment;
        }
    }
    return cfoil_bytes_of(NULL, 0);
}

struct cfoil_bytes cfoil_pattern_rest(const struct cfoil_pattern *pattern, struct cfoil_bytes path)
{
    if (!pattern->rest) {
        return cfoil_bytes_of(NULL, 0);
    }
    size_t offset = 1;
    struct cfoil_bytes segment;
    for (size_t i = 0; i < pattern->segment_count; i++) {
        (void)cfoil_path_segment(path, &offset, &segment);
    }
    return slice(path, offset, path.len);
}

bool cfoil_pattern_has(const struct cfoil_pattern *pattern, struct cfoil_bytes name)
{
    for (size_t i = 0; i < pattern->segment_count; i++) {
        if (pattern->segments[i].parameter && cfoil_bytes_equal(pattern->segments[i].text, name)) {
            return true;
        }
    }
    return false;
}
