# SPDX-License-Identifier: Apache-2.0
"""The rules of make lint. Owns the list of rules and what a rule is given and gives.

A rule is a function of a Tree that yields findings; its docstring is what a person is told about it.
Modules: limits (size), layout (form of a file), source (what code may call and include), gateway
(nginx's dialect), documents (docs against code), history (commits).
"""

import os
import subprocess
from dataclasses import dataclass

SKIPPED_FOLDERS = {".git", "__pycache__", ".pytest_cache"}
CORPUS = "tests/fuzz/corpus/"
BINARY_SUFFIXES = (".png", ".ico", ".woff2", ".db", ".bin", ".so")


@dataclass(frozen=True)
class Finding:
    """One thing to change. line is 1-based; 0 is the file as a whole."""

    path: str
    line: int
    text: str


class Tree:
    """The files of a repository: those git knows and those it would add, or, where there is no git,
    all of them. Texts are read once."""

    def __init__(self, root):
        self.root = root
        self._texts = {}
        self.paths = sorted(path for path in self._list() if os.path.isfile(self.absolute(path)))

    def absolute(self, path):
        return os.path.join(self.root, path)

    def has_git(self):
        return os.path.exists(self.absolute(".git"))

    def _list(self):
        if self.has_git():
            command = ["git", "-C", self.root, "ls-files", "-co", "--exclude-standard", "-z"]
            listed = subprocess.run(command, check=True, capture_output=True).stdout
            return {name for name in listed.decode().split("\0") if name}
        found = set()
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders
                          if name not in SKIPPED_FOLDERS and not name.startswith("build")]
            found.update(os.path.relpath(os.path.join(folder, name), self.root) for name in names)
        return found

    def text(self, path):
        if path not in self._texts:
            with open(self.absolute(path), encoding="utf-8", errors="replace") as file:
                self._texts[path] = file.read()
        return self._texts[path]

    def lines(self, path):
        return self.text(path).split("\n")

    def exists(self, path):
        return os.path.exists(self.absolute(path))

    def texts(self):
        """Paths of text files. What fuzzers begin with may be anything."""
        return [path for path in self.paths
                if not path.endswith(BINARY_SUFFIXES) and not path.startswith(CORPUS)]

    def c_files(self, *folders):
        """Paths of C sources and headers, in these folders or everywhere."""
        return [path for path in self.paths if path.endswith((".c", ".h"))
                and (not folders or path.startswith(tuple(f"{name}/" for name in folders)))]

    def scripts(self):
        """Paths of Python and shell files, with or without a suffix."""
        return [path for path in self.texts() if path.endswith((".py", ".sh"))
                or ("." not in os.path.basename(path) and self.text(path).startswith("#!"))]

    def python_files(self):
        return [path for path in self.scripts() if path.endswith(".py")
                or "python" in self.lines(path)[0]]

    def sources(self):
        """Everything that is code or describes a build, as against prose."""
        wanted = set(self.scripts()) | set(self.c_files())
        wanted.update(path for path in self.paths if path.endswith((".def", ".yaml", ".yml", ".sql"))
                      or os.path.basename(path) in ("meson.build", "meson.options", "Makefile"))
        return sorted(wanted)


def all_rules():
    """The rules, by name, in the order in which they are run."""
    from . import documents, gateway, history, layout, limits, source
    rules = {}
    for module in (layout, limits, source, gateway, documents, history):
        rules.update(module.RULES)
    return rules
