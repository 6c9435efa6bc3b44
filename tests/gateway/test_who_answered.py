# SPDX-License-Identifier: Apache-2.0
"""Who answered: whatever nginx puts before, behind or in place of the backend, one claim at most.

The outcome comes from the upstream's end, the snapshot from the final response. Plain nginx with the
same configuration says what the client gets the first time.
"""

import pytest

from support.expect import assert_first, assert_replay, is_replay
from support.pair import STEP, Pair, assert_like_plain
from support.ports import free_port
from support.rawbackend import CREATED, Body, Play, RawBackend, close, head, reply, reset

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST|PUT|PATCH|DELETE|GET /api/**"}
"""

PROXY = "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass"

PAGES = f"""
    location = /sorry {{ internal; default_type text/plain; return 200 "sorry"; }}
    location @sorry {{ default_type text/plain; return 201 "named sorry"; }}
    location @other {{ {PROXY} {{other}}; }}
    location /api/as-is/ {{ {PROXY} {{backend}}; error_page 404 500 502 503 504 /sorry; }}
    location /api/page/ {{
        {PROXY} {{backend}}; proxy_intercept_errors on; error_page 404 500 502 503 504 /sorry;
    }}
    location /api/page-200/ {{
        {PROXY} {{backend}}; proxy_intercept_errors on; error_page 404 500 502 503 504 =200 /sorry;
    }}
    location /api/page-201/ {{
        {PROXY} {{backend}}; proxy_intercept_errors on; error_page 404 500 502 503 504 =201 @sorry;
    }}
    location /api/page-any/ {{
        {PROXY} {{backend}}; proxy_intercept_errors on; error_page 404 500 502 503 504 = @sorry;
    }}
    location /api/refused/ {{ {PROXY} http://127.0.0.1:{{refused}}; error_page 502 =200 /sorry; }}
    location /api/refused-other/ {{ {PROXY} http://127.0.0.1:{{refused}}; error_page 502 = @other; }}
    location /api/reached-other/ {{
        {PROXY} {{backend}}; proxy_intercept_errors on; error_page 404 500 502 = @other;
    }}
"""

WAYS = f"""
    location /api/try/ {{ try_files /nowhere @try; }}
    location @try {{ {PROXY} {{backend}}; }}
    location /api/front/ {{ try_files /nowhere /front.php?from=$uri; }}
    location = /front.php {{ {PROXY} {{backend}}; }}
    location /api/rewritten/ {{ rewrite ^ /front.php last; }}
    location /api/index {{ index front.php; {PROXY} {{backend}}; }}
    location /api/accel/ {{ {PROXY} {{backend}}; }}
    location /files/ {{ internal; alias {{files}}/; }}
    location /accel-other/ {{ internal; {PROXY} {{other}}; }}
    location /accel-same/ {{ internal; {PROXY} {{backend}}; }}
    location /api/ssi/ {{ ssi on; ssi_types *; {PROXY} {{backend}}; }}
    location /api/part/ {{ {PROXY} {{other}}; }}
    location /api/mirror/ {{ mirror /api/copy; {PROXY} {{backend}}; }}
    location = /api/copy {{ internal; {PROXY} {{other}}/api/copy; }}
"""

ACCESS = f"""
    location /api/auth/ {{ auth_request /api/check; {PROXY} {{backend}}; }}
    location = /api/check {{
        internal; {PROXY} {{other}}/api/check; proxy_pass_request_body off;
        proxy_set_header Content-Length ""; proxy_set_header X-Case $http_authorization;
    }}
    location /api/limited/ {{ limit_req zone=one; {PROXY} {{backend}}; }}
    location /api/inside/ {{ deny 10.9.9.9; allow all; {PROXY} {{backend}}; }}
"""

HTTP = "limit_req_zone $http_idempotency_key zone=one:1m rate=1r/m;"

SERVER = f"""
    counterfoil on;
    set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
    {STEP}
    {PAGES} {WAYS} {ACCESS}
"""


@pytest.fixture(scope="module")
def other():
    server = RawBackend()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def pair(tmp_path_factory, other):
    files = tmp_path_factory.mktemp("files")
    (files / "a.txt").write_text("a file", encoding="utf-8")
    with Pair(tmp_path_factory.mktemp("pair"), SERVER, POLICY, HTTP, other=other.url, files=files,
              refused=free_port()).running() as made:
        yield made


# Pages in place of the backend's answer.

FAILURES = {
    "404": (reply("404 Not Found"), "FAILED_FINAL"),
    "500": (reply("500 Internal"), "FAILED"),
    "502": (reply("502 Bad Gateway"), "IN_DOUBT"),
    "503 with Retry-After": (reply("503 Unavailable", headers=["Retry-After: 7"]), "FAILED"),
    "504": (reply("504 Time-out"), "IN_DOUBT"),
    "reset": ([reset], "IN_DOUBT"),
    "closed": ([close], "IN_DOUBT"),
    "nonsense header": ([head("201 Created", "no colon")], "IN_DOUBT"),
}


@pytest.mark.parametrize("place", ["as-is", "page", "page-200", "page-201", "page-any"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_page_changes_the_answer_and_not_the_outcome(pair, failure, place, method):
    steps, outcome = FAILURES[failure]
    key, plain, guarded = pair.run(f"/api/{place}/x", Play(steps), method)
    assert_like_plain(plain, guarded)
    assert pair.raw.executions(key) == 1
    pair.assert_state(key, outcome)
    pair.assert_retry(key, outcome, guarded.answer, f"/api/{place}/x", method)


def test_a_page_after_a_refusal_leaves_the_key_free(pair):
    key, plain, guarded = pair.run("/api/refused/x", CREATED)
    assert_like_plain(plain, guarded)
    assert (guarded.answer.status, guarded.answer.body) == (200, b"sorry")
    pair.assert_state(key, "FAILED")


def test_a_second_backend_may_answer_where_the_first_refused(pair, other):
    key, plain, guarded = pair.run("/api/refused-other/x", CREATED)
    assert_like_plain(plain, guarded)
    assert other.executions(key) == 1
    pair.assert_state(key, "SUCCEEDED")
    assert_replay(pair.guarded.post("/api/refused-other/x", key), guarded.answer)
    assert other.executions(key) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "GET"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_second_backend_is_not_asked_once_the_first_was_reached(pair, other, key, failure, method):
    steps, outcome = FAILURES[failure]
    pair.raw.script(key, Play(steps))
    answer = pair.guarded.post("/api/reached-other/x", key, None if method == "GET" else b"{}",
                               method=method)
    assert answer.status >= 400
    assert (pair.raw.executions(key), other.executions(key)) == (1, 0)
    pair.assert_state(key, outcome)


# Ways to the backend, and back.

def check_succeeds(pair, target, play=CREATED, method="POST"):
    """One claim, one execution, plain nginx's answer, and the same answer again."""
    key, plain, guarded = pair.run(target, play, method)
    assert_like_plain(plain, guarded)
    assert pair.raw.executions(key) == 1
    pair.assert_state(key, "SUCCEEDED")
    body = None if method == "GET" else b"{}"
    assert_replay(pair.guarded.post(target, key, body, method=method), guarded.answer)
    assert pair.raw.executions(key) == 1
    return key, guarded.answer


@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
@pytest.mark.parametrize("way", ["try", "front", "rewritten"])
def test_a_way_to_the_backend_claims_once(pair, way, method):
    check_succeeds(pair, f"/api/{way}/x", method=method)


@pytest.mark.parametrize("way", ["try", "front", "rewritten"])
def test_a_reset_behind_a_way_is_in_doubt(pair, way):
    key, plain, guarded = pair.run(f"/api/{way}/x", Play([reset]))
    assert_like_plain(plain, guarded)
    pair.assert_state(key, "IN_DOUBT")
    pair.assert_retry(key, "IN_DOUBT", guarded.answer, f"/api/{way}/x")


@pytest.mark.parametrize("status", ["200 OK", "201 Created"])
@pytest.mark.parametrize("target", ["/files/a.txt", "/files/missing.txt", "/accel-other/part"])
def test_x_accel_redirect_answers_from_elsewhere_for_the_same_claim(pair, target, status):
    play = Play(reply(status, headers=[f"X-Accel-Redirect: {target}"]))
    _, answer = check_succeeds(pair, "/api/accel/x", play)
    assert answer.header("X-Accel-Redirect") is None


def test_x_accel_redirect_with_a_failing_status_keeps_that_outcome(pair):
    """The outcome comes from the upstream's end, which declined; the file is only what is shown."""
    play = Play(reply("429 Too Many", headers=["X-Accel-Redirect: /files/a.txt"]))
    key, plain, guarded = pair.run("/api/accel/x", play)
    assert_like_plain(plain, guarded)
    pair.assert_state(key, "FAILED")
    assert_first(pair.guarded.post("/api/accel/x", key))
    assert pair.raw.executions(key) == 2


@pytest.mark.parametrize("steps", [[reset], reply("500 Internal")], ids=["reset", "500"])
def test_what_x_accel_redirect_leads_to_does_not_undo_the_execution(pair, other, key, steps):
    """The backend has executed and said so; the page it pointed at failed. Nothing runs again."""
    pair.raw.script(key, Play(reply("201 Created", headers=["X-Accel-Redirect: /accel-other/p"])))
    other.script(key, Play(steps))
    pair.guarded.post("/api/accel/x", key)
    assert pair.record(key)["state"] in ("SUCCEEDED", "IN_DOUBT")
    again = pair.guarded.post("/api/accel/x", key)
    assert is_replay(again) or again.status == 409
    assert pair.raw.executions(key) == 1


def test_ssi_sub_requests_claim_nothing(pair, other):
    text = b'[<!--# include virtual="/api/part/1" -->|<!--# include virtual="/api/part/2" -->]'
    play = Play([head("200 OK", "Content-Type: text/html", f"Content-Length: {len(text)}"),
                 Body(text)])
    key, plain, guarded = pair.run("/api/ssi/x", play)
    assert_like_plain(plain, guarded)
    assert guarded.answer.body == b'[{"id": "created"}|{"id": "created"}]'
    assert other.executions(key) == 2
    assert pair.raw.executions(key) == 1
    pair.assert_state(key, "SUCCEEDED")  # of the one record there is
    assert_replay(pair.guarded.post("/api/ssi/x", key), guarded.answer)
    assert pair.raw.executions(key) == 1


@pytest.mark.parametrize("copy", [CREATED, Play([reset]), Play(reply("500 Internal"))],
                         ids=["copy succeeds", "copy is reset", "copy fails"])
def test_a_mirrored_copy_claims_nothing_and_decides_nothing(pair, other, key, copy):
    other.script(key, copy)
    first = pair.guarded.post("/api/mirror/x", key)
    assert_first(first)
    other.wait(key)
    pair.assert_state(key, "SUCCEEDED")
    assert_replay(pair.guarded.post("/api/mirror/x", key), first)
    assert pair.raw.executions(key) == 1


# Access control runs before replay.

def auth(token):
    return [("Authorization", token)]


@pytest.mark.parametrize("verdict", ["401 Unauthorized", "403 Forbidden"])
def test_a_revoked_caller_does_not_get_the_stored_answer(pair, other, key, verdict):
    token = f"token-{key}"
    other.script(token, Play(reply("200 OK")), Play(reply("200 OK")), Play(reply(verdict)))
    first = pair.guarded.post("/api/auth/x", key, headers=auth(token))
    assert_first(first)
    assert_replay(pair.guarded.post("/api/auth/x", key, headers=auth(token)), first)
    revoked = pair.guarded.post("/api/auth/x", key, headers=auth(token))
    assert revoked.status == int(verdict[:3])
    assert not is_replay(revoked) and first.body not in revoked.body
    assert (pair.raw.executions(key), other.executions(token)) == (1, 3)


@pytest.mark.parametrize("steps, status", [(reply("401 Unauthorized"), 401),
                                           (reply("403 Forbidden"), 403),
                                           (reply("500 Internal"), 500), ([reset], 500)])
def test_who_is_not_let_in_claims_nothing(pair, other, key, steps, status):
    token = f"token-{key}"
    other.script(token, Play(steps), Play(reply("204 No Content", framing="none")))
    assert pair.guarded.post("/api/auth/x", key, headers=auth(token)).status == status
    assert pair.record(key) is None
    assert_first(pair.guarded.post("/api/auth/x", key, headers=auth(token)))
    assert pair.raw.executions(key) == 1


NAMES = ["Counterfoil-Attempt", "Counterfoil-Fence", "Counterfoil-First-Claim"]


@pytest.mark.parametrize("key_sent", [True, False], ids=["guarded", "without a key"])
def test_forged_control_headers_reach_neither_backend(pair, other, key, key_sent):
    token = f"token-{key}"
    other.script(token, Play(reply("200 OK")))
    forged = [(name, "666") for name in NAMES] + [(name.upper(), "666") for name in NAMES]
    answer = pair.guarded.post("/api/auth/x", key if key_sent else None,
                               headers=[*forged, *auth(token), ("X-Case", key)])
    assert answer.status == 201
    seen = pair.raw.of(key) + other.of(token)
    assert len(seen) == 2
    for request in seen:
        assert [one for one in request.headers if one[1] == "666"] == []
    assert [other.of(token)[0].all(name) for name in NAMES] == [[], [], []]


def test_a_forged_control_header_reaches_no_mirror_and_no_ssi_backend(pair, other, key):
    forged = [(name, "666") for name in NAMES]
    assert_first(pair.guarded.post("/api/mirror/x", key, headers=forged))
    other.wait(key)
    for request in pair.raw.of(key) + other.of(key):
        assert [one for one in request.headers if one[1] == "666"] == []


def test_a_limited_caller_does_not_get_the_stored_answer(pair, key):
    first = pair.guarded.post("/api/limited/x", key)
    assert_first(first)
    limited = pair.guarded.post("/api/limited/x", key)
    assert limited.status == 503
    assert not is_replay(limited) and first.body not in limited.body
    assert pair.raw.executions(key) == 1


def test_a_denied_address_does_not_get_the_stored_answer(pair, key):
    first = pair.guarded.post("/api/inside/x", key)
    assert_first(first)
    denied = pair.guarded.post("/api/inside/x", key, headers=[("X-Real-IP", "10.9.9.9")])
    assert denied.status == 403
    assert not is_replay(denied) and first.body not in denied.body
    assert_replay(pair.guarded.post("/api/inside/x", key), first)
    assert pair.raw.executions(key) == 1
