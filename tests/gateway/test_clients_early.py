# SPDX-License-Identifier: Apache-2.0
"""Clients that leave where the exchange has hardly begun or is as good as over.

While the claim waits for the store, while nginx connects, while the settle waits for the store; and
before the body is whole where the configuration would pass a body on unread. The client is one of
HTTP/1.1 or a stream of HTTP/2. Whatever it was that the client left, a retry ends in one execution.
"""

import pytest

from support.expect import (PENDING, assert_first, assert_problem, assert_replay, is_replay,
                            new_key)
from support.front import PROXY, STEP, Front
from support.http2 import Http2Client
from support.ports import free_port
from support.rawbackend import DeafPort, RawBackend
from support.rawhttp import Closed
from support.store_hands import Holder
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: POST /**}
"""

SERVER = f"""
    counterfoil on;
    {STEP}
    location / {{ {PROXY} {{backend}}; }}
    location /streaming/ {{ {PROXY} {{backend}}; proxy_request_buffering off; }}
    location /impatient/ {{ {PROXY} {{backend}}; client_body_timeout 300ms; }}
    location /deaf/ {{ {PROXY} http://127.0.0.1:{{deaf}}; }}
"""

WAYS = ["close", "reset", "stream", "connection"]


@pytest.fixture(scope="module")
def deaf_port():
    return free_port()


@pytest.fixture(scope="module")
def front(tmp_path_factory, backend, deaf_port):
    server = SERVER.replace("{backend}", backend.url).replace("{deaf}", str(deaf_port))
    made = Front(tmp_path_factory.mktemp("front"), backend, server, POLICY)
    with made.running():
        yield made


class Leaver:
    """A client that sends a request, or half of one, and leaves in its way."""

    def __init__(self, front, how):
        self.front, self.how = front, how
        self.is_http2 = how in ("stream", "connection")
        self.stream = None
        self.client = (Http2Client(("127.0.0.1", front.clear_port)) if self.is_http2
                       else front.client())

    def send(self, target, key):
        if self.is_http2:
            self.stream = self.client.request(target, key)
            self.client.ping()
        else:
            self.front.send(target, key, client=self.client)
        self.front_answers()

    def send_half(self, target, key, sized):
        framing = [("Content-Length", "100")] if sized else []
        if self.is_http2:
            self.stream = self.client.begin(target, key, headers=framing)
            self.client.data(self.stream, b"x" * 50)
            self.client.ping()
            return
        framing = framing or [("Transfer-Encoding", "chunked")]
        self.front.send(target, key, None, headers=framing, client=self.client)
        self.client.send(b"x" * 50 if sized else b"64\r\n" + b"x" * 50)
        self.front_answers()

    def leave(self):
        if self.how == "stream":
            self.client.cancel(self.stream)
            self.client.ping()
        elif self.how == "connection":
            self.client.abort()
        else:
            getattr(self.client, self.how)()
        self.front_answers()

    def front_answers(self):
        """A round trip through the only worker: what happened before has reached it."""
        assert self.front.post("/step", method="GET", body=None).body == b"in step"


@pytest.fixture(params=WAYS)
def leaver(request, front):
    made = Leaver(front, request.param)
    yield made
    made.client.close()


def test_while_its_claim_waits_for_the_store(front, backend, leaver, key):
    """Whether or not the claim is made and executes without its client, the retry is answered."""
    with Holder(front.directory / "store") as holder:
        leaver.send("/x", key)
        leaver.leave()
        assert backend.executions(key) == 0
        holder.release()
    first = front.post_settled("/x", key)
    assert (first.status, first.json()["case"]) == (201, key)
    assert_replay(front.post("/x", key), first)
    assert front.state(key) == "SUCCEEDED"
    assert backend.executions(key) == 1


def test_while_its_settle_waits_for_the_store(front, backend, leaver, key):
    reply = backend.holding(body=b'{"order": 1}')
    backend.script(key, reply)
    leaver.send("/x", key)
    backend.wait(key)
    with Holder(front.directory / "store") as holder:
        reply.hold.set()
        assert reply.sent.wait(5)
        leaver.leave()
        assert front.state(key) == "PROCESSING"
        assert_problem(front.post("/x", key), PENDING)
        holder.release()
    front.await_state(key, "SUCCEEDED")
    again = front.post("/x", key)
    assert is_replay(again) and again.body == b'{"order": 1}'
    assert backend.executions(key) == 1


def test_while_nginx_connects_and_is_refused(front, deaf_port):
    """Nothing was ever sent to a backend: FAILED, and the retry executes."""
    keys = {how: new_key() for how in WAYS}
    deaf = DeafPort(deaf_port)
    filled = deaf.waiting()
    leavers = [Leaver(front, how) for how in WAYS]
    for leaver in leavers:
        leaver.send("/deaf/x", keys[leaver.how])
    until(lambda: deaf.waiting() == filled + len(WAYS), "nginx connects")
    for leaver in leavers:
        leaver.leave()
    assert [front.state(key) for key in keys.values()] == ["PROCESSING"] * len(WAYS)
    assert_problem(front.post("/deaf/x", keys["close"]), PENDING)
    deaf.refuse()
    for key in keys.values():
        front.await_state(key, "FAILED", deadline_s=3.0)  # a kernel's second attempt, and a second
    raw = RawBackend(port=deaf_port)
    try:
        for key in keys.values():
            first = front.post("/deaf/x", key)
            assert_first(first)
            assert_replay(front.post("/deaf/x", key), first)
            assert raw.executions(key) == 1
    finally:
        raw.stop()
        for leaver in leavers:
            leaver.client.close()


@pytest.mark.parametrize("sized", [True, False], ids=["length", "no length"])
@pytest.mark.parametrize("target", ["/x", "/streaming/x"])
def test_before_the_body_is_whole_even_where_it_is_streamed(front, backend, leaver, key, target,
                                                            sized):
    """The body of a guarded request is buffered: its meaning is part of the claim."""
    leaver.send_half(target, key, sized)
    assert front.record(key) is None
    leaver.leave()
    assert front.record(key) is None
    assert backend.executions(key) == 0
    first = front.post(target, key)
    assert_first(first)
    assert_replay(front.post(target, key), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("how", ["close", "stream"])
def test_a_body_that_stops_coming_is_given_up_and_leaves_no_claim(front, backend, key, how):
    """nginx ends such a connection, or such a stream, without an answer."""
    leaver = Leaver(front, how)
    leaver.send_half("/impatient/x", key, sized=True)
    with leaver.client as client, pytest.raises(Closed):
        client.read(*([leaver.stream] if leaver.is_http2 else []))
    assert front.record(key) is None
    assert backend.executions(key) == 0
    assert_first(front.post("/impatient/x", key))
    assert backend.executions(key) == 1
