# SPDX-License-Identifier: Apache-2.0
"""Sizes behind fastcgi_pass, uwsgi_pass and scgi_pass: none, spooled, at the limit, far above, unending.

The limits themselves, byte by byte, are in test_fastcgi.py and test_sizes.py.
"""

import random
import threading

import pytest

from support.cgi_backend import CgiBackend, CgiReply
from support.cgi_front import PROTOCOLS
from support.expect import (CONFLICT, NOT_STORED, PENDING, assert_first, assert_problem, assert_replay,
                            is_replay)
from support.footprint import footprint
from support.front import STEP, Front, view

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST|GET|HEAD /**"}
"""

PARAMS = """
    PROTOCOL_param REQUEST_METHOD $request_method;
    PROTOCOL_param REQUEST_URI $request_uri;
"""
LENGTH = "PROTOCOL_param CONTENT_LENGTH $content_length;\n"  # SCGI has its own
LOCATIONS = """
    location /PROTOCOL/ { PROTOCOL_pass BACKEND; }
    location /PROTOCOL/unbuffered/ { PROTOCOL_pass BACKEND; PROTOCOL_buffering off; }
    location /PROTOCOL/limited/ { PROTOCOL_pass BACKEND; client_max_body_size 16k; }
"""

KIB, MIB = 1 << 10, 1 << 20
HUGE = 64 * MIB
GROWTH_MAX_KIB = 4096
PLACES = ["", "unbuffered/"]


@pytest.fixture(scope="module")
def apps():
    backends = {protocol: CgiBackend(protocol) for protocol in PROTOCOLS}
    yield backends
    for backend in backends.values():
        backend.stop()


@pytest.fixture(scope="module")
def front(tmp_path_factory, apps):
    text = "counterfoil on; client_max_body_size 2m; client_body_buffer_size 16k;" + STEP
    for protocol, backend in apps.items():
        wanted = PARAMS + LOCATIONS + (LENGTH if protocol != "scgi" else "")
        text += wanted.replace("PROTOCOL", protocol).replace("BACKEND", backend.url)
    server = Front(tmp_path_factory.mktemp("front"), apps["fastcgi"], text, POLICY)
    with server.running():
        yield server


@pytest.fixture(params=PROTOCOLS)
def protocol(request):
    return request.param


@pytest.fixture
def app(apps, protocol):
    yield apps[protocol]
    apps[protocol].release()


def bytes_of(size):
    return random.Random(2024).randbytes(size)


@pytest.mark.parametrize("size", [16 * KIB - 1, 16 * KIB, 16 * KIB + 1, MIB])
@pytest.mark.parametrize("chunk", [None, 5000], ids=["length", "chunked"])
@pytest.mark.parametrize("place", PLACES)
def test_bodies_of_both_sides_are_identical(front, app, key, protocol, place, chunk, size):
    target, body, answered = f"/{protocol}/{place}x", bytes_of(size), bytes_of(size)[::-1]
    app.script(key, CgiReply(body=answered))
    options = {"body": body, "chunk": chunk, "ctype": "application/octet-stream"}
    first = front.post(target, key, **options)
    assert_first(first)
    assert first.body == answered
    assert app.wait(key).body == body
    assert_replay(front.post(target, key, **options), first)
    options["body"] = body[:-1] + bytes([body[-1] ^ 1])
    assert_problem(front.post(target, key, **options), CONFLICT)
    assert app.executions(key) == 1


@pytest.mark.parametrize("chunk", [None, 5000], ids=["length", "chunked"])
def test_a_body_nginx_refuses_leaves_no_claim(front, app, key, protocol, chunk):
    target, body = f"/{protocol}/limited/x", bytes_of(16 * KIB)
    with front.send(target, key, body + b"!", chunk=chunk) as client:
        assert client.read().status == 413
    assert front.record(key) is None
    assert app.executions(key) == 0
    first = front.post(target, key, body)
    assert_first(first)
    assert_replay(front.post(target, key, body, chunk=chunk), first)
    assert app.executions(key) == 1


# Without a body.

NOTHING = {"HEAD": ("HEAD", "200 OK", None), "HEAD with a length": ("HEAD", "200 OK", 1000),
           "HEAD of 404": ("HEAD", "404 No", None), "304": ("GET", "304 Not Modified", None),
           "304 with a length": ("GET", "304 Not Modified", 1000),
           "204": ("POST", "204 No Content", None), "empty": ("POST", "201 Created", 0)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("which", NOTHING)
def test_an_answer_without_a_body_is_whole(front, app, key, protocol, which, place):
    method, status, length = NOTHING[which]
    headers = [("Content-Type", "text/plain"), ("ETag", '"v1"'), ("X-One", "1")]
    app.script(key, CgiReply(status, headers, b"", length=length))
    options = {"body": b"{}" if method == "POST" else None, "method": method}
    first = front.post(f"/{protocol}/{place}x", key, **options)
    assert (first.status, is_replay(first)) == (int(status[:3]), False)
    assert (first.body, first.header("ETag"), first.header("X-One")) == (b"", '"v1"', "1")
    front.await_state(key, "FAILED_FINAL" if "404" in which else "SUCCEEDED")
    again = front.post(f"/{protocol}/{place}x", key, **options)
    assert is_replay(again)
    kept = ["content-length"]  # of a body that did not come it is not kept
    assert view(again, kept) == view(first, kept)
    assert app.executions(key) == 1


# Far above the limit, and without an end.

@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("said", [True, False], ids=["length", "no length"])
def test_64_mib_pass_in_constant_memory(front, app, key, protocol, place, said):
    pid, = front.workers()
    app.script(key + "-warm", CgiReply(body=bytes(4 * MIB)))
    front.post(f"/{protocol}/{place}x", key + "-warm")
    before = footprint(pid).anonymous_kib
    app.script(key, CgiReply(body=bytes(HUGE), length=HUGE if said else None))
    with front.send(f"/{protocol}/{place}x", key) as client:
        most = watch(client, pid)
    assert most - before < GROWTH_MAX_KIB
    assert_problem(front.post_settled(f"/{protocol}/{place}x", key), NOT_STORED)
    assert front.state(key) == "SUCCEEDED"
    assert app.executions(key) == 1


def watch(client, pid):
    """Reads the answer; the most the worker held, looked at while it came."""
    total, most, looked = 0, 0, 0
    while total < HUGE:
        block = client.sock.recv(MIB)
        assert block, f"the answer ended after {total} bytes"
        total += len(block)
        if total - looked > 2 * MIB:
            most, looked = max(most, footprint(pid).anonymous_kib), total
    return most


def test_each_event_of_a_stream_arrives_before_the_next(front, app, key, protocol):
    go = threading.Event()
    app.script(key, EventStream(go))
    with front.send(f"/{protocol}/unbuffered/x", key) as client:
        while b"data: one\n\n" not in client.buffer:
            client.buffer += client.sock.recv(4096)
        assert not go.is_set()
        assert_problem(front.post(f"/{protocol}/unbuffered/x", key), PENDING)
        go.set()
        assert client.read().body == b"data: one\n\ndata: two\n\n"
    front.await_state(key, "SUCCEEDED")
    assert_problem(front.post(f"/{protocol}/unbuffered/x", key), NOT_STORED)
    assert app.executions(key) == 1


class EventStream(CgiReply):
    """One event at once, the other when the test says so: head() is all that is sent before."""

    def __init__(self, go):
        super().__init__("200 OK", [("Content-Type", "text/event-stream")])
        self.go = go

    @property
    def body(self):
        """Asked for once the head has been sent."""
        self.go.wait(10)
        return b"data: two\n\n"

    @body.setter
    def body(self, value):
        """The events are fixed."""

    def head(self):
        return super().head() + b"data: one\n\n"
