# SPDX-License-Identifier: Apache-2.0
"""The store fills up, by its own limit or by the disk's, and is freed again: nothing executes twice
meanwhile, what is known replays, and it goes on by itself."""

import os
import re

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, PENDING, STORE_UNAVAILABLE, UNKNOWN, assert_first,
                            assert_problem, assert_replay, assert_settled, code_of, is_replay,
                            new_key)
from support.mounts import fill_up, private_mount, seen_by
from support.waiting import until

POLICY = """
version: 1
tenant: none
defaults: {lease: 2s}
routes:
  - {name: closed, match: POST /closed}
  - {name: brief, match: POST /brief, retention: {ttl: 3s, failed: 1s}}
  - {name: open, match: POST /open, store_unavailable: open}
"""
DISK_KIB = 2048
BODY = b"x" * 1500
SETTLE_WAIT_S = 5.0
FULL_AFTER_MAX = 3000


def fill(gateway, backend, path, body=BODY):
    """Executes new keys until one is refused. Returns ({key: first answer}, the refused key)."""
    settled = {}
    for _ in range(FULL_AFTER_MAX):
        key = new_key()
        backend.script(key, Reply(201, body=body))
        answer = gateway.post(path, key)
        if answer.status != 201:
            assert_problem(answer, STORE_UNAVAILABLE)
            return settled, key
        settled[key] = answer
    raise AssertionError("the store never filled up")


@pytest.fixture
def small_map(new_gateway):
    gateway = new_gateway(POLICY, store_options="?map_size=1MiB", workers=1)
    gateway.allow_log(r"(?i)store|mdb")
    return gateway


def test_a_full_map_is_free_again_once_records_are_gone(small_map, backend):
    """The worker's own sweeper makes room: nobody has to restart anything."""
    settled, refused = fill(small_map, backend, "/brief")
    assert len(settled) > 10
    assert backend.executions(refused) <= 1
    small_map.post_until(lambda answer: answer.status == 201, "it executes again", "/brief",
                         new_key(), deadline_s=20)
    assert "the store is full" in small_map.log()


