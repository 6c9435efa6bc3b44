# SPDX-License-Identifier: Apache-2.0
"""A replay is the first answer again: status, kept headers in order and bytes, body, framing."""

import email.utils
import time

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, INVALID, MISSING, NOT_STORED, UNKNOWN, assert_first,
                            assert_problem, assert_replay, is_replay, new_key)
from support.rawhttp import encode

MAX_BODY = 4096
POLICY = """
version: 1
tenant: none
routes:
  - {name: plain, match: POST /plain}
  - {name: small, match: POST /small, snapshot: {max_body: 4KiB}}
  - {name: drop, match: POST /drop, snapshot: {drop_headers: [X-Secret]}}
  - {name: uuid, match: POST /uuid, key: {header: Idempotency-Key, required: true, format: uuid}}
"""

# In an order no sorting and no table would give.
KEPT = [("X-Zeta", "1"), ("Link", '</a>; rel="next", </b>; title="a, \\"b\\"; c"'),
        ("x-cUsToM-cAsE", "MiXeD  two  spaces"), ("Link", "</c>; rel=prev"),
        ("X-Alpha", "caf\xe9"), ("Cache-Control", "no-store"), ("X-Empty", ""),
        ("Vary", "Accept-Language"), ("X-Zeta", "2")]
# Written by nginx itself or about this one exchange.
OWN = {"server", "date", "content-type", "content-length", "connection", "keep-alive",
       "transfer-encoding", "idempotent-replayed"}


def others(answer):
    return [(name, value) for name, value in answer.headers
            if name.lower() not in OWN and not name.lower().startswith("counterfoil-")]


def full(key, backend, **options):
    backend.script(key, Reply(202, [("Content-Type", "text/x-thing; v=1")] + KEPT, b"body\0\xff",
                              **options))


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_kept_headers_come_back_in_order_and_bytes(gateway, backend, key, framing):
    full(key, backend, framing=framing)
    first = gateway.post("/plain", key)
    assert_first(first, 202)
    again = gateway.post("/plain", key)
    assert_replay(again, first)
    assert again.body == b"body\0\xff"
    assert again.header("Content-Type") == "text/x-thing; v=1"
    assert others(first) == KEPT
    assert others(again) == KEPT
    assert backend.executions(key) == 1


