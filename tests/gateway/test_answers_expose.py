# SPDX-License-Identifier: Apache-2.0
"""Access-Control-Expose-Headers: a browser's script of another origin may read our headers."""

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, MISSING, PENDING, assert_first, assert_problem, assert_replay,
                            is_replay)
from support.store_hands import Holder

POLICY = """
version: 1
tenant: none
routes:
  - {name: strict, match: POST /strict}
  - {name: loose, match: POST /loose, semantics: loose, messages: {on_replay: true}}
  - {name: needs, match: POST /needs, key: {required: true}, answers: envelope}
  - {name: open, match: POST /open, store_unavailable: open}
"""

EXPOSE = "Access-Control-Expose-Headers"
ORIGIN = [("Origin", "https://shop.example")]
OTHER = b'{"other": 1}'
JSON = ("Content-Type", "application/json")


def exposed(answer):
    """The names of the one header, in their order; None where there is none."""
    value = answer.header(EXPOSE)
    return None if value is None else [name.strip() for name in value.split(",")]


def replay_of(gateway, key, *headers, path="/strict", body=b"{}", origin=ORIGIN):
    """The replay of a first answer with these headers."""
    replay = gateway.post(path, key, body, headers=origin)
    assert is_replay(replay)
    for name, value in headers:
        assert value in ", ".join(replay.all(name))
    return replay


# Our own answers.

