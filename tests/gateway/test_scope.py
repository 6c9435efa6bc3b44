# SPDX-License-Identifier: Apache-2.0
"""What one key means: apart by endpoint, method and tenant; another request is a conflict."""

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, PENDING, UNKNOWN, assert_first, assert_problem, assert_replay,
                            assert_settled)

POLICY = """
version: 1
tenant: {header: X-Tenant-Id, otherwise: authorization}
routes:
  - {name: a, match: POST /a}
  - {name: b, match: "POST|PUT|PATCH /b"}
  - {name: both, match: [POST /c, POST /d]}
  - {name: pay, match: "POST /orders/{id}/pay"}
  - {name: rest, match: "POST /rest/**"}
  - {name: loose, match: "POST|PUT /loose/{id}/pay", semantics: loose}
  - {name: ietf, match: POST /ietf, profile: ietf}
  - {name: query, match: POST /query-off, fingerprint: {query: false}}
  - {name: headers, match: POST /headers, fingerprint: {headers: [X-Plan]}}
"""
ACME = [("X-Tenant-Id", "acme")]
OTHER = b'{"other": 1}'


def post(gateway, path, key, body=b"{}", headers=(), **options):
    return gateway.post(path, key, body, headers=ACME + list(headers), **options)


def send(gateway, path, key, body=b"{}"):
    return gateway.send(path, key, body, headers=ACME)


# Separate: each executes.

def test_same_key_at_another_endpoint_is_separate(gateway, backend, key):
    first = post(gateway, "/a", key)
    other = post(gateway, "/b", key, OTHER)
    assert_first(first)
    assert_first(other)
    assert_replay(post(gateway, "/a", key), first)
    assert_replay(post(gateway, "/b", key, OTHER), other)
    assert backend.executions(key) == 2


def test_two_matches_of_one_route_are_two_endpoints(gateway, backend, key):
    answers = {path: post(gateway, path, key) for path in ("/c", "/d")}
    for path, first in answers.items():
        assert_first(first)
        assert_replay(post(gateway, path, key), first)
    assert backend.executions(key) == 2


def test_same_key_with_another_method_is_separate(gateway, backend, key):
    answers = [post(gateway, "/b", key, method=method) for method in ("POST", "PUT", "PATCH")]
    for answer in answers:
        assert_first(answer)
    assert_replay(post(gateway, "/b", key, method="PUT"), answers[1])
    assert [request.method for request in backend.of(key)] == ["POST", "PUT", "PATCH"]


@pytest.mark.parametrize("name", ["X-Tenant-Id", "Authorization"])
def test_same_key_of_another_tenant_is_separate(gateway, backend, key, name):
    one, two = [(name, "Bearer one")], [(name, "Bearer two")]
    first = gateway.post("/a", key, headers=one)
    other = gateway.post("/a", key, OTHER, headers=two)
    assert_first(first)
    assert_first(other)
    assert first.body != other.body
    assert_replay(gateway.post("/a", key, headers=one), first)
    assert_replay(gateway.post("/a", key, OTHER, headers=two), other)
    assert backend.executions(key) == 2


def test_a_named_tenant_is_never_an_authorization_tenant_of_the_same_text(gateway, backend, key):
    for name in ("X-Tenant-Id", "Authorization"):
        first = gateway.post("/a", key, headers=[(name, "same")])
        assert_first(first)
        assert_replay(gateway.post("/a", key, headers=[(name, "same")]), first)
    assert backend.executions(key) == 2


def test_the_named_tenant_counts_and_authorization_then_does_not(gateway, backend, key):
    first = post(gateway, "/a", key, headers=[("Authorization", "Bearer old")])
    assert_first(first)
    assert_replay(post(gateway, "/a", key, headers=[("Authorization", "Bearer new")]), first)
    assert backend.executions(key) == 1


def test_the_rest_of_a_double_star_is_part_of_the_endpoint(gateway, backend, key):
    for path in ("/rest/x/1", "/rest/x/2", "/rest/x"):
        first = post(gateway, path, key)
        assert_first(first)
        assert_replay(post(gateway, path, key), first)
    assert backend.executions(key) == 3


# Conflict: never executes, never replays, and leaves the record as it was.

