# SPDX-License-Identifier: Apache-2.0
"""Tenants from cookies, the query, the path and variables: two of them never meet (R10)."""

import pytest

from support.expect import INVALID, assert_first, assert_problem, assert_replay, is_replay

POLICY = """
version: 1
routes:
  - {name: cookie, match: POST /cookie, tenant: {cookie: sid, otherwise: authorization}}
  - name: query
    match: POST /query
    tenant: {query: shop}
    fingerprint: {query: false}
  - {name: path, match: ["POST /shops/{shop}/orders", "POST /s/{shop}"], tenant: {path: shop}}
  - {name: variable, match: POST /variable, tenant: {variable: http_x_Shop}}
"""
SERVER = """
    counterfoil on;

    location / { proxy_pass {backend}; }
"""
BYTES_MAX = 1024


def cookie(value):
    return {"headers": [("Cookie", f"a=1; sid={value}")]}


def ask(gateway, source, name, key):
    """A request of the tenant `name`, which stands where `source` says."""
    if source == "cookie":
        return gateway.post("/cookie", key, **cookie(name))
    if source == "query":
        return gateway.post(f"/query?a=1&shop={name}", key)
    if source == "path":
        return gateway.post(f"/shops/{name}/orders", key)
    return gateway.post("/variable", key, headers=[("X-Shop", name)])


SOURCES = ["cookie", "query", "path", "variable"]


@pytest.mark.parametrize("source", SOURCES)
def test_two_tenants_never_meet(gateway, backend, key, source):
    first = ask(gateway, source, "one", key)
    other = ask(gateway, source, "two", key)
    assert_first(first)
    assert_first(other)
    assert first.body != other.body
    assert_replay(ask(gateway, source, "one", key), first)
    assert_replay(ask(gateway, source, "two", key), other)
    assert backend.executions(key) == 2


@pytest.mark.parametrize("source", SOURCES)
def test_the_record_names_the_tenant(gateway, key, source):
    assert_first(ask(gateway, source, "shop-7", key))
    assert gateway.record(key)["tenant"] == "shop-7"


@pytest.mark.parametrize("target", ["/query?shop=a+b%2B", "/query?shop=a%20b%2b",
                                    "/query?s=1&sh%6Fp=a%20b%2b&shop=a+b%2b"])
def test_an_argument_is_decoded_once(gateway, key, target):
    assert_first(gateway.post(target, key))
    assert gateway.record(key)["tenant"] == "a b+"


def test_a_path_parameter_is_decoded_as_nginx_has_it(gateway, key):
    assert_first(gateway.post("/shops/%E5%BA%97/orders", key))
    assert gateway.record(key)["tenant"] == "店"


@pytest.mark.parametrize("target, options", [
    ("/query?shop=a&shop=b", {}),
    ("/cookie", cookie("a; sid=b")),
    ("/cookie", {"headers": [("Cookie", "sid=a"), ("Cookie", "sid=b")]}),
])
def test_two_that_differ_are_refused_and_nothing_runs(gateway, backend, key, target, options):
    assert_problem(gateway.post(target, key, **options), INVALID)
    assert backend.executions(key) == 0
    assert gateway.cli("list", "--key", key, "--json").stdout == ""


def test_two_that_are_equal_are_one(gateway, backend, key):
    first = gateway.post("/query?shop=a&shop=%61", key)
    assert_first(first)
    assert_replay(gateway.post("/query?shop=a", key), first)
    first = gateway.post("/cookie", key, **cookie("a; sid=a"))
    assert_first(first)
    assert_replay(gateway.post("/cookie", key, **cookie("a")), first)
    assert backend.executions(key) == 2


def test_where_it_is_missing_otherwise_counts(gateway, backend, key):
    one = {"headers": [("Authorization", "Bearer one")]}
    two = {"headers": [("Authorization", "Bearer two"), ("Cookie", "sid=")]}
    first = gateway.post("/cookie", key, **one)
    assert_first(first)
    assert_first(gateway.post("/cookie", key, **two))
    assert_replay(gateway.post("/cookie", key, **one), first)
    assert gateway.post("/query", key).status == 201
    assert is_replay(gateway.post("/query?shop=", key))
    assert backend.executions(key) == 3


def test_a_name_is_no_authorization_that_spells_the_same(gateway, backend, key):
    """The class of a tenant is part of the scope: a cookie cannot name a caller's credentials."""
    assert_first(gateway.post("/cookie", key, headers=[("Authorization", "Bearer x")]))
    tenant = gateway.record(key)["tenant"]
    assert_first(gateway.post("/cookie", key, **cookie(tenant.removeprefix("auth:"))))
    assert backend.executions(key) == 2


@pytest.mark.parametrize("length, allowed", [(BYTES_MAX - 1, True), (BYTES_MAX, True),
                                             (BYTES_MAX + 1, False)])
@pytest.mark.parametrize("source", ["cookie", "query", "variable"])
def test_the_limit_on_a_name(gateway, backend, key, source, length, allowed):
    answer = ask(gateway, source, "x" * length, key)
    if allowed:
        assert_first(answer)
    else:
        assert_problem(answer, INVALID)
    assert backend.executions(key) == allowed


def test_a_variable_of_the_configuration(front, backend, key):
    first = front.post("/variable", key, headers=[("X-Shop", "one")])
    assert_first(first)
    assert_first(front.post("/variable", key, headers=[("X-Shop", "two")]))
    assert_replay(front.post("/variable", key, headers=[("X-Shop", "one")]), first)
    assert backend.executions(key) == 2


def test_a_variable_nobody_knows_stops_the_start(new_gateway):
    gateway = new_gateway(POLICY.replace("http_x_Shop", "no_such_thing"), start=False)
    gateway.allow_log('unknown "no_such_thing" variable')
    with pytest.raises(AssertionError, match='unknown "no_such_thing" variable'):
        gateway.start()
