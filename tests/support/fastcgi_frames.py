# SPDX-License-Identifier: Apache-2.0
"""A FastCGI backend that plays records byte for byte, and knows its connections.

Owns what CgiBackend does not: answers given as records, whole or wrong, and the count of
connections, so that a test can tell whether one was kept. A step is bytes or a callable that gets
the socket. Invariant: a connection is counted before anything is read from it.
"""

import socket
import struct
import threading
from dataclasses import dataclass, field

from support.cgi_backend import CgiBackend

END, STDOUT, STDERR = 3, 6, 7


def record(kind, data=b"", padding=None, version=1, request=1):
    """The bytes of one record; padded to 8 bytes unless told otherwise."""
    padding = -len(data) % 8 if padding is None else padding
    return struct.pack(">BBHHBB", version, kind, request, len(data), padding, 0) + data + bytes(padding)


def end(app_status=0, protocol_status=0):
    return record(END, struct.pack(">IBxxx", app_status, protocol_status))


def stdout(data, size=32768, **options):
    """The data in records of so many bytes each."""
    return b"".join(record(STDOUT, data[at:at + size], **options)
                    for at in range(0, len(data), size))


def by_byte(data):
    """Steps that send each byte in a packet of its own."""
    return [bytes([byte]) for byte in data]


@dataclass
class Frames:
    """What one request is answered with. The connection goes on unless `keeps` is False."""

    steps: list
    keeps: bool = True
    hold: threading.Event = None
    sent: threading.Event = field(default_factory=threading.Event)


class FramesBackend(CgiBackend):
    """Speaks FastCGI and takes Frames beside the replies of CgiBackend."""

    def __init__(self):
        self.peers = []  # (port at nginx' end) of each connection, in order
        super().__init__("fastcgi")

    def _serve(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.changed:
            self.peers.append(sock.getpeername()[1])
        super()._serve(sock)

    def _answer(self, sock, reply):
        if not isinstance(reply, Frames):
            return super()._answer(sock, reply)
        for step in reply.steps:
            if callable(step):
                step(sock)
            else:
                sock.sendall(step)
        reply.sent.set()
        return reply.keeps
