/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules as an outsider sees them. Each check returns NULL, or the rule that was broken and how,
 * as static text. Nothing here changes the world.
 */
#ifndef CFOIL_TEST_SEARCH_CHECK_H
#define CFOIL_TEST_SEARCH_CHECK_H

#include "search_world.h"

/* What was decided on a view: R2, R9. */
const char *check_decision(const struct actor *actor, const struct cfoil_effect *effect,
                           enum cfoil_event_kind kind);

/* What a cas makes of the store: R1 (as policy allows), R2, R5, R9, R11. `after` is stamped. */
const char *check_applied(const struct search_config *config, const struct world *world,
                          enum cfoil_event_kind kind, uint8_t token, const struct cell *after);

/* The world after any action: R1, and what the backend was made to execute. */
const char *check_world(const struct search_config *config, const struct world *world);

#endif
