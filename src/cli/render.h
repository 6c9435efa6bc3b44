/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record as people and machines read it. The JSON has the fields DESIGN.md names and some more;
 * times are RFC 3339 in UTC with milliseconds, null where unset; bytes that are not UTF-8 become
 * U+FFFD, because JSON is text.
 */
#ifndef CFOIL_CLI_RENDER_H
#define CFOIL_CLI_RENDER_H

#include <jansson.h>

#include "cli/terminal.h"
#include "core/protocol.h"

#define CFOIL_TIME_TEXT_BYTES   32
#define CFOIL_TENANT_TEXT_BYTES (CFOIL_TENANT_BYTES_MAX + 8)

/* "2026-11-30T22:46:29.123Z"; "-" for 0. */
const char *cfoil_time_text(int64_t ms, char out[CFOIL_TIME_TEXT_BYTES]);

/* The tenant as listings and --tenant write it: its name, "auth:HEX", or "-" for the anonymous one. */
struct cfoil_bytes cfoil_tenant_text(const struct cfoil_scope *scope,
                                     char out[CFOIL_TENANT_TEXT_BYTES]);

/* Why a record is in doubt, in one word; NULL for CFOIL_CAUSE_NONE. */
const char *cfoil_cause_name(enum cfoil_cause cause);

/* A string of any bytes; NULL without memory. */
json_t *cfoil_text_json(struct cfoil_bytes text);

/* A new object (the caller's), or NULL without memory. now_ms is store time. */
json_t *cfoil_record_json(const uint8_t *id, const struct cfoil_record *record, int64_t now_ms);

/* The object of a record that cannot be read: id, state CORRUPT and why. */
json_t *cfoil_corrupt_json(const uint8_t *id, enum cfoil_error error);

/* Prints one object on one line (compact) or over several, and gives it up. False: no memory. */
bool cfoil_json_print(json_t *object, bool compact);

/* Prints a record over several lines for people. */
void cfoil_record_print(const uint8_t *id, const struct cfoil_record *record, int64_t now_ms,
                        bool colour);

/* Prints a listing's head, and one row. */
void cfoil_row_head_print(void);
void cfoil_row_print(const uint8_t *id, const struct cfoil_record *record, int64_t now_ms,
                     bool colour);
void cfoil_row_corrupt_print(const uint8_t *id, enum cfoil_error error, bool colour);

#endif
