# SPDX-License-Identifier: Apache-2.0
"""A record's bytes, taken apart and put together by the layout that src/core/record.h draws.

Written from that drawing, not from the code. Owns nothing of meaning: a test uses it to write what a
damaged disk, a mistaken program or a newer version would have left behind.

    0 magic and version | 4 payload_bytes | 8 payload_crc | 12 header_crc | 16 generation
   24 fence | 32 attempt | 36 state, form, cause, reserved | 40 time forms | 48 times
  112 fields: tag (u16), bytes (u32), the bytes; ascending by tag
"""

import struct

HEADER_BYTES = 112
VERSION_AT = 3
STATE_AT, FORM_AT, CAUSE_AT, RESERVED_AT = 36, 37, 38, 39
TIME_FORMS_AT = 40
CRITICAL = 0x8000
PARTS = {"magic": (0, 3), "version": (3, 4), "payload_bytes": (4, 8), "payload_crc": (8, 12),
         "header_crc": (12, 16), "generation": (16, 24), "fence": (24, 32), "attempt": (32, 36),
         "state": (36, 37), "form": (37, 38), "cause": (38, 39), "reserved": (39, 40),
         "time_forms": (40, 48), "times": (48, 112)}

_POLYNOMIAL = 0x82F63B78


def _table():
    rows = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        rows.append(value)
    return rows


_TABLE = _table()


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def sealed(record):
    """The record with the length and both checksums that fit what it holds."""
    payload = record[HEADER_BYTES:]
    head = bytearray(record[:HEADER_BYTES])
    struct.pack_into("<II", head, 4, len(payload), crc32c(payload))
    struct.pack_into("<I", head, 12, crc32c(bytes(head[:12] + head[16:])))
    return bytes(head) + payload


def with_byte(record, offset, value):
    """The record with another byte in its header, sealed again."""
    changed = bytearray(record)
    changed[offset] = value
    return sealed(bytes(changed))


def flipped(record, offset, bits=0xFF):
    """The record with bits of one byte turned over and nothing mended, as a bad disk would."""
    changed = bytearray(record)
    changed[offset] ^= bits
    return bytes(changed)


def fields(record):
    """[(tag, bytes)] in their order."""
    found, at = [], HEADER_BYTES
    while at < len(record):
        tag, size = struct.unpack_from("<HI", record, at)
        found.append((tag, record[at + 6:at + 6 + size]))
        at += 6 + size
    assert at == len(record), "the last field is longer than the record"
    return found


def with_fields(record, wanted):
    """The record's header with these fields, sealed."""
    payload = b"".join(struct.pack("<HI", tag, len(data)) + data for tag, data in wanted)
    return sealed(record[:HEADER_BYTES] + payload)


def part_of(record, offset):
    """The name of what stands at this offset: for messages."""
    for name, (begin, end) in PARTS.items():
        if begin <= offset < end:
            return name
    at = HEADER_BYTES
    for tag, data in fields(record):
        if offset < at + 6 + len(data):
            return f"field {tag & ~CRITICAL}" + (" (its frame)" if offset < at + 6 else "")
        at += 6 + len(data)
    raise AssertionError(f"{offset} is outside of the record")
