# SPDX-License-Identifier: Apache-2.0
"""The client hangs up before the answer: the claim survives it and the answer is kept (R4).

Runs without a policy: every POST and PATCH carrying a key is guarded, with the defaults.
"""

import time

import pytest

from support.expect import (CONFLICT, PENDING, assert_first, assert_problem, assert_settled,
                            is_replay)
from support.waiting import until_clock

POLICY = None


def test_client_closes_at_1s_backend_answers_at_3s_retry_at_5s_is_a_replay(gateway, backend, key):
    start = time.monotonic()
    reply = backend.holding(body=b'{"order": 1}')
    backend.script(key, reply)
    client = gateway.send("/orders", key)
    backend.wait(key)
    until_clock(start + 1)
    client.close()
    until_clock(start + 3)
    reply.hold.set()
    until_clock(start + 5)
    answer = gateway.post("/orders", key)
    assert (answer.status, answer.body) == (201, b'{"order": 1}')
    assert is_replay(answer)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_the_answer_to_a_client_that_left_is_replayed(gateway, backend, key, leave):
    reply = backend.holding(body=b'{"order": 2}')
    backend.script(key, reply)
    client = gateway.send("/orders", key)
    backend.wait(key)
    getattr(client, leave)()
    assert_problem(gateway.post("/orders", key), PENDING)
    assert_problem(gateway.post("/orders", key, b'{"other": 1}'), CONFLICT)
    reply.hold.set()
    answer = gateway.post_settled("/orders", key)
    assert is_replay(answer)
    assert answer.body == b'{"order": 2}'
    assert backend.executions(key) == 1


def test_a_client_that_sent_half_a_body_and_left_executed_nothing(gateway, backend, key):
    with gateway.client() as client:
        client.send(b"POST /orders HTTP/1.1\r\nHost: gw.test\r\nIdempotency-Key: " + key.encode()
                    + b"\r\nContent-Length: 100\r\n\r\n" + b"x" * 50)
    first = gateway.post("/orders", key)
    assert_first(first)
    assert backend.executions(key) == 1
    assert_settled(gateway, backend, "/orders", key, first)


def test_without_a_policy_patch_is_guarded_and_put_is_not(gateway, backend, key):
    first = gateway.post("/orders/7", key, method="PATCH")
    assert_first(first)
    assert_settled(gateway, backend, "/orders/7", key, first, method="PATCH")
    for _ in range(2):
        assert_first(gateway.post("/orders/8", key, method="PUT"))
    assert [request.method for request in backend.of(key)] == ["PATCH", "PUT", "PUT"]


def test_without_a_policy_a_post_without_a_key_passes_each_time(gateway, backend):
    for _ in range(2):
        assert_first(gateway.post("/no-key"))
    assert backend.executions("/no-key") == 2


def test_without_a_policy_every_concrete_path_is_an_endpoint(gateway, backend, key):
    assert_first(gateway.post("/pay/1", key))
    assert_first(gateway.post("/pay/2", key))
    assert backend.executions(key) == 2
