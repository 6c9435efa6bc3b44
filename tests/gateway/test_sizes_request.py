# SPDX-License-Identifier: Apache-2.0
"""Requests of 50 MiB: they lie in a file, arrive whole, count to their last byte, and cost no memory."""

import hashlib

import pytest

from support.expect import CONFLICT, PENDING, assert_first, assert_problem, assert_replay, is_replay
from support.footprint import footprint
from support.front import PROXY, STEP

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST|PUT /**"}
"""

SERVER = f"""
    counterfoil on;
    client_max_body_size 50m;
    {STEP}
    location / {{ {PROXY} {{backend}}; }}
    location /streaming/ {{ {PROXY} {{backend}}; proxy_request_buffering off; }}
    location /file/ {{ {PROXY} {{backend}}; client_body_in_file_only clean; }}
"""

MIB = 1 << 20
BODY = bytes(range(256)) * (50 * MIB // 256)
SHA256 = hashlib.sha256(BODY).hexdigest()
GROWTH_MAX_KIB = 4096
BINARY = "application/octet-stream"


@pytest.mark.parametrize("chunk", [None, MIB - 1], ids=["length", "chunked"])
@pytest.mark.parametrize("place", ["", "streaming/", "file/"])
def test_50_mib_arrive_whole_and_replay(front, backend, key, place, chunk):
    pid, = front.workers()
    assert_first(front.post(f"/{place}x", key + "-warm", b"{}" * 10_000, ctype=BINARY))
    before = footprint(pid).anonymous_kib
    reply = backend.holding(body=b"taken")
    backend.script(key, reply)
    with front.send(f"/{place}x", key, BODY, ctype=BINARY, chunk=chunk) as client:
        request = backend.wait(key)
        assert (request.body_bytes, request.sha256) == (len(BODY), SHA256)
        assert footprint(pid).anonymous_kib - before < GROWTH_MAX_KIB
        assert_problem(front.post(f"/{place}x", key, BODY, ctype=BINARY), PENDING)
        reply.hold.set()
        first = client.read()
    assert (first.status, first.body, is_replay(first)) == (201, b"taken", False)
    assert_replay(front.post(f"/{place}x", key, BODY, ctype=BINARY, chunk=chunk), first)
    assert_problem(front.post(f"/{place}x", key, BODY[:-1] + b"!", ctype=BINARY, chunk=chunk), CONFLICT)
    assert footprint(pid).anonymous_kib - before < GROWTH_MAX_KIB
    assert backend.executions(key) == 1


def test_a_byte_more_said_in_the_head_is_refused_at_once(front, backend, key):
    said = [("Content-Length", str(len(BODY) + 1))]
    with front.send("/x", key, None, ctype=BINARY, headers=said) as client:
        assert client.read().status == 413
    assert front.record(key) is None
    assert backend.executions(key) == 0


def test_a_byte_more_in_a_chunk_is_refused_when_it_comes(front, backend, key):
    with front.send("/x", key, BODY + b"!", ctype=BINARY, chunk=MIB - 1) as client:
        assert client.read().status == 413
    assert front.record(key) is None
    assert backend.executions(key) == 0
