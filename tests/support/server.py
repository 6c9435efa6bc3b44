# SPDX-License-Identifier: Apache-2.0
"""Servers under test: `counterfoil serve` and nginx with a hand-written configuration.

A Server owns a private directory, one session of processes, and its error log. It is ready when
it accepts connections. Everything it started ends by pid. Invariant: a line in the log that tells
of a crash or a leak fails the test, unless the test itself killed that process.
"""

import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

from support import procs
from support.expect import PENDING, assert_problem, code_of
from support.ports import free_port
from support.rawhttp import Client, Closed, encode
from support.waiting import POLL_S, until

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFOIL_BUILD", ROOT / "build"))
NGINX = os.environ.get("CFOIL_NGINX", "/usr/sbin/nginx")
STOP_S = 15.0

BAD_LINE = re.compile(r"\[(alert|emerg|crit)\]|exited on signal|Sanitizer|runtime error:|Assertion")
KILLED_LINE = re.compile(r"process (\d+) exited on signal 9")


class Server:
    """What serve and plain nginx have in common. Subclasses give command()."""

    def __init__(self, directory, workers):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.workers_wanted = workers
        self.port = free_port()
        self.ports = [self.port]
        self.process = None
        self.sessions = []
        self.killed = set()
        self.allowed = []
        self.log_read = {}
        self.preexec = None

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def command(self):
        raise NotImplementedError

    # Life.

    def start(self):
        with open(self.directory / "stdout.txt", "ab") as out, \
                open(self.directory / "stderr.log", "ab") as err:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err, start_new_session=True,
                                            preexec_fn=self.preexec, cwd=self.directory,
                                            env=self._environment())
        self.sessions.append(self.process.pid)
        until(self._ready, f"the server listens ({' '.join(map(str, self.command()))})")
        return self

    def _environment(self):
        """What a sanitizer in the programs has to report stands beside the error log."""
        options = f"{os.environ.get('ASAN_OPTIONS', '')}:log_path={self.directory}/sanitizer.log"
        return {**os.environ, "ASAN_OPTIONS": options}

    def _ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.log()}")
        for port in self.ports:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) != 0:
                    return False
        return len(self.workers()) == self.workers_wanted

    def pids(self):
        return [pid for session in self.sessions for pid in procs.session_pids(session)]

    def workers(self):
        """Pids of the workers that serve; one that is shutting down is not among them."""
        return sorted(pid for pid in self.pids()
                      if re.fullmatch(r"nginx: worker process", procs.title(pid)))

    def master(self):
        """The oldest one; a process that a master has just forked bears its title for a moment."""
        titled = {pid for pid in self.pids() if procs.title(pid).startswith("nginx: master")}
        masters = [pid for pid in titled if procs.parent(pid) not in titled]
        assert len(masters) == 1, f"masters: {masters}"
        return masters[0]

    def kill(self, pid):
        """kill -9, and waits until the process has ended."""
        self.killed.add(pid)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not procs.alive(pid), f"process {pid} ends")

    def kill_all(self):
        """kill -9 of everything at once, the first process and master before the workers."""
        victims = sorted(self.pids(), key=lambda pid: procs.title(pid).startswith("nginx: worker"))
        self.killed.update(victims)
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._reap()

    def _reap(self):
        until(lambda: not self.pids(), "all processes end")
        self.process.wait()
        self.sessions.clear()

    def stop(self, signal_number=signal.SIGTERM):
        """Ends the server in order; what does not end in time is killed and fails the test."""
        if self.process is None or not self.sessions:
            return
        for pid in self.workers():
            os.kill(pid, signal.SIGCONT)
        with contextlib.suppress(ProcessLookupError, AssertionError):
            os.kill(self.master(), signal_number)
        try:
            until(lambda: not self.pids(), "the server stops", STOP_S)
        except AssertionError:
            self.kill_all()
            raise
        self._reap()

    def restart(self):
        self.stop()
        return self.start()

    def close(self):
        """For the end of a fixture: nothing survives, whatever state the test left."""
        if self.sessions:
            self.kill_all()

    # The log.

    def logs(self):
        reports = self.directory.rglob("sanitizer.log.*")
        return [path for path in (*self.directory.rglob("*.log"), *reports)
                if path.name != "access.log"]

    def log(self):
        return "".join(path.read_text(errors="replace") for path in self.logs())

    def allow_log(self, pattern):
        """Lines matching the pattern are the very failure a test provokes."""
        self.allowed.append(re.compile(pattern))

    def bad_lines(self):
        """Lines since the last call that tell of a crash or a leak nobody asked for."""
        bad = []
        for path in self.logs():
            data = path.read_bytes()
            start = self.log_read.get(path, 0)
            end = data.rfind(b"\n") + 1
            self.log_read[path] = max(start, end)
            lines = data[start:end].decode("utf-8", "replace").splitlines()
            bad += [line for line in lines if BAD_LINE.search(line) and not self._excused(line)]
        return bad

    def _excused(self, line):
        killed = KILLED_LINE.search(line)
        if killed and int(killed.group(1)) in self.killed:
            return True
        return any(pattern.search(line) for pattern in self.allowed)

    # Requests.

    def client(self, timeout_s=20.0):
        return Client(self.address, timeout_s)

    @staticmethod
    def _headers(key, headers, ctype):
        sent = [("Content-Type", ctype)] if ctype else []
        if key is not None:
            sent.append(("Idempotency-Key", key))
        return sent + list(headers)

    def send(self, target, key=None, body=b"{}", headers=(), ctype="application/json",
             method="POST", client=None, **framing):
        """Sends on a new connection (or `client`) and returns it; the answer is read later."""
        client = client or self.client()
        client.send(encode(method, target, self._headers(key, headers, ctype), body, **framing))
        return client

    def post(self, target, key=None, body=b"{}", timeout_s=20.0, **options):
        """One request and its answer, on a connection of its own unless `client` is given."""
        given = options.get("client")
        client = self.send(target, key, body, **options)
        try:
            return client.read(options.get("method", "POST"), timeout_s)
        finally:
            if given is None:
                client.close()

    def post_until(self, wanted, what, *args, deadline_s=10.0, **options):
        """Repeats a request until wanted(answer); returns all answers, the wanted one last."""
        answers = []

        def ask():
            answers.append(self.post(*args, **options))
            return wanted(answers[-1])

        until(ask, what, deadline_s)
        return answers

    def post_settled(self, *args, **options):
        """Repeats a request while it is pending and returns the answer that is not. What is over
        the snapshot limit is passed on before it is settled: its client may be quicker."""
        answers = self.post_until(lambda answer: code_of(answer) != PENDING, "it is not pending",
                                  *args, **options)
        for answer in answers[:-1]:
            assert_problem(answer, PENDING)
        return answers[-1]

    def send_until(self, reached, *args, client=None, deadline_s=10.0, **options):
        """Repeats a request, whose refusals must be pending, until one is held back because
        reached() became true. Returns the connection on which its answer will come."""
        client = client or self.client()
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            self.send(*args, client=client, **options)
            while not reached() and not client.readable(POLL_S):
                assert time.monotonic() < end, "neither answered nor reached"
            if reached():
                return client
            assert_problem(client.read(), PENDING)
            time.sleep(POLL_S)
        raise AssertionError(f"{args} was refused for {deadline_s} s")

    # Workers.

    def worker_of(self, request):
        """The worker that holds the backend connection a recorded request came by."""
        owner = procs.socket_owner(self.workers(), request.peer_port, self.backend_port)
        assert owner, f"no worker holds the connection of {request.case}"
        return owner

    def freeze(self, pid):
        os.kill(pid, signal.SIGSTOP)
        until(lambda: procs.all_stopped(pid), f"process {pid} stops")

    def thaw(self, pid):
        os.kill(pid, signal.SIGCONT)
        until(lambda: not procs.all_stopped(pid), f"process {pid} continues")

    def live_client(self):
        """A kept-alive connection to a worker that answers now; frozen workers are passed by."""
        end = time.monotonic() + 15.0
        while time.monotonic() < end:
            client = self.client(timeout_s=1.0)
            try:
                answer = client.request("GET", "/ping")
                if answer.status < 400 and answer.kept_alive:
                    client.sock.settimeout(20.0)
                    return client
            except (socket.timeout, Closed):
                pass
            client.close()
        raise AssertionError("no worker answers")

    def clients_on(self, pid, count):
        """`count` kept-alive connections held by this one worker: the others sleep meanwhile."""
        others = [other for other in self.workers() if other != pid]
        for other in others:
            self.freeze(other)
        try:
            clients = [self.live_client() for _ in range(count)]
        finally:
            for other in others:
                self.thaw(other)
        for client in clients:
            port = client.sock.getsockname()[1]
            assert procs.socket_owner([pid], self.port, port) == pid
        return clients

    def freeze_at_rest(self, pid, path, deadline_s=15.0):
        """Freezes a worker outside any store transaction, so that the others can still claim.

        A frozen process may hold the store's write lock. A canary request through another worker
        tells; if it hangs the worker is thawed and frozen again. Returns a live connection.
        """
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            self.freeze(pid)
            client = self.live_client()
            try:
                key = f"canary-{time.monotonic_ns()}"
                self.post(path, key, client=client, timeout_s=1.0)
                client.sock.settimeout(20.0)
                return client
            except socket.timeout:
                client.close()
                self.thaw(pid)
        raise AssertionError(f"worker {pid} could not be frozen at rest")


