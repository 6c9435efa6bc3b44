# SPDX-License-Identifier: Apache-2.0
"""An HTTP/2 client that can stop at every place: inside a request's body, before or inside an answer.

Owns one connection, in clear (prior knowledge) or over TLS (ALPN). It gives a stream's window back
only as the test reads that stream, so that an answer nobody reads stands still in nginx. The library
checks what is received: a header that HTTP/2 forbids fails the test.
"""

import socket
import ssl
import struct

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

from support.rawhttp import TIMEOUT_S, Closed, Response

BLOCK = 64 * 1024
CONNECTION_WINDOW = 1 << 24
CANCEL = h2.errors.ErrorCodes.CANCEL


class Reset(Closed):
    """The server reset the stream."""


class _Stream:
    def __init__(self):
        self.response = None
        self.unread = b""
        self.owed = 0  # of its window, not given back yet
        self.ended = False
        self.reset = None


def _tls(sock):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context.wrap_socket(sock)


class Http2Client:
    """Requests are sent by request(), or by begin() and data(); answers are read by their stream."""

    def __init__(self, address, tls=False, window_bytes=65535, timeout_s=TIMEOUT_S):
        self.sock = socket.create_connection(address, timeout=timeout_s)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.local_port, self.peer_port = self.sock.getsockname()[1], address[1]
        self.alpn = None
        if tls:
            self.sock = _tls(self.sock)
            self.alpn = self.sock.selected_alpn_protocol()
        self.scheme = "https" if tls else "http"
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding="latin-1"))
        self.h2.local_settings = h2.settings.Settings(client=True, initial_values={
            h2.settings.SettingCodes.ENABLE_PUSH: 0,
            h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window_bytes})
        self.streams = {}
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(CONNECTION_WINDOW)  # streams alone stand still
        self._flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def abort(self):
        """Ends the connection with a TCP reset, whatever streams it has."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    # Sending.

    def begin(self, target, key=None, headers=(), method="POST", ctype="application/json", end=False):
        """Sends the head of a request; returns its stream."""
        fields = [(":method", method), (":scheme", self.scheme), (":authority", "gw.test"),
                  (":path", target)]
        fields += [("content-type", ctype)] if ctype else []
        fields += [("idempotency-key", key)] if key is not None else []
        fields += [(name.lower(), value) for name, value in headers]
        number = self.h2.get_next_available_stream_id()
        self.streams[number] = _Stream()
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
        self.h2.send_headers(number, fields, end_stream=end)
        self._flush()
        return number

    def data(self, number, data, end=False):
        """Sends a piece of the body, as far as nginx gives room for it."""
        while data:
            room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size)
            if room <= 0:
                self.receive()
                continue
            piece, data = data[:room], data[room:]
            self.h2.send_data(number, piece)
        if end:
            self.h2.end_stream(number)
        self._flush()

    def request(self, target, key=None, body=b"{}", **options):
        """Sends a whole request; returns its stream. Without a body its head ends it."""
        number = self.begin(target, key, end=body is None, **options)
        if body is not None:
            self.data(number, body, end=True)
        return number

    def cancel(self, number):
        """RST_STREAM; what came of it no longer holds up the others."""
        self.h2.reset_stream(number, CANCEL)
        self._give_back(number)

    def post(self, *args, **options):
        return self.read(self.request(*args, **options))

    # Receiving.

    def read_head(self, number):
        """The answer as far as it is known once its head has come; gives no window back."""
        stream = self.streams[number]
        while stream.response is None:
            self._check(stream)
            self.receive()
        return stream.response

    def read(self, number):
        """The whole answer."""
        stream = self.streams[number]
        self.read_head(number)
        parts = []
        while True:
            parts.append(stream.unread)
            stream.unread = b""
            self._give_back(number)
            if stream.ended:
                break
            self._check(stream)
            self.receive()
        stream.response.body = b"".join(parts)
        return stream.response

    def ping(self):
        """A round trip: nginx has seen all that was sent before."""
        self.h2.ping(b"in step?")
        self._flush()
        while not any(isinstance(event, h2.events.PingAckReceived) for event in self.receive()):
            pass

    @staticmethod
    def _check(stream):
        if stream.reset is not None:
            raise Reset(f"RST_STREAM {stream.reset}")

    def _flush(self):
        data = self.h2.data_to_send()
        if data:
            self.sock.sendall(data)

    def _give_back(self, number):
        stream = self.streams[number]
        if stream.owed:
            self.h2.acknowledge_received_data(stream.owed, number)
            stream.owed = 0
        self._flush()

    def receive(self):
        """Takes in what comes next, waiting for it."""
        try:
            block = self.sock.recv(BLOCK)
        except ConnectionResetError as error:
            raise Closed("reset") from error
        if not block:
            raise Closed("end of stream")
        events = self.h2.receive_data(block)
        for event in events:
            self._take(event)
        self._flush()
        return events

    def _take(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.ConnectionTerminated):
            raise Closed(f"GOAWAY {event.error_code}")
        if stream is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            fields = [(name, value) for name, value in event.headers if name != ":status"]
            stream.response = Response("HTTP/2", int(dict(event.headers)[":status"]), fields)
        elif isinstance(event, h2.events.DataReceived):
            stream.unread += event.data
            stream.owed += event.flow_controlled_length
        elif isinstance(event, h2.events.StreamEnded):
            stream.ended = True
        elif isinstance(event, h2.events.StreamReset):
            stream.reset = event.error_code
