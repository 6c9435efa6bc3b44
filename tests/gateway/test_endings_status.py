# SPDX-License-Identifier: Apache-2.0
"""Whole answers of every class: the outcome table's state, plain nginx's answer, one execution."""

import pytest

from support.pair import STEP, Pair, assert_like_plain
from support.rawbackend import Body, Play, finish, head, pause, reply, reset

POLICY = """
version: 1
tenant: none
routes:
  - {name: payment, match: "POST /pay/**", profile: payment, key: {format: any}}
  - {name: all, match: "POST|PUT|PATCH|DELETE|GET|HEAD /**"}
"""

SERVER = f"""
    counterfoil on;
    {STEP}
    location / {{ proxy_pass {{backend}}; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    location /unbuffered/ {{
        proxy_pass {{backend}}; proxy_http_version 1.1; proxy_set_header Connection "";
        proxy_buffering off;
    }}
    location /big/ {{
        client_max_body_size 0;
        proxy_pass {{backend}}; proxy_http_version 1.1; proxy_set_header Connection "";
    }}
    location /old/ {{ proxy_pass {{backend}}; }}
"""

METHODS = ["POST", "PUT", "PATCH", "DELETE", "GET", "HEAD"]
VERSIONS = ["HTTP/1.0", "HTTP/1.1"]

MOVED = ("Location: http://elsewhere.test/1",)

# "Outcome of an execution", last four rows, and the row of 502 and 504.
STATUSES = {
    "200 OK": "SUCCEEDED", "201 Created": "SUCCEEDED", "202 Accepted": "SUCCEEDED",
    "203 Non-Authoritative": "SUCCEEDED", "204 No Content": "SUCCEEDED",
    "205 Reset Content": "SUCCEEDED", "206 Partial Content": "SUCCEEDED",
    "226 IM Used": "SUCCEEDED",
    "300 Multiple Choices": "SUCCEEDED", "301 Moved Permanently": "SUCCEEDED",
    "303 See Other": "SUCCEEDED", "304 Not Modified": "SUCCEEDED",
    "307 Temporary Redirect": "SUCCEEDED",
    "400 Bad Request": "FAILED_FINAL", "402 Payment Required": "FAILED_FINAL",
    "404 Not Found": "FAILED_FINAL", "409 Conflict": "FAILED_FINAL",
    "412 Precondition Failed": "FAILED_FINAL", "422 Unprocessable": "FAILED_FINAL",
    "451 Unavailable": "FAILED_FINAL", "499 Of One's Own": "FAILED_FINAL",
    "401 Unauthorized": "FAILED", "403 Forbidden": "FAILED", "408 Request Timeout": "FAILED",
    "425 Too Early": "FAILED", "429 Too Many Requests": "FAILED",
    "500 Internal": "FAILED", "501 Not Implemented": "FAILED", "503 Unavailable": "FAILED",
    "599 Of One's Own": "FAILED",
    "502 Bad Gateway": "IN_DOUBT", "504 Gateway Timeout": "IN_DOUBT",
}

BODILESS = ("204", "304")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with Pair(tmp_path_factory.mktemp("pair"), SERVER, POLICY).running() as made:
        yield made


def steps_of(status):
    headers = ["X-Kept: yes", 'ETag: "v1"', *(MOVED if status[0] == "3" else ())]
    if status[:3] == "401":
        headers.append('WWW-Authenticate: Bearer realm="x"')
    framing = "none" if status[:3] in BODILESS else "length"
    return reply(status, headers=headers, framing=framing)


def check(pair, play, outcome, target, method="POST", version="HTTP/1.1", body=b"{}"):
    """One ending, whole: client, executions, state, next request."""
    key, plain, guarded = pair.run(target, play, method, version, body)
    assert_like_plain(plain, guarded, method)
    assert pair.raw.executions(key) == 1
    pair.assert_state(key, outcome)
    pair.assert_retry(key, outcome, guarded.answer, target, method, version, body)
    return guarded.answer


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("status", STATUSES)
def test_a_status_ends_as_the_table_says(pair, status, method, version):
    check(pair, Play(steps_of(status)), STATUSES[status], "/x", method, version)


