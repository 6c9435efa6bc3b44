# SPDX-License-Identifier: Apache-2.0
"""nginx in the background, as distributions start it: the only way in which it takes USR2.

A Daemon is an Nginx whose first process ends at once; the master leads a session of its own, and so
does everything that master starts, a new master included. Every process is found by that session.
"""

import os
import signal
import subprocess

from support import procs
from support.server import Nginx
from support.waiting import until


class Daemon(Nginx):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        text = self.conf.read_text(encoding="utf-8")
        assert "daemon off;" in text
        self.conf.write_text(text.replace("daemon off;", "daemon on;"), encoding="utf-8")
        self.pid_file = self.directory / "nginx.pid"

    def start(self):
        with open(self.directory / "stderr.log", "ab") as err:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL,
                                            stdout=err, stderr=err, cwd=self.directory)
        assert self.process.wait(20) == 0, self.log()
        master = until(self._pid, "the master has written its pid")
        self.sessions.append(master)
        until(lambda: len(self.workers()) == self.workers_wanted, "the workers serve")
        return self

    def _pid(self):
        """The master's pid, once the file names a process that is one and leads its session: a file
        left behind might name anybody by now."""
        try:
            pid = int(self.pid_file.read_text(encoding="ascii"))
            is_ours = os.getsid(pid) == pid and str(self.conf) in procs.title(pid)
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return None
        return pid if is_ours else None

    def masters(self):
        return sorted(pid for pid in self.pids() if procs.title(pid).startswith("nginx: master"))

    def workers_of(self, master):
        """Workers that this master started and that are not leaving."""
        return [pid for pid in self.workers() if procs.parent(pid) == master]

    def start_new_binary(self):
        """USR2: returns (old master, new master), the new one with its workers."""
        old = self.master()
        os.kill(old, signal.SIGUSR2)
        new = until(lambda: next((pid for pid in self.masters() if pid != old), None),
                    "there is a new master")
        until(lambda: len(self.workers_of(new)) == self.workers_wanted, "its workers serve")
        return old, new

    def stop(self, signal_number=signal.SIGTERM):
        for master in self.masters()[1:]:
            os.kill(master, signal_number)
            until(lambda pid=master: not procs.alive(pid), f"master {master} stops")
        super().stop(signal_number)
