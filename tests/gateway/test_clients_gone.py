# SPDX-License-Identifier: Apache-2.0
"""Clients that leave: before the request is whole, while the backend works, while the answer flows.

A request that never was whole leaves no claim. A claim survives its client (R4): the backend's
answer is read to its end and settled, held or passed on, buffered by nginx or not.
"""

import socket

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, NOT_STORED, PENDING, assert_first, assert_problem,
                            assert_replay, is_replay)
from support.front import PROXY, STEP
from support.rawhttp import Closed

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: POST /small/**, snapshot: {max_body: 1KiB}}
  - {name: all, match: POST /**, snapshot: {max_body: 16MiB}}
"""

SERVER = f"""
    counterfoil on;
    client_max_body_size 0;
    {STEP}
    location / {{ {PROXY} {{backend}}; }}
    location /unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
    location /small/ {{ {PROXY} {{backend}}; }}
    location /small/memory/ {{ {PROXY} {{backend}}; proxy_max_temp_file_size 0; }}
    location /small/unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
    location /small/stalled/ {{ {PROXY} {{backend}}; send_timeout 300ms; }}
    location /small/unbuffered/stalled/ {{
        {PROXY} {{backend}}; proxy_buffering off; send_timeout 300ms;
    }}
    location /stalled/ {{ {PROXY} {{backend}}; send_timeout 300ms; }}
"""

HELD = ["/x", "/unbuffered/x"]
PASSED_ON = ["/small/x", "/small/memory/x", "/small/unbuffered/x"]
LEAVES = ["close", "reset"]
SIZES = [100 << 10, 8 << 20]


def leave(front, client, how):
    """The client goes, and nginx has seen it go."""
    local, peer = client.sock.getpeername()[1], client.sock.getsockname()[1]
    getattr(client, how)()
    front.await_gone(local, peer)


def check_settled(front, backend, key, target, body):
    """Settled as a success within a second; a retry gets the whole answer, or that it is not kept."""
    front.await_state(key, "SUCCEEDED")
    again = front.post(target, key)
    if target in PASSED_ON:
        assert_problem(again, NOT_STORED)
    else:
        assert is_replay(again)
        assert (again.status, again.body) == (201, body)
    assert backend.executions(key) == 1


# Before the request is whole.

HALF = {
    "before the body": b"Content-Length: 10\r\n\r\n",
    "in the body": b"Content-Length: 10\r\n\r\n12345",
    "before the last byte": b"Content-Length: 10\r\n\r\n123456789",
    "before the first chunk": b"Transfer-Encoding: chunked\r\n\r\n",
    "in a chunk": b"Transfer-Encoding: chunked\r\n\r\nff\r\n12345",
    "between chunks": b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
    "before the last line feed": b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r",
    "in a body already in a file": b"Content-Length: 200000\r\n\r\n" + b"x" * 150_000,
    "after it was told to go on": b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n",
    "in the header": b"Content-Length: 2\r\nX-Half: ",
}


def ends_without_answer(client):
    """Closed, or told that the request is bad and then closed."""
    try:
        return client.read().status == 400 and client.at_end()
    except Closed:
        return True


@pytest.mark.parametrize("how", LEAVES + ["half-close"])
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("half", HALF)
def test_a_request_that_never_was_whole_leaves_no_claim(front, backend, key, half, version, how):
    client = front.client()
    client.send(b"POST /x HTTP/" + version + b"\r\nHost: gw.test\r\nIdempotency-Key: "
                + key.encode() + b"\r\n" + HALF[half])
    if b"Expect" in HALF[half] and version == b"1.1":
        assert client.sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    if how == "half-close":
        client.sock.shutdown(socket.SHUT_WR)
        assert ends_without_answer(client)
        client.close()
    else:
        leave(front, client, how)
    assert front.record(key) is None
    assert backend.executions(key) == 0
    first = front.post("/x", key)
    assert_first(first)
    assert_replay(front.post("/x", key), first)
    assert backend.executions(key) == 1


# While the backend works.

@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.parametrize("target", HELD + PASSED_ON)
def test_who_leaves_while_the_backend_works_finds_the_answer(front, backend, key, target, how,
                                                             version):
    reply = backend.holding(body=b"w" * 5000)
    backend.script(key, reply)
    client = front.send(target, key, version=version)
    backend.wait(key)
    (client.close if how == "close" else client.reset)()
    assert front.state(key) == "PROCESSING"
    assert_problem(front.post(target, key), PENDING)
    assert_problem(front.post(target, key, b'{"other": 1}'), CONFLICT)
    reply.hold.set()
    check_settled(front, backend, key, target, b"w" * 5000)


# While the answer is being sent.

def body_of(size):
    return (b"0123456789abcdef" * (size // 16 + 1))[:size]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.parametrize("target", HELD)
def test_who_leaves_inside_a_held_answer_finds_it_whole(front, backend, key, target, how, size):
    """It was durable before its first byte was sent (R3)."""
    backend.script(key, Reply(201, body=body_of(size)))
    client = front.send(target, key, client=front.narrow())
    client.read_some(1000)
    assert front.state(key) == "SUCCEEDED"
    leave(front, client, how)
    check_settled(front, backend, key, target, body_of(size))


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.parametrize("target", PASSED_ON)
def test_who_leaves_inside_an_answer_that_is_passed_on(front, backend, key, target, how, size,
                                                       framing):
    """The backend is read to its end all the same: it is a success, and never run again."""
    reply = Reply(201, body=body_of(size), framing=framing)
    backend.script(key, reply)
    client = front.send(target, key, client=front.narrow())
    client.read_some(1000)
    getattr(client, how)()
    assert reply.sent.wait(2), "the backend could not send its answer to its end"
    check_settled(front, backend, key, target, None)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("how", LEAVES)
def test_who_leaves_inside_a_replay_changes_nothing(front, backend, key, how, size):
    backend.script(key, Reply(201, body=body_of(size)))
    first = front.post("/x", key)
    assert_first(first)
    before = front.record(key)
    client = front.send("/x", key, client=front.narrow())
    client.read_some(1000)
    leave(front, client, how)
    assert front.record(key) == before
    assert_replay(front.post("/x", key), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("how", LEAVES)
def test_who_leaves_with_many_requests_sent_ahead(front, backend, how):
    """What nginx read of them runs once at most, and each can be asked for again."""
    keys = [f"ahead-{how}-{number}" for number in range(8)]
    held = backend.holding()
    backend.script(keys[0], held)
    client = front.client()
    for key in keys:
        front.send("/x", key, client=client)
    backend.wait(keys[0])
    (client.close if how == "close" else client.reset)()
    held.hold.set()
    front.await_state(keys[0], "SUCCEEDED")
    for key in keys:
        assert front.post_settled("/x", key).status == 201
        assert is_replay(front.post("/x", key))
        assert backend.executions(key) == 1


# A client that stays and does not read, until nginx gives it up.

@pytest.mark.parametrize("target", ["/stalled/x", "/small/stalled/x", "/small/unbuffered/stalled/x"])
def test_a_client_that_never_reads_is_given_up_and_the_claim_ends(front, backend, key, target):
    """Held, it was settled before. Passed on, nginx cuts the exchange or not: never a second run."""
    reply = Reply(201, body=body_of(8 << 20))
    backend.script(key, reply)
    client = front.send(target, key, client=front.narrow())
    client.read_some(1000)
    front.await_gone(front.narrow_port, client.sock.getsockname()[1])
    again = front.post_settled(target, key)
    client.close()
    if target == "/stalled/x":
        assert is_replay(again) and again.body == reply.body
        assert front.state(key) == "SUCCEEDED"
    else:
        assert (again.status, is_replay(again)) == (409, False)
        assert front.state(key) in ("SUCCEEDED", "IN_DOUBT")
    assert backend.executions(key) == 1
