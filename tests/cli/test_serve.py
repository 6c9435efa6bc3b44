# SPDX-License-Identifier: Apache-2.0
"""counterfoil serve: what it refuses before it touches anything, what it writes, what it says."""

import os
import pwd
import socket
import stat
import subprocess

import pytest

from support.expect import assert_first, assert_settled
from support.ports import free_port
from support.rawhttp import Client, encode

UPSTREAM = ["--upstream", "http://127.0.0.1:3000"]
HEADER_TENANTS = """version: 1
tenant: {header: X-Tenant-Id, otherwise: authorization}
routes:
  - {match: POST /a}
"""


@pytest.mark.parametrize("arguments,words", [
    ([], ["--upstream URL", "http://127.0.0.1:3000"]),
    (["--upstream", "127.0.0.1:3000"], ["not an http URL", "http://HOST:PORT"]),
    (["--upstream", "https://127.0.0.1"], ["not available in this version"]),
    (["--upstream", "http://"], ["no host"]),
    (["--upstream", "http://127.0.0.1:0"], ["port"]),
    (["--upstream", "http://127.0.0.1:70000"], ["port"]),
    (["--upstream", "http://127.0.0.1:x"], ["port"]),
    (["--upstream", "http://127.0.0.1/api"], ["path", "not available"]),
    (["--upstream", "http://u@127.0.0.1"], ["user name"]),
    (["--upstream", "http://a b"], ["host is not valid"]),
    (["--upstream", "http://a;b"], ["host is not valid"]),
    (UPSTREAM + ["--listen", "8080"], ["--listen 8080", "ADDR:PORT"]),
    (UPSTREAM + ["--listen", "127.0.0.1:0"], ["--listen", "1 to 65535"]),
    (UPSTREAM + ["--listen", "127.0.0.1:8080;"], ["--listen"]),
    (UPSTREAM + ["--listen", "::1:8080"], ["--listen", "[::1]:8080"]),
    (UPSTREAM + ["--admin", "nowhere:8081"], ["--admin", "numeric"]),
    (UPSTREAM + ["--admin", "127.0.0.1:8080"], ["--listen and --admin"]),
    (UPSTREAM + ["--listen", "127.0.0.1:3000"], ["--listen itself"]),
    (UPSTREAM + ["--workers", "0"], ["--workers", "from 1"]),
    (UPSTREAM + ["--workers", "two"], ["--workers", "`two`"]),
    (UPSTREAM + ["--upstream-timeout", "60"], ["--upstream-timeout", "60s"]),
    (UPSTREAM + ["--upstream-timeout", "0s"], ["--upstream-timeout", "from 1ms"]),
    (UPSTREAM + ["--store", "redis://127.0.0.1"], ["not available in this version", "lmdb:DIR"]),
    (UPSTREAM + ["--store", "/var/lib/x"], ["not a store", "lmdb:DIR"]),
    (UPSTREAM + ["--store", "memory:", "--workers", "2"], ["one worker"]),
    (UPSTREAM + ["--state", "a\"b"], ["--state", "quotes"]),
    (UPSTREAM + ["--state", "$HOME"], ["--state", "$"]),
])
def test_wrong_arguments_are_refused_with_the_fix(run, tmp_path, arguments, words):
    shown = run("serve", *arguments)
    assert shown.returncode == 2
    assert shown.stdout == ""
    for word in words:
        assert word in shown.stderr
    assert not os.listdir(tmp_path)


def test_a_wrong_policy_is_refused_with_its_place(run, write, tmp_path):
    write("policy.yaml", "version: 1\nroutes:\n  - match: POST /a\n    archive: true\n")
    shown = run("serve", *UPSTREAM, "--policy", "policy.yaml", "--state", "state")
    assert shown.returncode == 2
    assert shown.stderr.startswith("policy.yaml:4:14: ")
    assert os.listdir(tmp_path) == ["policy.yaml"]


