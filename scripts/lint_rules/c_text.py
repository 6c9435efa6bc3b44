# SPDX-License-Identifier: Apache-2.0
"""C as far as the rules need it: text without comments and strings, and where functions begin and
end. Not a parser: it trusts braces, which the compiler has checked.

Invariant: every function here keeps lines where they are, so that a finding can name one.
"""

import re
from dataclasses import dataclass

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
_NAME_BEFORE_PARENTHESIS = re.compile(r"\b([A-Za-z_]\w*)\s*\(")


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """Comments become blanks; strings stay."""
    return _TOKEN.sub(lambda found: found.group() if found.group()[0] in "\"'"
                      else _blank(found.group()), text)


def code_only(text):
    """Comments, and what is inside of strings and character constants, become blanks."""
    def replace(found):
        token = found.group()
        if token[0] == "/":
            return _blank(token)
        return token[0] + _blank(token[1:-1]) + token[-1]
    return _TOKEN.sub(replace, text)


def strings(text):
    """(line, text) of every string literal."""
    for found in _TOKEN.finditer(text):
        if found.group().startswith('"'):
            yield line_of(text, found.start()), found.group()[1:-1]


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


@dataclass(frozen=True)
class Function:
    """A function's definition. first is the line its declaration begins on, name_line the one with
    its name, last the one with its closing brace."""

    name: str
    first: int
    name_line: int
    brace_line: int
    last: int

    @property
    def lines(self):
        return self.last - self.first + 1


def functions(text):
    """The definitions in a file, top to bottom: a block at the outermost level whose head ends in a
    parenthesis, which initialisers, structures and enumerations do not."""
    code = _DIRECTIVE.sub(lambda found: _blank(found.group()), code_only(text))
    depth, head_begin, brace = 0, 0, None
    found = []
    for offset, letter in enumerate(code):
        if letter == "{":
            if depth == 0:
                brace = offset
            depth += 1
        elif letter == "}":
            depth -= 1
            if depth == 0:
                head = code[head_begin:brace]
                if head.rstrip().endswith(")"):
                    found.append(_function(code, head, head_begin, brace, offset))
                head_begin = offset + 1
        elif letter == ";" and depth == 0:
            head_begin = offset + 1
    return found


def _function(code, head, head_begin, brace, end):
    # An attribute also has a parenthesis; the function's name is the first name that is not one.
    names = [name for name in _NAME_BEFORE_PARENTHESIS.finditer(head)
             if name.group(1) != "__attribute__"]
    begin = head_begin + len(head) - len(head.lstrip())
    name = names[0].group(1) if names else "?"
    name_at = head_begin + names[0].start() if names else begin
    return Function(name, line_of(code, begin), line_of(code, name_at), line_of(code, brace),
                    line_of(code, end))
