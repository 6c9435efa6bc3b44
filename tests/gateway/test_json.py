# SPDX-License-Identifier: Apache-2.0
"""JSON bodies are compared by meaning: exact numbers, order and spelling apart, never guessed.

What is not canonicalised (duplicates, lone surrogates, invalid text, excessive depth) is compared
byte by byte: a wrong "equal" would hand out another request's answer, a wrong "other" only refuses.
"""

import pytest

from support.expect import CONFLICT, assert_first, assert_problem, assert_replay

POLICY = """
version: 1
tenant: none
routes:
  - {name: plain, match: POST /plain}
  - name: rules
    match: POST /rules
    fingerprint: {ignore: [/client_time, "/items/*/note", /trace/id], unordered: [/tags]}
"""

NEST = 200_000

EQUAL = {
    "a decimal point that adds nothing": (b'{"n":1}', b'{"n":1.0}'),
    "an exponent that adds nothing": (b'{"n":1}', b'{"n":1e0}'),
    "the same value by exponent": (b'{"n":100}', b'{"n":1E+2}'),
    "a fraction by exponent": (b'{"n":0.1}', b'{"n":1e-1}'),
    "trailing zeros": (b'{"n":2.50}', b'{"n":2.5}'),
    "zero with digits": (b'{"n":0}', b'{"n":0.00e7}'),
    "minus zero": (b'{"n":0}', b'{"n":-0.0}'),
    "huge exponents of one value": (b'{"n":10e399}', b'{"n":1e400}'),
    "member order": (b'{"a":1,"b":2}', b'{"b":2,"a":1}'),
    "member order inside": (b'{"o":{"a":[1],"b":2}}', b'{"o":{"b":2,"a":[1]}}'),
    "white space": (b'{"a":[1,2]}', b' {\r\n\t"a" : [ 1 , 2 ] } '),
    "an escaped letter": (b'{"a":"A/"}', b'{"\\u0061":"\\u0041\\/"}'),
    "an escaped pair": ('{"a":"\U0001f600"}'.encode(), b'{"a":"\\ud83d\\ude00"}'),
    "a number at the top": (b"1", b" 1.0 "),
}

DIFFERENT = {
    "integers past 2^53": (b'{"n":9007199254740993}', b'{"n":9007199254740992}'),
    "fractions one double apart from none": (b'{"n":0.1}', b'{"n":0.10000000000000001}'),
    "values past the largest double": (b'{"n":1e400}', b'{"n":1e401}'),
    "values below the smallest double": (b'{"n":1e-400}', b'{"n":0}'),
    "the sign": (b'{"n":1}', b'{"n":-1}'),
    "a number and its text": (b'{"n":1}', b'{"n":"1"}'),
    "true and its text": (b'{"n":true}', b'{"n":"true"}'),
    "true and one": (b'{"n":true}', b'{"n":1}'),
    "null and absent": (b'{"n":null}', b"{}"),
    "null and false": (b'{"n":null}', b'{"n":false}'),
    "empty object and empty array": (b'{"n":{}}', b'{"n":[]}'),
    "array order": (b'{"n":[1,2]}', b'{"n":[2,1]}'),
    "array nesting": (b'{"n":[[1],2]}', b'{"n":[1,[2]]}'),
    "a member moved into another": (b'{"a":{"b":1}}', b'{"a":{},"b":1}'),
    "text shifted between members": (b'{"a":"xy","b":""}', b'{"a":"x","b":"y"}'),
    "letter case": (b'{"a":"x"}', b'{"a":"X"}'),
    "composed and decomposed letters": ('{"a":"\u00e9"}'.encode(), '{"a":"e\u0301"}'.encode()),
    "a NUL escape": (b'{"a":"x\\u0000y"}', b'{"a":"x"}'),
    "text and nothing": (b'{"a":1}', b""),
}

# Not canonicalised: the same bytes replay, the same meaning in other bytes is refused.
BY_BYTES = {
    "duplicate members": (b'{"a":1,"a":2}', b'{"a":1, "a":2}'),
    "duplicate members in another order": (b'{"a":1,"a":2}', b'{"a":2,"a":1}'),
    "a duplicate against its last value": (b'{"a":1,"a":2}', b'{"a":2}'),
    "a duplicate by escape": (b'{"a":1,"\\u0061":2}', b'{"a":2}'),
    "duplicates deep inside": (b'[{"x":{"a":1,"a":1}}]', b'[{"x":{"a":1}}]'),
    "a lone high surrogate": (b'{"a":"\\ud800"}', b'{"a": "\\ud800"}'),
    "two lone surrogates": (b'{"a":"\\ud800"}', b'{"a":"\\ud801"}'),
    "a lone low surrogate": (b'{"a":"\\udc00"}', b'{"a":"\\ufffd"}'),
    "surrogates the wrong way round": (b'{"a":"\\ude00\\ud83d"}', b'{"a":"\\ud83d\\ude00"}'),
    "invalid UTF-8": (b'{"a":"\xff"}', b'{"a": "\xff"}'),
    "an overlong form": (b'{"a":"\xc0\xaf"}', b'{"a":"/"}'),
    "a raw surrogate": (b'{"a":"\xed\xa0\x80"}', b'{"a": "\xed\xa0\x80"}'),
    "a text cut short": (b'{"a":1', b'{"a": 1'),
    "a text with a tail": (b'{"a":1} x', b'{"a":1}  x'),
    "a number with a leading zero": (b'{"a":01}', b'{"a":1}'),
    "a comma too many": (b'{"a":1,}', b'{"a":1}'),
}

