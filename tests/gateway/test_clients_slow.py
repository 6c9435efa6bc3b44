# SPDX-License-Identifier: Apache-2.0
"""Clients that only listen, and clients that read slowly: they get the whole answer, once executed.

A client may end its half of the connection when its request is sent (RFC 9112 allows it); that is no
hanging up. One that reads slowly holds up neither the settle of what is held nor other clients.
"""

import socket

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, NOT_STORED, PENDING, assert_first, assert_problem,
                            assert_replay, is_replay)
from support.front import PROXY, STEP

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
    {STEP}
    location / {{ {PROXY} {{backend}}; }}
    location /unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
    location /small/ {{ {PROXY} {{backend}}; }}
    location /small/unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
"""

TARGETS = ["/x", "/unbuffered/x", "/small/x", "/small/unbuffered/x"]
LARGE = 8 << 20


def body_of(size):
    return (b"fedcba9876543210" * (size // 16 + 1))[:size]


def check_again(front, backend, key, target, first):
    front.await_state(key, "SUCCEEDED")
    again = front.post(target, key)
    if target.startswith("/small"):
        assert_problem(again, NOT_STORED)
    else:
        assert_replay(again, first)
    assert backend.executions(key) == 1


def half_closed(front, *args, client=None, **options):
    client = front.send(*args, client=client or front.client(), **options)
    client.sock.shutdown(socket.SHUT_WR)
    return client


# Half-close.

@pytest.mark.parametrize("version, size", [("HTTP/1.0", 10), ("HTTP/1.1", 10),
                                           ("HTTP/1.1", 100 << 10), ("HTTP/1.1", LARGE)])
@pytest.mark.parametrize("target", TARGETS)
def test_who_ends_its_half_gets_the_answer(front, backend, key, target, version, size):
    reply = backend.holding(body=body_of(size))
    backend.script(key, reply)
    with half_closed(front, target, key, version=version, client=front.narrow()) as client:
        backend.wait(key)
        assert_problem(front.post(target, key), PENDING)  # nginx has seen the half-close by now
        reply.hold.set()
        client.read_some(10)
        first = client.read()
        assert_first(first)
        assert first.body == body_of(size)
        assert client.at_end()
    if size > 1024:
        check_again(front, backend, key, target, first)
    else:
        assert_replay(front.post_settled(target, key), first)
        assert backend.executions(key) == 1


def test_who_ends_its_half_gets_every_answer_of_the_gateway(front, backend, key):
    held = backend.holding()
    backend.script(key, Reply(201, body=b"first"))
    backend.script(key + "-held", held)
    first = front.post("/x", key)
    pending = front.send("/x", key + "-held")
    backend.wait(key + "-held")

    def ask(*args, **options):
        with half_closed(front, *args, **options) as client:
            answer = client.read()
            assert client.at_end()
        return answer

    assert_replay(ask("/x", key), first)
    assert_problem(ask("/x", key, b'{"other": 1}'), CONFLICT)
    assert_problem(ask("/x", key, b"x" * 100_000, chunk=5000), CONFLICT)
    assert_problem(ask("/x", key + "-held"), PENDING)
    assert ask("/uuid", None).status == 400
    held.hold.set()
    assert_first(pending.read())
    pending.close()
    assert backend.executions(key) == backend.executions(key + "-held") == 1


def test_a_replay_of_8_mib_to_who_ended_its_half_is_whole(front, backend, key):
    backend.script(key, Reply(201, body=body_of(LARGE)))
    first = front.post("/x", key)
    with half_closed(front, "/x", key, client=front.narrow()) as client:
        client.read_some(10)
        assert_replay(client.read(), first)
        assert client.at_end()
    assert backend.executions(key) == 1


# Slow readers.

@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("size", [100 << 10, LARGE])
@pytest.mark.parametrize("target", TARGETS)
def test_a_slow_reader_gets_all_of_a_first_answer(front, backend, key, target, size, framing):
    """What is held is settled although nothing of it was read yet."""
    reply = Reply(201, body=body_of(size), framing=framing)
    backend.script(key, reply)
    with front.send(target, key, client=front.narrow()) as client:
        client.read_some(500)
        if not target.startswith("/small"):
            assert front.state(key) == "SUCCEEDED"
            assert is_replay(front.post(target, key))
        first = client.read()
    assert_first(first)
    assert first.body == body_of(size)
    check_again(front, backend, key, target, first)


@pytest.mark.parametrize("target", TARGETS[2:])
def test_what_is_passed_on_to_a_slow_reader_is_pending_until_the_backend_ended(front, backend, key,
                                                                               target):
    """Claims of a stream stay live to its end; who asks meanwhile is told to wait."""
    more = backend.holding(body=body_of(LARGE), framing="chunked")
    backend.script(key, more)
    with front.send(target, key, client=front.narrow()) as client:
        backend.wait(key)
        assert_problem(front.post(target, key), PENDING)
        more.hold.set()
        client.read_some(500)
        answer = front.post(target, key)
        assert answer.status == 409 and not is_replay(answer)
        first = client.read()
    assert first.body == body_of(LARGE)
    check_again(front, backend, key, target, first)


def test_a_slow_reader_of_a_replay_gets_it_whole_while_others_are_served(front, backend, key):
    backend.script(key, Reply(201, body=body_of(LARGE)))
    first = front.post("/x", key)
    with front.send("/x", key, client=front.narrow()) as slow:
        slow.read_some(500)
        for number in range(20):
            assert_first(front.post("/x", f"{key}-{number}"))
            assert_replay(front.post("/x", key), first)
        assert_replay(slow.read(), first)
        assert front.post("/x", key, client=slow).status == 201  # and the connection is in step
    assert backend.executions(key) == 1


def test_twenty_slow_readers_of_one_key_execute_it_once(front, backend, key):
    reply = backend.holding(body=body_of(100 << 10))
    backend.script(key, reply)
    clients = [front.send("/x", key, client=front.narrow()) for _ in range(20)]
    backend.wait(key)
    reply.hold.set()
    answers = [client.read() for client in clients]
    for client in clients:
        client.close()
    firsts = [answer for answer in answers if answer.status == 201]
    assert len([answer for answer in firsts if not is_replay(answer)]) == 1
    assert {answer.body for answer in firsts} == {body_of(100 << 10)}
    for answer in answers:
        if answer.status != 201:
            assert_problem(answer, PENDING)
    assert backend.executions(key) == 1
