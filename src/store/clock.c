/* SPDX-License-Identifier: Apache-2.0 */
/* Store time; the rule is in clock.h. */
#include "store/clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_ms(clockid_t which)
{
    struct timespec now;

    (void)clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t system_boot_ms(void *context)
{
    (void)context;
    return clock_ms(CLOCK_BOOTTIME);
}

static int64_t system_wall_ms(void *context)
{
    (void)context;
    return clock_ms(CLOCK_REALTIME);
}

static enum cfoil_error read_boot_id(char *boot_id, size_t bytes)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return CFOIL_E_SYSTEM;
    }
    ssize_t got = read(fd, boot_id, bytes - 1);
    (void)close(fd);
    if (got <= 0) {
        return CFOIL_E_SYSTEM;
    }
    boot_id[strcspn(boot_id, "\n")] = '\0';
    return CFOIL_OK;
}

enum cfoil_error cfoil_timebase_init(struct cfoil_timebase *time, const struct cfoil_clock *clock)
{
    time->source = *clock;
    if (time->source.boot_ms == NULL) {
        time->source.boot_ms = system_boot_ms;
    }
    if (time->source.wall_ms == NULL) {
        time->source.wall_ms = system_wall_ms;
    }
    atomic_init(&time->offset_ms, 0);
    atomic_init(&time->latest_ms, 1);
    memset(time->boot_id, 0, sizeof(time->boot_id));
    if (clock->boot_id == NULL) {
        return read_boot_id(time->boot_id, sizeof(time->boot_id));
    }
    memcpy(time->boot_id, clock->boot_id, strnlen(clock->boot_id, sizeof(time->boot_id) - 1));
    return CFOIL_OK;
}

/* Raises `latest` to at least `ms` and returns what it is then. */
static int64_t raise_latest(struct cfoil_timebase *time, int64_t ms)
{
    int64_t latest = atomic_load(&time->latest_ms);

    while (latest < ms && !atomic_compare_exchange_weak(&time->latest_ms, &latest, ms)) {
    }
    return latest < ms ? ms : latest;
}

void cfoil_timebase_anchor(struct cfoil_timebase *time, int64_t high_water_ms)
{
    int64_t start_ms = time->source.wall_ms(time->source.context);

    if (high_water_ms > 0 && start_ms < high_water_ms + CFOIL_CLOCK_MARGIN_MS) {
        start_ms = high_water_ms + CFOIL_CLOCK_MARGIN_MS;
    }
    if (start_ms < 1) {
        start_ms = 1;
    }
    cfoil_timebase_adopt(time, start_ms - time->source.boot_ms(time->source.context),
                         high_water_ms);
}

void cfoil_timebase_adopt(struct cfoil_timebase *time, int64_t offset_ms, int64_t high_water_ms)
{
    atomic_store(&time->offset_ms, offset_ms);
    (void)raise_latest(time, high_water_ms);
}

int64_t cfoil_timebase_under(const struct cfoil_timebase *time, int64_t offset_ms)
{
    return time->source.boot_ms(time->source.context) + offset_ms;
}

int64_t cfoil_timebase_now(struct cfoil_timebase *time)
{
    return raise_latest(time, cfoil_timebase_under(time, atomic_load(&time->offset_ms)));
}
