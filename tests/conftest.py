# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the black-box tests.

A test module names its POLICY (YAML text, None for none) and, if it wishes, GATEWAY (options of
support.server.Gateway); its tests share one gateway and keep apart by their keys. Tests that break
things make servers of their own with new_gateway and new_nginx. A module with an nginx.conf of its
own names it SERVER and asks for front. After every test the logs of all servers are read: a crash or
a leak fails the test that caused it.
"""

import signal
from contextlib import ExitStack

import pytest

from support.backend import Backend
from support.expect import new_key
from support.front import Front
from support.server import Gateway, Nginx

_running = []


def pytest_configure():
    """A shell that starts the tests in its background has them, and all they start, ignore ^C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _check_logs():
    return [line for server in _running for line in server.bad_lines()]


def _end(server):
    try:
        server.stop()
        bad = server.bad_lines()
    finally:
        server.close()
        _running.remove(server)
    assert not bad, "in the error log:\n" + "\n".join(bad)


@pytest.fixture(autouse=True)
def clean_log():
    """A test must leave no line of a crash or a leak in any server's error log."""
    yield
    bad = _check_logs()
    assert not bad, "in the error log:\n" + "\n".join(bad)


@pytest.fixture(scope="module")
def backend():
    server = Backend()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def gateway(request, backend, tmp_path_factory):
    """The module's shared gateway."""
    options = getattr(request.module, "GATEWAY", {})
    server = Gateway(tmp_path_factory.mktemp("gateway"), backend,
                     getattr(request.module, "POLICY", None), **options)
    _running.append(server)
    try:
        yield server.start()
    finally:
        _end(server)


@pytest.fixture(scope="module")
def front(request, backend, tmp_path_factory):
    """The module's nginx of its own making: SERVER, with {backend} where the backend's URL goes."""
    server = Front(tmp_path_factory.mktemp("front"), backend,
                   request.module.SERVER.replace("{backend}", backend.url), request.module.POLICY)
    with server.running():
        yield server


@pytest.fixture(autouse=True)
def clean_shared(request):
    """Nor may it leave one in the log of a server that its module has made."""
    servers = [request.getfixturevalue(name)
               for name in {"front", "limited", "pair"} & set(request.fixturenames)]
    yield
    for server in servers:
        server.assert_clean()


@pytest.fixture
def new_gateway(backend, tmp_path_factory):
    """Makes gateways that end with the test; start=False leaves the start to the test."""
    with ExitStack() as ends:
        def make(policy=None, start=True, **options):
            options = {"backend": backend, **options}
            server = Gateway(tmp_path_factory.mktemp("gateway"), policy=policy, **options)
            _running.append(server)
            ends.callback(_end, server)
            return server.start() if start else server

        yield make


@pytest.fixture
def new_nginx(backend, tmp_path_factory):
    """Makes nginx servers from a hand-written configuration that end with the test."""
    with ExitStack() as ends:
        def make(server_block, **options):
            server = Nginx(tmp_path_factory.mktemp("nginx"), backend, server_block, **options)
            _running.append(server)
            ends.callback(_end, server)
            return server.start()

        yield make


@pytest.fixture
def new_backend():
    """Makes more backends that end with the test."""
    made = []

    def make():
        made.append(Backend())
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture(autouse=True)
def released(request):
    """What a failed test left waiting in the backend does not hold up the next one."""
    yield
    if "backend" in request.fixturenames:
        request.getfixturevalue("backend").release()


@pytest.fixture
def key():
    """A key no other test uses."""
    return new_key()
