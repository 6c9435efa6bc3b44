# SPDX-License-Identifier: Apache-2.0
"""Rules about the form of a file: licence line, blanks, clang-format, words left behind, and text that
belongs to one machine."""

import os
import re
import shutil
import subprocess

from . import Finding

LICENCE = "SPDX-License-Identifier: Apache-2.0"
FORMATTED = ("src", "tests", "examples", "bench", "include")
NGINX_DIALECT = "src/gateway/"

# Written in pieces, so that the rule does not find itself.
_LEFT_BEHIND = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
_MACHINE_PATH = re.compile(r"(?<![\w./}-])/(?:work|root|home/\w+|Users/\w+|tmp/w)(?:/|\b(?=[\s\"']|$))")
_REGISTRY = re.compile(
    r"\b(?:[\w-]+\.)*(?:pypi\.org|pythonhosted\.org|npmjs\.org|crates\.io|proxy\.golang\.org|"
    r"rubygems\.org|deb\.debian\.org|archive\.ubuntu\.com|docker\.io|ghcr\.io|quay\.io|"
    r"artifact[o]ry[\w.-]*|nexus\.[\w.-]+)\b")


def licence_line(tree):
    """A source opens with its licence: the SPDX line comes first, or second after a #! line."""
    for path in tree.sources():
        lines = tree.lines(path)
        first = 1 if lines[0].startswith("#!") else 0
        if len(lines) <= first or LICENCE not in lines[first]:
            yield Finding(path, first + 1, f"must be a comment with {LICENCE}")


def blanks(tree):
    """No blanks at the end of a line, no tabs in C, Python and shell, one newline at the end of a
    file: differences between versions should be differences of meaning."""
    no_tabs = set(tree.c_files()) | set(tree.scripts())
    for path in tree.texts():
        for number, line in enumerate(tree.lines(path), 1):
            if line != line.rstrip():
                yield Finding(path, number, "blanks at the end of the line")
            if "\t" in line and path in no_tabs:
                yield Finding(path, number, "a tab; use spaces")
        text = tree.text(path)
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            yield Finding(path, text.count("\n") or 1, "must end with exactly one newline")


def formatted_files(tree):
    """The C files that .clang-format rules over: all but those in nginx's dialect."""
    return [path for path in tree.c_files(*FORMATTED) if not path.startswith(NGINX_DIALECT)]


def clang_format(tree):
    """The layout of C, outside of src/gateway, is what clang-format makes of it. `make format` does
    it."""
    paths = formatted_files(tree)
    if not paths or not tree.exists(".clang-format"):
        return
    if shutil.which("clang-format") is None:
        yield Finding(".clang-format", 0, "clang-format is not installed; scripts/bootstrap test")
        return
    checked = subprocess.run(["clang-format", "--dry-run", *paths], cwd=tree.root,
                             capture_output=True, text=True, check=False)
    seen = set()
    for line in checked.stderr.splitlines():
        found = re.match(r"(.+?):(\d+):\d+: (?:warning|error): (.*)", line)
        if found and found.group(1) not in seen:
            seen.add(found.group(1))
            yield Finding(found.group(1), int(found.group(2)), "not as clang-format lays it out")
    if checked.returncode != 0 and not seen:
        yield Finding(".clang-format", 0, checked.stderr.strip()[:300])


def apply_clang_format(tree):
    subprocess.run(["clang-format", "-i", *formatted_files(tree)], cwd=tree.root, check=True)


def left_behind(tree):
    """What is not done is an issue, not a word in a comment."""
    for path in tree.sources():
        for number, line in enumerate(tree.lines(path), 1):
            found = _LEFT_BEHIND.search(line)
            if found:
                yield Finding(path, number, f"{found.group()} left behind; do it or open an issue")


def machine_text(tree):
    """Nothing belongs to one machine: no path into somebody's home or work directory, no host of a
    package registry. What must be installed is in scripts/packages.txt."""
    for path in tree.texts():
        if os.path.basename(path) == "LICENSE":
            continue
        for number, line in enumerate(tree.lines(path), 1):
            for pattern, what in ((_MACHINE_PATH, "a path of one machine"),
                                  (_REGISTRY, "a package registry's host")):
                found = pattern.search(line)
                if found:
                    yield Finding(path, number, f"{what}: {found.group()}")


RULES = {"licence-line": licence_line, "blanks": blanks, "clang-format": clang_format,
         "left-behind": left_behind, "machine-text": machine_text}
