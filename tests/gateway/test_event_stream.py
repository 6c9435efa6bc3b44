# SPDX-License-Identifier: Apache-2.0
"""Event streams reach the client event by event, and are settled without a snapshot.

The client holds the first event in its hands before the backend sends the second. Until the end the
key is pending, however long that takes; then it is known that it was done.
"""

import threading
import time
import zlib

import pytest

from support.expect import (CONFLICT, NOT_STORED, PENDING, UNKNOWN, assert_problem, is_replay)
from support.front import PROXY, Front
from support.http2 import Http2Client
from support.rawbackend import Body, Play, RawBackend, finish, head, reset, until_set
from support.waiting import until, until_clock

POLICY = """
version: 1
tenant: none
defaults: {lease: 1s}
routes:
  - {name: all, match: "POST|GET /**"}
"""

SERVER = f"""
    counterfoil on;
    location / {{ {PROXY} {{backend}}; proxy_buffering off; }}
    location /buffered/ {{ {PROXY} {{backend}}; }}
    location /gzip/ {{
        {PROXY} {{backend}}; proxy_buffering off; gzip on; gzip_types *; gzip_min_length 1;
    }}
"""

EVENTS = [b"data: one\n\n", b"data: two\n\n", b"event: end\ndata: {}\n\n"]


@pytest.fixture(scope="module")
def raw():
    backend = RawBackend()
    yield backend
    backend.stop()


@pytest.fixture(scope="module")
def front(tmp_path_factory, raw):
    server = Front(tmp_path_factory.mktemp("front"), raw,
                   SERVER.replace("{backend}", raw.url), POLICY)
    with server.running():
        yield server


class Stream:
    """A backend's event stream that sends an event each time the test lets it."""

    def __init__(self, raw, key, ctype="text/event-stream", framing="chunked", end=None, more=()):
        self.go = [threading.Event() for _ in EVENTS]
        lines = [f"Content-Type: {ctype}", *more]
        chunked = framing == "chunked"
        steps = [head("200 OK", *lines, "Transfer-Encoding: chunked" if chunked
                      else "Connection: close")]
        for go, event in zip(self.go, EVENTS):
            steps += [until_set(go),
                      Body(b"%x\r\n%s\r\n" % (len(event), event) if chunked else event)]
        if end is not None:
            steps = steps[:-1] + [end]
        elif chunked:
            steps.append(Body(b"0\r\n\r\n"))
        else:
            steps.append(finish)
        raw.script(key, Play(steps))

    def finish(self):
        for go in self.go:
            go.set()


def read_until(client, wanted):
    """What came, once `wanted` is in it; nothing else wakes the backend."""
    while wanted not in client.buffer:
        block = client.sock.recv(4096)
        assert block, f"the stream ended after {client.buffer!r}"
        client.buffer += block


def follow(front, raw, key, target, stream, client):
    """Event by event to the end; then NOT_STORED, and one execution."""
    for go, event in zip(stream.go, EVENTS):
        go.set()
        read_until(client, event)
        if go is not stream.go[-1]:
            assert_problem(front.post(target, key), PENDING)
            assert_problem(front.post(target, key, b"[]"), CONFLICT)
    answer = client.read()
    assert (answer.status, answer.body) == (200, b"".join(EVENTS))
    check_done(front, raw, key, target)


def check_done(front, raw, key, target):
    front.await_state(key, "SUCCEEDED")
    assert_problem(front.post(target, key), NOT_STORED)
    assert "snapshot" not in front.record(key) or front.record(key)["snapshot"] is None
    assert raw.executions(key) == 1


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("ctype", ["text/event-stream", "text/event-stream; charset=utf-8",
                                   "text/event-stream;charset=utf-8", "Text/Event-Stream"])
def test_each_event_arrives_before_the_next_is_sent(front, raw, key, ctype, framing, version):
    stream = Stream(raw, key, ctype, framing)
    with front.send("/x", key, version=version) as client:
        follow(front, raw, key, "/x", stream, client)


@pytest.mark.parametrize("more", [[], ["X-Accel-Buffering: no"]])
def test_events_are_not_buffered_by_nginx(front, raw, key, more):
    stream = Stream(raw, key, more=more)
    with front.send("/buffered/x", key) as client:
        follow(front, raw, key, "/buffered/x", stream, client)


