# SPDX-License-Identifier: Apache-2.0
"""Streams that are reset, and connections that end with streams on them, at every stage.

A stream that is reset before its body is whole leaves no claim. A claim survives its stream as it does
a connection (R4): the backend's answer is read to its end, settled and replayed.
"""

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, NOT_STORED, PENDING, assert_first, assert_problem,
                            assert_replay, is_replay, new_key)
from support.front import PROXY
from support.http2 import Http2Client

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
    location / {{ {PROXY} {{backend}}; }}
    location /unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
    location /small/ {{ {PROXY} {{backend}}; }}
    location /small/memory/ {{ {PROXY} {{backend}}; proxy_max_temp_file_size 0; }}
    location /small/unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
"""

HELD = ["/x", "/unbuffered/x"]
PASSED_ON = ["/small/x", "/small/memory/x", "/small/unbuffered/x"]
WINDOW = 16384


@pytest.fixture(params=["clear", "tls"])
def client(request, front):
    tls = request.param == "tls"
    port = front.tls_port if tls else front.clear_port
    with Http2Client(("127.0.0.1", port), tls=tls, window_bytes=WINDOW) as made:
        yield made


def leave(front, client, stream, how):
    """The stream or its connection ends, and nginx has seen it."""
    if how == "stream":
        client.cancel(stream)
        client.ping()
        return
    getattr(client, how)()
    front.await_gone(client.peer_port, client.local_port)


WAYS = ["stream", "close", "abort"]


def check_settled(front, backend, key, target, body):
    front.await_state(key, "SUCCEEDED")
    again = front.post(target, key)
    if target in PASSED_ON:
        assert_problem(again, NOT_STORED)
    else:
        assert is_replay(again)
        assert (again.status, again.body) == (201, body)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("sent", [None, b"", b"12345", b"x" * 30_000, b"x" * 150_000],
                         ids=["head only", "empty frame", "a part", "30 KB", "150 KB"])
@pytest.mark.parametrize("length", [None, "200000"], ids=["no length", "length"])
@pytest.mark.parametrize("how", WAYS)
def test_before_the_body_is_whole_no_claim_is_left(front, backend, client, key, how, sent, length):
    headers = [("content-length", length)] if length else []
    stream = client.begin("/x", key, headers=headers)
    if sent is not None:
        client.data(stream, sent)
    client.ping()
    leave(front, client, stream, how)
    assert front.record(key) is None
    assert backend.executions(key) == 0
    first = client.post("/x", key) if how == "stream" else front.post("/x", key)
    assert_first(first)
    assert_replay(front.post("/x", key), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("target", HELD + PASSED_ON)
def test_while_the_backend_works(front, backend, client, key, target, how):
    reply = backend.holding(body=b"w" * 5000)
    backend.script(key, reply)
    stream = client.request(target, key)
    backend.wait(key)
    leave_while_busy(front, client, stream, how)
    assert front.state(key) == "PROCESSING"
    assert_problem(front.post(target, key), PENDING)
    assert_problem(front.post(target, key, b'{"other": 1}'), CONFLICT)
    reply.hold.set()
    check_settled(front, backend, key, target, b"w" * 5000)
    if how == "stream":
        assert_first(client.post("/x", new_key()))


def leave_while_busy(front, client, stream, how):
    """nginx may keep a connection open whose request still runs: a round trip tells that it knows."""
    if how == "stream":
        leave(front, client, stream, how)
    else:
        getattr(client, how)()
        assert front.post("/x", new_key()).status == 201


@pytest.mark.parametrize("size", [100 << 10, 8 << 20])
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("target", HELD)
def test_while_a_held_answer_flows(front, backend, client, key, target, how, size):
    body = b"0123456789abcdef" * (size // 16)
    backend.script(key, Reply(201, body=body))
    stream = client.request(target, key)
    assert client.read_head(stream).status == 201
    assert front.state(key) == "SUCCEEDED"
    leave(front, client, stream, how)
    check_settled(front, backend, key, target, body)
    if how == "stream":
        again = client.post(target, key)
        assert is_replay(again) and again.body == body


@pytest.mark.parametrize("size", [100 << 10, 8 << 20])
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("target", PASSED_ON)
def test_while_an_answer_that_is_passed_on_flows(front, backend, client, key, target, how, size):
    reply = Reply(201, body=b"p" * size)
    backend.script(key, reply)
    stream = client.request(target, key)
    assert client.read_head(stream).status == 201
    if how == "stream":
        client.cancel(stream)
    else:
        getattr(client, how)()
    assert reply.sent.wait(2), "the backend could not send its answer to its end"
    check_settled(front, backend, key, target, None)
    if how == "stream":
        assert_first(client.post("/x", new_key()))


@pytest.mark.parametrize("how", WAYS)
def test_while_a_replay_flows(front, backend, client, key, how):
    backend.script(key, Reply(201, body=b"r" * (8 << 20)))
    first = front.post("/x", key)
    before = front.record(key)
    stream = client.request("/x", key)
    assert client.read_head(stream).status == 201
    leave(front, client, stream, how)
    assert front.record(key) == before
    assert_replay(front.post("/x", key), first)
    assert backend.executions(key) == 1


def test_at_once_after_the_request(front, backend, client):
    """Wherever the reset meets the request: in its claim, on its way, or done. Once at most, and again
    once at most."""
    keys = [new_key() for _ in range(40)]
    for key in keys:
        client.cancel(client.request("/x", key))
    client.ping()
    for key in keys:
        assert front.post_settled("/x", key).status == 201
        assert is_replay(front.post("/x", key))
        assert backend.executions(key) == 1


def test_twenty_streams_of_one_key_of_which_the_executing_one_is_reset(front, backend, client, key):
    reply = backend.holding(body=b"once")
    backend.script(key, reply)
    first = client.request("/x", key)
    backend.wait(key)
    others = [client.request("/x", key) for _ in range(19)]
    client.cancel(first)
    for stream in others:
        assert_problem(client.read(stream), PENDING)
    reply.hold.set()
    check_settled(front, backend, key, "/x", b"once")


def test_a_connection_that_ends_with_twenty_streams_on_it(front, backend, client):
    keys = [new_key() for _ in range(20)]
    held = [backend.holding() for _ in keys]
    for key, reply in zip(keys, held):
        backend.script(key, reply)
        client.request("/x", key)
    for key in keys:
        backend.wait(key)
    client.abort()
    for reply in held:
        reply.hold.set()
    for key in keys:
        front.await_state(key, "SUCCEEDED")
        assert is_replay(front.post("/x", key))
        assert backend.executions(key) == 1


def test_a_stalled_stream_does_not_hold_up_the_others(front, backend, client, key):
    """Its window is used up and never given back; the connection's is not."""
    backend.script(key, Reply(201, body=b"s" * 200_000))
    stalled = client.request("/x", key)
    assert client.read_head(stalled).status == 201
    for _ in range(10):
        assert_first(client.post("/x", new_key()))
    replay = front.post("/x", key)
    assert is_replay(replay)
    assert client.read(stalled).body == replay.body
    assert backend.executions(key) == 1
