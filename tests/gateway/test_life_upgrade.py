# SPDX-License-Identifier: Apache-2.0
"""A new binary under a running master (USR2, WINCH, QUIT): two masters share the store for a while,
and the change can be taken back."""

import os
import signal

import pytest

from support import procs
from support.daemon import Daemon
from support.expect import (PENDING, assert_first, assert_problem, assert_replay, assert_settled,
                            new_key)
from support.load import Load
from support.waiting import until

POLICY = """
version: 1
tenant: authorization
defaults: {lease: 1s}
routes:
  - {name: plain, match: POST /plain}
"""
LOGIN = [("Authorization", "Bearer one")]


@pytest.fixture
def daemon(tmp_path, backend):
    server = Daemon(tmp_path / "daemon", backend, policy=POLICY, workers=2,
                    server=f"location / {{ counterfoil on; proxy_pass {backend.url}; }}")
    try:
        yield server.start()
        server.stop()
        assert server.bad_lines() == []
    finally:
        server.close()


def hold(server, backend):
    key, reply = new_key(), backend.holding()
    backend.script(key, reply)
    client = server.send("/plain", key, headers=LOGIN)
    backend.wait(key)
    return key, client, reply


def leave(server, master):
    """QUIT: returns when this master has ended."""
    os.kill(master, signal.SIGQUIT)
    until(lambda: not procs.alive(master), "the old master ends")
    assert len(server.masters()) == 1


def test_a_new_binary_takes_over_and_what_the_old_one_holds_is_answered(daemon, backend):
    known = new_key()
    first = daemon.post("/plain", known, headers=LOGIN)
    held = hold(daemon, backend)
    old, new = daemon.start_new_binary()
    os.kill(old, signal.SIGWINCH)
    until(lambda: not daemon.workers_of(old), "the old workers are leaving")
    assert procs.alive(old)

    assert_settled(daemon, backend, "/plain", known, first, headers=LOGIN)
    key, client, reply = held
    assert_problem(daemon.post("/plain", key, headers=LOGIN), PENDING)
    reply.hold.set()
    answer = client.read()
    assert_first(answer)
    client.close()
    leave(daemon, old)
    assert daemon.master() == new
    assert_settled(daemon, backend, "/plain", key, answer, headers=LOGIN)
    assert backend.executions(key) == 1


def test_both_masters_at_once_make_one_execution_of_a_key(daemon, backend):
    old, new = daemon.start_new_binary()
    sides = {}
    for master in (old, new):
        worker = daemon.workers_of(master)[0]
        sides[master], = daemon.clients_on(worker, 1)
    for first_side, second_side in ((old, new), (new, old)):
        key, reply = new_key(), backend.holding()
        backend.script(key, reply)
        daemon.send("/plain", key, headers=LOGIN, client=sides[first_side])
        backend.wait(key)
        there = daemon.post("/plain", key, headers=LOGIN, client=sides[second_side])
        assert_problem(there, PENDING)
        reply.hold.set()
        first = sides[first_side].read()
        assert_first(first)
        assert_replay(daemon.post("/plain", key, headers=LOGIN, client=sides[second_side]), first)
        assert backend.executions(key) == 1


def test_an_upgrade_under_load_loses_nothing_and_runs_nothing_twice(daemon, backend):
    with Load(daemon, "/plain") as load:
        for _ in range(3):
            sent = len(load.answers)
            old, _ = daemon.start_new_binary()
            os.kill(old, signal.SIGWINCH)
            until(lambda old=old: not daemon.workers_of(old), "the old workers are leaving")
            until(lambda sent=sent: len(load.answers) > sent + 20, "requests go on")
            leave(daemon, old)
    load.assert_whole(backend)


def test_an_upgrade_that_is_taken_back_loses_nothing(daemon, backend):
    with Load(daemon, "/plain") as load:
        old, new = daemon.start_new_binary()
        os.kill(old, signal.SIGWINCH)
        until(lambda: not daemon.workers_of(old), "the old workers are leaving")
        sent = len(load.answers)
        until(lambda: len(load.answers) > sent + 20, "the new ones serve")
        os.kill(old, signal.SIGHUP)
        until(lambda: len(daemon.workers_of(old)) == 2, "the old master has workers again")
        leave(daemon, new)
        sent = len(load.answers)
        until(lambda: len(load.answers) > sent + 20, "the old ones serve")
    assert daemon.master() == old
    load.assert_whole(backend)
