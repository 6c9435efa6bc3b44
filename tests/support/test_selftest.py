# SPDX-License-Identifier: Apache-2.0
"""The test tools against a plain nginx proxy: a tool that sees nothing proves nothing."""

import hashlib
import os
import signal
import socket
import subprocess
import sys

import pytest

from support import expect, procs
from support.backend import Reply
from support.rawhttp import Closed, Malformed, encode
from support.waiting import until


@pytest.fixture
def plain(new_nginx, backend):
    return new_nginx(f"""
        client_max_body_size 0;
        location / {{
            proxy_pass {backend.url};
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_ignore_client_abort on;
        }}
        location = /left-over {{ return 200 "x"; }}
    """, workers=2)


def test_a_plain_proxy_executes_twice_and_the_backend_counts_it(plain, backend, key):
    first, second = plain.post("/o", key), plain.post("/o", key)
    assert first.status == second.status == 201
    assert first.body != second.body
    assert backend.executions(key) == 2
    with pytest.raises(AssertionError):
        expect.assert_replay(second, first)


@pytest.mark.parametrize("size", [0, 1, 70_000, 3 << 20])
@pytest.mark.parametrize("chunk", [None, 1000])
def test_the_backend_digests_what_was_sent(plain, backend, key, size, chunk):
    body = bytes(range(256)) * (size // 256) + b"z" * (size % 256)
    plain.post("/o", key, body, chunk=chunk)
    request = backend.wait(key)
    assert (request.body_bytes, request.sha256) == (size, hashlib.sha256(body).hexdigest())


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_every_framing_is_read_back(plain, backend, key, framing, version):
    body = bytes(range(256)) * 100
    backend.script(key, Reply(200, body=body, framing=framing))
    assert plain.post("/o", key, version=version).body == body


def test_204_has_no_body_and_the_connection_goes_on(plain, backend, key):
    backend.script(key, Reply(204), Reply(201))
    with plain.client() as client:
        assert plain.post("/o", key, client=client).status == 204
        assert plain.post("/o", key, client=client).status == 201


@pytest.mark.parametrize("fault", ["reset", "close"])
def test_a_failing_backend_is_a_502(plain, backend, key, fault):
    backend.script(key, Reply(fault=fault))
    assert plain.post("/o", key).status == 502
    assert backend.executions(key) == 1


def test_a_truncated_answer_raises_closed(plain, backend, key):
    backend.script(key, Reply(fault="truncate", body=b"x" * 200_000))
    with pytest.raises(Closed):
        plain.post("/o", key)


def test_hold_delays_the_answer_until_it_is_set(plain, backend, key):
    reply = backend.holding()
    backend.script(key, reply)
    client = plain.send("/o", key)
    backend.wait(key)
    with pytest.raises(socket.timeout):
        client.read(timeout_s=0.2)
    reply.hold.set()
    assert client.read(timeout_s=5).status == 201


def test_probes_are_counted_apart(plain, backend, key):
    assert plain.post(f"/probe/{key}", method="GET", body=None).status == 404
    backend.script_probe(key, Reply(200, body=b"found"))
    assert plain.post(f"/probe/{key}", method="GET", body=None).body == b"found"
    assert (backend.executions(key), len(backend.probes_of(key))) == (0, 2)


def test_a_refused_connection_is_a_502_and_the_backend_comes_back(new_backend, new_nginx, key):
    backend = new_backend()
    plain = new_nginx(f"location / {{ proxy_pass {backend.url}; }}")
    backend.stop()
    assert plain.post("/o", key).status == 502
    backend.start()
    assert plain.post("/o", key).status == 201
    assert backend.executions(key) == 1


def test_pipelined_answers_are_read_one_by_one(plain, backend):
    with plain.client() as client:
        keys = [expect.new_key() for _ in range(5)]
        client.send(b"".join(encode("POST", "/o", [("Idempotency-Key", k)], b"") for k in keys))
        assert [client.read().json()["case"] for _ in keys] == keys


def test_left_over_bytes_are_noticed(plain):
    client = plain.client()
    client.send(encode("GET", "/left-over") + encode("GET", "/left-over"))
    client.read("HEAD")
    with pytest.raises(Malformed):
        client.read("GET")


def test_connections_can_be_pinned_to_a_worker_and_traced_to_it(plain, backend, key):
    one, other = plain.workers()
    client, = plain.clients_on(other, 1)
    reply = backend.holding()
    backend.script(key, reply)
    plain.send("/o", key, client=client)
    assert plain.worker_of(backend.wait(key)) == other
    plain.freeze(other)
    assert plain.live_client().request("GET", "/ping").status == 201
    plain.thaw(other)
    reply.hold.set()
    assert client.read().status == 201
    assert one in plain.workers()


def test_a_crash_is_seen_in_the_log_and_a_wanted_kill_is_excused(plain):
    victim, other = plain.workers()
    plain.kill(victim)
    until(lambda: len(plain.workers()) == 2, "a new worker after kill -9")
    assert plain.bad_lines() == []
    os.kill(other, signal.SIGABRT)
    until(lambda: other not in plain.workers() and len(plain.workers()) == 2, "a new worker")
    assert any(f"{other} exited on signal 6" in line for line in plain.bad_lines())


def test_killed_servers_come_back_on_the_same_port(plain, key):
    plain.kill_all()
    assert plain.pids() == []
    plain.start()
    assert plain.post("/o", key).status == 201


def test_a_process_lives_as_long_as_one_of_its_threads():
    """kill -9 ends the first thread of a worker while another still waits for the disk."""
    script = ("import ctypes, sys, threading\n"
              "threading.Thread(target=sys.stdin.read).start()\n"
              "print(flush=True)\n"
              "ctypes.CDLL(None).pthread_exit(None)\n")
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, start_new_session=True) as process:
        process.stdout.readline()
        until(lambda: procs.state(process.pid) == "Z", "the first thread ends")
        assert procs.alive(process.pid)
        assert procs.session_pids(process.pid) == [process.pid]
        process.kill()
    assert not procs.alive(process.pid)


def test_a_worker_that_has_no_title_yet_is_no_master(plain, monkeypatch):
    master = plain.master()
    title = procs.title
    monkeypatch.setattr(procs, "title", lambda pid: title(pid) and title(master))
    assert plain.workers() == []
    assert plain.master() == master
