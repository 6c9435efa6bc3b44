# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 over TLS: a client that leaves, that only listens, or that reads slowly, as without TLS.

The end of what a client sends has two layers here: TLS says close_notify, TCP says FIN. A client
that said either may still be listening.
"""

import contextlib
import socket
import ssl

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, NOT_STORED, PENDING, assert_first, assert_problem,
                            assert_replay, is_replay)
from support.front import PROXY, STEP, Narrow

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: POST /small/**, snapshot: {max_body: 1KiB}}
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

HELD = ["/x", "/unbuffered/x"]
PASSED_ON = ["/small/x", "/small/unbuffered/x"]
SIZES = [100 << 10, 8 << 20]


class Secured(Narrow):
    """Narrow, over TLS. It leaves with close_notify, without it, or with a reset."""

    def __init__(self, address):
        super().__init__(address)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.sock = context.wrap_socket(self.sock)

    def say_close(self):
        """close_notify, without waiting for nginx's; an answer that still comes is no fault."""
        timeout_s = self.sock.gettimeout()
        self.sock.setblocking(False)
        with contextlib.suppress(ssl.SSLError):
            self.sock.unwrap()
        self.sock.settimeout(timeout_s)

    def notify(self):
        self.say_close()
        self.sock.close()

    def half_close(self):
        """A FIN below the session, which stays: SSLSocket.shutdown would forget the session."""
        socket.socket.shutdown(self.sock, socket.SHUT_WR)


LEAVES = ["close", "reset", "notify"]


@pytest.fixture
def client(front):
    with Secured(("127.0.0.1", front.tls_port)) as made:
        yield made


def body_of(size):
    return (b"0123456789abcdef" * (size // 16 + 1))[:size]


def check_settled(front, backend, key, target, body):
    front.await_state(key, "SUCCEEDED")
    again = front.post(target, key)
    if target in PASSED_ON and len(body) > 1024:
        assert_problem(again, NOT_STORED)
    else:
        assert is_replay(again) and (again.status, again.body) == (201, body)
    assert backend.executions(key) == 1


def test_verdicts_and_keep_alive(front, backend, client, key):
    first = front.post("/x", key, client=client)
    assert_first(first)
    assert_replay(front.post("/x", key, client=client), first)
    assert_problem(front.post("/x", key, b"x" * 100_000, client=client), CONFLICT)
    assert_replay(front.post("/x", key), first)
    assert client.request("GET", "/step").body == b"in step"
    assert backend.executions(key) == 1


@pytest.mark.parametrize("how", LEAVES)
def test_before_the_body_is_whole_no_claim_is_left(front, backend, client, key, how):
    front.send("/x", key, None, headers=[("Content-Length", "100")], client=client)
    client.send(b"x" * 99)
    local, peer = client.sock.getpeername()[1], client.sock.getsockname()[1]
    getattr(client, how)()
    front.await_gone(local, peer)
    assert front.record(key) is None
    assert backend.executions(key) == 0
    assert_first(front.post("/x", key))
    assert backend.executions(key) == 1


@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.parametrize("target", HELD + PASSED_ON)
def test_while_the_backend_works(front, backend, client, key, target, how):
    reply = backend.holding(body=body_of(5000))
    backend.script(key, reply)
    front.send(target, key, client=client)
    backend.wait(key)
    getattr(client, how)()
    assert front.state(key) == "PROCESSING"
    assert_problem(front.post(target, key), PENDING)
    assert_problem(front.post(target, key, b"[]"), CONFLICT)
    reply.hold.set()
    check_settled(front, backend, key, target, body_of(5000))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.parametrize("target", HELD + PASSED_ON)
def test_while_the_answer_flows(front, backend, client, key, target, how, size):
    reply = Reply(201, body=body_of(size))
    backend.script(key, reply)
    front.send(target, key, client=client)
    client.read_some(500)
    getattr(client, how)()
    assert reply.sent.wait(2), "the backend could not send its answer to its end"
    check_settled(front, backend, key, target, body_of(size))


@pytest.mark.parametrize("how", LEAVES)
def test_while_a_replay_flows(front, backend, client, key, how):
    backend.script(key, Reply(201, body=body_of(SIZES[1])))
    first = front.post("/x", key)
    before = front.record(key)
    front.send("/x", key, client=client)
    client.read_some(500)
    getattr(client, how)()
    assert_replay(front.post("/x", key), first)
    assert front.record(key) == before
    assert backend.executions(key) == 1


@pytest.mark.parametrize("size", [10, *SIZES])
@pytest.mark.parametrize("ends", [["say_close"], ["half_close"], ["say_close", "half_close"]],
                         ids="+".join)
@pytest.mark.parametrize("target", HELD + PASSED_ON)
def test_who_ends_its_half_gets_the_answer(front, backend, client, key, target, ends, size):
    reply = backend.holding(body=body_of(size))
    backend.script(key, reply)
    front.send(target, key, client=client)
    backend.wait(key)
    for end in ends:
        getattr(client, end)()
    assert_problem(front.post(target, key), PENDING)  # nginx has seen the end by now
    reply.hold.set()
    first = client.read()
    assert_first(first)
    assert first.body == body_of(size)
    check_settled(front, backend, key, target, body_of(size))


@pytest.mark.parametrize("target", HELD + PASSED_ON)
def test_a_slow_reader_gets_all_of_it(front, backend, client, key, target):
    backend.script(key, Reply(201, body=body_of(SIZES[1])))
    front.send(target, key, client=client)
    client.read_some(500)
    assert_first(front.post("/x", key + "-other"))
    first = client.read()
    assert_first(first)
    assert first.body == body_of(SIZES[1])
    check_settled(front, backend, key, target, first.body)
    assert client.request("GET", "/step").body == b"in step"
