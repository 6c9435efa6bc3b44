# SPDX-License-Identifier: Apache-2.0
"""What the tests of the tooling share: the scripts as modules, and a scratch tree to be linted."""

import importlib.machinery
import importlib.util
import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(ROOT, "scripts")
sys.path.insert(0, SCRIPTS)


@pytest.fixture(scope="session")
def load():
    """Loads a script that has no suffix: load("tests/run")."""
    def load_script(path):
        loader = importlib.machinery.SourceFileLoader(path.replace("/", "_").replace("-", "_"),
                                                      os.path.join(ROOT, path))
        spec = importlib.util.spec_from_loader(loader.name, loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module
    return load_script


@pytest.fixture
def findings(tmp_path):
    """Runs one rule over a tree made of these files: findings("blanks", {"a.c": "..."})."""
    from lint_rules import Tree, all_rules

    def run(rule, files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return list(all_rules()[rule](Tree(str(tmp_path))))
    return run
