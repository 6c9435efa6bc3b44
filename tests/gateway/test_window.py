# SPDX-License-Identifier: Apache-2.0
"""`semantics: window`: a key counts for a time only, which the first request or the clock begins."""

import time

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, PENDING, UNKNOWN, assert_first, assert_problem, assert_replay,
                            is_replay)

WINDOW_S = 2.0
WINDOW_MS = 2000
SLACK_S = 0.05
POLICY = """
version: 1
tenant: none
defaults: {lease: 1s, retention: {ttl: 1h, tombstone: 1h}}
routes:
  - {name: first, match: POST /first, semantics: window, window: 2s}
  - {name: clock, match: POST /clock, semantics: window, window: {length: 2s, anchor: clock}}
  - {name: key, match: "POST /key/{id}", semantics: window, window: {length: 2s, compare: key}}
  - {name: long, match: POST /long, semantics: window}
  - {name: payment, match: POST /payment, profile: payment, semantics: window, window: 1s}
"""
OTHER = b'{"other": 1}'


def life_ms(request):
    return int(request.header("Counterfoil-First-Claim"))


def until_it_executes_again(gateway, path, key, first):
    """Every answer but the last is the first one again. Returns the last and how many there were."""
    answers = gateway.post_until(lambda answer: not is_replay(answer), "the window ends", path, key)
    for answer in answers[:-1]:
        assert_replay(answer, first)
    assert_first(answers[-1])
    return answers[-1], len(answers) - 1


@pytest.mark.parametrize("path", ["/first", "/key/1"])
def test_the_first_request_opens_the_window_and_replays_do_not_extend_it(gateway, backend, key,
                                                                         path):
    sent_s = time.monotonic()
    first = gateway.post(path, key)
    assert_first(first)
    _, replays = until_it_executes_again(gateway, path, key, first)
    assert WINDOW_S - SLACK_S <= time.monotonic() - sent_s < WINDOW_S + 2
    assert replays > 10
    one, two = backend.of(key)
    assert life_ms(two) >= life_ms(one) + WINDOW_MS
    assert (two.header("Counterfoil-Attempt"), two.header("Counterfoil-Fence")) == ("1", "1")


def test_the_clock_ends_the_window_at_a_multiple_of_its_length(gateway, backend, key):
    first = gateway.post("/clock", key)
    for _ in range(2):
        first, _ = until_it_executes_again(gateway, "/clock", key, first)
    windows = [life_ms(request) // WINDOW_MS for request in backend.of(key)]
    assert windows == list(range(windows[0], windows[0] + 3))
    # asked all the time, the next window's first request comes right after the boundary
    assert all(life_ms(request) % WINDOW_MS < WINDOW_MS / 4 for request in backend.of(key)[1:])


def test_another_body_is_a_conflict_inside_the_window_only(gateway, backend, key):
    assert_first(gateway.post("/first", key))
    answers = gateway.post_until(lambda answer: answer.status != 409, "the window ends", "/first",
                                 key, OTHER)
    for answer in answers[:-1]:
        assert_problem(answer, CONFLICT)
    assert len(answers) > 10
    assert_first(answers[-1])
    assert backend.executions(key) == 2


def test_compare_key_replays_to_another_body_and_says_so(gateway, backend, key):
    first = gateway.post("/key/1", key)
    marked = gateway.post("/key/1", key, OTHER)
    assert_replay(marked, first)
    assert marked.header("Counterfoil-Body") == "differs"
    same = gateway.post("/key/1", key)
    assert_replay(same, first)
    assert same.header("Counterfoil-Body") is None
    assert_problem(gateway.post("/key/2", key), CONFLICT)
    assert backend.executions(key) == 1


def test_what_still_runs_at_the_windows_end_is_not_run_twice(gateway, backend, key):
    reply = backend.holding()
    backend.script(key, reply, Reply())
    sent_s = time.monotonic()
    client = gateway.send("/first", key)
    backend.wait(key)
    for answer in gateway.post_until(lambda _: time.monotonic() > sent_s + WINDOW_S + 1,
                                     "the window is over", "/first", key):
        assert_problem(answer, PENDING)
    assert backend.executions(key) == 1
    reply.hold.set()
    assert_first(client.read())
    assert_first(gateway.post("/first", key))
    assert backend.executions(key) == 2


def test_what_is_in_doubt_at_the_windows_end_stays(gateway, backend, key):
    backend.script(key, Reply(fault="reset"), Reply(201))
    sent_s = time.monotonic()
    assert gateway.post("/first", key).status == 502
    for answer in gateway.post_until(lambda _: time.monotonic() > sent_s + WINDOW_S + 1,
                                     "the window is over", "/first", key):
        assert_problem(answer, UNKNOWN)
    gateway.cli("resolve", "--key", key, "--state", "SUCCEEDED", "--reason", "found it")
    assert_first(gateway.post("/first", key))
    assert backend.executions(key) == 2


def test_a_failure_runs_again_inside_the_window(gateway, backend, key):
    backend.script(key, Reply(503, headers=[("Retry-After", "1")]), Reply(201))
    assert gateway.post("/long", key).status == 503
    assert_problem(gateway.post("/long", key, OTHER), CONFLICT)
    first = gateway.post("/long", key)
    assert_first(first)
    assert backend.of(key)[1].header("Counterfoil-Attempt") == "2"
    assert_replay(gateway.post("/long", key), first)


def test_a_window_leaves_no_tombstone_in_the_payment_profile(gateway, backend, key):
    first = gateway.post("/payment", key)
    assert_first(first)
    until_it_executes_again(gateway, "/payment", key, first)
    assert backend.executions(key) == 2