def test_a_full_map_is_free_again_after_forget(small_map, backend):
    settled, _ = fill(small_map, backend, "/closed")
    victims = list(settled)[:len(settled) // 2]
    for key in victims:
        small_map.cli("forget", "--key", key)
    small_map.cli("sweep")
    small_map.post_until(lambda answer: answer.status == 201, "it executes again", "/closed",
                         new_key())
    for key in list(settled)[len(settled) // 2:]:
        assert_settled(small_map, backend, "/closed", key, settled[key])


def test_a_full_map_still_settles_what_runs(small_map, backend):
    """New keys are refused before running ones: a claim that was given can be settled."""
    held = {}
    for _ in range(4):
        key, reply = new_key(), backend.holding(body=BODY)
        backend.script(key, reply)
        held[key] = (small_map.send("/closed", key), reply)
        backend.wait(key)
    fill(small_map, backend, "/closed")
    for key, (client, reply) in held.items():
        reply.hold.set()
        first = client.read()
        client.close()
        assert_first(first)
        assert_settled(small_map, backend, "/closed", key, first)


class Disk:
    """A gateway whose store lies on a file system of 2 MiB of its own."""

    def __init__(self, gateway):
        self.gateway = gateway
        private_mount(gateway, gateway.store_dir, DISK_KIB)
        gateway.start()
        self.fillers = []

    def fill(self, leave_bytes=0):
        filler = fill_up(self.gateway.master(), self.gateway.store_dir)
        self.fillers.append(filler)
        os.truncate(filler, filler.stat().st_size - leave_bytes)

    def free(self):
        while self.fillers:
            self.fillers.pop().unlink()


@pytest.fixture
def disk(new_gateway):
    gateway = new_gateway(POLICY, start=False, workers=1)
    gateway.allow_log(r"(?i)store|mdb")
    return Disk(gateway)


def test_a_full_disk_refuses_and_goes_on_by_itself_when_there_is_room(disk, backend):
    """Pages that were freed within the file are used up first, so some keys may still execute."""
    gateway = disk.gateway
    known = {key: gateway.post("/closed", key) for key in (new_key() for _ in range(20))}
    disk.fill()
    settled, refused = fill(gateway, backend, "/closed")
    known.update(settled)
    for _ in range(3):
        assert code_of(gateway.post("/closed", refused)) in (STORE_UNAVAILABLE, PENDING, UNKNOWN)
    for key, first in list(known.items())[::5]:
        assert_replay(gateway.post("/closed", key), first)
        assert_problem(gateway.post("/closed", key, b'{"other": 1}'), CONFLICT)
    assert backend.executions(refused) <= 1

    disk.free()
    gateway.post_until(lambda answer: answer.status == 201, "it executes again", "/closed",
                       new_key())
    answer = gateway.post_settled("/closed", refused)
    assert answer.status == 201 or code_of(answer) == UNKNOWN
    assert backend.executions(refused) == 1
    for key, first in known.items():
        assert_settled(gateway, backend, "/closed", key, first)


def refuse_claims(disk, backend):
    """Fills the disk until no new key is taken."""
    disk.fill()
    return fill(disk.gateway, backend, "/closed")


def test_a_settle_that_finds_the_disk_full_is_503_and_is_replayed_later(disk, backend, key):
    gateway = disk.gateway
    reply = backend.holding(body=b"z" * 100_000)
    backend.script(key, reply, Reply(201, body=b"a second execution"))
    client = gateway.send("/closed", key)
    backend.wait(key)
    refuse_claims(disk, backend)
    reply.hold.set()
    assert_problem(client.read(timeout_s=SETTLE_WAIT_S + 5), STORE_UNAVAILABLE)
    client.close()
    assert code_of(gateway.post("/closed", key)) in (PENDING, UNKNOWN, STORE_UNAVAILABLE)
    disk.free()
    answers = gateway.post_until(is_replay, "it settles in the background", "/closed", key)
    assert (answers[-1].status, answers[-1].body) == (201, b"z" * 100_000)
    assert {code_of(answer) for answer in answers[:-1]} <= {PENDING, UNKNOWN, STORE_UNAVAILABLE}
    assert backend.executions(key) == 1


@pytest.mark.parametrize("leave_bytes", [0, 8192], ids=["before a write", "within a write"])
def test_a_full_disk_is_called_full_in_the_log(disk, backend, key, leave_bytes):
    """It is what an operator has to know, and the operations page promises these words. A write may
    also find room for its beginning only."""
    gateway = disk.gateway
    reply = backend.holding(body=b"z" * 100_000)
    backend.script(key, reply)
    client = gateway.send("/closed", key)
    backend.wait(key)
    disk.fill(leave_bytes)
    reply.hold.set()
    until(lambda: re.search(r"\[warn\].*the store is", gateway.log()),
          "the log says what is wrong")
    assert "the store is full" in gateway.log(), gateway.log()[-1000:]
    disk.free()
    answer = client.read()
    client.close()
    assert answer.status == 201 or code_of(answer) == STORE_UNAVAILABLE
    assert backend.executions(key) == 1


def test_open_on_a_full_disk_marks_and_counts_what_it_lets_pass(disk, backend):
    gateway = disk.gateway
    refuse_claims(disk, backend)
    unprotected = 0
    for _ in range(10):
        key = new_key()
        answer = gateway.post("/open", key)
        assert_first(answer)
        mark = answer.header("Counterfoil-Unprotected")
        assert mark in (None, "store", "settle")
        unprotected += mark == "store"
        assert backend.executions(key) == 1
    assert unprotected > 0
    access = gateway.directory / "state" / "access.log"
    until(lambda: access.read_text(encoding="utf-8").count('"unprotected" "open"') == unprotected,
          "the access log counts them")
    disk.free()
    gateway.post_until(lambda again: again.status == 201
                       and again.header("Counterfoil-Unprotected") is None, "it is protected again",
                       "/open", new_key())


def test_a_disk_that_is_full_at_start_is_said_so_and_nothing_starts(new_gateway):
    gateway = new_gateway(POLICY, start=False, workers=1)
    gateway.allow_log(r"(?i)store|mdb")
    private_mount(gateway, gateway.store_dir, 4)
    with pytest.raises(AssertionError, match="the server ended with"):
        gateway.start()
    assert str(gateway.store_dir) in gateway.log()
    assert "full" in gateway.log() or "No space left" in gateway.log()


def test_the_mount_is_the_servers_own(disk):
    """The control: the test's file system is not the one that fills up."""
    assert list(disk.gateway.store_dir.iterdir()) == []
    assert (seen_by(disk.gateway.master(), disk.gateway.store_dir) / "data.mdb").exists()
