# SPDX-License-Identifier: Apache-2.0
"""Rules of size. Owns the limits."""

import ast

from . import Finding
from .c_text import functions

FUNCTION_LINES_MAX = 69
FILE_LINES_MAX = 599


def file_length(tree):
    """A file has fewer than 600 lines. A longer one owns more than one thing: split it."""
    for path in sorted(set(tree.c_files()) | set(tree.scripts())):
        count = tree.text(path).count("\n")
        if count > FILE_LINES_MAX:
            yield Finding(path, 0, f"{count} lines, {FILE_LINES_MAX} at most")


def function_length(tree):
    """A function has fewer than 70 lines, from its declaration to its closing brace, so that it can
    be seen whole."""
    for path in tree.c_files():
        for function in functions(tree.text(path)):
            if function.lines > FUNCTION_LINES_MAX:
                yield Finding(path, function.first, f"{function.name}: {function.lines} lines, "
                                                    f"{FUNCTION_LINES_MAX} at most")
    for path in tree.python_files():
        yield from _python_functions(tree, path)


def _python_functions(tree, path):
    try:
        module = ast.parse(tree.text(path))
    except SyntaxError as error:
        yield Finding(path, error.lineno or 0, f"no valid Python: {error.msg}")
        return
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield Finding(path, node.lineno, f"{node.name}: {lines} lines, "
                                                 f"{FUNCTION_LINES_MAX} at most")


RULES = {"file-length": file_length, "function-length": function_length}
