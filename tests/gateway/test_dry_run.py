# SPDX-License-Identifier: Apache-2.0
"""`counterfoil dry_run`: verdicts are computed and logged, and nothing else happens.

What the backend gets is compared byte for byte with what plain nginx sends it.
"""

import contextlib
import json
import re
import socket
import subprocess
import threading

import pytest

from support.backend import Backend, Reply
from support.expect import CONFLICT, assert_first, assert_problem, is_replay, new_key
from support.server import BUILD, Nginx
from support.store_hands import Holder
from support.waiting import until

POLICY = """
version: 1
tenant: none
routes:
  - {name: keyed, match: "POST|PUT /needs/**", key: {required: true, format: uuid}}
  - {name: small, match: "POST /small/**", snapshot: {max_body: 1KiB}}
  - {name: all, match: "POST|PUT|PATCH|DELETE|GET /**"}
"""

HTTP = """
    log_format verdicts '$request_id $counterfoil_verdict $counterfoil_route';
    access_log {log} verdicts;
"""

SERVER = """
    counterfoil {mode};
    location / {{ proxy_pass {backend}; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    location /unbuffered/ {{
        proxy_pass {backend}; proxy_http_version 1.1; proxy_set_header Connection "";
        proxy_request_buffering off;
    }}
    location /guarded/ {{
        counterfoil on;
        proxy_pass {backend}; proxy_http_version 1.1; proxy_set_header Connection "";
    }}
"""


class Tape:
    """A backend that keeps the bytes of every request and answers 201."""

    def __init__(self):
        self.requests = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with sock, sock.makefile("rb") as stream:
            while head := self._head(stream):
                length = re.search(rb"(?i)content-length: (\d+)", head)
                if b"chunked" in head.lower():
                    body = b""
                    while not body.endswith(b"0\r\n\r\n"):
                        body += stream.readline()
                else:
                    body = stream.read(int(length[1])) if length else b""
                self.requests.append(head + body)
                sock.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")

    @staticmethod
    def _head(stream):
        head = b""
        while (line := stream.readline()) not in (b"\r\n", b""):
            head += line
        return head + line

    def stop(self):
        """The thread first: a descriptor closed under it would be the next listener's."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


def servers(directory, backend, modes):
    made = {}
    for mode in modes:
        place = directory / (mode or "plain")
        place.mkdir()
        server = SERVER.format(mode=mode, backend=backend.url)
        http = HTTP.replace("{log}", str(place / "verdicts.log")) if mode else ""
        if not mode:
            server = re.sub(r"counterfoil \w*;", "", server)
        made[mode] = Nginx(place, backend, server, http=http, policy=POLICY if mode else None)
    return made


@contextlib.contextmanager
def running(made, backend):
    try:
        for server in made.values():
            server.start()
        yield made
        for server in made.values():
            server.stop()
            assert not server.bad_lines()
    finally:
        for server in made.values():
            server.close()
        backend.stop()


@pytest.fixture(scope="module")
def dry(tmp_path_factory):
    backend = Backend()
    with running(servers(tmp_path_factory.mktemp("dry"), backend, ["dry_run"]), backend) as made:
        made["dry_run"].backend = backend
        yield made["dry_run"]


def verdicts(server):
    """What the log says would have become of the requests so far."""
    return re.findall(r"dry run: route \"\w+\"(?: record [0-9a-f]{12})?: would be (\w+)", server.log())


def one_more_verdict(server, do):
    """What `do` gave, once the log has one more verdict."""
    before = len(verdicts(server))
    given = do()
    until(lambda: len(verdicts(server)) > before, "a verdict in the log")
    return given


def states(server, key):
    """The states of the key's records, by kind."""
    listed = subprocess.run([BUILD / "counterfoil", "list", "--store",
                             f"lmdb:{server.directory}/store", "--key", key, "--json"], check=True,
                            capture_output=True, text=True, timeout=20).stdout
    records = [json.loads(line) for line in listed.splitlines()]
    return {record["kind"]: record["state"] for record in records}


def ask(server, target, key, body=b"{}", **options):
    """One request; returns the answer and what was logged of it, which may come later."""
    answer = one_more_verdict(server, lambda: server.post(target, key, body, **options))
    return answer, verdicts(server)[-1]


def run(server, target, key, body=b"{}"):
    """ask, and the settle of what was executed, for which no client waits."""
    answered = ask(server, target, key, body)
    until(lambda: "PROCESSING" not in states(server, key).values(), "the settle")
    return answered


BODIES = {"none": None, "empty": b"", "small": b'{"a": 1}', "large": b"[" + b"1, " * 50_000 + b"1]"}
HEADERS = [("Counterfoil-Attempt", "7"), ("Counterfoil-Fence", "8"), ("Accept-Encoding", "gzip"),
           ("Range", "bytes=0-1"), ("If-Range", '"x"'), ("X-Odd", "a  b"), ("Cookie", "c=1")]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("target", ["/x?b=2&a=1", "/unbuffered/x", "/%7Ex/../y"])
def test_forwarded_bytes_are_those_of_plain_nginx(tmp_path, target, body):
    tape = Tape()
    key = f'"{new_key()}"'
    with running(servers(tmp_path, tape, ["", "dry_run"]), tape) as made:
        for server in made.values():
            with server.client() as client:
                server.send(target, key, BODIES[body], HEADERS, client=client)
                assert client.read().status == 201
        until(lambda: "would be execute" in made["dry_run"].log(), "a verdict in the log")
    plain, dried = [re.sub(rb"127\.0\.0\.1:\d+", b"HOST", raw) for raw in tape.requests]
    assert dried == plain


