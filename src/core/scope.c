/* SPDX-License-Identifier: Apache-2.0 */
/* The scope's frame (layout in scope.h). Pure; the sink does whatever is done with the bytes. */
#include "core/scope.h"

static enum cfoil_error scope_check(const struct cfoil_scope *scope)
{
    if (scope->layer.len == 0 || scope->key.len == 0) {
        return CFOIL_E_INVALID;
    }
    if (scope->kind < CFOIL_KIND_KEY || scope->kind > CFOIL_KIND_DRY_RUN) {
        return CFOIL_E_INVALID;
    }
    if (scope->tenant_class < CFOIL_TENANT_NAMED || scope->tenant_class > CFOIL_TENANT_NONE) {
        return CFOIL_E_INVALID;
    }
    if (scope->layer.len > CFOIL_LAYER_BYTES_MAX || scope->tenant.len > CFOIL_TENANT_BYTES_MAX ||
        scope->endpoint.len > CFOIL_ENDPOINT_BYTES_MAX || scope->key.len > CFOIL_KEY_BYTES_MAX) {
        return CFOIL_E_LIMIT;
    }
    return CFOIL_OK;
}

static void frame_part(struct cfoil_bytes part, cfoil_scope_sink sink, void *context)
{
    uint8_t length[4] = {(uint8_t)(part.len >> 24), (uint8_t)(part.len >> 16),
                         (uint8_t)(part.len >> 8), (uint8_t)part.len};

    sink(context, length, sizeof(length));
    if (part.len > 0) {
        sink(context, part.data, part.len);
    }
}

enum cfoil_error cfoil_scope_frame(const struct cfoil_scope *scope, cfoil_scope_sink sink,
                                   void *context)
{
    enum cfoil_error error = scope_check(scope);
    if (error != CFOIL_OK) {
        return error;
    }

    uint8_t head[2] = {CFOIL_SCOPE_VERSION, (uint8_t)scope->layer.len};
    uint8_t kinds[2] = {(uint8_t)scope->kind, (uint8_t)scope->tenant_class};
    sink(context, head, sizeof(head));
    sink(context, scope->layer.data, scope->layer.len);
    sink(context, kinds, sizeof(kinds));
    frame_part(scope->tenant, sink, context);
    frame_part(scope->endpoint, sink, context);
    frame_part(scope->key, sink, context);
    return CFOIL_OK;
}

const char *cfoil_kind_name(enum cfoil_kind kind)
{
    switch (kind) {
    case CFOIL_KIND_KEY:
        return "key";
    case CFOIL_KIND_BUSINESS:
        return "business";
    case CFOIL_KIND_GUARD:
        return "guard";
    case CFOIL_KIND_TOKEN:
        return "token";
    case CFOIL_KIND_DRY_RUN:
        return "dry_run";
    }
    return "?";
}

const char *cfoil_tenant_class_name(enum cfoil_tenant_class tenant_class)
{
    switch (tenant_class) {
    case CFOIL_TENANT_NAMED:
        return "named";
    case CFOIL_TENANT_AUTHORIZATION:
        return "authorization";
    case CFOIL_TENANT_NONE:
        return "none";
    }
    return "?";
}
