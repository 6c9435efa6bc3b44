/* SPDX-License-Identifier: Apache-2.0 */
/* See profiles.h. */
#include "policy/profiles.h"

#include <assert.h>

#include "policy/limits.h"

static const struct cfoil_profile_row rows[CFOIL_PROFILE_COUNT] = {
#define CFOIL_PROFILE(id, name, statuses, answers, key_required, key_format, ttl_hours,            \
                      tombstone_hours, other_5xx, archive)                                         \
    [CFOIL_PROFILE_##id] = {name,                                                                  \
                            CFOIL_STATUSES_##statuses,                                             \
                            CFOIL_ANSWERS_##answers,                                               \
                            key_required,                                                          \
                            CFOIL_KEY_FORMAT_##key_format,                                         \
                            ttl_hours * CFOIL_HOUR_MS,                                             \
                            tombstone_hours * CFOIL_HOUR_MS,                                       \
                            CFOIL_STATE_##other_5xx,                                               \
                            archive},
#include "policy/profiles.def"
};

const struct cfoil_profile_row *cfoil_profile_row(enum cfoil_profile profile)
{
    assert((unsigned)profile < CFOIL_PROFILE_COUNT);
    return &rows[profile];
}
