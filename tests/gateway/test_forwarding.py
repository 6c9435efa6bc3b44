# SPDX-License-Identifier: Apache-2.0
"""What the backend learns of the client through `serve`."""

import http.client

import pytest

from support.backend import Reply
from support.expect import assert_first

POLICY = """
version: 1
tenant: none
routes:
  - {name: plain, match: POST /plain}
"""


def test_the_backend_is_told_the_scheme_the_client_came_by(gateway, backend, key):
    assert_first(gateway.post("/plain", key))
    assert backend.wait(key).all("X-Forwarded-Proto") == ["http"]


def test_what_ended_tls_in_front_of_us_is_believed_about_the_scheme(gateway, backend, key):
    assert_first(gateway.post("/plain", key, headers=[("X-Forwarded-Proto", "https")]))
    assert backend.wait(key).all("X-Forwarded-Proto") == ["https"]


@pytest.mark.parametrize("status, reason", [(201, "Created"), (422, "Unprocessable Entity"),
                                            (428, "Precondition Required")])
def test_a_replayed_status_line_reads_like_the_first(gateway, backend, key, status, reason):
    backend.script(key, Reply(status))
    seen = []
    for _ in range(2):
        client = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=10)
        client.request("POST", "/plain", b"x", {"Idempotency-Key": key})
        answer = client.getresponse()
        seen.append((answer.status, answer.reason, answer.headers["Idempotent-Replayed"]))
        client.close()
    assert seen[1] == (status, reason, "true")
    assert seen[0][0] == status
