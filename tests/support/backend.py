# SPDX-License-Identifier: Apache-2.0
"""The scriptable backend that tells the truth: it counts what was executed.

Owns one listener, one thread per connection, and the list of requests read to their end. The
`case` of a request is its X-Case header, else its idempotency key, else its path; scripts and
counts are by case. Requests below /probe/ are status look-ups: recorded apart, never counted as
executions.
Invariant: a request is recorded before anything is done about it, so a count never lags behind.
"""

import hashlib
import json
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

from support.ports import free_port

BODY_KEPT_MAX = 128 * 1024
BLOCK = 1024 * 1024
HOLD_MAX_S = 60.0


@dataclass
class Request:
    """One request as the backend received it."""

    method: str
    target: str
    headers: list
    case: str = ""
    body: bytes = b""  # empty when longer than BODY_KEPT_MAX
    body_bytes: int = 0
    sha256: str = ""
    peer_port: int = 0
    at_s: float = 0.0  # time.monotonic() when it was read to its end
    serial: int = 0

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name):
        values = self.all(name)
        assert len(values) <= 1, f"{name} reached the backend {len(values)} times"
        return values[0] if values else None


@dataclass
class Reply:
    """What to do about one request: answer it, late if `hold` is given, or fail it by `fault`."""

    status: int = 201
    headers: list = field(default_factory=lambda: [("Content-Type", "application/json")])
    body: bytes = None  # None: a JSON text naming the execution, different for each
    framing: str = "length"  # length | chunked | close
    hold: threading.Event = None  # answered when set
    fault: str = None  # reset | close | truncate | hang
    sent: threading.Event = field(default_factory=threading.Event)  # set when all was written