class Gateway(Server):
    """`counterfoil serve` in front of a Backend."""

    def __init__(self, directory, backend, policy=None, workers=2, upstream_timeout=None,
                 store_options="", stack_kib=None, extra=()):
        super().__init__(directory, workers)
        self.backend_port = backend.port
        self.upstream = backend.url
        self.admin_port = free_port()
        self.ports.append(self.admin_port)
        self.store_dir = self.directory / "store"
        self.store_options = store_options
        self.upstream_timeout = upstream_timeout
        self.extra = list(extra)
        self.policy = None
        if policy is not None:
            self.policy = self.directory / "policy.yaml"
            self.policy.write_text(policy, encoding="utf-8")
        if stack_kib is not None:
            limit = (stack_kib * 1024, stack_kib * 1024)
            self.preexec = lambda: resource.setrlimit(resource.RLIMIT_STACK, limit)

    @property
    def store_url(self):
        return f"lmdb:{self.store_dir}{self.store_options}"

    def command(self):
        command = [BUILD / "counterfoil", "serve", "--upstream", self.upstream,
                   "--listen", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self.admin_port}",
                   "--store", self.store_url, "--state", self.directory / "state",
                   "--workers", str(self.workers_wanted)]
        if self.policy is not None:
            command += ["--policy", self.policy]
        if self.upstream_timeout is not None:
            command += ["--upstream-timeout", self.upstream_timeout]
        return command + self.extra

    def cli(self, command, *args, check=True):
        """Runs a record command on this gateway's store."""
        done = subprocess.run([BUILD / "counterfoil", command, "--store", self.store_url, *args],
                              capture_output=True, text=True, timeout=20, check=False)
        if check:
            assert done.returncode == 0, f"{command} {args}: {done.returncode} {done.stderr}"
        return done

    def record(self, key):
        """The one record of the key, as `get --json` prints it."""
        return json.loads(self.cli("get", "--key", key, "--json").stdout)


