#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The core does no I/O, reads no clock and allocates nothing: proved from what its archive imports.

usage: nm_test.py LIBCFOIL-CORE.A        prints TAP
"""
import subprocess
import sys

ALLOWED = {
    "memcpy", "memset", "memcmp", "memmove", "strlen",
    "bcmp",  # what clang makes of memcmp(...) == 0
    "__stack_chk_fail", "__assert_fail",
    "_GLOBAL_OFFSET_TABLE_",
    "__cpu_model",  # the compiler's own constant: what this processor can do
}
INSTRUMENTED = ("__asan_", "__ubsan_", "__tsan_", "__sanitizer_", "__gcov_", "__llvm_")


def symbols(archive, *options):
    """Names that nm lists, archive members' headings left out."""
    output = subprocess.run(
        ["nm", *options, "--format=posix", archive], check=True, capture_output=True, text=True
    ).stdout
    return {line.split()[0] for line in output.splitlines() if line and not line.endswith(":")}


def main():
    archive = sys.argv[1]
    defined = symbols(archive, "--defined-only")
    imported = symbols(archive, "--undefined-only") - defined
    foreign = sorted(
        name for name in imported - ALLOWED if not name.startswith(INSTRUMENTED)
    )
    print("1..2")
    complete = {"cfoil_step", "cfoil_record_decode", "cfoil_scope_frame", "cfoil_outcome_of"}
    missing = sorted(complete - defined)
    print(f"{'not ' if missing else ''}ok 1 - the archive holds the core")
    for name in missing:
        print(f"# missing: {name}")
    print(f"{'not ' if foreign else ''}ok 2 - the core imports nothing but memory functions")
    for name in foreign:
        print(f"# imports: {name}")
    return 1 if missing or foreign else 0


if __name__ == "__main__":
    sys.exit(main())
