/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of fields.def as an array, and what follows from them alone. See fields.h. */
#include "policy/fields.h"

#include <assert.h>
#include <stdio.h>

#include "policy/limits.h"

#define ONE  CFOIL_SHAPE_ONE
#define LIST CFOIL_SHAPE_LIST
#define MAP  CFOIL_SHAPE_MAP
#define MAPS CFOIL_SHAPE_MAPS
#define OPEN CFOIL_SHAPE_OPEN

static const struct cfoil_field_row rows[CFOIL_FIELD_COUNT] = {
    {"", CFOIL_FIELD_ROOT, CFOIL_SHAPE_MAP, CFOIL_SYNTAX_NONE, "", 0, 0, true},
#define CFOIL_FIELD(id, parent, name, shapes, syntax, values, min, max, available)                 \
    {name, CFOIL_FIELD_##parent, shapes, CFOIL_SYNTAX_##syntax, values, min, max, available},
#include "policy/fields.def"
};

const struct cfoil_field_row *cfoil_field_row(enum cfoil_field field)
{
    assert(field < CFOIL_FIELD_COUNT);
    return &rows[field];
}

enum cfoil_field cfoil_field_members(enum cfoil_field field)
{
    if (field == CFOIL_FIELD_DEFAULTS) {
        return CFOIL_FIELD_ROUTES;
    }
    return field == CFOIL_FIELD_FILE_TENANT ? CFOIL_FIELD_TENANT : field;
}

const char *cfoil_field_path(enum cfoil_field field, char *out, unsigned out_bytes)
{
    const struct cfoil_field_row *row = cfoil_field_row(field);
    const struct cfoil_field_row *parent = cfoil_field_row(row->parent);
    const struct cfoil_field_row *above = cfoil_field_row(parent->parent);
    bool nested = row->parent != CFOIL_FIELD_ROUTES && row->parent != CFOIL_FIELD_ROOT;
    bool deep = nested && parent->parent != CFOIL_FIELD_ROUTES;

    /* The schema is at most three levels deep below a route. */
    (void)snprintf(out, out_bytes, "%s%s%s%s%s", deep ? above->name : "", deep ? "." : "",
                   nested ? parent->name : "", nested ? "." : "", row->name);
    return out;
}

bool cfoil_field_is_source(enum cfoil_field field)
{
    enum cfoil_field parent = cfoil_field_row(field)->parent;
    return (parent == CFOIL_FIELD_TENANT && field != CFOIL_FIELD_TENANT_OTHERWISE) ||
           (parent == CFOIL_FIELD_KEY && field != CFOIL_FIELD_KEY_REQUIRED &&
            field != CFOIL_FIELD_KEY_FORMAT);
}
