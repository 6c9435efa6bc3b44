# SPDX-License-Identifier: Apache-2.0
"""Behind fastcgi_pass, uwsgi_pass and scgi_pass a key is guarded as it is behind proxy_pass.

What the three have in common; the status is the one of the Status header. What uwsgi and SCGI have
alone is in test_uwsgi.py.
"""

import pytest

from support.cgi_backend import CgiReply
from support.cgi_front import PROTOCOLS, running
from support.expect import (CONFLICT, NOT_STORED, PENDING, UNKNOWN, assert_first, assert_problem,
                            assert_replay, is_replay, new_key)
from support.front import view
from support.http2 import Http2Client

KEPT = [("Content-Type", "text/x-thing"), ("X-One", "1"), ("Link", "</a>"), ("X-Empty", ""),
        ("X-Bytes", "caf\xe9"), ("X-One", "2")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with running(tmp_path_factory.mktemp("front")) as made:
        yield made


@pytest.fixture(scope="module")
def front(site):
    return site[0]


@pytest.fixture(params=PROTOCOLS)
def protocol(request):
    return request.param


@pytest.fixture
def app(site, protocol):
    yield site[1][protocol]
    site[1][protocol].release()


def check_replayed(front, app, key, target, first, **options):
    front.await_state(key, "SUCCEEDED")
    assert_replay(front.post(target, key, **options), first)
    assert app.executions(key) == 1


# The verdicts.

@pytest.mark.parametrize("place", ["", "unbuffered/", "streaming/"])
def test_first_replay_and_conflict(front, app, key, protocol, place):
    target = f"/{protocol}/{place}x?y=1"
    app.script(key, CgiReply("202 Accepted", KEPT, b"body\0\xff"))
    first = front.post(target, key)
    assert_first(first, 202)
    assert first.body == b"body\0\xff"
    assert [pair for pair in first.headers if pair in KEPT[1:]] == KEPT[1:]
    again = front.post(target, key)
    assert_replay(again, first)
    assert [pair for pair in again.headers if pair in KEPT[1:]] == KEPT[1:]
    framing = ["content-length", "transfer-encoding"]
    assert view(again, but=framing) == view(first, but=framing)
    assert_problem(front.post(target, key, b'{"other": 1}'), CONFLICT)
    front.await_state(key, "SUCCEEDED")
    assert app.executions(key) == 1


@pytest.mark.parametrize("size", [0, 1, 16385, 300_000])
@pytest.mark.parametrize("chunk", [None, 5000], ids=["length", "chunked"])
@pytest.mark.parametrize("place", ["", "streaming/"])
def test_bodies_arrive_whole_and_count(front, app, key, protocol, place, chunk, size):
    body = (b"0123456789" * (size // 10 + 1))[:size]
    target = f"/{protocol}/{place}x"
    first = front.post(target, key, body, chunk=chunk)
    assert_first(first)
    assert app.wait(key).body == body
    check_replayed(front, app, key, target, first, body=body, chunk=chunk)
    assert_problem(front.post(target, key, body + b"!", chunk=chunk), CONFLICT)


def test_the_parameters_of_an_execution(front, app, key, protocol):
    """The key in its normal form and what a backend checks, once each; none of it from the client."""
    ours = [("Counterfoil-Attempt", "99"), ("Counterfoil-Fence", "99"),
            ("Counterfoil-First-Claim", "99")]
    asked = [("Accept-Encoding", "gzip"), ("Range", "bytes=0-1"), ("If-Range", '"v"')]
    assert_first(front.post(f"/{protocol}/x", f'"{key}"', headers=ours + asked))
    request = app.wait(key)
    assert request.param("HTTP_IDEMPOTENCY_KEY") == key
    assert request.param("HTTP_COUNTERFOIL_ATTEMPT") == "1"
    assert request.param("HTTP_COUNTERFOIL_FENCE") != "99"
    assert int(request.param("HTTP_COUNTERFOIL_FENCE")) >= 1
    assert int(request.param("HTTP_COUNTERFOIL_FIRST_CLAIM")) > 1_700_000_000_000
    for name in ("HTTP_ACCEPT_ENCODING", "HTTP_RANGE", "HTTP_IF_RANGE"):
        assert request.all(name) == []
    assert request.param("REQUEST_METHOD") == "POST"


def test_names_that_cgi_takes_for_ours_are_not_the_clients_to_set(front, app, key, protocol):
    """A CGI parameter has no dashes: Counterfoil_Fence would reach the backend under the name of ours."""
    forged = [("Counterfoil_Attempt", "99"), ("Counterfoil_Fence", "99"), ("counterfoil_fence", "98"),
              ("Counterfoil_First_Claim", "99"), ("Counterfoil_First-Claim", "98")]
    assert_first(front.post(f"/{protocol}/x", key, headers=forged))
    request = app.wait(key)
    for name in ("ATTEMPT", "FENCE", "FIRST_CLAIM"):
        assert not {"98", "99"} & set(request.all("HTTP_COUNTERFOIL_" + name)), request.params
        assert len(request.all("HTTP_COUNTERFOIL_" + name)) == 1


def test_a_retry_after_a_failure_counts_attempt_and_fence(front, app, key, protocol):
    app.script(key, CgiReply("500 Odd"), CgiReply("201 Created"))
    assert [front.post(f"/{protocol}/x", key).status for _ in range(3)] == [500, 201, 201]
    one, two = app.of(key)
    assert [each.param("HTTP_COUNTERFOIL_ATTEMPT") for each in (one, two)] == ["1", "2"]
    fences = [int(each.param("HTTP_COUNTERFOIL_FENCE")) for each in (one, two)]
    assert fences[1] == fences[0] + 1
    assert one.param("HTTP_COUNTERFOIL_FIRST_CLAIM") == two.param("HTTP_COUNTERFOIL_FIRST_CLAIM")


# Outcomes.

OUTCOMES = [("200 OK", "SUCCEEDED"), ("204 No Content", "SUCCEEDED"), ("302 Found", "SUCCEEDED"),
            ("422 Odd", "FAILED_FINAL"), ("404 Not Found", "FAILED_FINAL"), ("429 Slow", "FAILED"),
            ("401 Who", "FAILED"), ("500 Odd", "FAILED"), ("503 Busy", "FAILED"),
            ("502 Bad", "IN_DOUBT"), ("504 Late", "IN_DOUBT")]


@pytest.mark.parametrize("status, outcome", OUTCOMES)
def test_the_status_header_decides_the_outcome(front, app, key, protocol, status, outcome):
    number = int(status[:3])
    body = b"" if number == 204 else b"as it says"
    app.script(key, CgiReply(status, KEPT, body), CgiReply("201 Created"))
    first = front.post(f"/{protocol}/x", key)
    assert_first(first, number)
    front.await_state(key, outcome)
    again = front.post(f"/{protocol}/x", key)
    if outcome == "FAILED":
        assert_first(again, 201)
    elif outcome == "IN_DOUBT":
        assert_problem(again, UNKNOWN)
    else:
        assert_replay(again, first)
    assert app.executions(key) == (2 if outcome == "FAILED" else 1)


def test_an_answer_without_status_is_a_200(front, app, key, protocol):
    app.script(key, CgiReply(None, KEPT, b"fine"))
    first = front.post(f"/{protocol}/x", key)
    assert_first(first, 200)
    check_replayed(front, app, key, f"/{protocol}/x", first)


def test_a_location_without_status_is_a_302_and_replays(front, app, key, protocol):
    app.script(key, CgiReply(None, [("Location", "http://elsewhere.test/1")], b""))
    first = front.post(f"/{protocol}/x", key)
    assert_first(first, 302)
    again = front.post(f"/{protocol}/x", key)
    assert_replay(again, first)
    assert again.header("Location") == first.header("Location") == "http://elsewhere.test/1"
    assert app.executions(key) == 1


BROKEN = {
    "reset at once": (CgiReply(says_nothing=True, ending="reset"), 502),
    "closed at once": (CgiReply(says_nothing=True, ending="close"), 502),
    "reset in the header": (CgiReply(raw_head=b"Status: 201", body=b"", ending="reset"), 502),
    "closed in the header": (CgiReply(raw_head=b"Status: 201", body=b"", ending="close"), 502),
    "no header at all": (CgiReply(raw_head=b"not a header\r\n\r\n", body=b""), 502),
    "closed in a body of known length": (CgiReply(length=100, ending="close"), 502),
    "reset in a body of known length": (CgiReply(length=100, ending="reset"), 502),
    "reset in a body of unknown length": (CgiReply(ending="reset"), 502),
    "a body shorter than it said": (CgiReply(length=100), 502),
}


@pytest.mark.parametrize("place", ["", "unbuffered/"])
@pytest.mark.parametrize("ending", BROKEN)
def test_what_broke_off_is_in_doubt_and_not_run_again(front, app, key, protocol, ending, place):
    reply, status = BROKEN[ending]
    app.script(key, reply)
    answer = front.post(f"/{protocol}/{place}x", key)
    assert (answer.status, is_replay(answer)) == (status, False)
    front.await_state(key, "IN_DOUBT")
    assert_problem(front.post(f"/{protocol}/{place}x", key), UNKNOWN)
    assert app.executions(key) == 1


def test_a_fastcgi_answer_without_its_end_is_in_doubt(site, front, key):
    """FastCGI frames its answers: a connection that closes before the end record cut it short."""
    app = site[1]["fastcgi"]
    app.script(key, CgiReply(ending="close"))
    assert_problem(front.post("/fastcgi/x", key), UNKNOWN, status=502)
    front.await_state(key, "IN_DOUBT")
    assert_problem(front.post("/fastcgi/x", key), UNKNOWN)
    assert app.executions(key) == 1


def test_a_time_out_for_the_answer_is_in_doubt(front, app, key, protocol):
    app.script(key, CgiReply(says_nothing=True, ending="silent"))
    assert front.post(f"/{protocol}/slow/x", key).status == 504
    front.await_state(key, "IN_DOUBT")
    assert_problem(front.post(f"/{protocol}/slow/x", key), UNKNOWN)
    assert app.executions(key) == 1


def test_a_time_out_in_the_body_is_in_doubt(front, app, key, protocol):
    app.script(key, CgiReply(length=100, ending="silent"))
    assert_problem(front.post(f"/{protocol}/slow/x", key), UNKNOWN, status=502)
    front.await_state(key, "IN_DOUBT")
    assert app.executions(key) == 1


def test_a_refused_connection_is_failed_and_tried_again(front, app, key, protocol):
    for attempt in (1, 2):
        assert front.post(f"/{protocol}/refused/x", key).status == 502
        front.await_state(key, "FAILED")
        assert front.record(key)["attempt"] == attempt
    assert app.executions(key) == 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("reply", [CgiReply(says_nothing=True, ending="close"),
                                   CgiReply(says_nothing=True, ending="reset"),
                                   CgiReply(says_nothing=True, ending="silent"),
                                   CgiReply(raw_head=b"not a header\r\n\r\n"),
                                   CgiReply("500 Odd"), CgiReply("503 Busy")],
                         ids=["close", "reset", "silent", "no header", "500", "503"])
def test_what_one_peer_has_read_is_never_sent_to_the_other(front, app, key, protocol, reply,
                                                           method):
    app.script(key, reply)
    assert not is_replay(front.post(f"/{protocol}/two/x", key, method=method))
    assert app.executions(key) == 1


def test_the_control_without_a_key_nginx_does_ask_the_other_peer(front, app, key, protocol):
    app.script(key, CgiReply("500 Odd"))
    front.post(f"/{protocol}/two/x", None, headers=[("X-Case", key)])
    assert app.executions(key) == 2


# Clients.

@pytest.mark.parametrize("how", ["close", "reset", "stream"])
def test_who_leaves_while_the_backend_works_finds_the_answer(front, app, key, protocol, how):
    reply = app.holding(body=b"found")
    app.script(key, reply)
    target = f"/{protocol}/x"
    if how == "stream":
        client = Http2Client(("127.0.0.1", front.clear_port))
        stream = client.request(target, key)
        app.wait(key)
        client.cancel(stream)
        client.ping()
    else:
        client = front.send(target, key)
        app.wait(key)
        getattr(client, how)()
    assert_problem(front.post(target, key), PENDING)
    assert front.state(key) == "PROCESSING"
    reply.hold.set()
    front.await_state(key, "SUCCEEDED")
    again = front.post(target, key)
    assert is_replay(again) and again.body == b"found"
    assert app.executions(key) == 1


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("place", ["small/", "small/unbuffered/"])
def test_who_leaves_inside_an_answer_that_is_passed_on(front, app, key, protocol, place, how):
    reply = CgiReply(body=b"p" * (8 << 20))
    app.script(key, reply)
    client = front.send(f"/{protocol}/{place}x", key, client=front.narrow())
    client.read_some(1000)
    getattr(client, how)()
    assert reply.sent.wait(5), "the backend could not send its answer to its end"
    front.await_state(key, "SUCCEEDED")
    assert_problem(front.post(f"/{protocol}/{place}x", key), NOT_STORED)
    assert app.executions(key) == 1


@pytest.mark.parametrize("size, stored", [(1024, True), (1025, False)])
@pytest.mark.parametrize("said", [True, False], ids=["length", "no length"])
@pytest.mark.parametrize("place", ["small/", "small/unbuffered/"])
def test_the_limit_of_what_is_kept(front, app, key, protocol, place, said, size, stored):
    app.script(key, CgiReply(body=b"l" * size, length=size if said else None))
    first = front.post(f"/{protocol}/{place}x", key)
    assert_first(first)
    assert first.body == b"l" * size
    again = front.post_settled(f"/{protocol}/{place}x", key)
    if stored:
        assert_replay(again, first)
    else:
        assert_problem(again, NOT_STORED)
    assert app.executions(key) == 1


def test_twenty_at_once_execute_once(front, app, key, protocol):
    reply = app.holding(body=b"once")
    app.script(key, reply)
    clients = [front.send(f"/{protocol}/x", key) for _ in range(20)]
    app.wait(key)
    reply.hold.set()
    answers = [client.read() for client in clients]
    for client in clients:
        client.close()
    assert sum(answer.status == 201 and not is_replay(answer) for answer in answers) == 1
    for answer in answers:
        if answer.status != 201:
            assert_problem(answer, PENDING)
    assert app.executions(key) == 1


def test_a_connection_stays_in_step(front, app, protocol):
    keys = [new_key() for _ in range(3)]
    with front.client() as client:
        for each in keys:
            first = front.post(f"/{protocol}/x", each, client=client)
            assert_first(first)
            assert_replay(front.post(f"/{protocol}/x", each, client=client), first)
            assert_problem(front.post(f"/{protocol}/x", each, b"[]", client=client), CONFLICT)
            assert client.request("GET", "/step").body == b"in step"
    assert [app.executions(each) for each in keys] == [1, 1, 1]
