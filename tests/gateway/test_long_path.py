# SPDX-License-Identifier: Apache-2.0
"""A path too long to be named by a record is refused, and never taken for one that no route guards."""

import pytest

POLICY = """
version: 1
tenant: none
routes:
  - {name: all, match: "POST /**", key: {header: Idempotency-Key, required: true}}
"""


@pytest.fixture
def roomy(new_nginx, backend):
    """nginx told to take request lines longer than a record's endpoint."""
    return new_nginx(f"""
        counterfoil on;
        large_client_header_buffers 8 64k;
        location / {{ proxy_pass {backend.url}; }}""", policy=POLICY)


def test_a_path_too_long_to_be_named_is_refused(roomy, backend, key):
    path = "/" + "a" * 16500
    statuses = [roomy.post(path, key).status for _ in range(2)]
    assert statuses == [414, 414]
    assert len(backend.of(key)) == 0


def test_a_path_that_can_just_be_named_is_guarded(roomy, backend, key):
    path = "/" + "a" * (16384 - len("POST ") - 1)
    first, second = (roomy.post(path, key) for _ in range(2))
    assert (first.status, second.status) == (201, 201)
    assert second.header("Idempotent-Replayed") == "true"
    assert len(backend.of(key)) == 1