def test_print_config_prints_and_does_nothing(run, tmp_path):
    shown = run("serve", *UPSTREAM, "--state", "state", "--print-config", "--workers", "3",
                "--listen", "127.0.0.1:8123", "--upstream-timeout", "7s")
    assert shown.returncode == 0
    for line in ["worker_processes 3;", "listen 127.0.0.1:8123;", "listen 127.0.0.1:8081;",
                 "server 127.0.0.1:3000 max_fails=0;", "proxy_read_timeout 7000ms;",
                 "counterfoil on;", "keepalive_timeout 1s;", f'counterfoil_store "lmdb:{tmp_path}/state/store";',
                 f'counterfoil_policy "{tmp_path}/state/default-policy.yaml";']:
        assert f" {line}\n" in shown.stdout or f"\n{line}\n" in shown.stdout, line
    assert not os.listdir(tmp_path)


def test_paths_are_made_absolute(run, write, tmp_path):
    write("policy.yaml", HEADER_TENANTS)
    shown = run("serve", *UPSTREAM, "--state", "s", "--policy", "policy.yaml", "--store",
                "lmdb:records?map_size=1GiB", "--print-config")
    assert f'counterfoil_policy "{tmp_path}/policy.yaml";' in shown.stdout
    assert f'counterfoil_store "lmdb:{tmp_path}/records?map_size=1GiB";' in shown.stdout


def test_memory_has_one_worker_without_being_asked(run):
    shown = run("serve", *UPSTREAM, "--store", "memory:", "--state", "s", "--print-config")
    assert shown.returncode == 0
    assert "\nworker_processes 1;\n" in shown.stdout


def test_tenants_from_a_header_are_warned_of(run, write):
    write("policy.yaml", HEADER_TENANTS)
    shown = run("serve", *UPSTREAM, "--policy", "policy.yaml", "--state", "s", "--print-config")
    assert "warning: tenants are taken from the header X-Tenant-Id" in shown.stderr
    assert "something in front must set it" in shown.stderr


def test_it_says_what_is_served(new_gateway, backend):
    gateway = new_gateway(HEADER_TENANTS)
    said = (gateway.directory / "stdout.txt").read_text()
    for words in [f"http://127.0.0.1:{gateway.port}", f"http://127.0.0.1:{gateway.admin_port}",
                  backend.url, str(gateway.policy), "header X-Tenant-Id, otherwise authorization",
                  f"lmdb:{gateway.store_dir}", str(gateway.directory / "state"), "workers     2"]:
        assert words in said, words
    assert "warning: tenants" in gateway.log()


def test_it_says_that_a_store_is_new(new_gateway):
    """An empty store knows no key: whoever expected records has given the wrong directory."""
    gateway = new_gateway(HEADER_TENANTS)
    said = gateway.directory / "stdout.txt"
    assert "new, empty" in said.read_text()
    gateway.stop()
    said.write_text("")
    gateway.start()
    assert f"lmdb:{gateway.store_dir}" in said.read_text()
    assert "new, empty" not in said.read_text()


def test_without_a_policy_posts_with_a_key_are_guarded(new_gateway, backend, key):
    gateway = new_gateway()
    first = gateway.post("/any/path", key)
    assert_first(first)
    assert_settled(gateway, backend, "/any/path", key, first)
    assert "built in" in (gateway.directory / "stdout.txt").read_text()
    assert (gateway.directory / "state" / "default-policy.yaml").read_text().startswith("# What")


def test_the_state_directory_is_private(new_gateway):
    state = new_gateway().directory / "state"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "nginx.conf").stat().st_mode) == 0o600


def test_the_default_store_is_inside_the_state_directory(run, backend, tmp_path):
    shown = run("serve", "--upstream", backend.url, "--state", "state", "--print-config")
    assert f'counterfoil_store "lmdb:{tmp_path}/state/store";' in shown.stdout


def test_admin_answers_healthz_and_nothing_else(new_gateway):
    gateway = new_gateway()
    client = Client(("127.0.0.1", gateway.admin_port), 10.0)
    client.send(encode("GET", "/healthz", [], b""))
    answer = client.read("GET")
    assert (answer.status, answer.body) == (200, b"ok\n")
    client.send(encode("GET", "/", [], b""))
    assert client.read("GET").status == 404
    client.close()


