# SPDX-License-Identifier: Apache-2.0
"""Two peers behind one name: nginx may choose between them, it may not use both for one request.

The first peer asked reads the request and fails, the other would succeed: the executions of both
together are counted. A peer that refuses has been sent nothing and may be passed by.
"""

import os
import socket
import subprocess

import pytest

from support.expect import UNKNOWN, assert_first, assert_problem, assert_replay, new_key
from support.pair import STEP, Pair
from support.ports import free_port
from support.rawbackend import (CREATED, DeafPort, Play, RawBackend, close, head, reply, reset,
                                wait_for_peer)
from support.server import Gateway
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST|PUT|PATCH|DELETE|GET /**", key: {header: Idempotency-Key}}
"""

PROXY = "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass"
ALL = "error timeout invalid_header http_500 http_502 http_503 http_504 http_403 http_404 http_429"

HTTP = """
    upstream two { server 127.0.0.1:{one} max_fails=0; server 127.0.0.1:{other} max_fails=0; }
    upstream kept {
        server 127.0.0.1:{one} max_fails=0; server 127.0.0.1:{other} max_fails=0; keepalive 4;
    }
    upstream spare { server 127.0.0.1:{refused} max_fails=0; server 127.0.0.1:{one} backup; }
    upstream late { server 127.0.0.1:{late} max_fails=0; server 127.0.0.1:{one} backup; }
"""

SERVER = f"""
    counterfoil on;
    {STEP}
    location /default/ {{ {PROXY} http://two; }}
    location /every/ {{ {PROXY} http://two; proxy_next_upstream {ALL}; }}
    location /again/ {{ {PROXY} http://two; proxy_next_upstream {ALL} non_idempotent; }}
    location /slow/ {{
        {PROXY} http://two; proxy_next_upstream {ALL} non_idempotent; proxy_read_timeout 300ms;
    }}
    location /kept/ {{ {PROXY} http://kept; proxy_next_upstream {ALL} non_idempotent; }}
    location /spare/ {{ {PROXY} http://spare; proxy_next_upstream {ALL} non_idempotent; }}
    location /late/ {{ {PROXY} http://late; proxy_next_upstream {ALL} non_idempotent; }}
"""

METHODS = ["POST", "PUT", "PATCH", "DELETE", "GET"]

FAILURES = {
    "closes": ([close], "IN_DOUBT"), "resets": ([reset], "IN_DOUBT"),
    "breaks its header off": ([b"HTTP/1.1 201 Cre", close], "IN_DOUBT"),
    "sends an invalid header": ([head("201 Created", "no colon")], "IN_DOUBT"),
    "answers 502": (reply("502 Bad Gateway"), "IN_DOUBT"),
    "answers 504": (reply("504 Time-out"), "IN_DOUBT"),
    "answers 503": (reply("503 Unavailable"), "FAILED"),
    "answers 500": (reply("500 Internal"), "FAILED"),
    "answers 429": (reply("429 Too Many"), "FAILED"),
    "answers 404": (reply("404 Not Found"), "FAILED_FINAL"),
}


class Peers:
    """Two backends of which the one that is asked first fails and the next one succeeds."""

    def __init__(self, *hosts, port=None):
        self.one = RawBackend(hosts[:1], port)
        self.other = RawBackend(hosts[1:], port)

    def script(self, key, steps):
        """Whichever is asked first plays the steps; whoever is asked after that creates."""
        plays = [Play(steps), CREATED]
        for peer in (self.one, self.other):
            peer.scripts[key] = plays  # one list for both

    def executions(self, key):
        return self.one.executions(key) + self.other.executions(key)

    def stop(self):
        self.one.stop()
        self.other.stop()


@pytest.fixture(scope="module")
def peers():
    made = Peers("127.0.0.1", "127.0.0.1")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def ports():
    return {"refused": free_port(), "late": free_port()}


@pytest.fixture(scope="module")
def pair(tmp_path_factory, peers, ports):
    names = {"one": peers.one.port, "other": peers.other.port, **ports}
    http = HTTP
    for name, port in names.items():
        http = http.replace("{" + name + "}", str(port))
    with Pair(tmp_path_factory.mktemp("pair"), SERVER, POLICY, http).running() as made:
        yield made


def send(server, target, key, method):
    return server.post(target, key, None if method == "GET" else b"{}", method=method)


def assert_not_amplified(server, peers, target, key, method, outcome, first):
    """The next request under the key: runs, is replayed or refused as the outcome says."""
    again = send(server, target, key, method)
    if outcome == "FAILED":
        assert_first(again)
    elif outcome == "IN_DOUBT":
        assert_problem(again, UNKNOWN)
    else:
        assert_replay(again, first)
    assert peers.executions(key) == (2 if outcome == "FAILED" else 1)


def check(pair, peers, target, key, method, steps, outcome):
    """One peer reads the request and fails; nobody else gets it until the table allows it."""
    peers.script(key, steps)
    first = send(pair.guarded, target, key, method)
    assert first.status >= 400
    assert peers.executions(key) == 1
    pair.assert_state(key, outcome)
    assert_not_amplified(pair.guarded, peers, target, key, method, outcome, first)


@pytest.mark.parametrize("place", ["default", "every", "again", "kept"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_request_one_peer_read_is_not_for_the_other(pair, peers, key, failure, method, place):
    check(pair, peers, f"/{place}/x", key, method, *FAILURES[failure])


@pytest.mark.parametrize("method", METHODS)
def test_a_request_one_peer_was_too_slow_for_is_not_for_the_other(pair, peers, key, method):
    check(pair, peers, "/slow/x", key, method, [wait_for_peer], "IN_DOUBT")


@pytest.mark.parametrize("method, place", [("PUT", "default"), ("GET", "default"),
                                           ("DELETE", "every"), ("POST", "again")])
def test_plain_nginx_does_ask_the_other(pair, peers, key, method, place):
    """The control: the same configuration without the module executes twice."""
    peers.script(key, [close])
    assert send(pair.plain, f"/{place}/x", key, method).status == 201
    assert peers.executions(key) == 2


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_peer_that_refuses_is_passed_by(pair, peers, method):
    for _ in range(3):
        key = new_key()
        first = send(pair.guarded, "/spare/x", key, method)
        assert_first(first)
        pair.assert_state(key, "SUCCEEDED")
        assert_replay(send(pair.guarded, "/spare/x", key, method), first)
        assert peers.one.executions(key) == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_peer_that_refuses_never_leads_to_two_executions(pair, peers, key, method):
    for _ in range(3):
        send(pair.guarded, "/spare/x", key, method)
    assert peers.one.executions(key) <= 1


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_peer_that_refuses_late_has_been_sent_nothing(pair, peers, ports, key, method):
    deaf = DeafPort(ports["late"])
    before = deaf.waiting()
    with pair.guarded.client() as client:
        pair.guarded.send("/late/x", key, method=method, client=client)
        until(lambda: deaf.waiting() == before + 1, "it is connecting")
        deaf.refuse()
        first = client.read(method)
    again = send(pair.guarded, "/late/x", key, method)
    if first.status == 201:
        assert_replay(again, first)
    else:
        assert first.status == 502
    assert peers.one.executions(key) <= 1


# One name, two addresses.

HOSTS = "127.0.0.1 localhost\n::1 localhost\n"


def resolves_to_two():
    found = socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    return {info[4][0] for info in found} == {"127.0.0.1", "::1"}


class TwoAddresses(Gateway):
    """`counterfoil serve` where localhost is both loopback addresses.

    Where the host does not say so, it is told so in a mount namespace of its own.
    """

    def command(self):
        command = super().command()
        if resolves_to_two():
            return command
        hosts = self.directory / "hosts"
        hosts.write_text(HOSTS, encoding="utf-8")
        return ["unshare", "-m", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh",
                *command]


def can_have_two():
    if resolves_to_two():
        return True
    if os.geteuid() != 0:
        return False
    return subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0


@pytest.fixture
def localhost(tmp_path_factory):
    """serve --upstream http://localhost:PORT, and the peers at both addresses. New for every test:
    nginx avoids a peer for a while after a failure."""
    if not socket.has_ipv6 or not can_have_two():
        pytest.skip("localhost cannot be made two addresses here")
    both = Peers("127.0.0.1", "::1", port=free_port())
    server = TwoAddresses(tmp_path_factory.mktemp("gateway"), both.one, POLICY, workers=1)
    server.upstream = f"http://localhost:{both.one.port}"
    try:
        yield server.start(), both
        server.stop()
        assert not server.bad_lines()
    finally:
        server.close()
        both.stop()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("failure", ["closes", "resets", "answers 502"])
def test_localhost_as_two_addresses_is_one_execution(localhost, key, failure, method):
    server, both = localhost
    steps, outcome = FAILURES[failure]
    both.script(key, steps)
    first = send(server, "/x", key, method)
    assert first.status >= 400
    assert both.executions(key) == 1
    assert_not_amplified(server, both, "/x", key, method, outcome, first)


def test_both_addresses_of_localhost_are_used(localhost):
    """The control: the name does lead to two peers."""
    server, both = localhost
    for _ in range(8):
        assert_first(send(server, "/x", new_key(), "POST"))
    assert both.one.heads and both.other.heads


def test_failures_never_leave_localhost_without_a_peer(localhost):
    """nginx leaves a peer of several out for 10 s after a failure; with both left out, a backend
    that answers again would not be asked. With one address that never happens."""
    server, both = localhost
    for _ in range(6):
        key = new_key()
        both.script(key, FAILURES["closes"][0])
        assert send(server, "/x", key, "POST").status == 502
    for _ in range(4):
        assert_first(send(server, "/x", new_key(), "POST"))
