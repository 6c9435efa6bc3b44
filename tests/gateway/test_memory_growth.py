# SPDX-License-Identifier: Apache-2.0
"""A worker that has served many requests holds no more descriptors, threads or memory than before.

CFOIL_GROWTH_REQUESTS says how many requests the long case sends: a million is for a soak. Executions
are counted by the backend, another nginx, in its access log, for the Python backend is too slow.
"""

import os

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, INVALID, NOT_STORED, PENDING, STORE_UNAVAILABLE, assert_problem,
                            code_of, is_replay, new_key)
from support.footprint import assert_same_descriptors, at_rest, footprint
from support.rawhttp import encode
from support.store_hands import Holder
from support.waiting import until

POLICY = """
version: 1
tenant: none
defaults: {lease: 2s}
routes:
  - {name: plain, match: POST /plain}
  - {name: small, match: POST /small, snapshot: {max_body: 1KiB}}
  - {name: fails, match: POST /fails}
  - {name: probed, match: POST /probed, in_doubt: {probe: "GET /probe/{key}", timeout: 2s}}
  - {name: open, match: POST /open, store_unavailable: open}
"""
REQUESTS = int(os.environ.get("CFOIL_GROWTH_REQUESTS", "20000"))
CONNECTIONS = 32
WARM_UP = 3000
# What an allocator may keep or lay out differently; a leak of 32 bytes a request is more than this.
SLACK_KIB = 512
# A request's pool is 4 KiB: to leave one behind each time would be more than this.
EACH = 80
EACH_SLACK_KIB = 256
HANGS, HUNG = 5, 200


def serve_many(server, count, request_of, check):
    """Sends `count` requests over a few connections, one at a time on each, and checks the answers.
    A connection that the server ends, as nginx does after so many requests, is made anew."""
    clients = [server.client() for _ in range(CONNECTIONS)]
    for start in range(0, count, CONNECTIONS):
        busy = range(min(CONNECTIONS, count - start))
        for index in busy:
            clients[index].send(request_of(start + index))
        for index in busy:
            answer = clients[index].read()
            check(start + index, answer)
            if not answer.kept_alive:
                clients[index].close()
                clients[index] = server.client()
    for client in clients:
        client.close()


@pytest.fixture
def fast_backend(new_nginx, backend):
    """An nginx that answers by itself and logs each request in a short line."""
    return new_nginx("access_log executed.log one; location / { return 201 'done'; }",
                     http="log_format one '$request_uri';\n")


class Fast:
    """What the growth tests need of a backend."""

    def __init__(self, server):
        self.port, self.url = server.port, f"http://127.0.0.1:{server.port}"
        self.log = server.directory / "executed.log"

    def executions(self):
        with open(self.log, "rb") as file:
            return sum(1 for _ in file)


@pytest.fixture
def one_worker(new_gateway, fast_backend):
    backend = Fast(fast_backend)
    return new_gateway(POLICY, workers=1, backend=backend), backend


def first_and_replay(number):
    """Every key twice in a row of connections: an execution, later its replay."""
    key = f"growth-{number - number % (2 * CONNECTIONS) + number % CONNECTIONS:010d}"
    return encode("POST", "/plain", [("Idempotency-Key", key),
                                     ("Content-Type", "application/json")], b'{"amount": 1}')


def check_first_and_replay(number, answer):
    assert (answer.status, answer.body) == (201, b"done")
    assert is_replay(answer) == (number % (2 * CONNECTIONS) >= CONNECTIONS)


