# SPDX-License-Identifier: Apache-2.0
"""What `make install` puts somewhere runs from there."""

import subprocess

from support.server import BUILD


def test_the_installed_program_finds_the_installed_module(tmp_path):
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", tmp_path],
                   check=True, capture_output=True, timeout=60)
    programs = list(tmp_path.rglob("bin/counterfoil"))
    modules = list(tmp_path.rglob("lib/counterfoil/ngx_http_counterfoil_module.so"))
    assert len(programs) == len(modules) == 1
    config = subprocess.run([programs[0], "serve", "--upstream", "http://127.0.0.1:3000",
                             "--state", tmp_path / "state", "--print-config"],
                            check=True, capture_output=True, text=True, timeout=20).stdout
    loaded = [line.split('"')[1] for line in config.splitlines() if line.startswith("load_module")]
    assert [modules[0].samefile(path) for path in loaded] == [True]
