# SPDX-License-Identifier: Apache-2.0
"""The policies we show people are policies this version accepts."""

import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CFOIL_BUILD", os.path.join(ROOT, "build"))
POLICY = re.compile(r"^```yaml\n(version: 1\n.*?)^```$", re.S | re.M)


def policies_in(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return POLICY.findall(file.read())


def check(path):
    return subprocess.run([os.path.join(BUILD, "counterfoil"), "check", str(path)],
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_policy_of_the_readme_is_accepted(page, tmp_path):
    shown = policies_in(page)
    assert len(shown) == 1
    policy = tmp_path / "policy.yaml"
    policy.write_text(shown[0], encoding="utf-8")
    checked = check(policy)
    assert checked.returncode in (0, 1), checked.stdout + checked.stderr


def test_the_shop_has_a_policy_without_errors():
    checked = check(os.path.join(ROOT, "examples/shop/policy.yaml"))
    assert checked.returncode in (0, 1), checked.stdout + checked.stderr
