# SPDX-License-Identifier: Apache-2.0
"""How old records are when their keys come again, as the error log tells it per route."""

import re
import subprocess

from support.backend import Reply
from support.expect import (CONFLICT, EXPIRED, PENDING, assert_first, assert_problem, is_replay,
                            new_key)
from support.server import BUILD
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: "shop:order.create", match: POST /orders}
  - name: short
    match: POST /short
    lease: 1s
    retention: {ttl: 1s, tombstone: 1h}
  - {name: quiet, match: POST /quiet}
"""
LINE = re.compile(r'counterfoil: repeats route="([^"]+)"((?: \w+=\d+)+)')


def repeats_of(gateway):
    """What the lines of all workers that have left add up to: {route: {bound: count}}."""
    found = {}
    for route, counts in LINE.findall(gateway.log()):
        sums = found.setdefault(route, {})
        for bound, count in re.findall(r"(\w+)=(\d+)", counts):
            sums[bound] = sums.get(bound, 0) + int(count)
    return {route: {bound: count for bound, count in sums.items() if count}
            for route, sums in found.items()}


def test_repeats_are_counted_by_route_and_age(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    first = gateway.post("/orders", key)
    assert_first(first)
    for _ in range(3):
        assert is_replay(gateway.post("/orders", key))
    assert_first(gateway.post("/quiet", key))
    gateway.stop()
    assert repeats_of(gateway) == {"shop:order.create": {"1s": 3}}
    assert backend.executions(key) == 2


def test_an_expired_key_counts_with_its_age_in_store_time(new_gateway, key):
    gateway = new_gateway(POLICY)
    answers = [gateway.post("/short", key)]
    assert_first(answers[0])

    def expires():
        answers.append(gateway.post("/short", key))
        return not is_replay(answers[-1])

    until(expires, "the first answer expires")
    assert_problem(answers[-1], EXPIRED)
    gateway.stop()
    counted = repeats_of(gateway)["short"]
    assert sum(counted.values()) == len(answers) - 1
    assert counted["1s"] >= 1 and counted["5s"] >= 1


def test_what_is_pending_counts_and_another_request_does_not(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    reply = backend.holding()
    backend.script(key, reply)
    client = gateway.send("/orders", key)
    backend.wait(key)
    assert_problem(gateway.post("/orders", key), PENDING)
    assert_problem(gateway.post("/orders", key, b'{"other": 1}'), CONFLICT)
    reply.hold.set()
    assert_first(client.read())
    gateway.stop()
    assert repeats_of(gateway) == {"shop:order.create": {"1s": 1}}


def test_a_retry_that_executes_after_a_failure_is_a_repeat_too(new_gateway, backend, key):
    gateway = new_gateway(POLICY)
    backend.script(key, Reply(429), Reply(201))
    assert gateway.post("/orders", key).status == 429
    assert_first(gateway.post("/orders", key))
    gateway.stop()
    assert repeats_of(gateway) == {"shop:order.create": {"1s": 1}}
    assert backend.executions(key) == 2


def test_lines_of_all_workers_add_up(new_gateway):
    gateway = new_gateway(POLICY)
    for turn in range(2):
        key = new_key()
        assert_first(gateway.post("/orders", key))
        for _ in range(8):
            assert is_replay(gateway.post("/orders", key))
        gateway.stop()
        assert repeats_of(gateway) == {"shop:order.create": {"1s": 8 * (turn + 1)}}
        gateway.start()


def test_check_reads_what_the_gateway_has_written(new_gateway, key):
    gateway = new_gateway(POLICY)
    assert_first(gateway.post("/orders", key))
    assert is_replay(gateway.post("/orders", key))
    gateway.stop()
    shown = subprocess.run([BUILD / "counterfoil", "check", gateway.directory / "policy.yaml",
                            "--observed", gateway.directory / "stderr.log"],
                           capture_output=True, text=True, check=True, timeout=20).stdout
    assert "observed: shop:order.create: 1 repeat, half of them within 1s" in shown
