# SPDX-License-Identifier: Apache-2.0
"""Rules about what C code calls and what it includes. Owns the arrows between the rooms of src/."""

import os
import re

from . import Finding
from .c_text import code_only, functions, line_of, without_comments

BANNED = {
    "strcpy": "use memcpy with a length that was checked",
    "strcat": "use memcpy with a length that was checked",
    "sprintf": "use snprintf",
    "vsprintf": "use vsnprintf",
    "gets": "it cannot be used safely",
    "atoi": "use strtol and check it; this one knows no errors",
    "atol": "use strtol and check it; this one knows no errors",
    "atoll": "use strtoll and check it; this one knows no errors",
    "strtok": "it keeps a hidden state; walk the text",
}
# The core is a pure function: the caller owns memory, time and output.
BANNED_IN_CORE = {
    **{name: "the core takes memory from its caller"
       for name in ("malloc", "calloc", "realloc", "reallocarray", "free", "strdup", "strndup",
                    "alloca")},
    **{name: "the core does no I/O"
       for name in ("printf", "fprintf", "vprintf", "vfprintf", "puts", "fputs", "putchar", "fopen",
                    "open", "read", "write", "perror", "syslog", "getenv")},
    **{name: "the core is told the time"
       for name in ("time", "clock", "clock_gettime", "gettimeofday", "localtime", "gmtime", "sleep",
                    "usleep", "nanosleep")},
    **{name: "the core is given its randomness"
       for name in ("rand", "random", "srand", "getrandom", "arc4random")},
}

# Who may include whom, besides itself.
ARROWS = {
    "core": set(),
    "fingerprint": {"core"},
    "policy": {"core", "fingerprint"},
    "store": {"core"},
    "engine": {"core", "store", "fingerprint"},
    "gateway": {"core", "fingerprint", "policy", "store", "engine"},
    "cli": {"core", "fingerprint", "policy", "store", "engine"},
}
# The demo shop is somebody else's program: it knows nothing of us.
OUTSIDE = {"examples": set(), "tests": set(ARROWS) - {"gateway"}, "bench": set(ARROWS) - {"gateway"}}

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else)\b")
_CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)[ \t]*\(")


def banned_calls(tree):
    """Some functions of the C library invite mistakes and are not called anywhere; the core moreover
    does no I/O, has no clock and takes no memory."""
    for path in tree.c_files():
        banned = dict(BANNED)
        if path.startswith("src/core/"):
            banned.update(BANNED_IN_CORE)
        code = code_only(tree.text(path))
        for call in _CALL.finditer(code):
            name = call.group(1)
            if name in banned:
                yield Finding(path, line_of(code, call.start()), f"{name}(): {banned[name]}")


def include_arrows(tree):
    """Arrows point one way: core knows nothing; fingerprint and store know core; policy knows core and
    fingerprint; engine knows core, store and fingerprint; gateway and cli know those; nobody knows the
    gateway, and the examples know nobody."""
    for path in tree.c_files():
        parts = path.split("/")
        if parts[0] == "src" and len(parts) > 2:
            room, allowed = parts[1], ARROWS.get(parts[1])
        else:
            room, allowed = parts[0], OUTSIDE.get(parts[0])
        if allowed is None:
            yield Finding(path, 0, f"{room} is no known room; give it its arrows in "
                                   f"scripts/lint_rules/source.py")
            continue
        text = without_comments(tree.text(path))
        for include in _INCLUDE.finditer(text):
            yield from _include_findings(tree, path, room, allowed, include.group(1),
                                         line_of(text, include.start()))


def _include_findings(tree, path, room, allowed, included, line):
    target = included.split("/")[0]
    if ".." in included.split("/"):
        yield Finding(path, line, f'"{included}": write includes from src/')
    elif target in ARROWS and "/" in included:
        if target != room and target not in allowed:
            yield Finding(path, line, f'{room} may not include "{included}"')
        elif room in ARROWS and not tree.exists(os.path.join("src", included)):
            yield Finding(path, line, f'"{included}" does not exist below src/')


def conditions_inside(tree):
    """No #if inside of a function: two programs in one text are read as neither. Choose between whole
    functions, or files."""
    for path in tree.c_files():
        lines = code_only(tree.text(path)).split("\n")
        for function in functions(tree.text(path)):
            for number in range(function.brace_line, function.last + 1):
                if _CONDITION.match(lines[number - 1]):
                    yield Finding(path, number, f"{function.name}: a preprocessor condition inside")


RULES = {"banned-calls": banned_calls, "include-arrows": include_arrows,
         "conditions-inside": conditions_inside}
