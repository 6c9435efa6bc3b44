# SPDX-License-Identifier: Apache-2.0
"""Range and conditional headers on a repeated request change nothing: the first answer comes whole.

Status and bytes of a replay are those of the first answer (R5), whatever the repetition asks for, and
whatever validators the stored answer carries.
"""

import pytest

from support.backend import Reply
from support.expect import assert_first, assert_replay
from support.front import PROXY, view

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: "POST|GET|DELETE /small/**", snapshot: {max_body: 10B}}
  - {name: all, match: "POST|PUT|DELETE|GET|HEAD /**"}
"""

SERVER = f"""
    counterfoil on;
    location / {{ {PROXY} {{backend}}; }}
    location /ranges/ {{ {PROXY} {{backend}}; proxy_force_ranges on; }}
    location /unbuffered/ {{ {PROXY} {{backend}}; proxy_buffering off; }}
    location /small/ {{ {PROXY} {{backend}}; proxy_force_ranges on; }}
    location /exact/ {{ {PROXY} {{backend}}; if_modified_since before; etag on; }}
"""

ETAG, MODIFIED = '"v1"', "Mon, 01 Jan 2024 00:00:00 GMT"
LATER, EARLIER = "Tue, 02 Jan 2024 00:00:00 GMT", "Sun, 31 Dec 2023 00:00:00 GMT"
VALIDATORS = [("Content-Type", "text/plain"), ("ETag", ETAG), ("Last-Modified", MODIFIED),
              ("Accept-Ranges", "bytes")]
BODY = b"0123456789" * 10

ASKS = {
    "a range": [("Range", "bytes=0-3")],
    "two ranges": [("Range", "bytes=0-3,10-13")],
    "a suffix": [("Range", "bytes=-5")],
    "a range beyond the end": [("Range", "bytes=1000-2000")],
    "a range if unchanged": [("Range", "bytes=0-3"), ("If-Range", ETAG)],
    "a range if unchanged since": [("Range", "bytes=0-3"), ("If-Range", MODIFIED)],
    "if none match": [("If-None-Match", ETAG)],
    "if none match weakly": [("If-None-Match", "W/" + ETAG)],
    "if none match any": [("If-None-Match", "*")],
    "if match another": [("If-Match", '"v2"')],
    "if match": [("If-Match", ETAG)],
    "if modified since": [("If-Modified-Since", MODIFIED)],
    "if modified since later": [("If-Modified-Since", LATER)],
    "if unmodified since earlier": [("If-Unmodified-Since", EARLIER)],
}


@pytest.mark.parametrize("target", ["/x", "/ranges/x", "/unbuffered/x", "/exact/x"])
@pytest.mark.parametrize("status", [200, 201])
@pytest.mark.parametrize("asks", ASKS)
def test_a_replay_is_whole_whatever_is_asked(front, backend, key, asks, status, target):
    backend.script(key, Reply(status, VALIDATORS, BODY))
    first = front.post(target, key)
    assert_first(first, status)
    assert first.body == BODY
    again = front.post(target, key, headers=ASKS[asks])
    assert_replay(again, first)
    assert view(again) == view(first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("status", [200, 201])
@pytest.mark.parametrize("asks", ASKS)
def test_who_asks_with_the_first_request_gets_a_whole_answer_too(front, backend, key, asks, status):
    """The backend ignores what was asked, and so does whoever stands between."""
    backend.script(key, Reply(status, VALIDATORS, BODY))
    first = front.post("/ranges/x", key, headers=ASKS[asks])
    assert_first(first, status)
    assert first.body == BODY
    assert_replay(front.post("/ranges/x", key), first)
    assert backend.executions(key) == 1


def test_a_range_is_not_asked_of_the_backend(front, backend, key):
    """What it would answer is kept for everybody, so it must be whole."""
    first = front.post("/x", key, headers=[("Range", "bytes=0-3"), ("If-Range", ETAG)])
    assert_first(first)
    request = backend.wait(key)
    assert request.all("Range") == request.all("If-Range") == []


@pytest.mark.parametrize("asks", ["a range", "two ranges", "if none match", "if modified since"])
def test_an_answer_that_is_passed_on_is_whole_too(front, backend, key, asks):
    backend.script(key, Reply(200, VALIDATORS, BODY))
    first = front.post("/small/x", key, headers=ASKS[asks])
    assert (first.status, first.body) == (200, BODY)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("asks", ASKS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_guarded_get_or_head_replays_as_it_was(front, backend, key, method, asks):
    """Reads may be guarded too; there nginx itself would know what to do about such headers."""
    backend.script(key, Reply(200, VALIDATORS, b"" if method == "HEAD" else BODY))
    first = front.post("/ranges/x", key, None, method=method)
    again = front.post("/ranges/x", key, None, method=method, headers=ASKS[asks])
    assert first.status == 200
    assert_replay(again, first)
    unknown = ["content-length"] if method == "HEAD" else []  # of a body that nobody has seen
    assert view(again, but=unknown) == view(first, but=unknown)
    assert backend.executions(key) == 1


def test_a_206_of_the_backend_itself_replays_as_it_is(front, backend, key):
    backend.script(key, Reply(206, VALIDATORS + [("Content-Range", "bytes 0-9/100")], BODY[:10]))
    first = front.post("/x", key)
    again = front.post("/x", key, headers=[("Range", "bytes=0-3")])
    assert (first.status, first.header("Content-Range")) == (206, "bytes 0-9/100")
    assert_replay(again, first)
    assert view(again) == view(first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("asks", ["a range", "if none match any", "if match another"])
def test_the_gateways_own_answer_is_whole_too(front, key, asks):
    assert_first(front.post("/x", key))
    conflict = front.post("/x", key, b"[]")
    again = front.post("/x", key, b"[]", headers=ASKS[asks])
    assert again.status == conflict.status == 409
    assert again.body == conflict.body
