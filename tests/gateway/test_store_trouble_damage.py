# SPDX-License-Identifier: Apache-2.0
"""Damaged records, records of a newer version, stores of another format: refused and said so, never
an execution (R6), and an operator can end it."""

import json
import random
import struct

import pytest

from support import record_bytes
from support.backend import Reply
from support.expect import (PENDING, STORE_UNAVAILABLE, UNKNOWN, assert_first, assert_problem,
                            assert_replay, assert_settled, code_of, is_replay, new_key)
from support.store_hands import FORMAT_KEY, META, opened
from support.waiting import until

POLICY = """
version: 1
tenant: {header: X-Tenant-Id, otherwise: none}
defaults: {lease: 2s}
routes:
  - {name: closed, match: POST /closed}
  - {name: open, match: POST /open, store_unavailable: open}
"""
GATEWAY = {"workers": 1}
SEED = 20240611


@pytest.fixture(autouse=True)
def the_log_may_say_so(gateway):
    gateway.allow_log(r"(?i)store|record")


class Record:
    """A settled key and its bytes in the store, which the test replaces."""

    def __init__(self, gateway, key):
        self.gateway, self.key = gateway, key
        self.id = gateway.record(key)["id"]
        with opened(gateway.store_dir) as store:
            self.database, self.bytes = store.where(self.id)

    def write(self, data):
        with opened(self.gateway.store_dir) as store:
            store.put(self.database, bytes.fromhex(self.id), data)

    def restore(self):
        self.write(self.bytes)


@pytest.fixture
def record(gateway, backend, key):
    """A record with every field a client can fill: a tenant, an answer with headers and a body."""
    backend.script(key, Reply(201, [("Content-Type", "text/plain"), ("X-Kept", "yes")], b"first"),
                   Reply(201, body=b"a second execution"))
    first = gateway.post("/closed", key, headers=[("X-Tenant-Id", "acme")])
    assert_first(first)
    made = Record(gateway, key)
    made.first = first
    return made


def ask(record, path="/closed"):
    return record.gateway.post(path, record.key, headers=[("X-Tenant-Id", "acme")])


def assert_refused(record, backend, what):
    answer = ask(record)
    assert code_of(answer) == STORE_UNAVAILABLE, f"{what}: {answer.status} {answer.body[:100]}"
    assert_problem(answer, STORE_UNAVAILABLE)
    assert backend.executions(record.key) == 1, what


def assert_replays_again(record, backend):
    record.restore()
    answer = ask(record)
    assert is_replay(answer)
    assert answer.body == record.first.body
    assert backend.executions(record.key) == 1


def test_any_byte_that_is_not_what_was_written_refuses_the_key(record, backend):
    """Each byte of the header and of each tagged field, all bits of it turned over."""
    seen = set()
    for offset in range(len(record.bytes)):
        what = f"byte {offset}, {record_bytes.part_of(record.bytes, offset)}"
        seen.add(what.split(", ")[1])
        record.write(record_bytes.flipped(record.bytes, offset))
        assert_refused(record, backend, what)
    assert set(record_bytes.PARTS) <= seen
    assert len([part for part in seen if part.startswith("field")]) > 10
    assert_replays_again(record, backend)


def test_a_single_bit_is_enough(record, backend):
    chooser = random.Random(SEED)
    print(f"seed {SEED}")
    for _ in range(200):
        offset, bit = chooser.randrange(len(record.bytes)), chooser.randrange(8)
        record.write(record_bytes.flipped(record.bytes, offset, 1 << bit))
        assert_refused(record, backend, f"bit {bit} of byte {offset}")
    assert_replays_again(record, backend)


def test_a_record_of_another_length_refuses_the_key(record, backend):
    lengths = [0, 1, 3, 4, 15, 16, 111, 112, 113, len(record.bytes) - 1]
    for length in lengths:
        record.write(record.bytes[:length])
        assert_refused(record, backend, f"cut to {length} bytes")
    for more in (b"\0", bytes(100)):
        record.write(record.bytes + more)
        assert_refused(record, backend, f"{len(more)} bytes more")
    assert_replays_again(record, backend)


