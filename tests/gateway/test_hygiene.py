# SPDX-License-Identifier: Apache-2.0
"""What clients write into keys, bodies, paths and tenants never becomes a line of a log, a header of
an answer, a byte on an operator's terminal or another request to the backend."""

import json
import re
from urllib.parse import unquote

import pytest

from support.backend import Reply
from support.expect import (CONFLICT, INVALID, UNKNOWN, assert_first, assert_problem, assert_replay,
                            assert_settled, code_of, new_key)
from support.rawhttp import encode

POLICY = """
version: 1
tenant: {header: X-Tenant-Id, otherwise: none}
defaults: {lease: 2s}
routes:
  - {name: any, match: POST /any, key: {header: Idempotency-Key, required: true}}
  - {name: rest, match: "POST /rest/**"}
  - {name: pay, match: "POST /orders/{id}/pay"}
  - {name: probed, match: POST /probed, in_doubt: {probe: "GET /probe/{key}", timeout: 2s}}
"""
GATEWAY = {"workers": 1}

VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F))
MARK = "INJECTED-BY-A-TEST"
# A control character anywhere in a log, but for the end of a line; DEL; C1 controls in UTF-8.
CONTROL = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
LEVEL = re.compile(rb"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] \d+#\d+: ")
ACCESS = re.compile(rb'^127\.0\.0\.1 \[[^\]]+\] ".*" \d{3} \d+ [\d.]+ "[\w-]+" "[\w.-]+"$')


@pytest.fixture(autouse=True)
def clean_logs(gateway):
    """After every test: each line of either log begins as such a line does and holds no controls."""
    yield
    access = gateway.directory / "state" / "access.log"
    for path, shape in ((gateway.directory / "stderr.log", LEVEL), (access, ACCESS)):
        for line in path.read_bytes().split(b"\n")[:-1]:
            assert not CONTROL.search(line), f"{path.name}: {line!r}"
            assert shape.match(line) or (shape is LEVEL and MARK.encode() not in line), \
                f"{path.name}: {line!r}"


def post_raw(gateway, path, headers, body=b"{}", timeout_s=20.0):
    """Header values are bytes, sent as they are."""
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: gw.test", b"Content-Length: %d" % len(body)]
    lines += [name + b": " + value for name, value in headers]
    with gateway.client(timeout_s) as client:
        client.send(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        return client.read()


def assert_clean(answer):
    """No header a client could have smuggled in, no control character in a value."""
    for name, value in answer.headers:
        assert MARK.lower() not in name.lower()
        assert name.lower() not in ("x-injected", "set-cookie")
        assert not CONTROL.search(value.encode("latin-1")), f"{name}: {value!r}"


# Keys.

BAD_BYTES = [bytes([code]) for code in (*range(0x01, 0x0A), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F,
                                        *range(0x80, 0x100))]


def test_a_key_with_a_byte_that_is_not_visible_ascii_is_refused(gateway, backend, key):
    """Inside of the key, where no white space around a value can have been trimmed."""
    for byte in BAD_BYTES:
        answer = post_raw(gateway, b"/any", [(b"Idempotency-Key", b"k" + byte + MARK.encode()),
                                             (b"X-Case", key.encode())])
        assert answer.status == 400, byte
        assert code_of(answer) in (INVALID, None), byte
        assert_clean(answer)
        assert MARK.encode() not in answer.body
    assert backend.executions(key) == 0


def test_a_key_with_nul_never_reaches_the_backend(gateway, backend, key):
    answer = post_raw(gateway, b"/any", [(b"Idempotency-Key", b"k\0" + MARK.encode()),
                                         (b"X-Case", key.encode())])
    assert answer.status == 400
    assert_clean(answer)
    assert backend.executions(key) == 0


@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r\n ", b"\n\t"],
                         ids=["CR LF", "LF", "folded", "folded LF"])