NGINX_CONF = """\
{load}
daemon off;
{user}
worker_processes {workers};
pid {directory}/nginx.pid;
error_log stderr notice;
events {{ worker_connections 512; }}
http {{
    {access_log}
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    {http}
    server {{
        listen 127.0.0.1:{port};
        {server}
    }}
}}
"""


class Nginx(Server):
    """nginx with a hand-written configuration; `policy` loads and configures the module."""

    def __init__(self, directory, backend, server, http="", policy=None, workers=1):
        super().__init__(directory, workers)
        self.backend_port = backend.port
        load = ""
        if policy is not None:
            (self.directory / "policy.yaml").write_text(policy, encoding="utf-8")
            load = f"load_module {BUILD}/ngx_http_counterfoil_module.so;"
            http = (f"counterfoil_policy {self.directory}/policy.yaml;\n"
                    f"counterfoil_store lmdb:{self.directory}/store;\n" + http)
        access_log = "" if "access_log" in http else "access_log off;"
        user = "user root;" if os.geteuid() == 0 else ""
        self.conf = self.directory / "nginx.conf"
        text = NGINX_CONF.format(load=load, user=user, workers=workers, http=http,
                                 access_log=access_log, directory=self.directory, port=self.port,
                                 server=server)
        self.conf.write_text(text, encoding="utf-8")

    def command(self):
        return [NGINX, "-e", "stderr", "-p", self.directory, "-c", self.conf]
