# SPDX-License-Identifier: Apache-2.0
"""1xx: interim answers are no end (RFC 9110, 15.2), a 101 is one and opens a tunnel."""

import socket
import threading
import time

import pytest

from support.expect import NOT_STORED, PENDING, UNKNOWN, assert_first, assert_problem
from support.pair import STEP, Pair
from support.rawbackend import (Play, close, echo_upper, finish, head, pause, reply, reset,
                                until_set, wait_for_peer)
from support.waiting import until_clock

POLICY = """
version: 1
tenant: none
defaults: {lease: 300ms}
routes:
  - {name: all, match: "POST|PUT|PATCH|DELETE|GET|HEAD /**"}
"""

SERVER = f"""
    counterfoil on;
    {STEP}
    location / {{ proxy_pass {{backend}}; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    location /unbuffered/ {{
        proxy_pass {{backend}}; proxy_http_version 1.1; proxy_set_header Connection "";
        proxy_buffering off;
    }}
    location /tunnel/ {{
        proxy_pass {{backend}}; proxy_http_version 1.1; proxy_set_header Connection upgrade;
        proxy_set_header Upgrade $http_upgrade;
    }}
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with Pair(tmp_path_factory.mktemp("pair"), SERVER, POLICY).running() as made:
        yield made


# Interim answers. nginx 1.22 takes the first for the final one and passes the rest on as its body;
# read by a client, that is the interim answer followed by the final one, if the backend closes.

CONTINUE, HINTS = head("100 Continue"), head("103 Early Hints", "Link: </a>; rel=preload")

INTERIM = {
    "100": [CONTINUE],
    "100 on its own": [CONTINUE, pause(0.05)],
    "102": [head("102 Processing")],
    "103": [HINTS],
    "103 on its own": [HINTS, pause(0.05)],
    "100, 103 twice": [CONTINUE, HINTS, HINTS],
}


CASES = ([("POST", "HTTP/1.1", "/x", name) for name in INTERIM]
         + [(method, "HTTP/1.1", "/x", "100 on its own") for method in ("PUT", "PATCH", "DELETE")]
         + [("POST", "HTTP/1.0", "/x", "103"), ("POST", "HTTP/1.1", "/unbuffered/x", "103")])


@pytest.mark.parametrize("end", [[finish], []], ids=["backend closes", "backend stays"])
@pytest.mark.parametrize("method, version, target, interim", CASES)
def test_the_answer_after_an_interim_one_is_the_answer(pair, key, method, version, target, interim,
                                                       end):
    pair.raw.script(key, Play([*INTERIM[interim], *reply("201 Created", b'{"id": 7}'), *end]))
    answer = pair.guarded.post(target, key, method=method, version=version, timeout_s=2)
    assert_first(answer, 201)
    assert answer.body == b'{"id": 7}'
    assert pair.raw.executions(key) == 1
    pair.assert_state(key, "SUCCEEDED")
    pair.assert_retry(key, "SUCCEEDED", answer, target, method, version)


@pytest.mark.parametrize("status, outcome", [("404 Not Found", "FAILED_FINAL"),
                                             ("500 Internal", "FAILED"), ("502 Bad", "IN_DOUBT")])
def test_the_final_status_decides_and_not_the_interim_one(pair, key, status, outcome):
    pair.raw.script(key, Play([CONTINUE, *reply(status)]), Play(reply("201 Created")))
    answer = pair.guarded.post("/x", key, timeout_s=2)
    assert_first(answer, int(status[:3]))
    pair.assert_state(key, outcome)
    pair.assert_retry(key, outcome, answer, "/x")


@pytest.mark.parametrize("end", [close, reset])
@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("interim", ["100", "102", "103"])
def test_nothing_after_an_interim_answer_is_in_doubt(pair, key, interim, method, end):
    pair.raw.script(key, Play([*INTERIM[interim], pause(0.02), end]))
    answer = pair.guarded.post("/x", key, method=method, timeout_s=2)
    assert answer.status == 502
    assert pair.raw.executions(key) == 1
    pair.assert_state(key, "IN_DOUBT")
    pair.assert_retry(key, "IN_DOUBT", answer, "/x", method)


# 101: the key's execution is the switch itself; what follows is a stream and is not stored.

SWITCH = head("101 Switching Protocols", "Upgrade: shout", "Connection: upgrade")


def exactly(client, size):
    data = b""
    while len(data) < size:
        block = client.sock.recv(size - len(data))
        assert block, f"the tunnel ended after {data!r}"
        data += block
    return data


def switch(server, key, method="POST"):
    """Opens a tunnel; returns the connection behind the answer's head, and the head."""
    client = server.send("/tunnel/x", key, None if method == "GET" else b"{}",
                         [("Upgrade", "shout"), ("Connection", "upgrade")], method=method)
    top = b""
    while not top.endswith(b"\r\n\r\n"):
        top += exactly(client, 1)
    lines = [line for line in top.decode().lower().split("\r\n") if not line.startswith("date:")]
    return client, lines


