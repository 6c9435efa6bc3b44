# SPDX-License-Identifier: Apache-2.0
"""Quit, stop and crash with work in hand: what is finished is kept, what is cut off is in doubt."""

import os
import signal
import threading
import time

import pytest

from support.backend import Reply
from support.expect import (PENDING, UNKNOWN, assert_first, assert_problem, assert_replay,
                            assert_settled, is_replay, new_key)
from support.load import CUT, Load
from support.rawhttp import Closed, encode
from support.waiting import until, until_clock

LEASE_S = 1.0
LONG_S = 10.0
# More than the buffers of two sockets hold.
HALF_SENT_BYTES = 48 << 20
POLICY = """
version: 1
tenant: none
defaults: {lease: 1s}
routes:
  - {name: plain, match: POST /plain}
  - {name: small, match: POST /small, snapshot: {max_body: 1KiB}}
"""


def in_flight(gateway, backend, path="/plain", **reply_options):
    """(key, client, reply) of a request that the backend has and does not answer yet."""
    key, reply = new_key(), backend.holding(**reply_options)
    backend.script(key, reply)
    client = gateway.send(path, key)
    backend.wait(key)
    return key, client, reply


def test_quit_waits_for_requests_of_ten_seconds_and_answers_them(new_gateway, backend):
    """The lease is over many times meanwhile; the leaving workers renew it."""
    gateway = new_gateway(POLICY)
    start_s = time.monotonic()
    held = [in_flight(gateway, backend, body=b"x" * 100_000),
            in_flight(gateway, backend, framing="chunked"),
            in_flight(gateway, backend, framing="close")]
    left = in_flight(gateway, backend)
    left[1].close()
    os.kill(gateway.master(), signal.SIGQUIT)
    until(lambda: not gateway.workers(), "the workers are shutting down")
    with pytest.raises(ConnectionRefusedError):
        gateway.client()
    until_clock(start_s + LONG_S)
    assert gateway.master()
    for key, _, _ in [*held, left]:
        assert gateway.record(key)["state"] == "PROCESSING"
    left[2].hold.set()
    firsts = {}
    for key, client, reply in held:
        reply.hold.set()
        firsts[key] = client.read()
        assert_first(firsts[key])
        client.close()
    until(lambda: not gateway.pids(), "everything ends")
    gateway.stop()
    gateway.start()
    for key, first in firsts.items():
        assert_settled(gateway, backend, "/plain", key, first)
    assert is_replay(gateway.post("/plain", left[0]))
    assert {backend.executions(key) for key in (*firsts, left[0])} == {1}


def test_quit_settles_an_answer_over_the_limit_that_is_half_sent(new_gateway, backend):
    gateway = new_gateway(POLICY)
    key, client, reply = in_flight(gateway, backend, "/small", body=b"y" * HALF_SENT_BYTES)
    reply.hold.set()
    assert client.readable(10)
    os.kill(gateway.master(), signal.SIGQUIT)
    answer = client.read()
    assert (answer.status, answer.body) == (201, b"y" * HALF_SENT_BYTES)
    client.close()
    until(lambda: not gateway.pids(), "everything ends")
    gateway.stop()
    gateway.start()
    record = gateway.record(key)
    assert (record["state"], record["snapshot"]) == ("SUCCEEDED", None)
    assert backend.executions(key) == 1


def test_stop_cuts_off_and_the_records_say_so(new_gateway, backend):
    """TERM ends at once. PROCESSING until the lease ends, then in doubt; what was settled stays; of
    a request that was not complete nothing is known."""
    gateway = new_gateway(POLICY)
    settled = new_key()
    first = gateway.post("/plain", settled)
    key, client, reply = in_flight(gateway, backend)
    incomplete = new_key()
    half = gateway.client()
    half.send(encode("POST", "/plain", [("Idempotency-Key", incomplete)], b"12345678")[:-1])

    os.kill(gateway.master(), signal.SIGTERM)
    until(lambda: not gateway.pids(), "everything ends", LONG_S)
    with pytest.raises(Closed):
        client.read()
    half.close()
    reply.hold.set()
    gateway.stop()
    gateway.start()

    assert gateway.record(key)["state"] in ("PROCESSING", "IN_DOUBT")
    assert_problem(gateway.post_settled("/plain", key), UNKNOWN)
    record = gateway.record(key)
    assert (record["state"], record["attempt"], record["cause"]) == ("IN_DOUBT", 1, None)
    assert_settled(gateway, backend, "/plain", settled, first)
    assert_first(gateway.post("/plain", incomplete, b"12345678"))
    assert [backend.executions(each) for each in (key, settled, incomplete)] == [1, 1, 1]


def test_a_worker_that_crashes_under_load_is_replaced_and_nothing_runs_twice(new_gateway, backend):
    """A crash may cut answers off: such a key is executed once at most and is then pending, in doubt
    or replayed, as its record says; a key that reached no backend executes."""
    gateway = new_gateway(POLICY)
    gateway.allow_log(r"exited on signal 11")
    with Load(gateway, "/plain") as load:
        for _ in range(10):
            victim = gateway.workers()[0]
            sent = len(load.answers)
            os.kill(victim, signal.SIGSEGV)
            until(lambda victim=victim: victim not in gateway.workers()
                  and len(gateway.workers()) == 2, "the worker is replaced")
            until(lambda sent=sent: len(load.answers) > sent + 10, "requests go on")
    load.assert_kept(backend)
    for key in load.cut():
        before = backend.executions(key)
        answer = gateway.post_settled("/plain", key, load.body)
        if before == 0 and answer.status == 201 and not is_replay(answer):
            assert_first(answer)
        elif not is_replay(answer):
            assert_problem(answer, UNKNOWN)
        assert backend.executions(key) == (1 if answer.status == 201 else before)


def test_a_crash_does_not_touch_what_another_worker_holds(new_gateway, backend):
    gateway = new_gateway(POLICY)
    gateway.allow_log(r"exited on signal 11")
    held = {}
    for pid in gateway.workers():
        client, = gateway.clients_on(pid, 1)
        key, reply = new_key(), backend.holding()
        backend.script(key, reply)
        gateway.send("/plain", key, client=client)
        backend.wait(key)
        held[pid] = (key, client, reply)
    crashed, other = held
    os.kill(crashed, signal.SIGSEGV)
    with pytest.raises(Closed):
        held[crashed][1].read()
    key, client, reply = held[other]
    assert_problem(gateway.post("/plain", key), PENDING)
    reply.hold.set()
    first = client.read()
    assert_first(first)
    assert_replay(gateway.post("/plain", key), first)
    assert_problem(gateway.post_settled("/plain", held[crashed][0]), UNKNOWN)
    assert {backend.executions(each) for each, _, _ in held.values()} == {1}


def test_stop_under_load_loses_no_answered_key(new_gateway, backend):
    gateway = new_gateway(POLICY)
    with Load(gateway, "/plain", threads=8) as load:
        until(lambda: len(load.answers) > 100, "the load runs")
        os.kill(gateway.master(), signal.SIGTERM)
        until(lambda: not gateway.pids(), "everything ends")
        load.going.clear()
    gateway.stop()
    gateway.start()
    load.assert_kept(backend)
    assert sum(answer is not CUT for answer in load.answers.values()) > 50
