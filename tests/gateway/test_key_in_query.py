# SPDX-License-Identifier: Apache-2.0
"""Keys in the query: for callers that can set a link and no header."""

import pytest

from support.expect import (CONFLICT, INVALID, MISSING, assert_first, assert_problem, assert_replay,
                            assert_settled)

POLICY = """
version: 1
tenant: none
routes:
  - {name: link, match: POST /link, key: {query: idem, required: true}}
  - {name: free, match: POST /free, key: {query: idem}}
  - {name: uuid, match: POST /uuid, key: {query: idem, format: uuid}}
"""
BYTES_MAX = 255


def test_the_argument_is_the_key(gateway, backend, key):
    first = gateway.post(f"/link?idem={key}")
    assert_first(first)
    assert_replay(gateway.post(f"/link?idem={key}"), first)
    assert_problem(gateway.post(f"/link?idem={key}", body=b'{"other": 1}'), CONFLICT)
    assert backend.executions(key) == 1


def test_it_is_forwarded_in_the_header_and_a_header_does_not_count(gateway, backend, key):
    first = gateway.post(f"/link?idem={key}", "another")
    assert_first(first)
    request, = backend.of(key)
    assert request.header("Idempotency-Key") == key
    assert request.target == f"/link?idem={key}"
    assert gateway.record(key)["key"] == key
    assert_replay(gateway.post(f"/link?idem={key}", "a third"), first)


@pytest.mark.parametrize("spelled", ["{}", "%22{}%22", "%{:02x}"])
def test_it_is_decoded_and_may_be_quoted(gateway, key, spelled):
    argument = ("".join(f"%{ord(c):02x}" for c in key) if "02x" in spelled
                else spelled.format(key))
    assert_first(gateway.post(f"/free?a=1&idem={argument}"))
    assert gateway.record(key)["key"] == key


def test_twice_the_same_is_one_and_two_are_refused(gateway, backend, key):
    first = gateway.post(f"/free?idem={key}&idem={key}")
    assert_first(first)
    assert_problem(gateway.post(f"/free?idem={key}&idem=x"), INVALID)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("target", ["/link", "/link?idem=", "/link?idem", "/link?Idem=x"])
def test_a_missing_key_is_refused_where_it_is_required(gateway, key, target):
    assert_problem(gateway.post(target, key), MISSING)


def test_without_one_the_request_passes_where_it_is_not(gateway, backend):
    before = len(backend.requests)
    for _ in range(2):
        assert_first(gateway.post("/free"))
    assert len(backend.requests) == before + 2


@pytest.mark.parametrize("argument", ["a%20b", "a+b", "%e5%ba%97", "%00", "a%0d%0ab", "%7f"])
def test_what_is_no_key_is_refused(gateway, backend, argument):
    before = len(backend.requests)
    assert_problem(gateway.post(f"/link?idem={argument}"), INVALID)
    assert len(backend.requests) == before


@pytest.mark.parametrize("length, allowed", [(BYTES_MAX - 1, True), (BYTES_MAX, True),
                                             (BYTES_MAX + 1, False), (8192, False)])
def test_the_limit_on_its_length(gateway, key, length, allowed):
    argument = key + "x" * (length - len(key))
    answer = gateway.post(f"/free?idem={argument}")
    if allowed:
        assert_first(answer)
    else:
        assert answer.status in (400, 414)
    assert not allowed or gateway.record(argument)["key"] == argument


def test_formats_hold_for_it(gateway, key):
    assert_problem(gateway.post("/uuid?idem=order-1"), INVALID)
    assert_first(gateway.post(f"/uuid?idem={key}"))


def test_a_settled_one_replays_without_a_body_difference(gateway, backend, key):
    first = gateway.post(f"/link?idem={key}")
    assert_settled(gateway, backend, f"/link?idem={key}", key, first)
