# SPDX-License-Identifier: Apache-2.0
"""Request bodies of every size and framing: the backend gets them, the fingerprint sees all."""

import hashlib
import random

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, assert_first, assert_problem, assert_replay, is_replay)
from support.rawhttp import encode

POLICY = """
version: 1
tenant: none
routes:
  - {name: upload, match: POST /upload}
"""

KIB = 1024
MIB = 1024 * KIB
SIZES = {"0": 0, "1": 1, "16KiB-1": 16 * KIB - 1, "16KiB": 16 * KIB, "16KiB+1": 16 * KIB + 1,
         "1MiB": MIB, "50MiB": 50 * MIB}
ALL_BYTES = bytes(range(256))


def body_of(size):
    """Bytes without a pattern, the same in every run."""
    block = random.Random(2024).randbytes(min(size, MIB) or 1)
    return (block * (size // len(block) + 1))[:size]


def chunk_of(size, framing):
    return None if framing == "length" else max(1, min(64 * KIB, size // 3 + 1))


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_a_body_arrives_replays_and_its_last_byte_counts(gateway, backend, key, size, framing):
    body = body_of(size)
    options = {"ctype": "application/octet-stream", "chunk": chunk_of(size, framing)}
    first = gateway.post("/upload", key, body, **options)
    assert_first(first)
    request = backend.wait(key)
    assert request.body_bytes == size
    assert request.sha256 == hashlib.sha256(body).hexdigest()
    assert_replay(gateway.post("/upload", key, body, **options), first)
    changed = body[:-1] + bytes([body[-1] ^ 1]) if body else b"x"
    assert_problem(gateway.post("/upload", key, changed, **options), CONFLICT)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("size", [1, 16 * KIB + 1, MIB])
def test_the_framing_is_not_part_of_the_meaning(gateway, backend, key, size):
    body = body_of(size)
    first = gateway.post("/upload", key, body)
    assert_first(first)
    assert_replay(gateway.post("/upload", key, body, chunk=1000), first)
    assert backend.executions(key) == 1


def test_a_post_without_body_or_framing_is_an_empty_body(gateway, backend, key):
    first = gateway.post("/upload", key, None)
    assert_first(first)
    assert_replay(gateway.post("/upload", key, b""), first)
    assert_problem(gateway.post("/upload", key, b"x"), CONFLICT)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("at", [0, 8 * KIB, 16 * KIB, 512 * KIB, MIB - 2])
def test_one_changed_byte_anywhere_is_a_conflict(gateway, backend, key, at):
    body = bytearray(body_of(MIB))
    assert_first(gateway.post("/upload", key, bytes(body), ctype="text/plain"))
    body[at] ^= 0x80
    assert_problem(gateway.post("/upload", key, bytes(body), ctype="text/plain"), CONFLICT)
    assert backend.executions(key) == 1


def test_all_256_byte_values_go_and_come_back(gateway, backend, key):
    answer = ALL_BYTES[::-1] * 3
    backend.script(key, Reply(200, [("Content-Type", "application/octet-stream")], answer))
    first = gateway.post("/upload", key, ALL_BYTES, ctype="application/octet-stream")
    assert (first.status, first.body) == (200, answer)
    assert backend.wait(key).body == ALL_BYTES
    again = gateway.post("/upload", key, ALL_BYTES, ctype="application/octet-stream")
    assert is_replay(again)
    assert again.body == answer
    assert backend.executions(key) == 1


@pytest.mark.parametrize("size", [10, 100 * KIB])
def test_expect_100_continue_is_answered_and_the_body_read(gateway, backend, key, size):
    body = body_of(size)
    head, _, rest = encode("POST", "/upload", [("Idempotency-Key", key),
                                               ("Expect", "100-continue")], body).partition(
                                                   b"\r\n\r\n")
    with gateway.client() as client:
        client.send(head + b"\r\n\r\n")
        assert client.readable(10), "no interim answer"
        client.send(rest)
        assert_first(client.read())
    assert backend.wait(key).sha256 == hashlib.sha256(body).hexdigest()


def test_a_body_sent_byte_by_byte_arrives_whole(gateway, backend, key):
    request = encode("POST", "/upload", [("Idempotency-Key", key)], b"0123456789" * 5, chunk=3)
    with gateway.client() as client:
        for at in range(len(request)):
            client.send(request[at:at + 1])
        assert_first(client.read())
    assert backend.wait(key).body == b"0123456789" * 5
