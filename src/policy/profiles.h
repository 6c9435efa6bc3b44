/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of profiles.def as C. */
#ifndef CFOIL_POLICY_PROFILES_H
#define CFOIL_POLICY_PROFILES_H

#include "policy/policy.h"

struct cfoil_profile_row {
    const char *name;
    enum cfoil_statuses statuses;
    enum cfoil_answers answers;
    bool key_required;
    enum cfoil_key_format key_format;
    int64_t ttl_ms;
    int64_t tombstone_ms;
    enum cfoil_state other_5xx;
    bool archive;
};

const struct cfoil_profile_row *cfoil_profile_row(enum cfoil_profile profile);

#endif
