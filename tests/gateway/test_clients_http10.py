# SPDX-License-Identifier: Apache-2.0
"""Clients of HTTP/1.0 that keep nothing alive: every answer is whole, and the connection ends.

Such a client knows no chunks; where no length is told, the end of the connection is the end of the
answer, so an end before it would pass for a whole one.
"""

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, INVALID, MISSING, NOT_STORED, PENDING, UNKNOWN, assert_first,
                            assert_problem, assert_replay)
from support.front import PROXY
from support.rawhttp import encode

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: POST /small/**, snapshot: {max_body: 1KiB}}
  - {name: uuid, match: POST /uuid, key: {header: Idempotency-Key, required: true, format: uuid}}
  - {name: all, match: POST /**, snapshot: {max_body: 16MiB}}
"""

SERVER = f"""
    counterfoil on;
    location / {{ {PROXY} {{backend}}; }}
    location /unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
    location /small/unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
"""

FRAMINGS = ["length", "chunked", "close"]


def ask(front, target, key, body=b"{}", headers=()):
    """One answer of HTTP/1.0's kind: not one byte after it, and the connection ends by itself."""
    with front.send(target, key, body, version="HTTP/1.0", headers=headers) as client:
        answer = client.read()
        assert answer.framing in ("length", "close", "none")
        assert not answer.all("Transfer-Encoding")
        assert client.at_end()
    return answer


@pytest.mark.parametrize("size", [0, 10, 8 << 20])
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("target", ["/x", "/unbuffered/x"])
def test_first_and_replay(front, backend, key, target, framing, size):
    backend.script(key, Reply(201, body=b"0" * size, framing=framing))
    first = ask(front, target, key)
    assert_first(first)
    assert first.body == b"0" * size
    again = ask(front, target, key)
    assert_replay(again, first)
    assert again.header("Content-Length") == str(size)
    assert_problem(ask(front, target, key, b"[]"), CONFLICT)
    assert front.state(key) == "SUCCEEDED"
    assert backend.executions(key) == 1


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("target", ["/small/x", "/small/unbuffered/x"])
def test_passed_on_and_not_stored(front, backend, key, target, framing):
    backend.script(key, Reply(201, body=b"p" * 500_000, framing=framing))
    first = ask(front, target, key)
    assert_first(first)
    assert first.body == b"p" * 500_000
    front.await_state(key, "SUCCEEDED")
    assert_problem(ask(front, target, key), NOT_STORED)
    assert backend.executions(key) == 1


def test_refusals(front, backend, key):
    assert_problem(ask(front, "/uuid", None), MISSING)
    assert_problem(ask(front, "/uuid", "no-uuid"), INVALID)
    reply = backend.holding()
    backend.script(key, reply)
    with front.send("/x", key, version="HTTP/1.0") as busy:
        backend.wait(key)
        assert_problem(ask(front, "/x", key), PENDING)
        reply.hold.set()
        first = busy.read()
        assert_first(first)
        assert busy.at_end()
    assert_replay(ask(front, "/x", key), first)
    assert backend.executions(key) == 1


def test_failures(front, backend, key):
    reset, cut, failed = (f"{key}-{name}" for name in ("reset", "cut", "failed"))
    backend.script(reset, Reply(fault="reset"))
    backend.script(cut, Reply(201, body=b"c" * 500, fault="truncate"))
    backend.script(failed, Reply(500, body=b"five hundred"), Reply(201, body=b"right"))
    assert_first(ask(front, "/x", reset), 502)
    assert_problem(ask(front, "/x", reset), UNKNOWN)
    assert_problem(ask(front, "/x", cut), UNKNOWN, status=502)
    assert_problem(ask(front, "/x", cut), UNKNOWN)
    assert_first(ask(front, "/x", failed), 500)
    right = ask(front, "/x", failed)
    assert (right.status, right.body) == (201, b"right")
    assert_replay(ask(front, "/x", failed), right)
    assert front.state(reset) == front.state(cut) == "IN_DOUBT"
    assert [backend.executions(each) for each in (reset, cut, failed)] == [1, 1, 2]


def test_a_request_without_a_host_is_guarded_like_any_other(front, backend, key):
    request = encode("POST", "/x", [("Idempotency-Key", key)], b"{}", version="HTTP/1.0", host=None)
    answers = []
    for _ in range(2):
        with front.client() as client:
            client.send(request)
            answers.append(client.read())
            assert client.at_end()
    assert_first(answers[0])
    assert_replay(answers[1], answers[0])
    assert backend.executions(key) == 1
