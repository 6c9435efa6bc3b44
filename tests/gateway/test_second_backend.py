# SPDX-License-Identifier: Apache-2.0
"""Ways round the first backend that nginx offers: a claim reaches one backend, never a second one."""

import json
import subprocess

import pytest

from support.backend import Reply
from support.expect import UNKNOWN, assert_problem, new_key
from support.server import BUILD
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST|GET /**", key: {header: Idempotency-Key}}
"""


@pytest.fixture
def peers(new_backend):
    return [new_backend(), new_backend()]


def is_claimed(server, key):
    listed = subprocess.run([BUILD / "counterfoil", "list", "--store",
                             f"lmdb:{server.directory}/store", "--key", key, "--json"],
                            check=True, capture_output=True, text=True, timeout=20).stdout
    return [json.loads(line)["state"] for line in listed.splitlines()] == ["PROCESSING"]


def reached(peers, key):
    return sum(len(peer.of(key)) for peer in peers)


@pytest.fixture
def cached(new_nginx, peers, tmp_path):
    """One request at a time fills the cache; who waits starts its own exchange later."""
    servers = " ".join(f"server 127.0.0.1:{peer.port} max_fails=0;" for peer in peers)
    return new_nginx("""
        counterfoil on;
        location / {
            proxy_cache z; proxy_cache_methods GET HEAD POST; proxy_cache_key $request_uri;
            proxy_cache_valid 201 30s;
            proxy_cache_lock on; proxy_cache_lock_timeout 30s; proxy_cache_lock_age 30s;
            proxy_next_upstream error timeout non_idempotent;
            proxy_pass http://two;
        }""", http=f"proxy_cache_path {tmp_path}/cache keys_zone=z:1m; upstream two {{ {servers} }}",
        policy=POLICY)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_claim_that_waited_for_the_cache_lock_reaches_one_backend(cached, peers, key, method):
    leaders, path = new_key(), f"/{key}"
    held = [peer.holding(fault="reset") for peer in peers]
    for peer, hold in zip(peers, held):
        peer.script(leaders, hold)
        peer.script(key, Reply(fault="reset"))
    leader = cached.send(path, leaders, method=method)
    until(lambda: reached(peers, leaders) == 1, "the leader holds the lock")
    follower = cached.send(path, key, method=method)
    until(lambda: is_claimed(cached, key), "the follower has its claim")
    assert reached(peers, key) == 0
    for hold in held:
        hold.hold.set()
    assert [client.read(method, 20).status for client in (leader, follower)] == [502, 502]
    assert reached(peers, key) == 1
    assert_problem(cached.post(path, key, method=method), UNKNOWN)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_error_page_leads_no_claim_to_another_backend(new_nginx, peers, key, method):
    first, other = peers
    server = new_nginx(f"""
        counterfoil on;
        location / {{ proxy_pass {first.url}; error_page 502 = @other; }}
        location @other {{ proxy_pass {other.url}; }}""", policy=POLICY)
    first.script(key, Reply(fault="reset"))
    assert server.post("/x", key, method=method).status == 502
    assert (len(first.of(key)), len(other.of(key))) == (1, 0)
    assert_problem(server.post("/x", key, method=method), UNKNOWN)


def test_a_claim_answered_from_the_cache_it_waited_for_reaches_no_backend(cached, peers, key):
    leaders, path = new_key(), f"/{key}"
    held = [peer.holding() for peer in peers]
    for peer, hold in zip(peers, held):
        peer.script(leaders, hold)
    leader = cached.send(path, leaders)
    until(lambda: reached(peers, leaders) == 1, "the leader holds the lock")
    follower = cached.send(path, key)
    until(lambda: is_claimed(cached, key), "the follower has its claim")
    for hold in held:
        hold.hold.set()
    first, second = leader.read("POST", 20), follower.read("POST", 20)
    assert (first.status, second.status, second.body) == (201, 201, first.body)
    again = cached.post(path, key)  # nothing was sent, so it ended as FAILED and may run again
    assert (again.status, again.body) == (201, first.body)
    assert (reached(peers, leaders), reached(peers, key)) == (1, 0)
