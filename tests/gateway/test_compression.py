# SPDX-License-Identifier: Apache-2.0
"""What nginx does to answers above the gateway, it does to a first answer and to its replays alike.

Compression either way, rewritten bodies, added headers, expiry: the client's view of a replay is the
first answer's, but for Date and the mark of a replay. What is kept is the backend's answer, unencoded,
so each client gets it in the coding it asks for.
"""

import email.utils
import gzip

import pytest

from support.backend import Reply
from support.expect import CONFLICT, assert_first, assert_problem, code_of, is_replay
from support.front import PROXY, STEP, Front, view
from support.http2 import Http2Client

POLICY = """
version: 1
tenant: none
routes:
  - {name: small, match: POST /small/**, snapshot: {max_body: 1KiB}}
  - {name: all, match: POST /**}
"""

GZIP = "gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;"

SERVER = f"""
    counterfoil on;
    {STEP}
    location / {{ {PROXY} {{backend}}; }}
    location /gzip/ {{ {PROXY} {{backend}}; {GZIP} }}
    location /vary/ {{ {PROXY} {{backend}}; {GZIP} gzip_vary on; gzip_comp_level 9; }}
    location /gunzip/ {{ {PROXY} {{backend}}; gunzip on; }}
    location /both/ {{ {PROXY} {{backend}}; gunzip on; {GZIP} }}
    location /small/gzip/ {{ {PROXY} {{backend}}; {GZIP} }}
    location /small/gunzip/ {{ {PROXY} {{backend}}; gunzip on; }}
    location /sub/ {{
        {PROXY} {{backend}}; sub_filter_types *; sub_filter_once off; sub_filter order ORDER;
    }}
    location /headers/ {{
        {PROXY} {{backend}};
        add_header X-Added "$request_method always" always;
        add_header X-Only-Good yes;
        add_header Link "</added>";
    }}
    location /sent/ {{
        {PROXY} {{backend}};
        add_header X-Seen "$sent_http_cache_control|$sent_http_etag|$sent_http_x_inner" always;
    }}
    location /ssi/ {{ {PROXY} {{backend}}; ssi on; ssi_types *; }}
    {{proxied}}
    location /expires/ {{ {PROXY} {{backend}}; expires 1h; }}
    location /epoch/ {{ {PROXY} {{backend}}; expires epoch; }}
    location /hidden/ {{ {PROXY} {{backend}}; proxy_hide_header X-Inner; proxy_pass_header Server; }}
    location /charset/ {{ {PROXY} {{backend}}; charset utf-8; charset_types *; }}
    location /all/ {{
        {PROXY} {{backend}}; {GZIP} gunzip on; gzip_vary on; charset utf-8; charset_types *;
        sub_filter_types *; sub_filter_once off; sub_filter order ORDER;
        add_header X-Added yes always; expires max;
    }}
"""

REASONS = {"expired": ("Expires", "Mon, 01 Jan 2001 00:00:00 GMT"),
           "no-cache": ("Cache-Control", "no-cache"), "no-store": ("Cache-Control", "no-store"),
           "private": ("Cache-Control", "private"), "no_etag": ("X-Any", "1"),
           "no_last_modified": ("X-Any", "1")}
PROXIED = "".join(
    f"location /{reason}/ {{ {PROXY} {{backend}};"
    f" gzip on; gzip_types *; gzip_min_length 1; gzip_proxied {reason}; }}\n" for reason in REASONS)

OK = 200  # nginx compresses no other success
TEXT = b'{"order": 1, "notes": "' + b"an order of orders, " * 500 + b'"}'
KEPT = [("Content-Type", "application/json"), ("ETag", '"v1"'), ("X-Inner", "1"),
        ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"), ("Cache-Control", "no-cache"),
        ("Vary", "Accept-Language"), ("Link", "</kept>")]
ACCEPTS = {"nothing said": None, "gzip": "gzip", "no gzip": "gzip;q=0", "little gzip": "gzip;q=0.1",
           "identity": "identity", "several": "deflate, gzip;q=1.0, *;q=0.5", "any": "*"}


@pytest.fixture(scope="module")
def front(tmp_path_factory, backend):
    server = Front(tmp_path_factory.mktemp("front"), backend,
                   SERVER.replace("{proxied}", PROXIED).replace("{backend}", backend.url),
                   POLICY)
    with server.running():
        yield server


