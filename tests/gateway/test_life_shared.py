# SPDX-License-Identifier: Apache-2.0
"""One store, one policy, several doors: locations, servers and gateways that share them."""

import subprocess

import pytest

from support.expect import (CONFLICT, PENDING, assert_first, assert_problem, assert_replay,
                            assert_settled, new_key)
from support.ports import free_port
from support.rawhttp import Client
from support.server import NGINX

POLICY = """
version: 1
tenant: none
defaults: {lease: 2s}
routes:
  - {name: one, match: POST /one/orders}
  - {name: two, match: POST /two/orders}
  - {name: any, match: POST /orders}
"""


def test_two_locations_keep_one_store_and_their_records_apart(new_nginx, new_backend):
    one, two = new_backend(), new_backend()
    server = new_nginx(f"""
        location /one/ {{ counterfoil on; proxy_pass {one.url}; }}
        location /two/ {{ counterfoil on; proxy_pass {two.url}; }}
    """, policy=POLICY, workers=2)
    key = new_key()
    firsts = {path: server.post(path, key) for path in ("/one/orders", "/two/orders")}
    for path, first in firsts.items():
        assert_first(first)
        for _ in range(4):
            assert_replay(server.post(path, key), first)
        assert_problem(server.post(path, key, b'{"other": 1}'), CONFLICT)
    assert (one.executions(key), two.executions(key)) == (1, 1)


@pytest.fixture
def two_servers(new_nginx, new_backend):
    """Two servers of one nginx with a backend each, and a third where it is off."""
    backends = [new_backend() for _ in range(3)]
    ports = [free_port(), free_port()]
    http = "".join(
        f"server {{ listen 127.0.0.1:{port}; counterfoil {state}; "
        f"location / {{ proxy_pass {backend.url}; }} }}\n"
        for port, state, backend in zip(ports, ("on", "off"), backends[1:]))
    server = new_nginx(f"counterfoil on; location / {{ proxy_pass {backends[0].url}; }}",
                       http=http, policy=POLICY, workers=2)
    return server, ports, backends


def post_at(port, server, *args, **options):
    with Client(("127.0.0.1", port)) as client:
        return server.post(*args, client=client, **options)


def test_two_servers_of_one_policy_meet_in_one_record(two_servers):
    """A scope is layer, tenant, endpoint and key: the server's name and port are not part of it."""
    server, ports, backends = two_servers
    key, reply = new_key(), backends[0].holding()
    backends[0].script(key, reply)
    client = server.send("/orders", key)
    backends[0].wait(key)
    assert_problem(post_at(ports[0], server, "/orders", key), PENDING)
    reply.hold.set()
    first = client.read()
    client.close()
    assert_first(first)
    assert_replay(post_at(ports[0], server, "/orders", key), first)
    assert [backend.executions(key) for backend in backends] == [1, 0, 0]


def test_a_server_where_it_is_off_beside_one_where_it_is_on(two_servers):
    server, ports, backends = two_servers
    key = new_key()
    assert_first(server.post("/orders", key))
    for _ in range(2):
        assert_first(post_at(ports[1], server, "/orders", key))
    assert [backend.executions(key) for backend in backends] == [1, 0, 2]


@pytest.mark.parametrize("directive", ["counterfoil_policy policy.yaml;",
                                       "counterfoil_store lmdb:/nowhere;"])
@pytest.mark.parametrize("place", ["server", "location"])
def test_a_second_policy_or_store_for_one_server_is_refused(new_nginx, backend, directive, place):
    """Policy and store are of the whole http block: the mistake is found by nginx -t."""
    server = new_nginx(f"counterfoil on; location / {{ proxy_pass {backend.url}; }}",
                       policy=POLICY)
    text = server.conf.read_text(encoding="utf-8")
    where = "counterfoil on;" if place == "server" else "location / {"
    bad = server.directory / "bad.conf"
    bad.write_text(text.replace(where, f"{where} {directive}"), encoding="utf-8")
    tested = subprocess.run([NGINX, "-t", "-e", "stderr", "-p", server.directory, "-c", bad],
                            capture_output=True, text=True, timeout=20, check=False)
    assert tested.returncode != 0
    assert f'"{directive.split()[0]}" directive is not allowed here' in tested.stderr


def test_two_gateways_on_one_store_make_one_execution_of_a_key(new_gateway, backend):
    """What an upgrade does for a while: both are of one version, of one host and of one user."""
    one = new_gateway(POLICY)
    two = new_gateway(POLICY, start=False)
    two.store_dir = one.store_dir
    two.start()
    for here, there in ((one, two), (two, one)):
        key, reply = new_key(), backend.holding()
        backend.script(key, reply)
        client = here.send("/orders", key)
        backend.wait(key)
        assert_problem(there.post("/orders", key), PENDING)
        reply.hold.set()
        first = client.read()
        client.close()
        assert_first(first)
        assert_settled(there, backend, "/orders", key, first)
        assert backend.executions(key) == 1
