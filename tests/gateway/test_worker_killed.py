# SPDX-License-Identifier: Apache-2.0
"""kill -9 of workers and of everything: a lost owner is in doubt, a durable answer stays."""

import time

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, PENDING, UNKNOWN, assert_first, assert_problem, assert_replay,
                            assert_settled, is_replay)
from support.rawhttp import Closed
from support.waiting import until, until_clock

LEASE_S = 2.0
TRUST_S = 4.0
POLICY = """
version: 1
tenant: none
defaults: {lease: 2s}
routes:
  - {name: hold, match: POST /hold}
  - {name: retry, match: POST /retry, in_doubt: retry}
  - name: probe
    match: POST /probed
    in_doubt: {probe: "GET /probe/{key}", replay_status: 203, trust_absent_after: 4s, timeout: 2s}
"""


def lose_owner(gateway, backend, path, key):
    """A request whose worker is killed while the backend works. Returns when it was sent."""
    backend.script(key, backend.holding(), Reply())
    sent_s = time.monotonic()
    client = gateway.send(path, key)
    gateway.kill(gateway.worker_of(backend.wait(key)))
    with pytest.raises(Closed):
        client.read()
    return sent_s


def after_the_lease(gateway, path, key, sent_s):
    """The first answer that is not pending; it must not come while the lease lives."""
    assert_problem(gateway.post(path, key), PENDING)
    answer = gateway.post_settled(path, key)
    assert time.monotonic() >= sent_s + LEASE_S
    return answer


def test_killed_worker_with_hold_is_pending_then_outcome_unknown(gateway, backend, key):
    sent_s = lose_owner(gateway, backend, "/hold", key)
    assert_problem(after_the_lease(gateway, "/hold", key, sent_s), UNKNOWN)
    assert_problem(gateway.post("/hold", key, b'{"other": 1}'), CONFLICT)
    assert backend.executions(key) == 1


def test_killed_worker_with_retry_executes_again_as_attempt_2(gateway, backend, key):
    sent_s = lose_owner(gateway, backend, "/retry", key)
    again = after_the_lease(gateway, "/retry", key, sent_s)
    assert_first(again)
    one, two = backend.of(key)
    assert (one.header("Counterfoil-Attempt"), one.header("Counterfoil-Fence")) == ("1", "1")
    assert (two.header("Counterfoil-Attempt"), two.header("Counterfoil-Fence")) == ("2", "2")
    assert two.header("Counterfoil-First-Claim") == one.header("Counterfoil-First-Claim")
    assert_settled(gateway, backend, "/retry", key, again)


def test_killed_worker_with_a_probe_that_finds_the_effect_replays_it(gateway, backend, key):
    backend.script_probe(key, Reply(200, body=b'{"order": 77}'))
    sent_s = lose_owner(gateway, backend, "/probed", key)
    found = after_the_lease(gateway, "/probed", key, sent_s)
    assert (found.status, found.body) == (203, b'{"order": 77}')
    assert is_replay(found)
    assert_settled(gateway, backend, "/probed", key, found)
    probe, = backend.probes_of(key)
    assert (probe.method, probe.target) == ("GET", f"/probe/{key}")
    assert probe.header("Counterfoil-Fence") == "1"
    assert backend.executions(key) == 1


def test_killed_worker_with_a_probe_that_finds_nothing_waits_for_trust(gateway, backend, key):
    backend.script_probe(key, Reply(404))
    sent_s = lose_owner(gateway, backend, "/probed", key)
    again = after_the_lease(gateway, "/probed", key, sent_s)
    assert_first(again)
    one, two = backend.of(key)
    assert backend.probes_of(key)[0].at_s < one.at_s + TRUST_S, "no probe before trust"
    assert two.at_s >= sent_s + TRUST_S
    assert two.header("Counterfoil-Attempt") == "2"
    assert_settled(gateway, backend, "/probed", key, again)


def test_killed_workers_are_replaced_and_claim_again(gateway, backend, key):
    for victim in gateway.workers():
        gateway.kill(victim)
    until(lambda: len(gateway.workers()) == 2, "new workers")
    first = gateway.post("/hold", key)
    assert_first(first)
    assert_settled(gateway, backend, "/hold", key, first)


def test_all_processes_killed_right_after_an_answer_it_replays(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    first = gateway.post("/hold", key)
    gateway.kill_all()
    assert_first(first)
    gateway.start()
    assert_settled(gateway, backend, "/hold", key, first)
    assert_problem(gateway.post("/hold", key, b'{"other": 1}'), CONFLICT)


def test_twenty_answers_each_followed_by_a_kill_of_everything_all_replay(new_gateway, backend, key):
    gateway = new_gateway(POLICY, workers=1)
    answers = {}
    for turn in range(20):
        turn_key = f"{key}-{turn}"
        answers[turn_key] = gateway.post("/hold", turn_key)
        gateway.kill_all()
        gateway.start()
    for turn_key, first in answers.items():
        assert_first(first)
        assert_settled(gateway, backend, "/hold", turn_key, first)


def test_all_processes_killed_mid_request_is_pending_then_unknown(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    backend.script(key, backend.holding())
    sent_s = time.monotonic()
    client = gateway.send("/hold", key)
    backend.wait(key)
    gateway.kill_all()
    with pytest.raises(Closed):
        client.read()
    gateway.start()
    answer = after_the_lease(gateway, "/hold", key, sent_s)
    assert_problem(answer, UNKNOWN)
    assert backend.executions(key) == 1


def test_a_living_owner_is_renewed_past_many_leases(new_gateway, backend, key):
    gateway = new_gateway(POLICY.replace("lease: 2s", "lease: 1s"))
    reply = backend.holding()
    backend.script(key, reply)
    start_s = time.monotonic()
    client = gateway.send("/retry", key)
    backend.wait(key)
    while time.monotonic() < start_s + 3.5:
        assert_problem(gateway.post("/retry", key), PENDING)
        until_clock(time.monotonic() + 0.05)
    reply.hold.set()
    first = client.read()
    assert_first(first)
    assert_replay(gateway.post("/retry", key), first)
    assert backend.executions(key) == 1
