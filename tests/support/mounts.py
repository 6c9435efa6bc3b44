# SPDX-License-Identifier: Apache-2.0
"""File systems that a test may fill up or make read-only, seen by one server alone.

The server begins its life in a mount namespace of its own, in which a small tmpfs lies over its
store's directory; the test looks in through /proc. Nothing has to be unmounted: the file system goes
with the last process that sees it. Needs root, as mounting does.
"""

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

_CLONE_NEWNS = 0x00020000
_MS_REC, _MS_PRIVATE, _MS_BIND = 0x4000, 1 << 18, 0x1000


def _call(function, *args):
    if function(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _enter(libc, directory, kib):
    _call(libc.unshare, _CLONE_NEWNS)
    _call(libc.mount, None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
    path = str(directory).encode()
    if kib is None:
        _call(libc.mount, path, path, None, ctypes.c_ulong(_MS_BIND), None)
        return
    _call(libc.mount, b"tmpfs", path, b"tmpfs", ctypes.c_ulong(0), b"mode=0700,size=%dk" % kib)


def private_mount(server, directory, kib=None):
    """The server, not started yet, will see a tmpfs of so many KiB at the directory; without a size,
    what is there, as a mount of its own."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    libc = ctypes.CDLL(None, use_errno=True)
    Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
    server.preexec = lambda: _enter(libc, directory, kib)


def seen_by(pid, path):
    """The path as the process sees it."""
    return Path(f"/proc/{pid}/root{path}")


def _within(pid, *command):
    subprocess.run(["nsenter", f"--mount=/proc/{pid}/ns/mnt", *command], check=True,
                   capture_output=True, timeout=20)


def cover_read_only(pid, directory):
    """The process's namespace sees the directory read-only from now on; files that are open stay as
    they are."""
    _within(pid, "mount", "--bind", str(directory), str(directory))
    _within(pid, "mount", "-o", "remount,bind,ro", str(directory))


def uncover(pid, directory):
    _within(pid, "umount", "--lazy", str(directory))


def fill_up(pid, directory):
    """Takes what is left of the file system with one file. Returns it, to be removed again."""
    filler = seen_by(pid, directory) / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (65536, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return filler
