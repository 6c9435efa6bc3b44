#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tests/fuzz/make_corpus.py: writes tests/fuzz/corpus anew, one file for each input, named by what it is.

The inputs are written here, by the formats' own drawings; nothing a fuzzer found is kept unexplained.
"""

import os
import shutil
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support.record_bytes import HEADER_BYTES, sealed, with_fields  # noqa: E402

UUID = b"0b8a5a3e-5c1f-4c37-9a55-2f1d0c3b7e11"

JSON = {
    "empty": b"", "object": b'{"a":1,"b":[true,false,null]}', "spaces": b' { "a" : 1.0 } ',
    "numbers": b"[0,-0,1e0,1.50,1E+2,9007199254740993,0.1e-7,-12.5e3]",
    "exponents": b"[1e100000000,1e-100000000,1e100000001]", "strings": b'["\\u0041","\\n","\\ud83d\\ude00"]',
    "controls": b'["\\u0000\\u0001\\u000b\\u001f\\u007f"]', "lone-surrogate": b'["\\ud800"]', "duplicate": b'{"a":1,"a":2}', "bom": b"\xef\xbb\xbf{}",
    "bad-utf8": b'["\xc3\x28"]', "nested": b"[" * 200 + b"]" * 200, "too-deep": b"[" * 600 + b"]" * 600,
    "pointers": b'{"a":1,"b":[{"c":2,"d":3}],"x":[{"~":4}]}', "unordered": b'{"x":[3,1,2],"b":[[2],[1]]}',
    "cut": b'{"a":', "trailing": b"{} {}", "string": b'"text"', "zero": b"[1,\x00]",
}

KEYS = {
    "uuid": (1, UUID), "uuid-upper": (1, UUID.upper()), "uuid-short": (1, UUID[:-1]),
    "uuid4": (2, UUID), "uuid-not-4": (2, UUID.replace(b"-4c", b"-1c")),
    "ulid": (3, b"01ARZ3NDEKTSV4RRFFQ69G5FAV"), "ulid-large": (3, b"81ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "any": (0, b"order-77"), "spaces": (0, b" \torder-77 "), "quoted": (0, b'"order-77"'),
    "escaped": (0, b'"a\\"b\\\\c"'), "open": (0, b'"order'), "parameter": (0, b'"a";x=1'),
    "bad-escape": (0, b'"a\\n"'), "inner-space": (0, b"a b"), "control": (0, b"a\x01b"),
    "high": (0, b"caf\xc3\xa9"), "longest": (0, b"k" * 255), "too-long": (0, b"k" * 256),
    "quoted-uuid": (1, b'"' + UUID + b'"'), "empty": (0, b""), "empty-string": (0, b'""'),
}

ALL = b"""version: 1
tenant: {from: header, header: X-Tenant, otherwise: none}
defaults: {lease: 15s, retention: {ttl: 24h, failed: 10m}}
routes:
  - name: payment
    match: POST /api/payments
    profile: payment
    key: {header: Idempotency-Key, required: true, format: uuid}
    fingerprint: {ignore: [/client_time, /items/*/note], unordered: [/items], query: true, headers: [X-Shop]}
    outcome: {failed_final: [4xx], failed: [401, 429], in_doubt: [502]}
    in_doubt: {policy: probe, probe: {request: GET /api/orders/by-key/{key}, timeout: 5s}}
    snapshot: {max_body: 1MiB, drop_headers: [X-Trace], keep_headers: [Age]}
    store_unavailable: closed
  - {name: rest, match: "POST|PATCH /**", semantics: loose}
"""

POLICIES = {
    "all": ALL, "least": b"version: 1\nroutes:\n  - match: POST /a\n", "empty": b"",
    "no-version": b"routes: []\n", "other-version": b"version: 2\nroutes: []\n",
    "unknown-field": b"version: 1\nroutes:\n  - {match: POST /a, colour: red}\n",
    "bad-duration": b"version: 1\nroutes:\n  - {match: POST /a, lease: 1m30s}\n",
    "bad-match": b"version: 1\nroutes:\n  - match: POST a\n", "anchor": b"version: &v 1\nroutes: *v\n",
    "twice": b"version: 1\nversion: 1\nroutes: []\n", "tabs": b"version: 1\nroutes:\n\t- match: POST /a\n",
    "list": b"- 1\n- 2\n", "not-available": b"version: 1\nroutes:\n  - {match: POST /a, archive: true}\n",
    "wildcards": b"version: 1\nroutes:\n  - match: POST /a/{id}/b/**\n  - match: POST /a/{id}\n",
    "two-documents": b"version: 1\n---\nversion: 1\n", "high": b"version: 1\nroutes:\n  - match: POST /\xff\n",
    "messages": "version: 1\ndefaults: {messages: {on_replay: true, en: {REPLAY: done}}}\nroutes:\n"
                "  - {match: POST /a, profile: stripe, answers: envelope,\n"
                "     messages: {zh-CN: {IDEMPOTENCY_PENDING: 处理中}, en: {REPLAY: 409}}}\n".encode(),
    "nul": b"version: 1\x00\n", "deep": b"routes: " + b"[" * 64 + b"]" * 64 + b"\n",
}


def header(state=1, form=0, cause=0, generation=7):
    head = bytearray(HEADER_BYTES)
    head[0:4] = b"CFR\x01"
    struct.pack_into("<QQIBBB", head, 16, generation, 1, 1, state, form, cause)
    struct.pack_into("<8q", head, 48, *([1_800_000_000_000] * 8))
    return bytes(head)


def frame(name, value):
    return struct.pack("<H", len(name)) + name + struct.pack("<I", len(value)) + value


def records():
    owner, digest = (0x8001, b"o" * 16), [(0x8000 | tag, bytes([tag]) * 32) for tag in (4, 5, 6)]
    snapshot = [(0x8007, struct.pack("<H", 201)),
                (0x8008, frame(b"Content-Type", b"text/plain") + frame(b"Link", b"")), (0x8009, b"body")]
    scope = [(12, b"http"), (13, b"\x01\x00"), (14, b"\x03\x00"), (16, b"POST /a"), (17, UUID), (18, b"r-1")]
    whole = [owner, (0x8003, struct.pack("<Q", 5)), *digest, *snapshot, *scope]
    rest = [(19, b"payment"), (20, b"p-1"), (21, b"asked for")]
    made = {f"state-{state}": with_fields(header(state), whole) for state in range(1, 8)}
    made.update({
        "bare": sealed(header()), "whole": with_fields(header(), whole),
        "every-field": with_fields(header(5, cause=1), [owner, (0x8002, b"p" * 16), *whole[1:8], (
            0x800A, b"t" * 32), (0x800B, struct.pack("<Q", 9)), *scope[:3], (15, b"shop"), *scope[3:], *rest]),
        "bad-headers": with_fields(header(), [(0x8008, b"\xff\xff\x01")]),
        "unknown-optional": with_fields(header(), [owner, (99, b"later")]),
        "unknown-critical": with_fields(header(), [owner, (0x8063, b"later")]),
        "descending": with_fields(header(), [(18, b"r"), (17, UUID)]),
        "twice": with_fields(header(), [(17, b"a"), (17, b"b")]),
        "short-digest": with_fields(header(), [(0x8004, b"short")]),
        "alias": with_fields(header(form=1), [(0x800A, b"t" * 32), (0x800B, struct.pack("<Q", 9))]),
        "no-generation": sealed(header(generation=0)), "bad-state": sealed(header(state=99)),
        "long-field": sealed(header() + struct.pack("<HI", 17, 1000) + b"short"),
        "cut-field": sealed(header() + b"\x11\x00"), "cut-header": header()[:50], "empty": b"",
    })
    return made


def write(target, inputs):
    directory = os.path.join(HERE, "corpus", target)
    os.makedirs(directory)
    for name, data in inputs.items():
        with open(os.path.join(directory, name), "wb") as out:
            out.write(data)


def main():
    shutil.rmtree(os.path.join(HERE, "corpus"), ignore_errors=True)
    write("json", {f"{name}-{choice}": bytes([choice]) + data for name, data in JSON.items()
                   for choice in (6, 7)})
    write("key", {name: bytes([choice]) + data for name, (choice, data) in KEYS.items()})
    write("policy", POLICIES)
    write("record", {f"{name}-{mode}": bytes([mode]) + data for name, data in records().items()
                     for mode in (0, 1)})
    write("planted", {"near": b"bu"})


if __name__ == "__main__":
    main()
