# SPDX-License-Identifier: Apache-2.0
"""`while_pending: {wait: ...}`: a duplicate stays for the first one's end, and then gets its answer."""

import os
import re
import signal
import threading
import time

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, PENDING, STORE_UNAVAILABLE, UNKNOWN, assert_first, assert_problem,
                            assert_replay, assert_settled, new_key)
from support.front import PROXY, Front
from support.http2 import Http2Client
from support.store_hands import Holder
from support.waiting import until, until_clock

POLICY = """
version: 1
tenant: none
defaults: {lease: 1s, while_pending: {wait: 20s}}
routes:
  - {name: order, match: POST /orders}
  - {name: short, match: POST /short, while_pending: {wait: 1s}}
  - {name: retry, match: POST /retry, in_doubt: retry}
  - {name: open, match: POST /open, in_doubt: retry, store_unavailable: open}
  - name: probed
    match: POST /probed
    in_doubt: {probe: "GET /probe/{key}", replay_status: 201, trust_absent_after: 0}
  - {name: other, match: POST /other, while_pending: reject}
"""
SHORT_S = 1.0
STILL_S = 0.3
OTHER = b'{"other": 1}'
LOOK_S = 0.05


def start(gateway, backend, key, *replies, path="/orders", client=None):
    """A first request that the backend holds. Returns its client and what lets its answer go."""
    reply = backend.holding()
    backend.script(key, reply, *replies)
    client = gateway.send(path, key, client=client)
    backend.wait(key)
    return client, reply


def duplicates(gateway, key, count, path="/orders"):
    return [gateway.send(path, key) for _ in range(count)]


def assert_wait(clients):
    """None of them is answered for a while."""
    until_clock(time.monotonic() + STILL_S)
    assert not any(client.readable(0) for client in clients)


def read_all(clients):
    answers = [client.read() for client in clients]
    for client in clients:
        client.close()
    return answers


def test_duplicates_wait_and_get_the_first_answer(gateway, backend, key):
    """On both workers; only one of them sees the settle itself."""
    one, other = gateway.workers()
    waiting = gateway.clients_on(one, 5) + gateway.clients_on(other, 5)
    client, reply = start(gateway, backend, key)
    for each in waiting:
        gateway.send("/orders", key, client=each)
    assert_wait(waiting)
    reply.hold.set()
    first = client.read()
    assert_first(first)
    for answer in read_all(waiting):
        assert_replay(answer, first)
    assert backend.executions(key) == 1
    assert_settled(gateway, backend, "/orders", key, first)


def test_when_the_time_is_over_it_is_still_pending(gateway, backend, key):
    client, reply = start(gateway, backend, key, path="/short")
    sent_s = time.monotonic()
    assert_problem(gateway.post("/short", key), PENDING)
    assert SHORT_S - 0.05 <= time.monotonic() - sent_s < SHORT_S + 2
    reply.hold.set()
    assert_first(client.read())
    assert backend.executions(key) == 1


def test_another_body_does_not_wait(gateway, backend, key):
    client, reply = start(gateway, backend, key)
    assert_problem(gateway.post("/orders", key, OTHER, timeout_s=5), CONFLICT)
    reply.hold.set()
    assert_first(client.read())


@pytest.mark.parametrize("status", [500, 503])
def test_after_a_failure_exactly_one_of_them_executes(gateway, backend, key, status):
    second = backend.holding()
    client, reply = start(gateway, backend, key, second)
    waiting = duplicates(gateway, key, 20)
    assert_wait(waiting)
    reply.status = status
    reply.headers = [("Retry-After", "1")]
    reply.hold.set()
    assert client.read().status == status
    backend.wait(key, 2)
    assert_wait(waiting)
    assert backend.executions(key) == 2
    second.hold.set()
    answers = read_all(waiting)
    firsts = [answer for answer in answers if answer.header("Idempotent-Replayed") is None]
    assert len(firsts) == 1
    assert_first(firsts[0])
    for answer in answers:
        if answer is not firsts[0]:
            assert_replay(answer, firsts[0])
    assert backend.executions(key) == 2
    assert backend.of(key)[1].header("Counterfoil-Attempt") == "2"


def test_what_ends_in_doubt_is_told_to_all(gateway, backend, key):
    client, reply = start(gateway, backend, key)
    waiting = duplicates(gateway, key, 10)
    reply.fault = "reset"
    reply.hold.set()
    assert client.read().status == 502
    for answer in read_all(waiting):
        assert_problem(answer, UNKNOWN)
    assert backend.executions(key) == 1


