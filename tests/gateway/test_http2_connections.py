# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 connections that are to end: GOAWAY of either side, nginx's limits, streams nobody reads.

GOAWAY ends no stream that is already there: what works is answered, and what was never begun leaves
no trace. Also here: what looks like HTTP/2 and is not quite (an Upgrade to h2c, trailers).
"""

import contextlib
import os
import signal

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, NOT_STORED, PENDING, assert_first, assert_problem,
                            assert_replay, is_replay, new_key)
from support.front import PROXY, Front
from support.http2 import Http2Client
from support.rawhttp import Closed
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: POST /small/**, snapshot: {max_body: 1KiB}}
  - {name: all, match: POST /**, snapshot: {max_body: 16MiB}}
"""

SERVER = f"""
    counterfoil on;
    location / {{ {PROXY} {{backend}}; }}
    location /stalled/ {{ {PROXY} {{backend}}; send_timeout 300ms; }}
    location /small/stalled/ {{ {PROXY} {{backend}}; send_timeout 300ms; }}
    location /small/unbuffered/stalled/ {{
        {PROXY} {{backend}}; proxy_buffering off; send_timeout 300ms;
    }}
"""

STREAMS_MAX = 3
GOAWAY_TYPE = 7
# A client's GOAWAY, RFC 9113, 6.8: 8 bytes, on stream 0; no stream of the server's, NO_ERROR.
GOAWAY = bytes([0, 0, 8, GOAWAY_TYPE, 0, 0, 0, 0, 0]) + bytes(8)


class Leaving(Http2Client):
    """Goes on with its streams after nginx's GOAWAY, which its library does not know how to do."""

    def __init__(self, *args, **options):
        self.told_to_go = False
        self.frames = b""
        super().__init__(*args, **options)
        take = self.h2.receive_data
        self.h2.receive_data = lambda data: take(self._without_goaway(data))

    def _without_goaway(self, data):
        self.frames += data
        whole = b""
        while len(self.frames) >= 9:
            size = 9 + int.from_bytes(self.frames[:3], "big")
            if len(self.frames) < size:
                break
            frame, self.frames = self.frames[:size], self.frames[size:]
            if frame[3] == GOAWAY_TYPE:
                self.told_to_go = True
            else:
                whole += frame
        return whole

    def to_the_end(self):
        """Takes in what comes until nginx ends the connection."""
        with contextlib.suppress(Closed):
            while True:
                self.receive()


def started(directory, backend, server):
    return Front(directory, backend, server.replace("{backend}", backend.url), POLICY).running()


@pytest.fixture(scope="module")
def front(tmp_path_factory, backend):
    with started(tmp_path_factory.mktemp("front"), backend, SERVER) as server:
        yield server


@pytest.fixture(scope="module")
def limited(tmp_path_factory, backend):
    limit = f"keepalive_requests {STREAMS_MAX};"
    with started(tmp_path_factory.mktemp("limited"), backend, limit + SERVER) as server:
        yield server


@pytest.fixture(params=["clear", "tls"])
def connect(request):
    """Connects to a front, in clear or over TLS."""
    tls = request.param == "tls"
    with contextlib.ExitStack() as ends:
        def make(front, **options):
            port = front.tls_port if tls else front.clear_port
            return ends.enter_context(Leaving(("127.0.0.1", port), tls=tls, **options))

        yield make


# GOAWAY of the client.

def test_a_client_that_says_goaway_while_the_backend_works_gets_its_answers(front, backend, connect,
                                                                            key):
    reply = backend.holding(body=b"once")
    backend.script(key, reply)
    client = connect(front)
    working = client.request("/x", key)
    backend.wait(key)
    client.sock.sendall(GOAWAY)
    client.ping()
    assert_problem(front.post("/x", key), PENDING)
    reply.hold.set()
    first = client.read(working)
    assert_first(first)
    assert first.body == b"once"
    assert_replay(front.post("/x", key), first)
    assert backend.executions(key) == 1


def test_a_client_that_says_goaway_and_leaves_while_the_backend_works(front, backend, connect, key):
    reply = backend.holding(body=b"once")
    backend.script(key, reply)
    client = connect(front)
    client.request("/x", key)
    backend.wait(key)
    client.sock.sendall(GOAWAY)
    client.close()
    assert_problem(front.post("/x", key), PENDING)
    assert_problem(front.post("/x", key, b"[]"), CONFLICT)
    reply.hold.set()
    front.await_state(key, "SUCCEEDED")
    again = front.post("/x", key)
    assert is_replay(again) and again.body == b"once"
    assert backend.executions(key) == 1


def test_goaway_before_the_body_is_whole_leaves_no_claim(front, backend, connect, key):
    client = connect(front)
    stream = client.begin("/x", key, headers=[("content-length", "100")])
    client.data(stream, b"x" * 50)
    client.sock.sendall(GOAWAY)
    client.close()
    front.await_gone(client.peer_port, client.local_port)
    assert front.record(key) is None
    assert backend.executions(key) == 0
    assert_first(front.post("/x", key))
    assert backend.executions(key) == 1


# GOAWAY of nginx.

def test_the_last_stream_nginx_takes_is_answered_and_no_later_one_begun(limited, backend, connect):
    keys = [new_key() for _ in range(STREAMS_MAX + 2)]
    held = [backend.holding() for _ in keys]
    for key, reply in zip(keys, held):
        backend.script(key, reply)
    client = connect(limited)
    streams = [client.request("/x", key) for key in keys]
    for key, reply in zip(keys[:STREAMS_MAX], held):
        backend.wait(key)
        reply.hold.set()
    for key, stream in zip(keys[:STREAMS_MAX], streams):
        answer = client.read(stream)
        assert_first(answer)
        assert_replay(limited.post("/x", key), answer)
    client.to_the_end()
    assert client.told_to_go
    for key, reply in zip(keys[STREAMS_MAX:], held[STREAMS_MAX:]):
        assert limited.record(key) is None
        reply.hold.set()
        assert_first(limited.post("/x", key))
    assert [backend.executions(key) for key in keys] == [1] * len(keys)


