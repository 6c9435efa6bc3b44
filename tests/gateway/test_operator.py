# SPDX-License-Identifier: Apache-2.0
"""An operator's commands over a running gateway: what is seen, what the next request then gets."""

import datetime
import json
import re

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, NOT_STORED, PENDING, UNKNOWN, assert_first, assert_problem,
                            assert_settled, is_replay, new_key)

POLICY = """
version: 1
tenant: {header: X-Tenant-Id, otherwise: none}
routes:
  - {name: plain, match: POST /plain}
  - {name: pay, match: "POST /orders/{id}/pay"}
  - {name: small, match: POST /small, snapshot: {max_body: 1B}}
"""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)")


def lose(gateway, backend, key):
    backend.script(key, Reply(fault="reset"), Reply(201, body=b"executed again"))
    assert gateway.post("/plain", key).status == 502
    assert_problem(gateway.post("/plain", key), UNKNOWN)


def moment(text):
    assert TIME.fullmatch(text), text
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_get_shows_a_settled_record(gateway, backend, key):
    backend.script(key, Reply(201, body=b"12345"))
    gateway.post("/orders/7/pay", key, headers=[("X-Tenant-Id", "acme")])
    record = gateway.record(key)
    assert re.fullmatch(r"[0-9a-f]{64}", record["id"])
    assert re.fullmatch(r"[0-9a-f]{64}", record["request_hash"])
    wanted = {"layer": "http", "tenant": "acme", "endpoint": "POST /orders/{}/pay", "key": key,
              "state": "SUCCEEDED", "attempt": 1, "fence": 1}
    assert {name: record[name] for name in wanted} == wanted
    assert (record["snapshot"]["status"], record["snapshot"]["body_bytes"]) == (201, 5)
    kept = moment(record["replay_until"]) - moment(record["life"])
    assert abs(kept - datetime.timedelta(hours=24)) < datetime.timedelta(seconds=30)
    assert moment(record["gone_at"]) >= moment(record["replay_until"])


@pytest.mark.parametrize("reply,state", [(Reply(422), "FAILED_FINAL"), (Reply(500), "FAILED"),
                                         (Reply(502), "IN_DOUBT")], ids=["422", "500", "502"])
def test_get_shows_the_state(gateway, backend, key, reply, state):
    backend.script(key, reply)
    gateway.post("/plain", key)
    assert gateway.record(key)["state"] == state