def test_a_line_end_in_a_key_ends_the_header_and_injects_nothing(gateway, backend, key, end):
    """The rest is a header of the client's own, or a folded line, which is refused; neither comes
    back in an answer."""
    value = key.encode() + end + b"X-Injected: " + MARK.encode()
    answer = post_raw(gateway, b"/any", [(b"Idempotency-Key", value)])
    assert answer.status in (201, 400)
    assert_clean(answer)
    for request in backend.of(key):
        assert request.header("Idempotency-Key") == key
    assert backend.executions(key) <= 1


PERCENT = ["%0d%0aX-Injected:%20" + MARK, "%00", "%1b[31m", "%22", "%25%30%61", "%E5%9B%BD"]


@pytest.mark.parametrize("written", PERCENT)
def test_percent_signs_in_a_key_are_characters_like_others(gateway, backend, key, written):
    full = key + written
    first = gateway.post("/any", full, headers=[("X-Case", key)])
    assert_first(first)
    assert_clean(first)
    again = gateway.post("/any", full, headers=[("X-Case", key)])
    assert_replay(again, first)
    assert_clean(again)
    assert_first(gateway.post("/any", unquote(key + "%41"), headers=[("X-Case", key)]))
    assert backend.of(key)[0].header("Idempotency-Key") == full
    assert backend.executions(key) == 2


def test_each_visible_character_makes_a_key_of_its_own(gateway, backend, key):
    """The double quote stands within, because at the beginning it opens an RFC 8941 string."""
    for character in VISIBLE:
        full = f"k{character}{key}"
        first = gateway.post("/any", full, headers=[("X-Case", key)])
        assert_first(first)
        assert_replay(gateway.post("/any", full, headers=[("X-Case", key)]), first)
        assert gateway.record(full)["key"] == full
    seen = [request.header("Idempotency-Key") for request in backend.of(key)]
    assert seen == [f"k{character}{key}" for character in VISIBLE]


def test_all_visible_characters_in_one_key(gateway, backend):
    case = new_key()
    first = gateway.post("/any", VISIBLE, headers=[("X-Case", case)])
    assert_first(first)
    assert_replay(gateway.post("/any", VISIBLE, headers=[("X-Case", case)]), first)
    assert_problem(gateway.post("/any", VISIBLE, b'{"other": 1}', headers=[("X-Case", case)]),
                   CONFLICT)
    assert gateway.record(VISIBLE)["key"] == VISIBLE
    request, = backend.of(case)
    assert request.header("Idempotency-Key") == VISIBLE


@pytest.mark.parametrize("length", [256, 257, 1000, 4096, 8000])
def test_a_key_that_is_too_long_is_refused_and_not_echoed(gateway, backend, key, length):
    answer = gateway.post("/any", "L" * length, headers=[("X-Case", key)])
    assert_problem(answer, INVALID)
    assert b"LLLL" not in answer.body
    assert backend.executions(key) == 0


def test_a_key_that_nginx_itself_refuses_leaves_the_worker_alone(gateway, backend, key):
    worker = gateway.workers()
    for length in (10_000, 40_000):
        answer = gateway.post("/any", "L" * length, headers=[("X-Case", key)])
        assert answer.status == 400
        assert_clean(answer)
    assert gateway.workers() == worker
    assert backend.executions(key) == 0


@pytest.mark.parametrize("values", [["{0}"] * 100, ["{0}", '"{0}"'] * 3], ids=["100", "quoted"])
def test_the_same_key_many_times_is_one_key(gateway, backend, key, values):
    headers = [("Idempotency-Key", value.format(key)) for value in values]
    first = gateway.post("/any", None, headers=headers)
    assert_first(first)
    assert_settled(gateway, backend, "/any", key, first)
    request, = backend.of(key)
    assert request.all("Idempotency-Key") == [key]


@pytest.mark.parametrize("values", [["{0}", "{0}x"], ["{0}", ""], ["", "{0}"], ["{0}, {0}"],
                                    ["{0}"] * 50 + ["{0}x"], ["{0}", "{0} "" x"]],
                         ids=["two", "one empty", "an empty one first", "joined by a proxy",
                              "the 51st differs", "one with a space"])
def test_different_key_headers_are_refused_whatever_their_order(gateway, backend, key, values):
    headers = [("Idempotency-Key", value.format(key)) for value in values]
    answer = gateway.post("/any", None, headers=[*headers, ("X-Case", key)])
    assert_problem(answer, INVALID)
    assert backend.executions(key) == 0


