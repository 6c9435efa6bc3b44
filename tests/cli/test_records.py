# SPDX-License-Identifier: Apache-2.0
"""The commands on records: how one is named, what is shown, what is refused. What an act does to the
next request is in tests/gateway/test_operator.py."""

import hashlib
import json
import os
import pty
import re
import signal
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from support.backend import Reply
from support.expect import (NOT_STORED, STORE_UNAVAILABLE, assert_first, assert_problem, is_replay,
                            new_key)
from support.server import BUILD
from support.store_hands import Holder
from support.waiting import until

POLICY = """
version: 1
tenant: {header: X-Tenant-Id, otherwise: authorization}
routes:
  - {name: plain, match: POST /plain}
  - {name: pay, match: "POST /orders/{id}/pay"}
  - {name: brief, match: POST /brief, lease: 100ms, retention: {ttl: 300ms, tombstone: 0, failed: 300ms}}
"""


def named(value):
    return [("X-Tenant-Id", value)]


def lose(gateway, backend, key):
    backend.script(key, Reply(fault="reset"), Reply(201))
    assert gateway.post("/plain", key).status == 502


def rows(gateway, *arguments):
    return [json.loads(line) for line in gateway.cli("list", "--json", *arguments).stdout.splitlines()]


def test_an_id_is_the_digest_of_the_framed_scope(gateway, key):
    """Layer, kind, class of tenant, tenant, endpoint, key: each with its length, so that others can
    compute ids too."""
    assert_first(gateway.post("/orders/7/pay", key, headers=named("acme")))

    def part(text, width):
        data = text.encode()
        return len(data).to_bytes(width, "big") + data

    frame = (b"\x01" + part("http", 1) + b"\x01\x01" + part("acme", 4) +
             part("POST /orders/{}/pay", 4) + part(key, 4))
    record = json.loads(gateway.cli("get", hashlib.sha256(frame).hexdigest(), "--json").stdout)
    assert record["key"] == key


def test_one_key_of_several_records_has_to_be_named_better(gateway, key):
    for tenant in ("a", "b"):
        assert_first(gateway.post("/plain", key, headers=named(tenant)))
    shown = gateway.cli("get", "--key", key, check=False)
    assert shown.returncode == 1
    ids = re.findall(r"^  ([0-9a-f]{64})$", shown.stderr, re.M)
    assert sorted(ids) == sorted(row["id"] for row in rows(gateway, "--key", key))
    assert json.loads(gateway.cli("get", "--key", key, "--tenant", "b", "--json").stdout)["tenant"] == "b"
    refused = gateway.cli("forget", "--key", key, check=False)
    assert refused.returncode == 1
    assert len(rows(gateway, "--key", key)) == 2


def test_an_authorization_tenant_is_named_as_it_is_shown(gateway, key):
    assert_first(gateway.post("/plain", key, headers=[("Authorization", "Bearer s3cret")]))
    [row] = rows(gateway, "--key", key)
    assert re.fullmatch("auth:[0-9a-f]{64}", row["tenant"])
    shown = gateway.cli("get", "--tenant", row["tenant"], "--endpoint", "POST /plain", "--key", key,
                        "--json")
    assert json.loads(shown.stdout)["id"] == row["id"]


def test_the_anonymous_tenant_is_a_dash(gateway, key):
    assert_first(gateway.post("/plain", key))
    [row] = rows(gateway, "--key", key)
    assert row["tenant"] is None
    shown = gateway.cli("get", "--tenant", "-", "--endpoint", "POST /plain", "--key", key, "--json")
    assert json.loads(shown.stdout)["id"] == row["id"]


@pytest.mark.parametrize("arguments,words", [
    ([], "which record?"),
    (["abc"], "64 hex digits"),
    (["0" * 64, "--key", "k"], "not by both"),
    (["--tenant", "t", "--endpoint", "e"], "which record?"),
    (["--tenant", "t", "--endpoint", "e", "--key", "k" * 256], "255"),
])
def test_a_record_that_is_not_named(gateway, arguments, words):
    for command in ("get", "release", "forget"):
        shown = gateway.cli(command, *arguments, check=False)
        assert shown.returncode == 2
        assert words in shown.stderr


@pytest.mark.parametrize("command,more", [
    ("get", []), ("forget", []), ("release", []),
    ("resolve", ["--state", "FAILED", "--reason", "r"]),
])
def test_a_record_that_is_not_there(gateway, command, more):
    for name in (["--key", new_key()], ["ab" * 32],
                 ["--tenant", "t", "--endpoint", "POST /x", "--key", "k"]):
        shown = gateway.cli(command, *name, *more, check=False)
        assert shown.returncode == 1, name
        assert "no" in shown.stderr and "record" in shown.stderr


