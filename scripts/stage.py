# SPDX-License-Identifier: Apache-2.0
"""The stage that make run and make demo play on: the demo shop, and the gateway before it.

Owns the two processes and the directory they write to. Does not know what is played. Both are ended
when the stage is left, however it is left; neither is restarted.

    client -> gateway (build/counterfoil serve) -> shop (build/counterfoil-shop)
"""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
POLICY = os.path.join(ROOT, "examples", "shop", "policy.yaml")
READY_S = 15
STOP_S = 15
# Whatever proxy the environment names is not meant for 127.0.0.1.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class StageError(Exception):
    """What a person has to know, in a sentence or two."""


def port_is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count):
    """Ports that nobody listens on now. They are all held until the last one is known."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def program(build, name):
    path = os.path.join(build, name)
    if not os.access(path, os.X_OK):
        raise StageError(f"{path} is not there yet; run make first.")
    return path


class Stage:
    """The shop on shop_port and the gateway on port, writing below directory."""

    def __init__(self, build, directory, port, shop_port, admin_port, workers=2):
        self.build = os.path.abspath(build)
        self.directory = directory
        self.port = port
        self.shop_port = shop_port
        self.admin_port = admin_port
        self.workers = workers
        self.state = os.path.join(directory, "state")
        self.shop = None
        self.gateway = None
        os.makedirs(self.state, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A second Ctrl-C must not leave one of them behind; each is given STOP_S at most.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.stop_gateway()
        self._stop(self.shop)

    def _log(self, name):
        return os.path.join(self.directory, name + ".log")

    def _start(self, name, arguments, ready_url):
        # A session of its own, so that Ctrl-C reaches us alone and we end both in order.
        with open(self._log(name), "ab") as log:
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, start_new_session=True)
        try:
            self._wait_ready(name, process, ready_url)
        except BaseException:
            self._stop(process)
            raise
        return process

    def _wait_ready(self, name, process, url):
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise StageError(f"The {name} ended at once (status {process.returncode}). "
                                 f"It said:\n{self.tail(name)}")
            try:
                DIRECT.open(url, timeout=1).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise StageError(f"The {name} did not answer {url} within {READY_S} seconds. "
                         f"It said:\n{self.tail(name)}")

    def _stop(self, process):
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def tail(self, name, lines=20):
        try:
            with open(self._log(name), encoding="utf-8", errors="replace") as log:
                return "".join("    " + line for line in log.readlines()[-lines:])
        except OSError:
            return ""

    def start_shop(self):
        self.shop = self._start("shop", [
            program(self.build, "counterfoil-shop"), "--listen", f"127.0.0.1:{self.shop_port}",
            "--db", os.path.join(self.directory, "shop.db")],
            f"http://127.0.0.1:{self.shop_port}/healthz")

    def start_gateway(self):
        self.gateway = self._start("gateway", [
            program(self.build, "counterfoil"), "serve",
            "--upstream", f"http://127.0.0.1:{self.shop_port}",
            "--listen", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self.admin_port}",
            "--policy", POLICY, "--state", self.state, "--workers", str(self.workers)],
            f"http://127.0.0.1:{self.port}/healthz")

    def stop_gateway(self):
        self._stop(self.gateway)
        self.gateway = None

    def ended(self):
        """The name of a process that has ended by itself, or None."""
        for name, process in (("shop", self.shop), ("gateway", self.gateway)):
            if process is not None and process.poll() is not None:
                return name
        return None

    def worker_pids(self):
        """The gateway's nginx workers, which are descendants of serve."""
        parents = _parents()
        wanted = {self.gateway.pid}
        grew = True
        while grew:
            more = {pid for pid, parent in parents.items() if parent in wanted} - wanted
            grew = bool(more)
            wanted |= more
        return sorted(pid for pid in wanted if "worker process" in _command(pid))


def _parents():
    parents = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                # The command name stands in parentheses and may hold anything, parentheses too.
                parents[int(entry)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return parents


def _command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as command:
            return command.read().replace("\0", " ")
    except OSError:
        return ""
