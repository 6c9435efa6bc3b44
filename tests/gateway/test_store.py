# SPDX-License-Identifier: Apache-2.0
"""The store fills up, vanishes, is swapped: never a second execution (R6), and an honest answer."""

import ctypes
import os
import shutil
import signal

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, NOT_STORED, PENDING, STORE_UNAVAILABLE, UNKNOWN, assert_first,
                            assert_problem, assert_replay, assert_settled, code_of, is_replay,
                            new_key)
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


@pytest.fixture
def gateway(new_gateway):
    """A gateway whose store the test may break; what the log says about the store is wanted."""
    server = new_gateway(POLICY)
    server.allow_log(r"(?i)store|mdb")
    return server


@pytest.fixture
def open_gateway(new_gateway):
    """The same with one worker: when it knows that the store is back, no other is still open."""
    server = new_gateway(POLICY, workers=1)
    server.allow_log(r"(?i)store|mdb")
    return server


def wait_for_store(gateway):
    """Returns when a closed route executes again."""
    gateway.post_until(lambda answer: answer.status == 201, "the store is back", "/closed",
                       new_key())


def move_away(gateway):
    away = gateway.store_dir.with_name("away")
    os.rename(gateway.store_dir, away)
    return away


def delete(gateway):
    shutil.rmtree(gateway.store_dir)


def replace_by_empty(gateway):
    shutil.rmtree(gateway.store_dir)
    gateway.store_dir.mkdir(mode=0o700)