def test_a_store_that_is_not_there(run):
    for command in (["get", "--key", "k"], ["list"], ["sweep"], ["forget", "--key", "k"]):
        shown = run(*command, "--store", "lmdb:nowhere")
        assert shown.returncode == 3
        assert "nowhere" in shown.stderr and "there is no store here" in shown.stderr
    assert run("list", "--store", "postgres://x").returncode == 2


def test_a_store_that_is_not_there_is_said_once(run):
    said = run("list", "--store", "lmdb:nowhere?map_size=1GiB").stderr
    assert said == ("counterfoil: lmdb:nowhere?map_size=1GiB: there is no store here, and none is made at "
                    "this point\n")


@pytest.mark.parametrize("command", [["list"], ["get", "--key", "k"], ["forget", "--key", "k"], ["sweep"]])
def test_the_memory_of_another_process_is_no_store_to_look_into(run, command):
    """It would always look empty, as if no key were known."""
    shown = run(*command, "--store", "memory:")
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert "--store memory:" in shown.stderr and "lmdb:DIR" in shown.stderr


@pytest.mark.parametrize("digits", ["", "ab12", "0" * 63, "0" * 65, "A" * 64, "g" * 64])
def test_a_shortened_authorization_tenant_is_refused(gateway, key, digits):
    """A table shows the beginning of the digits; taken for a whole tenant it would name no record."""
    assert_first(gateway.post("/plain", key, headers=[("Authorization", "Bearer s3cret")]))
    for command in (["list"], ["get", "--key", key], ["forget", "--key", key],
                    ["get", "--key", key, "--endpoint", "POST /plain"]):
        shown = gateway.cli(*command, "--tenant", f"auth:{digits}", check=False)
        assert shown.returncode == 2, command
        assert "64" in shown.stderr and "--json" in shown.stderr
    assert len(rows(gateway, "--key", key)) == 1


def test_looking_at_records_creates_nothing(run, tmp_path):
    run("list", "--store", "lmdb:nowhere")
    run("sweep", "--store", "lmdb:nowhere")
    assert not os.listdir(tmp_path)


def test_get_for_people(gateway, backend, key):
    backend.script(key, Reply(201, headers=[("Location", "/orders/1")], body=b"12345"))
    gateway.post("/orders/7/pay", key, headers=named("acme"))
    shown = gateway.cli("get", "--key", key).stdout
    for words in ["SUCCEEDED", "acme", "POST /orders/{}/pay", key, "status 201, body of 5 bytes",
                  "Location: /orders/1"]:
        assert words in shown, words
    assert "\033" not in shown


def test_get_says_what_to_do_in_doubt(gateway, backend, key):
    lose(gateway, backend, key)
    shown = gateway.cli("get", "--key", key).stdout
    assert "counterfoil resolve" in shown and "counterfoil release" in shown


def test_get_says_why_it_is_in_doubt(gateway, backend, key):
    lose(gateway, backend, key)
    assert re.search("^cause +backend_closed$", gateway.cli("get", "--key", key).stdout, re.M)
    settled = new_key()
    assert_first(gateway.post("/plain", settled))
    assert "cause" not in gateway.cli("get", "--key", settled).stdout


def test_get_says_that_a_lease_is_over(new_gateway, backend, key):
    gateway = new_gateway(POLICY.replace("ttl: 300ms", "ttl: 1h"))
    reply = backend.holding()
    backend.script(key, reply)
    client = gateway.send("/brief", key)
    gateway.kill(gateway.worker_of(backend.wait(key)))
    until(lambda: gateway.record(key)["state"] == "IN_DOUBT", "the lease is over")
    assert re.search("^cause +.*lease is over", gateway.cli("get", "--key", key).stdout, re.M)
    reply.hold.set()
    client.close()


def test_get_promises_a_replay_only_where_there_is_one(gateway, backend, key):
    """SUCCEEDED and FAILED_FINAL replay; FAILED runs again, PROCESSING waits."""
    def shown(of):
        return gateway.cli("get", "--key", of).stdout

    keys = {status: new_key() for status in (201, 422, 429)}
    for status, of in keys.items():
        backend.script(of, Reply(status))
        gateway.post("/plain", of)
    reply = backend.holding()
    backend.script(key, reply)
    client = gateway.send("/plain", key)
    backend.wait(key)
    for of in (keys[201], keys[422]):
        assert "replays until" in shown(of) and "kept until" not in shown(of)
    for of in (keys[429], key):
        assert "kept until" in shown(of) and "replays until" not in shown(of)
    reply.hold.set()
    assert_first(client.read())


