/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ages.h"

#include <assert.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static const struct {
    int64_t bound_ms;
    const char *name;
} bounds[CFOIL_AGES_COUNT] = {
    {SECOND, "1s"},       {5 * SECOND, "5s"}, {30 * SECOND, "30s"}, {2 * MINUTE, "2m"},
    {10 * MINUTE, "10m"}, {HOUR, "1h"},       {6 * HOUR, "6h"},     {DAY, "24h"},
    {2 * DAY, "2d"},      {3 * DAY, "3d"},    {7 * DAY, "7d"},      {INT64_MAX, "later"},
};

void cfoil_ages_add(struct cfoil_ages *ages, int64_t age_ms)
{
    size_t i = 0;

    while (i < CFOIL_AGES_COUNT - 1 && age_ms >= bounds[i].bound_ms) {
        i++;
    }
    ages->count[i]++;
}

int64_t cfoil_ages_bound_ms(size_t index)
{
    assert(index < CFOIL_AGES_COUNT);
    return bounds[index].bound_ms;
}

const char *cfoil_ages_name(size_t index)
{
    assert(index < CFOIL_AGES_COUNT);
    return bounds[index].name;
}
