# SPDX-License-Identifier: Apache-2.0
"""Messages of the policy's own: per code and language in refusals, and beside a replay."""

import re
from urllib.parse import unquote

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, INVALID, MISSING, PENDING, assert_first, assert_problem,
                            assert_replay)

POLICY = """
version: 1
tenant: none
defaults:
  messages:
    en: {IDEMPOTENCY_KEY_CONFLICT: "From defaults: \\"new\\" key & body", REPLAY: Seen already}
routes:
  - {name: plain, match: POST /plain}
  - name: own
    match: POST /own
    messages:
      on_replay: true
      zh-CN: {IDEMPOTENCY_PENDING: 订单处理中, REPLAY: 您的订单已提交（100%）}
      en: {IDEMPOTENCY_PENDING: Your order is being placed}
  - {name: loose, match: POST /loose, semantics: loose, messages: {on_replay: true}}
  - {name: quiet, match: POST /quiet, messages: {on_replay: false}}
  - name: envelope
    match: POST /envelope
    answers: envelope
    key: {required: true, format: uuid}
    messages: {zh-CN: {IDEMPOTENCY_KEY_MISSING: 请带上幂等键}, en: {IDEMPOTENCY_KEY_INVALID: "409"}}
  - name: stripe
    match: POST /stripe
    profile: stripe
    key: {required: true}
    messages: {en: {IDEMPOTENCY_KEY_MISSING: Send a key}}
  - name: probed
    match: POST /probed
    in_doubt: {probe: "GET /probe/{key}", replay_status: 201}
    messages: {on_replay: true}
  - {name: final, match: POST /final, profile: stripe, messages: {on_replay: true}}
"""

OTHER = b'{"other": 1}'
ZH = [("Accept-Language", "zh-CN")]
EN = [("Accept-Language", "en")]
BUILT_IN_REPLAY = {"zh": "您之前已经提交成功", "en": "Already done; this is the first answer"}


