# SPDX-License-Identifier: Apache-2.0
"""What /proc says about the processes a test started.

Owns looking: sessions, titles, states, sockets. Ending processes is by pid and the caller's
business. Invariant: only members of the session a test opened are ever reported.
"""

import os

# Places in /proc/PID/stat, counted after the command name.
STATE, PARENT, SESSION, THREADS = 0, 1, 3, 17


def _stat(pid):
    """Fields of /proc/PID/stat after the command name."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _has_ended(fields):
    """Whether no thread is left to hold files and locks: the first one may be a zombie before others."""
    return fields is None or (fields[STATE] in "ZX" and int(fields[THREADS]) <= 1)


def state(pid):
    """The letter for the state of the first thread, or None."""
    fields = _stat(pid)
    return fields and fields[STATE]


def alive(pid):
    """True while a thread of the process runs or is stopped."""
    return not _has_ended(_stat(pid))


def session_pids(session):
    """Living processes of the session, which the first process of a server under test leads."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        fields = _stat(name)
        if not _has_ended(fields) and int(fields[SESSION]) == session:
            found.append(int(name))
    return found


def parent(pid):
    """The parent's pid, or None."""
    fields = _stat(pid)
    return fields and int(fields[PARENT])


def title(pid):
    """The process title, which nginx rewrites to "nginx: worker process" and the like."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("latin-1").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def all_stopped(pid):
    """True when every thread of the process is stopped by a signal."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return False
    states = [_stat(f"{pid}/task/{thread}") for thread in threads]
    return all(fields and fields[STATE] == "T" for fields in states)


def _socket_inode(local_port, peer_port):
    with open("/proc/net/tcp", encoding="ascii") as file:
        for line in file.readlines()[1:]:
            fields = line.split()
            local = int(fields[1].rpartition(":")[2], 16)
            peer = int(fields[2].rpartition(":")[2], 16)
            if (local, peer) == (local_port, peer_port):
                return fields[9]
    return None


def socket_owner(pids, local_port, peer_port):
    """The one of pids that holds the TCP socket (local_port, peer_port), or None."""
    inode = _socket_inode(local_port, peer_port)
    if inode in (None, "0"):
        return None
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except (FileNotFoundError, PermissionError):
            continue
        for name in names:
            try:
                if os.readlink(f"/proc/{pid}/fd/{name}") == f"socket:[{inode}]":
                    return pid
            except FileNotFoundError:
                continue
    return None
