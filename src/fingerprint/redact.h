/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values cut out of a JSON text, by pointers: every other byte stays as it is. A value that is cut out
 * becomes the text CFOIL_REDACTED, whatever it was.
 *
 * Only what the reader of the canonical form accepts can be redacted, for what it refuses might be read
 * in another way by others (two members of one name, say), and hold the value somewhere else.
 *
 * Threads: a redactor belongs to one thread and holds one document at a time. It keeps its memory for
 * the next one, up to a few MiB.
 */
#ifndef CFOIL_FINGERPRINT_REDACT_H
#define CFOIL_FINGERPRINT_REDACT_H

#include "fingerprint/fingerprint.h"

#define CFOIL_REDACTED "\"[redacted]\""

struct cfoil_redactor;

/* Errors: NO_MEMORY. free takes NULL. */
CFOIL_MUST_CHECK enum cfoil_error cfoil_redactor_create(struct cfoil_redactor **redactor);
void cfoil_redactor_free(struct cfoil_redactor *redactor);

/*
 * Reads a document; what the rules ignore is to be cut out. *cuts is how many values that are, *len the
 * length without them. Errors: SYNTAX (it cannot be redacted), NO_MEMORY.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_redactor_read(struct cfoil_redactor *redactor,
                                                      const struct cfoil_rules *rules,
                                                      struct cfoil_bytes json, size_t *cuts,
                                                      size_t *len);

/* Writes the document that was read, given again, to `out`, which has room for `len` bytes. */
void cfoil_redactor_write(const struct cfoil_redactor *redactor, struct cfoil_bytes json,
                          uint8_t *out);

#endif
