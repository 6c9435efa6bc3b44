# SPDX-License-Identifier: Apache-2.0
"""Control headers belong to the gateway: no client forges them, the backend can rely on them."""

import time

import pytest

from support.backend import Reply
from support.expect import assert_first, new_key

POLICY = """
version: 1
tenant: none
routes:
  - {name: plain, match: POST /plain}
"""

NAMES = ("Counterfoil-Attempt", "Counterfoil-Fence", "Counterfoil-First-Claim")


def control_of(request):
    return {name: request.header(name) for name in NAMES}


def test_a_first_claim_is_attempt_1_fence_1_of_a_life_that_began_now(gateway, backend, key):
    before_ms = time.time() * 1000
    assert_first(gateway.post("/plain", key))
    after_ms = time.time() * 1000
    control = control_of(backend.wait(key))
    assert (control["Counterfoil-Attempt"], control["Counterfoil-Fence"]) == ("1", "1")
    assert before_ms - 2000 <= int(control["Counterfoil-First-Claim"]) <= after_ms + 2000


def test_lives_of_later_keys_do_not_go_back(gateway, backend):
    lives = []
    for _ in range(5):
        key = new_key()
        gateway.post("/plain", key)
        lives.append(int(backend.wait(key).header("Counterfoil-First-Claim")))
    assert lives == sorted(lives)


def test_after_a_failure_attempt_and_fence_grow_and_the_life_stays(gateway, backend, key):
    backend.script(key, Reply(500), Reply(429), Reply(201))
    assert [gateway.post("/plain", key).status for _ in range(4)] == [500, 429, 201, 201]
    controls = [control_of(request) for request in backend.of(key)]
    assert [control["Counterfoil-Attempt"] for control in controls] == ["1", "2", "3"]
    assert [control["Counterfoil-Fence"] for control in controls] == ["1", "2", "3"]
    assert len({control["Counterfoil-First-Claim"] for control in controls}) == 1


@pytest.mark.parametrize("spell", [str, str.lower, str.upper, lambda name: name.replace("-", "_")],
                         ids=["as is", "lower", "upper", "underscores"])
def test_forged_control_headers_never_reach_the_backend(gateway, backend, key, spell):
    forged = [(spell(name), "666") for name in NAMES]
    assert_first(gateway.post("/plain", key, headers=forged + forged))
    request = backend.wait(key)
    assert [value for name, value in request.headers if value == "666"] == []
    control = control_of(request)
    assert (control["Counterfoil-Attempt"], control["Counterfoil-Fence"]) == ("1", "1")
    assert int(control["Counterfoil-First-Claim"]) > 666


def test_the_clients_other_headers_and_target_reach_the_backend(gateway, backend, key):
    sent = [("X-One", "1"), ("Authorization", "Bearer x"), ("X-One", "2"), ("Cookie", "a=b")]
    gateway.post("/plain?a=%20b&c", key, b'{"x":1}', headers=sent)
    request = backend.wait(key)
    assert (request.method, request.target) == ("POST", "/plain?a=%20b&c")
    assert request.all("X-One") == ["1", "2"]
    assert request.header("Authorization") == "Bearer x"
    assert request.header("Cookie") == "a=b"
    assert request.header("Content-Type") == "application/json"
    assert request.header("Idempotency-Key").strip('"') == key
    assert request.body == b'{"x":1}'


def test_a_guarded_request_asks_the_backend_for_identity_encoding(gateway, backend, key):
    gateway.post("/plain", key, headers=[("Accept-Encoding", "gzip, br")])
    encoding = backend.wait(key).header("Accept-Encoding")
    assert encoding in (None, "", "identity")


def test_a_backends_own_replay_mark_is_not_doubled(gateway, backend, key):
    backend.script(key, Reply(201, [("Idempotent-Replayed", "true"), ("X-Kept", "yes")]))
    answer = gateway.post("/plain", key, headers=[("Idempotent-Replayed", "true")])
    assert answer.header("X-Kept") == "yes"
    again = gateway.post("/plain", key)
    assert again.all("Idempotent-Replayed") == ["true"]
    assert backend.executions(key) == 1
