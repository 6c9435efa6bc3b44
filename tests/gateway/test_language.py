# SPDX-License-Identifier: Apache-2.0
"""The message of a refusal is in the client's language; the code is the same in every language."""

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, INVALID, MISSING, NOT_STORED, PENDING, UNKNOWN,
                            assert_problem, code_of)

POLICY = """
version: 1
tenant: none
routes:
  - {name: plain, match: POST /plain}
  - {name: uuid, match: POST /uuid, key: {header: Idempotency-Key, required: true, format: uuid}}
  - {name: small, match: POST /small, snapshot: {max_body: 1B}}
"""

EN = {
    MISSING: "Missing or invalid idempotency key",
    INVALID: "Missing or invalid idempotency key",
    CONFLICT: "This key was used for a different request; use a new key",
    PENDING: "Still processing; retry shortly",
    UNKNOWN: "The first attempt's result is not known yet; check before submitting again",
    NOT_STORED: "Already done; look the result up",
}
ZH = {
    MISSING: "缺少或无效的幂等键",
    INVALID: "缺少或无效的幂等键",
    CONFLICT: "同一个 key 提交了不同的内容，请生成新的 key 再提交",
    PENDING: "处理中，请稍后重试",
    UNKNOWN: "上次结果尚未确认，请先查询，请勿重复提交",
    NOT_STORED: "您之前已经提交成功，请查询结果",
}


def missing(gateway, *languages):
    answer = gateway.post("/uuid", headers=[("Accept-Language", value) for value in languages])
    assert_problem(answer, MISSING)
    return answer.json()["message"]


@pytest.mark.parametrize("accept", ["zh-CN", "zh-cn", "zh-CN,zh;q=0.9,en;q=0.8", "zh",
                                    "en;q=0.5, zh-CN;q=0.9", "fr, zh-CN;q=0.1", "en;q=0, zh-CN",
                                    "zh-Hans", "zh-TW", "zh-Hant-HK, en;q=0.9", "zh-CN, zh;q=0",
                                    "zh-TW;q=0, zh", "en;q=0, *", "en;q=0.5, *", "*, zh"])
def test_chinese_is_answered_to_those_who_prefer_it(gateway, accept):
    assert missing(gateway, accept) == ZH[MISSING]


@pytest.mark.parametrize("accept", ["en", "en-GB", "zh-CN;q=0.2, en", "en, zh-CN;q=0.9", "fr", "*",
                                    "zh-CN;q=0", "zhongwen", "", ";;q=,,", "zh-CN;q=x, en",
                                    "zh-CN;q=0, zh", "zh, zh-Hans;q=0", "zh;q=0", "zh;q=0, *",
                                    "zh-TW;q=0", "*, en", "en-US,zh-CN;q=0.9,en;q=0.8"])
def test_english_is_answered_to_the_others(gateway, accept):
    assert missing(gateway, accept) == EN[MISSING]


def test_several_headers_are_one_list(gateway):
    assert missing(gateway, "en;q=0.2", "zh-CN;q=0.3") == ZH[MISSING]
    assert missing(gateway, "en;q=0.4", "zh-CN;q=0.3") == EN[MISSING]


def test_english_is_the_default(gateway):
    assert missing(gateway) == EN[MISSING]


def provoke(gateway, backend, key, code, language):
    """Brings about the refusal `code` and returns it in the language."""
    headers = [("Accept-Language", language)]
    if code == MISSING:
        return gateway.post("/uuid", headers=headers)
    if code == INVALID:
        return gateway.post("/uuid", "x", headers=headers)
    if code == NOT_STORED:
        gateway.post("/small", key)
        return gateway.post_settled("/small", key, headers=headers)
    if code == UNKNOWN:
        backend.script(key, Reply(fault="reset"))
        gateway.post("/plain", key)
        return gateway.post("/plain", key, headers=headers)
    if code == CONFLICT:
        gateway.post("/plain", key)
        return gateway.post("/plain", key, b'{"other": 1}', headers=headers)
    reply = backend.holding()
    backend.script(key, reply)
    with gateway.send("/plain", key) as client:
        backend.wait(key)
        answer = gateway.post("/plain", key, headers=headers)
        reply.hold.set()
        client.read()
    return answer


@pytest.mark.parametrize("language,table", [("en", EN), ("zh-CN", ZH)], ids=["en", "zh-CN"])
@pytest.mark.parametrize("code", EN.keys())
def test_every_code_has_its_message_in_both_languages(gateway, backend, key, code, language, table):
    answer = provoke(gateway, backend, key, code, language)
    assert_problem(answer, code)
    assert answer.json()["message"] == table[code]
    assert code_of(answer) == code
