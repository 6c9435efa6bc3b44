# SPDX-License-Identifier: Apache-2.0
"""`resource`: what came into being, read from the answer, for answers that can only point at it."""

import json

import pytest

from support.backend import Reply
from support.expect import EXPIRED, NOT_STORED, assert_first, assert_problem, assert_settled
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: order, match: POST /order, resource: {type: order, id: /data/order_id}}
  - name: short
    match: POST /short
    lease: 1s
    retention: {ttl: 1s, tombstone: 1h}
    resource: {type: order, id: /data/order_id}
  - name: large
    match: POST /large
    snapshot: {max_body: 64B}
    resource: {type: order, id: /data/order_id}
"""
BYTES_MAX = 256


def say(backend, key, order_id, **options):
    body = json.dumps({"data": {"order_id": order_id}}, ensure_ascii=False).encode()
    backend.script(key, Reply(body=body, **options))


def resource(gateway, key):
    return gateway.record(key).get("resource")


@pytest.mark.parametrize("order_id, text", [("o-17", "o-17"), (17, "17"), (1e3, "1000"),
                                            ("订单/1", "订单/1"), ('a"b\\', 'a"b\\')])
def test_text_and_numbers_are_kept_with_the_record(gateway, backend, key, order_id, text):
    say(backend, key, order_id)
    first = gateway.post("/order", key)
    assert_first(first)
    assert resource(gateway, key) == {"type": "order", "id": text}
    assert_settled(gateway, backend, "/order", key, first)


@pytest.mark.parametrize("order_id", [None, True, [1], {"id": 1}, ""])
def test_what_names_nothing_is_no_resource_and_no_error(gateway, backend, key, order_id):
    say(backend, key, order_id)
    first = gateway.post("/order", key)
    assert_first(first)
    assert resource(gateway, key) is None
    assert_settled(gateway, backend, "/order", key, first)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"data": 1}', b'{"data": {}}'])
def test_an_answer_without_it_is_replayed_as_any_other(gateway, backend, key, body):
    backend.script(key, Reply(body=body))
    first = gateway.post("/order", key)
    assert_first(first)
    assert resource(gateway, key) is None
    assert_settled(gateway, backend, "/order", key, first)


@pytest.mark.parametrize("length, kept", [(BYTES_MAX - 1, True), (BYTES_MAX, True),
                                          (BYTES_MAX + 1, False)])
def test_the_limit_on_an_id(gateway, backend, key, length, kept):
    say(backend, key, "x" * length)
    gateway.post("/order", key)
    assert resource(gateway, key) == ({"type": "order", "id": "x" * length} if kept else None)


def test_an_expired_key_points_at_it(gateway, backend, key):
    say(backend, key, 'o-"9"')
    assert_first(gateway.post("/short", key))
    answers = gateway.post_until(lambda answer: answer.status == 409, "it expires", "/short", key)
    assert_problem(answers[-1], EXPIRED)
    assert answers[-1].json()["resource"] == {"type": "order", "id": 'o-"9"'}
    assert resource(gateway, key) == {"type": "order", "id": 'o-"9"'}
    assert backend.executions(key) == 1


def test_an_answer_that_is_too_long_is_not_read(gateway, backend, key):
    backend.script(key, Reply(body=b'{"data": {"order_id": 5}}' + b" " * 100))
    assert gateway.post("/large", key).status == 201
    until(lambda: gateway.record(key)["state"] == "SUCCEEDED", "the settle")
    answer = gateway.post("/large", key)
    assert_problem(answer, NOT_STORED)
    assert "resource" not in answer.json()


def test_a_failure_that_is_replayed_has_one_too(gateway, backend, key):
    say(backend, key, "o-1", status=422)
    first = gateway.post("/order", key)
    assert first.status == 422
    assert resource(gateway, key) == {"type": "order", "id": "o-1"}
    assert_settled(gateway, backend, "/order", key, first)
