# SPDX-License-Identifier: Apache-2.0
"""Reload again and again under load, and with another number of workers: nothing is lost or run
twice."""

import json
import os
import signal

import pytest

from support.expect import PENDING, assert_first, assert_problem, assert_replay, new_key
from support.load import Load
from support.waiting import until

POLICY = """
version: 1
tenant: none
defaults: {lease: 2s}
routes:
  - {name: plain, match: POST /plain}
"""
RELOADS = 50


def reload(server, workers=None):
    """SIGHUP; returns when only new workers serve, `workers` of them if that is to change."""
    before = set(server.workers())
    server.workers_wanted = workers or server.workers_wanted
    os.kill(server.master(), signal.SIGHUP)
    until(lambda: len(server.workers()) == server.workers_wanted
          and not before & set(server.workers()), "new workers serve")


def listed(gateway):
    """state by key of every record in the store."""
    lines = gateway.cli("list", "--json").stdout.splitlines()
    return {record["key"]: record["state"] for record in map(json.loads, lines)}


def test_fifty_reloads_under_load_lose_nothing_and_run_nothing_twice(new_gateway, backend):
    gateway = new_gateway(POLICY)
    with Load(gateway, "/plain", threads=2) as load:
        for number in range(RELOADS):
            sent = len(load.answers)
            reload(gateway)
            until(lambda sent=sent: len(load.answers) > sent, f"requests go on after {number}")
    load.assert_whole(backend)
    assert listed(gateway) == dict.fromkeys(load.answers, "SUCCEEDED")
    until(lambda: len(gateway.pids()) == 1 + gateway.workers_wanted, "all old workers have left")


@pytest.fixture
def nginx(new_nginx, backend):
    """One worker; the test changes how many."""
    return new_nginx(f"location / {{ counterfoil on; proxy_pass {backend.url}; }}", policy=POLICY)


def set_workers(nginx, count):
    text = nginx.conf.read_text(encoding="utf-8")
    was = f"worker_processes {nginx.workers_wanted};"
    assert was in text
    nginx.conf.write_text(text.replace(was, f"worker_processes {count};"), encoding="utf-8")
    reload(nginx, count)


def ping(nginx, pid):
    """A connection to this worker: its fellows sleep while it is made. One that sleeps has answered
    before, so it may hold no more than the listening socket."""
    others = [other for other in nginx.workers() if other != pid]
    for other in others:
        nginx.freeze(other)
    try:
        client = nginx.client()
        assert nginx.post("/ping", None, None, method="GET", client=client).status < 400
        return client
    finally:
        for other in others:
            nginx.thaw(other)


def test_one_worker_becomes_three_and_one_again(nginx, backend):
    early, early_reply = new_key(), backend.holding()
    backend.script(early, early_reply)
    early_client = nginx.send("/plain", early)
    backend.wait(early)
    set_workers(nginx, 3)

    held = {}
    for pid in nginx.workers():
        key, reply = new_key(), backend.holding()
        backend.script(key, reply)
        client = nginx.send("/plain", key, client=ping(nginx, pid))
        assert nginx.worker_of(backend.wait(key)) == pid
        held[key] = (client, reply)
    assert_problem(nginx.post("/plain", early), PENDING)

    set_workers(nginx, 1)
    for key in (early, *held):
        assert_problem(nginx.post("/plain", key), PENDING)
    held[early] = (early_client, early_reply)
    for key, (client, reply) in held.items():
        reply.hold.set()
        first = client.read()
        assert_first(first)
        assert_replay(nginx.post("/plain", key), first)
        assert backend.executions(key) == 1
        client.close()
    until(lambda: len(nginx.pids()) == 2, "the workers that are too many have left")


def test_load_while_the_number_of_workers_changes(nginx, backend):
    with Load(nginx, "/plain") as load:
        for count in (3, 1, 2, 4, 1):
            set_workers(nginx, count)
            sent = len(load.answers)
            until(lambda sent=sent: len(load.answers) > sent + 20, f"{count} workers serve")
    load.assert_whole(backend)
