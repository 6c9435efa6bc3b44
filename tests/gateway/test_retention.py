# SPDX-License-Identifier: Apache-2.0
"""How long a record replays, how long its key stays known, and when it is as if never seen (R9)."""

import time

from support.backend import Reply
from support.expect import (CONFLICT, EXPIRED, UNKNOWN, assert_first, assert_problem, assert_replay,
                            assert_settled, code_of, is_replay)

TTL_S = 2.0
TOMBSTONE_S = 2.0
FAILED_S = 1.0
SLACK_S = 0.05
POLICY = """
version: 1
tenant: none
defaults: {lease: 1s}
routes:
  - {name: short, match: POST /short, retention: {ttl: 2s, tombstone: 2s, failed: 1s}}
  - {name: bare, match: POST /bare, retention: {ttl: 2s, failed: 1s}}
  - name: sum
    match: POST /sum
    retention: {retry_window: 1s, delay_bound: 500ms, observation: 500ms, tombstone: 2s, failed: 1s}
"""
OTHER = b'{"other": 1}'


def replays_until_expired(gateway, path, key, first, settled_after_s):
    """Replays all the time, which must not extend anything. Returns the answer that ended it."""
    answers = gateway.post_until(lambda answer: not is_replay(answer), "the record expires",
                                 path, key)
    for answer in answers[:-1]:
        assert_replay(answer, first)
    assert len(answers) > 10
    lived_s = time.monotonic() - settled_after_s
    assert TTL_S - SLACK_S <= lived_s < TTL_S + 2
    return answers[-1]


def run_through_a_whole_life(gateway, backend, path, key):
    sent_s = time.monotonic()
    first = gateway.post(path, key)
    assert_first(first)
    assert_problem(replays_until_expired(gateway, path, key, first, sent_s), EXPIRED)
    assert_problem(gateway.post(path, key, OTHER), EXPIRED)
    assert backend.executions(key) == 1
    answers = gateway.post_until(lambda answer: code_of(answer) != EXPIRED, "the key is gone",
                                 path, key, OTHER)
    assert time.monotonic() - sent_s >= TTL_S + TOMBSTONE_S - SLACK_S
    assert_first(answers[-1])
    one, two = backend.of(key)
    assert (two.header("Counterfoil-Attempt"), two.header("Counterfoil-Fence")) == ("1", "1")
    assert int(two.header("Counterfoil-First-Claim")) > int(one.header("Counterfoil-First-Claim"))
    assert_settled(gateway, backend, path, key, answers[-1], body=OTHER)


def test_replay_then_tombstone_then_a_new_life(gateway, backend, key):
    run_through_a_whole_life(gateway, backend, "/short", key)


def test_ttl_is_the_sum_of_the_three_windows(gateway, backend, key):
    run_through_a_whole_life(gateway, backend, "/sum", key)


def test_without_a_tombstone_the_key_is_gone_when_it_expires(gateway, backend, key):
    sent_s = time.monotonic()
    first = gateway.post("/bare", key)
    assert_first(replays_until_expired(gateway, "/bare", key, first, sent_s))
    assert backend.executions(key) == 2


def test_a_failed_record_is_forgotten_after_its_own_time(gateway, backend, key):
    backend.script(key, Reply(500), Reply(201))
    sent_s = time.monotonic()
    assert gateway.post("/short", key).status == 500
    answers = gateway.post_until(lambda answer: code_of(answer) != CONFLICT,
                                 "the failure is forgotten", "/short", key, OTHER)
    assert time.monotonic() - sent_s >= FAILED_S - SLACK_S
    assert len(answers) > 1
    assert_first(answers[-1])
    assert backend.of(key)[1].header("Counterfoil-Attempt") == "1"


def test_in_doubt_passes_through_the_tombstone(gateway, backend, key):
    backend.script(key, Reply(fault="reset"), Reply(201))
    sent_s = time.monotonic()
    assert gateway.post("/short", key).status == 502
    answers = gateway.post_until(lambda answer: code_of(answer) != UNKNOWN, "it expires",
                                 "/short", key)
    assert time.monotonic() - sent_s >= TTL_S - SLACK_S
    assert_problem(answers[-1], EXPIRED)
    answers = gateway.post_until(lambda answer: code_of(answer) != EXPIRED, "the key is gone",
                                 "/short", key)
    assert_first(answers[-1])
    assert backend.executions(key) == 2


def test_a_running_request_does_not_expire(gateway, backend, key):
    """ttl counts from the last renewal while work goes on, and from the settle afterwards."""
    reply = backend.holding()
    backend.script(key, reply, Reply())
    sent_s = time.monotonic()
    client = gateway.send("/bare", key)
    backend.wait(key)
    gateway.post_until(lambda _: time.monotonic() > sent_s + TTL_S + 1, "longer than ttl",
                       "/bare", key)
    assert backend.executions(key) == 1
    settled_s = time.monotonic()
    reply.hold.set()
    first = client.read()
    assert_first(first)
    assert_first(replays_until_expired(gateway, "/bare", key, first, settled_s))


def test_times_go_on_while_the_gateway_is_down(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    sent_s = time.monotonic()
    first = gateway.post("/short", key)
    gateway.restart()
    assert_problem(replays_until_expired(gateway, "/short", key, first, sent_s), EXPIRED)
    assert backend.executions(key) == 1
