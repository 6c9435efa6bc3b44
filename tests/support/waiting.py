# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition with a deadline.

Owns the one way the tests let time pass: a condition is looked at again and again until it holds
or its deadline is over, which fails the test with a sentence. No test sleeps and hopes.
"""

import time

POLL_S = 0.02


def until(condition, what, deadline_s=10.0):
    """The first true value of condition(); fails after deadline_s, saying what was awaited."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_s} s in vain: {what}")
        time.sleep(POLL_S)


def until_clock(moment_s):
    """Returns when time.monotonic() has reached moment_s: for cases that are about time itself."""
    while (left_s := moment_s - time.monotonic()) > 0:
        time.sleep(left_s)
