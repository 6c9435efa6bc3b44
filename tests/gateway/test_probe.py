# SPDX-License-Identifier: Apache-2.0
"""In doubt with a living gateway: time-outs, resets and what the probe's answer then means."""

import time

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, PENDING, UNKNOWN, assert_first, assert_problem, assert_replay,
                            assert_settled, is_replay)
from support.rawhttp import Closed
from support.waiting import until

TIMEOUT_S = 1.0
TRUST_S = 2.0
# nginx compares times it cached at the start of an event, which may lie a little back.
CLOCK_SLACK_S = 0.05
POLICY = """
version: 1
tenant: none
defaults: {lease: 2s}
routes:
  - {name: hold, match: POST /hold}
  - {name: retry, match: POST /retry, in_doubt: retry}
  - name: probe
    match: POST /probed
    in_doubt: {probe: "GET /probe/{key}", replay_status: 203, trust_absent_after: 2s, timeout: 1s}
  - name: patient
    match: POST /patient
    in_doubt: {probe: "GET /probe/{key}", trust_absent_after: 1h, timeout: 3s}
  - name: default
    match: POST /default
    in_doubt: {probe: "GET /probe/{key}"}
"""
GATEWAY = {"upstream_timeout": "1s"}


def time_out(gateway, backend, path, key):
    """A request the backend never answers in time. Returns when it was sent."""
    backend.script(key, backend.holding(), Reply())
    sent_s = time.monotonic()
    assert gateway.post(path, key).status == 504
    assert time.monotonic() >= sent_s + TIMEOUT_S - CLOCK_SLACK_S
    return sent_s


def lose(gateway, backend, path, key, fault="reset"):
    """A request after which the backend itself ends the connection without an answer."""
    backend.script(key, Reply(fault=fault), Reply())
    assert gateway.post(path, key).status == 502
    assert backend.executions(key) == 1


def test_time_out_with_hold_is_outcome_unknown(gateway, backend, key):
    time_out(gateway, backend, "/hold", key)
    assert_problem(gateway.post("/hold", key), UNKNOWN)
    assert_problem(gateway.post("/hold", key, b'{"other": 1}'), CONFLICT)
    assert backend.executions(key) == 1


def test_time_out_with_retry_executes_again_at_once(gateway, backend, key):
    time_out(gateway, backend, "/retry", key)
    assert_first(gateway.post("/retry", key))
    assert [r.header("Counterfoil-Attempt") for r in backend.of(key)] == ["1", "2"]


def test_time_out_then_404_executes_only_after_trust_absent_after(gateway, backend, key):
    backend.script_probe(key, Reply(404))
    sent_s = time_out(gateway, backend, "/probed", key)
    assert_problem(gateway.post("/probed", key), PENDING)
    assert backend.wait_probe(key).at_s < sent_s + TIMEOUT_S + TRUST_S
    assert backend.executions(key) == 1
    taken = gateway.post_settled("/probed", key)
    assert_first(taken)
    _, again = backend.of(key)
    assert again.at_s >= sent_s + TIMEOUT_S + TRUST_S - CLOCK_SLACK_S
    assert (again.header("Counterfoil-Attempt"), again.header("Counterfoil-Fence")) == ("2", "2")
    assert_settled(gateway, backend, "/probed", key, taken)


def test_without_trust_absent_after_the_upstream_time_out_is_it(gateway, backend, key):
    backend.script_probe(key, Reply(404))
    sent_s = time_out(gateway, backend, "/default", key)
    assert_first(gateway.post_settled("/default", key))
    assert backend.of(key)[1].at_s >= sent_s + 2 * TIMEOUT_S - CLOCK_SLACK_S


@pytest.mark.parametrize("fault", ["reset", "close"])
def test_404_after_the_backend_ended_the_exchange_executes_at_once(gateway, backend, key, fault):
    backend.script_probe(key, Reply(404))
    lose(gateway, backend, "/patient", key, fault)
    again = gateway.post("/patient", key)
    assert_first(again)
    assert [r.header("Counterfoil-Attempt") for r in backend.of(key)] == ["1", "2"]
    assert len(backend.probes_of(key)) == 1
    assert_settled(gateway, backend, "/patient", key, again)


@pytest.mark.parametrize("status", [502, 504])
def test_404_after_a_backends_own_502_or_504_is_not_trusted_at_once(gateway, backend, key, status):
    backend.script_probe(key, Reply(404))
    backend.script(key, Reply(status), Reply())
    assert gateway.post("/patient", key).status == status
    for _ in range(3):
        assert_problem(gateway.post("/patient", key), PENDING)
    assert backend.executions(key) == 1


