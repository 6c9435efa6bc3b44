# SPDX-License-Identifier: Apache-2.0
"""Answers of every size and every pace, request bodies over nginx's own limit, large headers.

Up to the route's limit an answer is kept whole; above it, it is passed on while it comes, in memory
that does not depend on its length, and settled without a snapshot.
"""

import re
import threading

import pytest

from support.expect import (NOT_STORED, PENDING, assert_first, assert_problem, assert_replay,
                            is_replay)
from support.front import PROXY, STEP, Front, view
from support.http2 import Http2Client
from support.rawbackend import Body, Play, RawBackend, finish, head, until_set

POLICY = """
version: 1
tenant: none
routes:
  - {name: none, match: POST /none/**, snapshot: {max_body: 0B}}
  - {name: small, match: POST /small/**, snapshot: {max_body: 1KiB}}
  - {name: medium, match: POST /medium/**}
  - {name: large, match: POST /large/**, snapshot: {max_body: 32MiB}}
"""

PLACES = ["none", "small", "medium", "large"]
SERVER = f"""
    counterfoil on;
    large_client_header_buffers 8 64k;
    proxy_buffer_size 64k;
    proxy_buffers 8 64k;
    proxy_busy_buffers_size 128k;
    {STEP}
    {{places}}
    location /small/limited/ {{ {PROXY} {{backend}}; client_max_body_size 1k; }}
"""
PLACE = """
    location /PLACE/ { PROXY {backend}; }
    location /PLACE/unbuffered/ { PROXY {backend}; proxy_buffering off; }
"""

KIB, MIB = 1 << 10, 1 << 20
BLOCK = b"0123456789abcdef" * 4096


@pytest.fixture(scope="module")
def raw():
    backend = RawBackend()
    yield backend
    backend.stop()


@pytest.fixture(scope="module")
def front(tmp_path_factory, raw):
    places = "".join(PLACE.replace("PLACE", place).replace("PROXY", PROXY) for place in PLACES)
    server = Front(tmp_path_factory.mktemp("front"), raw,
                   SERVER.replace("{places}", places).replace("{backend}", raw.url), POLICY)
    with server.running():
        yield server


