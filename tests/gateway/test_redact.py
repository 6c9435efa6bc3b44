# SPDX-License-Identifier: Apache-2.0
"""`snapshot.redact`: what is not to be kept is in no file, no log and no replay."""

import json

import pytest

from support.backend import Reply
from support.expect import NOT_STORED, assert_first, assert_problem, assert_replay, is_replay
from support.waiting import until

POLICY = """
version: 1
tenant: none
defaults: {lease: 1s}
routes:
  - name: card
    match: POST /card
    snapshot: {max_body: 1MiB, redact: [/card/number, /cards/*/number]}
  - name: probed
    match: POST /probed
    in_doubt: {probe: "GET /probe/{key}", trust_absent_after: 1h}
    snapshot: {redact: [/card/number]}
    resource: {type: order, id: /order}
"""
SECRET = "4242424242424242"
BODY = (b'{"order": 17, "card": { "number": "%s", "brand": "x" },'
        b' "cards":[{"number":%s},{"n":1.0}]}\n' % (SECRET.encode(), SECRET.encode()))
KEPT = (b'{"order": 17, "card": { "number": "[redacted]", "brand": "x" },'
        b' "cards":[{"number":"[redacted]"},{"n":1.0}]}\n')


def files_with_the_secret(gateway):
    """Everything below the gateway's directory: store, logs, temporary files, output."""
    return [str(path) for path in gateway.directory.rglob("*")
            if path.is_file() and SECRET.encode() in path.read_bytes()]


def settled(gateway, key):
    until(lambda: gateway.record(key)["state"] == "SUCCEEDED", "the settle")


def test_the_first_client_gets_all_and_a_replay_what_was_kept(gateway, backend, key):
    backend.script(key, Reply(body=BODY))
    first = gateway.post("/card", key)
    assert_first(first)
    assert first.body == BODY
    replays = [gateway.post("/card", key) for _ in range(2)]
    for replay in replays:
        assert is_replay(replay)
        assert replay.status == 201
        assert replay.body == KEPT
        assert replay.header("Content-Length") == str(len(KEPT))
    assert backend.executions(key) == 1


def test_it_is_in_no_file_and_no_log(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    backend.script(key, Reply(body=BODY))
    assert gateway.post("/card", key).body == BODY
    assert is_replay(gateway.post("/card", key))
    found = files_with_the_secret(gateway)
    gateway.stop()
    assert not found + files_with_the_secret(gateway)


def test_a_large_answer_is_in_no_file_either(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    body = json.dumps({"pad": ["x" * 1000] * 900, "card": {"number": SECRET}}).encode()
    backend.script(key, Reply(body=body))
    assert gateway.post("/card", key).body == body
    replay = gateway.post("/card", key)
    assert is_replay(replay)
    assert replay.json()["card"] == {"number": "[redacted]"}
    gateway.stop()
    assert not files_with_the_secret(gateway)


@pytest.mark.parametrize("body", [
    b"number=" + SECRET.encode(),
    b'{"card": {"number": "' + SECRET.encode() + b'"}, "card": 1}',
    b'{"card": {"number": "' + SECRET.encode() + b'"}',
    b"\xef\xbb\xbf" + BODY,
])
def test_what_cannot_be_redacted_is_not_kept(new_gateway, backend, key, body):
    gateway = new_gateway(POLICY)
    backend.script(key, Reply(body=body))
    assert gateway.post("/card", key).body == body
    settled(gateway, key)
    assert_problem(gateway.post("/card", key), NOT_STORED)
    assert backend.executions(key) == 1
    gateway.stop()
    assert not files_with_the_secret(gateway)


@pytest.mark.parametrize("body", [b'{"card": "none"}', b'{"card": {}}', b"[]", b""])
def test_an_answer_without_the_value_is_kept_as_it_is(gateway, backend, key, body):
    backend.script(key, Reply(body=body))
    first = gateway.post("/card", key)
    assert_first(first)
    assert_replay(gateway.post("/card", key), first)
    assert backend.executions(key) == 1


def test_headers_made_from_the_whole_body_are_not_kept(gateway, backend, key):
    made = [("ETag", '"abc"'), ("Content-MD5", "x"), ("Digest", "sha-256=x"),
            ("Content-Digest", "sha-256=:x:"), ("Repr-Digest", "sha-256=:x:")]
    backend.script(key, Reply(body=BODY, headers=[("X-Kept", "1"), *made]))
    first = gateway.post("/card", key)
    replay = gateway.post("/card", key)
    assert is_replay(replay)
    assert replay.header("X-Kept") == "1"
    for name, value in made:
        assert first.header(name) == value
        assert replay.header(name) is None


def test_what_a_probe_finds_is_redacted_and_named(gateway, backend, key):
    backend.script(key, Reply(fault="reset"))
    backend.script_probe(key, Reply(200, body=BODY))
    gateway.post("/probed", key)
    found = gateway.post_settled("/probed", key)
    assert is_replay(found)
    assert found.body == KEPT.replace(b'{"number":"[redacted]"}',
                                      b'{"number":%s}' % SECRET.encode())
    assert gateway.record(key)["resource"] == {"type": "order", "id": "17"}
    assert backend.executions(key) == 1
