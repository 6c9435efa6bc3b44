/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of errors.def as functions. Total over every int, because codes cross process borders.
 */
#include "core/error.h"

#include <stddef.h>

struct error_row {
    const char *name;
    const char *text;
    enum cfoil_error_class class;
};

static const struct error_row rows[CFOIL_E_COUNT] = {
    [CFOIL_OK] = {"OK", "no error", CFOIL_CLASS_OK},
#define CFOIL_ERROR(name, class, text) [CFOIL_E_##name] = {#name, text, CFOIL_CLASS_##class},
#include "core/errors.def"
#undef CFOIL_ERROR
};

static const struct error_row unknown = {"?", "unknown error", CFOIL_CLASS_SYSTEM};

static const struct error_row *row_of(enum cfoil_error error)
{
    if ((unsigned)error >= CFOIL_E_COUNT) {
        return &unknown;
    }
    return &rows[error];
}

enum cfoil_error_class cfoil_error_class(enum cfoil_error error)
{
    return row_of(error)->class;
}

const char *cfoil_error_name(enum cfoil_error error)
{
    return row_of(error)->name;
}

const char *cfoil_error_text(enum cfoil_error error)
{
    return row_of(error)->text;
}