def test_key_headers_that_differ_in_the_case_of_their_name_are_one_header(gateway, backend, key):
    answer = gateway.post("/any", key, headers=[("IDEMPOTENCY-KEY", key + "x"), ("X-Case", key)])
    assert_problem(answer, INVALID)
    assert backend.executions(key) == 0


# A key within the path of a probe.

def lose(gateway, backend, full, case):
    backend.script(case, Reply(fault="reset"), Reply(201, body=b"a second execution"))
    assert gateway.post("/probed", full, headers=[("X-Case", case)]).status == 502


def test_no_character_of_a_key_leads_a_probe_elsewhere(gateway, backend, key):
    """It is encoded, so that the backend decodes exactly the key; what cannot stand in a path is not
    asked for."""
    for character in VISIBLE.replace("/", ""):
        full, case = f"k{character}{key}", f"{ord(character)}-{key}"
        lose(gateway, backend, full, case)
        asked = len(backend.probes)
        gateway.post("/probed", full, headers=[("X-Case", case)])
        assert len(backend.probes) == asked + 1, character
        probe = backend.probes[-1]
        assert probe.method == "GET"
        assert unquote(probe.target) == f"/probe/{full}", character
        assert not re.search(r"[?#\s\"<>]", probe.target), probe.target


@pytest.mark.parametrize("full", ["..", "../any", "a/../../any", "a/b", ".", "%2e%2e%2fany",
                                  "..;/any", "a\\..\\any", "x?y=1", "x#y", "//other/", "@host"])
def test_a_key_is_no_way_out_of_the_probes_path(gateway, backend, key, full):
    if full[0] not in "./":
        full = key + full
    lose(gateway, backend, full, key)
    asked, counted = len(backend.probes), len(backend.requests)
    answer = gateway.post("/probed", full, headers=[("X-Case", key)])
    assert code_of(answer) is None or answer.status == 409
    for probe in backend.probes[asked:]:
        assert unquote(probe.target) == f"/probe/{full}"
    others = [request for request in backend.requests[counted:] if request.method == "GET"]
    assert others == [], "the probe went to another path"
    if "/" in full or full in ("..", "."):
        assert_problem(answer, UNKNOWN)


# Bodies, paths, tenants, languages.

HOSTILE = ["\r\nX-Injected: " + MARK, "\n2026/01/01 00:00:00 [alert] 1#1: " + MARK, "\x1b[2J" + MARK,
           '"' + MARK + "' -", "\x00" + MARK, "\u009b31m" + MARK, "\u202e" + MARK]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("ctype", ["application/json", "text/plain"])
def test_a_body_stays_a_body(gateway, backend, key, text, ctype):
    body = json.dumps({"note": text}, ensure_ascii=False).encode() + text.encode()
    first = gateway.post("/any", key, body, ctype=ctype)
    assert_first(first)
    other = gateway.post("/any", key, body + b"x", ctype=ctype)
    assert_problem(other, CONFLICT)
    assert MARK.encode() not in other.body
    assert_clean(other)
    assert_settled(gateway, backend, "/any", key, first, body=body, ctype=ctype)
    assert backend.of(key)[0].body == body


PATHS = [b"%0d%0aX-Injected:%20" + MARK.encode(), b"%1b%5b2J", b"%00", b"%22%27", b"%7f", b"%c2%9b",
         b"\xe5\x9b\xbd", b"%5c%22", b"%0a" + MARK.encode()]


@pytest.mark.parametrize("path", [b"/rest/%s", b"/orders/%s/pay"])
@pytest.mark.parametrize("part", PATHS)
def test_a_path_injects_nothing(gateway, backend, key, path, part):
    """Neither into the answers nor into the logs, nor into what an operator's terminal is shown."""
    target = path % part
    answers = [post_raw(gateway, target, [(b"Idempotency-Key", key.encode())]) for _ in range(2)]
    answers.append(post_raw(gateway, target, [(b"Idempotency-Key", key.encode())], b"other"))
    for answer in answers:
        assert answer.status in (201, 400, 409)
        assert_clean(answer)
    assert backend.executions(key) <= 1
    assert_shown_cleanly(gateway, key)


