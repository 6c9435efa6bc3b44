# SPDX-License-Identifier: Apache-2.0
"""The store turns read-only, under a running gateway or before it opens it: refused, said so, never
executed twice, and over by itself."""

import os
import subprocess

import pytest

from support.backend import Reply
from support.expect import (PENDING, STORE_UNAVAILABLE, UNKNOWN, assert_first, assert_problem,
                            assert_replay, assert_settled, code_of, is_replay, new_key)
from support.mounts import cover_read_only, private_mount, uncover
from support.waiting import until

POLICY = """
version: 1
tenant: none
defaults: {lease: 2s}
routes:
  - {name: closed, match: POST /closed}
  - {name: open, match: POST /open, store_unavailable: open}
"""
SETTLE_WAIT_S = 5.0


def set_immutable(path, on):
    return subprocess.run(["chattr", "+i" if on else "-i", path], capture_output=True,
                          check=False, timeout=20).returncode == 0


@pytest.fixture
def frozen(new_gateway):
    """(gateway, freeze, thaw) where freeze makes every write to the open data file fail. One worker,
    for each finds out by itself that a store is back."""
    gateway = new_gateway(POLICY, workers=1)
    gateway.allow_log(r"(?i)store|mdb")
    data = gateway.store_dir / "data.mdb"

    def freeze():
        if not set_immutable(data, True):
            pytest.skip("no file can be made immutable here")

    yield gateway, freeze, lambda: set_immutable(data, False)
    set_immutable(data, False)


def refused(gateway, backend, key):
    """A new key is refused, however often it comes, and reaches no backend."""
    for _ in range(4):
        assert_problem(gateway.post("/closed", key), STORE_UNAVAILABLE)
    assert backend.executions(key) == 0


def test_a_file_that_cannot_be_written_refuses_claims_and_recovers(frozen, backend, key):
    gateway, freeze, thaw = frozen
    known = new_key()
    first = gateway.post("/closed", known)
    freeze()
    refused(gateway, backend, key)
    for _ in range(4):
        again = gateway.post("/closed", known)
        assert is_replay(again) or code_of(again) == STORE_UNAVAILABLE
    thaw()
    answers = gateway.post_until(lambda answer: answer.status == 201, "it executes", "/closed", key)
    assert {code_of(answer) for answer in answers[:-1]} <= {STORE_UNAVAILABLE, PENDING}
    assert_settled(gateway, backend, "/closed", key, answers[-1])
    assert_settled(gateway, backend, "/closed", known, first)
    assert (backend.executions(key), backend.executions(known)) == (1, 1)


def test_a_settle_that_cannot_be_written_is_503_and_is_replayed_later(frozen, backend, key):
    gateway, freeze, thaw = frozen
    reply = backend.holding(body=b'{"order": 4}')
    backend.script(key, reply, Reply(201, body=b"a second execution"))
    client = gateway.send("/closed", key)
    backend.wait(key)
    freeze()
    reply.hold.set()
    assert_problem(client.read(timeout_s=SETTLE_WAIT_S + 5), STORE_UNAVAILABLE)
    client.close()
    assert code_of(gateway.post("/closed", key)) in (PENDING, UNKNOWN, STORE_UNAVAILABLE)
    thaw()
    answer = gateway.post_until(is_replay, "it settles in the background", "/closed", key)[-1]
    assert (answer.status, answer.body) == (201, b'{"order": 4}')
    assert backend.executions(key) == 1


def test_open_passes_and_marks_what_cannot_be_written(frozen, backend, key):
    gateway, freeze, _ = frozen
    freeze()
    for count in (1, 2):
        answer = gateway.post("/open", key)
        assert_first(answer)
        assert answer.header("Counterfoil-Unprotected") == "store"
        assert backend.executions(key) == count


@pytest.fixture
def mounted(new_gateway):
    """A gateway in a mount namespace of its own, where its store can be made read-only."""
    gateway = new_gateway(POLICY, start=False, workers=1)
    gateway.allow_log(r"(?i)store|mdb")
    private_mount(gateway, gateway.store_dir)
    return gateway.start()


def test_workers_that_begin_on_a_read_only_file_system_refuse_and_recover(mounted, backend, key):
    gateway = mounted
    known = new_key()
    first = gateway.post("/closed", known)
    assert_first(first)
    cover_read_only(gateway.master(), gateway.store_dir)
    gateway.kill(gateway.workers()[0])
    until(gateway.workers, "a new worker")
    refused(gateway, backend, key)
    for _ in range(4):
        again = gateway.post("/closed", known)
        assert is_replay(again) or code_of(again) == STORE_UNAVAILABLE
    uncover(gateway.master(), gateway.store_dir)
    answers = gateway.post_until(lambda answer: answer.status == 201, "it executes", "/closed", key)
    assert {code_of(answer) for answer in answers[:-1]} <= {STORE_UNAVAILABLE, PENDING}
    assert_replay(gateway.post("/closed", known), first)
    assert (backend.executions(key), backend.executions(known)) == (1, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_read_only_store_at_start_is_said_so_and_nothing_starts(new_gateway, backend, key):
    """The master opens it first; without it nginx does not start. Nothing is changed meanwhile."""
    gateway = new_gateway(POLICY)
    gateway.allow_log(r"(?i)store|mdb")
    first = gateway.post("/closed", key)
    gateway.stop()
    private_mount(gateway, gateway.store_dir)
    writable = gateway.preexec

    def read_only():
        writable()
        subprocess.run(["mount", "-o", "remount,bind,ro", str(gateway.store_dir)], check=True)

    gateway.preexec = read_only
    with pytest.raises(AssertionError, match="the server ended with"):
        gateway.start()
    assert "read-only" in gateway.log().lower()
    gateway.preexec = None
    gateway.start()
    assert_settled(gateway, backend, "/closed", key, first)
