# SPDX-License-Identifier: Apache-2.0
"""Rules that hold the documents to the code, and the two READMEs to each other."""

import os
import re
import subprocess
import sys

from . import Finding
from .c_text import strings

CLI_REFERENCE = "docs/reference/cli.md"
POLICY_REFERENCE = "docs/reference/policy.md"
FIELDS = "src/policy/fields.def"
READMES = ("README.md", "README.zh-CN.md")

_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)\b")
_LONG_OPTION = re.compile(r'\{\s*"([a-z][a-z0-9-]*)"\s*,\s*(?:no|required|optional)_argument')
_FIELD = re.compile(r'CFOIL_FIELD\(\s*(\w+),\s*(\w+),\s*"([^"]+)"')
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(`{3,}|~{3,})")


def cli_options(tree):
    """Every option of the command line is in docs/reference/cli.md."""
    options = {}
    for path in tree.paths:
        if not path.startswith("src/cli/") or not path.endswith((".c", ".h", ".def")):
            continue
        text = tree.text(path)
        for found in _LONG_OPTION.finditer(text):
            options.setdefault(found.group(1), (path, text.count("\n", 0, found.start()) + 1))
        for line, literal in strings(text):
            for found in _OPTION.finditer(literal):
                options.setdefault(found.group(1), (path, line))
    yield from _undocumented(tree, CLI_REFERENCE, {
        f"--{name}": where for name, where in options.items()},
        lambda name, text: re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text))


def policy_fields(tree):
    """Every field of the policy file is in docs/reference/policy.md, by its whole name in backticks
    (`retention.ttl`)."""
    if FIELDS not in tree.paths:
        return
    rows = {}
    text = tree.text(FIELDS)
    for found in _FIELD.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        rows[found.group(1)] = (found.group(2), found.group(3), line)
    names = {}
    for ident, (_, _, line) in rows.items():
        names.setdefault(_field_path(rows, ident), (FIELDS, line))
    yield from _undocumented(tree, POLICY_REFERENCE, names,
                             lambda name, prose: f"`{name}`" in prose)


def _field_path(rows, ident):
    names = []
    while ident in rows and ident != "ROUTES":
        parent, name, _ = rows[ident]
        names.insert(0, name)
        ident = parent
    return ".".join(names) or "routes"


def _undocumented(tree, reference, names, is_there):
    if not names:
        return
    if not tree.exists(reference):
        yield Finding(reference, 0, f"is missing; {len(names)} names belong into it")
        return
    prose = tree.text(reference)
    for name, (path, line) in sorted(names.items()):
        if not is_there(name, prose):
            yield Finding(path, line, f"{name} is missing from {reference}")


def generated_docs(tree):
    """The pages made from protocol.def and profiles.def are what scripts/generate-docs makes of it now. `make docs`
    writes them."""
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                          "generate-docs")
    if not tree.exists("src/core/protocol.def"):
        return
    checked = subprocess.run([sys.executable, script, "--check", "--root", tree.root],
                             capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        for line in (checked.stdout + checked.stderr).splitlines():
            yield Finding("src/core/protocol.def", 0, line)


def links(tree):
    """A link from one file of the repository to another leads somewhere."""
    for path in tree.paths:
        if not path.endswith(".md"):
            continue
        for number, line in _prose_lines(tree.text(path)):
            for target in _LINK.findall(line):
                if re.match(r"[a-z]+:|#", target):
                    continue
                file = os.path.normpath(os.path.join(os.path.dirname(path), target.split("#")[0]))
                if not tree.exists(file):
                    yield Finding(path, number, f"{target} does not exist")


def docs_index(tree):
    """docs/README.md leads to every page of docs/; the decisions are found in their folder."""
    index = "docs/README.md"
    if index not in tree.paths:
        return
    linked = {os.path.normpath(os.path.join("docs", target.split("#")[0]))
              for _, line in _prose_lines(tree.text(index)) for target in _LINK.findall(line)}
    for path in tree.paths:
        is_page = path.startswith("docs/") and path.endswith(".md") and path != index
        if is_page and path not in linked and not path.startswith("docs/decisions/"):
            yield Finding(path, 0, f"is not linked from {index}")


def _prose_lines(text):
    """(line number, line) of what stands outside of code blocks."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line)
        if mark and fence is None:
            fence = mark.group(1)
        elif fence is not None and line.rstrip() == fence:
            fence = None
        elif fence is None:
            yield number, line


def _outline(text):
    """What two languages of one page share: levels of headings, rows of tables, list items, links, and
    code without its comments."""
    prose = list(_prose_lines(text))
    prose_numbers = {number for number, _ in prose}
    code = [re.sub(r"\s*(?<!\S)#(?!!).*", "", line) for number, line in
            enumerate(text.split("\n"), 1) if number not in prose_numbers]
    return {
        "headings": [len(re.match(r"#+", line).group()) for _, line in prose
                     if re.match(r"#+ ", line)],
        "rows of tables": sum(line.startswith("|") for _, line in prose),
        "list items": sum(bool(re.match(r"\s*(?:[-*]|\d+\.) ", line)) for _, line in prose),
        "lines of code": [line for line in code if line.strip()],
        "links": [target for _, line in prose for target in _LINK.findall(line)
                  if target not in READMES],
    }


def readmes_equal(tree):
    """README.md and README.zh-CN.md say the same: the same headings, tables, lists, links, and the same
    code apart from comments."""
    there = [path for path in READMES if path in tree.paths]
    if len(there) != len(READMES):
        if there:
            yield Finding(there[0], 0, f"{' and '.join(set(READMES) - set(there))} is missing")
        return
    english, chinese = (_outline(tree.text(path)) for path in READMES)
    for name, value in english.items():
        if value != chinese[name]:
            yield Finding(READMES[1], 0, f"{name} differ from {READMES[0]}: "
                                         f"{_difference(value, chinese[name])}")


def _difference(one, other):
    if isinstance(one, int):
        return f"{one} there, {other} here"
    for index, (left, right) in enumerate(zip(one, other)):
        if left != right:
            return f"number {index + 1} is {left!r} there, {right!r} here"
    return f"{len(one)} there, {len(other)} here"


RULES = {"cli-options": cli_options, "policy-fields": policy_fields,
         "generated-docs": generated_docs, "links": links, "docs-index": docs_index,
         "readmes-equal": readmes_equal}