def empty_the_directory(gateway):
    for path in list(gateway.store_dir.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@pytest.fixture
def replace_by_another_store(new_gateway):
    """Puts a valid store of another gateway, which knows nothing, in the place of the true one."""
    def replace(gateway):
        other = new_gateway(POLICY)
        assert_first(other.post("/closed", new_key()))
        other.stop()
        shutil.rmtree(gateway.store_dir)
        shutil.move(other.store_dir, gateway.store_dir)
    return replace


def assert_refuses(gateway, backend, *keys):
    """No request executes; an unknown key is told 503, a settled one may still be replayed."""
    for key in keys:
        before = backend.executions(key)
        for _ in range(2 * gateway.workers_wanted):
            answer = gateway.post("/closed", key)
            if not (before and is_replay(answer)):
                assert_problem(answer, STORE_UNAVAILABLE)
        assert backend.executions(key) == before


def test_a_directory_missing_at_start_is_made(new_gateway, backend, key):
    gateway = new_gateway(POLICY, start=False)
    assert not gateway.store_dir.exists()
    gateway.start()
    assert gateway.store_dir.is_dir()
    assert gateway.store_dir.stat().st_mode & 0o077 == 0, "records are private"
    first = gateway.post("/closed", key)
    assert_first(first)
    assert_settled(gateway, backend, "/closed", key, first)


@pytest.mark.parametrize("damage", [delete, replace_by_empty, empty_the_directory])
def test_a_store_that_vanishes_while_running_refuses_and_never_executes_twice(gateway, backend, key,
                                                                              damage):
    assert_first(gateway.post("/closed", key))
    damage(gateway)
    assert_refuses(gateway, backend, key, new_key())


def test_a_store_swapped_for_another_refuses_and_never_executes_twice(gateway, backend, key,
                                                                      replace_by_another_store):
    assert_first(gateway.post("/closed", key))
    replace_by_another_store(gateway)
    assert_refuses(gateway, backend, key, new_key())


@pytest.mark.parametrize("event", ["reload", "respawn"])
def test_no_new_store_is_made_at_reload_or_respawn(gateway, backend, key, event):
    assert_first(gateway.post("/closed", key))
    away = move_away(gateway)
    before = set(gateway.workers())
    if event == "reload":
        os.kill(gateway.master(), signal.SIGHUP)
    else:
        for pid in before:
            gateway.kill(pid)
    until(lambda: len(gateway.workers()) == 2 and not before & set(gateway.workers()),
          "new workers")
    assert_refuses(gateway, backend, key, new_key())
    if gateway.store_dir.exists():
        assert list(gateway.store_dir.iterdir()) == []
        gateway.store_dir.rmdir()
    os.rename(away, gateway.store_dir)
    gateway.post_until(lambda answer: code_of(answer) != STORE_UNAVAILABLE, "the store is back",
                       "/closed", key)
    assert is_replay(gateway.post("/closed", key))
    assert backend.executions(key) == 1


def test_the_true_store_coming_back_ends_the_outage(gateway, backend, key):
    first = gateway.post("/closed", key)
    away = move_away(gateway)
    refused = new_key()
    assert_refuses(gateway, backend, key, refused)
    os.rename(away, gateway.store_dir)
    answers = gateway.post_until(lambda answer: answer.status == 201, "it executes", "/closed",
                                 refused)
    assert {code_of(answer) for answer in answers[:-1]} <= {PENDING, STORE_UNAVAILABLE}
    assert backend.executions(refused) == 1
    assert_settled(gateway, backend, "/closed", key, first)


def test_an_answer_that_cannot_be_settled_is_503_and_settles_later(gateway, backend, key):
    reply = backend.holding(body=b'{"order": 9}')
    backend.script(key, reply)
    client = gateway.send("/closed", key)
    backend.wait(key)
    away = move_away(gateway)
    reply.hold.set()
    assert_problem(client.read(timeout_s=SETTLE_WAIT_S + 5), STORE_UNAVAILABLE)
    assert_refuses(gateway, backend, new_key())
    os.rename(away, gateway.store_dir)
    answers = gateway.post_until(is_replay, "it settles in the background", "/closed", key)
    assert (answers[-1].status, answers[-1].body) == (201, b'{"order": 9}')
    assert {code_of(answer) for answer in answers[:-1]} <= {PENDING, UNKNOWN, STORE_UNAVAILABLE}
    assert backend.executions(key) == 1


def test_open_lets_requests_pass_and_marks_them(open_gateway, backend, key):
    gateway = open_gateway
    away = move_away(gateway)
    for _ in range(2):
        answer = gateway.post("/open", key)
        assert_first(answer)
        assert answer.header("Counterfoil-Unprotected") is not None
    assert backend.executions(key) == 2
    os.rename(away, gateway.store_dir)
    wait_for_store(gateway)
    protected = new_key()
    first = gateway.post("/open", protected)
    assert first.header("Counterfoil-Unprotected") is None
    assert_settled(gateway, backend, "/open", protected, first)


def test_open_sends_an_answer_that_cannot_be_settled_and_marks_it(open_gateway, backend, key):
    gateway = open_gateway
    reply = backend.holding()
    backend.script(key, reply)
    client = gateway.send("/open", key)
    backend.wait(key)
    away = move_away(gateway)
    reply.hold.set()
    answer = client.read(timeout_s=SETTLE_WAIT_S + 5)
    assert_first(answer)
    assert answer.header("Counterfoil-Unprotected") == "settle"
    os.rename(away, gateway.store_dir)
    wait_for_store(gateway)
    answers = gateway.post_until(is_replay, "it settles in the background", "/open", key)
    assert answers[-1].body == answer.body
    assert backend.executions(key) == 1


def fill(gateway, backend, body):
    """Executes with new keys until one is not answered 201. Returns (settled answers, last key)."""
    settled = {}
    for _ in range(5000):
        key = new_key()
        backend.script(key, Reply(201, body=body))
        answer = gateway.post("/closed", key)
        if answer.status != 201:
            assert_problem(answer, STORE_UNAVAILABLE)
            return settled, key
        settled[key] = answer
    raise AssertionError("a store of 1 MiB never filled up")


@pytest.mark.parametrize("body", [b"", b"x" * 8192], ids=["small answers", "8 KiB answers"])
def test_a_full_store_refuses_and_never_executes_twice(new_gateway, backend, body):
    gateway = new_gateway(POLICY, store_options="?map_size=1MiB", workers=1)
    gateway.allow_log(r"(?i)store|mdb")
    settled, refused = fill(gateway, backend, body)
    assert len(settled) > 10
    for _ in range(3):
        answer = gateway.post("/closed", refused)
        assert code_of(answer) in (STORE_UNAVAILABLE, PENDING)
        assert int(answer.header("Retry-After")) >= 1
        assert backend.executions(refused) <= 1
    for key, first in list(settled.items())[::20]:
        assert_replay(gateway.post("/closed", key), first)
        assert_problem(gateway.post("/closed", key, b'{"other": 1}'), CONFLICT)
    gateway.kill_all()
    gateway.store_options = "?map_size=64MiB"
    gateway.start()
    for key, first in settled.items():
        assert_settled(gateway, backend, "/closed", key, first)
    assert code_of(gateway.post_settled("/closed", refused)) in (None, UNKNOWN)
    assert backend.executions(refused) == 1
    assert {backend.executions(key) for key in settled} == {1}


def test_an_answer_too_large_for_the_store_executes_once(new_gateway, backend, key):
    gateway = new_gateway(POLICY, store_options="?map_size=1MiB", workers=1)
    gateway.allow_log(r"(?i)store|mdb")
    backend.script(key, Reply(201, body=b"x" * (1000 << 10)))
    answer = gateway.post("/closed", key)
    assert answer.status == 201 or code_of(answer) == STORE_UNAVAILABLE
    for _ in range(5):
        again = gateway.post("/closed", key)
        assert code_of(again) in (PENDING, UNKNOWN, STORE_UNAVAILABLE, NOT_STORED)
    assert backend.executions(key) == 1
    gateway.kill_all()


@pytest.fixture
def lock(gateway):
    """Holds LMDB's write lock from outside, as a frozen process or a stuck disk would."""
    lmdb = ctypes.CDLL("liblmdb.so.0")
    env, txn = ctypes.c_void_p(), ctypes.c_void_p()
    assert lmdb.mdb_env_create(ctypes.byref(env)) == 0
    assert lmdb.mdb_env_set_maxdbs(env, 16) == 0
    path = str(gateway.store_dir).encode()
    assert lmdb.mdb_env_open(env, path, 0, 0o600) == 0
    assert lmdb.mdb_txn_begin(env, None, 0, ctypes.byref(txn)) == 0
    yield lambda: lmdb.mdb_txn_abort(txn)
    lmdb.mdb_env_close(env)


def test_a_claim_the_store_does_not_answer_is_told_so_and_runs_later(gateway, lock, backend, key):
    refused = gateway.post("/closed", key, timeout_s=20)
    lock()
    assert refused.status == 503
    assert b"IDEMPOTENCY_STORE_UNAVAILABLE" in refused.body
    assert backend.of(key) == []
    until(lambda: gateway.post("/closed", key).status == 201, "the claim runs once the store answers")
    assert len(backend.of(key)) == 1
