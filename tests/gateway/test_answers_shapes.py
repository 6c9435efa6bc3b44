# SPDX-License-Identifier: Apache-2.0
"""The shapes of our own answers: problem, envelope and Stripe's; and the statuses of the profiles."""

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, EXPIRED, INVALID, MISSING, NOT_STORED, PENDING,
                            STORE_UNAVAILABLE, UNKNOWN, assert_first, assert_problem, assert_replay)
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: envelope, match: "POST|HEAD /envelope", answers: envelope}
  - {name: envelope-uuid, match: "POST|HEAD /envelope-uuid", answers: envelope,
     key: {required: true, format: uuid}}
  - {name: envelope-small, match: POST /envelope-small, answers: envelope, snapshot: {max_body: 1B}}
  - {name: stripe, match: POST /stripe, profile: stripe}
  - {name: stripe-uuid, match: "POST|HEAD /stripe-uuid", profile: stripe,
     key: {required: true, format: uuid}}
  - {name: stripe-small, match: POST /stripe-small, profile: stripe, snapshot: {max_body: 1B}}
  - {name: envelope-short, match: POST /envelope-short, answers: envelope, lease: 1s,
     retention: {ttl: 1s, tombstone: 1h}, resource: {type: order, id: /id}}
  - {name: stripe-short, match: POST /stripe-short, profile: stripe, lease: 1s,
     retention: {ttl: 1s, tombstone: 1h}, resource: {type: order, id: /id}}
  - {name: both, match: POST /both, profile: stripe, answers: envelope}
  - {name: stripe-problem, match: POST /stripe-problem, profile: stripe, answers: problem}
  - {name: ietf, match: POST /ietf, profile: ietf}
  - {name: ietf-uuid, match: POST /ietf-uuid, profile: ietf, key: {required: true, format: uuid}}
  - {name: ietf-envelope, match: POST /ietf-envelope, profile: ietf, answers: envelope}
  - {name: standard, match: POST /standard}