def mistakes(data):
    """{what: bytes} of records whose checksums are right and which no version ever wrote."""
    fields = record_bytes.fields(data)
    frames = b"".join(struct.pack("<HI", tag, len(text)) + text for tag, text in fields)
    at = record_bytes
    return {
        "an unknown state": at.with_byte(data, at.STATE_AT, 99),
        "a state that no record has": at.with_byte(data, at.STATE_AT, 255),
        "an unknown form": at.with_byte(data, at.FORM_AT, 7),
        "an unknown cause": at.with_byte(data, at.CAUSE_AT, 99),
        "a time that was never stamped": at.with_byte(data, at.TIME_FORMS_AT, 1),
        "generation 0": at.sealed(data[:16] + bytes(8) + data[24:]),
        "a generation beyond 63 bits": at.sealed(data[:16] + b"\xff" * 8 + data[24:]),
        "fields in another order": at.with_fields(data, list(reversed(fields))),
        "a field twice": at.with_fields(data, [fields[0], *fields]),
        "a field longer than the record": at.sealed(
            data[:112] + frames[:2] + b"\xff\xff\xff\x7f" + frames[6:]),
        "half a field's frame": at.sealed(data + b"\xfe\x7f\1"),
        "an unknown critical field": at.with_fields(data, [*fields, (0xFFFE, b"?")]),
    }


def test_well_sealed_nonsense_refuses_the_key(record, backend):
    for what, data in mistakes(record.bytes).items():
        record.write(data)
        assert_refused(record, backend, what)
    assert_replays_again(record, backend)


def test_a_record_that_lacks_what_may_be_optional_is_never_executed(record, backend):
    """Each field in turn, all of them, or the reserved byte: replayed, refused, or a conflict."""
    fields = record_bytes.fields(record.bytes)
    lacking = [record_bytes.with_fields(record.bytes, fields[:index] + fields[index + 1:])
               for index in range(len(fields))]
    lacking.append(record_bytes.with_fields(record.bytes, []))
    lacking.append(record_bytes.with_byte(record.bytes, record_bytes.RESERVED_AT, 1))
    for data in lacking:
        record.write(data)
        answer = ask(record)
        assert answer.status in (201, 409, 503)
        assert answer.status != 201 or is_replay(answer)
        assert backend.executions(record.key) == 1
    assert_replays_again(record, backend)


def test_an_unknown_optional_field_is_passed_over(record, backend):
    fields = record_bytes.fields(record.bytes)
    record.write(record_bytes.with_fields(record.bytes, [*fields, (0x7FFE, b"from a later one")]))
    answer = ask(record)
    assert is_replay(answer)
    assert answer.body == record.first.body
    assert backend.executions(record.key) == 1


def test_a_record_of_a_newer_version_refuses_its_key_only(record, backend):
    for version in (0, 2, 255):
        record.write(record_bytes.with_byte(record.bytes, record_bytes.VERSION_AT, version))
        assert_refused(record, backend, f"version {version}")
    assert_first(record.gateway.post("/closed", new_key()))
    assert_replays_again(record, backend)