def test_headers_are_pairs_in_their_order(gateway, backend, key):
    links = [("Link", "<a>; rel=\"x, y\""), ("X-A", "1"), ("Link", "<b>")]
    backend.script(key, Reply(201, headers=links + [("Set-Cookie", "no=1")]))
    gateway.post("/plain", key)
    headers = gateway.record(key)["snapshot"]["headers"]
    assert [pair for pair in headers if pair[0] in ("Link", "X-A", "Set-Cookie")] == \
        [list(pair) for pair in links]


def test_bytes_that_are_not_text_are_shown_safely(gateway, backend, key):
    backend.script(key, Reply(201, headers=[("X-Odd", "a\x9b\xffb")]))
    gateway.post("/plain", key)
    headers = dict(gateway.record(key)["snapshot"]["headers"])
    assert headers["X-Odd"] == "a\ufffd\ufffdb"
    assert "X-Odd: a??b" in gateway.cli("get", "--key", key).stdout


def test_json_holds_delete_and_c1_controls_as_escapes(gateway, backend, key):
    """JSON may hold them as they are; a terminal may obey them."""
    backend.script(key, Reply(201, headers=[("X-Odd", "a\xc2\x80\xc2\x9b31m\xc2\x9f\x7f\xc2\xa0b")]))
    gateway.post("/plain", key)
    for arguments in (["list"], ["get", "--key", key]):
        text = gateway.cli(*arguments, "--json").stdout
        assert r"a\u0080\u009b31m\u009f\u007f" + "\xa0b" in text
    assert dict(gateway.record(key)["snapshot"]["headers"])["X-Odd"] == \
        "a\x80\x9b31m\x9f\x7f\xa0b"


def test_list_filters(new_gateway, backend):
    gateway = new_gateway(POLICY)
    keys = [new_key() for _ in range(4)]
    gateway.post("/plain", keys[0], headers=named("a"))
    gateway.post("/plain", keys[1], headers=named("b"))
    gateway.post("/orders/1/pay", keys[2], headers=named("a"))
    lose(gateway, backend, keys[3])

    def found(*arguments):
        return {row["key"] for row in rows(gateway, *arguments)}

    assert found() == set(keys)
    assert found("--tenant", "a") == {keys[0], keys[2]}
    assert found("--endpoint", "POST /orders/{}/pay") == {keys[2]}
    assert found("--key", keys[1]) == {keys[1]}
    assert found("--state", "IN_DOUBT") == {keys[3]}
    assert found("--state", "SUCCEEDED", "--tenant", "b") == {keys[1]}
    assert found("--layer", "http") == set(keys)
    assert found("--layer", "app") == set()
    assert len(rows(gateway, "--limit", "3")) == 3


def test_list_for_people(new_gateway):
    gateway = new_gateway(POLICY)
    assert gateway.cli("list").stdout == "no records\n"
    for number in range(3):
        gateway.post("/plain", f"key-{number}", headers=named("acme"))
    lines = gateway.cli("list").stdout.splitlines()
    assert lines[0].split() == ["STATE", "TENANT", "ENDPOINT", "KEY", "FIRST", "CLAIM", "ID"]
    assert len(lines) == 4
    assert all(line.startswith("SUCCEEDED    acme ") and re.search("[0-9a-f]{64}$", line)
               for line in lines[1:])
    cut = gateway.cli("list", "--limit", "2").stdout.splitlines()
    assert len(cut) == 4 and "--limit" in cut[-1]


@pytest.mark.parametrize("arguments", [["--state", "succeeded"], ["--state", "NONE"], ["--limit", "0"],
                                       ["--limit", "many"]])
def test_list_refuses_what_it_does_not_know(run, arguments):
    shown = run("list", "--store", "lmdb:nowhere", *arguments)
    assert shown.returncode == 2
    assert arguments[0] in shown.stderr


def on_terminal(gateway, key, **env):
    """What `get` prints on a terminal."""
    ours, theirs = pty.openpty()
    command = [gateway.command()[0], "get", "--store", gateway.store_url, "--key", key]
    done = subprocess.run(command, stdout=theirs, env={"TERM": "xterm", **env}, timeout=20, check=True)
    assert done.returncode == 0
    os.close(theirs)
    data = b""
    try:
        while block := os.read(ours, 65536):
            data += block
    except OSError:
        pass  # a terminal nobody writes to any more ends with an error
    os.close(ours)
    return data


