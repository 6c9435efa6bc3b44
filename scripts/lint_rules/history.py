# SPDX-License-Identifier: Apache-2.0
"""Rules about commits. They hold for what can be reached from HEAD; without git there is nothing to
check."""

import subprocess

from . import Finding

SUBJECT_COLUMNS_MAX = 72


def commit_subjects(tree):
    """The subject of a commit has at most 72 columns and no full stop at its end, so that a list of
    commits can be read."""
    if not tree.has_git():
        return
    log = subprocess.run(["git", "-C", tree.root, "log", "--no-merges", "--format=%h %s"],
                         capture_output=True, text=True, check=False)
    for line in log.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > SUBJECT_COLUMNS_MAX:
            yield Finding(f"commit {commit}", 0, f"the subject has {len(subject)} columns, "
                                                 f"{SUBJECT_COLUMNS_MAX} at most: {subject}")
        if subject.endswith("."):
            yield Finding(f"commit {commit}", 0, f"the subject ends with a full stop: {subject}")


RULES = {"commit-subjects": commit_subjects}
