# SPDX-License-Identifier: Apache-2.0
"""What an exchange with the backend means for the next request under the same key."""

import time

import pytest

from support.backend import Reply
from support.expect import (UNKNOWN, assert_first, assert_problem, assert_settled, code_of,
                            is_replay)
from support.rawhttp import Closed

POLICY = """
version: 1
tenant: none
routes:
  - {name: standard, match: POST /standard}
  - {name: payment, match: POST /payment, profile: payment}
  - name: named
    match: POST /named
    outcome: {failed_final: [4xx, 500, 504], failed: [404, 409], in_doubt: [422, 503]}
"""

FINAL = [200, 201, 202, 206, 301, 303, 400, 402, 404, 405, 409, 410, 422, 451]
AGAIN = [401, 403, 408, 425, 429]
OTHER_5XX = [500, 501, 503, 505, 507, 599]


def first_answer(gateway, backend, path, key, reply):
    backend.script(key, reply, Reply(201))
    answer = gateway.post(path, key)
    assert_first(answer, reply.status)
    return answer


def assert_runs_again(gateway, backend, path, key):
    again = gateway.post(path, key)
    assert_first(again, 201)
    assert [r.header("Counterfoil-Attempt") for r in backend.of(key)] == ["1", "2"]
    assert_settled(gateway, backend, path, key, again)


def assert_unknown(gateway, backend, path, key):
    assert_problem(gateway.post_settled(path, key), UNKNOWN)
    for _ in range(2):
        assert_problem(gateway.post(path, key), UNKNOWN)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("path", ["/standard", "/payment"])
@pytest.mark.parametrize("status", FINAL)
def test_a_final_answer_is_replayed(gateway, backend, key, path, status):
    first = first_answer(gateway, backend, path, key, Reply(status))
    assert_settled(gateway, backend, path, key, first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("path", ["/standard", "/payment"])
@pytest.mark.parametrize("status", AGAIN)
def test_a_backend_that_declined_runs_again(gateway, backend, key, path, status):
    first_answer(gateway, backend, path, key, Reply(status))
    assert_runs_again(gateway, backend, path, key)


@pytest.mark.parametrize("path", ["/standard", "/payment"])
def test_503_with_retry_after_runs_again(gateway, backend, key, path):
    answer = first_answer(gateway, backend, path, key, Reply(503, [("Retry-After", "7")]))
    assert answer.header("Retry-After") == "7"
    assert_runs_again(gateway, backend, path, key)


@pytest.mark.parametrize("status", OTHER_5XX)
def test_other_5xx_run_again_in_standard(gateway, backend, key, status):
    first_answer(gateway, backend, "/standard", key, Reply(status))
    assert_runs_again(gateway, backend, "/standard", key)


@pytest.mark.parametrize("status", OTHER_5XX)
def test_other_5xx_are_outcome_unknown_in_payment(gateway, backend, key, status):
    first_answer(gateway, backend, "/payment", key, Reply(status))
    assert_unknown(gateway, backend, "/payment", key)


@pytest.mark.parametrize("path", ["/standard", "/payment"])
@pytest.mark.parametrize("status", [502, 504])
def test_502_and_504_of_the_backend_are_outcome_unknown(gateway, backend, key, path, status):
    first_answer(gateway, backend, path, key, Reply(status))
    assert_unknown(gateway, backend, path, key)


@pytest.mark.parametrize("status", [400, 401, 429, 500, 504])
def test_named_failed_final_is_replayed(gateway, backend, key, status):
    first = first_answer(gateway, backend, "/named", key, Reply(status))
    assert_settled(gateway, backend, "/named", key, first)


@pytest.mark.parametrize("status", [404, 409])
def test_an_exact_status_goes_before_its_class(gateway, backend, key, status):
    first_answer(gateway, backend, "/named", key, Reply(status))
    assert_runs_again(gateway, backend, "/named", key)


@pytest.mark.parametrize("reply", [Reply(422), Reply(503), Reply(503, [("Retry-After", "1")])],
                         ids=["422", "503", "503 with Retry-After"])
def test_named_in_doubt_is_outcome_unknown(gateway, backend, key, reply):
    first_answer(gateway, backend, "/named", key, reply)
    assert_unknown(gateway, backend, "/named", key)


@pytest.mark.parametrize("path", ["/standard", "/payment"])
@pytest.mark.parametrize("fault", ["reset", "close"])
def test_a_request_that_was_read_and_not_answered_is_outcome_unknown(gateway, backend, key, path,
                                                                     fault):
    backend.script(key, Reply(fault=fault), Reply())
    assert gateway.post(path, key).status == 502
    assert_unknown(gateway, backend, path, key)


@pytest.mark.parametrize("size", [100, 300_000, 4 << 20], ids=["100 B", "300 kB", "4 MiB"])
@pytest.mark.parametrize("status", [201, 500])
def test_a_truncated_answer_is_outcome_unknown_and_the_client_does_not_hang(gateway, backend, key,
                                                                            size, status):
    backend.script(key, Reply(status, fault="truncate", body=b"x" * size), Reply())
    start_s = time.monotonic()
    with gateway.send("/standard", key) as client:
        try:
            answer = client.read(timeout_s=10)
            assert answer.status >= 500 or code_of(answer) == UNKNOWN
        except Closed:
            pass
    assert time.monotonic() - start_s < 5
    assert_unknown(gateway, backend, "/standard", key)


def test_a_backend_that_dies_mid_request_is_not_asked_again(new_backend, new_gateway, key):
    backend = new_backend()
    gateway = new_gateway(POLICY, backend=backend)
    backend.script(key, backend.holding(fault="reset"), Reply())
    client = gateway.send("/standard", key)
    backend.wait(key)
    backend.stop()
    assert client.read().status == 502
    backend.start()
    assert_unknown(gateway, backend, "/standard", key)


@pytest.mark.parametrize("path", ["/standard", "/payment"])
def test_a_refused_connection_is_502_and_runs_when_the_backend_is_back(new_backend, new_gateway,
                                                                       key, path):
    backend = new_backend()
    gateway = new_gateway(POLICY, backend=backend)
    backend.stop()
    for _ in range(2):
        refused = gateway.post(path, key)
        assert refused.status == 502
        assert not is_replay(refused)
    backend.start()
    first = gateway.post(path, key)
    assert_first(first)
    assert_settled(gateway, backend, path, key, first)
    assert backend.executions(key) == 1


def test_idle_backend_connections_that_were_closed_lose_no_request(new_backend, new_gateway):
    """A backend restarted between requests: no request goes into a dead connection unanswered."""
    backend = new_backend()
    gateway = new_gateway(POLICY, backend=backend, workers=1)
    for turn in range(10):
        first = gateway.post("/standard", f"idle-{turn}-{backend.port}")
        assert_first(first)
        backend.stop()
        backend.start()
