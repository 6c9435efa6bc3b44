# SPDX-License-Identifier: Apache-2.0
"""Answers without a body under everything nginx does to answers: HEAD, 204, 304.

Each is compared with plain nginx, and its replays with the first answer. What HEAD and 304 say of the
length of a body they do not have is not kept, as the policy's reference says: replays do without.
"""

import pytest

from support.expect import is_replay
from support.front import view
from support.pair import STEP, Pair, assert_like_plain
from support.rawbackend import Body, Play, head

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST|GET|HEAD /**"}
"""

PROXY = 'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass {backend}'
GZIP = "gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; gzip_vary on;"
PLACES = {
    "gzip": GZIP, "gunzip": "gunzip on;", "both": GZIP + "gunzip on;",
    "sub": "sub_filter_types *; sub_filter_once off; sub_filter order ORDER;",
    "headers": 'add_header X-Added yes always; add_header Link "</added>";',
    "charset": "charset utf-8; charset_types *;", "hour": "expires 1h;", "epoch": "expires epoch;",
    "ssi": "ssi on; ssi_types *;",
    "unbuffered": "proxy_buffering off; gzip on; gzip_types *; gzip_min_length 1;",
}
SERVER = "counterfoil on;" + STEP + "".join(
    f"location /{place}/ {{ {PROXY}; {directives} }}\n" for place, directives in PLACES.items())

VALIDATORS = ['ETag: "v1"', "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT", "X-Inner: 1", "X-Empty:",
              "Cache-Control: no-cache", "Vary: Accept-Language"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    made = Pair(tmp_path_factory.mktemp("pair"), SERVER, POLICY)
    with made.running():
        yield made


def answer(status, *more):
    return Play([head(status, "Content-Type: text/plain", *VALIDATORS, *more),
                 Body(b"an order of orders")])


ANSWERS = {
    "HEAD": ("HEAD", answer("200 OK", "Content-Length: 18")),
    "HEAD of what is packed": ("HEAD", answer("200 OK", "Content-Length: 18",
                                              "Content-Encoding: gzip")),
    "HEAD of 404": ("HEAD", answer("404 No", "Content-Length: 18")),
    "204": ("POST", Play([head("204 No Content", *VALIDATORS)])),
    "304": ("GET", Play([head("304 Not Modified", *VALIDATORS)])),
    "304 with a length": ("GET", Play([head("304 Not Modified", *VALIDATORS, "Content-Length: 18")])),
    "304 with a length over the limit": ("GET", Play([head("304 Not Modified", *VALIDATORS,
                                                           "Content-Length: 5000000")])),
    "304 of what is packed": ("GET", Play([head("304 Not Modified", *VALIDATORS,
                                                "Content-Encoding: gzip")])),
    "empty": ("POST", Play([head("200 OK", *VALIDATORS, "Content-Type: text/plain",
                                 "Content-Length: 0")])),
}
ACCEPTS = {"nothing said": [], "gzip": [("Accept-Encoding", "gzip")],
           "no gzip": [("Accept-Encoding", "gzip;q=0")]}


# nginx' own gunzip leaves a 304 that calls itself packed without an end: nothing to compare with.
BROKEN_BY_NGINX = [("304 of what is packed", "gunzip"), ("304 of what is packed", "both")]
CASES = [(which, place) for which in ANSWERS for place in PLACES
         if (which, place) not in BROKEN_BY_NGINX]


@pytest.mark.parametrize("accept", ACCEPTS)
@pytest.mark.parametrize("which, place", CASES)
def test_an_answer_without_a_body_comes_back_as_it_was(pair, which, place, accept):
    method, play = ANSWERS[which]
    headers = ACCEPTS[accept]
    key, plain, guarded = pair.run(f"/{place}/x", play, method=method, headers=headers)
    if place == "hour":
        forget_the_moment(plain, guarded)
    assert_like_plain(plain, guarded, method)
    pair.assert_state(key, "FAILED_FINAL" if "404" in which else "SUCCEEDED")
    aside = ["content-length", "expires"] if place == "hour" else ["content-length"]
    for more in ([], [("If-None-Match", '"v1"')], [("Range", "bytes=0-1")]):
        again = pair.guarded.post(f"/{place}/x", key, b"{}" if method == "POST" else None,
                                  method=method, headers=headers + more)
        assert is_replay(again)
        assert view(again, aside) == view(guarded.answer, aside)
    assert pair.raw.executions(key) == 1


def forget_the_moment(*got):
    """Two answers of one second or the next expire a second apart."""
    for each in got:
        each.answer.headers = [pair for pair in each.answer.headers if pair[0] != "Expires"]
