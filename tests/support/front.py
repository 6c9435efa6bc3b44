# SPDX-License-Identifier: Apache-2.0
"""A guarding nginx that can be met in every way nginx offers: HTTP/1, HTTP/2 in clear and over TLS.

Owns the listeners besides the harness' own, the certificate, and looking at the record of a key. The
narrow listener keeps next to nothing between nginx and a client that does not read, so that "while
the answer is being sent" is a place where a test can stand still.
Invariant: at most one record exists for a key that one request used.
"""

import contextlib
import json
import socket
import subprocess

from support import procs
from support.ports import free_port
from support.rawhttp import TIMEOUT_S, Client
from support.server import BUILD, Nginx
from support.waiting import until

PROXY = 'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass'
STEP = 'location = /step { counterfoil off; return 200 "in step"; }'
SETTLED_WITHIN_S = 1.0
ROOM_BYTES = 8192


class Narrow(Client):
    """A client with little room for what it has not read."""

    def __init__(self, address, timeout_s=TIMEOUT_S):  # pylint: disable=super-init-not-called
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM_BYTES)
        self.sock.settimeout(timeout_s)
        self.sock.connect(address)
        self.buffer = b""

    def read_some(self, size):
        """Reads a little of what comes, and no more than that."""
        while size > 0:
            block = self.sock.recv(min(size, ROOM_BYTES))
            assert block, "the answer ended early"
            self.buffer += block
            size -= len(block)


def make_certificate(directory):
    """A key and a certificate that it signs itself: (key file, certificate file)."""
    files = directory / "tls.key", directory / "tls.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=gw.test",
                    "-keyout", files[0], "-out", files[1]], check=True, capture_output=True)
    return files


class Front(Nginx):
    """One worker that guards, behind four ports."""

    def __init__(self, directory, backend, server, policy, http=""):
        directory.mkdir(parents=True, exist_ok=True)
        self.narrow_port, self.clear_port, self.tls_port = (free_port() for _ in range(3))
        key, certificate = make_certificate(directory)
        listeners = f"""
            listen 127.0.0.1:{self.narrow_port} sndbuf={ROOM_BYTES};
            listen 127.0.0.1:{self.clear_port} http2;
            listen 127.0.0.1:{self.tls_port} ssl http2;
            ssl_certificate {certificate};
            ssl_certificate_key {key};
        """
        super().__init__(directory, backend, listeners + server, http=http, policy=policy)

    @contextlib.contextmanager
    def running(self):
        try:
            yield self.start()
            self.stop()
            self.assert_clean()
        finally:
            self.close()

    def assert_clean(self):
        bad = self.bad_lines()
        assert not bad, "in the error log:\n" + "\n".join(bad)

    def narrow(self):
        return Narrow(("127.0.0.1", self.narrow_port))

    def await_gone(self, local_port, peer_port):
        """Returns when nginx has closed its end of a connection."""
        until(lambda: procs.socket_owner(self.workers(), local_port, peer_port) is None,
              "nginx has noticed that the client left")

    # Records.

    def record(self, key):
        """The record of the key, None where there is none."""
        listed = subprocess.run([BUILD / "counterfoil", "list", "--store",
                                 f"lmdb:{self.directory}/store", "--key", key, "--json"],
                                check=True, capture_output=True, text=True, timeout=20).stdout
        records = [json.loads(line) for line in listed.splitlines()]
        assert len(records) <= 1, f"{len(records)} claims for one request"
        return records[0] if records else None

    def state(self, key):
        record = self.record(key)
        return record and record["state"]

    def await_state(self, key, state, deadline_s=SETTLED_WITHIN_S):
        """The record reaches this state; within a second unless the test says otherwise."""
        seen = []

        def reached():
            seen.append(self.state(key))
            return seen[-1] == state

        try:
            until(reached, "the state", deadline_s)
        except AssertionError:
            raise AssertionError(f"{state} in {deadline_s} s, but it was {seen[-1]}") from None


def view(answer, but=()):
    """What a client sees of an answer: all but what belongs to the moment and marks a replay."""
    moment = ("date", "idempotent-replayed", *but)
    return (answer.status, answer.body, sorted((name.lower(), value) for name, value in answer.headers
                                               if name.lower() not in moment))
