# SPDX-License-Identifier: Apache-2.0
"""Connections stay in step: after every kind of answer, with requests sent ahead, with Expect.

An answer ends where its framing says, and what the client sent of a body nobody wanted is taken from
the connection: the next request on it is answered as itself.
"""

import itertools

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, INVALID, MISSING, NOT_STORED, PENDING, UNKNOWN, assert_first,
                            assert_problem, assert_replay, is_replay, new_key)
from support.front import PROXY, STEP
from support.rawhttp import encode

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: "POST|PUT /small", snapshot: {max_body: 1KiB}}
  - {name: uuid, match: "POST|PUT /uuid",
     key: {header: Idempotency-Key, required: true, format: uuid}}
  - {name: all, match: "POST|PUT|DELETE|GET|HEAD /x"}
"""

SERVER = f"""
    counterfoil on;
    client_max_body_size 1m;
    {STEP}
    location / {{ {PROXY} {{backend}}; }}
"""


# Every kind of answer. Each prepares, then gives (target, key, check of the answer, executions).

def a_first(front, backend, key, body):
    return "/x", key, assert_first, 1


def a_replay(front, backend, key, body):
    first = front.post("/x", key, body)
    return "/x", key, lambda answer: assert_replay(answer, first), 1


def a_conflict(front, backend, key, body):
    assert_first(front.post("/x", key, b"another"))
    return "/x", key, lambda answer: assert_problem(answer, CONFLICT), 1


def a_pending(front, backend, key, body):
    backend.script(key, backend.holding())
    front.send("/x", key, body)
    backend.wait(key)
    return "/x", key, lambda answer: assert_problem(answer, PENDING), 1


def a_missing_key(front, backend, key, body):
    return "/uuid", None, lambda answer: assert_problem(answer, MISSING), 0


def an_invalid_key(front, backend, key, body):
    return "/uuid", "no-uuid", lambda answer: assert_problem(answer, INVALID), 0


def a_500(front, backend, key, body):
    backend.script(key, Reply(500, body=b"five hundred"))
    return "/x", key, lambda answer: assert_first(answer, 500), 1


def a_503_of_the_backend(front, backend, key, body):
    backend.script(key, Reply(503, [("Retry-After", "1")], b"", framing="chunked"))
    return "/x", key, lambda answer: assert_first(answer, 503), 1


def a_502_of_nginx(front, backend, key, body):
    backend.script(key, Reply(fault="reset"))
    return "/x", key, lambda answer: assert_first(answer, 502), 1


def a_502_that_broke_off(front, backend, key, body):
    backend.script(key, Reply(201, body=b"t" * 500, fault="truncate"))
    return "/x", key, lambda answer: assert_problem(answer, UNKNOWN, status=502), 1


def an_outcome_unknown(front, backend, key, body):
    backend.script(key, Reply(fault="close"))
    front.post("/x", key, body)
    return "/x", key, lambda answer: assert_problem(answer, UNKNOWN), 1


def a_not_stored(front, backend, key, body):
    backend.script(key, Reply(201, body=b"n" * 5000))
    front.post("/small", key, body)
    front.await_state(key, "SUCCEEDED")
    return "/small", key, lambda answer: assert_problem(answer, NOT_STORED), 1


def a_passed_on(front, backend, key, body):
    backend.script(key, Reply(201, body=b"p" * 50_000, framing="chunked"))
    return "/small", key, assert_first, 1


def a_204(front, backend, key, body):
    backend.script(key, Reply(204))
    first = front.post("/x", key, body)
    return "/x", key, lambda answer: assert_replay(answer, first), 1


KINDS = [a_first, a_replay, a_conflict, a_pending, a_missing_key, an_invalid_key, a_500,
         a_503_of_the_backend, a_502_of_nginx, a_502_that_broke_off, an_outcome_unknown,
         a_not_stored, a_passed_on, a_204]
BODIES = {"no body": None, "a small body": b"{}", "a body in a file": b"b" * 300_000}


def assert_in_step(client, answer, closes):
    """The connection goes on with the next request; some answers may say instead that it ends."""
    if closes and not answer.kept_alive:
        assert client.at_end()
        return
    assert answer.kept_alive
    after = client.request("GET", "/step")
    assert (after.status, after.body) == (200, b"in step")


@pytest.mark.parametrize("chunk", [None, 7000], ids=["length", "chunked"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_connection_is_in_step_after(front, backend, key, kind, body, chunk):
    body = BODIES[body]
    target, asked, check, executed = kind(front, backend, key, body)
    with front.client() as client:
        answer = front.post(target, asked, body, client=client, chunk=chunk)
        check(answer)
        assert_in_step(client, answer, closes=kind is a_502_that_broke_off)
    assert backend.executions(key) == executed


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_http_1_0_keep_alive_is_in_step_after(front, backend, key, kind):
    target, asked, check, executed = kind(front, backend, key, b"{}")
    with front.client() as client:
        answer = front.post(target, asked, client=client, version="HTTP/1.0",
                            headers=[("Connection", "keep-alive")])
        check(answer)
        assert_in_step(client, answer, closes=kind in (a_502_that_broke_off, a_passed_on))
    assert backend.executions(key) == executed


# Requests sent ahead.

def request_bytes(method, target, key, body, headers=()):
    """The bytes of what the harness' post() sends."""
    sent = [("Content-Type", "application/json")] + ([("Idempotency-Key", key)] if key else [])
    return encode(method, target, sent + list(headers), body)


def ahead(*requests):
    return b"".join(request_bytes(*request) for request in requests)