def test_a_reload_lets_the_streams_of_a_connection_end(front, backend, connect):
    keys = [new_key() for _ in range(5)]
    held = [backend.holding() for _ in keys]
    client = connect(front)
    streams = []
    for key, reply in zip(keys, held):
        backend.script(key, reply)
        streams.append(client.request("/x", key))
        backend.wait(key)
    old = front.workers()
    os.kill(front.master(), signal.SIGHUP)
    until(lambda: front.workers() and not set(old) & set(front.workers()), "a new worker serves")
    for key, reply, stream in zip(keys, held, streams):
        assert_problem(front.post("/x", key), PENDING)
        reply.hold.set()
        answer = client.read(stream)
        assert_first(answer)
        assert_replay(front.post("/x", key), answer)
    client.to_the_end()
    assert client.told_to_go
    assert [backend.executions(key) for key in keys] == [1] * len(keys)


# Windows.

def test_a_window_of_one_byte_gives_the_answer_byte_by_byte(front, backend, connect, key):
    backend.script(key, Reply(201, body=b"byte by byte"))
    client = connect(front, window_bytes=1)
    stream = client.request("/x", key)
    assert client.read_head(stream).status == 201
    assert front.state(key) == "SUCCEEDED"
    first = client.read(stream)
    assert_first(first)
    assert first.body == b"byte by byte"
    assert_replay(client.post("/x", key), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("target", ["/stalled/x", "/small/stalled/x",
                                    "/small/unbuffered/stalled/x"])
def test_a_stream_that_is_never_read_is_given_up_and_the_claim_ends(front, backend, connect, key,
                                                                    target):
    """Held, it was settled before. Passed on, nginx cuts it short or not: never a second run."""
    reply = Reply(201, body=b"s" * (8 << 20))
    backend.script(key, reply)
    client = connect(front, window_bytes=16384)
    stream = client.request(target, key)
    assert client.read_head(stream).status == 201
    with contextlib.suppress(Closed):
        while client.streams[stream].reset is None:
            client.receive()
    again = front.post_settled(target, key)
    if target == "/stalled/x":
        assert is_replay(again) and again.body == reply.body
        assert front.state(key) == "SUCCEEDED"
    else:
        assert (again.status, is_replay(again)) == (409, False)
        assert front.state(key) in ("SUCCEEDED", "IN_DOUBT")
    assert backend.executions(key) == 1


# Not quite HTTP/2.

def test_an_offered_upgrade_to_h2c_changes_nothing(front, backend, key):
    """nginx does not take it up: the request is one of HTTP/1.1."""
    offer = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"),
             ("HTTP2-Settings", "AAMAAABkAAQAAP__")]
    first = front.post("/x", key, headers=offer)
    assert_first(first)
    assert first.version == "HTTP/1.1"
    assert_replay(front.post("/x", key, headers=offer), first)
    assert backend.executions(key) == 1


def test_trailers_after_a_body_execute_it_once_at_most(front, backend, connect, key):
    """An nginx that knows no trailers of requests ends the connection; one that does goes on."""
    client = connect(front)
    stream = client.begin("/x", key)
    client.data(stream, b"{}")
    client.h2.send_headers(stream, [(b"x-checksum", b"1")], end_stream=True)
    with contextlib.suppress(Closed):
        client.ping()
        assert_first(client.read(stream))
    assert front.record(key) is not None or backend.executions(key) == 0
    assert front.post_settled("/x", key).status == 201
    assert is_replay(front.post("/x", key))
    assert backend.executions(key) == 1


@pytest.mark.parametrize("asks", [[("range", "bytes=0-3")], [("if-none-match", '"v1"')],
                                  [("if-match", '"v2"')],
                                  [("if-modified-since", "Mon, 01 Jan 2024 00:00:00 GMT")]],
                         ids=lambda asks: asks[0][0])
def test_conditions_on_a_replay_change_nothing(front, backend, connect, key, asks):
    backend.script(key, Reply(200, [("ETag", '"v1"'), ("Content-Type", "text/plain"),
                                    ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")],
                               b"0123456789"))
    client = connect(front)
    first = client.post("/x", key)
    assert_first(first, 200)
    assert_replay(client.post("/x", key, headers=asks), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("size", [65_535, 65_536, 1_000_000])
def test_a_body_larger_than_the_window_executes_once_among_many(front, backend, connect, key, size):
    """Five streams share the connection's window; each body is whole before anything is claimed."""
    body = b"w" * size
    client = connect(front)
    streams = [client.begin("/small/x", key) for _ in range(5)]
    for stream in streams:
        client.data(stream, body[:-1])
    assert front.record(key) is None
    backend.script(key, reply := backend.holding(body=b"a" * 5000))
    for stream in streams:
        client.data(stream, body[-1:], end=True)
    assert backend.wait(key).body_bytes == size
    client.ping()
    reply.hold.set()
    answers = [client.read(stream) for stream in streams]
    assert [answer.status for answer in answers].count(201) == 1
    front.await_state(key, "SUCCEEDED")
    assert_problem(front.post("/small/x", key, body), NOT_STORED)
    assert backend.executions(key) == 1