def test_colour_on_a_terminal_unless_it_is_not_wanted(gateway, key):
    gateway.post("/plain", key)
    assert b"\033[32mSUCCEEDED\033[0m" in on_terminal(gateway, key)
    assert b"\033" not in on_terminal(gateway, key, NO_COLOR="1")
    assert b"\033" in on_terminal(gateway, key, NO_COLOR="")


@pytest.mark.parametrize("arguments,words", [
    ([], "--state must be"),
    (["--state", "IN_DOUBT", "--reason", "r"], "--state must be"),
    (["--state", "SUCCEEDED"], "--reason TEXT is needed"),
    (["--state", "SUCCEEDED", "--reason", ""], "--reason TEXT is needed"),
    (["--state", "SUCCEEDED", "--reason", "r", "--body", "b"], "--status"),
    (["--state", "SUCCEEDED", "--reason", "r", "--status", "99"], "--status"),
    (["--state", "SUCCEEDED", "--reason", "r", "--status", "201", "--body", "nowhere"], "nowhere"),
    (["--state", "SUCCEEDED", "--reason", "r", "--status", "201", "--header", "no colon"], "Location:"),
    (["--state", "SUCCEEDED", "--reason", "r", "--status", "201", "--header", "A: b\r\nC: d"], "one line"),
    (["--state", "SUCCEEDED", "--reason", "r", "--resource", "order"], "TYPE/ID"),
    (["--state", "FAILED", "--reason", "r", "--status", "201"], "nothing is replayed"),
])
def test_resolve_refuses_half_an_answer(gateway, backend, key, arguments, words):
    lose(gateway, backend, key)
    shown = gateway.cli("resolve", "--key", key, *arguments, check=False)
    assert shown.returncode == 2
    assert words in shown.stderr
    assert gateway.record(key)["state"] == "IN_DOUBT"


def test_resolve_keeps_reason_resource_and_headers(gateway, backend, key, tmp_path):
    lose(gateway, backend, key)
    (tmp_path / "body").write_bytes(b'{"id": 123}')
    done = gateway.cli("resolve", "--key", key, "--state", "SUCCEEDED", "--reason", "seen, n° 123",
                       "--status", "201", "--body", tmp_path / "body", "--header",
                       "Location: /orders/123", "--resource", "order/123", "--json")
    record = gateway.record(key)
    assert json.loads(done.stdout) == {"id": record["id"], "done": "resolved"}
    assert (record["state"], record["reason"]) == ("SUCCEEDED", "seen, n° 123")
    assert record["resource"] == {"type": "order", "id": "123"}
    answer = gateway.post("/plain", key)
    assert is_replay(answer)
    assert (answer.status, answer.body) == (201, b'{"id": 123}')
    assert answer.header("Location") == "/orders/123"
    assert answer.header("Content-Type") == "application/json"


def test_resolve_warns_that_a_failure_without_a_status_reads_as_done(gateway, backend, key):
    """The answer for what is settled without a response says "Already done", which a failure is not."""
    lose(gateway, backend, key)
    done = gateway.cli("resolve", "--key", key, "--state", "FAILED_FINAL", "--reason", "r", "--json")
    assert json.loads(done.stdout)["done"] == "resolved"
    [line] = done.stderr.splitlines()
    for words in ("warning", "IDEMPOTENCY_RESPONSE_NOT_STORED", "Already done", "--status", "--body"):
        assert words in line, words
    assert_problem(gateway.post("/plain", key), NOT_STORED)


@pytest.mark.parametrize("arguments", [["--state", "FAILED_FINAL", "--status", "422"],
                                       ["--state", "SUCCEEDED"], ["--state", "FAILED"]])
def test_resolve_does_not_warn_where_the_answer_is_true(gateway, backend, key, arguments):
    lose(gateway, backend, key)
    assert gateway.cli("resolve", "--key", key, *arguments, "--reason", "r").stderr == ""


def test_resolve_keeps_the_record_as_long_as_its_claim_was_to_be(new_gateway, backend, key):
    gateway = new_gateway(POLICY.replace("match: POST /plain",
                                         "match: POST /plain, retention: {ttl: 3h, tombstone: 2d}"))
    lose(gateway, backend, key)
    gateway.cli("resolve", "--key", key, "--state", "SUCCEEDED", "--reason", "r")
    times = gateway.record(key)
    assert seconds(times["updated"], times["replay_until"]) == pytest.approx(3 * 3600, abs=1)
    assert seconds(times["replay_until"], times["gone_at"]) == pytest.approx(2 * 86400, abs=1)


def seconds(one, other):
    times = [datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (one, other)]
    return (times[1] - times[0]).total_seconds()