def test_requests_sent_ahead_under_one_key_execute_it_once(front, backend, key):
    with front.client() as client:
        client.send(ahead(*[("POST", "/x", key, b"{}")] * 6))
        answers = [client.read() for _ in range(6)]
        assert client.request("GET", "/step").body == b"in step"
    assert_first(answers[0])
    for answer in answers[1:]:
        assert_replay(answer, answers[0])
    assert backend.executions(key) == 1


def test_requests_of_every_kind_sent_ahead_are_answered_in_order(front, backend, key):
    doubt, large, wrong = new_key(), new_key(), new_key()
    backend.script(key, Reply(201, body=b"one"))
    backend.script(doubt, Reply(fault="close"))
    backend.script(large, Reply(201, body=b"l" * 3000, framing="chunked"))
    backend.script(wrong, Reply(500, body=b"wrong"), Reply(201, body=b"right"))
    padded = b"p" * 100_000
    with front.client() as client:
        client.send(ahead(("POST", "/x", key, b"{}"), ("POST", "/x", key, padded),
                          ("POST", "/x", key, b"{}"), ("POST", "/uuid", None, padded),
                          ("GET", "/step", None, None), ("POST", "/uuid", "no-uuid", padded),
                          ("POST", "/x", doubt, b"{}"), ("POST", "/x", doubt, b"{}"),
                          ("POST", "/small", large, b"{}"), ("POST", "/x", wrong, b"{}"),
                          ("POST", "/x", wrong, b"{}"), ("POST", "/x", wrong, b"{}"),
                          ("PUT", "/x", key, b"{}"), ("GET", "/step", None, None)))
        first = client.read()
        assert (first.status, first.body) == (201, b"one")
        assert_problem(client.read(), CONFLICT)
        assert_replay(client.read(), first)
        assert_problem(client.read(), MISSING)
        assert client.read("GET").body == b"in step"
        assert_problem(client.read(), INVALID)
        assert client.read().status == 502
        assert_problem(client.read(), UNKNOWN)
        assert client.read().body == b"l" * 3000
        assert client.read().body == b"wrong"
        right = client.read()
        assert (right.status, right.body) == (201, b"right")
        assert_replay(client.read(), right)
        put = client.read()  # another method is another endpoint
        assert_first(put)
        assert client.read("GET").body == b"in step"
    assert [backend.executions(each) for each in (key, doubt, large, wrong)] == [2, 1, 1, 2]


def test_what_is_sent_ahead_waits_until_the_first_is_answered(front, backend, key):
    held = backend.holding()
    backend.script(key, held)
    others = [new_key() for _ in range(3)]
    with front.client() as client:
        client.send(ahead(*[("POST", "/x", each, b"{}") for each in [key, *others]]))
        backend.wait(key)
        assert_problem(front.post("/x", key), PENDING)
        assert [backend.executions(each) for each in others] == [0, 0, 0]
        held.hold.set()
        answers = [client.read() for _ in range(4)]
    assert [answer.json()["case"] for answer in answers] == [key, *others]
    assert [backend.executions(each) for each in [key, *others]] == [1] * 4


def test_requests_sent_ahead_in_pieces_of_any_size_are_the_same_requests(front, backend):
    """Where one request ends and the next begins inside what was read must not matter."""
    for piece in (1, 7, 64, 1000):
        keys = [new_key() for _ in range(3)]
        data = ahead(*[("POST", "/x", each, b"0123456789" * 3) for each in keys + keys])
        with front.client() as client:
            for at in range(0, len(data), piece):
                client.send(data[at:at + piece])
            answers = [client.read() for _ in keys + keys]
        assert [answer.json()["case"] for answer in answers] == keys + keys
        assert [is_replay(answer) for answer in answers] == [False] * 3 + [True] * 3
        assert [backend.executions(each) for each in keys] == [1, 1, 1]


# Expect: 100-continue.

@pytest.mark.parametrize("after", ["the head", "100 Continue", "a part of the body"])
def test_expect_and_close_leaves_no_claim(front, backend, key, after):
    head = request_bytes("POST", "/x", key, b"x" * 50, [("Expect", "100-continue")])
    with front.client() as client:
        client.send(head[:-50])
        if after != "the head":
            assert client.sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        if after == "a part of the body":
            client.send(b"x" * 49)
        peer = client.sock.getsockname()[1]
    front.await_gone(front.port, peer)
    assert front.record(key) is None
    assert_first(front.post("/x", key, b"x" * 50))
    assert backend.executions(key) == 1


@pytest.mark.parametrize("kind", [a_first, a_replay, a_conflict, a_missing_key, an_invalid_key],
                         ids=lambda kind: kind.__name__)
def test_expect_is_in_step_after(front, backend, key, kind):
    """Whether or not the client was told to go on, its body is taken for its body."""
    body = b"e" * 20_000
    target, asked, check, executed = kind(front, backend, key, body)
    with front.client() as client:
        request = request_bytes("POST", target, asked, body, [("Expect", "100-continue")])
        client.send(request[:-len(body)])
        assert client.readable(10), "neither an interim answer nor a final one"
        client.send(request[-len(body):])
        check(client.read())
        assert client.request("GET", "/step").body == b"in step"
    assert backend.executions(key) == executed


def test_a_connection_used_again_and_again_gives_each_answer_to_its_request(front, backend):
    """Firsts, replays and conflicts in turn."""
    keys = [new_key() for _ in range(110)]
    with front.client() as client:
        for each, turn in itertools.product(keys, range(3)):
            answer = front.post("/x", each, b"{}" if turn < 2 else b"[]", client=client)
            if turn == 2:
                assert_problem(answer, CONFLICT)
            else:
                assert (answer.json()["case"], is_replay(answer)) == (each, turn == 1)
    assert all(backend.executions(each) == 1 for each in keys)
