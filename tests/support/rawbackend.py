# SPDX-License-Identifier: Apache-2.0
"""A backend that plays bytes: it counts the requests it met and then does exactly what it was told.

Owns its listeners, one thread per connection and the list of request heads. A play is a list of
steps: bytes are sent as they are, a callable gets the socket. After the last step the connection
stays open for the next request, so that an answer's end must be found in its framing.
Invariant: a request is counted once its head is read, before anything is done about it.
"""

import select
import socket
import struct
import threading
from dataclasses import dataclass, field

from support.ports import free_port

BLOCK = 64 * 1024
OPEN_MAX_S = 15.0


class Body(bytes):
    """Bytes of a body: not sent in answer to HEAD."""


@dataclass
class Play:
    """What happens to one request. Without reads_body the request body stays in the socket."""

    steps: list
    reads_body: bool = True


@dataclass
class Head:
    method: str
    target: str
    headers: list = field(default_factory=list)

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]


# Steps.

def reset(sock):
    """Ends the connection with a TCP reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def close(sock):
    """Ends the connection; with a request body unread, the kernel makes a reset of it."""
    sock.close()


def finish(sock):
    """A FIN: this end has said all it will say, whatever is still unread."""
    sock.shutdown(socket.SHUT_WR)


def wait_for_peer(sock):
    """Reads nothing and returns when the peer has closed."""
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    poll.poll(OPEN_MAX_S * 1000)


def echo_upper(sock):
    """Sends back in upper case what comes, until b"bye" or the peer's end."""
    while block := sock.recv(BLOCK):
        sock.sendall(block.upper())
        if block.endswith(b"bye"):
            break
    sock.close()


def pause(seconds):
    """A step that lets time pass, so that what was sent before arrives on its own."""
    return lambda sock: threading.Event().wait(seconds)


def until_set(event):
    return lambda sock: event.wait(OPEN_MAX_S)


def head(status, *headers, version="HTTP/1.1"):
    lines = [f"{version} {status}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def reply(status, body=b'{"id": 7}', headers=(), framing="length"):
    """The steps of a whole answer. framing: length, chunked, close, or none."""
    given = ["Content-Type: application/json", *headers]
    if framing == "length":
        return [head(status, *given, f"Content-Length: {len(body)}"), Body(body)]
    if framing == "chunked":
        half = len(body) // 2
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:half], body[half:]) if p)
        return [head(status, *given, "Transfer-Encoding: chunked"), Body(chunks + b"0\r\n\r\n")]
    if framing == "close":
        return [head(status, *given, "Connection: close"), Body(body), finish]
    return [head(status, *headers)]


CREATED = Play(reply("201 Created", b'{"id": "created"}'))


class RawBackend:
    """Listens on one port of each of the hosts until stop()."""

    def __init__(self, hosts=("127.0.0.1",), port=None):
        self.port = port or free_port()
        self.changed = threading.Condition()
        self.heads = []
        self.scripts = {}
        self.listeners = [self._listen(host) for host in hosts]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def script(self, case, *plays):
        """The n-th request of the case gets the n-th play; the last one is repeated."""
        self.scripts[case] = list(plays)

    def of(self, case):
        with self.changed:
            return [one for of_case, one in self.heads if of_case == case]

    def executions(self, case):
        return len(self.of(case))

    def wait(self, case, count=1, deadline_s=10.0):
        with self.changed:
            assert self.changed.wait_for(
                lambda: sum(of_case == case for of_case, _ in self.heads) >= count,
                deadline_s), f"request {count} of {case} never reached the backend"

    def stop(self):
        for listener in self.listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.listeners = []

    def _listen(self, host):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, self.port), family=family, backlog=256)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(OPEN_MAX_S)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with sock:
            try:
                while self._play(sock):
                    pass
            except (OSError, ValueError):
                pass

    def _play(self, sock):
        """One request. True when the connection may carry another."""
        request, rest = _read_head(sock)
        play = self._record(request)
        if play.reads_body:
            _read_body(sock, request, rest)
        for step in play.steps:
            self._perform(sock, request, step)
        if not play.reads_body:
            wait_for_peer(sock)
        return play.reads_body

    @staticmethod
    def _perform(sock, request, step):
        if isinstance(step, Body) and request.method == "HEAD":
            return
        if isinstance(step, bytes):
            sock.sendall(step)
        else:
            step(sock)

    def _record(self, request):
        named = request.all("X-Case") or request.all("Idempotency-Key")
        case = named[0] if named else request.target
        with self.changed:
            self.heads.append((case, request))
            self.changed.notify_all()
            plays = self.scripts.get(case, [CREATED])
            return plays.pop(0) if len(plays) > 1 else plays[0]


def _read_head(sock):
    """(the head, what was received of the body)"""
    data = b""
    while b"\r\n\r\n" not in data:
        block = sock.recv(BLOCK)
        if not block:
            raise ConnectionError("end of stream")
        data += block
    text, _, rest = data.partition(b"\r\n\r\n")
    first, *lines = text.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    pairs = [line.partition(":") for line in lines]
    return Head(method, target, [(name, value.strip()) for name, _, value in pairs]), rest


def _read_body(sock, request, rest):
    lengths = request.all("Content-Length")
    left = int(lengths[0]) - len(rest) if lengths else 0
    while left > 0:
        block = sock.recv(min(left, BLOCK))
        if not block:
            raise ConnectionError("end of stream")
        left -= len(block)


class DeafPort:
    """A port whose queue of connections is full: what connects waits, neither accepted nor refused.

    refuse() ends listening: whoever waits is refused at the next attempt of its kernel, a second
    after it began, which is how a refusal comes back from another host: after EINPROGRESS.
    """

    def __init__(self, port):
        self.port = port
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(0)
        self.fill = []
        while not self.waiting():
            self.fill.append(socket.socket())
            self.fill[-1].setblocking(False)
            self.fill[-1].connect_ex(("127.0.0.1", port))

    def waiting(self):
        """How many connections are neither accepted nor refused so far."""
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        return sum(1 for row in rows
                   if row[3] == "02" and int(row[2].rpartition(":")[2], 16) == self.port)

    def refuse(self):
        self.listener.close()
        for sock in self.fill:
            sock.close()
        self.fill = []