def ask(front, target, key, accept=None, **options):
    return front.post(target, key, headers=[("Accept-Encoding", accept)] if accept else [],
                      **options)


def decoded(answer):
    """The body as the client understands it."""
    coding = answer.header("Content-Encoding")
    if coding is None:
        return answer.body
    assert coding == "gzip"
    return gzip.decompress(answer.body)


def assert_same_view(again, first, but=()):
    """A replay looks to the client like the first answer; framing may differ, coding may not."""
    assert is_replay(again) and not is_replay(first)
    assert decoded(again) == decoded(first)
    framing = ["content-length", "transfer-encoding", *but]
    assert view(again, framing)[2] == view(first, framing)[2]
    assert again.status == first.status


# Compressed on the way to the client.

@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("accept", ACCEPTS)
@pytest.mark.parametrize("place", ["gzip", "vary"])
def test_a_replay_is_compressed_as_the_first_was(front, backend, key, place, accept, framing):
    backend.script(key, Reply(OK, KEPT, TEXT, framing=framing))
    first = ask(front, f"/{place}/x", key, ACCEPTS[accept])
    assert_first(first, OK)
    wants = accept in ("gzip", "little gzip", "several")
    assert first.header("Content-Encoding") == ("gzip" if wants else None)
    assert decoded(first) == TEXT
    assert_same_view(ask(front, f"/{place}/x", key, ACCEPTS[accept]), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("first_accept, then", [("gzip", None), (None, "gzip"),
                                                ("gzip", "gzip;q=0"), ("gzip;q=0", "gzip")])
def test_each_client_gets_the_coding_it_asks_for(front, backend, key, first_accept, then):
    backend.script(key, Reply(OK, KEPT, TEXT))
    first = ask(front, "/gzip/x", key, first_accept)
    again = ask(front, "/gzip/x", key, then)
    assert is_replay(again)
    for answer, accept in ((first, first_accept), (again, then)):
        assert answer.header("Content-Encoding") == ("gzip" if accept == "gzip" else None)
        assert decoded(answer) == TEXT
    assert again.header("Cache-Control") == first.header("Cache-Control") == "no-cache"
    assert backend.executions(key) == 1


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
def test_compression_over_http_2(front, backend, key, tls):
    backend.script(key, Reply(OK, KEPT, TEXT))
    asks = {"headers": [("accept-encoding", "gzip")]}
    with Http2Client(("127.0.0.1", front.tls_port if tls else front.clear_port), tls=tls) as client:
        first = client.post("/gzip/x", key, **asks)
        again = client.post("/gzip/x", key, **asks)
    assert first.header("Content-Encoding") == "gzip"
    assert_same_view(again, first)
    assert backend.executions(key) == 1


def test_http_1_0_gets_no_compression(front, backend, key):
    backend.script(key, Reply(OK, KEPT, TEXT))
    first = ask(front, "/gzip/x", key, "gzip")
    again = ask(front, "/gzip/x", key, "gzip", version="HTTP/1.0")
    assert is_replay(again)
    assert (again.header("Content-Encoding"), again.body) == (None, decoded(first))


@pytest.mark.parametrize("place", ["", "gzip/", "both/"])
def test_the_backend_is_asked_for_no_coding(front, backend, key, place):
    """What is kept must suit every client."""
    assert_first(ask(front, f"/{place}x", key, "gzip, br"))
    assert set(backend.wait(key).all("Accept-Encoding")) <= {"identity"}


def test_the_gateways_own_answers_are_compressed_in_step(front, backend, key):
    assert_first(front.post("/gzip/x", key))
    with front.client() as client:
        answer = ask(front, "/gzip/x", key, "gzip", body=b"[]", client=client)
        answer.body = decoded(answer)
        assert_problem(answer, CONFLICT)
        assert client.request("GET", "/step").body == b"in step"
    assert backend.executions(key) == 1


@pytest.mark.parametrize("accept", [None, "gzip", "gzip;q=0"])
def test_an_answer_that_is_passed_on_is_compressed(front, backend, key, accept):
    backend.script(key, Reply(OK, KEPT, TEXT))
    first = ask(front, "/small/gzip/x", key, accept)
    assert first.header("Content-Encoding") == ("gzip" if accept == "gzip" else None)
    assert decoded(first) == TEXT
    front.await_state(key, "SUCCEEDED")
    assert code_of(front.post("/small/gzip/x", key)) == "IDEMPOTENCY_RESPONSE_NOT_STORED"
    assert backend.executions(key) == 1


# Compressed by the backend, which was not asked to.

PACKED = gzip.compress(TEXT, mtime=0)
PACKED_REPLY = [("Content-Encoding", "gzip"), ("Content-Type", "application/json"), ("ETag", '"v1"')]


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("accept", ["gzip", "nothing said", "no gzip"])
def test_what_the_backend_compressed_comes_back_as_it_was(front, backend, key, accept, framing):
    backend.script(key, Reply(OK, PACKED_REPLY, PACKED, framing=framing))
    first = ask(front, "/x", key, ACCEPTS[accept])
    assert (first.header("Content-Encoding"), first.body) == ("gzip", PACKED)
    again = ask(front, "/x", key, ACCEPTS[accept])
    assert again.body == PACKED
    assert_same_view(again, first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("place", ["gunzip", "both"])
@pytest.mark.parametrize("accept", ACCEPTS)
def test_gunzip_unpacks_a_replay_as_it_unpacked_the_first(front, backend, key, accept, place):
    backend.script(key, Reply(OK, PACKED_REPLY, PACKED))
    first = ask(front, f"/{place}/x", key, ACCEPTS[accept])
    assert_first(first, OK)
    assert decoded(first) == TEXT
    if accept in ("nothing said", "no gzip", "identity"):
        assert first.header("Content-Encoding") is None
    assert_same_view(ask(front, f"/{place}/x", key, ACCEPTS[accept]), first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("first_accept, then", [("gzip", None), (None, "gzip")])
def test_gunzip_gives_each_client_what_it_understands(front, backend, key, first_accept, then):
    backend.script(key, Reply(OK, PACKED_REPLY, PACKED))
    for accept in (first_accept, then):
        answer = ask(front, "/gunzip/x", key, accept)
        assert answer.header("Content-Encoding") == accept
        assert decoded(answer) == TEXT
    assert is_replay(answer)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("accept", [None, "gzip"])
def test_an_answer_that_is_passed_on_is_unpacked(front, backend, key, accept):
    noise = gzip.compress(bytes(range(256)) * 4 + TEXT, 1, mtime=0)
    noise += gzip.compress(b"", mtime=0) * (1 + 1100 // 20)  # over the limit, as members may be
    backend.script(key, Reply(OK, PACKED_REPLY, noise))
    first = ask(front, "/small/gunzip/x", key, accept)
    assert first.header("Content-Encoding") == accept
    assert decoded(first) == bytes(range(256)) * 4 + TEXT
    front.await_state(key, "SUCCEEDED")
    assert backend.executions(key) == 1


# Rewritten, added, expired.

def test_sub_filter_rewrites_a_replay_as_it_rewrote_the_first(front, backend, key):
    backend.script(key, Reply(OK, KEPT, TEXT))
    first, again = front.post("/sub/x", key), front.post("/sub/x", key)
    assert first.body == TEXT.replace(b"order", b"ORDER")
    assert_same_view(again, first)
    assert backend.executions(key) == 1


def test_add_header_adds_to_a_replay_what_it_added_to_the_first(front, backend, key):
    """Once: what was added above the gateway is not kept and added again."""
    backend.script(key, Reply(OK, KEPT, TEXT))
    first, again = front.post("/headers/x", key), front.post("/headers/x", key)
    assert first.header("X-Added") == "POST always"
    assert first.header("X-Only-Good") == "yes"
    assert sorted(first.all("Link")) == ["</added>", "</kept>"]
    assert_same_view(again, first)
    conflict = front.post("/headers/x", key, b"[]")
    assert_problem(conflict, CONFLICT)
    assert conflict.header("X-Added") == "POST always"
    assert conflict.header("X-Only-Good") is None
    assert backend.executions(key) == 1


@pytest.mark.parametrize("sent", [KEPT, KEPT + [("Expires", "Mon, 01 Jan 2001 00:00:00 GMT")]],
                         ids=["none", "one of the backend"])
@pytest.mark.parametrize("place", ["expires", "epoch"])
def test_expires_is_counted_from_now_on_a_replay_too(front, backend, key, place, sent):
    backend.script(key, Reply(OK, sent, TEXT))
    first, again = front.post(f"/{place}/x", key), front.post(f"/{place}/x", key)
    assert_same_view(again, first, but=["expires"])
    seconds = [email.utils.parsedate_to_datetime(answer.header("Expires")).timestamp()
               for answer in (first, again)]
    assert abs(seconds[1] - seconds[0]) <= 2
    wanted = "max-age=3600" if place == "expires" else "no-cache"
    assert first.all("Cache-Control") == again.all("Cache-Control") == [wanted]
    assert backend.executions(key) == 1


@pytest.mark.parametrize("place", ["hidden", "charset"])
def test_hidden_headers_and_charset(front, backend, key, place):
    backend.script(key, Reply(OK, KEPT + [("Server", "scripted/1")], TEXT))
    first, again = front.post(f"/{place}/x", key), front.post(f"/{place}/x", key)
    if place == "hidden":
        assert first.header("X-Inner") is None
        assert_same_view(again, first, but=["server"])  # never kept, as the default says
    else:
        assert first.header("Content-Type") == "application/json; charset=utf-8"
        assert_same_view(again, first)
    assert backend.executions(key) == 1


REFUSED = {"expired": ("Expires", "Fri, 01 Jan 2100 00:00:00 GMT"),
           "no-cache": ("Cache-Control", "private"), "no-store": ("Cache-Control", "no-cache"),
           "private": ("Cache-Control", "max-age=60"), "no_etag": ("ETag", '"v1"'),
           "no_last_modified": ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_forbids_compression_for_a_proxy_forbids_it_on_a_replay(front, backend, key, reason):
    backend.script(key, Reply(OK, [("Content-Type", "text/plain"), REFUSED[reason]], TEXT))
    asks = [("Via", "1.1 proxy"), ("Accept-Encoding", "gzip")]
    first = front.post(f"/{reason}/x", key, headers=asks)
    assert first.header("Content-Encoding") is None
    again = front.post(f"/{reason}/x", key, headers=asks)
    assert_same_view(again, first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("reason", REASONS)
def test_what_allows_compression_for_a_proxy_allows_it_on_a_replay(front, backend, key, reason):
    """gzip_proxied looks at headers of the answer: a replay has them where the first had them."""
    backend.script(key, Reply(OK, [("Content-Type", "text/plain"), REASONS[reason]], TEXT))
    asks = [("Via", "1.1 proxy"), ("Accept-Encoding", "gzip")]
    first = front.post(f"/{reason}/x", key, headers=asks)
    assert first.header("Content-Encoding") == "gzip"
    again = front.post(f"/{reason}/x", key, headers=asks)
    assert_same_view(again, first)
    assert backend.executions(key) == 1


def test_variables_of_the_answer_are_those_of_the_first(front, backend, key):
    backend.script(key, Reply(OK, KEPT, TEXT))
    first, again = front.post("/sent/x", key), front.post("/sent/x", key)
    assert first.header("X-Seen") == 'no-cache|"v1"|1'
    assert_same_view(again, first)
    assert backend.executions(key) == 1


@pytest.mark.parametrize("place", ["ssi", "gzip"])
def test_a_rewritten_replay_offers_no_ranges_either(front, backend, key, place):
    backend.script(key, Reply(OK, KEPT + [("Accept-Ranges", "bytes")], TEXT))
    first, again = (ask(front, f"/{place}/x", key, "gzip") for _ in range(2))
    assert first.header("Accept-Ranges") is None
    assert_same_view(again, first)
    assert backend.executions(key) == 1


def test_a_charset_that_the_backend_names_to_nginx_is_kept(front, backend, key):
    """Where nginx's configuration knows it, as it does utf-8 here; of others nginx makes nothing."""
    for name, ctype in (("utf-8", "text/plain; charset=utf-8"), ("koi8-r", "text/plain")):
        case = f"{key}-{name}"
        sent = [("Content-Type", "text/plain"), ("X-Accel-Charset", name)]
        backend.script(case, Reply(OK, sent, TEXT))
        first, again = front.post("/x", case), front.post("/x", case)
        assert first.header("Content-Type") == ctype
        assert_same_view(again, first)
        assert backend.executions(case) == 1


@pytest.mark.parametrize("accept", ACCEPTS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_everything_at_once(front, backend, key, accept, packed):
    reply = Reply(OK, PACKED_REPLY, PACKED) if packed else Reply(OK, KEPT, TEXT)
    backend.script(key, reply)
    first = ask(front, "/all/x", key, ACCEPTS[accept])
    assert_first(first, OK)
    assert first.header("X-Added") == "yes"
    assert_same_view(ask(front, "/all/x", key, ACCEPTS[accept]), first)
    assert backend.executions(key) == 1
