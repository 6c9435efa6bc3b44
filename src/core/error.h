/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two-level errors. The code says what happened, its class says what the caller can do. The codes,
 * their classes and their texts are rows of errors.def.
 *
 *   INPUT    change the argument, the file or the request; repeating it as it is cannot help
 *   STATE    the record does not allow it now; read it and decide again
 *   RETRY    repeat the same call
 *   STORE    the store does not serve; R6 says what the gateway does, an operator must look
 *   UNKNOWN  it may or may not have been applied: ask again as the same owner, never as another
 *   CORRUPT  this one record cannot be read; a store error for its key, never "absent" (R6)
 *   SYSTEM   memory or the operating system; treat like STORE, the log has the detail
 */
#ifndef CFOIL_CORE_ERROR_H
#define CFOIL_CORE_ERROR_H

#define CFOIL_MUST_CHECK __attribute__((warn_unused_result))

enum cfoil_error {
    CFOIL_OK = 0,
#define CFOIL_ERROR(name, class, text) CFOIL_E_##name,
#include "core/errors.def"
#undef CFOIL_ERROR
    CFOIL_E_COUNT
};

enum cfoil_error_class {
    CFOIL_CLASS_OK = 0,
    CFOIL_CLASS_INPUT,
    CFOIL_CLASS_STATE,
    CFOIL_CLASS_RETRY,
    CFOIL_CLASS_STORE,
    CFOIL_CLASS_UNKNOWN,
    CFOIL_CLASS_CORRUPT,
    CFOIL_CLASS_SYSTEM
};

/* The class of an error. Total: an unknown value is SYSTEM. */
enum cfoil_error_class cfoil_error_class(enum cfoil_error error);

/* The code's name without prefix ("STORE_FULL"), and its text. Static strings, never NULL. */
const char *cfoil_error_name(enum cfoil_error error);
const char *cfoil_error_text(enum cfoil_error error);

#endif