def message_of(answer):
    """The text beside a replay. The header is ASCII: every other byte is percent-encoded."""
    value = answer.header("Counterfoil-Message")
    if value is None:
        return None
    assert re.fullmatch(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+", value), value
    return unquote(value, errors="strict")


def pending(gateway, backend, path, key, headers=()):
    reply = backend.holding()
    backend.script(key, reply)
    with gateway.send(path, key) as client:
        backend.wait(key)
        answer = gateway.post(path, key, headers=headers)
        reply.hold.set()
        assert_first(client.read())
    assert backend.executions(key) == 1
    return answer


# Refusals.

@pytest.mark.parametrize("headers,text", [(ZH, "订单处理中"), (EN, "Your order is being placed")],
                         ids=["zh-CN", "en"])
def test_a_refusal_says_what_the_policy_says(gateway, backend, key, headers, text):
    answer = pending(gateway, backend, "/own", key, headers)
    assert_problem(answer, PENDING)
    assert answer.json()["message"] == text


def test_a_code_without_a_text_of_its_own_keeps_the_built_in_one(gateway, key):
    assert_first(gateway.post("/own", key))
    answer = gateway.post("/own", key, OTHER, headers=ZH)
    assert_problem(answer, CONFLICT)
    assert answer.json()["message"] == "同一个 key 提交了不同的内容，请生成新的 key 再提交"


def test_a_routes_messages_add_to_those_of_defaults(gateway, key):
    assert_first(gateway.post("/own", key))
    answer = gateway.post("/own", key, OTHER, headers=EN)
    assert_problem(answer, CONFLICT)
    assert answer.json()["message"] == 'From defaults: "new" key & body'


def test_another_route_has_the_built_in_texts(gateway, backend, key):
    answer = pending(gateway, backend, "/plain", key, ZH)
    assert answer.json()["message"] == "处理中，请稍后重试"


def test_messages_stand_in_every_shape(gateway):
    answer = gateway.post("/envelope", headers=ZH)
    assert answer.json() == {"code": 4001, "message": "请带上幂等键", "data": None}
    answer = gateway.post("/envelope", "x", headers=EN)
    assert answer.json() == {"code": 4002, "message": "409", "data": None}
    assert gateway.post("/envelope", headers=EN).json()["message"] == \
        "Missing or invalid idempotency key"
    answer = gateway.post("/stripe", headers=EN)
    assert answer.json()["error"]["code"] == MISSING
    assert answer.json()["error"]["message"] == "Send a key"
    assert INVALID not in str(answer.body)


# Replays.

@pytest.mark.parametrize("headers,text", [(ZH, "您的订单已提交（100%）"), (EN, "Seen already")],
                         ids=["zh-CN", "en"])
def test_a_replay_carries_its_message_in_the_clients_language(gateway, backend, key, headers, text):
    first = gateway.post("/own", key, headers=headers)
    assert_first(first)
    assert message_of(first) is None
    replay = gateway.post("/own", key, headers=headers)
    assert_replay(replay, first)
    assert message_of(replay) == text
    assert backend.executions(key) == 1


def test_the_language_is_that_of_the_repeat_and_is_not_stored(gateway, backend, key):
    first = gateway.post("/loose", key, headers=ZH)
    for headers, text in ((ZH, BUILT_IN_REPLAY["zh"]), (EN, "Seen already"),
                          (ZH, BUILT_IN_REPLAY["zh"])):
        replay = gateway.post("/loose", key, headers=headers)
        assert_replay(replay, first)
        assert message_of(replay) == text
    stored = gateway.record(key)["snapshot"]["headers"]
    assert "counterfoil-message" not in str(stored).lower()
    assert backend.executions(key) == 1


def test_a_loose_replay_to_another_body_carries_both_marks(gateway, backend, key):
    first = gateway.post("/loose", key)
    replay = gateway.post("/loose", key, OTHER, headers=ZH)
    assert_replay(replay, first)
    assert replay.header("Counterfoil-Body") == "differs"
    assert message_of(replay) == BUILT_IN_REPLAY["zh"]
    assert backend.executions(key) == 1


@pytest.mark.parametrize("path", ["/plain", "/quiet"])
def test_without_on_replay_a_replay_says_nothing(gateway, key, path):
    first = gateway.post(path, key)
    replay = gateway.post(path, key)
    assert_replay(replay, first)
    assert replay.header("Counterfoil-Message") is None


def test_a_replayed_failure_carries_it_too(gateway, backend, key):
    backend.script(key, Reply(status=404))
    first = gateway.post("/final", key)
    replay = gateway.post("/final", key)
    assert_replay(replay, first)
    assert message_of(replay) == "Seen already"
    assert backend.executions(key) == 1


def test_a_refusal_carries_no_replay_message(gateway, key):
    assert_first(gateway.post("/own", key))
    assert gateway.post("/own", key, OTHER).header("Counterfoil-Message") is None


def test_what_a_probe_found_is_a_replay_with_its_message(gateway, backend, key):
    backend.script(key, Reply(fault="close"))
    gateway.post("/probed", key)
    backend.script_probe(key, Reply(status=200, body=b'{"found": true}'))
    answer = gateway.post("/probed", key, headers=EN)
    assert answer.status == 201
    assert answer.header("Idempotent-Replayed") == "true"
    assert message_of(answer) == "Seen already"
    assert backend.executions(key) == 1


def test_a_backend_cannot_put_a_message_of_its_own_into_a_replay(gateway, backend, key):
    reply = Reply(headers=[("Content-Type", "application/json"), ("Counterfoil-Message", "fake")])
    backend.script(key, reply)
    assert_first(gateway.post("/own", key, headers=EN))
    assert message_of(gateway.post("/own", key, headers=EN)) == "Seen already"
    backend.script("q" + key, reply)
    assert_first(gateway.post("/quiet", "q" + key))
    assert gateway.post("/quiet", "q" + key).header("Counterfoil-Message") is None


def test_the_longest_message_arrives_whole(new_gateway, key):
    text = "长" * 170 + "xy"
    assert len(text.encode()) == 512
    gateway = new_gateway("version: 1\ntenant: none\nroutes:\n  - match: POST /x\n"
                          f"    messages: {{on_replay: true, zh-CN: {{REPLAY: {text}}}}}\n")
    first = gateway.post("/x", key)
    replay = gateway.post("/x", key, headers=ZH)
    assert_replay(replay, first)
    assert message_of(replay) == text