def test_what_is_settled_is_not_resolved_or_released(gateway, key):
    assert_first(gateway.post("/plain", key))
    for command in (["release"], ["resolve", "--state", "FAILED", "--reason", "r"]):
        shown = gateway.cli(*command, "--key", key, check=False)
        assert shown.returncode == 1
        assert "SUCCEEDED already" in shown.stderr


def test_a_live_lease_is_named_with_its_end(gateway, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    client = gateway.send("/plain", key)
    backend.wait(key)
    shown = gateway.cli("release", "--key", key, check=False)
    assert shown.returncode == 1
    assert re.search(r"live until \d{4}-\d\d-\d\dT", shown.stderr) and "--force" in shown.stderr
    assert gateway.cli("resolve", "--key", key, "--state", "FAILED", "--reason", "r",
                       check=False).returncode == 1
    reply.hold.set()
    assert_first(client.read())


def corrupt(gateway, key):
    """Changes the stored record's key text, wherever the store's file holds it."""
    path = gateway.store_dir / "data.mdb"
    data = path.read_bytes()
    assert key.encode() in data
    path.write_bytes(data.replace(key.encode(), key.encode()[:-1] + b"!"))


def test_a_record_that_cannot_be_read_is_listed_and_can_be_forgotten(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    other = new_key()
    assert_first(gateway.post("/plain", other))
    assert_first(gateway.post("/plain", key))
    ident = gateway.record(key)["id"]
    gateway.stop()
    corrupt(gateway, key)

    found = {row["id"]: row for row in rows(gateway)}
    assert len(found) == 2
    assert (found[ident]["state"], found[ident]["error"]) == ("CORRUPT", "RECORD_CORRUPT")
    assert [row["id"] for row in rows(gateway, "--state", "CORRUPT")] == [ident]
    assert [row["key"] for row in rows(gateway, "--tenant", "-")] == [other]
    assert re.search(rf"^CORRUPT .* {ident}$", gateway.cli("list").stdout, re.M)
    shown = gateway.cli("get", ident, "--json", check=False)
    assert shown.returncode == 1 and json.loads(shown.stdout)["state"] == "CORRUPT"
    assert "forget" in gateway.cli("release", ident, check=False).stderr

    gateway.start()
    assert_problem(gateway.post("/plain", key), STORE_UNAVAILABLE)
    gateway.cli("forget", ident)
    assert_first(gateway.post("/plain", key))
    assert backend.executions(key) == 2


def test_sweep_removes_what_is_gone_and_nothing_else(new_gateway, key):
    gateway = new_gateway(POLICY)
    assert_first(gateway.post("/plain", key))
    gateway.stop()
    kept = json.loads(gateway.cli("sweep", "--json").stdout)
    assert kept == {"examined": 1, "removed": 0}
    gateway.cli("forget", "--key", key)
    until(lambda: not rows(gateway), "the forgotten record is gone")
    assert json.loads(gateway.cli("sweep", "--json").stdout) == {"examined": 1, "removed": 1}
    assert gateway.cli("sweep").stdout == "0 looked at, 0 removed\n"


def test_not_stored_tells_people_so(gateway, backend, key):
    lose(gateway, backend, key)
    gateway.cli("resolve", "--key", key, "--state", "SUCCEEDED", "--reason", "r")
    assert "snapshot" not in gateway.cli("get", "--key", key).stdout
    assert_problem(gateway.post("/plain", key), NOT_STORED)


def test_a_store_that_hangs_keeps_nobody_from_looking_and_an_act_can_be_given_up(gateway, key):
    """Whoever acts waits for the lock, as long as it takes; given up, nothing was done."""
    assert_first(gateway.post("/plain", key))
    with Holder(gateway.store_dir) as holder:
        assert [row["state"] for row in rows(gateway, "--key", key)] == ["SUCCEEDED"]
        assert gateway.record(key)["state"] == "SUCCEEDED"
        command = [BUILD / "counterfoil", "forget", "--store", gateway.store_url, "--key", key]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as acting:
            until(lambda: waits_for_a_lock(acting.pid), "it waits for the lock")
            acting.send_signal(signal.SIGINT)
            assert acting.communicate(timeout=10) == (b"", b"")
            assert acting.returncode == -signal.SIGINT
        holder.release()
    assert gateway.record(key)["state"] == "SUCCEEDED"
    gateway.cli("forget", "--key", key)
    assert rows(gateway, "--key", key) == []


def waits_for_a_lock(pid):
    """It has one thread, and nothing else to wait for there."""
    return "futex" in Path(f"/proc/{pid}/wchan").read_text(encoding="ascii")
