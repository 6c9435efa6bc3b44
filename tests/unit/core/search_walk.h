/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk: every interleaving of every action from one configuration, depth first, each state
 * once.
 */
#ifndef CFOIL_TEST_SEARCH_WALK_H
#define CFOIL_TEST_SEARCH_WALK_H

#include "search_world.h"

#define WALK_DEPTH_MAX 200

struct walk_step {
    unsigned actor; /* WORLD_ACTORS_MAX: none of them */
    const char *what;
    int64_t now;
    enum cfoil_state state; /* of the store afterwards */
};

struct walk_result {
    unsigned long states;
    unsigned long transitions;
    const char *broken; /* NULL: every rule held in every state */
    unsigned depth;     /* of `path`, where broken */
    struct walk_step path[WALK_DEPTH_MAX];
};

/* Walks until a rule is broken or nothing is left. Fails (false) only over states_max or memory. */
bool search_walk(const struct search_config *config, unsigned long states_max,
                 struct walk_result *result);

#endif