def test_other_body_while_pending_is_a_conflict(gateway, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    client = send(gateway, "/a", key)
    backend.wait(key)
    assert_problem(post(gateway, "/a", key, OTHER), CONFLICT)
    assert_problem(post(gateway, "/a", key), PENDING)
    reply.hold.set()
    first = client.read()
    assert_first(first)
    assert_replay(post(gateway, "/a", key), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("status", [200, 201, 204, 303, 400, 404, 422])
def test_other_body_after_a_final_answer_is_a_conflict(gateway, backend, key, status):
    backend.script(key, Reply(status))
    first = post(gateway, "/a", key)
    assert_first(first, status)
    assert_problem(post(gateway, "/a", key, OTHER), CONFLICT)
    assert_settled(gateway, backend, "/a", key, first, headers=ACME)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("status", [429, 500])
def test_other_body_after_a_failure_that_may_run_again_is_a_conflict(gateway, backend, key, status):
    backend.script(key, Reply(status), Reply())
    assert post(gateway, "/a", key).status == status
    assert_problem(post(gateway, "/a", key, OTHER), CONFLICT)
    assert backend.executions(key) == 1
    assert_first(post(gateway, "/a", key))
    assert backend.executions(key) == 2


def test_other_body_while_in_doubt_is_a_conflict(gateway, backend, key):
    backend.script(key, Reply(fault="reset"))
    assert post(gateway, "/a", key).status == 502
    assert_problem(post(gateway, "/a", key, OTHER), CONFLICT)
    assert_problem(post(gateway, "/a", key), UNKNOWN)
    assert backend.executions(key) == 1


def test_other_body_after_a_restart_is_a_conflict(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    first = post(gateway, "/a", key)
    gateway.restart()
    assert_problem(post(gateway, "/a", key, OTHER), CONFLICT)
    assert_settled(gateway, backend, "/a", key, first, headers=ACME)


def test_an_authorization_tenant_is_the_same_after_a_restart(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    who = [("Authorization", "Bearer secret")]
    first = gateway.post("/a", key, headers=who)
    assert_first(first)
    gateway.restart()
    assert_settled(gateway, backend, "/a", key, first, headers=who)


def test_the_authorization_value_is_not_written_to_disk(new_gateway, key):
    gateway = new_gateway(POLICY)
    who = [("Authorization", "Bearer s3cr3t-t0ken")]
    first = gateway.post("/a", key, headers=who)
    assert_replay(gateway.post("/a", key, headers=who), first)
    gateway.stop()
    for path in gateway.directory.rglob("*"):
        if path.is_file():
            assert b"s3cr3t-t0ken" not in path.read_bytes(), path


def test_other_concrete_path_under_one_template_is_a_conflict(gateway, backend, key):
    first = post(gateway, "/orders/1/pay", key)
    assert_first(first)
    assert_problem(post(gateway, "/orders/2/pay", key), CONFLICT)
    assert_settled(gateway, backend, "/orders/1/pay", key, first, headers=ACME)


def test_other_query_is_a_conflict_unless_the_route_says_no(gateway, backend, key):
    assert_first(post(gateway, "/a?dry=1", key))
    assert_problem(post(gateway, "/a?dry=0", key), CONFLICT)
    first = post(gateway, "/query-off?x=1", key)
    assert_first(first)
    assert_replay(post(gateway, "/query-off?x=2", key), first)
    assert backend.executions(key) == 2


def test_a_listed_header_is_part_of_the_fingerprint_and_others_are_not(gateway, backend, key):
    gold, iron = [("X-Plan", "gold")], [("X-Plan", "iron")]
    first = post(gateway, "/headers", key, headers=gold)
    assert_first(first)
    assert_problem(post(gateway, "/headers", key, headers=iron), CONFLICT)
    assert_replay(post(gateway, "/headers", key, headers=gold + [("X-Else", "1")]), first)
    assert backend.executions(key) == 1


def test_ietf_profile_says_422_to_a_conflict(gateway, backend, key):
    assert_first(post(gateway, "/ietf", key))
    assert_problem(post(gateway, "/ietf", key, OTHER), CONFLICT, status=422)
    assert backend.executions(key) == 1


# Loose.

def test_loose_replays_to_another_body_and_says_so(gateway, backend, key):
    first = post(gateway, "/loose/1/pay", key)
    assert_first(first)
    marked = post(gateway, "/loose/1/pay", key, OTHER)
    assert_replay(marked, first)
    assert marked.header("Counterfoil-Body") == "differs"
    same = post(gateway, "/loose/1/pay", key)
    assert_replay(same, first)
    assert same.header("Counterfoil-Body") is None
    assert backend.executions(key) == 1


def test_loose_with_another_concrete_path_is_a_conflict(gateway, backend, key):
    first = post(gateway, "/loose/1/pay", key)
    assert_first(first)
    assert_problem(post(gateway, "/loose/2/pay", key), CONFLICT)
    assert_problem(post(gateway, "/loose/2/pay", key, OTHER), CONFLICT)
    assert_replay(post(gateway, "/loose/1/pay", key), first)
    assert backend.executions(key) == 1


def test_loose_while_pending_is_pending_for_any_body(gateway, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    client = send(gateway, "/loose/1/pay", key)
    backend.wait(key)
    assert_problem(post(gateway, "/loose/1/pay", key, OTHER), PENDING)
    assert_problem(post(gateway, "/loose/2/pay", key), CONFLICT)
    reply.hold.set()
    assert_first(client.read())
    assert backend.executions(key) == 1
