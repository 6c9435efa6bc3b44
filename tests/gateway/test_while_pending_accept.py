# SPDX-License-Identifier: Apache-2.0
"""`while_pending: {accept: PATH}`: a duplicate of what still runs is told where to look (202)."""

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, PENDING, UNKNOWN, assert_first, assert_problem,
                            assert_settled)

POLICY = """
version: 1
tenant: none
defaults: {lease: 1s, retry_after: 7s}
routes:
  - {name: order, match: POST /orders, while_pending: {accept: "/orders/status/{key}"}}
  - name: pay
    match: POST /shops/{shop}/orders/{id}/pay
    while_pending: {accept: "/shops/{shop}/pay?order={id}&key={key}"}
  - {name: ietf, match: POST /ietf, profile: ietf, while_pending: {accept: "/status/{key}"}}
"""
OTHER = b'{"other": 1}'


def while_it_runs(gateway, backend, path, key, **options):
    """The first one's client, what releases it, and a duplicate's answer meanwhile."""
    reply = backend.holding()
    backend.script(key, reply, Reply())
    client = gateway.send(path, key)
    backend.wait(key)
    return client, reply, gateway.post(path, key, **options)


@pytest.mark.parametrize("path, place", [("/orders", "/orders/status/{}"),
                                         ("/ietf", "/status/{}")])
def test_a_duplicate_is_accepted_and_told_where_to_look(gateway, backend, key, path, place):
    client, reply, answer = while_it_runs(gateway, backend, path, key)
    assert_problem(answer, PENDING, status=202)
    assert answer.json()["status"] == 202
    assert answer.header("Location") == place.format(key)
    assert 1 <= int(answer.header("Retry-After")) <= 7
    reply.hold.set()
    first = client.read()
    assert_first(first)
    assert first.header("Location") is None
    assert_settled(gateway, backend, path, key, first)
    assert backend.executions(key) == 1


def test_key_and_parameters_are_percent_encoded(gateway, backend):
    key = "a/../b?c#d&e=%0d"
    path = "/shops/%E4%B8%AD%20x%26/orders/7%3F/pay"
    client, reply, answer = while_it_runs(gateway, backend, path, key)
    assert_problem(answer, PENDING, status=202)
    assert answer.header("Location") == ("/shops/%E4%B8%AD%20x%26/pay?order=7%3F"
                                         "&key=a%2F..%2Fb%3Fc%23d%26e%3D%250d")
    reply.hold.set()
    assert_first(client.read())
    assert backend.executions(key) == 1


def test_another_body_is_a_conflict_all_the_same(gateway, backend, key):
    client, reply, answer = while_it_runs(gateway, backend, "/orders", key, body=OTHER)
    assert_problem(answer, CONFLICT)
    assert answer.header("Location") is None
    reply.hold.set()
    assert_first(client.read())


def test_what_is_in_doubt_is_not_accepted(gateway, backend, key):
    backend.script(key, Reply(fault="reset"))
    assert gateway.post("/orders", key).status == 502
    answer = gateway.post("/orders", key)
    assert_problem(answer, UNKNOWN)
    assert answer.header("Location") is None
    assert backend.executions(key) == 1
