/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printing for people: colour where it is wanted, and text of strangers without control characters,
 * so that nothing a client sent can steer the operator's terminal.
 */
#ifndef CFOIL_CLI_TERMINAL_H
#define CFOIL_CLI_TERMINAL_H

#include <stdio.h>

#include "core/record.h"

/* Colour only on a terminal, and not with a non-empty NO_COLOR. */
bool cfoil_colour_wanted(FILE *file);

/* Prints bytes as text: control characters and invalid UTF-8 become "?". Returns the columns used. */
size_t cfoil_text_print(FILE *file, struct cfoil_bytes text);

/* As above, cut to `columns` (with "…" where cut) and filled up with blanks. */
void cfoil_text_print_cell(FILE *file, struct cfoil_bytes text, size_t columns);

/* A state's name, coloured if `colour`, filled up to `columns`. */
void cfoil_state_print(FILE *file, const char *name, bool colour, size_t columns);

/* Length of the valid UTF-8 sequence at `text`, or 0 if there is none (or a control character). */
size_t cfoil_utf8_printable(struct cfoil_bytes text);

#endif
