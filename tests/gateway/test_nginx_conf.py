# SPDX-License-Identifier: Apache-2.0
"""The module in a hand-written nginx.conf: peers, access control, variables, error pages."""

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, NOT_STORED, PENDING, UNKNOWN, assert_first, assert_problem,
                            assert_replay, assert_settled, is_replay, new_key)
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: order, match: "POST|PUT|PATCH|DELETE /order/**", snapshot: {max_body: 64KiB}}
  - {name: file, match: POST /file.txt}
  - {name: fixed, match: POST /fixed}
"""

PROXY = "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass"


@pytest.fixture
def two_peers(new_backend, new_nginx):
    """An upstream of two peers that both fail the same way, and nginx told to try both."""
    peers = [new_backend(), new_backend()]
    servers = "\n".join(f"server 127.0.0.1:{peer.port};" for peer in peers)
    server = new_nginx(f"""
        counterfoil on;
        location / {{
            {PROXY} http://two;
            proxy_read_timeout 1s;
            proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 http_504
                                http_403 http_404 http_429 non_idempotent;
            proxy_next_upstream_tries 0;
        }}""", http=f"upstream two {{ {servers} }}", policy=POLICY, workers=2)
    return server, peers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("reply", [{"fault": "close"}, {"fault": "reset"}, {"fault": "hang"},
                                   {"status": 500}, {"status": 502}, {"status": 503},
                                   {"status": 404}, {"status": 429}], ids=str)
def test_a_request_one_peer_has_read_is_never_sent_to_the_other(two_peers, key, method, reply):
    server, peers = two_peers
    for peer in peers:
        peer.script(key, Reply(**reply))
    answer = server.post("/order/1", key, method=method)
    assert not is_replay(answer)
    assert sum(peer.executions(key) for peer in peers) == 1


def test_an_unguarded_request_is_still_retried_by_nginx(two_peers, key):
    """The control: without a key the same configuration does ask the second peer."""
    server, peers = two_peers
    for peer in peers:
        peer.script(key, Reply(fault="close"))
    server.post("/order/1", None, headers=[("X-Case", key)])
    assert [peer.executions(key) for peer in peers] == [1, 1]


def test_a_peer_that_refuses_the_connection_may_be_passed_by(two_peers):
    """Nothing was sent: the other peer may execute, and one of them does, once."""
    server, peers = two_peers
    peers[0].stop()
    for _ in range(6):
        key = new_key()
        answers = [server.post("/order/1", key) for _ in range(3)]
        assert any(answer.status == 201 for answer in answers)
        assert peers[1].executions(key) == 1


# Where it is on, and what comes before it.

@pytest.fixture
def site(new_nginx, backend, tmp_path):
    (tmp_path / "users").write_text("alice:{PLAIN}secret\n", encoding="utf-8")
    (tmp_path / "file.txt").write_text("a file", encoding="utf-8")
    return new_nginx(f"""
        counterfoil on;
        location / {{ {PROXY} {backend.url}; }}
        location /order/off/ {{ counterfoil off; {PROXY} {backend.url}; }}
        location /order/denied/ {{ deny all; {PROXY} {backend.url}; }}
        location /order/login/ {{
            auth_basic "orders"; auth_basic_user_file {tmp_path}/users;
            {PROXY} {backend.url};
        }}
        location = /order/renamed {{ rewrite ^ /order/1 last; }}
        location = /file.txt {{ root {tmp_path}; }}
        location = /fixed {{ return 201 "fixed"; }}
        location /order/page/ {{
            {PROXY} {backend.url};
            proxy_intercept_errors on;
            error_page 500 502 503 504 =200 /maintenance;
        }}
        location = /maintenance {{ internal; default_type text/plain; return 200 "maintenance"; }}
        location /order/unbuffered/ {{ proxy_buffering off; {PROXY} {backend.url}; }}
        location /order/gzip/ {{
            gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; {PROXY} {backend.url};
        }}
    """, policy=POLICY, http="""
        log_format verdict '$request_id|$counterfoil_verdict|$counterfoil_route|'
                           '$counterfoil_attempt|$counterfoil_key|$counterfoil_first_request_id';
        access_log access.log verdict;
    """)


def test_a_location_where_it_is_off_is_untouched(site, backend, key):
    for _ in range(2):
        assert_first(site.post("/order/off/1", key))
    assert backend.executions(key) == 2
    assert backend.of(key)[0].header("Counterfoil-Attempt") is None


def test_who_may_not_call_may_not_replay(site, backend, key):
    login = [("Authorization", "Basic YWxpY2U6c2VjcmV0")]
    first = site.post("/order/login/1", key, headers=login)
    assert_first(first)
    denied = site.post("/order/login/1", key)
    assert denied.status == 401
    assert first.body not in denied.body
    assert_replay(site.post("/order/login/1", key, headers=login), first)
    assert backend.executions(key) == 1


def test_a_denied_request_claims_nothing(site, backend, key):
    assert site.post("/order/denied/1", key).status == 403
    assert site.post("/order/denied/1", key, b'{"other": 1}').status == 403
    assert backend.executions(key) == 0


def test_an_internal_redirect_claims_once(site, backend, key):
    first = site.post("/order/renamed", key)
    assert_first(first)
    assert is_replay(site.post("/order/renamed", key))
    assert backend.executions(key) == 1


def test_a_fixed_return_answers_each_time(site, key):
    for _ in range(3):
        answer = site.post("/fixed", key)
        assert (answer.status, answer.body) == (201, b"fixed")


def test_a_static_file_answers_each_time_and_leaves_no_claim_pending(site, key):
    with site.client() as client:
        for _ in range(3):
            answer = site.post("/file.txt", key, client=client)
            assert answer.status == 405
        assert site.post("/file.txt", None, None, method="GET", client=client).body == b"a file"


def test_an_error_page_never_makes_a_reached_claim_succeed(site, backend, key):
    backend.script(key, Reply(fault="reset"))
    first = site.post("/order/page/1", key)
    assert (first.status, first.body) == (200, b"maintenance")
    assert_problem(site.post("/order/page/1", key), UNKNOWN)
    assert backend.executions(key) == 1


def test_an_intercepted_500_may_run_again(site, backend, key):
    backend.script(key, Reply(500), Reply(201))
    assert site.post("/order/page/1", key).body == b"maintenance"
    assert_first(site.post("/order/page/1", key))
    assert backend.executions(key) == 2


# Streams and encodings.

@pytest.mark.parametrize("where", ["buffered", "unbuffered"])
def test_a_small_answer_is_stored_whichever_way_it_is_buffered(site, backend, key, where):
    first = site.post(f"/order/{where}/1", key)
    assert_first(first)
    assert_settled(site, backend, f"/order/{where}/1", key, first)


@pytest.mark.parametrize("where", ["buffered", "unbuffered"])
@pytest.mark.parametrize("leave", [False, True], ids=["client stays", "client leaves"])
def test_8_mib_settle_without_a_snapshot(site, backend, key, where, leave):
    path = f"/order/{where}/1"
    reply = Reply(201, body=b"x" * (8 << 20))
    backend.script(key, reply)
    client = site.send(path, key)
    if leave:
        assert client.readable(10)
        client.reset()
    else:
        assert client.read().body == reply.body
    assert reply.sent.wait(10), "the backend is read to its end"
    assert_problem(site.post_settled(path, key), NOT_STORED)
    assert backend.executions(key) == 1


def test_the_snapshot_is_taken_below_gzip(site, backend, key):
    plain = b"text " * 1000
    backend.script(key, Reply(200, [("Content-Type", "text/plain")], plain))
    zipped = site.post("/order/gzip/1", key, headers=[("Accept-Encoding", "gzip")])
    assert zipped.header("Content-Encoding") == "gzip"
    again = site.post("/order/gzip/1", key)
    assert is_replay(again)
    assert again.header("Content-Encoding") is None
    assert again.body == plain
    assert backend.executions(key) == 1


# Variables.

def logged(site, count):
    """The last `count` lines of the access log, split."""
    path = site.directory / "access.log"
    until(lambda: path.read_text().count("\n") >= count, "the access log is written")
    return [line.split("|") for line in path.read_text().splitlines()[-count:]]


def test_the_variables_tell_the_verdict_of_each_request(site, backend, key):
    backend.script(key, Reply(500), Reply(201))
    site.post("/order/1", key)
    site.post("/order/1", key)
    site.post("/order/1", key)
    site.post("/order/1", key, b'{"other": 1}')
    lines = logged(site, 4)
    assert [line[1] for line in lines] == ["execute", "execute", "replay", "mismatch"]
    assert {line[2] for line in lines} == {"order"}
    assert [line[3] for line in lines[:2]] == ["1", "2"]
    assert {line[4] for line in lines} == {key}
    assert lines[2][5] in (lines[0][0], lines[1][0]), "the request that was first"


def test_the_variables_of_refusals(site, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    client = site.send("/order/1", key)
    backend.wait(key)
    assert_problem(site.post("/order/1", key), PENDING)
    assert_problem(site.post("/order/1", key, b'{"other": 1}'), CONFLICT)
    reply.hold.set()
    client.read()
    doubt = new_key()
    backend.script(doubt, Reply(fault="reset"))
    site.post("/order/1", doubt)
    assert_problem(site.post("/order/1", doubt), UNKNOWN)
    verdicts = [line[1] for line in logged(site, 5)]
    assert verdicts == ["in_progress", "mismatch", "execute", "execute", "outcome_unknown"]


def test_the_variables_of_an_unguarded_request_are_empty(site):
    site.post("/elsewhere")
    assert [line[1:] for line in logged(site, 1)] == [["-"] * 5]