def test_found_is_replayed_with_replay_status_and_the_look_ups_body(gateway, backend, key):
    backend.script_probe(key, Reply(200, body=b'{"order": 5}'))
    lose(gateway, backend, "/probed", key)
    found = gateway.post("/probed", key)
    assert (found.status, found.body) == (203, b'{"order": 5}')
    assert is_replay(found)
    assert_settled(gateway, backend, "/probed", key, found)
    assert len(backend.probes_of(key)) == 1
    assert_problem(gateway.post("/probed", key, b'{"other": 1}'), CONFLICT)
    assert backend.executions(key) == 1


def test_replay_status_defaults_to_200(gateway, backend, key):
    backend.script_probe(key, Reply(200, body=b"here"))
    lose(gateway, backend, "/patient", key)
    assert gateway.post("/patient", key).status == 200


@pytest.mark.parametrize("answer", [Reply(500), Reply(403), Reply(fault="reset"),
                                    Reply(fault="hang")], ids=["500", "403", "reset", "hang"])
def test_a_probe_that_says_nothing_clear_is_outcome_unknown_and_may_be_asked_again(
        gateway, backend, key, answer):
    backend.script_probe(key, answer)
    lose(gateway, backend, "/probed", key)
    assert_problem(gateway.post("/probed", key), UNKNOWN)
    assert len(backend.probes_of(key)) >= 1
    backend.script_probe(key, Reply(200, body=b"found later"))
    found = gateway.post("/probed", key)
    assert (found.status, found.body) == (203, b"found later")
    assert backend.executions(key) == 1


def test_one_probes_and_the_rest_are_pending(gateway, backend, key):
    probe = backend.holding(status=200, body=b"found")
    backend.script_probe(key, probe)
    lose(gateway, backend, "/patient", key)
    prober = gateway.send("/patient", key)
    backend.wait_probe(key)
    for _ in range(5):
        assert_problem(gateway.post("/patient", key), PENDING)
    assert_problem(gateway.post("/patient", key, b'{"other": 1}'), CONFLICT)
    probe.hold.set()
    found = prober.read()
    assert found.body == b"found"
    assert_replay(gateway.post("/patient", key), found)
    assert len(backend.probes_of(key)) == 1


def test_a_prober_whose_worker_is_killed_is_replaced(gateway, backend, key):
    probe = backend.holding(status=200, body=b"too late")
    backend.script_probe(key, probe, Reply(200, body=b"found"))
    lose(gateway, backend, "/patient", key)
    client = gateway.send("/patient", key)
    gateway.kill(gateway.worker_of(backend.wait_probe(key)))
    with pytest.raises(Closed):
        client.read()
    assert gateway.post_settled("/patient", key).body == b"found"
    assert backend.executions(key) == 1


def test_the_probe_carries_the_fence_of_the_lost_claim(gateway, backend, key):
    backend.script_probe(key, Reply(404), Reply(200, body=b"found"))
    backend.script(key, Reply(fault="reset"))
    assert gateway.post("/patient", key).status == 502
    assert gateway.post("/patient", key).status == 502
    assert gateway.post("/patient", key).body == b"found"
    assert [r.header("Counterfoil-Fence") for r in backend.probes_of(key)] == ["1", "2"]
    assert backend.executions(key) == 2


def test_the_probe_asks_in_the_name_of_the_duplicate(gateway, backend, key):
    """A look-up may be for its caller only; the first one's credentials may have changed since."""
    backend.script_probe(key, Reply(200, body=b"found"))
    lose(gateway, backend, "/patient", key)
    answer = gateway.post("/patient", key, headers=[("Authorization", "Bearer second")])
    assert answer.body == b"found"
    probe, = backend.probes_of(key)
    assert probe.header("Authorization") == "Bearer second"


def test_twenty_duplicates_at_once_make_one_probe(gateway, backend, key):
    probe = backend.holding(status=200, body=b"found")
    backend.script_probe(key, probe)
    lose(gateway, backend, "/patient", key)
    clients = [gateway.send("/patient", key) for _ in range(20)]
    backend.wait_probe(key)
    until(lambda: sum(client.readable(0) for client in clients) == 19, "19 answers")
    for client in clients:
        if client.readable(0):
            assert_problem(client.read(), PENDING)
        else:
            prober = client
    probe.hold.set()
    assert prober.read().body == b"found"
    assert len(backend.probes_of(key)) == 1
    assert backend.executions(key) == 1
