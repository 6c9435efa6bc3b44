# SPDX-License-Identifier: Apache-2.0
"""Reload and quit with requests in flight: they complete, settle, and are replayed afterwards."""

import os
import signal
import time

import pytest

from support.expect import (CONFLICT, PENDING, UNKNOWN, assert_first, assert_problem,
                            assert_settled, is_replay)
from support.waiting import until

LEASE_S = 1.0
POLICY = """
version: 1
tenant: none
defaults: {lease: 1s}
routes:
  - {name: plain, match: POST /plain}
  - {name: retry, match: POST /retry, in_doubt: retry}
"""


def reload(gateway):
    """SIGHUP to the master; returns when only new workers serve."""
    before = set(gateway.workers())
    os.kill(gateway.master(), signal.SIGHUP)
    until(lambda: len(gateway.workers()) == 2 and not before & set(gateway.workers()),
          "new workers serve")


def in_flight(gateway, backend, path, key):
    reply = backend.holding()
    backend.script(key, reply)
    client = gateway.send(path, key)
    backend.wait(key)
    return client, reply


def finish(client, reply):
    reply.hold.set()
    answer = client.read()
    assert_first(answer)
    return answer


@pytest.mark.parametrize("path", ["/plain", "/retry"])
def test_reload_lets_a_request_complete_and_settle(gateway, backend, key, path):
    client, reply = in_flight(gateway, backend, path, key)
    reload(gateway)
    assert_problem(gateway.post(path, key), PENDING)
    first = finish(client, reply)
    assert_settled(gateway, backend, path, key, first)
    assert backend.executions(key) == 1


def test_a_leaving_worker_renews_its_claims_past_the_lease(gateway, backend, key):
    client, reply = in_flight(gateway, backend, "/retry", key)
    reload(gateway)
    end_s = time.monotonic() + 2.5 * LEASE_S
    answers = gateway.post_until(lambda _: time.monotonic() > end_s, "leases pass", "/retry", key)
    for answer in answers:
        assert_problem(answer, PENDING)
    first = finish(client, reply)
    assert_settled(gateway, backend, "/retry", key, first)
    assert backend.executions(key) == 1


def test_reload_lets_a_request_of_a_client_that_left_settle(gateway, backend, key):
    client, reply = in_flight(gateway, backend, "/plain", key)
    reload(gateway)
    client.close()
    reply.hold.set()
    assert is_replay(gateway.post_settled("/plain", key))
    assert backend.executions(key) == 1


def test_old_workers_leave_when_their_requests_are_done(gateway, backend, key):
    client, reply = in_flight(gateway, backend, "/plain", key)
    old = gateway.worker_of(backend.of(key)[0])
    reload(gateway)
    assert old in gateway.pids()
    finish(client, reply)
    client.close()
    until(lambda: old not in gateway.pids(), "the old worker leaves")


def test_replays_and_conflicts_survive_ten_reloads(gateway, backend, key):
    first = gateway.post("/plain", key)
    for _ in range(10):
        reload(gateway)
        assert_settled(gateway, backend, "/plain", key, first)
    assert_problem(gateway.post("/plain", key, b'{"other": 1}'), CONFLICT)


@pytest.mark.parametrize("leave", [False, True], ids=["client waits", "client left"])
def test_quit_lets_a_request_complete_and_settle(new_gateway, backend, key, leave):
    gateway = new_gateway(POLICY)
    client, reply = in_flight(gateway, backend, "/plain", key)
    os.kill(gateway.master(), signal.SIGQUIT)
    until(lambda: not gateway.workers(), "the workers are shutting down")
    if leave:
        client.close()
        reply.hold.set()
    else:
        finish(client, reply)
        client.close()
    until(lambda: not gateway.pids(), "everything ends")
    gateway.stop()
    gateway.start()
    assert is_replay(gateway.post("/plain", key))
    assert backend.executions(key) == 1


def test_stop_with_a_request_in_flight_leaves_it_in_doubt(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    client, reply = in_flight(gateway, backend, "/plain", key)
    gateway.stop(signal.SIGTERM)
    reply.hold.set()
    client.close()
    gateway.start()
    assert_problem(gateway.post_settled("/plain", key), UNKNOWN)
    assert backend.executions(key) == 1
