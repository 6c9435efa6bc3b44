/* SPDX-License-Identifier: Apache-2.0 */
/* What resolve, release and forget have in common. */
#ifndef CFOIL_CLI_OPERATOR_H
#define CFOIL_CLI_OPERATOR_H

#include "cli/records.h"

typedef enum cfoil_exit (*cfoil_operator_act)(struct cfoil_records *records,
                                              const struct cfoil_arguments *arguments,
                                              const uint8_t *id, void *context);

/* Opens the store for writing, finds the record named, acts, closes. */
enum cfoil_exit cfoil_operator_run(const struct cfoil_arguments *arguments, cfoil_operator_act act,
                                   void *context);

/*
 * How long the record will be kept once it is ended. An operator has no policy at hand, so the times
 * are those the record was claimed with, and the defaults where it does not tell. Not OK:
 * complained.
 */
enum cfoil_exit cfoil_operator_terms(struct cfoil_records *records, const uint8_t *id,
                                     struct cfoil_terms *terms);

#endif
