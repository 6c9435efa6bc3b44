# SPDX-License-Identifier: Apache-2.0
"""Checks of answers, in the words of the protocol.

Expected values are those of the design's table of answers, nothing observed.
"""

import uuid

PENDING = "IDEMPOTENCY_PENDING"
CONFLICT = "IDEMPOTENCY_KEY_CONFLICT"
UNKNOWN = "IDEMPOTENCY_OUTCOME_UNKNOWN"
NOT_STORED = "IDEMPOTENCY_RESPONSE_NOT_STORED"
EXPIRED = "IDEMPOTENCY_KEY_EXPIRED"
MISSING = "IDEMPOTENCY_KEY_MISSING"
INVALID = "IDEMPOTENCY_KEY_INVALID"
STORE_UNAVAILABLE = "IDEMPOTENCY_STORE_UNAVAILABLE"

STATUS = {PENDING: 409, CONFLICT: 409, UNKNOWN: 409, NOT_STORED: 409, EXPIRED: 409, MISSING: 400,
          INVALID: 400, STORE_UNAVAILABLE: 503}
RETRY_AFTER = (PENDING, STORE_UNAVAILABLE)


def new_key():
    return str(uuid.uuid4())


def code_of(answer):
    """The machine code of a problem answer; None for everything else."""
    if not (answer.header("Content-Type") or "").startswith("application/problem+json"):
        return None
    return answer.json().get("code")


def is_replay(answer):
    return answer.header("Idempotent-Replayed") == "true"


def assert_problem(answer, code, status=None):
    """The gateway's own answer: status, code, a message, Retry-After where a retry can help."""
    assert code_of(answer) == code, f"{answer.status} {answer.headers} {answer.body[:200]}"
    assert answer.status == (STATUS[code] if status is None else status)
    document = answer.json()
    assert isinstance(document["message"], str) and document["message"]
    assert document.get("status", answer.status) == answer.status
    assert not is_replay(answer)
    if code in RETRY_AFTER:
        assert int(answer.header("Retry-After")) >= 1


def assert_first(answer, status=201):
    """An answer of the backend, seen for the first time."""
    assert answer.status == status, f"{answer.status} {answer.headers} {answer.body[:200]}"
    assert code_of(answer) is None
    assert answer.header("Idempotent-Replayed") is None


def assert_replay(answer, first):
    """The first answer again, byte for byte, and marked."""
    assert is_replay(answer), f"{answer.status} {answer.headers} {answer.body[:200]}"
    assert answer.status == first.status
    assert answer.body == first.body
    assert answer.header("Content-Type") == first.header("Content-Type")


def assert_settled(gateway, backend, path, key, first, **options):
    """Asking again gives the first answer and executes nothing more."""
    before = backend.executions(key)
    assert_replay(gateway.post(path, key, **options), first)
    assert backend.executions(key) == before
