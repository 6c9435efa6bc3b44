# SPDX-License-Identifier: Apache-2.0
"""However a FastCGI answer is cut into records and packets, it is one answer; a broken one is none.

The verdicts common to all protocols are in test_fastcgi.py, kept connections in test_fastcgi_kept.py.
"""

import pytest

from support.expect import UNKNOWN, assert_first, assert_problem, assert_replay, is_replay, new_key
from support.fastcgi_frames import STDERR, STDOUT, Frames, FramesBackend, by_byte, end, record, stdout
from support.front import STEP, Front
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST /**"}
"""

SERVER = """
    counterfoil on;
    fastcgi_param REQUEST_METHOD $request_method;
    fastcgi_param REQUEST_URI $request_uri;
    fastcgi_param CONTENT_LENGTH $content_length;
    location / { fastcgi_pass BACKEND; }
    location /unbuffered/ { fastcgi_pass BACKEND; fastcgi_buffering off; }
    location /intercept/ {
        fastcgi_pass BACKEND; fastcgi_intercept_errors on;
        error_page 404 500 502 =200 /page;
    }
    location = /page { return 200 "a page"; }
"""

PLACES = ["", "unbuffered/"]
HEAD = b"Status: 201 Created\r\nContent-Type: text/x-thing\r\nX-One: 1\r\nX-Empty:\r\n\r\n"
BODY = b"line\r\n\r\nStatus: 500 No\r\n\0\xff" * 40


@pytest.fixture(scope="module")
def app():
    backend = FramesBackend()
    yield backend
    backend.stop()


@pytest.fixture(scope="module")
def front(tmp_path_factory, app):
    server = Front(tmp_path_factory.mktemp("front"), app,
                   STEP + SERVER.replace("BACKEND", app.url), POLICY)
    with server.running():
        yield server


def done(*steps):
    return Frames([*steps, record(STDOUT), end()], keeps=False)


def check_whole(front, app, key, target, frames, body=BODY):
    """A first answer with this body, kept, and given again."""
    app.script(key, frames)
    first = front.post(target, key)
    assert_first(first)
    assert (first.body, first.header("X-One"), first.header("X-Empty")) == (body, "1", "")
    again = front.post(target, key)
    assert_replay(again, first)
    assert (again.header("X-One"), again.header("X-Empty")) == ("1", "")
    assert front.state(key) == "SUCCEEDED"
    assert app.executions(key) == 1


WHOLE = {
    "one record": done(stdout(HEAD + BODY)),
    "a byte in each record": done(stdout(HEAD + BODY, 1)),
    "a byte in each packet": done(*by_byte(stdout(HEAD + BODY))),
    "a byte in each record and packet": done(*by_byte(stdout(HEAD, 1) + stdout(BODY[:100], 1)),
                                             stdout(BODY[100:])),
    "much padding": done(stdout(HEAD + BODY, 100, padding=255)),
    "no padding": done(stdout(HEAD + BODY, 7, padding=0)),
    "no empty record at the end": Frames([stdout(HEAD + BODY), end()], keeps=False),
    "an application status": Frames([stdout(HEAD + BODY), record(STDOUT), end(app_status=1)],
                                    keeps=False),
    "stderr before": done(record(STDERR, b"warning: odd"), stdout(HEAD + BODY)),
    "stderr inside": done(stdout(HEAD), record(STDERR, b"warning: odd\n"), stdout(BODY)),
    "stderr after": done(stdout(HEAD + BODY), record(STDERR, b"warning: odd\n"), record(STDERR)),
    "stderr in the header": done(stdout(HEAD[:10]), record(STDERR, b"Status: 500 Odd\r\n"),
                                 stdout(HEAD[10:] + BODY)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", WHOLE)
def test_an_answer_is_the_same_however_it_is_cut(front, app, key, how, place):
    check_whole(front, app, key, f"/{place}x", WHOLE[how])


def test_an_end_of_stdout_is_an_end_for_a_buffered_answer(front, app, key):
    """nginx takes it for one there only: unbuffered, the end record alone tells a whole answer."""
    check_whole(front, app, key, "/x",
                Frames([stdout(HEAD + BODY), record(STDOUT)], keeps=False))


@pytest.mark.parametrize("place", PLACES)
def test_a_header_may_be_cut_between_any_two_bytes(front, app, place):
    for at in range(1, len(HEAD) + 1, 3):
        key = new_key()
        check_whole(front, app, key, f"/{place}x",
                    done(stdout(HEAD[:at]), stdout(HEAD[at:] + b"short")), b"short")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("size", [65535, 1 << 20])
def test_records_as_long_as_can_be(front, app, key, place, size):
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    check_whole(front, app, key, f"/{place}x", done(stdout(HEAD), stdout(body, 65535)), body)


# Answers that cannot be read. What the backend did is not known.

NO_HEADER = {
    "an end and nothing else": Frames([end()], keeps=False),
    "an overloaded backend": Frames([end(protocol_status=2)], keeps=False),
    "stderr and an end": Frames([record(STDERR, b"fatal: odd"), record(STDOUT), end(app_status=255)],
                                keeps=False),
    "half a header": Frames([stdout(HEAD[:30]), record(STDOUT), end()], keeps=False),
    "another version of FastCGI": Frames([stdout(HEAD + BODY, version=2)], keeps=False),
    "a record of no kind": Frames([record(99, b"12345678")], keeps=False),
    "not FastCGI": Frames([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], keeps=False),
    "half a record": Frames([record(STDOUT, HEAD + BODY)[:20]], keeps=False),
    "a status that is none": done(stdout(b"Status: odd\r\n\r\nbody")),
    "a name with a control byte": done(stdout(b"Status: 201 Created\r\no\0d: 1\r\n\r\nbody")),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", NO_HEADER)
def test_an_answer_that_cannot_be_read_is_in_doubt(front, app, key, how, place):
    app.script(key, NO_HEADER[how])
    first = front.post(f"/{place}x", key)
    assert (first.status, is_replay(first)) == (502, False)
    front.await_state(key, "IN_DOUBT")
    assert_problem(front.post(f"/{place}x", key), UNKNOWN)
    assert app.executions(key) == 1


LENGTH = b"Status: 201 Created\r\nContent-Length: 100\r\n\r\n"
BROKEN = {
    "another version of FastCGI": [stdout(HEAD + BODY), stdout(BODY, version=2)],
    "a record of no kind": [stdout(HEAD + BODY), record(99, b"12345678")],
    "half a record": [stdout(HEAD + BODY), record(STDOUT, BODY)[:100]],
    "half the head of a record": [stdout(HEAD + BODY), record(STDOUT, BODY)[:5]],
    "an end before its length": [stdout(LENGTH + b"x" * 99), record(STDOUT), end()],
    "no end before its length": [stdout(LENGTH + b"x" * 99)],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", BROKEN)
def test_an_answer_that_breaks_off_inside_its_body_is_in_doubt(front, app, key, how, place):
    app.script(key, Frames(BROKEN[how], keeps=False))
    assert_problem(front.post(f"/{place}x", key), UNKNOWN, status=502)
    front.await_state(key, "IN_DOUBT")
    assert_problem(front.post(f"/{place}x", key), UNKNOWN)
    assert app.executions(key) == 1


@pytest.mark.parametrize("place", PLACES)
def test_an_answer_of_full_length_without_its_end_is_one_thing_or_the_other(front, app, key, place):
    """Whole by its length, cut short by its framing: what the client was told is what is kept."""
    app.script(key, Frames([stdout(LENGTH + b"x" * 100)], keeps=False))
    first = front.post(f"/{place}x", key)
    until(lambda: front.state(key) != "PROCESSING", "it is settled")
    again = front.post(f"/{place}x", key)
    if first.status == 201:
        assert_replay(again, first)
    else:
        assert_problem(first, UNKNOWN, status=502)
        assert_problem(again, UNKNOWN)
    assert app.executions(key) == 1


# Pages for errors. The outcome comes from the upstream's end.

@pytest.mark.parametrize("status, outcome, executed", [("404 No", "FAILED_FINAL", 1),
                                                       ("500 Odd", "FAILED", 2),
                                                       ("502 Odd", "IN_DOUBT", 1)])
def test_a_page_for_an_error_makes_no_success(front, app, key, status, outcome, executed):
    app.script(key, done(stdout(f"Status: {status}\r\n\r\nodd".encode())))
    first = front.post("/intercept/x", key)
    assert (first.status, first.body, is_replay(first)) == (200, b"a page", False)
    front.await_state(key, outcome)
    again = front.post("/intercept/x", key)
    if outcome == "FAILED_FINAL":
        assert_replay(again, first)
    elif outcome == "IN_DOUBT":
        assert_problem(again, UNKNOWN)
    else:
        assert (again.status, is_replay(again)) == (200, False)
    assert app.executions(key) == executed
