# SPDX-License-Identifier: Apache-2.0
"""A raw HTTP/1 client that sends exact bytes and reads strictly framed answers.

Owns one connection per Client. It repairs nothing: a wrong length, a second framing header or bytes
left over on a kept-alive connection fail the test that met them.
"""

import json
import select
import socket
import struct
from dataclasses import dataclass, field

TIMEOUT_S = 20.0
BLOCK = 256 * 1024


class Closed(Exception):
    """The peer closed or reset the connection before a whole answer arrived."""


class Malformed(AssertionError):
    """The answer's framing breaks RFC 9112."""


@dataclass
class Response:
    version: str
    status: int
    headers: list = field(default_factory=list)
    body: bytes = b""
    framing: str = "none"  # none | length | chunked | close

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name):
        """The only value of the header, None if absent; two of them fail."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} appears {len(values)} times"
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)

    @property
    def kept_alive(self):
        if self.framing == "close":
            return False
        connection = (self.header("Connection") or "").lower()
        return connection == "keep-alive" or (self.version == "HTTP/1.1" and connection != "close")


def encode(method, target, headers=(), body=None, version="HTTP/1.1", chunk=None, host="gw.test"):
    """The bytes of a request. Without a body no framing header; `chunk` is the size of chunks."""
    lines = [f"{method} {target} {version}"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in headers]
    if body is not None and chunk is not None:
        lines.append("Transfer-Encoding: chunked")
    elif body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    if body is None:
        return head
    if chunk is None:
        return head + body
    parts = [head]
    for start in range(0, len(body), chunk):
        piece = body[start:start + chunk]
        parts += [b"%x\r\n" % len(piece), piece, b"\r\n"]
    return b"".join(parts + [b"0\r\n\r\n"])


class Client:
    """One connection; send now, read later. Usable as a context manager, which closes it."""

    def __init__(self, address, timeout_s=TIMEOUT_S):
        self.sock = socket.create_connection(address, timeout=timeout_s)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with a TCP reset instead of a FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (ConnectionResetError, BrokenPipeError) as error:
            raise Closed("while sending") from error

    def request(self, *args, **kwargs):
        """Sends one request and reads its answer."""
        method = args[0]
        self.send(encode(*args, **kwargs))
        return self.read(method)

    def read(self, method="POST", timeout_s=None):
        """The next final answer; 1xx answers are skipped. Raises Closed or socket.timeout."""
        if timeout_s is not None:
            self.sock.settimeout(timeout_s)
        response = self._read_head()
        while 100 <= response.status < 200:
            response = self._read_head()
        self._read_body(response, method)
        return response

    def readable(self, wait_s):
        """True as soon as a byte or the end of the stream can be read without waiting."""
        return bool(self.buffer) or bool(select.select([self.sock], [], [], wait_s)[0])

    def at_end(self):
        """True when the peer has closed and no byte is left over."""
        assert self.buffer == b"", f"bytes left over: {self.buffer[:80]!r}"
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True

    def _fill(self):
        try:
            block = self.sock.recv(BLOCK)
        except ConnectionResetError as error:
            raise Closed("reset") from error
        if not block:
            raise Closed("end of stream")
        self.buffer += block

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line.decode("latin-1")

    def _exactly(self, size):
        if len(self.buffer) < size:
            parts, have = [self.buffer], len(self.buffer)
            self.buffer = b""
            while have < size:
                self._fill()
                parts.append(self.buffer)
                have += len(self.buffer)
                self.buffer = b""
            self.buffer = b"".join(parts)
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def _read_head(self):
        version, _, rest = self._line().partition(" ")
        if not version.startswith("HTTP/1."):
            raise Malformed(f"not a status line: {version!r} {rest!r}")
        response = Response(version, int(rest[:3]))
        while line := self._line():
            name, colon, value = line.partition(":")
            if not colon or name != name.strip():
                raise Malformed(f"not a header line: {line!r}")
            response.headers.append((name, value.strip(" \t")))
        return response

    def _read_body(self, response, method):
        lengths = response.all("Content-Length")
        codings = response.all("Transfer-Encoding")
        if len(lengths) > 1 or len(codings) > 1 or (lengths and codings):
            raise Malformed(f"framing twice: {lengths} {codings}")
        if response.status == 204 and (lengths or codings):
            raise Malformed("a 204 answer with a framing header")
        if method == "HEAD" or response.status in (204, 304):
            return
        if codings:
            if response.version == "HTTP/1.0" or codings[0].lower() != "chunked":
                raise Malformed(f"Transfer-Encoding {codings[0]} to {response.version}")
            response.framing = "chunked"
            response.body = self._read_chunks()
        elif lengths:
            response.framing = "length"
            response.body = self._exactly(int(lengths[0]))
        else:
            response.framing = "close"
            response.body = self._read_to_end()

    def _read_chunks(self):
        parts = []
        while size := int(self._line().partition(";")[0], 16):
            parts.append(self._exactly(size))
            if self._exactly(2) != b"\r\n":
                raise Malformed("chunk without its end")
        while self._line():
            pass
        return b"".join(parts)

    def _read_to_end(self):
        parts = [self.buffer]
        self.buffer = b""
        while True:
            try:
                block = self.sock.recv(BLOCK)
            except ConnectionResetError as error:
                raise Closed("reset inside a body") from error
            if not block:
                return b"".join(parts)
            parts.append(block)