def test_location_and_validators_come_back(gateway, backend, key):
    sent = [("Location", "/orders/1?x=%20y"), ("ETag", '"v1,2"'),
            ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")]
    backend.script(key, Reply(201, sent))
    first, again = gateway.post("/plain", key), gateway.post("/plain", key)
    assert_replay(again, first)
    for name, value in sent:
        assert again.header(name) == first.header(name), name
        if name != "Location":
            assert again.header(name) == value
    assert again.header("Location").endswith("/orders/1?x=%20y")


def test_date_is_fresh_and_alone(gateway, backend, key):
    backend.script(key, Reply(201, [("Date", "Mon, 01 Jan 2001 00:00:00 GMT")]))
    first = gateway.post("/plain", key)
    first_date = first.header("Date")
    answers = gateway.post_until(lambda answer: answer.header("Date") != first_date,
                                 "the date moves on", "/plain", key)
    assert_replay(answers[-1], first)
    moment = email.utils.parsedate_to_datetime(answers[-1].header("Date")).timestamp()
    assert abs(moment - time.time()) < 3


def test_what_belongs_to_one_exchange_is_not_replayed(gateway, backend, key):
    dropped = [("Set-Cookie", "session=1"), ("Set-Cookie", "b=2"), ("WWW-Authenticate", "Basic"),
               ("Age", "7"), ("Alt-Svc", 'h3=":443"'), ("RateLimit-Limit", "10"),
               ("RateLimit-Remaining", "9"), ("Proxy-Authenticate", "Basic")]
    backend.script(key, Reply(201, dropped + [("X-Kept", "yes")]))
    first, again = gateway.post("/plain", key), gateway.post("/plain", key)
    assert first.all("Set-Cookie") == ["session=1", "b=2"], "the first client gets its cookies"
    assert_replay(again, first)
    assert others(again) == [("X-Kept", "yes")]


def test_a_routes_drop_headers_extends_the_default(gateway, backend, key):
    backend.script(key, Reply(201, [("X-Secret", "s"), ("Set-Cookie", "a=1"), ("X-Kept", "yes")]))
    first, again = gateway.post("/drop", key), gateway.post("/drop", key)
    assert first.header("X-Secret") == "s"
    assert_replay(again, first)
    assert others(again) == [("X-Kept", "yes")]


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_framing_is_valid_for_each_version(gateway, backend, key, version, framing):
    full(key, backend, framing=framing)
    first = gateway.post("/plain", key, version=version)
    assert_first(first, 202)
    with gateway.client() as client:
        again = gateway.post("/plain", key, version=version, client=client)
        assert_replay(again, first)
        if version == "HTTP/1.0":
            assert not again.kept_alive
            assert client.at_end()


def test_http_1_0_keep_alive_goes_on(gateway, key):
    with gateway.client() as client:
        for _ in range(3):
            answer = gateway.post("/plain", key, version="HTTP/1.0", client=client,
                                  headers=[("Connection", "keep-alive")])
            assert (answer.status, answer.framing) == (201, "length")
            assert answer.kept_alive
        assert is_replay(answer)


def test_connection_close_is_obeyed_by_a_replay(gateway, key):
    assert_first(gateway.post("/plain", key))
    with gateway.client() as client:
        answer = gateway.post("/plain", key, client=client, headers=[("Connection", "close")])
        assert is_replay(answer)
        assert client.at_end()


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_that_has_no_body_replays_in_step(gateway, backend, key, status):
    backend.script(key, Reply(status, [("X-Kept", "yes")]))
    with gateway.client() as client:
        first = gateway.post("/plain", key, client=client)
        assert_first(first, status)
        again = gateway.post("/plain", key, client=client)
        assert_replay(again, first)
        assert again.body == b""
        assert others(again) == [("X-Kept", "yes")]
        assert first.header("Content-Length") is None
        assert again.header("Content-Length") is None
        assert gateway.post("/plain", new_key(), client=client).status == 201
    assert backend.executions(key) == 1


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_an_empty_body_replays_as_an_empty_body(gateway, backend, key, framing):
    backend.script(key, Reply(200, body=b"", framing=framing))
    with gateway.client() as client:
        first = gateway.post("/plain", key, client=client)
        assert_first(first, 200)
        again = gateway.post("/plain", key, client=client)
        assert_replay(again, first)
        assert (again.body, again.header("Content-Length")) == (b"", "0")


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_a_body_of_exactly_max_body_is_stored(gateway, backend, key, framing):
    backend.script(key, Reply(201, body=b"x" * MAX_BODY, framing=framing))
    first = gateway.post("/small", key)
    assert_first(first)
    assert_replay(gateway.post("/small", key), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("size", [MAX_BODY + 1, 8 << 20], ids=["one over", "8 MiB"])
def test_a_body_over_max_body_is_passed_on_and_not_stored(gateway, backend, key, framing, size):
    backend.script(key, Reply(201, [("X-Kept", "yes")], b"x" * size, framing=framing))
    first = gateway.post("/small", key)
    assert_first(first)
    assert first.body == b"x" * size
    assert_problem(gateway.post_settled("/small", key), NOT_STORED)
    assert_problem(gateway.post("/small", key, b'{"other": 1}'), CONFLICT)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("turn", range(8))  # where in a buffer the client leaves is chance
def test_an_abandoned_download_over_max_body_still_settles(gateway, backend, key, turn):
    del turn
    reply = Reply(201, body=b"x" * (64 << 20))
    backend.script(key, reply)
    client = gateway.send("/small", key)
    assert client.readable(10)
    client.reset()
    assert reply.sent.wait(20), "the backend is read to its end"
    assert_problem(gateway.post_settled("/small", key), NOT_STORED)
    assert backend.executions(key) == 1


def test_one_connection_stays_in_step_through_replays_and_refusals(gateway, backend, key):
    backend.script(key, Reply(201, body=b"first"))
    doubt, large = new_key(), new_key()
    backend.script(doubt, Reply(fault="reset"))
    backend.script(large, Reply(201, body=b"y" * (MAX_BODY + 1)))
    padded = b'{"pad": "' + b"p" * 100_000 + b'"}'
    with gateway.client() as client:
        def post(*args, **options):
            return gateway.post(*args, client=client, **options)

        first = post("/plain", key)
        assert_first(first)
        assert_replay(post("/plain", key), first)
        assert_problem(post("/plain", key, padded), CONFLICT)
        assert_problem(post("/plain", key, padded, chunk=5000), CONFLICT)
        assert_problem(post("/uuid", None, padded), MISSING)
        assert_problem(post("/uuid", None, padded, chunk=5000), MISSING)
        assert_problem(post("/uuid", "not-a-uuid", padded), INVALID)
        assert post("/plain", doubt).status == 502
        assert_problem(post("/plain", doubt), UNKNOWN)
        assert_first(post("/small", large))
        assert_problem(gateway.post_settled("/small", large, client=client), NOT_STORED)
        assert_first(post("/unmatched", None))
        last = post("/plain", key)
        assert_replay(last, first)
        assert last.body == b"first"


def test_pipelined_requests_are_answered_in_order(gateway, backend):
    keys = [new_key() for _ in range(4)]
    order = keys + keys
    with gateway.client() as client:
        client.send(b"".join(encode("POST", "/plain", [("Idempotency-Key", each)], b"{}")
                             for each in order))
        answers = [client.read() for _ in order]
    assert [answer.json()["case"] for answer in answers] == order
    assert [is_replay(answer) for answer in answers] == [False] * 4 + [True] * 4
    assert [backend.executions(each) for each in keys] == [1] * 4


def test_a_thousand_replays_are_all_the_same(gateway, backend, key):
    first = gateway.post("/plain", key)
    with gateway.client() as client:
        for _ in range(990):
            assert_replay(gateway.post("/plain", key, client=client), first)
    assert backend.executions(key) == 1