DAMAGES = {
    "a flipped byte": lambda data: record_bytes.flipped(data, len(data) - 1),
    "a newer version": lambda data: record_bytes.with_byte(data, record_bytes.VERSION_AT, 2),
    "an unknown critical field": lambda data: record_bytes.with_fields(
        data, [*record_bytes.fields(data), (0xFFFE, b"?")]),
    "nothing left": lambda data: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_operator_finds_a_damaged_record_and_ends_it(record, backend, damage):
    gateway = record.gateway
    record.write(damage(record.bytes))
    assert_refused(record, backend, "damaged")
    lines = gateway.cli("list", "--state", "CORRUPT", "--json").stdout.splitlines()
    assert record.id in [json.loads(line)["id"] for line in lines]
    assert gateway.cli("get", record.id, "--json", check=False).returncode == 1
    for command in (["release", record.id, "--force"],
                    ["resolve", record.id, "--state", "SUCCEEDED", "--reason", "guessed"]):
        assert gateway.cli(*command, check=False).returncode == 1, "only forget ends it"
    assert_refused(record, backend, "after commands that do not help")
    gateway.cli("forget", record.id)
    again = ask(record)
    assert_first(again)
    assert backend.executions(record.key) == 2
    assert is_replay(ask(record))


def test_a_record_damaged_while_its_request_runs_is_never_run_again(gateway, backend):
    """The owner settles if the header still names its claim, for it knows the rest; else it is 503."""
    running = {}
    for what, damage in DAMAGES.items():
        key, reply = new_key(), backend.holding()
        backend.script(key, reply, Reply(201, body=b"a second execution"))
        client = gateway.send("/closed", key)
        backend.wait(key)
        record = Record(gateway, key)
        record.write(damage(record.bytes))
        running[key] = (what, client)
    backend.release()
    for key, (what, client) in running.items():
        first = client.read()
        client.close()
        again = gateway.post("/closed", key)
        if code_of(first) is None:
            assert_first(first)
            assert_replay(again, first)
        else:
            assert_problem(first, STORE_UNAVAILABLE)
            assert_problem(again, STORE_UNAVAILABLE)
        assert backend.executions(key) == 1, what


def test_open_never_takes_a_damaged_record_for_an_absent_one(gateway, backend, key):
    """It may let the request pass, but then it says that it was not protected."""
    assert_first(gateway.post("/open", key))
    record = Record(gateway, key)
    record.write(DAMAGES["a flipped byte"](record.bytes))
    answer = gateway.post("/open", key)
    if code_of(answer) != STORE_UNAVAILABLE:
        assert_first(answer)
        assert answer.header("Counterfoil-Unprotected") == "store"
    with opened(gateway.store_dir) as store:
        assert store.where(record.id)[1] != record.bytes
    assert gateway.cli("get", record.id, check=False).returncode == 1, "it is still corrupt"


# Stores of another format: what another version of the program would have made.

def set_format(directory, number):
    """Writes the store's format number; returns the one it had."""
    with opened(directory) as store:
        was, = struct.unpack("<I", store.get(META, FORMAT_KEY))
        store.put(META, FORMAT_KEY, struct.pack("<I", number))
    return was


@pytest.fixture
def other_format(new_gateway):
    """A gateway that ran and was stopped; the test gives its store another format number."""
    gateway = new_gateway(POLICY, workers=1)
    gateway.allow_log(r"(?i)store")
    return gateway


def assert_told(text, gateway, number):
    """Which store it is and which format it has."""
    assert str(gateway.store_dir) in text
    assert f"format {number}" in text


@pytest.mark.parametrize("step", [-1, 1, 1000], ids=["older", "newer", "much newer"])
def test_a_store_of_another_format_is_refused_at_start_and_left_alone(other_format, backend, key,
                                                                      step):
    gateway = other_format
    first = gateway.post("/closed", key)
    gateway.stop()
    with opened(gateway.store_dir) as store:
        was, = struct.unpack("<I", store.get(META, FORMAT_KEY))
    set_format(gateway.store_dir, was + step)
    with pytest.raises(AssertionError, match="the server ended with"):
        gateway.start()
    assert_told(gateway.log(), gateway, was + step)
    listed = gateway.cli("list", check=False)
    assert listed.returncode == 3
    assert_told(listed.stderr, gateway, was + step)
    assert set_format(gateway.store_dir, was) == was + step, "it was not written over"
    gateway.start()
    assert_settled(gateway, backend, "/closed", key, first)


def test_two_gateways_of_different_versions_the_second_is_refused(other_format, new_gateway,
                                                                  backend, key):
    """While the first one runs on: its store is not harmed by the attempt."""
    first_gateway = other_format
    first = first_gateway.post("/closed", key)
    was = set_format(first_gateway.store_dir, 999)
    second = new_gateway(POLICY, start=False)
    second.allow_log(r"(?i)store")
    second.store_dir = first_gateway.store_dir
    with pytest.raises(AssertionError, match="the server ended with"):
        second.start()
    assert_told(second.log(), second, 999)
    assert set_format(first_gateway.store_dir, was) == 999
    assert_settled(first_gateway, backend, "/closed", key, first)
    assert_first(first_gateway.post("/closed", new_key()))


def test_a_worker_that_begins_on_a_store_of_another_format_refuses_and_recovers(other_format,
                                                                                backend, key):
    gateway = other_format
    first = gateway.post("/closed", key)
    was = set_format(gateway.store_dir, 999)
    gateway.kill(gateway.workers()[0])
    until(gateway.workers, "a new worker")
    fresh = new_key()
    for each in (key, fresh) * 2:
        assert_problem(gateway.post("/closed", each), STORE_UNAVAILABLE)
    assert set_format(gateway.store_dir, was) == 999
    answers = gateway.post_until(lambda answer: answer.status == 201, "it executes", "/closed",
                                 fresh)
    assert {code_of(answer) for answer in answers[:-1]} <= {STORE_UNAVAILABLE, PENDING, UNKNOWN}
    assert_settled(gateway, backend, "/closed", key, first)
    assert (backend.executions(fresh), backend.executions(key)) == (1, 1)