def test_a_pending_answer_exposes_retry_after(gateway, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    with gateway.send("/strict", key) as client:
        backend.wait(key)
        answer = gateway.post("/strict", key, headers=ORIGIN)
        reply.hold.set()
        client.read()
    assert_problem(answer, PENDING)
    assert exposed(answer) == ["Retry-After"]
    assert backend.executions(key) == 1


def test_an_answer_without_headers_of_ours_exposes_none(gateway, key):
    assert_first(gateway.post("/strict", key))
    answer = gateway.post("/strict", key, OTHER, headers=ORIGIN)
    assert_problem(answer, CONFLICT)
    assert exposed(answer) is None
    assert exposed(gateway.post("/needs", headers=ORIGIN)) is None


# Replays.

@pytest.mark.parametrize("origin", ["https://shop.example", "null", "http://127.0.0.1:8080"])
def test_a_replay_exposes_its_marks(gateway, key, origin):
    origin = [("origin", origin)]
    first = gateway.post("/strict", key, headers=origin)
    assert_first(first)
    assert exposed(first) is None
    replay = gateway.post("/strict", key, headers=origin)
    assert_replay(replay, first)
    assert exposed(replay) == ["Idempotent-Replayed"]


def test_every_mark_of_a_replay_is_exposed(gateway, key):
    assert_first(gateway.post("/loose", key))
    replay = gateway.post("/loose", key, OTHER, headers=ORIGIN)
    assert is_replay(replay)
    assert exposed(replay) == ["Idempotent-Replayed", "Counterfoil-Body", "Counterfoil-Message"]


def test_without_origin_nothing_changes(gateway, backend, key):
    backend.script(key, Reply(headers=[JSON, (EXPOSE, "X-Total")]))
    assert gateway.post("/loose", key).header(EXPOSE) == "X-Total"
    assert gateway.post("/loose", key).header(EXPOSE) == "X-Total"
    assert gateway.post("/loose", key, OTHER).header(EXPOSE) == "X-Total"
    assert gateway.post("/needs").header(EXPOSE) is None


@pytest.mark.parametrize("value,wanted", [
    ("X-Total", "X-Total, Idempotent-Replayed"),
    ("X-Total,ETag", "X-Total,ETag, Idempotent-Replayed"),
    ("X-Total, Idempotent-Replayed", "X-Total, Idempotent-Replayed"),
    ("idempotent-replayed", "idempotent-replayed"),
    ("X-Idempotent-Replayed", "X-Idempotent-Replayed, Idempotent-Replayed"),
    ("Idempotent-Replayed-At", "Idempotent-Replayed-At, Idempotent-Replayed"),
    ("*", "*"),
    ("X-Total, *", "X-Total, *"),
    ("*-Total", "*-Total, Idempotent-Replayed"),
    ("X-Total,", "X-Total, Idempotent-Replayed"),
])
def test_the_backends_header_is_extended_and_not_doubled(gateway, backend, key, value, wanted):
    backend.script(key, Reply(headers=[JSON, (EXPOSE, value)]))
    assert gateway.post("/strict", key, headers=ORIGIN).header(EXPOSE) == value
    for _ in range(2):
        assert replay_of(gateway, key).header(EXPOSE) == wanted
    stored = dict(gateway.record(key)["snapshot"]["headers"])
    assert stored[EXPOSE] == value
    assert replay_of(gateway, key, origin=()).header(EXPOSE) == value


def test_an_empty_header_of_the_backend_is_filled(gateway, backend, key):
    backend.script(key, Reply(headers=[JSON, (EXPOSE, "")]))
    gateway.post("/strict", key, headers=ORIGIN)
    values = [value for value in replay_of(gateway, key).all(EXPOSE) if value]
    assert values == ["Idempotent-Replayed"]


@pytest.mark.parametrize("first,second,wanted", [
    ("X-A", "X-B", ["X-A", "X-B, Idempotent-Replayed"]),
    ("Idempotent-Replayed", "X-B", ["Idempotent-Replayed", "X-B"]),
    ("*", "X-B", ["*", "X-B"]),
])
def test_of_two_lines_the_last_is_extended(gateway, backend, key, first, second, wanted):
    backend.script(key, Reply(headers=[JSON, (EXPOSE, first), (EXPOSE, second)]))
    gateway.post("/strict", key, headers=ORIGIN)
    assert replay_of(gateway, key).all(EXPOSE) == wanted


def test_the_backends_own_retry_after_is_its_own_to_expose(gateway, backend, key):
    backend.script(key, Reply(status=404, headers=[JSON, ("Retry-After", "7")]))
    gateway.post("/strict", key, headers=ORIGIN)
    replay = replay_of(gateway, key, ("Retry-After", "7"))
    assert exposed(replay) == ["Idempotent-Replayed"]


def test_however_many_headers_are_named_like_ours_each_is_exposed_once(gateway, backend, key):
    names = [f"Counterfoil-X-{number}" for number in range(40)]
    headers = [(name, "1") for name in names + names[:3]]
    backend.script(key, Reply(headers=[JSON, *headers]))
    first = gateway.post("/strict", key, headers=ORIGIN)
    assert exposed(first) == names
    assert exposed(replay_of(gateway, key)) == names + ["Idempotent-Replayed"]
    assert EXPOSE not in dict(gateway.record(key)["snapshot"]["headers"])


def test_a_request_of_no_route_is_left_alone(gateway, backend, key):
    backend.script(key, Reply(headers=[JSON, ("Counterfoil-Body", "x"), (EXPOSE, "X-A")]))
    answer = gateway.post("/nowhere", key, headers=ORIGIN)
    assert answer.header(EXPOSE) == "X-A"
    assert backend.executions(key) == 1


# First executions with a mark of ours.

@pytest.fixture
def stuck(new_nginx, backend):
    """A gateway whose store can be made to hang."""
    server = new_nginx(f"location / {{ counterfoil on; proxy_pass {backend.url}; }}",
                       http="counterfoil_settle_wait 1s;", policy=POLICY)
    server.store_dir = server.directory / "store"
    server.allow_log(r"(?i)store|mdb")
    return server


@pytest.mark.parametrize("value,wanted", [(None, "Counterfoil-Unprotected"),
                                          ("X-Total", "X-Total, Counterfoil-Unprotected")])
def test_an_unprotected_execution_exposes_its_mark_and_keeps_it_out_of_the_snapshot(
        stuck, backend, key, value, wanted):
    headers = [JSON] + ([(EXPOSE, value)] if value else [])
    backend.script(key, Reply(headers=headers))
    with Holder(stuck.store_dir) as holder:
        answer = stuck.post("/open", key, headers=ORIGIN, timeout_s=6.0)
        assert_first(answer)
        assert answer.header("Counterfoil-Unprotected") == "store"
        assert answer.header(EXPOSE) == wanted
        holder.release()
    replay = stuck.post_until(is_replay, "it is replayed", "/open", key)[-1]
    assert replay.header("Counterfoil-Unprotected") is None
    assert replay.header(EXPOSE) == value
    assert backend.executions(key) == 1


def test_an_answer_whose_settle_is_not_confirmed_exposes_its_mark(stuck, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    with stuck.send("/open", key, headers=ORIGIN) as client:
        backend.wait(key)
        with Holder(stuck.store_dir) as holder:
            reply.hold.set()
            answer = client.read(timeout_s=6.0)
            assert_first(answer)
            assert answer.header("Counterfoil-Unprotected") == "settle"
            assert exposed(answer) == ["Counterfoil-Unprotected"]
            holder.release()
    replay = stuck.post_until(is_replay, "it is replayed", "/open", key, headers=ORIGIN)[-1]
    assert exposed(replay) == ["Idempotent-Replayed"]
    assert backend.executions(key) == 1


def test_a_refusal_instead_of_a_held_answer_exposes_retry_after(stuck, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    with stuck.send("/strict", key, headers=ORIGIN) as client:
        backend.wait(key)
        with Holder(stuck.store_dir) as holder:
            reply.hold.set()
            answer = client.read(timeout_s=6.0)
            assert answer.status == 503
            assert exposed(answer) == ["Retry-After"]
            holder.release()
    assert backend.executions(key) == 1


def test_the_names_of_an_envelope_are_exposed_like_those_of_a_problem(gateway, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    with gateway.send("/needs", key) as client:
        backend.wait(key)
        answer = gateway.post("/needs", key, headers=ORIGIN)
        reply.hold.set()
        client.read()
    assert answer.json()["code"] == 4090
    assert exposed(answer) == ["Retry-After"]
    assert MISSING not in str(answer.body)
