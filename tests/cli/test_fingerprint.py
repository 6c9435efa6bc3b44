# SPDX-License-Identifier: Apache-2.0
"""counterfoil fingerprint: the canonical form, the digest, and whether two bodies mean the same."""

import json
import re

import pytest

POLICY = """version: 1
routes:
  - name: order
    match: "POST|PUT /orders/{id}"
    fingerprint: {ignore: [/time], unordered: [/items], headers: [X-Region]}
  - name: plain
    match: POST /plain
  - name: loose
    match: POST /loose
    semantics: loose
"""


@pytest.fixture
def fingerprint(run, write):
    write("policy.yaml", POLICY)

    def call(*bodies, route="order", options=()):
        names = []
        for number, body in enumerate(bodies):
            names.append(write(f"{number}.json", body).name)
        return run("fingerprint", "--policy", "policy.yaml", "--route", route, *options, *names)

    return call


def digest(shown):
    assert shown.returncode == 0, shown.stderr
    last = shown.stdout.splitlines()[-1]
    assert re.fullmatch("[0-9a-f]{64}", last)
    return last


def test_the_canonical_form_is_shown(fingerprint):
    shown = fingerprint('{ "b" : 1.0, "a": "\\u0041", "time": 5 }')
    form = shown.stdout.splitlines()[0]
    assert json.loads(form) == {"a": "A", "b": 1}
    assert " " not in form and "time" not in form
    digest(shown)


@pytest.mark.parametrize("one,other", [
    ('{"a": 1, "b": 2}', '{"b":2,"a":1.0}'),
    ('{"a": 1, "time": 1}', '{"a": 1, "time": 2}'),
    ('{"items": [1, 2]}', '{"items": [2, 1]}'),
], ids=["order and number", "ignored", "unordered"])
def test_two_bodies_that_mean_the_same(fingerprint, one, other):
    shown = fingerprint(one, other)
    assert (shown.returncode, shown.stdout.splitlines()[-1]) == (0, "same")
    assert digest(fingerprint(one)) == digest(fingerprint(other))


@pytest.mark.parametrize("one,other,route", [
    ('{"a": 9007199254740993}', '{"a": 9007199254740992}', "order"),
    ('{"a": 1}', '{"a": "1"}', "order"),
    ('{"items": [1, 2]}', '{"items": [2, 1]}', "plain"),
    ('{"a": 1, "a": 1}', '{"a": 1}', "plain"),
])
def test_two_bodies_that_do_not(fingerprint, one, other, route):
    shown = fingerprint(one, other, route=route)
    assert (shown.returncode, shown.stdout.splitlines()[-1]) == (1, "different")


def test_a_loose_route_would_replay_all_the_same(fingerprint):
    """The digests differ and the status says so, but the gateway does not refuse the second body."""
    shown = fingerprint('{"a": 1}', '{"a": 2}', route="loose")
    assert (shown.returncode, shown.stdout.splitlines()[-1]) == (1, "different")
    assert "Counterfoil-Body: differs" in shown.stdout
    assert "Counterfoil-Body" not in fingerprint('{"a": 1}', '{"a": 1}', route="loose").stdout
    assert "Counterfoil-Body" not in fingerprint('{"a": 1}', '{"a": 2}', route="plain").stdout


@pytest.mark.parametrize("route,verdict", [("loose", True), ("plain", False)])
def test_machines_are_told_that_a_route_is_loose(fingerprint, route, verdict):
    answer = json.loads(fingerprint('{"a": 1}', '{"a": 2}', route=route, options=["--json"]).stdout)
    assert (answer["same"], answer["loose"]) == (False, verdict)


@pytest.mark.parametrize("options", [["--method", "PUT"], ["--path", "/orders/7"], ["--query", "a=1"],
                                     ["--header", "X-Region: eu"], ["--content-type", "text/plain"]])
def test_everything_else_of_the_request_counts_too(fingerprint, options):
    assert digest(fingerprint("{}")) != digest(fingerprint("{}", options=options))


def test_a_header_the_rules_do_not_name_does_not_count(fingerprint):
    assert digest(fingerprint("{}")) == digest(fingerprint("{}", options=["--header", "X-A: 1"]))


@pytest.mark.parametrize("body,options", [('{"a": 1, "a": 2}', []), ("not json", []),
                                          ("{}", ["--content-type", "text/plain"])])
def test_a_body_that_is_hashed_as_it_is_says_why(fingerprint, body, options):
    shown = fingerprint(body, options=options)
    assert "(the raw bytes are hashed: " in shown.stdout
    digest(shown)


def test_standard_input_is_a_body(run, fingerprint):
    from_file = digest(fingerprint('{"a":1}'))
    for words in ([], ["-"]):
        shown = run("fingerprint", "--policy", "policy.yaml", "--route", "order", *words,
                    text_in='{"a": 1}')
        assert digest(shown) == from_file


def test_for_machines(fingerprint):
    shown = fingerprint('{"a": 1}', '{"a": 2}', options=["--json"])
    assert shown.returncode == 1
    answer = json.loads(shown.stdout)
    assert answer["same"] is False
    assert json.loads(answer["canonical"]) == {"a": 1}
    assert answer["request_hash"] != answer["other"]["request_hash"]


def test_which_route_must_be_said(run, write):
    write("policy.yaml", POLICY)
    shown = run("fingerprint", "--policy", "policy.yaml")
    assert shown.returncode == 2 and "--route NAME" in shown.stderr
    shown = run("fingerprint", "--policy", "policy.yaml", "--route", "nobody")
    assert shown.returncode == 2 and "no route of that name" in shown.stderr
    assert "order, plain, loose" in shown.stderr


def test_a_wrong_policy_is_shown_with_its_place(run, write):
    write("policy.yaml", "version: 1\nroutes: [{match: post /a}]\n")
    shown = run("fingerprint", "--policy", "policy.yaml", "--route", "a")
    assert shown.returncode == 2
    assert shown.stderr.startswith("policy.yaml:2:18: ")


def test_a_missing_body(fingerprint, run):
    fingerprint("{}")
    shown = run("fingerprint", "--policy", "policy.yaml", "--route", "order", "nowhere.json")
    assert shown.returncode == 2 and "nowhere.json cannot be opened" in shown.stderr


def test_a_body_cannot_steer_the_terminal(fingerprint):
    body = '{"a": "\x7f\x9b31m"}'
    shown = fingerprint(body)
    assert shown.returncode == 0
    assert re.match(r'{"a":"\?+31m"}\n', shown.stdout)
    shown = fingerprint(body, options=["--json"])
    assert "\x7f" not in shown.stdout and "\x9b" not in shown.stdout
    assert json.loads(shown.stdout)["canonical"] == '{"a":"\x7f\x9b31m"}'
