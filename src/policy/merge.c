/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h. The recursion is as deep as fields.def. */
#include "policy/merge.h"

static bool is_below(enum cfoil_field field, enum cfoil_field above)
{
    while (field != CFOIL_FIELD_ROOT) {
        field = cfoil_field_row(field)->parent;
        if (field == above) {
            return true;
        }
    }
    return false;
}

static void clear_below(struct cfoil_merged *merged, enum cfoil_field above)
{
    for (int i = 1; i < CFOIL_FIELD_COUNT; i++) {
        if (merged->at[i] != NULL && is_below((enum cfoil_field)i, above)) {
            merged->at[i] = NULL;
        }
    }
}

static void clear_other_sources(struct cfoil_merged *merged, enum cfoil_field source)
{
    for (int i = 1; i < CFOIL_FIELD_COUNT; i++) {
        enum cfoil_field other = (enum cfoil_field)i;
        if (other != source && cfoil_field_is_source(other) &&
            cfoil_field_row(other)->parent == cfoil_field_row(source)->parent) {
            merged->at[other] = NULL;
            clear_below(merged, other);
        }
    }
}

void cfoil_merge_value(struct cfoil_merged *merged, enum cfoil_field field,
                       const struct cfoil_node *value)
{
    if (value == NULL) {
        return;
    }
    bool opens = value->kind == CFOIL_NODE_MAPPING &&
                 (cfoil_field_row(field)->shapes & CFOIL_SHAPE_MAP) != 0;
    merged->at[field] = value;
    if (opens) {
        cfoil_merge_layer(merged, value);
        return;
    }
    clear_below(merged, field);

    if (cfoil_field_is_source(field)) {
        clear_other_sources(merged, field);
    }
    if (field == CFOIL_FIELD_RETENTION_TTL) {
        merged->at[CFOIL_FIELD_RETENTION_RETRY_WINDOW] = NULL;
        merged->at[CFOIL_FIELD_RETENTION_DELAY_BOUND] = NULL;
        merged->at[CFOIL_FIELD_RETENTION_OBSERVATION] = NULL;
    }
    if (field == CFOIL_FIELD_PENDING_WAIT) {
        merged->at[CFOIL_FIELD_PENDING_ACCEPT] = NULL;
    }
    if (field == CFOIL_FIELD_PENDING_ACCEPT) {
        merged->at[CFOIL_FIELD_PENDING_WAIT] = NULL;
    }
}

void cfoil_merge_layer(struct cfoil_merged *merged, const struct cfoil_node *mapping)
{
    if (mapping == NULL) {
        return;
    }
    for (const struct cfoil_node *member = mapping->first; member != NULL; member = member->next) {
        cfoil_merge_value(merged, member->field, member);
    }
}

int64_t cfoil_merged_number(const struct cfoil_merged *merged, enum cfoil_field field,
                            int64_t otherwise)
{
    return merged->at[field] != NULL ? merged->at[field]->number : otherwise;
}