@pytest.mark.parametrize("more", [[], ["X-Accel-Buffering: no"]])
def test_under_serve_events_arrive_at_once(new_gateway, raw, key, more):
    gateway = new_gateway(POLICY, backend=raw)
    stream = Stream(raw, key, more=more)
    with gateway.send("/x", key) as client:
        for go, event in zip(stream.go, EVENTS):
            go.set()
            read_until(client, event)
        assert client.read().body == b"".join(EVENTS)
    assert_problem(gateway.post_settled("/x", key), NOT_STORED)
    assert gateway.record(key)["state"] == "SUCCEEDED"
    assert raw.executions(key) == 1


def test_events_that_no_route_guards_arrive_at_once(front, raw):
    """A stream is mostly asked for by a GET without a key."""
    stream = Stream(raw, "/buffered/x")
    with front.send("/buffered/x", None, None, method="GET") as client:
        for go, event in zip(stream.go, EVENTS):
            go.set()
            read_until(client, event)


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
def test_over_http_2(front, raw, key, tls):
    stream = Stream(raw, key)
    port = front.tls_port if tls else front.clear_port
    with Http2Client(("127.0.0.1", port), tls=tls) as client:
        number = client.request("/x", key)
        for go, event in zip(stream.go, EVENTS):
            go.set()
            client.read_head(number)
            while event not in client.streams[number].unread:
                client.receive()
        assert client.read(number).body == b"".join(EVENTS)
    check_done(front, raw, key, "/x")


def test_compressed_events_arrive_one_by_one_too(front, raw, key):
    stream = Stream(raw, key)
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    with Http2Client(("127.0.0.1", front.clear_port)) as client:
        number = client.request("/gzip/x", key, headers=[("accept-encoding", "gzip")])
        seen, taken = b"", 0
        for go, event in zip(stream.go, EVENTS):
            go.set()
            client.read_head(number)
            while event not in seen:
                packed = client.streams[number].unread
                seen += unpack.decompress(packed[taken:])
                taken = len(packed)
                if event not in seen:
                    client.receive()
        client.read(number)
    assert seen == b"".join(EVENTS)
    check_done(front, raw, key, "/gzip/x")


def test_a_guarded_get_is_a_stream_too(front, raw, key):
    stream = Stream(raw, key)
    with front.send("/x", key, None, method="GET") as client:
        for go, event in zip(stream.go, EVENTS):
            go.set()
            read_until(client, event)
        assert client.read("GET").body == b"".join(EVENTS)
    front.await_state(key, "SUCCEEDED")
    assert_problem(front.post("/x", key, None, method="GET"), NOT_STORED)
    assert raw.executions(key) == 1


def test_it_stays_pending_beyond_its_lease(front, raw, key):
    """The claim is renewed to the stream's end (R3): an hour of events is no lost owner."""
    stream = Stream(raw, key)
    start = time.monotonic()
    with front.send("/x", key) as client:
        stream.go[0].set()
        read_until(client, EVENTS[0])
        until_clock(start + 2.5)
        assert front.state(key) == "PROCESSING"
        follow(front, raw, key, "/x", stream, client)


@pytest.mark.parametrize("how", ["close", "reset", "stream"])
def test_who_leaves_in_the_middle_does_not_end_it(front, raw, key, how):
    stream = Stream(raw, key)
    stream.go[0].set()
    if how == "stream":
        client = Http2Client(("127.0.0.1", front.clear_port))
        number = client.request("/x", key)
        client.read_head(number)
        client.cancel(number)
        client.ping()
    else:
        client = front.send("/x", key)
        read_until(client, EVENTS[0])
        getattr(client, how)()
    assert_problem(front.post("/x", key), PENDING)
    stream.finish()
    check_done(front, raw, key, "/x")


def test_a_stream_that_breaks_off_is_in_doubt(front, raw, key):
    stream = Stream(raw, key, end=reset)
    with front.send("/x", key) as client:
        for go, event in zip(stream.go[:2], EVENTS):
            go.set()
            read_until(client, event)
        stream.go[2].set()
        until(lambda: client.readable(0.1), "the broken stream ends for the client, too")
    front.await_state(key, "IN_DOUBT")
    assert_problem(front.post("/x", key), UNKNOWN)
    assert raw.executions(key) == 1


def test_a_failed_answer_that_calls_itself_a_stream_fails(front, raw, key):
    """The outcome is that of the status; a retry runs again."""
    raw.script(key, Play([head("500 Odd", "Content-Type: text/event-stream", "Content-Length: 2"),
                          Body(b"{}")]))
    assert front.post("/x", key).status == 500
    front.await_state(key, "FAILED")
    again = front.post("/x", key)
    assert (again.status, is_replay(again)) == (500, False)
    assert raw.executions(key) == 2