def test_the_backend_sees_the_clients_host(new_gateway, backend, key):
    gateway = new_gateway()
    assert_first(gateway.post("/host", key))
    [request] = backend.of(key)
    assert request.header("Host") == "gw.test"
    with socket.create_connection(gateway.address, 10) as old:
        old.sendall(f"POST /old HTTP/1.0\r\nX-Case: {key}-old\r\nContent-Length: 0\r\n\r\n".encode())
        assert old.recv(4096).startswith(b"HTTP/1.1 201")
    [request] = backend.of(f"{key}-old")
    assert request.header("Host") == f"127.0.0.1:{backend.port}"


def test_a_request_is_logged_with_its_verdict(new_gateway, key):
    gateway = new_gateway()
    gateway.post("/logged", key)
    gateway.post("/logged", key)
    gateway.stop()
    lines = (gateway.directory / "state" / "access.log").read_text().splitlines()
    verdicts = [line.rpartition('" "')[0].rpartition('"')[2] for line in lines]
    assert verdicts == ["execute", "replay"]
    assert all(line.endswith(' "default"') for line in lines)


def serve(gateway, **changes):
    """The gateway's own command once more, with other options; it must end by itself."""
    command = list(map(str, gateway.command()))
    for name, value in changes.items():
        command[command.index(f"--{name}") + 1] = value
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


def test_an_address_that_is_taken(new_gateway, tmp_path):
    gateway = new_gateway()
    shown = serve(gateway, state=str(tmp_path / "other"))
    assert shown.returncode == 3
    assert f"--listen 127.0.0.1:{gateway.port}" in shown.stderr
    assert "in use" in shown.stderr


def test_a_second_gateway_on_one_state_directory(new_gateway):
    gateway = new_gateway()
    config = (gateway.directory / "state" / "nginx.conf").read_text()
    shown = serve(gateway, listen=f"127.0.0.1:{free_port()}", admin=f"127.0.0.1:{free_port()}")
    assert shown.returncode == 3
    assert "another gateway uses the state directory" in shown.stderr
    assert (gateway.directory / "state" / "nginx.conf").read_text() == config


def test_a_backend_without_address(run):
    shown = run("serve", "--upstream", "http://does-not-exist.invalid", "--state", "s", "--listen",
                f"127.0.0.1:{free_port()}", "--admin", f"127.0.0.1:{free_port()}")
    assert shown.returncode == 3
    assert "does-not-exist.invalid" in shown.stderr


def test_a_state_directory_that_is_a_file(run, write):
    write("state", "")
    shown = run("serve", *UPSTREAM, "--state", "state")
    assert shown.returncode == 3
    assert "is not a directory" in shown.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a directory away")
def test_as_root_workers_run_as_the_owner_of_the_state_directory(new_gateway, backend, key, tmp_path):
    owner = pwd.getpwnam("nobody")
    state = tmp_path / "owned"
    state.mkdir(mode=0o700)
    os.chown(state, owner.pw_uid, owner.pw_gid)
    # Whoever the workers run as has to get there; what is above pytest's own directories lets them.
    for parent in [tmp_path, *tmp_path.parents]:
        mode = stat.S_IMODE(parent.stat().st_mode)
        if not mode & stat.S_IXOTH:
            os.chmod(parent, mode | stat.S_IXOTH)
    gateway = new_gateway(start=False)
    gateway.store_dir = state / "store"
    gateway.command = lambda original=gateway.command: [
        state if str(word).endswith("/state") else word for word in original()]
    gateway.start()
    assert_first(gateway.post("/owned", key, b"x" * 100_000))  # long enough for a temporary file
    assert {os.stat(f"/proc/{pid}").st_uid for pid in gateway.workers()} == {owner.pw_uid}
    assert (state / "store" / "data.mdb").stat().st_uid == owner.pw_uid
    assert "as nobody" in (gateway.directory / "stdout.txt").read_text()
    assert backend.executions(key) == 1
