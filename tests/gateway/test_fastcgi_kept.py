# SPDX-License-Identifier: Apache-2.0
"""FastCGI over connections that nginx keeps: in step, and never a second execution over a stale one.

The connections are counted, so that a case in which nothing was kept cannot pass for one.
"""

import pytest

from support.cgi_backend import CgiReply
from support.expect import (CONFLICT, NOT_STORED, UNKNOWN, assert_first, assert_problem, assert_replay,
                            is_replay, new_key)
from support.fastcgi_frames import STDOUT, Frames, FramesBackend, end, record, stdout
from support.front import STEP, Front
from support.rawbackend import reset
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: "POST /small/**", snapshot: {max_body: 1KiB}}
  - {name: all, match: "POST|PUT|DELETE|GET|HEAD /**"}
"""

HTTP = """
    upstream kept { server BACKEND max_fails=0; keepalive 4; keepalive_timeout 1s; }
    upstream two { server BACKEND max_fails=0; server 127.0.0.2:PORT max_fails=0; keepalive 4; }
"""

SERVER = """
    counterfoil on;
    fastcgi_param REQUEST_METHOD $request_method;
    fastcgi_param REQUEST_URI $request_uri;
    fastcgi_param CONTENT_LENGTH $content_length;
    fastcgi_keep_conn on;
    location / { fastcgi_pass kept; }
    location /unbuffered/ { fastcgi_pass kept; fastcgi_buffering off; }
    location /small/ { fastcgi_pass kept; }
    location /small/unbuffered/ { fastcgi_pass kept; fastcgi_buffering off; }
    location /two/ {
        fastcgi_pass two;
        fastcgi_next_upstream error timeout invalid_header http_500 http_503 non_idempotent;
    }
