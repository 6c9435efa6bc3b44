# SPDX-License-Identifier: Apache-2.0
"""Guarded requests over HTTP/2, in clear and over TLS: the same verdicts, each key executed once.

Streams of one connection are requests like any others, and so are those of different protocols: a key
used over one is known over the other.
"""

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, INVALID, MISSING, NOT_STORED, PENDING, UNKNOWN, assert_first,
                            assert_problem, assert_replay, code_of, is_replay, new_key)
from support.front import PROXY, view
from support.http2 import Http2Client

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: POST /small, snapshot: {max_body: 1KiB}}
  - {name: uuid, match: POST /uuid, key: {header: Idempotency-Key, required: true, format: uuid}}
  - {name: all, match: "POST|PUT|PATCH|DELETE /**", snapshot: {max_body: 16MiB}}
"""

SERVER = f"""
    counterfoil on;
    client_max_body_size 1m;
    location / {{ {PROXY} {{backend}}; }}
    location /unbuffered {{ {PROXY} {{backend}}; proxy_buffering off; }}
"""


@pytest.fixture(params=["clear", "tls"])
def client(request, front):
    tls = request.param == "tls"
    port = front.tls_port if tls else front.clear_port
    with Http2Client(("127.0.0.1", port), tls=tls) as made:
        assert made.alpn == ("h2" if tls else None)
        yield made


# The verdicts.

@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("target", ["/x", "/unbuffered"])
def test_first_replay_and_conflict(front, backend, client, key, target, framing):
    sent = [("Content-Type", "text/plain"), ("X-One", "1"), ("X-Empty", ""), ("X-Bytes", "caf\xe9"),
            ("X-One", "2"), ("ETag", '"v1"')]
    backend.script(key, Reply(201, sent, b"first\0\xff", framing=framing))
    first = client.post(target, key)
    assert_first(first)
    assert first.body == b"first\0\xff"
    again = client.post(target, key)
    assert_replay(again, first)
    assert view(again, but=["content-length"]) == view(first, but=["content-length"])
    assert_problem(client.post(target, key, b'{"other": 1}'), CONFLICT)
    front.await_state(key, "SUCCEEDED")
    assert backend.executions(key) == 1


def test_the_gateways_own_refusals(front, backend, client, key):
    assert_problem(client.post("/uuid", None), MISSING)
    assert_problem(client.post("/uuid", "no-uuid"), INVALID)
    backend.script(key, backend.holding())
    busy = client.request("/x", key)
    backend.wait(key)
    assert_problem(client.post("/x", key), PENDING)
    backend.release()
    assert_first(client.read(busy))
    assert backend.executions(key) == 1


def test_outcomes_are_those_of_http_1(front, backend, client):
    doubt, large, failed, cut = (new_key() for _ in range(4))
    backend.script(doubt, Reply(fault="reset"))
    backend.script(large, Reply(201, body=b"l" * 5000))
    backend.script(failed, Reply(500), Reply(201))
    backend.script(cut, Reply(201, body=b"c" * 500, fault="truncate"))
    assert client.post("/x", doubt).status == 502
    assert_problem(client.post("/x", doubt), UNKNOWN)
    assert client.post("/small", large).body == b"l" * 5000
    front.await_state(large, "SUCCEEDED")
    assert_problem(client.post("/small", large), NOT_STORED)
    assert [client.post("/x", failed).status for _ in range(3)] == [500, 201, 201]
    assert_problem(client.post("/x", cut), UNKNOWN, status=502)
    front.await_state(cut, "IN_DOUBT")
    assert [backend.executions(each) for each in (doubt, large, failed, cut)] == [1, 1, 2, 1]


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_body_replays(backend, client, key, status):
    backend.script(key, Reply(status, [("X-Kept", "yes")]))
    first = client.post("/x", key)
    assert_first(first, status)
    again = client.post("/x", key)
    assert_replay(again, first)
    assert (again.body, again.header("X-Kept")) == (b"", "yes")
    assert backend.executions(key) == 1


@pytest.mark.parametrize("size", [0, 1, 16384, 16385, 300_000])
def test_bodies_of_every_size_go_and_come_back(backend, client, key, size):
    body = (b"0123456789" * (size // 10 + 1))[:size]
    backend.script(key, Reply(200, [("Content-Type", "text/plain")], body[::-1]))
    first = client.post("/x", key, body)
    assert_first(first, 200)
    assert first.body == body[::-1]
    assert backend.wait(key).body_bytes == size
    assert_replay(client.post("/x", key, body), first)
    assert_problem(client.post("/x", key, body + b"!"), CONFLICT)
    assert backend.executions(key) == 1


def test_an_absent_body_is_an_empty_body(backend, client, key):
    first = client.post("/x", key, None)
    assert_first(first)
    assert_replay(client.post("/x", key, b""), first)
    split = client.begin("/x", key)
    client.data(split, b"")
    client.data(split, b"", end=True)
    assert_replay(client.read(split), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("piece", [1, 10])
def test_the_frames_are_not_part_of_the_meaning(backend, client, key, piece):
    body = b'{"amount": 10, "currency": "EUR"}'
    first = client.post("/x", key, body)
    assert_first(first)
    stream = client.begin("/x", key, headers=[("content-length", str(len(body)))])
    for at in range(0, len(body), piece):
        client.data(stream, body[at:at + piece])
    client.data(stream, b"", end=True)
    assert_replay(client.read(stream), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("length", ["1", "100"])
def test_a_body_of_another_length_than_said_leaves_no_claim(front, backend, client, key, length):
    """Such a request is malformed (RFC 9113, 8.1.1)."""
    stream = client.begin("/x", key, headers=[("content-length", length)])
    client.h2.streams[stream].max_outbound_frame_size = None
    client.data(stream, b"0123456789", end=True)
    answer = client.read(stream)
    assert (answer.status, code_of(answer)) == (400, None)
    assert front.record(key) is None
    assert backend.executions(key) == 0


def test_a_replay_of_8_mib(backend, client, key):
    body = b"0123456789abcdef" * (1 << 19)
    backend.script(key, Reply(201, body=body))
    first = client.post("/x", key)
    assert first.body == body
    assert_replay(client.post("/x", key), first)
    assert backend.executions(key) == 1


# One key over several protocols.

def test_a_key_executed_over_http_1_is_replayed_over_http_2(front, backend, client, key):
    backend.script(key, Reply(201, [("X-Kept", "yes")], b"over one"))
    first = front.post("/x", key)
    again = client.post("/x", key)
    assert_replay(again, first)
    assert again.header("X-Kept") == "yes"
    assert_problem(client.post("/x", key, b"[]"), CONFLICT)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_a_key_executed_over_http_2_is_replayed_over_http_1(front, backend, client, key, version):
    backend.script(key, Reply(201, [("X-Kept", "yes")], b"over two", framing="chunked"))
    first = client.post("/x", key)
    again = front.post("/x", key, version=version)
    assert_replay(again, first)
    assert again.header("X-Kept") == "yes"
    assert_problem(front.post("/x", key, b"[]", version=version), CONFLICT)
    assert backend.executions(key) == 1


# Many streams.

def test_twenty_streams_with_one_key_execute_it_once(front, backend, client, key):
    reply = backend.holding(body=b"once")
    backend.script(key, reply)
    streams = [client.request("/x", key) for _ in range(20)]
    backend.wait(key)
    assert_problem(front.post("/x", key), PENDING)
    reply.hold.set()
    answers = [client.read(stream) for stream in streams]
    firsts = [answer for answer in answers if answer.status == 201 and not is_replay(answer)]
    assert [answer.body for answer in firsts] == [b"once"]
    for answer in answers:
        if answer.status != 201:
            assert_problem(answer, PENDING)
    assert_replay(client.post("/x", key), firsts[0])
    assert backend.executions(key) == 1


def test_twenty_streams_of_a_settled_key_replay_it(backend, client, key):
    body = b"r" * 20_000
    backend.script(key, Reply(201, body=body))
    first = client.post("/x", key)
    streams = [client.request("/x", key) for _ in range(20)]
    for stream in reversed(streams):
        assert_replay(client.read(stream), first)
    assert backend.executions(key) == 1


def test_streams_of_different_keys_do_not_wait_for_each_other(backend, client):
    keys = [new_key() for _ in range(20)]
    held = [backend.holding() for _ in keys]
    for each, reply in zip(keys, held):
        backend.script(each, reply)
    streams = [client.request("/x", each) for each in keys]
    for each in keys:
        backend.wait(each)
    for each, reply, stream in reversed(list(zip(keys, held, streams))):
        reply.hold.set()
        answer = client.read(stream)
        assert_first(answer)
        assert answer.json()["case"] == each
    assert [backend.executions(each) for each in keys] == [1] * 20


def test_a_body_too_large_leaves_no_claim(front, backend, client, key):
    size = (1 << 20) + 1
    stream = client.begin("/x", key, headers=[("content-length", str(size))])
    assert client.read(stream).status == 413
    assert front.record(key) is None
    assert_first(client.post("/x", key))
    assert backend.executions(key) == 1