def assert_shown_cleanly(gateway, key):
    """Tables, single records and JSON alike: no control character, and JSON that can be read."""
    shown = [gateway.cli("list", "--key", key).stdout]
    for line in gateway.cli("list", "--key", key, "--json").stdout.splitlines():
        record = json.loads(line)
        assert record["key"] == key
        shown += [line, gateway.cli("get", record["id"]).stdout]
    for text in shown:
        assert not CONTROL.search(text.encode()), repr(text)
        for line in text.splitlines():
            assert not line.startswith(MARK)


@pytest.mark.parametrize("tenant", [b"\x1b[2J" + MARK.encode(), b"a\tb", b"\x7f", b'a"b\'c\\',
                                    "\u009b2J".encode(), "国".encode(), b"\xff\xfe", b"\x80",
                                    b"%0d%0aX-Injected: x", b"a" * 1024])
def test_a_tenant_is_told_apart_and_shown_cleanly(gateway, backend, key, tenant):
    headers = [(b"X-Tenant-Id", tenant), (b"Idempotency-Key", key.encode())]
    first = post_raw(gateway, b"/any", headers)
    if first.status == 400:
        assert_clean(first)
        assert backend.executions(key) == 0
        return
    assert_first(first)
    assert_replay(post_raw(gateway, b"/any", headers), first)
    assert_first(gateway.post("/any", key, headers=[("X-Tenant-Id", "another")]))
    assert backend.executions(key) == 2
    assert_shown_cleanly(gateway, key)


def test_a_tenant_that_is_too_long_is_refused(gateway, backend, key):
    answer = gateway.post("/any", key, headers=[("X-Tenant-Id", "t" * 1025)])
    assert_problem(answer, INVALID)
    assert backend.executions(key) == 0


@pytest.mark.parametrize("language", [b"zh-CN\x1b[0m", b"en\x7f" + MARK.encode(), b"\xff", b'"', b"*",
                                      b"," * 3000, b"zh" * 1500, b"zh;q=" + b"9" * 2000])
def test_a_language_is_one_of_ours_whatever_was_asked_for(gateway, key, language):
    assert_first(gateway.post("/any", key))
    answer = post_raw(gateway, b"/any", [(b"Idempotency-Key", key.encode()),
                                         (b"Accept-Language", language)], b"other")
    assert_problem(answer, CONFLICT)
    assert answer.header("Content-Language") in ("en", "zh-CN")
    assert_clean(answer)


def test_a_replay_repeats_no_header_of_the_request_that_asked_for_it(gateway, backend, key):
    first = gateway.post("/any", key, headers=[("X-First", MARK), ("Cookie", f"a={MARK}")])
    assert_first(first)
    again = gateway.post("/any", key, headers=[("X-Again", MARK), ("Cookie", f"b={MARK}"),
                                               ("Idempotent-Replayed", MARK)])
    assert_replay(again, first)
    assert not [value for _, value in first.headers + again.headers if MARK in value]


def test_the_end_of_a_body_never_becomes_a_request(gateway, backend, key):
    """A request behind the declared length is the client's own next one, with its own key."""
    smuggled = encode("POST", "/any", [("Idempotency-Key", key + "-2"), ("X-Case", key)], b"{}")
    with gateway.client() as client:
        client.send(encode("POST", "/any", [("Idempotency-Key", key)], b"{}") + smuggled)
        assert_first(client.read())
        assert_first(client.read())
    assert backend.executions(key) == 2
    with gateway.client() as client:
        client.send(encode("POST", "/any", [("Idempotency-Key", key + "-3"), ("X-Case", key)],
                           smuggled))
        assert_first(client.read())
        assert_first(client.request("POST", "/any", [("Idempotency-Key", key + "-4"),
                                                     ("X-Case", key)], b"the next one"))
    bodies = [request.body for request in backend.of(key)]
    assert bodies == [b"{}", b"{}", smuggled, b"the next one"]
