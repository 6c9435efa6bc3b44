/* SPDX-License-Identifier: Apache-2.0 */
/* Small files and header lines that are given to commands. */
#ifndef CFOIL_CLI_FILES_H
#define CFOIL_CLI_FILES_H

#include "core/bytes.h"

#define CFOIL_BODY_FILE_BYTES_MAX ((size_t)32 * 1024 * 1024)

/* The whole file ("-": standard input), malloc'd. NULL: complained. */
uint8_t *cfoil_file_read(const char *path, size_t bytes_max, size_t *len);

/* "Name: value" in two; views into `line`. False: complained. */
bool cfoil_header_split(const char *line, struct cfoil_bytes *name, struct cfoil_bytes *value);

/* Whether the bytes are a JSON text. */
bool cfoil_is_json(struct cfoil_bytes text);

#endif
