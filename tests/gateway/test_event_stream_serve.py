# SPDX-License-Identifier: Apache-2.0
"""`counterfoil serve` passes an event stream on as it comes, whether or not the backend speaks nginx.

test_event_stream.py has everything else about event streams.
"""

import threading

import pytest

from support.expect import CONFLICT, NOT_STORED, PENDING, assert_problem, is_replay
from support.rawbackend import Body, Play, RawBackend, finish, head, until_set

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST|GET /**"}
"""
EVENTS = [b"data: one\n\n", b"data: two\n\n"]


@pytest.fixture
def raw():
    backend = RawBackend()
    yield backend
    backend.stop()


def events(go, framing, more):
    """One event at once, the other when the test says so."""
    lines = ["Content-Type: text/event-stream", *more]
    if framing == "close":
        return Play([head("200 OK", *lines, "Connection: close"), EVENTS[0], until_set(go), EVENTS[1],
                     finish])
    one, two = (Body(b"%x\r\n%s\r\n" % (len(event), event)) for event in EVENTS)
    return Play([head("200 OK", *lines, "Transfer-Encoding: chunked"), one, until_set(go), two,
                 b"0\r\n\r\n"])


@pytest.mark.parametrize("policy", [POLICY, None], ids=["policy", "no policy"])
@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("more", [["X-Accel-Buffering: no"], []], ids=["told", "not told"])
def test_the_first_event_arrives_before_the_second_is_sent(new_gateway, raw, key, more, framing,
                                                           policy):
    gateway, go = new_gateway(policy, backend=raw), threading.Event()
    raw.script(key, events(go, framing, more))
    with gateway.send("/x", key, b"{}") as client:
        raw.wait(key)
        try:
            client.sock.settimeout(2.0)
            while EVENTS[0] not in client.buffer:
                client.buffer += client.sock.recv(4096)
            assert_problem(gateway.post("/x", key), PENDING)
            assert_problem(gateway.post("/x", key, b"[]"), CONFLICT)
        finally:
            go.set()
        answer = client.read(timeout_s=10)
    assert (answer.status, answer.body, is_replay(answer)) == (200, b"".join(EVENTS), False)
    assert_problem(gateway.post_settled("/x", key), NOT_STORED)
    assert gateway.record(key)["state"] == "SUCCEEDED"
    assert raw.executions(key) == 1
