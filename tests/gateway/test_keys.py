# SPDX-License-Identifier: Apache-2.0
"""Where a key comes from and which keys are refused; what has no key or no route is left alone."""

import pytest

from support.expect import (CONFLICT, INVALID, MISSING, assert_first, assert_problem,
                            assert_replay, code_of, is_replay, new_key)

POLICY = """
version: 1
tenant: none
routes:
  - {name: uuid, match: POST /uuid, key: {header: Idempotency-Key, required: true, format: uuid}}
  - {name: any, match: POST /any, key: {header: Idempotency-Key, required: true}}
  - {name: optional, match: POST /optional}
  - {name: custom, match: POST /custom, key: {header: X-Request-Token, required: true}}
  - {name: payment, match: POST /payment, profile: payment}
"""


def post_keys(gateway, path, *values, case=None):
    headers = [("Idempotency-Key", value) for value in values]
    if case is not None:
        headers.append(("X-Case", case))
    return gateway.post(path, None, headers=headers)


@pytest.mark.parametrize("path", ["/uuid", "/any", "/custom", "/payment"])
def test_a_required_key_that_is_missing_is_refused(gateway, backend, path):
    assert_problem(gateway.post(path), MISSING)
    assert backend.executions(path) == 0


@pytest.mark.parametrize("bad", ["not-a-uuid", "123", "f47ac10b-58cc-4372-a567-0e02b2c3d47",
                                 "f47ac10b-58cc-4372-a567-0e02b2c3d4790",
                                 "g47ac10b-58cc-4372-a567-0e02b2c3d479",
                                 "f47ac10b58cc4372a5670e02b2c3d479xxxx"])
@pytest.mark.parametrize("path", ["/uuid", "/payment"])
def test_a_key_that_is_no_uuid_is_refused(gateway, backend, path, bad):
    assert_problem(gateway.post(path, bad, headers=[("X-Case", path + bad)]), INVALID)
    assert backend.executions(path + bad) == 0


@pytest.mark.parametrize("bad", ["k" * 256, "two words", "caf\xe9", '"unclosed', '"a"b"', '""'],
                         ids=["256 long", "a space", "not ASCII", "unclosed", "trailing", "empty"])
def test_a_key_outside_1_to_255_visible_ascii_is_refused(gateway, backend, key, bad):
    answer = post_keys(gateway, "/any", bad, case=key)
    assert_problem(answer, INVALID)
    assert backend.executions(key) == 0


def test_an_empty_key_header_is_refused(gateway, backend, key):
    answer = post_keys(gateway, "/any", "", case=key)
    assert answer.status == 400
    assert answer.json()["code"] in (MISSING, INVALID)
    assert backend.executions(key) == 0


def test_a_bad_key_is_refused_even_where_none_is_required(gateway, backend, key):
    assert_problem(post_keys(gateway, "/optional", "k" * 256, case=key), INVALID)
    assert backend.executions(key) == 0


@pytest.mark.parametrize("good", ["!", "k" * 255, "a/b?c=d&e;f,g", "~{}|^", "%41"],
                         ids=["one", "255 long", "punctuation", "braces", "percent"])
def test_any_1_to_255_visible_ascii_characters_are_a_key(gateway, backend, key, good):
    first = post_keys(gateway, "/any", good, case=key)
    assert_first(first)
    assert_replay(post_keys(gateway, "/any", good, case=key), first)
    assert backend.executions(key) == 1


def test_keys_that_share_a_long_prefix_or_differ_in_case_are_different(gateway, backend, key):
    keys = ["p" * 254 + "a", "p" * 254 + "b", "p" * 254, "CaseKey", "casekey"]
    for each in keys:
        assert_first(post_keys(gateway, "/any", each, case=key))
    assert backend.executions(key) == len(keys)


def test_two_different_key_headers_are_refused(gateway, backend, key):
    assert_problem(post_keys(gateway, "/any", new_key(), new_key(), case=key), INVALID)
    assert backend.executions(key) == 0