def body_of(size):
    return (BLOCK * (size // len(BLOCK) + 1))[:size]


FRAMINGS = ["length", "chunked", "close"]


def answer_of(size, framing, send):
    """The steps of a 201 whose body send(sock, size) writes: one chunk where it is chunked."""
    if framing == "length":
        return [head("201 Created", f"Content-Length: {size}"), lambda sock: send(sock, size)]
    if framing == "close":
        return [head("201 Created", "Connection: close"), lambda sock: send(sock, size), finish]
    return [head("201 Created", "Transfer-Encoding: chunked"),
            Body(b"%x\r\n" % size) if size else Body(b""), lambda sock: send(sock, size),
            Body(b"\r\n0\r\n\r\n" if size else b"0\r\n\r\n")]


def at_once(sock, size):
    sock.sendall(body_of(size))


def by_blocks(sock, size):
    """Without ever holding it whole."""
    for at in range(0, size, len(BLOCK)):
        sock.sendall(BLOCK[:size - at])


def check_kept_or_not(front, raw, key, target, first, kept):
    front.await_state(key, "SUCCEEDED")
    again = front.post(target, key)
    if kept:
        assert_replay(again, first)
    else:
        assert_problem(again, NOT_STORED)
    assert raw.executions(key) == 1


# The limit.

LIMITS = [("none", 0), ("small", KIB), ("medium", MIB), ("large", 32 * MIB)]


@pytest.mark.parametrize("over", [0, 1], ids=["at the limit", "one above"])
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("unbuffered", ["", "unbuffered/"])
@pytest.mark.parametrize("place, limit", LIMITS)
def test_the_limit_is_exact(front, raw, key, place, limit, unbuffered, framing, over):
    target = f"/{place}/{unbuffered}x"
    raw.script(key, Play(answer_of(limit + over, framing, at_once)))
    first = front.post(target, key)
    assert_first(first)
    assert first.body == body_of(limit + over)
    check_kept_or_not(front, raw, key, target, first, kept=not over)


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("unbuffered", ["", "unbuffered/"])
@pytest.mark.parametrize("place, kept", [("large", True), ("medium", False)])
def test_8_mib(front, raw, key, place, kept, unbuffered, framing):
    target = f"/{place}/{unbuffered}x"
    raw.script(key, Play(answer_of(8 * MIB, framing, by_blocks)))
    first = front.post(target, key)
    assert_first(first)
    assert first.body == body_of(8 * MIB)
    check_kept_or_not(front, raw, key, target, first, kept)


# A byte at a time. The backend's socket sends each write as it is.

def byte_by_byte(sock, size):
    for byte in body_of(size):
        sock.sendall(bytes([byte]))


def a_chunk_each(sock):
    for byte in body_of(2000):
        sock.sendall(b"1\r\n" + bytes([byte]) + b"\r\n")


def slow_head(*lines):
    return [Body(bytes([byte])) for byte in head("201 Created", *lines)]


@pytest.mark.parametrize("unbuffered", ["", "unbuffered/"])
@pytest.mark.parametrize("place, kept", [("medium", True), ("small", False)])
@pytest.mark.parametrize("framing", FRAMINGS + ["a chunk each"])
def test_one_byte_per_packet(front, raw, key, place, kept, unbuffered, framing):
    target = f"/{place}/{unbuffered}x"
    if framing == "a chunk each":
        steps = slow_head("Transfer-Encoding: chunked") + [a_chunk_each, Body(b"0\r\n\r\n")]
    elif framing == "length":
        steps = slow_head("Content-Length: 2000") + [lambda sock: byte_by_byte(sock, 2000)]
    else:
        steps = answer_of(2000, framing, byte_by_byte)
    raw.script(key, Play(steps))
    first = front.post(target, key)
    assert_first(first)
    assert first.body == body_of(2000)
    check_kept_or_not(front, raw, key, target, first, kept)


@pytest.mark.parametrize("size", [1000, 1024])
@pytest.mark.parametrize("unbuffered", ["", "unbuffered/"])
def test_what_may_still_fit_is_held_until_it_ends(front, raw, key, unbuffered, size):
    """Of unknown length: nothing is sent before it is known that it can be kept (R3)."""
    go = threading.Event()
    raw.script(key, Play([head("201 Created", "Transfer-Encoding: chunked"),
                          Body(b"%x\r\n%s\r\n" % (size, body_of(size))), until_set(go),
                          Body(b"0\r\n\r\n")]))
    with front.send(f"/small/{unbuffered}x", key) as client:
        raw.wait(key)
        assert_problem(front.post(f"/small/{unbuffered}x", key), PENDING)
        assert not client.readable(0.05)
        go.set()
        first = client.read()
    assert first.body == body_of(size)
    check_kept_or_not(front, raw, key, f"/small/{unbuffered}x", first, kept=True)


# 300 MiB: memory does not grow with the answer.

HUGE = 300 * MIB
GROWTH_MAX_KIB = 4 * KIB


def memory_kib(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return int(re.search(rf"^{field}:\s+(\d+) kB", file.read(), re.M).group(1))


class Peak:
    """How much more than at the start the worker has held at any time."""

    def __init__(self, pid):
        self.pid = pid
        with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # forgets the peak so far
        self.before_kib = memory_kib(pid, "VmRSS")

    def growth_kib(self):
        return memory_kib(self.pid, "VmHWM") - self.before_kib


def count_bytes(client):
    """(head, bytes of the body as they came over the wire)"""
    data = bytearray()
    while b"\r\n\r\n" not in data:
        data += client.sock.recv(4096)
    top, _, rest = bytes(data).partition(b"\r\n\r\n")
    total, buffer = len(rest), bytearray(MIB)
    while total < HUGE and (size := client.sock.recv_into(buffer)):
        total += size
    return top, total


@pytest.mark.parametrize("unbuffered, framing", [("", "length"), ("unbuffered/", "length"),
                                                 ("", "close"), ("unbuffered/", "chunked")])
def test_300_mib_pass_in_constant_memory(front, raw, key, unbuffered, framing):
    pid, = front.workers()
    target = f"/medium/{unbuffered}x"
    raw.script(key, Play(answer_of(HUGE, framing, by_blocks)))
    front.post("/small/x", key + "-warm")
    peak = Peak(pid)
    with front.send(target, key) as client:
        top, total = count_bytes(client)
    assert top.startswith(b"HTTP/1.1 201")
    assert total >= HUGE
    front.await_state(key, "SUCCEEDED")
    assert peak.growth_kib() < GROWTH_MAX_KIB
    assert_problem(front.post(target, key), NOT_STORED)
    assert raw.executions(key) == 1


@pytest.mark.parametrize("unbuffered", ["", "unbuffered/"])
def test_300_mib_for_nobody_are_read_in_constant_memory(front, raw, key, unbuffered):
    """The client leaves at the beginning; what comes is still read to its end, and dropped."""
    pid, = front.workers()
    target = f"/medium/{unbuffered}x"
    raw.script(key, Play(answer_of(HUGE, "length", by_blocks)))
    peak = Peak(pid)
    client = front.send(target, key, client=front.narrow())
    client.read_some(1000)
    client.reset()
    front.await_state(key, "SUCCEEDED", deadline_s=10)
    assert peak.growth_kib() < GROWTH_MAX_KIB
    assert_problem(front.post(target, key), NOT_STORED)
    assert raw.executions(key) == 1


def test_many_answers_over_the_limit_leave_nothing_in_memory(front, raw):
    pid, = front.workers()
    for turn in range(40):
        key = f"many-{turn}"
        raw.script(key, Play(answer_of(4 * MIB, "length", by_blocks)))
        assert len(front.post("/medium/unbuffered/x", key).body) == 4 * MIB
        assert raw.executions(key) == 1
        if turn == 5:
            peak = Peak(pid)
    assert peak.growth_kib() < GROWTH_MAX_KIB


# 413.

@pytest.mark.parametrize("chunk", [None, 100, 5000], ids=["length", "chunks", "one chunk"])
def test_a_body_nginx_refuses_leaves_no_claim(front, raw, key, chunk):
    target = "/small/limited/x"
    with front.client() as client:
        answer = front.post(target, key, b"b" * 1025, client=client, chunk=chunk)
        assert (answer.status, is_replay(answer)) == (413, False)
    assert front.record(key) is None
    assert raw.executions(key) == 0
    first = front.post(target, key, b"b" * 1024)
    assert_first(first)
    assert_replay(front.post(target, key, b"b" * 1024), first)
    again = front.post(target, key, b"b" * 1025)
    assert again.status == 413  # a settled key does not open the door to a body that is refused
    assert raw.executions(key) == 1


@pytest.mark.parametrize("said", [True, False], ids=["length", "no length"])
def test_a_body_nginx_refuses_over_http_2_leaves_no_claim(front, raw, key, said):
    with Http2Client(("127.0.0.1", front.clear_port)) as client:
        headers = [("content-length", "1025")] if said else []
        stream = client.begin("/small/limited/x", key, headers=headers)
        if not said:
            client.data(stream, b"b" * 1025, end=True)
        assert client.read(stream).status == 413
        assert front.record(key) is None
        assert_first(client.post("/small/limited/x", key))
    assert raw.executions(key) == 1


# Headers.

HIGH = bytes(range(0x80, 0x100)).decode("latin-1")
HEADERS = {
    "8 KiB": [("X-Big", "b" * 8192)],
    "8 KiB of small ones": [(f"X-N{number}", "n" * 50) for number in range(140)],
    "empty values": [("X-Empty", ""), ("X-After", "1"), ("X-Empty", "")],
    "bytes 0x80-0xFF": [("X-High", HIGH), ("X-One", "\x80"), ("X-Utf8", "\xe4\xb8\xad")],
    "every visible character": [("X-Visible", "".join(map(chr, range(0x21, 0x7f))))],
    "tabs inside": [("X-Tab", "a\tb")],
    "a long name": [("X-" + "n" * 1000, "1")],
    "everything": [("X-Big", HIGH * 64), ("X-Empty", "")],
}


def sent_back(answer, wanted):
    names = {name.lower() for name, _ in wanted}
    return [(name.lower(), value) for name, value in answer.headers if name.lower() in names]


def lower(headers):
    return [(name.lower(), value) for name, value in headers]


@pytest.mark.parametrize("which", HEADERS)
def test_response_headers_come_back_as_they_were(front, raw, key, which):
    lines = [f"{name}: {value}" for name, value in HEADERS[which]]
    raw.script(key, Play([head("201 Created", *lines, "Content-Length: 2"), Body(b"{}")]))
    first = front.post("/medium/x", key)
    assert_first(first)
    assert sent_back(first, HEADERS[which]) == lower(HEADERS[which])
    again = front.post("/medium/x", key)
    assert_replay(again, first)
    assert view(again) == view(first)
    with Http2Client(("127.0.0.1", front.clear_port)) as client:
        other = client.post("/medium/x", key)
    assert is_replay(other)
    assert sent_back(other, HEADERS[which]) == lower(HEADERS[which])
    assert raw.executions(key) == 1


@pytest.mark.parametrize("over", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("which", HEADERS)
def test_request_headers_reach_the_backend_as_they_were(front, raw, key, which, over):
    if over == "HTTP/2":
        with Http2Client(("127.0.0.1", front.clear_port)) as client:
            first = client.post("/medium/x", key, headers=HEADERS[which])
    else:
        first = front.post("/medium/x", key, headers=HEADERS[which])
    assert_first(first)
    request, = raw.of(key)
    assert sent_back(request, HEADERS[which]) == lower(HEADERS[which])
    assert_replay(front.post("/medium/x", key), first)
    assert raw.executions(key) == 1


@pytest.mark.parametrize("size", [4096, 8192])
def test_large_headers_pass_through_serve(new_gateway, raw, key, size):
    """What a request or an answer may be is the backend's to say."""
    gateway = new_gateway(None, backend=raw)
    large = [("X-Big", "b" * size)]
    raw.script(key, Play([head("201 Created", "X-Big: " + "b" * size, "Content-Length: 2"),
                          Body(b"{}")]))
    first = gateway.post("/x", key)
    assert_first(first)
    assert sent_back(first, large) == lower(large)
    assert_replay(gateway.post("/x", key), first)
    assert raw.executions(key) == 1


def test_8_kib_of_a_request_header_pass_through_serve(new_gateway, raw, key):
    gateway = new_gateway(None, backend=raw)
    first = gateway.post("/x", key, headers=[("X-Big", "b" * 8192)])
    assert_first(first)
    assert_replay(gateway.post("/x", key, headers=[("X-Big", "b" * 8192)]), first)
    request, = raw.of(key)
    assert request.all("X-Big") == ["b" * 8192]
