# SPDX-License-Identifier: Apache-2.0
"""Two nginx servers with one configuration in front of one scripted backend: one guards, one does not.

Owns the comparison "the client gets what plain nginx would give it" and the check of what an ending
means: executions, state, the next answer under the key. Both requests run at the same time, each
under a key of its own, so that an ending costs its time once.
What may differ: an answer that is held until it is durable is framed by its length, which is known
then, where plain nginx had to use chunks or the end of the connection; and what breaks off while it
is held becomes an answer of the gateway's own.
"""

import contextlib
import json
import subprocess
from dataclasses import dataclass

from support.expect import (UNKNOWN, assert_first, assert_problem, assert_replay, is_replay,
                            new_key)
from support.rawbackend import CREATED, RawBackend
from support.rawhttp import Closed
from support.server import BUILD, Nginx
from support.waiting import until

SETTLED_WITHIN_S = 1.0
# Framing is compared by itself; of what is kept whole no ranges are offered.
NOT_COMPARED = ("date", "content-length", "transfer-encoding", "accept-ranges")
WITHOUT_BODY = ("GET", "HEAD")

STEP = 'location = /step { counterfoil off; return 200 "in step"; }'


@dataclass
class Got:
    """What one client got: an answer, or an end before it was whole."""

    answer: object = None
    in_step: bool = True


def significant(answer):
    return sorted((name.lower(), value) for name, value in answer.headers
                  if name.lower() not in NOT_COMPARED)


class Pair:
    """`server` is a server block with {backend} for the backend's address, and {names} as given."""

    def __init__(self, directory, server, policy, http="", **names):
        self.raw = RawBackend()
        for name, value in {"backend": self.raw.url, **names}.items():
            server = server.replace("{" + name + "}", str(value))
        self.plain = Nginx(directory / "plain", self.raw,
                           server.replace("counterfoil on;", "").replace("counterfoil off;", ""),
                           http=http)
        self.guarded = Nginx(directory / "guarded", self.raw, server, http=http, policy=policy)
        self.servers = (self.plain, self.guarded)

    @contextlib.contextmanager
    def running(self):
        try:
            for server in self.servers:
                server.start()
            yield self
            for server in self.servers:
                server.stop()
            self.assert_clean()
        finally:
            for server in self.servers:
                server.close()
            self.raw.stop()

    def assert_clean(self):
        bad = [line for server in self.servers for line in server.bad_lines()]
        assert not bad, "in the error log:\n" + "\n".join(bad)

    def record(self, key):
        """The record of the key, None where there is none."""
        listed = subprocess.run([BUILD / "counterfoil", "list", "--store",
                                 f"lmdb:{self.guarded.directory}/store", "--key", key, "--json"],
                                check=True, capture_output=True, text=True, timeout=20).stdout
        records = [json.loads(line) for line in listed.splitlines()]
        assert len(records) <= 1, f"{len(records)} claims for one request"
        return records[0] if records else None

    def assert_state(self, key, outcome):
        """The record is in this state within a second of the answer."""
        seen = []

        def reached():
            record = self.record(key)
            seen.append(record and record["state"])
            return seen[-1] == outcome

        try:
            until(reached, "the state", SETTLED_WITHIN_S)
        except AssertionError:
            raise AssertionError(f"{outcome} within a second, but it was {seen[-1]}") from None

    def run(self, target, play, method="POST", version="HTTP/1.1", body=b"{}", headers=(),
            meanwhile=lambda: None):
        """The same request to both. Returns (key, what plain gave, what guarded gave)."""
        keys = [new_key() for _ in self.servers]
        body = None if method in WITHOUT_BODY else body
        clients = []
        with contextlib.ExitStack() as ends:
            for server, key in zip(self.servers, keys):
                self.raw.script(key, play, CREATED)
                clients.append(ends.enter_context(server.client()))
                server.send(target, key, body, headers, method=method, version=version,
                            client=clients[-1])
            meanwhile()
            got = [read_one(client, method) for client in clients]
        return keys[1], *got

    # What an ending means.

    def assert_retry(self, key, outcome, first, target, method="POST", version="HTTP/1.1",
                     body=b"{}", executed=1):
        """The next request under the key gets what the table of verdicts says, and runs or not."""
        body = None if method in WITHOUT_BODY else body
        again = self.guarded.post(target, key, body, method=method, version=version)
        if outcome == "FAILED":
            assert_first(again, 201)
            executed += 1
        elif outcome == "IN_DOUBT" and method == "HEAD":
            assert (again.status, is_replay(again)) == (409, False)
        elif outcome == "IN_DOUBT":
            assert_problem(again, UNKNOWN)
        else:
            assert_replay(again, first)
        assert self.raw.executions(key) == executed


def read_one(client, method):
    """Reads an answer, then asks on the same connection whether it is still in step."""
    try:
        answer = client.read(method, timeout_s=10)
    except Closed:
        return Got()
    if not answer.kept_alive:
        return Got(answer, client.at_end())
    after = client.request("GET", "/step")
    return Got(answer, (after.status, after.body) == (200, b"in step"))


def assert_like_plain(plain, guarded, method="POST"):
    """Status, body, framing and headers are those of plain nginx, and the connection is in step."""
    assert plain.answer is not None, "plain nginx gave no whole answer: nothing to compare with"
    assert guarded.answer is not None, "plain nginx answered, the gateway did not"
    want, have = plain.answer, guarded.answer
    assert (have.version, have.status) == (want.version, want.status), f"{have} for {want}"
    assert have.body == want.body, f"{have.body[:200]} for {want.body[:200]}"
    assert significant(have) == significant(want), f"{have.headers} for {want.headers}"
    assert have.framing in (want.framing, "length"), f"{have.framing} for {want.framing}"
    if method == "HEAD":
        assert have.all("Content-Length") == want.all("Content-Length"), f"{have} for {want}"
    assert plain.in_step and guarded.in_step, f"in step: {plain.in_step} and {guarded.in_step}"


def assert_broken_off(plain, guarded):
    """An answer that broke off while it was held: the gateway says so itself, in a whole answer."""
    assert plain.answer is None, "plain nginx gave a whole answer: this ending is no truncation"
    assert guarded.answer is not None, "an answer that broke off left the client without any"
    assert_problem(guarded.answer, UNKNOWN, status=502)
    assert guarded.in_step
