# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: running the program to its end."""

import subprocess

import pytest

from support.server import BUILD


@pytest.fixture
def program():
    return BUILD / "counterfoil"


@pytest.fixture
def run(program, tmp_path):
    """Runs `counterfoil ...` in an empty directory; nothing it prints reaches a terminal."""
    def call(*arguments, text_in="", env=None):
        return subprocess.run([program, *map(str, arguments)], input=text_in, env=env, cwd=tmp_path,
                              capture_output=True, text=True, timeout=20, check=False)

    return call


@pytest.fixture
def write(tmp_path):
    """Writes a file into that directory and returns its path."""
    def make(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return make
