/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that fails LMDB's writes as told, and says how much room it has left. Whoever links this has
 * pwrite, writev and fstatvfs from here, LMDB too.
 *
 * Invariant: a commit writes whole pages first, with pwrite or writev, and then one of the two meta
 * pages with a pwrite that is shorter than a page; that tells them apart.
 *
 * Threads: may be told while a lane's thread writes.
 */
#ifndef CFOIL_TESTS_FAILING_DISK_H
#define CFOIL_TESTS_FAILING_DISK_H

enum failing_disk {
    FAILING_DISK_SOUND,
    FAILING_DISK_NO_ROOM,      /* pages: ENOSPC; no room is left */
    FAILING_DISK_CUT_SHORT,    /* pages: the first half is written; no room is left */
    FAILING_DISK_BROKEN,       /* pages: EIO; there is room */
    FAILING_DISK_META_NO_ROOM, /* the meta page: ENOSPC; no room is left */
};

/* From now on. */
void failing_disk_set(enum failing_disk how);

#endif
