# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of the demo shop.

Owns one shop process per test, on a free port with a private database. Expected values come from
examples/shop/README.md. The other tests of this directory trust the shop's counters and switches,
so these are what is looked at here.
"""

import errno
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOP = ROOT / os.environ.get("CFOIL_BUILD", "build") / "examples" / "shop" / "counterfoil-shop"


class Shop:
    """One running shop and a way to speak to it, a fresh connection per call."""

    def __init__(self, db):
        self.db = db
        self.start()

    def start(self, *more):
        command = [str(SHOP), "--listen", "127.0.0.1:0", "--db", str(self.db), *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("shop listening on 127.0.0.1:"), line
        self.port = int(line.rsplit(":", 1)[1])

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        try:
            return self.process.wait(timeout=20)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def call(self, method, path, body=None, key=None, timeout=30, **switches):
        headers = {"X-Shop-" + name.replace("_", "-"): str(v) for name, v in switches.items()}
        if key is not None:
            headers["Idempotency-Key"] = key
        payload = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, payload, headers)
            answer = connection.getresponse()
            answer.content = answer.read()
            return answer
        finally:
            connection.close()

    def json(self, method, path, body=None, **options):
        return json.loads(self.call(method, path, body, **options).content)

    def books(self):
        return self.json("GET", "/api/books")

    def count(self, key):
        return self.json("GET", "/api/executions/" + key)["count"]


@pytest.fixture
def shop(tmp_path):
    running = Shop(tmp_path / "shop.db")
    yield running
    if running.process.poll() is None:
        assert running.end() == 0


ORDER = {"user_id": "u-1", "items": [{"sku": "tea", "qty": 2}], "amount": 4999}


def test_order_is_created_with_the_headers_a_replay_must_keep(shop):
    answer = shop.call("POST", "/api/orders", ORDER, key="k1")
    body = json.loads(answer.content)
    assert answer.status == 201
    assert body["code"] == 0
    assert body["data"]["order_id"] == "o-1"
    assert {name: body["data"][name] for name in ORDER} == ORDER
    assert answer.getheader("Location") == "/api/orders/o-1"
    links = answer.msg.get_all("Link")
    assert len(links) == 2
    assert all("," in link.split('title="')[1].split('"')[0] for link in links)
    assert answer.getheader("Set-Cookie").startswith("last_order=o-1;")


def test_lookup_by_key_answers_the_bytes_of_the_first_order(shop):
    first = shop.call("POST", "/api/orders", ORDER, key="a/b %1")
    second = shop.call("POST", "/api/orders", ORDER, key="a/b %1")
    assert json.loads(second.content)["data"]["order_id"] == "o-2"
    found = shop.call("GET", "/api/orders/by-key/a%2Fb%20%251")
    assert (found.status, found.content) == (200, first.content)
    assert shop.call("GET", "/api/orders/by-key/other").status == 404
    shop.call("POST", "/api/orders", ORDER)
    assert shop.call("GET", "/api/orders/by-key/").status == 404


def test_path_part_of_4096_bytes_is_looked_up_and_a_longer_one_is_refused(shop):
    shop.call("POST", "/echo", key="k" * 4096)
    assert shop.count("k" * 4096) == 1
    assert shop.call("GET", "/api/executions/" + "k" * 4097).status == 414


def test_repeated_key_charges_twice_because_the_shop_has_no_idempotency(shop):
    body = {"order_id": "o-9", "amount": 700}
    for _ in range(2):
        assert shop.call("POST", "/api/payments", body, key="p").status == 201
    assert shop.books() == {"orders": 0, "payments": 2, "charged": 1400, "coupons": 0}
    assert shop.count("p") == 2
    found = shop.json("GET", "/api/payments/by-key/p")["data"]
    assert (found["payment_id"], found["order_id"], found["amount"]) == ("p-1", "o-9", 700)
    assert shop.call("GET", "/api/payments/by-key/q").status == 404


@pytest.mark.parametrize("amount", ["49.99", "4999", 49.99, 1.0, 0, -1, None, True, 10**16])
def test_money_that_is_not_whole_cents_is_refused_without_effect(shop, amount):
    answer = shop.call("POST", "/api/payments", {"order_id": "o-1", "amount": amount}, key="m")
    assert answer.status == 400
    assert "amount" in json.loads(answer.content)["message"]
    if amount != 0:
        order = {"user_id": "u", "amount": amount}
        assert shop.call("POST", "/api/orders", order, key="m").status == 400
    assert shop.count("m") == 0


def test_large_cents_are_exact(shop):
    for amount in (9007199254740993, 9007199254740992):
        body = {"order_id": "o-1", "amount": amount}
        assert shop.json("POST", "/api/payments", body)["data"]["amount"] == amount
    assert shop.books()["charged"] == 9007199254740993 + 9007199254740992


def test_order_is_paid_replaced_changed_and_deleted(shop):
    shop.call("POST", "/api/orders", ORDER, key="k")
    assert shop.call("POST", "/api/orders/o-1/pay").status == 201
    assert shop.books()["charged"] == 4999
    assert shop.json("GET", "/api/orders/o-1")["data"]["state"] == "paid"
    assert shop.json("PATCH", "/api/orders/o-1", {"amount": 1})["data"]["user_id"] == "u-1"
    replaced = shop.json("PUT", "/api/orders/o-1", {"user_id": 7, "amount": 2})["data"]
    assert (replaced["user_id"], replaced["amount"]) == (7, 2)
    assert shop.call("PUT", "/api/orders/o-1", {"amount": 2}).status == 400
    gone = shop.call("DELETE", "/api/orders/o-1")
    assert (gone.status, gone.content) == (204, b"")
    for method, path, body in (("GET", "", None), ("PUT", "", ORDER), ("POST", "/pay", None)):
        assert shop.call(method, "/api/orders/o-1" + path, body).status == 404
    assert shop.json("GET", "/api/orders/by-key/k")["data"]["state"] == "deleted"


def test_counters_name_routes_and_keys(shop):
    shop.call("POST", "/api/orders", ORDER, key="k")
    shop.call("POST", "/api/coupons/WELCOME/redeem", {"user_id": "u"}, key="k")
    shop.call("POST", "/echo/deeper?q=1", b"x")
    shop.call("GET", "/api/orders/o-1", key="k")
    shop.call("POST", "/api/orders", {"bad": 1}, key="k")
    assert shop.json("GET", "/api/executions") == {
        "total": 3,
        "by_key": {"k": 2, "": 1},
        "by_route": {"POST /api/orders": 1, "POST /api/coupons/{code}/redeem": 1, "POST /echo": 1},
    }
    assert shop.books()["coupons"] == 1


@pytest.mark.parametrize("size", [0, 1, 16383, 16384, 16385, 1 << 20, 50 << 20])
def test_echo_returns_the_bytes_it_was_sent(shop, size):
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    answer = shop.call("PUT", "/echo/x?y=%20z", body, key="e")
    assert answer.status == 200
    assert answer.content == body
    assert answer.getheader("Content-Type") == "application/octet-stream"
    assert answer.getheader("X-Echo-Sha256") == hashlib.sha256(body).hexdigest()
    assert answer.getheader("X-Echo-Method") == "PUT"
    assert answer.getheader("X-Echo-Path") == "/echo/x?y=%20z"
    assert shop.count("e") == 1


def test_echo_of_a_chunked_request_body(shop):
    connection = http.client.HTTPConnection("127.0.0.1", shop.port, timeout=30)
    parts = [b"a" * 70000, b"\x00\xff" * 3, b"end"]
    headers = {"Transfer-Encoding": "chunked"}
    connection.request("POST", "/echo", iter(parts), headers, encode_chunked=True)
    assert connection.getresponse().read() == b"".join(parts)
    connection.close()


def test_headers_of_shows_what_the_last_request_of_a_key_arrived_with(shop):
    for body in (b"one", b"two!"):
        with socket.create_connection(("127.0.0.1", shop.port), timeout=30) as raw:
            raw.sendall(
                b"POST /echo HTTP/1.1\r\nHost: a\r\nIdempotency-Key: h\r\n"
                b"X-Twice: 1\r\nX-Twice: 2\r\nX-Latin: \xe9\r\nConnection: close\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            assert raw.recv(12) == b"HTTP/1.1 200"
    seen = shop.json("GET", "/echo/headers-of/h")
    assert seen["headers"][:5] == [
        ["Host", "a"],
        ["Idempotency-Key", "h"],
        ["X-Twice", "1"],
        ["X-Twice", "2"],
        ["X-Latin", "\u00e9"],
    ]
    assert (seen["body_bytes"], seen["body_sha256"]) == (4, hashlib.sha256(b"two!").hexdigest())
    assert shop.call("GET", "/echo/headers-of/unknown").status == 404


@pytest.mark.parametrize("word, effects", [("reset_before", 0), ("reset_after_effect", 1)])
def test_reset_is_a_tcp_reset(shop, word, effects):
    for by_switch in (False, True):
        key = f"r-{by_switch}"
        if by_switch:
            shop.call("POST", "/control", {"fail": word, "count": 1})
        with socket.create_connection(("127.0.0.1", shop.port), timeout=30) as raw:
            header = "" if by_switch else f"X-Shop-Fail: {word}\r\n"
            raw.sendall(
                f"POST /echo HTTP/1.1\r\nHost: a\r\nIdempotency-Key: {key}\r\n{header}"
                "Content-Length: 1\r\n\r\nx".encode()
            )
            with pytest.raises(OSError) as failure:
                raw.recv(1)
            assert failure.value.errno == errno.ECONNRESET
        assert shop.count(key) == effects


def test_close_and_hang_come_after_the_effect_and_send_nothing(shop):
    body = {"order_id": "o-1", "amount": 5}
    with pytest.raises(http.client.RemoteDisconnected):
        shop.call("POST", "/api/payments", body, key="c", Fail="close_after_effect")
    with pytest.raises(TimeoutError):
        shop.call("POST", "/api/payments", body, key="h", timeout=1, Fail="hang_after_effect")
    assert (shop.count("c"), shop.count("h")) == (1, 1)
    assert shop.books()["charged"] == 10


def test_status_failures_come_before_the_effect_and_status_override_after_it(shop):
    for word in ("500", "502", "503"):
        assert shop.call("POST", "/api/orders", ORDER, key=word, Fail=word).status == int(word)
        assert shop.count(word) == 0
    assert shop.call("POST", "/api/orders", ORDER, key="s", Status=504).status == 504
    assert shop.count("s") == 1
    nonsense = shop.call("POST", "/api/orders", ORDER, key="n", Fail="sometimes")
    assert (nonsense.status, shop.count("n")) == (400, 0)


def test_padding_and_chunking_change_the_framing_only(shop):
    plain = shop.call("POST", "/api/orders", ORDER, Body_Bytes=100000)
    assert len(plain.content) == 100000
    assert json.loads(plain.content)["data"]["order_id"] == "o-1"
    assert plain.getheader("Content-Length") == "100000"
    chunked = shop.call("GET", "/echo", Body_Bytes=100000, Chunked=1)
    assert chunked.getheader("Transfer-Encoding") == "chunked"
    assert chunked.getheader("Content-Length") is None
    again = shop.call("GET", "/echo", Body_Bytes=100000)
    assert len(again.content) == 100000
    assert again.content == chunked.content
    assert len(set(again.content[i : i + 16] for i in range(0, 100000 - 16, 16))) > 6000


def test_switch_applies_to_its_count_path_and_method_and_never_to_the_books(shop):
    everything = {"fail": "503", "count": 2}
    shop.call("POST", "/control", everything)
    for path in ("/api/books", "/api/executions", "/healthz", "/control"):
        assert shop.call("GET", path).status == 200
    assert [shop.call("GET", "/echo").status for _ in range(3)] == [503, 503, 200]
    shop.call("POST", "/control", {"fail": "500", "match": "/api/payments", "method": "POST"})
    assert shop.call("GET", "/api/payments/by-key/x").status == 404
    assert shop.call("POST", "/echo").status == 200
    assert shop.call("POST", "/api/payments", b"{}").status == 500
    shop.call("POST", "/control", {})
    assert shop.call("POST", "/api/payments", b"{}").status == 400
    assert shop.call("POST", "/control", {"dely_ms": 1}).status == 400


def test_clear_books_empties_books_counters_and_numbers_and_keeps_switches(shop):
    shop.call("POST", "/control", {"status": 299})
    assert shop.call("POST", "/api/orders", ORDER, key="k").status == 299
    shop.call("POST", "/control", {"clear_books": True})
    assert shop.books() == {"orders": 0, "payments": 0, "charged": 0, "coupons": 0}
    assert shop.json("GET", "/api/executions") == {"total": 0, "by_key": {}, "by_route": {}}
    again = shop.call("POST", "/api/orders", ORDER)
    assert (again.status, json.loads(again.content)["data"]["order_id"]) == (299, "o-1")


def test_delay_comes_before_the_effect_and_delay_after_follows_it(shop):
    started = time.monotonic()
    waits = ({"key": "before", "Delay_Ms": 2000}, {"key": "after", "Delay_After_Ms": 2000})
    slow = [
        threading.Thread(target=shop.call, args=("POST", "/echo"), kwargs=options)
        for options in waits
    ]
    for thread in slow:
        thread.start()
    while shop.count("after") == 0 and time.monotonic() - started < 1.5:
        time.sleep(0.01)
    assert (shop.count("before"), shop.count("after")) == (0, 1)
    assert all(thread.is_alive() for thread in slow)
    for thread in slow:
        thread.join()
    assert time.monotonic() - started >= 2
    assert shop.count("before") == 1


def test_500_slow_requests_at_once_block_neither_each_other_nor_the_books(shop):
    sockets = []
    try:
        started = time.monotonic()
        for number in range(500):
            raw = socket.create_connection(("127.0.0.1", shop.port), timeout=30)
            sockets.append(raw)
            raw.sendall(
                f"POST /echo HTTP/1.1\r\nHost: a\r\nIdempotency-Key: {number}\r\n"
                "X-Shop-Delay-Ms: 3000\r\nContent-Length: 0\r\n\r\n".encode()
            )
        assert shop.json("GET", "/api/executions")["total"] == 0
        assert all(raw.recv(12) == b"HTTP/1.1 200" for raw in sockets)
        assert 3 <= time.monotonic() - started < 15
    finally:
        for raw in sockets:
            raw.close()
    counters = shop.json("GET", "/api/executions")
    assert counters["total"] == 500
    assert set(counters["by_key"].values()) == {1}


def test_workers_limit_the_requests_worked_on_but_not_the_books(shop):
    shop.end()
    shop.start("--workers", "2")
    options = {"key": "w", "Delay_Ms": 1000}
    slow = [
        threading.Thread(target=shop.call, args=("POST", "/echo"), kwargs=options)
        for _ in range(3)
    ]
    started = time.monotonic()
    for thread in slow:
        thread.start()
    assert shop.count("w") == 0
    for thread in slow:
        thread.join()
    assert time.monotonic() - started >= 2
    assert shop.count("w") == 3


def test_connection_is_kept_alive(shop):
    connection = http.client.HTTPConnection("127.0.0.1", shop.port, timeout=30)
    connection.request("POST", "/api/orders", json.dumps(ORDER))
    connection.getresponse().read()
    kept = connection.sock
    connection.request("GET", "/api/books")
    assert json.loads(connection.getresponse().read())["orders"] == 1
    assert kept is not None and connection.sock is kept
    connection.close()


def test_answered_effect_survives_kill_and_end_is_clean(shop):
    first = shop.call("POST", "/api/orders", ORDER, key="k")
    assert shop.end(signal.SIGKILL) == -signal.SIGKILL
    shop.start()
    assert shop.call("GET", "/api/orders/by-key/k").content == first.content
    assert shop.count("k") == 1


def test_end_interrupts_a_waiting_request_without_its_effect(shop):
    raw = socket.create_connection(("127.0.0.1", shop.port), timeout=30)
    raw.sendall(
        b"POST /echo HTTP/1.1\r\nHost: a\r\nIdempotency-Key: w\r\nX-Shop-Delay-Ms: 600000\r\n"
        b"Content-Length: 0\r\n\r\n"
    )
    deadline = time.monotonic() + 20
    while shop.call("GET", "/echo/headers-of/w").status == 404 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert shop.end(signal.SIGINT) == 0
    assert raw.recv(1) == b""
    raw.close()
    shop.start()
    assert shop.count("w") == 0


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--db", "shop.db"], "--listen is missing"),
        (["--listen", "127.0.0.1:0"], "--db is missing"),
        (["--listen", "localhost", "--db", "shop.db"], "127.0.0.1:9000"),
        (["--listen", "127.0.0.1:0", "--db", "missing/shop.db"], "--db missing/shop.db"),
        (["--listen", "127.0.0.1:0", "--db", "shop.db", "--workers", "0"], "--workers 0"),
    ],
)
def test_wrong_command_line_says_what_to_change(tmp_path, arguments, said):
    command = [str(SHOP), *arguments]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert run.returncode != 0
    assert said in run.stderr
    assert run.stdout == ""


def test_port_in_use_is_named(shop, tmp_path):
    command = [str(SHOP), "--listen", f"127.0.0.1:{shop.port}", "--db", str(tmp_path / "other.db")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert run.returncode != 0
    assert f"127.0.0.1:{shop.port}: Address already in use" in run.stderr