def test_503_with_retry_after_declined_even_a_payment(pair):
    play = Play(reply("503 Unavailable", headers=["Retry-After: 7"]))
    assert check(pair, play, "FAILED", "/pay/x").header("Retry-After") == "7"


@pytest.mark.parametrize("status", ["500 Internal", "503 Unavailable", "599 Of One's Own"])
def test_another_5xx_leaves_a_payment_in_doubt(pair, status):
    check(pair, Play(steps_of(status)), "IN_DOUBT", "/pay/x")


# Framings of a whole answer.

TEXT = bytes(range(256)) * 40
FRAMED = {
    "length": reply("201 Created", TEXT),
    "length 0": reply("201 Created", b""),
    "chunked": reply("201 Created", TEXT, framing="chunked"),
    "chunked, nothing in it": reply("201 Created", b"", framing="chunked"),
    "to the end": reply("201 Created", TEXT, framing="close"),
    "to the end, nothing in it": reply("201 Created", b"", framing="close"),
    "HTTP/1.0, to the end": [head("201 Created", version="HTTP/1.0"), Body(TEXT), finish],
    "HTTP/1.0, length": [head("201 Created", "Content-Length: 5", version="HTTP/1.0"),
                         Body(b"12345")],
    "in many packets": [head("201 Created", "Content-Length: 6"), pause(0.02), Body(b"123"),
                        pause(0.02), Body(b"456")],
    "a header in two packets": [b"HTTP/1.1 201 Cre", pause(0.02), b"ated\r\nContent-Le",
                                pause(0.02), b"ngth: 2\r\n\r\n", Body(b"{}")],
    "bare line feeds": [b"HTTP/1.1 201 Created\nX-One: 1\nContent-Length: 2\n\n", Body(b"{}")],
    "no reason": [b"HTTP/1.1 201\r\nContent-Length: 2\r\n\r\n", Body(b"{}")],
    "more than its length": [head("201 Created", "Content-Length: 2"), Body(b"{}left over")],
    "trailers": [head("201 Created", "Transfer-Encoding: chunked", "Trailer: X-Sum"),
                 Body(b"2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n")],
    "chunk extensions": [head("201 Created", "Transfer-Encoding: chunked"),
                         Body(b"2;a=b\r\n{}\r\n0;last\r\n\r\n")],
    "more after the last chunk": [head("201 Created", "Transfer-Encoding: chunked"),
                                  Body(b"2\r\n{}\r\n0\r\n\r\nleft over")],
    "reset once it was whole": [*reply("201 Created", TEXT), pause(0.1), reset],
    "an empty header": [head("201 Created", "X-Empty:", "Content-Length: 2"), Body(b"{}")],
    "a header twice": [head("201 Created", "X-Two: 1", "X-Two: 2", "Content-Length: 2"),
                       Body(b"{}")],
    "a header with an underscore": [head("201 Created", "X_Odd: 1", "Content-Length: 2"),
                                    Body(b"{}")],
}


@pytest.mark.parametrize("where", ["/x", "/unbuffered/x", "/old/x"])
@pytest.mark.parametrize("framed", FRAMED)
def test_every_framing_of_a_whole_answer_succeeds(pair, framed, where):
    check(pair, Play(FRAMED[framed]), "SUCCEEDED", where)


@pytest.mark.parametrize("framed", ["chunked", "to the end", "trailers", "no reason"])
@pytest.mark.parametrize("method, version", [("DELETE", "HTTP/1.0"), ("PUT", "HTTP/1.0"),
                                             ("GET", "HTTP/1.1"), ("HEAD", "HTTP/1.1"),
                                             ("HEAD", "HTTP/1.0")])
def test_a_framing_is_met_by_other_clients(pair, framed, method, version):
    check(pair, Play(FRAMED[framed]), "SUCCEEDED", "/x", method, version)


# The backend answers before it has read the request.

BIG = b"x" * (8 << 20)


@pytest.mark.parametrize("status", ["201 Created", "413 Too Large", "503 Unavailable"])
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_an_answer_before_the_body_was_read_counts_like_any_other(pair, status, method):
    check(pair, Play(reply(status), reads_body=False),
          STATUSES.get(status, "FAILED_FINAL"), "/big/x", method, body=BIG)