@pytest.mark.parametrize("target", ["/x", "/unbuffered/x"])
def test_a_chunked_body_is_forwarded_as_plain_nginx_does(tmp_path, target):
    tape = Tape()
    key = new_key()
    with running(servers(tmp_path, tape, ["", "dry_run"]), tape) as made:
        for server in made.values():
            with server.client() as client:
                client.send(f"POST {target} HTTP/1.1\r\nHost: h\r\nIdempotency-Key: {key}\r\n"
                            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n".encode())
                assert client.read().status == 201
        until(lambda: "would be execute" in made["dry_run"].log(), "a verdict in the log")
    plain, dried = tape.requests
    assert dried == plain


def test_repeats_run_again_and_are_told_apart_in_the_log(dry, key):
    first, said = run(dry, "/x", key, b'{"a": 1}')
    assert_first(first)
    assert said == "execute"
    again, said = ask(dry, "/x", key, b'{ "a": 1.0 }')
    assert_first(again)
    assert not is_replay(again)
    assert said == "replay"
    other, said = ask(dry, "/x", key, b'{"a": 2}')
    assert_first(other)
    assert said == "mismatch"
    assert dry.backend.executions(key) == 3


def test_a_request_under_way_would_make_the_next_one_wait(dry, key):
    held = dry.backend.holding()
    dry.backend.script(key, held, Reply())
    with one_more_verdict(dry, lambda: dry.send("/x", key)) as client:
        second, said = ask(dry, "/x", key)
        assert_first(second)
        assert said == "in_progress"
        held.hold.set()
        assert_first(client.read())
    assert dry.backend.executions(key) == 2


def test_what_could_not_be_kept_would_not_be_replayed(dry, key):
    dry.backend.script(key, Reply(body=b"x" * 1025))
    assert_first(run(dry, "/small/x", key)[0])
    _, said = ask(dry, "/small/x", key)
    assert said == "not_stored"
    assert dry.backend.executions(key) == 2


@pytest.mark.parametrize("key_sent, said", [(None, "key_missing"), ("no uuid", "key_invalid")])
def test_a_key_that_would_be_refused_goes_on(dry, key_sent, said):
    answer, logged = ask(dry, "/needs/x", key_sent)
    assert_first(answer)
    assert logged == said


def test_a_failed_execution_would_run_again(dry, key):
    dry.backend.script(key, Reply(429), Reply())
    assert run(dry, "/x", key)[0].status == 429
    answer, said = ask(dry, "/x", key)
    assert_first(answer)
    assert said == "execute"


def test_guarded_requests_never_meet_the_records_of_a_dry_run(dry, key):
    """One route, tenant, endpoint template and key: two records, of two kinds."""
    assert_first(dry.post("/x", key, b"1"))
    until(lambda: states(dry, key) == {"dry_run": "SUCCEEDED"}, "the end of the dry run")
    assert_first(dry.post("/guarded/x", key, b"1"))
    assert is_replay(dry.post("/guarded/x", key, b"1"))
    assert_problem(dry.post("/guarded/x", key, b"2"), CONFLICT)
    assert dry.backend.executions(key) == 2
    assert states(dry, key) == {"dry_run": "SUCCEEDED", "key": "SUCCEEDED"}


def test_the_variables_tell_the_verdict(dry, key):
    dry.backend.script(key, held := dry.backend.holding())
    log = dry.directory / "verdicts.log"
    with one_more_verdict(dry, lambda: dry.send("/x", key)) as client:
        held.hold.set()
        assert_first(client.read())
    until(lambda: " execute all\n" in log.read_text(), "the line of the access log")


def test_a_store_that_is_lost_is_no_matter(tmp_path, key):
    backend = Backend()
    with running(servers(tmp_path, backend, ["dry_run"]), backend) as made:
        server = made["dry_run"]
        assert_first(run(server, "/x", key)[0])
        with Holder(server.directory / "store") as holder:
            for _ in range(3):
                assert_first(server.post("/x", new_key(), timeout_s=3))
            holder.release()
        until(lambda: len(verdicts(server)) == 4, "the verdicts on what was asked meanwhile")
        answer, said = ask(server, "/x", key)
        assert_first(answer)
        assert said == "replay"
        assert backend.executions(key) == 2


def test_a_client_that_leaves_ends_the_exchange_as_in_plain_nginx(dry, key):
    dry.backend.script(key, held := dry.backend.holding())
    with one_more_verdict(dry, lambda: dry.send("/x", key)):
        dry.backend.wait(key)
    until(lambda: states(dry, key) == {"dry_run": "IN_DOUBT"}, "the end of the exchange")
    held.hold.set()
    _, said = ask(dry, "/x", key)
    assert said == "outcome_unknown"


def test_serve_dry_run_enforces_nothing(new_gateway, backend, key):
    server = new_gateway(POLICY, extra=["--dry-run"])
    assert_first(ask(server, "/x", key)[0])
    until(lambda: server.record(key)["state"] == "SUCCEEDED", "the settle")
    answer, said = ask(server, "/x", key)
    assert_first(answer)
    assert said == "replay"
    assert backend.executions(key) == 2