"""

OTHER = b'{"other": 1}'
ENVELOPE = {MISSING: 4001, INVALID: 4002, PENDING: 4090, CONFLICT: 4091, UNKNOWN: 4092,
            NOT_STORED: 4093, STORE_UNAVAILABLE: 5030}
MESSAGE = {
    MISSING: "Missing or invalid idempotency key",
    INVALID: "Missing or invalid idempotency key",
    CONFLICT: "This key was used for a different request; use a new key",
    PENDING: "Still processing; retry shortly",
    UNKNOWN: "The first attempt's result is not known yet; check before submitting again",
    NOT_STORED: "Already done; look the result up",
    EXPIRED: "This key has expired; check, then use a new one",
}
CODES = [MISSING, INVALID, CONFLICT, PENDING, UNKNOWN, NOT_STORED]


def provoke(gateway, backend, key, path, code):
    """Brings about the refusal `code` on the routes of `path`. A refusal executes nothing more."""
    if code == MISSING:
        return gateway.post(f"{path}-uuid")
    if code == INVALID:
        return gateway.post(f"{path}-uuid", "x")
    if code == NOT_STORED:
        first = gateway.post(f"{path}-small", key)
        assert_first(first)
        until(lambda: gateway.record(key)["state"] == "SUCCEEDED", "it is settled")
        answer = gateway.post(f"{path}-small", key)
    elif code == UNKNOWN:
        backend.script(key, Reply(fault="reset"))
        gateway.post(path, key)
        answer = gateway.post(path, key)
    elif code == CONFLICT:
        assert_first(gateway.post(path, key))
        answer = gateway.post(path, key, OTHER)
    else:
        reply = backend.holding()
        backend.script(key, reply)
        with gateway.send(path, key) as client:
            backend.wait(key)
            answer = gateway.post(path, key)
            reply.hold.set()
            assert_first(client.read())
    assert backend.executions(key) == 1
    return answer


def assert_own(answer, status, code):
    """What every answer of ours has, whatever its shape."""
    assert answer.status == status, f"{answer.status} {answer.headers} {answer.body[:200]}"
    assert answer.header("Content-Type") == "application/json"
    assert answer.header("Content-Language") == "en"
    assert answer.header("Cache-Control") == "no-store"
    assert answer.header("Idempotent-Replayed") is None
    retry_after = answer.header("Retry-After")
    assert (int(retry_after) >= 1) if code in (PENDING, STORE_UNAVAILABLE) else retry_after is None


def assert_envelope(answer, code, status):
    assert_own(answer, status, code)
    assert answer.json() == {"code": ENVELOPE[code], "message": MESSAGE[code], "data": None}


def assert_stripe(answer, code, status):
    assert_own(answer, status, code)
    assert answer.json() == {"error": {"type": "idempotency_error", "code": code,
                                       "message": MESSAGE[code]}}


@pytest.mark.parametrize("code", CODES)
def test_an_envelope_has_the_same_status_and_the_number(gateway, backend, key, code):
    answer = provoke(gateway, backend, key, "/envelope", code)
    assert_envelope(answer, code, 400 if code in (MISSING, INVALID) else 409)


@pytest.mark.parametrize("code", CODES)
def test_stripe_has_its_error_object_and_400_for_a_conflict(gateway, backend, key, code):
    answer = provoke(gateway, backend, key, "/stripe", code)
    assert_stripe(answer, code, 400 if code in (MISSING, INVALID, CONFLICT) else 409)


@pytest.mark.parametrize("path", ["/envelope-uuid", "/stripe-uuid"])
def test_head_gets_the_head_only(gateway, path):
    with gateway.client() as client:
        answer = client.request("HEAD", path)
        assert answer.status == 400
        assert answer.header("Content-Type") == "application/json"
        assert answer.body == b""
        # The connection is in step: what follows is its own answer.
        assert client.request("POST", path, body=b"{}").status == 400


def test_the_message_of_an_envelope_is_in_the_clients_language(gateway):
    answer = gateway.post("/envelope-uuid", headers=[("Accept-Language", "zh-CN")])
    assert answer.header("Content-Language") == "zh-CN"
    assert answer.json() == {"code": 4001, "message": "缺少或无效的幂等键", "data": None}


def test_the_routes_envelope_wins_over_the_profiles_shape(gateway, backend, key):
    assert_first(gateway.post("/both", key))
    assert_envelope(gateway.post("/both", key, OTHER), CONFLICT, 400)
    assert backend.executions(key) == 1


def test_the_routes_problem_wins_over_the_profiles_shape(gateway, backend, key):
    assert_first(gateway.post("/stripe-problem", key))
    assert_problem(gateway.post("/stripe-problem", key, OTHER), CONFLICT, status=400)
    assert backend.executions(key) == 1


def test_an_envelope_under_ietf_keeps_its_statuses(gateway, key):
    assert_first(gateway.post("/ietf-envelope", key))
    assert_envelope(gateway.post("/ietf-envelope", key, OTHER), CONFLICT, 422)


def test_the_default_stays_a_problem_document(gateway, key):
    assert_first(gateway.post("/standard", key))
    answer = gateway.post("/standard", key, OTHER)
    assert_problem(answer, CONFLICT)
    assert answer.header("Content-Type") == "application/problem+json"


@pytest.mark.parametrize("path", ["/envelope", "/stripe"])
def test_the_backends_own_answers_keep_their_shape(gateway, backend, key, path):
    first = gateway.post(path, key)
    assert_first(first)
    assert_replay(gateway.post(path, key), first)
    assert backend.executions(key) == 1


def test_a_truncated_answer_of_the_backend_becomes_an_envelope(gateway, backend, key):
    backend.script(key, Reply(fault="truncate"))
    answer = gateway.post("/envelope", key)
    assert_own(answer, 502, UNKNOWN)
    assert answer.json() == {"code": 4092, "message": MESSAGE[UNKNOWN], "data": None}
    assert backend.executions(key) == 1


@pytest.mark.parametrize("path,wanted", [
    ("/envelope-short", {"code": 4094, "message": MESSAGE[EXPIRED], "data": None}),
    ("/stripe-short", {"error": {"type": "idempotency_error", "code": EXPIRED,
                                 "message": MESSAGE[EXPIRED],
                                 "resource": {"type": "order", "id": "o-1"}}}),
])
def test_an_expired_key_points_at_its_resource_where_the_shape_can(gateway, backend, key, path,
                                                                   wanted):
    backend.script(key, Reply(body=b'{"id": "o-1"}'))
    assert_first(gateway.post(path, key))
    until(lambda: gateway.post(path, key).status == 409, "the answer expires")
    answer = gateway.post(path, key)
    assert_own(answer, 409, EXPIRED)
    assert answer.json() == wanted
    assert backend.executions(key) == 1


# What a profile keeps.

@pytest.mark.parametrize("status", [500, 501, 503, 599])
def test_stripe_replays_a_server_error(gateway, backend, key, status):
    backend.script(key, Reply(status=status))
    first = gateway.post("/stripe", key)
    assert_first(first, status)
    assert_replay(gateway.post("/stripe", key), first)
    assert backend.executions(key) == 1
    assert gateway.record(key)["state"] == "FAILED_FINAL"


@pytest.mark.parametrize("status", [502, 504])
def test_a_bad_gateway_is_in_doubt_under_stripe_too(gateway, backend, key, status):
    backend.script(key, Reply(status=status))
    assert_first(gateway.post("/stripe", key), status)
    assert_stripe(gateway.post("/stripe", key), UNKNOWN, 409)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("path", ["/standard", "/ietf"])
def test_other_profiles_run_a_server_error_again(gateway, backend, key, path):
    backend.script(key, Reply(status=500))
    assert_first(gateway.post(path, key), 500)
    assert_first(gateway.post(path, key), 500)
    assert backend.executions(key) == 2


def test_stripe_needs_no_key_and_takes_any(gateway, backend, key):
    assert_first(gateway.post("/stripe", headers=[("X-Case", key)]))
    assert_first(gateway.post("/stripe", headers=[("X-Case", key)]))
    assert backend.executions(key) == 2
    first = gateway.post("/stripe", "not a uuid".replace(" ", "-") + key)
    assert_first(first)
    assert_replay(gateway.post("/stripe", "not-a-uuid" + key), first)


# The IETF draft -07: a String of structured fields, 400 without one, 422 for another payload, 409
# while the first is processed, all of them problem details.

def test_ietf_takes_a_structured_string(gateway, backend, key):
    first = gateway.post("/ietf", f'"{key}"')
    assert_first(first)
    assert_replay(gateway.post("/ietf", f'"{key}"'), first)
    assert_replay(gateway.post("/ietf", key), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("code,status", [(MISSING, 400), (INVALID, 400), (CONFLICT, 422),
                                         (PENDING, 409), (UNKNOWN, 409)])
def test_ietf_has_the_statuses_of_the_draft(gateway, backend, key, code, status):
    assert_problem(provoke(gateway, backend, key, "/ietf", code), code, status=status)


def test_without_a_store_the_answer_has_the_routes_shape(new_gateway, key):
    gateway = new_gateway(POLICY)
    gateway.allow_log(r"\[(alert|crit|emerg)\]")
    for file in gateway.store_dir.iterdir():
        file.unlink()
    for path, check in (("/envelope", "code"), ("/stripe", "error")):
        answer = gateway.post(path, key)
        assert answer.status == 503, answer.body
        assert int(answer.header("Retry-After")) >= 1
        assert check in answer.json()
        assert answer.header("Content-Type") == "application/json"
    assert gateway.post("/envelope", key).json()["code"] == 5030
    assert gateway.post("/stripe", key).json()["error"]["code"] == STORE_UNAVAILABLE
