# SPDX-License-Identifier: Apache-2.0
"""What a process holds: descriptors, threads and memory of its own, by /proc.

Memory of its own is anonymous memory; the pages of a store's file that happen to be mapped are not
the program's to keep. Descriptors are told apart by what they are, not by their number.
"""

import collections
import os
from dataclasses import dataclass

from support.waiting import until

LISTEN = "0A"


@dataclass(frozen=True)
class Footprint:
    descriptors: tuple
    threads: int
    anonymous_kib: int


def _tcp_states():
    """state by inode of every TCP socket."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        return {fields[9]: fields[3] for fields in map(str.split, file.readlines()[1:])}


def descriptors(pid):
    """Sorted (kind, count): "listening", "connection", "anon_inode:[eventfd]", or a file's path."""
    kinds = collections.Counter()
    states = _tcp_states()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue
        kind, _, inode = target.rstrip("]").partition(":[")
        if kind == "socket" and inode in states:
            kind = "listening" if states[inode] == LISTEN else "connection"
        kinds[kind if kind in ("socket", "pipe", "listening", "connection") else target] += 1
    return tuple(sorted(kinds.items()))


def at_rest(pid):
    """The footprint once no connection is open; idle ones are closed in their own time."""
    until(lambda: "connection" not in dict(descriptors(pid)), f"{pid} has closed its connections")
    return footprint(pid)


def footprint(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        values = dict(line.split(":", 1) for line in file)
    return Footprint(descriptors(pid), int(values["Threads"]),
                     int(values["RssAnon"].split()[0]) + int(values["RssShmem"].split()[0]))


def assert_same_descriptors(pid, before):
    """Exactly what it held before, once idle connections have been closed in their own time."""
    after = at_rest(pid)
    was, now = dict(before.descriptors), dict(after.descriptors)
    changed = {kind: (was.get(kind, 0), now.get(kind, 0)) for kind in was | now
               if was.get(kind, 0) != now.get(kind, 0)}
    assert not changed, f"descriptors before and after: {changed}"
    assert after.threads == before.threads