def test_of_those_who_may_retry_one_does(gateway, backend, key):
    client, reply = start(gateway, backend, key, Reply(201), path="/retry")
    waiting = duplicates(gateway, key, 10, "/retry")
    assert_wait(waiting)
    reply.fault = "reset"
    reply.hold.set()
    assert client.read().status == 502
    answers = read_all(waiting)
    assert {answer.status for answer in answers} == {201}
    assert sum(answer.header("Idempotent-Replayed") is None for answer in answers) == 1
    assert backend.executions(key) == 2


def test_one_asks_the_backend_for_all(gateway, backend, key):
    client, reply = start(gateway, backend, key, path="/probed")
    backend.script_probe(key, Reply(200, body=b'{"found": true}'))
    waiting = duplicates(gateway, key, 10, "/probed")
    assert_wait(waiting)
    reply.fault = "reset"
    reply.hold.set()
    assert client.read().status == 502
    for answer in read_all(waiting):
        assert (answer.status, answer.body) == (201, b'{"found": true}')
    assert backend.executions(key) == 1
    assert len(backend.probes_of(key)) == 1


def test_an_owner_that_dies_is_not_waited_for_longer_than_its_lease(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    one, other = gateway.workers()
    owner = gateway.clients_on(one, 1)[0]
    waiting = gateway.clients_on(other, 5)
    start(gateway, backend, key, client=owner)
    for client in waiting:
        gateway.send("/orders", key, client=client)
    assert_wait(waiting)
    gateway.kill(one)
    for answer in read_all(waiting):
        assert_problem(answer, UNKNOWN)
    assert backend.executions(key) == 1


def test_who_has_waited_is_not_let_through_without_the_store(new_gateway, backend, key):
    """Not even under `open`: it is known to be a second one."""
    gateway = new_gateway(POLICY)
    one, other = gateway.workers()
    owner, late = gateway.clients_on(one, 1)[0], gateway.clients_on(other, 1)[0]
    start(gateway, backend, key, path="/open", client=owner)
    gateway.send("/open", key, client=late)
    assert_wait([late])
    gateway.kill(one)
    until(lambda: len(gateway.workers()) == 2, "the other worker is replaced")
    with Holder(gateway.store_dir):
        assert_problem(late.read(), STORE_UNAVAILABLE)
    assert backend.executions(key) == 1


def stats(gateway, name):
    """A counter of the engine, summed over the workers that have ended."""
    return sum(int(value) for value in re.findall(rf"counterfoil: engine (?:.* )?{name}=(\d+)",
                                                  gateway.log()))


def test_a_crowd_shares_one_look_at_a_time(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    client, reply = start(gateway, backend, key)
    began_s = time.monotonic()
    waiting = duplicates(gateway, key, 100)
    until_clock(began_s + 2)
    reply.hold.set()
    first = client.read()
    for answer in read_all(waiting):
        assert_replay(answer, first)
    lasted_s = time.monotonic() - began_s
    gateway.stop()
    looked = stats(gateway, "looked")
    assert 10 < looked <= 2 * (lasted_s / LOOK_S + 1), f"{looked} looks in {lasted_s} s"
    # each asked when it came, and once more when there was something to get
    assert stats(gateway, "begun") == 1 + 2 * 100
    assert backend.executions(key) == 1


def test_five_hundred_who_wait_are_no_burden_to_others(new_gateway, backend, key):
    gateway = new_gateway(POLICY, workers=1)

    def p99_s(count=300):
        times = []
        with gateway.client() as client:
            for _ in range(count):
                start_s = time.monotonic()
                assert_first(gateway.post("/other", new_key(), client=client))
                times.append(time.monotonic() - start_s)
        return sorted(times)[int(count * 0.99)]

    alone_s = p99_s()
    client, reply = start(gateway, backend, key)
    waiting = duplicates(gateway, key, 500)
    crowded_s = p99_s()
    assert_wait(waiting)
    assert crowded_s < 3 * alone_s + 0.02, f"{alone_s} s alone, {crowded_s} s beside 500"
    reply.hold.set()
    first = client.read()
    for answer in read_all(waiting):
        assert_replay(answer, first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGHUP], ids=["quit", "reload"])
def test_a_worker_that_leaves_lets_them_go(new_gateway, backend, key, how):
    gateway = new_gateway(POLICY)
    client, reply = start(gateway, backend, key)
    waiting = duplicates(gateway, key, 10)
    assert_wait(waiting)
    leaving = gateway.workers()
    asked_s = time.monotonic()
    os.kill(gateway.master(), how)
    for answer in read_all(waiting):
        assert_problem(answer, PENDING)
    assert time.monotonic() - asked_s < 3
    reply.hold.set()
    assert_first(client.read())
    client.close()
    until(lambda: not set(leaving) & set(gateway.pids()), "the leaving workers end")
    if how == signal.SIGHUP:
        gateway.stop()
    assert backend.executions(key) == 1


SERVER = f"""
    counterfoil on;
    location / {{ {PROXY} {{backend}}; }}
    location /dry/ {{ counterfoil dry_run; {PROXY} {{backend}}; }}
"""
NGINX_POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: POST /**, while_pending: {wait: 20s}}
"""
HTTP = """
    counterfoil_waiters_max 3;
    counterfoil_key_waiters_max 2;
"""


@pytest.fixture
def front(tmp_path_factory, backend):
    server = Front(tmp_path_factory.mktemp("front"), backend,
                   SERVER.replace("{backend}", backend.url), NGINX_POLICY, http=HTTP)
    with server.running():
        yield server


@pytest.mark.parametrize("how", ["close", "reset"])
def test_who_is_one_too_many_is_told_at_once_and_who_leaves_makes_room(front, backend, key, how):
    client, reply = start(front, backend, key, path="/x")
    waiting = duplicates(front, key, 2, "/x")
    assert_problem(front.post("/x", key, timeout_s=5), PENDING)
    assert_wait(waiting)
    getattr(waiting.pop(), how)()
    waiting.append(None)

    def finds_room():
        waiting[-1] = front.send("/x", key)
        return not waiting[-1].readable(STILL_S)

    until(finds_room, "there is room")
    assert_problem(front.post("/x", key, timeout_s=5), PENDING)
    reply.hold.set()
    first = client.read()
    for answer in read_all(waiting):
        assert_replay(answer, first)
    assert backend.executions(key) == 1


def test_a_worker_has_room_for_so_many_of_all_keys(front, backend):
    keys = [new_key(), new_key()]
    held = [start(front, backend, key, path="/x") for key in keys]
    waiting = [front.send("/x", key) for key in (keys[0], keys[0], keys[1])]
    assert_wait(waiting)
    assert_problem(front.post("/x", keys[1], timeout_s=5), PENDING)
    for client, reply in held:
        reply.hold.set()
        assert_first(client.read())
    assert {answer.status for answer in read_all(waiting)} == {201}
    assert [backend.executions(key) for key in keys] == [1, 1]


def test_a_stream_that_is_reset_waits_no_longer(front, backend, key):
    first, reply = start(front, backend, key, path="/x")
    with Http2Client(("127.0.0.1", front.clear_port)) as client:
        streams = [client.request("/x", key) for _ in range(2)]
        client.ping()
        assert_problem(front.post("/x", key, timeout_s=5), PENDING)
        client.cancel(streams[0])
        client.ping()
        late = front.send("/x", key)
        assert not late.readable(STILL_S)
        reply.hold.set()
        answer = first.read()
        assert_first(answer)
        assert_replay(late.read(), answer)
        assert_replay(client.read(streams[1]), answer)
    assert backend.executions(key) == 1


def test_streams_end_with_their_connection(front, backend, key):
    first, reply = start(front, backend, key, path="/x")
    with Http2Client(("127.0.0.1", front.clear_port)) as client:
        for _ in range(2):
            client.request("/x", key)
        client.ping()
    until(lambda: not front.send("/x", key).readable(STILL_S), "there is room")
    reply.hold.set()
    assert_first(first.read())
    assert backend.executions(key) == 1


def test_a_dry_run_never_waits(front, backend, key):
    reply = backend.holding()
    backend.script(key, reply, Reply())
    client = front.send("/dry/x", key)
    backend.wait(key)
    assert_first(front.post("/dry/x", key, timeout_s=5))
    reply.hold.set()
    assert_first(client.read())
    assert backend.executions(key) == 2


def test_bodies_in_files_are_compared_again(front, backend, key):
    body = b'{"x": "' + b"y" * 200_000 + b'"}'
    reply = backend.holding()
    backend.script(key, reply)
    client = front.send("/x", key, body)
    backend.wait(key)
    late = front.send("/x", key, body)
    assert not late.readable(STILL_S)
    reply.hold.set()
    assert_replay(late.read(), client.read())
    assert backend.executions(key) == 1


def test_many_keys_at_once(gateway, backend):
    keys = [new_key() for _ in range(30)]
    held = [start(gateway, backend, key) for key in keys]
    waiting = {key: duplicates(gateway, key, 3) for key in keys}
    answers = {}
    threads = [threading.Thread(target=lambda key=key: answers.update(
        {key: read_all(waiting[key])})) for key in keys]
    for thread in threads:
        thread.start()
    for client, reply in held:
        reply.hold.set()
    firsts = {key: client.read() for key, (client, _) in zip(keys, held)}
    for thread in threads:
        thread.join()
    for key in keys:
        for answer in answers[key]:
            assert_replay(answer, firsts[key])
        assert backend.executions(key) == 1
