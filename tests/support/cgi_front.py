# SPDX-License-Identifier: Apache-2.0
"""A guarding nginx before three backends that speak FastCGI, uwsgi and SCGI.

Owns the server block. Every protocol has the same locations: /PROTOCOL/, and below it unbuffered/,
small/ (over the limit of the route), streaming/ (nginx told to buffer nothing), slow/ (a short
time-out), refused/ (nobody listens) and two/ (two peers, and nginx told to try both).
"""

import contextlib

from support.cgi_backend import CgiBackend
from support.front import STEP, Front
from support.ports import free_port

PROTOCOLS = ["fastcgi", "uwsgi", "scgi"]

POLICY = """
version: 1
tenant: none
routes:
  - {name: fastcgi-small, match: POST /fastcgi/small/**, snapshot: {max_body: 1KiB}}
  - {name: uwsgi-small, match: POST /uwsgi/small/**, snapshot: {max_body: 1KiB}}
  - {name: scgi-small, match: POST /scgi/small/**, snapshot: {max_body: 1KiB}}
  - {name: all, match: "POST|PUT|PATCH|DELETE /**"}
"""

PASSED = {"REQUEST_METHOD": "$request_method", "REQUEST_URI": "$request_uri",
          "QUERY_STRING": "$query_string", "CONTENT_TYPE": "$content_type",
          "CONTENT_LENGTH": "$content_length", "SERVER_PROTOCOL": "$server_protocol"}

LOCATIONS = """
    location /PROTOCOL/ { PROTOCOL_pass BACKEND; }
    location /PROTOCOL/unbuffered/ { PROTOCOL_pass BACKEND; PROTOCOL_buffering off; }
    location /PROTOCOL/small/ { PROTOCOL_pass BACKEND; }
    location /PROTOCOL/small/unbuffered/ { PROTOCOL_pass BACKEND; PROTOCOL_buffering off; }
    location /PROTOCOL/streaming/ {
        PROTOCOL_pass BACKEND; PROTOCOL_request_buffering off; PROTOCOL_buffering off;
    }
    location /PROTOCOL/slow/ { PROTOCOL_pass BACKEND; PROTOCOL_read_timeout 300ms; }
    location /PROTOCOL/refused/ { PROTOCOL_pass 127.0.0.1:REFUSED; }
    location /PROTOCOL/two/ {
        PROTOCOL_pass two_PROTOCOL;
        PROTOCOL_next_upstream error timeout invalid_header http_500 http_503 non_idempotent;
        PROTOCOL_read_timeout 300ms;
    }
"""

UPSTREAM = "upstream two_PROTOCOL { server BACKEND max_fails=0; server 127.0.0.2:PORT max_fails=0; }\n"


def _params(protocol):
    pairs = [(name, value) for name, value in PASSED.items()
             if not (protocol == "scgi" and name == "CONTENT_LENGTH")]  # nginx sends that itself
    return "\n".join(f"{protocol}_param {name} {value};" for name, value in pairs)


def _written_for(text, backend, refused):
    for word, value in (("PROTOCOL", backend.protocol), ("BACKEND", backend.url),
                        ("REFUSED", refused), ("PORT", backend.port)):
        text = text.replace(word, str(value))
    return text


@contextlib.contextmanager
def running(directory):
    """(the front, the backend of each protocol)"""
    backends = {protocol: CgiBackend(protocol) for protocol in PROTOCOLS}
    refused = free_port()
    server = "counterfoil on; client_max_body_size 1m;" + STEP
    http = "underscores_in_headers on;\n"
    for protocol, backend in backends.items():
        server += _params(protocol) + _written_for(LOCATIONS, backend, refused)
        http += _written_for(UPSTREAM, backend, refused)
    try:
        front = Front(directory, backends["fastcgi"], server, POLICY, http=http)
        with front.running():
            yield front, backends
    finally:
        for backend in backends.values():
            backend.stop()
