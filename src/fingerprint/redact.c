/* SPDX-License-Identifier: Apache-2.0 */
/* The reader marks what is to be cut; here it is replaced. See redact.h. */
#include "fingerprint/redact.h"

#include <stdlib.h>

#include "fingerprint/json.h"

#define REDACTED_BYTES (sizeof(CFOIL_REDACTED) - 1)

struct cfoil_redactor {
    struct cfoil_json json;
    struct cfoil_json_cuts cuts;
};

enum cfoil_error cfoil_redactor_create(struct cfoil_redactor **redactor)
{
    struct cfoil_redactor *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CFOIL_E_NO_MEMORY;
    }
    made->json.cuts = &made->cuts;
    *redactor = made;
    return CFOIL_OK;
}

void cfoil_redactor_free(struct cfoil_redactor *redactor)
{
    if (redactor == NULL) {
        return;
    }
    cfoil_json_free(&redactor->json);
    free(redactor->cuts.at);
    free(redactor);
}

enum cfoil_error cfoil_redactor_read(struct cfoil_redactor *redactor,
                                     const struct cfoil_rules *rules, struct cfoil_bytes json,
                                     size_t *cuts, size_t *len)
{
    const struct cfoil_json_cuts *found = &redactor->cuts;

    cfoil_json_reset(&redactor->json);
    redactor->cuts.count = 0;
    redactor->cuts.open = false;
    if (json.len > CFOIL_JSON_BYTES_MAX) {
        return CFOIL_E_SYNTAX;
    }
    enum cfoil_error error = cfoil_json_append(&redactor->json, json.data, json.len);
    if (error == CFOIL_OK) {
        error = cfoil_json_read(&redactor->json, rules);
    }
    if (error != CFOIL_OK) {
        return error;
    }
    *cuts = found->count;
    *len = json.len;
    for (uint32_t i = 0; i < found->count; i++) {
        *len = *len - (found->at[i].to - found->at[i].from) + REDACTED_BYTES;
    }
    return CFOIL_OK;
}

void cfoil_redactor_write(const struct cfoil_redactor *redactor, struct cfoil_bytes json,
                          uint8_t *out)
{
    const struct cfoil_json_cuts *found = &redactor->cuts;
    size_t from = 0;
    for (uint32_t i = 0; i < found->count; i++) {
        memcpy(out, json.data + from, found->at[i].from - from);
        out += found->at[i].from - from;
        memcpy(out, CFOIL_REDACTED, REDACTED_BYTES);
        out += REDACTED_BYTES;
        from = found->at[i].to;
    }
    memcpy(out, json.data + from, json.len - from);
}