def test_many_executions_and_replays_do_not_grow_a_worker(one_worker):
    gateway, backend = one_worker
    pid, = gateway.workers()
    total = REQUESTS - REQUESTS % (2 * CONNECTIONS)
    warm = WARM_UP - WARM_UP % (2 * CONNECTIONS)
    idle = at_rest(pid)
    serve_many(gateway, warm, first_and_replay, check_first_and_replay)
    before = footprint(pid)
    serve_many(gateway, total, lambda number: first_and_replay(number + warm),
               check_first_and_replay)
    assert_same_descriptors(pid, idle)
    after = footprint(pid)
    assert after.anonymous_kib <= before.anonymous_kib + SLACK_KIB, f"{before} {after}"
    until(lambda: backend.executions() == (warm + total) // 2, "each key was executed once")


def test_ten_thousand_distinct_keys_do_not_grow_a_worker(one_worker):
    """Half of them are refused, which must leave nothing either."""
    gateway, backend = one_worker
    pid, = gateway.workers()
    long = "k" * 200

    def request(number):
        key = f"{long}-{number}" if number % 2 else f"{long} {number}"
        return encode("POST", "/plain", [("Idempotency-Key", key)], b"{}")

    def check(number, answer):
        if number % 2:
            assert answer.status == 201 and not is_replay(answer)
        else:
            assert_problem(answer, INVALID)

    serve_many(gateway, 2000, request, check)
    before = footprint(pid)
    serve_many(gateway, 10_000, lambda number: request(number + 2000), check)
    after = footprint(pid)
    assert after.anonymous_kib <= before.anonymous_kib + SLACK_KIB, f"{before} {after}"
    until(lambda: backend.executions() == 6000, "each good key was executed once")


# Each way a request can end, again and again.

@pytest.fixture
def slow(new_gateway, backend):
    """One worker before the scripted backend; short waits for a store that does not answer."""
    gateway = new_gateway(POLICY, workers=1)
    gateway.allow_log(r"(?i)store|mdb")
    return gateway


def conflict(gateway, backend, key):
    assert gateway.post("/plain", key).status == 201
    assert_problem(gateway.post("/plain", key, b'{"other": 1}'), CONFLICT)


def failed_and_again(gateway, backend, key):
    backend.script(key, Reply(500), Reply(201))
    assert [gateway.post("/fails", key).status for _ in range(2)] == [500, 201]


def reset_by_the_backend(gateway, backend, key):
    backend.script(key, Reply(fault="reset"))
    assert gateway.post("/plain", key).status == 502
    assert gateway.post("/plain", key).status == 409


def truncated(gateway, backend, key):
    backend.script(key, Reply(body=b"t" * 5000, fault="truncate"))
    assert gateway.post("/plain", key).status == 502


def found_by_a_probe(gateway, backend, key):
    backend.script(key, Reply(fault="close"))
    backend.script_probe(key, Reply(200, body=b"found"))
    assert gateway.post("/probed", key).status == 502
    assert is_replay(gateway.post("/probed", key))


def over_the_limit(gateway, backend, key):
    backend.script(key, Reply(201, body=b"o" * 100_000))
    assert len(gateway.post("/small", key).body) == 100_000
    assert code_of(gateway.post_settled("/small", key)) == NOT_STORED


def large_bodies(gateway, backend, key):
    body = b"b" * 300_000
    backend.script(key, Reply(201, body=body))
    assert gateway.post("/plain", key, body).body == body
    assert is_replay(gateway.post("/plain", key, body))


def client_gone(gateway, backend, key):
    backend.script(key, Reply(201, body=b"g" * 50_000))
    gateway.send("/plain", key).reset()
    half = gateway.client()
    half.send(encode("POST", "/plain", [("Idempotency-Key", key + "-half")], b"12345678")[:-4])
    half.reset()
    until(lambda: is_replay(gateway.post("/plain", key)), "it settled without its client")


def pending_meanwhile(gateway, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    client = gateway.send("/plain", key)
    backend.wait(key)
    assert_problem(gateway.post("/plain", key), PENDING)
    reply.hold.set()
    assert client.read().status == 201
    client.close()


def refused_by_nginx(gateway, backend, key):
    assert gateway.post("/plain", "L" * 20_000).status == 400
    assert gateway.post("/plain", key, method="BREW").status in (201, 405)


# What an allocator keeps of bodies of 300 KB: a few, not eighty.
ROOM_KIB = {large_bodies: 1024}
ENDINGS = [conflict, failed_and_again, reset_by_the_backend, truncated, found_by_a_probe,
           over_the_limit, large_bodies, client_gone, pending_meanwhile, refused_by_nginx]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.__name__)
def test_no_way_to_end_leaves_anything_behind(slow, backend, ending):
    pid, = slow.workers()
    idle = at_rest(pid)
    for _ in range(EACH // 3):
        ending(slow, backend, new_key())
    before = footprint(pid)
    for _ in range(EACH):
        ending(slow, backend, new_key())
    assert_same_descriptors(pid, idle)
    after = footprint(pid)
    room_kib = ROOM_KIB.get(ending, EACH_SLACK_KIB)
    assert after.anonymous_kib <= before.anonymous_kib + room_kib, f"{before} {after}"


def test_refusals_of_a_store_that_is_away_leave_nothing_behind(slow):
    pid, = slow.workers()
    idle = at_rest(pid)
    away = slow.store_dir.with_name("away")
    slow.store_dir.rename(away)
    slow.post_until(lambda answer: answer.status == 503, "the store is away", "/plain", new_key())

    def check(_, answer):
        assert_problem(answer, STORE_UNAVAILABLE)

    def request(number):
        return encode("POST", "/plain", [("Idempotency-Key", f"away-{number}")], b"{}")

    serve_many(slow, 500, request, check)
    before = footprint(pid)
    serve_many(slow, 4000, lambda number: request(number + 500), check)
    after = footprint(pid)
    assert after.anonymous_kib <= before.anonymous_kib + EACH_SLACK_KIB, f"{before} {after}"
    away.rename(slow.store_dir)
    slow.post_until(lambda answer: answer.status == 201, "it executes", "/plain", new_key())
    assert_same_descriptors(pid, idle)


def test_claims_withdrawn_after_a_hang_leave_nothing_behind(new_nginx, backend):
    nginx = new_nginx(f"location / {{ counterfoil on; proxy_pass {backend.url}; }}",
                      http="counterfoil_settle_wait 200ms;", policy=POLICY)
    nginx.allow_log(r"(?i)store|mdb")
    pid, = nginx.workers()
    store = nginx.directory / "store"

    def hang(turn):
        with Holder(store) as holder:
            clients = [nginx.send("/plain", f"hang-{turn}-{number}") for number in range(HUNG)]
            for client in clients:
                assert_problem(client.read(), STORE_UNAVAILABLE)
                client.close()
            holder.release()
        nginx.post_until(lambda answer: answer.status == 201, "it executes", "/plain", new_key())

    idle = at_rest(pid)
    for turn in range(HANGS):
        hang(turn)
    before = footprint(pid)
    for turn in range(HANGS, 2 * HANGS):
        hang(turn)
    assert_same_descriptors(pid, idle)
    after = footprint(pid)
    assert after.anonymous_kib <= before.anonymous_kib + SLACK_KIB, f"{before} {after}"
