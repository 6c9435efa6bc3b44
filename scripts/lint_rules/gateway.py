# SPDX-License-Identifier: Apache-2.0
"""Rules of nginx's dialect, which src/gateway alone is written in."""

import re

from . import Finding
from .c_text import code_only, functions, without_comments

CODE_COLUMNS_MAX = 80
COMMENT_COLUMNS_MAX = 100
FOLDER = "src/gateway"


def nginx_style(tree):
    """src/gateway reads like nginx: code has at most 80 columns (comments 100, as everywhere), the return
    type and the brace of a function stand on lines of their own, two blank lines before a function."""
    for path in tree.c_files(FOLDER):
        lines = tree.lines(path)
        bare = without_comments(tree.text(path)).split("\n")
        for number, (line, code) in enumerate(zip(lines, bare), 1):
            if len(code.rstrip()) > CODE_COLUMNS_MAX or len(line) > COMMENT_COLUMNS_MAX:
                yield Finding(path, number, f"{len(line)} columns; code has {CODE_COLUMNS_MAX} at "
                                            f"most, a comment {COMMENT_COLUMNS_MAX}")
        code = code_only(tree.text(path)).split("\n")
        for function in functions(tree.text(path)):
            yield from _function_findings(path, lines, code, function)


def _function_findings(path, lines, code, function):
    if not re.match(rf"{re.escape(function.name)}\s*\(", lines[function.name_line - 1]):
        yield Finding(path, function.name_line, f"{function.name}: the return type stands on the line "
                                                f"before the name")
    if code[function.brace_line - 1].strip() != "{":
        yield Finding(path, function.brace_line, f"{function.name}: the opening brace stands alone on "
                                                 f"its line")
    # A comment, or a directive, belongs to the function it stands before.
    above = function.first - 1
    while above > 0 and lines[above - 1].strip() and not lines[above - 1].startswith("}"):
        above -= 1
    if above >= 2 and (lines[above - 1].strip() or lines[above - 2].strip()):
        yield Finding(path, function.first, f"{function.name}: two blank lines stand before a function")


RULES = {"nginx-style": nginx_style}