def test_two_equal_key_headers_are_one_key(gateway, backend, key):
    first = post_keys(gateway, "/any", key, key)
    assert_first(first)
    assert_replay(post_keys(gateway, "/any", key), first)
    request, = backend.of(key)
    assert request.all("Idempotency-Key") == [key]


def test_a_quoted_key_and_a_bare_one_are_the_same(gateway, backend, key):
    first = post_keys(gateway, "/uuid", f'"{key}"')
    assert_first(first)
    assert_replay(post_keys(gateway, "/uuid", key), first)
    assert_replay(post_keys(gateway, "/uuid", f'"{key}"', key), first)
    assert backend.executions(key) == 1


def test_the_backend_sees_the_same_key_however_it_was_written(gateway, backend):
    one, two = new_key(), new_key()
    post_keys(gateway, "/any", f'"{one}"', case=one)
    post_keys(gateway, "/any", two, case=two)
    seen_one = backend.wait(one).header("Idempotency-Key")
    seen_two = backend.wait(two).header("Idempotency-Key")
    assert seen_one.replace(one, "KEY") == seen_two.replace(two, "KEY")


def test_escapes_in_a_quoted_key_are_undone(gateway, backend, key):
    first = post_keys(gateway, "/any", rf'"{key}\"\\"', case=key)
    assert_first(first)
    assert_replay(post_keys(gateway, "/any", key + '"\\', case=key), first)
    assert backend.executions(key) == 1


def test_a_key_from_another_header_counts_and_the_usual_one_does_not(gateway, backend, key):
    def post(token, usual):
        return gateway.post("/custom", usual, headers=[("X-Request-Token", token),
                                                       ("X-Case", key)])

    first = post("token-" + key, new_key())
    assert_first(first)
    assert_replay(post("token-" + key, new_key()), first)
    assert_first(post("token-2-" + key, new_key()))
    assert backend.executions(key) == 2


def test_the_header_name_is_found_in_any_case(gateway, backend, key):
    first = gateway.post("/any", key)
    assert_first(first)
    lower = gateway.post("/any", None, headers=[("idempotency-key", key)])
    assert_replay(lower, first)
    assert backend.executions(key) == 1


def test_without_a_key_a_route_that_does_not_require_one_passes_untouched(gateway, backend, key):
    for _ in range(2):
        answer = gateway.post("/optional", None, headers=[("X-Case", key)])
        assert_first(answer)
        assert not [name for name, _ in answer.headers if name.lower().startswith("counterfoil")]
    for request in backend.of(key):
        assert request.header("Counterfoil-Attempt") is None
        assert request.header("Counterfoil-Fence") is None
    assert backend.executions(key) == 2


@pytest.mark.parametrize("method,path", [("POST", "/elsewhere"), ("PUT", "/any"), ("GET", "/any"),
                                         ("DELETE", "/any"), ("POST", "/any/below"),
                                         ("POST", "/ANY")])
def test_a_request_no_route_matches_passes_untouched_each_time(gateway, backend, key, method, path):
    body = b"{}" if method in ("POST", "PUT") else None
    for _ in range(2):
        assert_first(gateway.post(path, key, body, method=method))
    for request in backend.of(key):
        assert (request.method, request.target) == (method, path)
        assert request.header("Idempotency-Key") == key
        assert request.header("Counterfoil-Attempt") is None
    assert backend.executions(key) == 2


@pytest.mark.parametrize("spelling", ["/%61ny", "/x/../any", "/./any", "//any"])
def test_another_spelling_of_the_path_does_not_walk_round_the_guard(gateway, backend, key,
                                                                    spelling):
    assert_first(gateway.post("/any", key))
    answer = gateway.post(spelling, key)
    assert is_replay(answer) or code_of(answer) == CONFLICT
    assert backend.executions(key) == 1