"""

PLACES = ["", "unbuffered/"]
HEAD = b"Status: 201 Created\r\nContent-Type: text/x-thing\r\n\r\n"


@pytest.fixture
def app():
    backend = FramesBackend()
    yield backend
    backend.stop()


@pytest.fixture
def front(tmp_path_factory, app):
    def named(text):
        return text.replace("BACKEND", app.url).replace("PORT", str(app.port))

    server = Front(tmp_path_factory.mktemp("front"), app, STEP + SERVER, POLICY, http=named(HTTP))
    with server.running():
        yield server


def whole(body, head=HEAD):
    return Frames([stdout(head + body), record(STDOUT), end()])


@pytest.mark.parametrize("place", PLACES)
def test_one_connection_serves_many_executions(front, app, place):
    keys = [new_key() for _ in range(10)]
    for each in keys:
        body = each.encode()
        app.script(each, whole(body))
        first = front.post(f"/{place}x", each)
        assert_first(first)
        assert first.body == body
        assert_replay(front.post(f"/{place}x", each), first)
        assert_problem(front.post(f"/{place}x", each, b"[]"), CONFLICT)
    assert [app.executions(each) for each in keys] == [1] * len(keys)
    assert len(app.peers) == 1


BODIES = {
    "nothing": (whole(b""), 201, b""),
    "204": (Frames([stdout(b"Status: 204 No\r\n\r\n"), record(STDOUT), end()]), 204, b""),
    "no empty record": (Frames([stdout(HEAD + b"b"), end()]), 201, b"b"),
    "length": (whole(b"bytes", b"Content-Length: 5\r\n" + HEAD), 201, b"bytes"),
    "100 KiB": (whole(b"k" * 102400), 201, b"k" * 102400),
    "404": (whole(b"no", b"Status: 404 No\r\n\r\n"), 404, b"no"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("which", BODIES)
def test_the_next_execution_is_in_step(front, app, which, place):
    frames, status, body = BODIES[which]
    keys = [new_key() for _ in range(4)]
    for each in keys:
        app.script(each, frames)
        first = front.post(f"/{place}x", each)
        assert_first(first, status)
        assert first.body == body
        assert_replay(front.post(f"/{place}x", each), first)
    assert [app.executions(each) for each in keys] == [1] * len(keys)
    assert len(app.peers) == 1


@pytest.mark.parametrize("place", ["small/", "small/unbuffered/"])
def test_what_is_passed_on_leaves_the_connection_in_step(front, app, key, place):
    app.script(key, whole(b"p" * 100_000))
    assert front.post(f"/{place}x", key).body == b"p" * 100_000
    other = new_key()
    app.script(other, whole(b"next"))
    assert front.post(f"/{place}x", other).body == b"next"
    assert_problem(front.post_settled(f"/{place}x", key), NOT_STORED)
    assert [app.executions(each) for each in (key, other)] == [1, 1]
    assert len(app.peers) == 1


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_answers_without_a_body_leave_the_connection_in_step(front, app, key, method):
    status = "200 OK" if method == "HEAD" else "304 Not Modified"
    head = f"Status: {status}\r\nETag: \"v1\"\r\nX-One: 1\r\n\r\n".encode()
    app.script(key, Frames([stdout(head), record(STDOUT), end()]))
    first = front.post("/x", key, None, method=method)
    assert (first.status, first.header("ETag")) == (int(status[:3]), '"v1"')
    again = front.post("/x", key, None, method=method)
    assert is_replay(again) and again.status == first.status
    assert (again.header("ETag"), again.header("X-One")) == ('"v1"', "1")
    other = new_key()
    app.script(other, whole(b"next"))
    assert front.post("/x", other).body == b"next"
    assert [app.executions(each) for each in (key, other)] == [1, 1]
    assert len(app.peers) == 1


def test_the_client_leaves_and_the_connection_stays_in_step(front, app, key):
    reply = app.holding(body=b"found")
    app.script(key, reply)
    client = front.send("/x", key)
    app.wait(key)
    client.reset()
    reply.hold.set()
    front.await_state(key, "SUCCEEDED")
    other = new_key()
    app.script(other, whole(b"next"))
    assert front.post("/x", other).body == b"next"
    again = front.post("/x", key)
    assert is_replay(again) and again.body == b"found"
    assert len(app.peers) == 1


def test_a_connection_the_backend_has_closed_is_not_used_again(front, app, key):
    assert_first(front.post("/x", key))
    app.script(key + "-closes", Frames([stdout(HEAD + b"last"), record(STDOUT), end()], keeps=False))
    assert front.post("/x", key + "-closes").body == b"last"
    front.await_gone(app.peers[0], app.port)
    third = key + "-third"
    assert_first(front.post("/x", third))
    assert front.state(third) == "SUCCEEDED"
    assert app.executions(third) == 1
    assert len(app.peers) == 2


def test_idle_connections_are_ended_by_nginx_first(front, app, key):
    """A backend that closes after 1 s or more never meets a request on its way."""
    assert_first(front.post("/x", key))
    front.await_gone(app.peers[0], app.port)
    other = new_key()
    assert_first(front.post("/x", other))
    assert [app.executions(each) for each in (key, other)] == [1, 1]


STALE = {"closes": [], "resets": [reset], "ends without an answer": [end()],
         "half an answer": [stdout(HEAD[:20])]}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("how", STALE)
@pytest.mark.parametrize("place", ["", "two/"])
def test_what_a_kept_connection_has_lost_is_not_sent_again(front, app, key, place, how, method):
    """The second request goes over a connection that was kept, where nginx by itself would re-send."""
    for _ in range(2 if place else 1):
        assert_first(front.post(f"/{place}x", new_key()))
    connections = len(app.peers)
    app.script(key, Frames(STALE[how], keeps=False), CgiReply())
    answer = front.post(f"/{place}x", key, method=method)
    assert (answer.status, is_replay(answer)) == (502, False)
    assert len(app.peers) == connections
    front.await_state(key, "IN_DOUBT")
    assert_problem(front.post(f"/{place}x", key, method=method), UNKNOWN)
    assert app.executions(key) == 1


def test_the_control_without_a_key_nginx_does_send_it_again(front, app, key):
    for _ in range(2):
        assert_first(front.post("/two/x", new_key()))
    app.script(key, Frames([], keeps=False), CgiReply())
    assert front.post("/two/x", None, headers=[("X-Case", key)]).status == 201
    assert app.executions(key) == 2


@pytest.mark.parametrize("place", PLACES)
def test_an_answer_cut_short_does_not_leak_into_the_next(front, app, key, place):
    """Its end record has come before its length: whatever the connection still says is nobody's."""
    head = b"Status: 201 Created\r\nContent-Length: 100\r\n\r\n"
    app.script(key, Frames([stdout(head + b"x" * 50), record(STDOUT), end()]))
    assert_problem(front.post(f"/{place}x", key), UNKNOWN, status=502)
    front.await_state(key, "IN_DOUBT")
    other = new_key()
    app.script(other, whole(b"next"))
    assert front.post(f"/{place}x", other).body == b"next"
    assert [app.executions(each) for each in (key, other)] == [1, 1]


@pytest.mark.parametrize("place", PLACES)
def test_more_than_an_answer_does_not_become_the_next(front, app, key, place):
    """What follows the end record answers nothing."""
    stray = stdout(b"Status: 200 OK\r\n\r\nstray") + record(STDOUT) + end()
    app.script(key, Frames([stdout(HEAD + b"mine") + record(STDOUT) + end() + stray]))
    first = front.post(f"/{place}x", key)
    assert (first.status, first.body) == (201, b"mine")
    until(lambda: front.state(key) == "SUCCEEDED", "it is settled")
    other = new_key()
    app.script(other, whole(b"next"))
    assert front.post(f"/{place}x", other).body == b"next"
    assert_replay(front.post(f"/{place}x", key), first)
    assert [app.executions(each) for each in (key, other)] == [1, 1]
