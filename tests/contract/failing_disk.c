/* SPDX-License-Identifier: Apache-2.0 */
/* See failing_disk.h. The one state is what a function that replaces the C library's can have. */
#include "failing_disk.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FOR_LMDB   __attribute__((visibility("default"))) /* a library finds it in the program */
#define PAGE_BYTES 4096
#define ROOM_PAGES (UINT64_C(1) << 20)

static _Atomic int now_set;

void failing_disk_set(enum failing_disk how)
{
    atomic_store(&now_set, (int)how);
}

/* How a write of so many bytes goes: false with errno set, or true with what of it is written. */
static bool go_on(size_t *bytes)
{
    enum failing_disk how = (enum failing_disk)atomic_load(&now_set);
    bool pages = *bytes % PAGE_BYTES == 0;

    if (how == FAILING_DISK_CUT_SHORT && pages) {
        *bytes /= 2;
        return true;
    }
    bool no_room = pages ? how == FAILING_DISK_NO_ROOM : how == FAILING_DISK_META_NO_ROOM;
    bool broken = pages && how == FAILING_DISK_BROKEN;
    errno = no_room ? ENOSPC : EIO;
    return !no_room && !broken;
}

/* By its symbol, because 64-bit offsets give this name to another function here, and not in LMDB. */
ssize_t failing_pwrite(int fd, const void *data, size_t bytes,
                       off_t offset) __asm__("pwrite") FOR_LMDB;

ssize_t failing_pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    return go_on(&bytes) ? syscall(SYS_pwrite64, fd, data, bytes, offset) : -1;
}

ssize_t writev(int fd, const struct iovec *parts, int count) FOR_LMDB;

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    size_t bytes = 0;

    for (int i = 0; i < count; i++) {
        bytes += parts[i].iov_len;
    }
    size_t allowed = bytes;
    if (!go_on(&allowed)) {
        return -1;
    }
    if (allowed == bytes) {
        return syscall(SYS_writev, fd, parts, count);
    }
    size_t first = parts[0].iov_len < allowed ? parts[0].iov_len : allowed;
    return syscall(SYS_write, fd, parts[0].iov_base, first);
}

int fstatvfs(int fd, struct statvfs *disk)
{
    enum failing_disk how = (enum failing_disk)atomic_load(&now_set);
    bool has_room = how == FAILING_DISK_SOUND || how == FAILING_DISK_BROKEN;

    (void)fd;
    *disk = (struct statvfs){.f_frsize = PAGE_BYTES, .f_bavail = has_room ? ROOM_PAGES : 0};
    return 0;
}
