# SPDX-License-Identifier: Apache-2.0
"""APIs that answer 200 and say in the body how it went: `outcome.body`."""

import json

import pytest

from support.backend import Reply
from support.expect import (NOT_STORED, UNKNOWN, assert_first, assert_problem, assert_replay,
                            is_replay)
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - name: coded
    match: POST /coded
    outcome:
      succeeded: [207]
      failed: [2xx]
      body: {at: /code, succeeded: [0, ok], failed: [50001, true], failed_final: ["0", 3.0],
             in_doubt: [50002], otherwise: failed_final}
  - name: silent
    match: POST /silent
    outcome: {body: {at: /data/0/state, failed: [busy]}}
  - name: small
    match: POST /small
    snapshot: {max_body: 64B}
    outcome: {body: {at: /code, failed: [1], otherwise: failed}}
"""

# An nginx.conf whose error page says in its body that all went well.
SERVER = """
    counterfoil on;
    location / { proxy_pass {backend}; proxy_intercept_errors on; error_page 500 =200 /page; }
    location = /page { internal; default_type application/json; return 200 '{"code": 0}'; }
"""


def say(backend, key, *bodies, status=200, **options):
    backend.script(key, *[Reply(status, body=body if isinstance(body, bytes)
                                else json.dumps(body).encode(), **options) for body in bodies])


def state(gateway, key):
    until(lambda: gateway.record(key)["state"] != "PROCESSING", "the settle")
    return gateway.record(key)["state"]


def rows(gateway, key):
    listed = gateway.cli("list", "--key", key, "--json").stdout
    return [json.loads(line)["state"] for line in listed.splitlines()]


@pytest.mark.parametrize("body, expected", [
    ({"code": 0}, "SUCCEEDED"),
    (b'{"code": 0.0}', "SUCCEEDED"),
    (b'{"code": -0e5}', "SUCCEEDED"),
    ({"code": "ok"}, "SUCCEEDED"),
    ({"code": 50001}, "FAILED"),
    (b'{"code": 5.0001e4}', "FAILED"),
    ({"code": True}, "FAILED"),
    ({"code": "0"}, "FAILED_FINAL"),
    ({"code": 3}, "FAILED_FINAL"),
    ({"code": 50002}, "IN_DOUBT"),
    ({"code": 7}, "FAILED_FINAL"),
    ({"code": "true"}, "FAILED_FINAL"),
    ({"code": None}, "FAILED_FINAL"),
    ({"code": {"code": 0}}, "FAILED_FINAL"),
    ({"data": {"code": 0}}, "FAILED_FINAL"),
    ([0], "FAILED_FINAL"),
    (b"", "FAILED_FINAL"),
    (b"code=0", "FAILED_FINAL"),
    (b'{"code": 0', "FAILED_FINAL"),
    (b'{"code": 0, "code": 50001}', "FAILED_FINAL"),
])
def test_the_value_decides_by_its_json_type(gateway, backend, key, body, expected):
    say(backend, key, body)
    assert gateway.post("/coded", key).status == 200
    assert state(gateway, key) == expected
    assert backend.executions(key) == 1


def test_a_failure_in_a_200_runs_again_and_a_success_is_replayed(gateway, backend, key):
    say(backend, key, {"code": 50001}, {"code": 0, "id": 7})
    assert json.loads(gateway.post("/coded", key).body) == {"code": 50001}
    second = gateway.post("/coded", key)
    assert json.loads(second.body) == {"code": 0, "id": 7}
    assert_replay(gateway.post("/coded", key), second)
    assert backend.executions(key) == 2


def test_in_doubt_by_body_waits_for_a_person(gateway, backend, key):
    say(backend, key, {"code": 50002})
    assert gateway.post("/coded", key).status == 200
    assert_problem(gateway.post("/coded", key), UNKNOWN)
    assert gateway.record(key)["state"] == "IN_DOUBT"
    assert backend.executions(key) == 1


def test_the_exact_status_comes_before_the_body_and_the_class_after_it(gateway, backend, key):
    say(backend, key, {"code": 50001}, status=207)
    gateway.post("/coded", key)
    assert state(gateway, key) == "SUCCEEDED"


def test_without_otherwise_the_rest_of_the_table_counts(gateway, backend, key):
    say(backend, key, {"data": [{"state": "busy"}]}, {"data": [{"state": "done"}]})
    gateway.post("/silent", key)
    assert state(gateway, key) == "FAILED"
    gateway.post("/silent", key)
    assert state(gateway, key) == "SUCCEEDED"
    assert backend.executions(key) == 2


@pytest.mark.parametrize("status, expected", [(422, "FAILED_FINAL"), (500, "FAILED"),
                                              (429, "FAILED"), (204, "SUCCEEDED")])
def test_without_otherwise_a_body_without_the_value_says_nothing(gateway, backend, key, status,
                                                                 expected):
    say(backend, key, b"" if status == 204 else b"no", status=status)
    gateway.post("/silent", key)
    assert state(gateway, key) == expected


@pytest.mark.parametrize("status", [502, 504])
def test_a_502_without_the_value_stays_in_doubt_whatever_is_otherwise(gateway, backend, key,
                                                                      status):
    say(backend, key, b"<html>bad gateway</html>", status=status)
    assert gateway.post("/coded", key).status == status
    assert state(gateway, key) == "IN_DOUBT"


def test_a_502_that_has_the_value_is_what_it_says(gateway, backend, key):
    say(backend, key, {"code": 50001}, status=502)
    gateway.post("/coded", key)
    assert state(gateway, key) == "FAILED"


@pytest.mark.parametrize("extra, expected", [(-1, "FAILED"), (0, "FAILED"), (1, "SUCCEEDED")])
def test_what_is_too_long_to_keep_is_not_read_and_never_runs_again(gateway, backend, key, extra,
                                                                   expected):
    body = b'{"code": 1, "x": "' + b"x" * (64 + extra - 20) + b'"}'
    assert len(body) == 64 + extra
    say(backend, key, body, body)
    assert gateway.post("/small", key).status == 200
    assert state(gateway, key) == expected
    if expected == "SUCCEEDED":
        assert_problem(gateway.post("/small", key), NOT_STORED)
        assert backend.executions(key) == 1


def test_an_encoded_body_is_not_read(gateway, backend, key):
    say(backend, key, b"\x1f\x8b not for us", headers=[("Content-Encoding", "gzip")])
    assert gateway.post("/coded", key).status == 200
    assert state(gateway, key) == "FAILED", "the class counts, not `otherwise`"


def test_a_truncated_body_is_in_doubt_whatever_it_says(gateway, backend, key):
    backend.script(key, Reply(200, fault="truncate", body=b'{"code": 0}' + b" " * 100_000))
    gateway.post("/coded", key)
    assert state(gateway, key) == "IN_DOUBT"


def test_a_dry_run_reads_the_body_too(new_gateway, backend, key):
    gateway = new_gateway(POLICY, extra=["--dry-run"])
    say(backend, key, {"code": 50001}, {"code": 0})
    for expected in ["FAILED", "SUCCEEDED"]:
        assert_first(gateway.post("/coded", key), status=200)
        until(lambda wanted=expected: rows(gateway, key) == [wanted], "the settle")
    assert not is_replay(gateway.post("/coded", key))
    assert backend.executions(key) == 3
    gateway.stop()
    assert gateway.log().count("would be execute") == 2
    assert gateway.log().count("would be replay") == 1


def test_an_error_page_is_not_the_backends_body(front, backend, key):
    say(backend, key, {"code": 50001}, status=500)
    answer = front.post("/coded", key)
    assert (answer.status, answer.json()) == (200, {"code": 0})
    front.await_state(key, "FAILED")
    assert backend.executions(key) == 1
