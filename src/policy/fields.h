/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema's rows as C: one number per field of fields.def, and what each column says.
 */
#ifndef CFOIL_POLICY_FIELDS_H
#define CFOIL_POLICY_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

enum cfoil_field {
    CFOIL_FIELD_ROOT,
#define CFOIL_FIELD(id, parent, name, shapes, syntax, values, min, max, available) CFOIL_FIELD_##id,
#include "policy/fields.def"
    CFOIL_FIELD_COUNT
};

/* What a value may look like; a field may allow several. */
enum cfoil_shape {
    CFOIL_SHAPE_ONE = 1,  /* a scalar */
    CFOIL_SHAPE_LIST = 2, /* a list of scalars */
    CFOIL_SHAPE_MAP = 4,  /* a mapping whose members are the rows below it */
    CFOIL_SHAPE_MAPS = 8, /* a list of such mappings */
    CFOIL_SHAPE_OPEN = 16 /* a mapping with any members */
};

/* How a scalar is read. */
enum cfoil_syntax {
    CFOIL_SYNTAX_NONE,     /* no scalar is allowed */
    CFOIL_SYNTAX_TEXT,     /* anything but nothing */
    CFOIL_SYNTAX_MESSAGE,  /* a text for people */
    CFOIL_SYNTAX_NAME,     /* a route's name */
    CFOIL_SYNTAX_ENUM,     /* one of the row's values */
    CFOIL_SYNTAX_BOOL,     /* true or false; "!true" in the values: true is not available */
    CFOIL_SYNTAX_COUNT,    /* a whole number */
    CFOIL_SYNTAX_DURATION, /* ms s m h d */
    CFOIL_SYNTAX_SIZE,     /* B KiB MiB */
    CFOIL_SYNTAX_STATUS,   /* 404 or 4xx */
    CFOIL_SYNTAX_HEADER,   /* a header's name */
    CFOIL_SYNTAX_HEADERS,  /* a header's name, or a prefix and "*" */
    CFOIL_SYNTAX_POINTER,  /* a JSON pointer */
    CFOIL_SYNTAX_PATTERN,  /* METHOD|METHOD /path/{name}/... */
    CFOIL_SYNTAX_PROBE,    /* GET /path/{key} */
    CFOIL_SYNTAX_PATH      /* /path/{key} */
};

struct cfoil_field_row {
    const char *name;
    enum cfoil_field parent;
    unsigned shapes;
    enum cfoil_syntax syntax;
    const char *values; /* separated by spaces; "!" before one that is not available */
    int64_t min;
    int64_t max;
    bool available;
};

const struct cfoil_field_row *cfoil_field_row(enum cfoil_field field);

/*
 * Whose rows the members of a field's mapping are: its own, but `defaults` takes a route's fields
 * and the file's `tenant` those of a route's.
 */
enum cfoil_field cfoil_field_members(enum cfoil_field field);

/* "retention.ttl": as people say it, without "routes". Static texts are joined into `out`. */
const char *cfoil_field_path(enum cfoil_field field, char *out, unsigned out_bytes);

/* Whether the field names a place where a key or a tenant stands; each has one. */
bool cfoil_field_is_source(enum cfoil_field field);

#endif
