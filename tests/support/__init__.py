# SPDX-License-Identifier: Apache-2.0
"""Shared tools of the black-box tests: backend, raw HTTP client, servers under test, checks."""