def test_get_shows_a_running_claim_and_its_lease(gateway, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    with gateway.send("/plain", key) as client:
        backend.wait(key)
        record = gateway.record(key)
        assert record["state"] == "PROCESSING"
        assert moment(record["lease_until"]) > moment(record["life"])
        reply.hold.set()
        client.read()
    assert gateway.record(key)["state"] == "SUCCEEDED"


def test_get_by_tenant_endpoint_and_key_finds_the_one_meant(gateway, key):
    for tenant in ("acme", "zeta"):
        assert_first(gateway.post("/plain", key, headers=[("X-Tenant-Id", tenant)]))
    shown = gateway.cli("get", "--tenant", "zeta", "--endpoint", "POST /plain", "--key", key,
                        "--json")
    record = json.loads(shown.stdout)
    assert (record["tenant"], record["key"]) == ("zeta", key)
    by_id = json.loads(gateway.cli("get", record["id"], "--json").stdout)
    assert by_id == record


def test_get_of_an_unknown_key_fails(gateway):
    assert gateway.cli("get", "--key", new_key(), "--json", check=False).returncode != 0


def test_list_prints_every_record_one_a_line(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    keys = {f"{key}-{number}" for number in range(25)}
    for each in keys:
        assert_first(gateway.post("/plain", each))
    lines = gateway.cli("list", "--json").stdout.splitlines()
    records = [json.loads(line) for line in lines]
    assert {record["key"] for record in records} == keys
    assert {record["state"] for record in records} == {"SUCCEEDED"}
    assert len(records) == len(keys)


def test_resolve_as_succeeded_makes_unknown_not_stored(gateway, backend, key):
    lose(gateway, backend, key)
    gateway.cli("resolve", "--key", key, "--state", "SUCCEEDED", "--reason", "seen in the books")
    assert_problem(gateway.post("/plain", key), NOT_STORED)
    assert_problem(gateway.post("/plain", key, b'{"other": 1}'), CONFLICT)
    assert backend.executions(key) == 1


def test_resolve_with_a_body_makes_unknown_a_replay(gateway, backend, key, tmp_path):
    lose(gateway, backend, key)
    (tmp_path / "body").write_bytes(b'{"order": 3}')
    gateway.cli("resolve", "--key", key, "--state", "SUCCEEDED", "--reason", "seen in the books",
                "--status", "202", "--body", str(tmp_path / "body"))
    answer = gateway.post("/plain", key)
    assert is_replay(answer)
    assert (answer.status, answer.body) == (202, b'{"order": 3}')
    assert backend.executions(key) == 1


def test_resolve_as_failed_lets_it_run_again(gateway, backend, key):
    lose(gateway, backend, key)
    gateway.cli("resolve", "--key", key, "--state", "FAILED", "--reason", "not in the books")
    again = gateway.post("/plain", key)
    assert_first(again)
    assert [r.header("Counterfoil-Attempt") for r in backend.of(key)] == ["1", "2"]
    assert_settled(gateway, backend, "/plain", key, again)


def test_resolve_as_failed_final_never_runs_again(gateway, backend, key):
    lose(gateway, backend, key)
    gateway.cli("resolve", "--key", key, "--state", "FAILED_FINAL", "--reason", "refused by hand")
    assert_problem(gateway.post("/plain", key), NOT_STORED)
    assert backend.executions(key) == 1


def test_release_of_a_record_in_doubt_lets_it_run_again(gateway, backend, key):
    lose(gateway, backend, key)
    gateway.cli("release", "--key", key)
    assert_problem(gateway.post("/plain", key, b'{"other": 1}'), CONFLICT)
    assert_first(gateway.post("/plain", key))
    assert backend.executions(key) == 2


def test_release_of_a_live_lease_is_refused(gateway, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    client = gateway.send("/plain", key)
    backend.wait(key)
    assert gateway.cli("release", "--key", key, check=False).returncode != 0
    assert_problem(gateway.post("/plain", key), PENDING)
    reply.hold.set()
    assert_first(client.read())
    assert backend.executions(key) == 1


def test_a_forced_release_refuses_the_owners_late_settle(gateway, backend, key):
    reply = backend.holding(body=b"from the released owner")
    backend.script(key, reply, Reply(201, body=b"from the next"))
    client = gateway.send("/plain", key)
    backend.wait(key)
    gateway.cli("release", "--key", key, "--force")
    again = gateway.post("/plain", key)
    assert_first(again)
    reply.hold.set()
    late = client.read()
    assert (late.status, late.body) == (201, b"from the released owner")
    assert_settled(gateway, backend, "/plain", key, again)
    assert again.body == b"from the next"
    assert backend.executions(key) == 2


def test_forget_makes_the_key_unknown(gateway, backend, key):
    assert_first(gateway.post("/plain", key))
    gateway.cli("forget", "--key", key)
    assert gateway.cli("get", "--key", key, "--json", check=False).returncode != 0
    again = gateway.post("/plain", key, b'{"other": 1}')
    assert_first(again)
    one, two = backend.of(key)
    assert two.header("Counterfoil-Attempt") == "1"
    assert int(two.header("Counterfoil-First-Claim")) >= int(one.header("Counterfoil-First-Claim"))
    assert_settled(gateway, backend, "/plain", key, again, body=b'{"other": 1}')


def test_a_record_without_a_snapshot_says_so(gateway, key):
    assert_first(gateway.post("/small", key))
    assert_problem(gateway.post_settled("/small", key), NOT_STORED)
    record = gateway.record(key)
    assert record["state"] == "SUCCEEDED"
    assert record.get("snapshot") is None