def assert_tunnel(client):
    assert exactly(client, 8) == b"welcome\n"
    for word in (b"ping", b"x" * 100_000, b"pong"):
        client.send(word)
        assert exactly(client, len(word)) == word.upper()


def assert_settled_unstored(pair, key, method):
    pair.assert_state(key, "SUCCEEDED")
    body = None if method == "GET" else b"{}"
    assert_problem(pair.guarded.post("/tunnel/x", key, body, method=method), NOT_STORED)
    assert pair.raw.executions(key) == 1


@pytest.mark.parametrize("who", ["client", "client half", "backend"])
@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
def test_a_101_opens_a_tunnel_both_ways_and_its_end_settles_the_key(pair, key, method, who):
    play = Play([SWITCH + b"welcome\n", echo_upper])
    pair.raw.script("plain", play)
    pair.raw.script(key, play)
    plain, plain_head = switch(pair.plain, "plain", method)
    client, its_head = switch(pair.guarded, key, method)
    with plain, client:
        assert its_head == plain_head
        assert_tunnel(plain)
        assert_tunnel(client)
        if who == "client":
            client.close()
        elif who == "client half":
            client.sock.shutdown(socket.SHUT_WR)
            assert client.at_end()
        else:
            client.send(b"bye")
            assert exactly(client, 3) == b"BYE"
            assert client.at_end()
    assert_settled_unstored(pair, key, method)


def test_an_open_tunnel_keeps_its_claim_beyond_the_lease(pair, key):
    pair.raw.script(key, Play([SWITCH + b"welcome\n", echo_upper]))
    client, _ = switch(pair.guarded, key)
    with client:
        assert_tunnel(client)
        until_clock(time.monotonic() + 1.0)  # three leases
        assert_problem(pair.guarded.post("/tunnel/x", key), PENDING)
        client.send(b"ping")
        assert exactly(client, 4) == b"PING"
    assert_settled_unstored(pair, key, "POST")


def test_a_tunnel_the_backend_resets_is_settled_by_its_101(pair, key):
    """The exchange is over with the 101 (RFC 9110, 15.2.2); what breaks off is another protocol."""
    go = threading.Event()
    pair.raw.script(key, Play([SWITCH + b"welcome\n", until_set(go), reset]))
    client, _ = switch(pair.guarded, key)
    with client:
        assert exactly(client, 8) == b"welcome\n"
        go.set()
    assert_settled_unstored(pair, key, "POST")
    assert pair.raw.executions(key) == 1


@pytest.mark.parametrize("steps, outcome", [
    (reply("426 Upgrade Required"), "FAILED_FINAL"), (reply("200 OK"), "SUCCEEDED"),
    ([wait_for_peer], None)], ids=["426", "200", "client leaves"])
def test_a_backend_that_does_not_switch_is_like_any_other(pair, key, steps, outcome):
    pair.raw.script(key, Play(steps))
    client = pair.guarded.send("/tunnel/x", key, headers=[("Upgrade", "shout"),
                                                          ("Connection", "upgrade")])
    with client:
        if outcome is None:
            pair.raw.wait(key)
            client.close()
            assert_problem(pair.guarded.post("/tunnel/x", key), PENDING)
        else:
            answer = client.read()
            pair.assert_state(key, outcome)
            pair.assert_retry(key, outcome, answer, "/tunnel/x")
    assert pair.raw.executions(key) == 1