class _Script:
    def __init__(self, replies):
        self.replies = list(replies)

    def next(self):
        """The replies in turn; the last one is repeated."""
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class _Reader:
    """Reads requests from one connection."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def _fill(self):
        block = self.sock.recv(BLOCK)
        if not block:
            raise ConnectionError("end of stream")
        self.buffer += block

    def line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def take(self, size, sink):
        while size:
            if not self.buffer:
                self._fill()
            piece, self.buffer = self.buffer[:size], self.buffer[size:]
            size -= len(piece)
            sink(piece)

    def request(self):
        method, target, _ = self.line().decode("latin-1").split(" ")
        request = Request(method, target, [])
        while line := self.line().decode("latin-1"):
            name, _, value = line.partition(":")
            request.headers.append((name, value.strip()))
        self._body(request)
        return request

    def _body(self, request):
        digest = hashlib.sha256()
        kept = []

        def sink(piece):
            digest.update(piece)
            request.body_bytes += len(piece)
            if request.body_bytes <= BODY_KEPT_MAX:
                kept.append(piece)

        if (request.header("Transfer-Encoding") or "").lower() == "chunked":
            while size := int(self.line().partition(b";")[0], 16):
                self.take(size, sink)
                self.line()
            while self.line():
                pass
        else:
            self.take(int(request.header("Content-Length") or 0), sink)
        request.sha256 = digest.hexdigest()
        request.body = b"".join(kept) if request.body_bytes <= BODY_KEPT_MAX else b""


def _case_of(request):
    case = request.all("X-Case") or request.all("Idempotency-Key")
    return case[0].strip('"') if case else request.target.partition("?")[0]


class Backend:
    """Listens until stop(). stop() followed by start() comes back on the same port."""

    def __init__(self):
        self.port = free_port()
        self.changed = threading.Condition()
        self.requests = []
        self.probes = []
        self.scripts = {}
        self.probe_scripts = {}
        self.connections = set()
        self.released = []
        self.listener = None
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=256)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stop(self):
        """Ends listening and every connection; holds are released."""
        listener, self.listener = self.listener, None
        if listener is None:
            return
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        self.release()
        with self.changed:
            connections = list(self.connections)
        for sock in connections:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    # Scripting.

    def script(self, case, *replies):
        """The n-th execution of the case gets the n-th reply; the last is repeated."""
        self.scripts[case] = _Script(replies)

    def script_probe(self, key, *replies):
        """The same for look-ups at /probe/KEY."""
        self.probe_scripts[key] = _Script(replies)

    def holding(self, **kwargs):
        """A reply that waits until its `hold` is set; release() and stop() set it too."""
        reply = Reply(hold=threading.Event(), **kwargs)
        self.released.append(reply.hold)
        return reply

    def release(self):
        """Lets every held reply go."""
        while self.released:
            self.released.pop().set()

    # Counting.

    def of(self, case):
        with self.changed:
            return [request for request in self.requests if request.case == case]

    def executions(self, case):
        return len(self.of(case))

    def probes_of(self, key):
        with self.changed:
            return [request for request in self.probes if request.case == key]

    def wait(self, case, count=1, deadline_s=10.0):
        """Returns the count-th request of the case, once it has been read to its end."""
        with self.changed:
            arrived = self.changed.wait_for(lambda: self._count(self.requests, case) >= count,
                                            timeout=deadline_s)
        assert arrived, f"request {count} of {case} never reached the backend"
        return self.of(case)[count - 1]

    def wait_probe(self, key, count=1, deadline_s=10.0):
        with self.changed:
            arrived = self.changed.wait_for(lambda: self._count(self.probes, key) >= count,
                                            timeout=deadline_s)
        assert arrived, f"look-up {count} of {key} never reached the backend"
        return self.probes_of(key)[count - 1]

    @staticmethod
    def _count(requests, case):
        return sum(1 for request in requests if request.case == case)

    # Serving.

    def _accept(self, listener):
        while True:
            try:
                sock, peer = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.changed:
                self.connections.add(sock)
            threading.Thread(target=self._serve, args=(sock, peer[1]), daemon=True).start()

    def _serve(self, sock, peer_port):
        reader = _Reader(sock)
        try:
            while True:
                request = reader.request()
                request.peer_port = peer_port
                request.at_s = time.monotonic()
                if not self._answer(sock, request, self._record(request)):
                    break
        except (OSError, ValueError):
            pass
        finally:
            with self.changed:
                self.connections.discard(sock)
            sock.close()

    def _record(self, request):
        """Counts the request and picks its reply, in one step under the lock."""
        is_probe = request.target.startswith("/probe/")
        request.case = request.target.rpartition("/")[2] if is_probe else _case_of(request)
        with self.changed:
            log = self.probes if is_probe else self.requests
            log.append(request)
            request.serial = len(log)
            script = (self.probe_scripts if is_probe else self.scripts).get(request.case)
            reply = script.next() if script else Reply(status=404 if is_probe else 201)
            self.changed.notify_all()
        return reply

    def _answer(self, sock, request, reply):
        """True when the connection may carry another request."""
        if reply.hold is not None:
            reply.hold.wait(HOLD_MAX_S)
        if reply.fault == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if reply.fault == "close":
            return False
        if reply.fault == "hang":
            sock.recv(1)
            return False
        body = reply.body
        if body is None:
            body = json.dumps({"execution": request.serial, "case": request.case}).encode()
        sock.sendall(_encode(reply, body))
        reply.sent.set()
        return reply.fault is None and reply.framing != "close"


def _encode(reply, body):
    lines = [f"HTTP/1.1 {reply.status} Scripted"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    if reply.framing == "chunked":
        lines.append("Transfer-Encoding: chunked")
    elif reply.framing == "length" and reply.status not in (204, 304):
        lines.append(f"Content-Length: {len(body)}")
    elif reply.framing == "close":
        lines.append("Connection: close")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    if reply.status in (204, 304):
        return head
    if reply.fault == "truncate":
        return head + body[:len(body) // 2]
    if reply.framing != "chunked":
        return head + body
    middle = len(body) // 2
    pieces = [piece for piece in (body[:middle], body[middle:]) if piece]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return head + chunks + b"0\r\n\r\n"
