# SPDX-License-Identifier: Apache-2.0
"""The tests' own hands on records and stores do what they say."""

import pytest

from support import record_bytes

# The check value that is published with the polynomial.
CHECK = (b"123456789", 0xE3069283)


def test_the_checksum_is_crc_32c():
    text, value = CHECK
    assert record_bytes.crc32c(text) == value


def test_fields_come_apart_and_together_again():
    head = b"CFR\x01" + bytes(record_bytes.HEADER_BYTES - 4)
    wanted = [(1, b"one"), (0x8002, b""), (3, b"three")]
    record = record_bytes.with_fields(head, wanted)
    assert record_bytes.fields(record) == wanted
    assert record_bytes.sealed(record) == record
    assert record_bytes.part_of(record, record_bytes.HEADER_BYTES + 6) == "field 1"
    assert record_bytes.part_of(record, len(record) - 1) == "field 3"


def test_a_field_that_reaches_beyond_the_record_is_seen():
    head = b"CFR\x01" + bytes(record_bytes.HEADER_BYTES - 4)
    with pytest.raises(AssertionError):
        record_bytes.fields(record_bytes.with_fields(head, [(1, b"one")])[:-1])
