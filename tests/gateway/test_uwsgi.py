# SPDX-License-Identifier: Apache-2.0
"""What uwsgi and SCGI backends do that FastCGI ones cannot: HTTP status lines, ends by closing.

The verdicts common to all three are in test_fastcgi.py.
"""

import pytest

from support.cgi_backend import CgiReply
from support.cgi_front import running
from support.expect import UNKNOWN, assert_first, assert_problem, assert_replay


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with running(tmp_path_factory.mktemp("front")) as made:
        yield made


@pytest.fixture(scope="module")
def front(site):
    return site[0]


@pytest.fixture(params=["uwsgi", "scgi"])
def protocol(request):
    return request.param


@pytest.fixture
def app(site, protocol):
    return site[1][protocol]


def head(status):
    return f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nX-Kept: yes\r\n\r\n".encode()


STATUSES = [("201 Created", "SUCCEEDED"), ("409 Conflict", "FAILED_FINAL"), ("500 Odd", "FAILED"),
            ("504 Late", "IN_DOUBT")]


@pytest.mark.parametrize("status, outcome", STATUSES)
def test_the_status_line_decides_the_outcome(front, app, key, protocol, status, outcome):
    app.script(key, CgiReply(raw_head=head(status), body=b"said"), CgiReply("201 Created"))
    target = f"/{protocol}/x"
    first = front.post(target, key)
    assert_first(first, int(status[:3]))
    assert (first.body, first.header("X-Kept")) == (b"said", "yes")
    front.await_state(key, outcome)
    again = front.post(target, key)
    if outcome == "FAILED":
        assert_first(again, 201)
    elif outcome == "IN_DOUBT":
        assert_problem(again, UNKNOWN)
    else:
        assert_replay(again, first)
        assert again.header("X-Kept") == "yes"
    assert app.executions(key) == (2 if outcome == "FAILED" else 1)


@pytest.mark.parametrize("place", ["", "unbuffered/"])
def test_an_answer_of_unknown_length_ends_when_it_closes(front, app, key, protocol, place):
    app.script(key, CgiReply(body=b"to the end", ending="close"))
    target = f"/{protocol}/{place}x"
    first = front.post(target, key)
    assert_first(first)
    assert first.body == b"to the end"
    front.await_state(key, "SUCCEEDED")
    assert_replay(front.post(target, key), first)
    assert app.executions(key) == 1


def test_an_answer_of_known_length_is_whole_although_more_would_come(front, app, key, protocol):
    """Its end is known before the connection closes: what comes after is no part of it."""
    app.script(key, CgiReply(body=b"ten bytes.", length=10, ending="close"))
    first = front.post(f"/{protocol}/x", key)
    assert_first(first)
    front.await_state(key, "SUCCEEDED")
    assert_replay(front.post(f"/{protocol}/x", key), first)
    assert app.executions(key) == 1


def test_uwsgi_and_scgi_are_told_the_protocols_own_parameters(front, app, key, protocol):
    body = b'{"amount": 1}'
    assert_first(front.post(f"/{protocol}/x", key, body, chunk=4))
    request = app.wait(key)
    assert request.param("CONTENT_LENGTH") == str(len(body))  # although it came in chunks
    assert request.body == body
