# SPDX-License-Identifier: Apache-2.0
"""A backend behind fastcgi_pass, uwsgi_pass or scgi_pass: it counts what it executed.

Owns one listener, one thread per connection, and the list of requests read to their end. Requests
are known by their key, else by X-Case. An answer is a CGI header (or what `raw_head` says) and a body,
in pieces; `ending` says how the exchange ends.
Invariant: a request is recorded before anything is done about it, so a count never lags behind.
"""

import socket
import struct
import threading
from dataclasses import dataclass, field

from support.ports import free_port

BLOCK = 64 * 1024
HOLD_MAX_S = 60.0
HOSTS = ("127.0.0.1", "127.0.0.2")  # one backend, but two servers to nginx

BEGIN, END, PARAMS, STDIN, STDOUT = 1, 3, 4, 5, 6  # kinds of FastCGI records


@dataclass
class CgiRequest:
    params: list  # (name, value) in order; a name may come twice
    body: bytes
    case: str = ""

    def all(self, name):
        return [value for key, value in self.params if key == name]

    def param(self, name):
        """The only value of the parameter, None if absent."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} reached the backend {len(values)} times"
        return values[0] if values else None


@dataclass
class CgiReply:
    """`status` None sends no Status header. ending: whole, close (inside the protocol's framing),
    reset, silent (nothing more, until the peer goes)."""

    status: str = "201 Created"
    headers: list = field(default_factory=lambda: [("Content-Type", "application/json")])
    body: bytes = b'{"done": 1}'
    raw_head: bytes = None
    length: int = None  # a Content-Length header of this value
    ending: str = "whole"
    says_nothing: bool = False
    hold: threading.Event = None
    sent: threading.Event = field(default_factory=threading.Event)

    def head(self):
        if self.raw_head is not None:
            return self.raw_head
        lines = [f"Status: {self.status}"] if self.status else []
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += [f"Content-Length: {self.length}"] if self.length is not None else []
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _exactly(sock, size):
    parts = []
    while size:
        block = sock.recv(min(size, BLOCK))
        if not block:
            raise ConnectionError("end of stream")
        parts.append(block)
        size -= len(block)
    return b"".join(parts)


# FastCGI.

def _fastcgi_length(data, at):
    if data[at] < 128:
        return data[at], at + 1
    return struct.unpack_from(">I", data, at)[0] & 0x7FFFFFFF, at + 4


def _fastcgi_pairs(data):
    pairs, at = [], 0
    while at < len(data):
        name_bytes, at = _fastcgi_length(data, at)
        value_bytes, at = _fastcgi_length(data, at)
        name = data[at:at + name_bytes].decode("latin-1")
        at += name_bytes
        pairs.append((name, data[at:at + value_bytes].decode("latin-1")))
        at += value_bytes
    return pairs


def _fastcgi_read(sock):
    """(params, body, whether the connection is kept)"""
    streams, ended, keep = {PARAMS: b"", STDIN: b""}, set(), False
    while ended != set(streams):
        _, kind, _, size, padding, _ = struct.unpack(">BBHHBB", _exactly(sock, 8))
        data = _exactly(sock, size + padding)[:size]
        if kind == BEGIN:
            keep = bool(data[2] & 1)
        elif size:
            streams[kind] += data
        else:
            ended.add(kind)
    return _fastcgi_pairs(streams[PARAMS]), streams[STDIN], keep


def _record(kind, data):
    padding = -len(data) % 8
    return struct.pack(">BBHHBB", 1, kind, 1, len(data), padding, 0) + data + bytes(padding)


def _fastcgi_write(sock, data):
    for at in range(0, len(data), 32768):
        sock.sendall(_record(STDOUT, data[at:at + 32768]))


# uwsgi and SCGI.

def _uwsgi_read(sock):
    size, = struct.unpack_from("<H", _exactly(sock, 4), 1)
    data, pairs, at = _exactly(sock, size), [], 0
    words = []
    while at < len(data):
        length, = struct.unpack_from("<H", data, at)
        words.append(data[at + 2:at + 2 + length].decode("latin-1"))
        at += 2 + length
    pairs = list(zip(words[::2], words[1::2]))
    return pairs, _exactly(sock, int(dict(pairs).get("CONTENT_LENGTH") or 0)), False


def _scgi_read(sock):
    size = b""
    while not size.endswith(b":"):
        size += _exactly(sock, 1)
    words = _exactly(sock, int(size[:-1]) + 1)[:-2].decode("latin-1").split("\0")
    pairs = list(zip(words[::2], words[1::2]))
    return pairs, _exactly(sock, int(dict(pairs).get("CONTENT_LENGTH") or 0)), False


READS = {"fastcgi": _fastcgi_read, "uwsgi": _uwsgi_read, "scgi": _scgi_read}


class CgiBackend:
    """Listens on two loopback addresses until stop(), and speaks one of the three protocols."""

    def __init__(self, protocol):
        self.protocol = protocol
        self.port = free_port()
        self.changed = threading.Condition()
        self.requests = []
        self.scripts = {}
        self.held = []
        self.listeners = [socket.create_server((host, self.port), backlog=128) for host in HOSTS]
        for listener in self.listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    @property
    def url(self):
        return f"127.0.0.1:{self.port}"

    def stop(self):
        for listener in self.listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.release()

    def script(self, case, *replies):
        """The n-th execution of the case gets the n-th reply; the last is repeated."""
        self.scripts[case] = list(replies)

    def holding(self, **options):
        """A reply that waits until its `hold` is set; stop() sets it too."""
        self.held.append(CgiReply(hold=threading.Event(), **options))
        return self.held[-1]

    def release(self):
        while self.held:
            self.held.pop().hold.set()

    def of(self, case):
        with self.changed:
            return [request for request in self.requests if request.case == case]

    def executions(self, case):
        return len(self.of(case))

    def wait(self, case, deadline_s=10.0):
        with self.changed:
            assert self.changed.wait_for(
                lambda: any(request.case == case for request in self.requests),
                deadline_s), f"{case} never reached the backend"
        return self.of(case)[0]

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with sock:
            try:
                while self._one(sock):
                    pass
            except OSError:
                pass

    def _one(self, sock):
        """One request. True when the connection is kept for another."""
        params, body, keep = READS[self.protocol](sock)
        request = CgiRequest(params, body)
        case = request.all("HTTP_IDEMPOTENCY_KEY") or request.all("HTTP_X_CASE")
        request.case = case[0] if case else request.param("REQUEST_URI")
        with self.changed:
            self.requests.append(request)
            replies = self.scripts.get(request.case, [CgiReply()])
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            self.changed.notify_all()
        if reply.hold is not None:
            reply.hold.wait(HOLD_MAX_S)
        return self._answer(sock, reply) and keep

    def _answer(self, sock, reply):
        """True when the answer came to its end in order."""
        if not reply.says_nothing:
            self._write(sock, reply.head())
            self._write(sock, reply.body)
        reply.sent.set()
        if reply.ending == "silent":
            sock.recv(1)
        if reply.ending == "reset":
            threading.Event().wait(0.05)  # what was sent must arrive as sent, before the reset
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if reply.ending != "whole":
            return False
        if self.protocol == "fastcgi":
            sock.sendall(_record(STDOUT, b"") + _record(END, bytes(8)))
        return True

    def _write(self, sock, data):
        if self.protocol == "fastcgi":
            _fastcgi_write(sock, data)
        else:
            sock.sendall(data)
