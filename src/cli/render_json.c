/* SPDX-License-Identifier: Apache-2.0 */
/* Records as JSON. See render.h. */
#include <stdlib.h>

#include "cli/render.h"
#include "fingerprint/digest.h"

static const char *const cause_names[CFOIL_CAUSE_COUNT] = {
    [CFOIL_CAUSE_NONE] = NULL,         [CFOIL_CAUSE_BACKEND_CLOSED] = "backend_closed",
    [CFOIL_CAUSE_TIMEOUT] = "timeout", [CFOIL_CAUSE_BAD_GATEWAY] = "bad_gateway",
    [CFOIL_CAUSE_STATUS] = "status",   [CFOIL_CAUSE_OWNER_LOST] = "owner_lost",
};

const char *cfoil_cause_name(enum cfoil_cause cause)
{
    return cause_names[cause];
}

/* Whether a sequence is UTF-8 at all; control characters are, and are escaped at the end. */
static size_t utf8_len(struct cfoil_bytes text)
{
    if (text.data[0] < 0x80) {
        return 1;
    }
    /* C1 controls are printable to nobody but valid to JSON. */
    if (text.len >= 2 && text.data[0] == 0xC2 && text.data[1] >= 0x80 && text.data[1] < 0xA0) {
        return 2;
    }
    return cfoil_utf8_printable(text);
}

json_t *cfoil_text_json(struct cfoil_bytes text)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    char *copy = malloc(3 * text.len + 1);
    if (copy == NULL) {
        return NULL;
    }
    size_t len = 0;
    for (size_t at = 0; at < text.len;) {
        size_t good = utf8_len(cfoil_bytes_of(text.data + at, text.len - at));
        memcpy(copy + len, good > 0 ? (const char *)text.data + at : replacement,
               good > 0 ? good : 3);
        len += good > 0 ? good : 3;
        at += good > 0 ? good : 1;
    }
    json_t *json = json_stringn(copy, len);
    free(copy);
    return json;
}

static json_t *json_time(int64_t ms)
{
    char text[CFOIL_TIME_TEXT_BYTES];
    return ms > 0 ? json_string(cfoil_time_text(ms, text)) : json_null();
}

static json_t *json_hex(const uint8_t *data, size_t len)
{
    char hex[2 * CFOIL_DIGEST_BYTES + 1];
    cfoil_hex(data, len, hex);
    return json_string(hex);
}

static json_t *json_optional(struct cfoil_bytes text)
{
    return text.len > 0 ? cfoil_text_json(text) : json_null();
}

static json_t *json_tenant(const struct cfoil_scope *scope)
{
    char text[CFOIL_TENANT_TEXT_BYTES];
    return scope->tenant_class == CFOIL_TENANT_NONE
               ? json_null()
               : cfoil_text_json(cfoil_tenant_text(scope, text));
}

static json_t *json_snapshot(const struct cfoil_snapshot *snapshot)
{
    if (snapshot->status == 0) {
        return json_null();
    }
    json_t *headers = json_array();
    size_t cursor = 0;
    struct cfoil_bytes name;
    struct cfoil_bytes value;
    while (cfoil_headers_next(snapshot->headers, &cursor, &name, &value)) {
        json_t *pair = json_array();
        (void)json_array_append_new(pair, cfoil_text_json(name));
        (void)json_array_append_new(pair, cfoil_text_json(value));
        (void)json_array_append_new(headers, pair);
    }
    json_t *object = json_object();
    (void)json_object_set_new(object, "status", json_integer(snapshot->status));
    (void)json_object_set_new(object, "headers", headers);
    (void)json_object_set_new(object, "body_bytes", json_integer((json_int_t)snapshot->body.len));
    return object;
}

static json_t *json_resource(const struct cfoil_resource *resource)
{
    if (resource->type.len == 0) {
        return json_null();
    }
    json_t *object = json_object();
    (void)json_object_set_new(object, "type", cfoil_text_json(resource->type));
    (void)json_object_set_new(object, "id", cfoil_text_json(resource->id));
    return object;
}

json_t *cfoil_record_json(const uint8_t *id, const struct cfoil_record *record, int64_t now_ms)
{
    const int64_t *at = record->at_ms;
    const char *state = cfoil_state_name(cfoil_record_effective(record, now_ms));
    const char *cause = cfoil_cause_name(record->cause);
    const struct {
        const char *name;
        json_t *value;
    } fields[] = {
        {"id", json_hex(id, CFOIL_SCOPE_ID_BYTES)},
        {"layer", cfoil_text_json(record->scope.layer)},
        {"kind", json_string(cfoil_kind_name(record->scope.kind))},
        {"tenant_class", json_string(cfoil_tenant_class_name(record->scope.tenant_class))},
        {"tenant", json_tenant(&record->scope)},
        {"endpoint", cfoil_text_json(record->scope.endpoint)},
        {"key", cfoil_text_json(record->scope.key)},
        {"state", json_string(state)},
        {"attempt", json_integer(record->attempt)},
        {"fence", json_integer((json_int_t)record->fence)},
        {"life", json_time(at[CFOIL_TIME_LIFE])},
        {"updated", json_time(at[CFOIL_TIME_UPDATED])},
        {"request_hash", json_hex(record->fingerprint.request_hash, CFOIL_DIGEST_BYTES)},
        {"lease_until", json_time(at[CFOIL_TIME_LEASE_UNTIL])},
        {"replay_until", json_time(at[CFOIL_TIME_REPLAY_UNTIL])},
        {"gone_at", json_time(at[CFOIL_TIME_GONE_AT])},
        {"in_doubt_since", json_time(at[CFOIL_TIME_IN_DOUBT_SINCE])},
        {"cause", cause != NULL ? json_string(cause) : json_null()},
        {"first_request_id", json_optional(record->first_request_id)},
        {"reason", json_optional(record->reason)},
        {"snapshot", json_snapshot(&record->snapshot)},
        {"resource", json_resource(&record->resource)},
    };

    json_t *object = json_object();
    int failed = object == NULL;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        failed |= json_object_set_new(object, fields[i].name, fields[i].value);
    }
    if (failed != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *cfoil_corrupt_json(const uint8_t *id, enum cfoil_error error)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "id", json_hex(id, CFOIL_SCOPE_ID_BYTES));
    (void)json_object_set_new(object, "state", json_string("CORRUPT"));
    (void)json_object_set_new(object, "error", json_string(cfoil_error_name(error)));
    return object;
}

/*
 * JSON may hold DEL and the C1 controls as they are, and a terminal may obey them: they are written as
 * escapes, like the controls that JSON forbids. They only stand inside of strings.
 */
static bool print_escaping(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        bool c1 = *at == '\xC2' && (at[1] & 0xE0) == 0x80;
        if (*at == 0x7F || c1) {
            at += c1 ? 1 : 0;
            (void)printf("\\u%04x", (unsigned)(unsigned char)*at);
        } else {
            (void)putchar(*at);
        }
    }
    (void)putchar('\n');
    return ferror(stdout) == 0;
}

bool cfoil_json_print(json_t *object, bool compact)
{
    if (object == NULL) {
        return false;
    }
    char *text = json_dumps(object, compact ? 0 : JSON_INDENT(2));
    bool printed = text != NULL && print_escaping(text);
    free(text);
    json_decref(object);
    return printed;
}
