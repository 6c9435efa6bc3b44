# SPDX-License-Identifier: Apache-2.0
"""Answers that never came or broke off: the outcome table's state, and never a second execution."""

import pytest

from support.expect import assert_first
from support.pair import STEP, Pair, assert_broken_off, assert_like_plain
from support.ports import free_port
from support.rawbackend import (Body, DeafPort, Play, RawBackend, close, finish, head, pause,
                                reply, reset, wait_for_peer)
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: "POST|PUT|PATCH|DELETE|GET|HEAD /small/**", snapshot: {max_body: 1KiB}}
  - {name: all, match: "POST|PUT|PATCH|DELETE|GET|HEAD /**"}
"""

PROXY = "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass"

SERVER = f"""
    counterfoil on;
    client_max_body_size 0;
    {STEP}
    location / {{ {PROXY} {{backend}}; }}
    location /unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
    location /small/ {{ {PROXY} {{backend}}; }}
    location /small/unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
    location /slow/ {{ {PROXY} {{backend}}; proxy_read_timeout 300ms; proxy_send_timeout 300ms; }}
    location /slow/unbuffered/ {{
        {PROXY} {{backend}}; proxy_read_timeout 300ms; proxy_buffering off;
    }}
    location /refused/ {{ {PROXY} http://127.0.0.1:{{refused}}; }}
    location /late/ {{ {PROXY} http://127.0.0.1:{{late}}; proxy_connect_timeout 10s; }}
    location /deaf/ {{ {PROXY} http://127.0.0.1:{{deaf}}; proxy_connect_timeout 300ms; }}
"""

METHODS = ["POST", "PUT", "PATCH", "DELETE", "GET", "HEAD"]
VERSIONS = ["HTTP/1.0", "HTTP/1.1"]
WITH_BODY = ["POST", "PUT", "PATCH", "DELETE"]

PARTIAL = b"HTTP/1.1 201 Created\r\nContent-Le"
CREATED_10 = head("201 Created", "Content-Length: 10")
CHUNKED = head("201 Created", "Transfer-Encoding: chunked")


@pytest.fixture(scope="module")
def ports():
    return {name: free_port() for name in ("refused", "late", "deaf")}


@pytest.fixture(scope="module")
def pair(tmp_path_factory, ports):
    with Pair(tmp_path_factory.mktemp("pair"), SERVER, POLICY, **ports).running() as made:
        yield made


def check_in_doubt(pair, key, guarded, target, method, version="HTTP/1.1", body=b"{}"):
    """Executed once, in doubt within a second, and a retry is told so and executes nothing."""
    assert pair.raw.executions(key) == 1
    pair.assert_state(key, "IN_DOUBT")
    pair.assert_retry(key, "IN_DOUBT", guarded.answer, target, method, version, body)


# No header came: plain nginx answers 502 or 504, and so does the gateway.

NO_ANSWER = {
    "closed at once": [close],
    "reset at once": [reset],
    "closed in the header": [PARTIAL, close],
    "reset in the header": [PARTIAL, pause(0.05), reset],
    "a header line without colon": [head("201 Created", "no colon here", "Content-Length: 0")],
    "a header name with a space": [head("201 Created", "X Odd: 1", "Content-Length: 0")],
    "a zero byte in a header": [head("201 Created", "X-Zero: a\0b", "Content-Length: 0")],
    "a header too big": [head("201 Created", "X-Big: " + "b" * 100_000, "Content-Length: 0")],
    "a header without end": [head("201 Created", *["X-More: " + "m" * 90] * 1000)[:-2], close],
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ending", NO_ANSWER)
def test_no_usable_answer_is_a_502_and_in_doubt(pair, ending, method, version):
    key, plain, guarded = pair.run("/x", Play(NO_ANSWER[ending]), method, version)
    assert plain.answer.status == 502
    assert_like_plain(plain, guarded, method)
    check_in_doubt(pair, key, guarded, "/x", method, version)


SILENCE = {"before the first byte": [wait_for_peer], "in the header": [PARTIAL, wait_for_peer]}


@pytest.mark.parametrize("method, version", [(method, "HTTP/1.1") for method in METHODS]
                         + [("POST", "HTTP/1.0")])
@pytest.mark.parametrize("ending", SILENCE)
def test_a_time_out_for_the_header_is_a_504_and_in_doubt(pair, ending, method, version):
    key, plain, guarded = pair.run("/slow/x", Play(SILENCE[ending]), method, version)
    assert plain.answer.status == 504
    assert_like_plain(plain, guarded, method)
    check_in_doubt(pair, key, guarded, "/slow/x", method, version)


# The body broke off. Plain nginx has sent the header by then and can only close; the gateway holds
# the answer and says what happened.

BROKEN_OFF = {
    "closed in a body of known length": [CREATED_10, Body(b"12345"), close],
    "closed before a body of known length": [CREATED_10, finish],
    "reset in a body of known length": [CREATED_10, Body(b"12345"), pause(0.05), reset],
    "closed between chunks": [CHUNKED, Body(b"5\r\n12345\r\n"), close],
    "closed in a chunk": [CHUNKED, Body(b"ff\r\n12345"), close],
    "closed before the first chunk": [CHUNKED, finish],
    "reset between chunks": [CHUNKED, Body(b"5\r\n12345\r\n"), pause(0.05), reset],
    "closed before the last line feed": [CHUNKED, Body(b"5\r\n12345\r\n0\r\n"), close],
    "reset in a body to the end": [head("201 Created"), Body(b"12345"), pause(0.05), reset],
    "a malformed chunk first": [CHUNKED, Body(b"zz\r\n12345\r\n0\r\n\r\n")],
    "a malformed chunk later": [CHUNKED, Body(b"5\r\n12345\r\n"), pause(0.05), Body(b"zz\r\n")],
    "a chunk longer than it said": [CHUNKED, Body(b"2\r\n12345\r\n0\r\n\r\n")],
}


def check_broken_off(pair, target, steps, method, version):
    key, plain, guarded = pair.run(target, Play(steps), method, version)
    if version == "HTTP/1.1":
        assert_broken_off(plain, guarded)
    else:  # plain nginx marks the end by closing, which a client takes for a whole answer
        assert guarded.answer.status == 502
    check_in_doubt(pair, key, guarded, target, method, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "GET"])
@pytest.mark.parametrize("ending", BROKEN_OFF)
def test_an_answer_that_broke_off_is_in_doubt(pair, ending, method, version):
    check_broken_off(pair, "/x", BROKEN_OFF[ending], method, version)


@pytest.mark.parametrize("ending", BROKEN_OFF)
def test_an_unbuffered_answer_that_broke_off_is_in_doubt(pair, ending):
    check_broken_off(pair, "/unbuffered/x", BROKEN_OFF[ending], "POST", "HTTP/1.1")


STALLED = {
    "before the body": [CREATED_10, wait_for_peer],
    "in a body of known length": [CREATED_10, Body(b"12345"), wait_for_peer],
    "between chunks": [CHUNKED, Body(b"5\r\n12345\r\n"), wait_for_peer],
    "in a body to the end": [head("201 Created"), Body(b"12345"), wait_for_peer],
}


@pytest.mark.parametrize("target", ["/slow/x", "/slow/unbuffered/x"])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("ending", STALLED)
def test_a_time_out_in_the_body_is_in_doubt(pair, ending, method, target):
    check_broken_off(pair, target, STALLED[ending], method, "HTTP/1.1")


def cut(client):
    """What a client read before its answer broke off."""
    data = b""
    try:
        while block := client.sock.recv(1 << 16):
            data += block
    except ConnectionResetError:
        pass
    return data


@pytest.mark.parametrize("target", ["/small/x", "/small/unbuffered/x"])
@pytest.mark.parametrize("end", [close, reset])
def test_an_answer_too_long_to_be_held_breaks_off_as_in_plain_nginx(pair, key, target, end):
    """It is passed on while it comes: the client keeps what it has and sees that it is not whole."""
    length = 300_000
    steps = [head("201 Created", f"Content-Length: {length}"), Body(b"x" * 100_000), pause(0.1),
             end]
    pair.raw.script(key, Play(steps))
    with pair.guarded.send(target, key) as client:
        data = cut(client)
    top, _, body = data.partition(b"\r\n\r\n")
    assert top.startswith(b"HTTP/1.1 201 ") and b"Content-Length: 300000" in top
    assert 1024 < len(body) < length and set(body) == {ord("x")}
    assert pair.raw.executions(key) == 1
    pair.assert_state(key, "IN_DOUBT")
    pair.assert_retry(key, "IN_DOUBT", None, target)


# The request never went out whole.

BIG = b"x" * (8 << 20)
UNREAD = {"closed": [close], "finished": [finish], "reset": [reset]}


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("ending", UNREAD)
def test_a_backend_that_ends_before_it_read_the_body_leaves_doubt(pair, ending, method):
    play = Play(UNREAD[ending], reads_body=False)
    key, plain, guarded = pair.run("/x", play, method, body=BIG)
    assert plain.answer.status == 502
    assert_like_plain(plain, guarded)
    check_in_doubt(pair, key, guarded, "/x", method, body=BIG)


@pytest.mark.parametrize("method", WITH_BODY)
def test_a_time_out_while_sending_is_a_504_and_in_doubt(pair, method):
    play = Play([wait_for_peer], reads_body=False)
    key, plain, guarded = pair.run("/slow/x", play, method, body=BIG)
    assert plain.answer.status == 504
    assert_like_plain(plain, guarded)
    check_in_doubt(pair, key, guarded, "/slow/x", method, body=BIG)


# Nothing was ever sent.

def check_failed_unsent(pair, key, plain, guarded, method, status):
    assert plain.answer.status == status
    assert_like_plain(plain, guarded, method)
    assert pair.raw.executions(key) == 0
    pair.assert_state(key, "FAILED")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", METHODS)
def test_a_refused_connection_is_a_502_and_failed(pair, method, version):
    key, plain, guarded = pair.run("/refused/x", Play([]), method, version)
    check_failed_unsent(pair, key, plain, guarded, method, 502)
    again = pair.guarded.post("/refused/x", key, None if method in ("GET", "HEAD") else b"{}",
                              method=method)
    assert again.status == 502  # it was tried again, and refused again
    assert pair.record(key)["attempt"] == 2


@pytest.mark.parametrize("method", WITH_BODY)
def test_a_refusal_that_comes_late_is_failed_too(pair, ports, method):
    """After EINPROGRESS the connection looks open until it is tested; nothing was sent all the same."""
    deaf = DeafPort(ports["late"])
    before = deaf.waiting()

    def refuse_them():
        until(lambda: deaf.waiting() == before + 2, "both servers are connecting")
        deaf.refuse()

    key, plain, guarded = pair.run("/late/x", Play([]), method, meanwhile=refuse_them)
    check_failed_unsent(pair, key, plain, guarded, method, 502)
    back = RawBackend(port=ports["late"])
    try:
        assert_first(pair.guarded.post("/late/x", key, method=method))
        assert back.executions(key) == 1
    finally:
        back.stop()


@pytest.mark.parametrize("method", WITH_BODY)
def test_a_time_out_while_connecting_is_a_504_and_failed(pair, ports, method):
    deaf = DeafPort(ports["deaf"])
    try:
        key, plain, guarded = pair.run("/deaf/x", Play([]), method)
        check_failed_unsent(pair, key, plain, guarded, method, 504)
    finally:
        deaf.refuse()


# What is no HTTP/1 at all.

NONSENSE = {
    "no status line": [b"nonsense here\r\n\r\nbody", finish],
    "another protocol": [b"SSH-2.0-OpenSSH_9.2\r\n", finish],
    "a status that is no number": [b"HTTP/1.1 abc Odd\r\nContent-Length: 2\r\n\r\n{}", finish],
    "a body at once": [b'{"id": 7}', finish],
}


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("ending", NONSENSE)
def test_an_answer_without_status_is_never_a_success(pair, key, ending, method):
    """nginx takes it for HTTP/0.9 with status 200 and passes bare bytes on, which nobody can replay."""
    pair.raw.script(key, Play(NONSENSE[ending]))
    with pair.guarded.send("/x", key, method=method) as client:
        client.sock.settimeout(3)
        assert client.sock.recv(13) == b"HTTP/1.1 502 "
    assert pair.raw.executions(key) == 1
    pair.assert_state(key, "IN_DOUBT")
    pair.assert_retry(key, "IN_DOUBT", None, "/x", method)