RULED_EQUAL = {
    "an ignored member": (b'{"a":1,"client_time":1}', b'{"a":1,"client_time":2}'),
    "an ignored member absent": (b'{"a":1,"client_time":1}', b'{"a":1}'),
    "an ignored member of every element": (b'{"items":[{"id":1,"note":"x"},{"id":2}]}',
                                           b'{"items":[{"id":1},{"id":2,"note":"y"}]}'),
    "an ignored member inside": (b'{"trace":{"id":1,"b":2}}', b'{"trace":{"id":9,"b":2}}'),
    "an unordered array": (b'{"tags":[1,2,2]}', b'{"tags":[2,1,2]}'),
    "an unordered array of objects": (b'{"tags":[{"a":1,"b":2},3]}',
                                      b'{"tags":[3.0,{"b":2,"a":1}]}'),
}

RULED_DIFFERENT = {
    "a member of the ignored name elsewhere": (b'{"x":{"client_time":1}}',
                                               b'{"x":{"client_time":2}}'),
    "an element beside the ignored member": (b'{"items":[{"id":1}]}', b'{"items":[{"id":2}]}'),
    "how often an element occurs": (b'{"tags":[1,2,2]}', b'{"tags":[1,1,2]}'),
    "how many elements there are": (b'{"tags":[1,2]}', b'{"tags":[1,2,2]}'),
    "order inside an element of an unordered array": (b'{"tags":[[1,2]]}', b'{"tags":[[2,1]]}'),
    "order of an array not listed": (b'{"items":[1,2]}', b'{"items":[2,1]}'),
}


def check(gateway, backend, path, key, bodies, equal):
    first = gateway.post(path, key, bodies[0])
    assert_first(first)
    assert_replay(gateway.post(path, key, bodies[0]), first)
    second = gateway.post(path, key, bodies[1])
    if equal:
        assert_replay(second, first)
    else:
        assert_problem(second, CONFLICT)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("bodies", EQUAL.values(), ids=EQUAL.keys())
def test_equal_meaning_replays(gateway, backend, key, bodies):
    check(gateway, backend, "/plain", key, bodies, equal=True)


@pytest.mark.parametrize("bodies", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_other_meaning_is_a_conflict(gateway, backend, key, bodies):
    check(gateway, backend, "/plain", key, bodies, equal=False)


@pytest.mark.parametrize("bodies", BY_BYTES.values(), ids=BY_BYTES.keys())
def test_what_is_not_canonicalised_is_compared_by_bytes(gateway, backend, key, bodies):
    check(gateway, backend, "/plain", key, bodies, equal=False)


@pytest.mark.parametrize("bodies", RULED_EQUAL.values(), ids=RULED_EQUAL.keys())
def test_the_routes_rules_make_it_equal(gateway, backend, key, bodies):
    check(gateway, backend, "/rules", key, bodies, equal=True)


@pytest.mark.parametrize("bodies", RULED_DIFFERENT.values(), ids=RULED_DIFFERENT.keys())
def test_the_routes_rules_reach_no_further(gateway, backend, key, bodies):
    check(gateway, backend, "/rules", key, bodies, equal=False)


def test_bytes_that_are_not_json_by_type_are_compared_as_bytes(gateway, backend, key):
    first = gateway.post("/plain", key, b'{"a": 1}', ctype="text/plain")
    assert_first(first)
    assert_problem(gateway.post("/plain", key, b'{"a":1}', ctype="text/plain"), CONFLICT)
    assert backend.executions(key) == 1


def test_parameters_and_case_of_the_json_type_do_not_matter(gateway, backend, key):
    first = gateway.post("/plain", key, b'{"a": 1}', ctype="application/json; charset=utf-8")
    assert_first(first)
    assert_replay(gateway.post("/plain", key, b'{"a":1}', ctype="Application/JSON"), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("deep", [b"[" * NEST + b"]" * NEST, b'{"a":' * NEST + b"1" + b"}" * NEST,
                                  b"[" * NEST], ids=["arrays", "objects", "unclosed arrays"])
def test_200000_levels_under_a_256_kib_stack_are_answered_normally(new_gateway, backend, key, deep):
    gateway = new_gateway(POLICY, stack_kib=256)
    check(gateway, backend, "/plain", key, (deep, deep + b" "), equal=False)
    check(gateway, backend, "/rules", key + "-rules", (deep, b" " + deep), equal=False)
    assert backend.of(key)[0].body_bytes == len(deep)
