# SPDX-License-Identifier: Apache-2.0
"""Keyed load from a few threads, and what must hold of it afterwards.

Every request has a key of its own and a connection of its own, so that none meets an idle connection
that nginx is just closing. Owns the list of what was sent and of what came back. Invariant: a request
is noted before it is sent, so that what was cut off is known.
"""

import threading

from support.expect import assert_first, assert_replay, new_key
from support.rawhttp import Closed

CUT = "cut off"


class Load:
    """A context manager: the load runs inside of it. `answers` is key -> first answer or CUT."""

    def __init__(self, server, path, threads=4, body=b'{"amount": 1}'):
        self.server, self.path, self.body = server, path, body
        self.answers = {}
        self.problems = []
        self.going = threading.Event()
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]

    def __enter__(self):
        self.going.set()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.going.clear()
        for thread in self.threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in self.threads), "a request never ended"
        assert not self.problems, self.problems[:3]

    def _run(self):
        while self.going.is_set():
            key = new_key()
            self.answers[key] = CUT
            try:
                self.answers[key] = self.server.post(self.path, key, self.body)
            except (Closed, ConnectionError):
                continue
            except Exception as error:  # pylint: disable=broad-except
                self.problems.append(f"{key}: {error!r}")
                return

    def cut(self):
        return [key for key, answer in self.answers.items() if answer is CUT]

    def assert_whole(self, backend):
        """Nothing was cut off; each key was executed once, answered by the backend, and replays."""
        assert self.cut() == []
        self.assert_kept(backend)

    def assert_kept(self, backend):
        """Each answered key was executed once and replays; a key that was cut off, once at most."""
        assert len(self.answers) > len(self.threads)
        for key, first in self.answers.items():
            if first is CUT:
                assert backend.executions(key) <= 1, key
                continue
            assert_first(first)
            assert first.json()["case"] == key
            assert_replay(self.server.post(self.path, key, self.body), first)
            assert backend.executions(key) == 1, key
