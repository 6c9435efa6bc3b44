# SPDX-License-Identifier: Apache-2.0
"""Backends that close idle connections after 1 to 5 s: `serve` never loses a request in one.

A guarded request may not be re-sent, so one written into a connection that the backend is just closing
would read as in doubt. Two backends close as real ones do, a third is a trap: it says nothing when
its time is over and resets what comes after. Light traffic with pauses about as long as the limits.
"""

import random
import select
import threading
import time

import pytest

from support.expect import new_key
from support.rawbackend import RawBackend, reply, reset
from support.server import Gateway
from support.waiting import until_clock

TRAFFIC_S = 10.0
CLIENTS = 3
PAUSES_S = (0.02, 0.3, 0.6, 0.9, 0.99, 1.0, 1.005, 1.05, 1.2, 1.6)
SEED = random.SystemRandom().randrange(1 << 32)

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST|PUT /**"}
"""


class IdleBackend(RawBackend):
    """Keeps connections until they were idle for idle_s. Counts how many it met again, and lost."""

    def __init__(self, idle_s, silent=False):
        self.idle_s = idle_s
        self.silent = silent
        self.reused = self.lost = 0
        super().__init__()

    def _serve(self, sock):
        try:
            self._answer(sock)
            while self._wait(sock):
                self._answer(sock)
                self.reused += 1
        except (OSError, ValueError):
            pass
        finally:
            sock.close()

    def _wait(self, sock):
        """True when another request came in time."""
        if select.select([sock], [], [], self.idle_s)[0]:
            return True
        if self.silent and sock.recv(1):
            self.lost += 1
            reset(sock)
        return False

    def _answer(self, sock):
        data = b""
        while not data.endswith(b"{}"):
            block = sock.recv(65536)
            if not block:
                raise ConnectionError("end of stream")
            data += block
        for step in reply("201 Created"):
            sock.sendall(step)


def traffic(server, rng, end_s, answers):
    with server.client() as client:
        while time.monotonic() < end_s:
            answers.append(server.post("/x", new_key(), client=client).status)
            until_clock(time.monotonic() + rng.choice(PAUSES_S))


def under_traffic(servers):
    """The statuses each server answered with, all of them under traffic at once."""
    end_s = time.monotonic() + TRAFFIC_S
    answers = [[] for _ in servers]
    threads = [threading.Thread(target=traffic, args=(server, random.Random(SEED + lane), end_s, got))
               for server, got in zip(servers, answers) for lane in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.fixture
def backends():
    made = {"1 s": IdleBackend(1.0), "5 s": IdleBackend(5.0),
            "1.1 s, silent": IdleBackend(1.1, silent=True)}
    yield made
    for backend in made.values():
        backend.stop()


def test_idle_connections_lose_no_request_under_light_traffic(new_gateway, backends):
    print(f"seed {SEED}")
    servers = [new_gateway(POLICY, backend=backend, workers=1) for backend in backends.values()]
    answers = dict(zip(backends, under_traffic(servers)))
    for name, server in zip(backends, servers):
        assert isinstance(server, Gateway)
        assert len(answers[name]) >= 3 * CLIENTS
        assert set(answers[name]) == {201}, f"seed {SEED}, backend of {name}"
        assert backends[name].lost == 0
        assert backends[name].reused > 0, "no connection was kept: this shows nothing"
        assert server.cli("list", "--state", "IN_DOUBT", "--json").stdout == ""
