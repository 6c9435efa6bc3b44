/* SPDX-License-Identifier: Apache-2.0 */
/* See texts.h. */
#include "policy/texts.h"

#include <stdio.h>
#include <strings.h>

#include "policy/limits.h"
#include "policy/pattern.h"

static bool is_alnum(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z');
}

static bool is_token(char byte)
{
    return byte != '\0' && (is_alnum(byte) || strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

static bool say(char *why, const char *format, const char *text)
{
    (void)snprintf(why, CFOIL_WHY_BYTES, format, text);
    return false;
}

static bool name_valid(const struct cfoil_node *node, char *why)
{
    for (size_t i = 0; i < node->len; i++) {
        if (!is_alnum(node->text[i]) && strchr("._-:/", node->text[i]) == NULL) {
            return say(why, "`%.60s` is not a name; use letters, digits and . _ - : /", node->text);
        }
    }
    if (node->len == 0 || node->len > CFOIL_NAME_BYTES_MAX) {
        return say(why, "a name has 1 to 100 characters", "");
    }
    return true;
}

static bool header_valid(const struct cfoil_node *node, bool prefix, char *why)
{
    size_t len = node->len;
    if (prefix && len > 1 && node->text[len - 1] == '*') {
        len--;
    }
    bool good = len > 0 && len <= CFOIL_HEADER_BYTES_MAX;
    for (size_t i = 0; i < len && good; i++) {
        good = is_token(node->text[i]) && node->text[i] != '*';
    }
    if (good) {
        return true;
    }
    return say(why,
               prefix ? "`%.60s` is not a header; write its name without colon, or a prefix and *, "
                        "as in RateLimit-*"
                      : "`%.60s` is not a header; write its name without colon, as in X-Tenant-Id",
               node->text);
}

static bool pointer_valid(const struct cfoil_node *node, char *why)
{
    if (node->len > 0 && node->text[0] != '/') {
        (void)snprintf(why, CFOIL_WHY_BYTES,
                       "`%.60s` is not a JSON pointer; it begins with /, as in /%.60s", node->text,
                       node->text);
        return false;
    }
    if (node->len > CFOIL_POINTER_BYTES_MAX) {
        return say(why, "a JSON pointer has at most 1024 bytes", "");
    }
    for (size_t i = 0; i < node->len; i++) {
        if (node->text[i] == '~' && node->text[i + 1] != '0' && node->text[i + 1] != '1') {
            return say(why, "`%.60s` has a ~ that is no escape; write ~0 for ~ and ~1 for /",
                       node->text);
        }
    }
    return true;
}

static bool status_valid(struct cfoil_node *node, char *why)
{
    const char *text = node->text;
    bool class_of = node->len == 3 && text[0] >= '1' && text[0] <= '5';
    if (class_of && text[1] == 'x' && text[2] == 'x') {
        node->number = -(text[0] - '0');
        return true;
    }
    if (class_of && text[1] >= '0' && text[1] <= '9' && text[2] >= '0' && text[2] <= '9') {
        node->number = (text[0] - '0') * 100 + (text[1] - '0') * 10 + (text[2] - '0');
        return true;
    }
    return say(why, "`%.40s` is not a status; write one from 100 to 599, or a class such as 4xx",
               text);
}

bool cfoil_placeholder_next(struct cfoil_bytes template, size_t *offset, struct cfoil_bytes *before,
                            struct cfoil_bytes *name)
{
    size_t at = *offset;
    while (at < template.len && template.data[at] != '{') {
        at++;
    }
    *before = cfoil_bytes_of(template.data + *offset, at - *offset);
    if (at == template.len) {
        *offset = at;
        return false;
    }

    size_t end = at + 1;
    while (end < template.len && template.data[end] != '}') {
        end++;
    }
    *name = cfoil_bytes_of(template.data + at + 1, end - at - 1);
    *offset = end < template.len ? end + 1 : end;
    return true;
}

/* A path with placeholders, at least one of them; a query is allowed. */
static bool path_valid(const char *path, char *why)
{
    if (path[0] != '/') {
        return say(why, "`%.60s` is not a path; it begins with /, as in /orders/by-key/{key}",
                   path);
    }
    if (path[1] == '/') {
        return say(why, "`%.60s` begins with a host, not with a path; write one / only", path);
    }
    for (const char *at = path; *at != '\0'; at++) {
        if (*at <= 0x20 || *at == 0x7F || strchr("#\"<>\\^`|", *at) != NULL) {
            return say(why, "`%.60s` has a character no URL has; percent-encode it", path);
        }
    }

    struct cfoil_bytes template = cfoil_bytes_text(path);
    struct cfoil_bytes before;
    struct cfoil_bytes name = {NULL, 0};
    size_t offset = 0;
    size_t found = 0;
    while (cfoil_placeholder_next(template, &offset, &before, &name)) {
        bool closed = name.data + name.len < template.data + template.len;
        if (!closed || !cfoil_parameter_name_valid(name)) {
            return say(why,
                       "`%.60s` has a { that begins no {name}; write {key}, or the name of one "
                       "of the pattern's parameters",
                       path);
        }
        found++;
    }
    if (found == 0) {
        return say(why, "`%.60s` is the same for every request; put {key} into it", path);
    }
    return true;
}

static bool probe_valid(const struct cfoil_node *node, char *why)
{
    if (strncmp(node->text, "GET ", 4) != 0) {
        return say(why,
                   "`%.60s` is not a probe; write GET, a space and a path, as in "
                   "\"GET /orders/by-key/{key}\"",
                   node->text);
    }
    return path_valid(node->text + 4, why);
}

static size_t digits_at(const char *text)
{
    return strspn(text, "0123456789");
}

/* What YAML would not read as a text: a number, or one of its truth values. */
static bool is_no_text(const char *text)
{
    static const char *const truths[] = {"true", "false", "yes", "no", "on", "off"};
    for (size_t i = 0; i < sizeof(truths) / sizeof(truths[0]); i++) {
        if (strcasecmp(text, truths[i]) == 0) {
            return true;
        }
    }

    const char *at = text + (*text == '-' || *text == '+');
    size_t digits = digits_at(at);
    at += digits;
    if (*at == '.') {
        size_t decimals = digits_at(at + 1);
        at += 1 + decimals;
        digits += decimals;
    }
    if (digits > 0 && (*at == 'e' || *at == 'E')) {
        at++;
        at += *at == '-' || *at == '+';
        at += digits_at(at);
    }
    return digits > 0 && *at == '\0';
}

/* U+0080 to U+009F; the others are refused by the reader of the tree. */
static bool has_control(const struct cfoil_node *node)
{
    for (size_t i = 0; i + 1 < node->len; i++) {
        uint8_t second = (uint8_t)node->text[i + 1];
        if ((uint8_t)node->text[i] == 0xC2 && second >= 0x80 && second <= 0x9F) {
            return true;
        }
    }
    return false;
}

static bool message_valid(const struct cfoil_node *node, char *why)
{
    if (strspn(node->text, " ") == node->len) {
        return say(why, "is empty; write what people shall read, or remove it", "");
    }
    if (node->len > CFOIL_MESSAGE_BYTES_MAX) {
        (void)snprintf(why, CFOIL_WHY_BYTES, "has %zu bytes; a message has at most %d, shorten it",
                       node->len, CFOIL_MESSAGE_BYTES_MAX);
        return false;
    }
    if (!node->quoted && is_no_text(node->text)) {
        return say(why, "takes a text; `%.40s` is none to YAML, write it in quotes if you mean it",
                   node->text);
    }
    return !has_control(node) ||
           say(why, "has a control character; remove it, a message is one line of text", "");
}

bool cfoil_text_valid(struct cfoil_node *node, enum cfoil_syntax syntax, char why[CFOIL_WHY_BYTES])
{
    switch (syntax) {
    case CFOIL_SYNTAX_NAME:
        return name_valid(node, why);
    case CFOIL_SYNTAX_HEADER:
    case CFOIL_SYNTAX_HEADERS:
        return header_valid(node, syntax == CFOIL_SYNTAX_HEADERS, why);
    case CFOIL_SYNTAX_POINTER:
        return pointer_valid(node, why);
    case CFOIL_SYNTAX_STATUS:
        return status_valid(node, why);
    case CFOIL_SYNTAX_PROBE:
        return probe_valid(node, why);
    case CFOIL_SYNTAX_PATH:
        return path_valid(node->text, why);
    case CFOIL_SYNTAX_MESSAGE:
        return message_valid(node, why);
    case CFOIL_SYNTAX_TEXT:
        return node->len > 0 || say(why, "must not be empty", "");
    case CFOIL_SYNTAX_NONE:
    case CFOIL_SYNTAX_ENUM:
    case CFOIL_SYNTAX_BOOL:
    case CFOIL_SYNTAX_COUNT:
    case CFOIL_SYNTAX_DURATION:
    case CFOIL_SYNTAX_SIZE:
    case CFOIL_SYNTAX_PATTERN:
        break;
    }
    return say(why, "takes no plain value", "");
}
