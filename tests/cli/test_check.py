# SPDX-License-Identifier: Apache-2.0
"""counterfoil check: problems as FILE:LINE:COLUMN with the fix, and what has to be known."""

import json
import os

GOOD = """version: 1
routes:
  - {name: a, match: POST /a}
  - {name: b, match: "POST /b/{id}"}
"""
BAD = """version: 1
routes:
  - match: POST /a
    retention: {ttl: 24hours}
    semnatics: strict
"""


def test_a_good_policy(run, write):
    write("policy.yaml", GOOD)
    shown = run("check", "policy.yaml")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == "policy.yaml: good, 2 routes\n"


def test_every_problem_has_its_place_and_its_fix(run, write):
    write("policy.yaml", BAD)
    shown = run("check", "policy.yaml")
    assert shown.returncode == 2
    first, second = shown.stdout.splitlines()
    assert first.startswith("policy.yaml:4:22: ") and "write 24h" in first
    assert second.startswith("policy.yaml:5:5: ") and "`semantics`" in second


def test_problems_for_machines(run, write):
    write("policy.yaml", BAD)
    shown = run("check", "policy.yaml", "--json")
    assert shown.returncode == 2
    answer = json.loads(shown.stdout)
    assert answer["valid"] is False
    places = [(each["file"], each["line"], each["column"]) for each in answer["problems"]]
    assert places == [("policy.yaml", 4, 22), ("policy.yaml", 5, 5)]


def test_a_good_policy_for_machines(run, write):
    write("policy.yaml", GOOD)
    answer = json.loads(run("check", "policy.yaml", "--json").stdout)
    assert answer == {"valid": True, "problems": [], "advice": []}


def test_a_message_for_no_code_has_its_place_and_a_suggestion(run, write):
    write("policy.yaml", "version: 1\ndefaults:\n  messages:\n    en:\n"
          "      IDEMPOTENCY_PENDNG: wait\n      REPLAY: 409\nroutes: [{match: POST /a}]\n")
    shown = run("check", "policy.yaml")
    assert shown.returncode == 2
    first, second = shown.stdout.splitlines()
    assert first.startswith("policy.yaml:5:7: ") and "`IDEMPOTENCY_PENDING`?" in first
    assert second.startswith("policy.yaml:6:15: ") and "in quotes" in second


def test_a_field_of_later_versions_is_refused(run, write):
    write("policy.yaml", GOOD + "    guard: {fields: [/a], window: 5m}\n")
    shown = run("check", "policy.yaml")
    assert shown.returncode == 2
    write("policy.yaml", "version: 1\nroutes:\n  - match: POST /a\n    archive: true\n")
    shown = run("check", "policy.yaml")
    assert shown.returncode == 2
    assert shown.stdout.startswith("policy.yaml:4:14: ")
    assert "not available in this version" in shown.stdout


def test_tenants_from_a_header_are_called_trusted_input(run, write):
    write("policy.yaml", "tenant: {header: X-Tenant-Id}\n" + GOOD)
    shown = run("check", "policy.yaml")
    assert shown.returncode == 0
    assert shown.stdout.count("X-Tenant-Id") == 1
    assert "something in front must set it" in shown.stdout
    assert len(json.loads(run("check", "policy.yaml", "--json").stdout)["advice"]) == 1


def test_a_missing_file(run):
    shown = run("check", "nowhere.yaml")
    assert shown.returncode == 2
    assert shown.stdout.startswith("nowhere.yaml: the file cannot be read: No such file")


def test_against_is_of_later_versions(run, write):
    write("policy.yaml", GOOD)
    shown = run("check", "policy.yaml", "--against", "policy.yaml")
    assert shown.returncode == 2
    assert "not available in this version" in shown.stderr


def test_text_from_a_policy_cannot_steer_the_terminal(run, write):
    write("policy.yaml", 'version: 1\nroutes: [{match: POST /a, "\\x9b31m": 1}]\n')
    shown = run("check", "policy.yaml")
    assert shown.returncode == 2
    assert "\x9b" not in shown.stdout


def test_problems_for_machines_hold_controls_as_escapes(run, write):
    write("policy.yaml", 'version: 1\nroutes: [{match: POST /a, "\\x9b31m\\x7f": 1}]\n')
    shown = run("check", "policy.yaml", "--json")
    assert shown.returncode == 2
    assert "\x9b" not in shown.stdout and "\x7f" not in shown.stdout
    [problem] = json.loads(shown.stdout)["problems"]
    assert problem["line"] == 2


def test_a_path_that_is_not_text_is_shown_safely(run, tmp_path):
    """Linux paths are bytes: 0x9b is no UTF-8, and a control character to some terminals."""
    name = b"p\x9b\x7f\x1b.yaml"
    for text, valid in ((BAD, False), ("tenant: {header: X-Tenant-Id}\n" + GOOD, True)):
        (tmp_path / os.fsdecode(name)).write_text(text, encoding="utf-8")
        shown = run("check", os.fsdecode(name))
        assert {line.split(":")[0] for line in shown.stdout.splitlines()} == {"p???.yaml"}
        answer = json.loads(run("check", os.fsdecode(name), "--json").stdout)
        assert answer["valid"] is valid
        assert len(answer["problems"]) == (0 if valid else 2)
        assert {each["file"] for each in answer["problems"]} <= {"p\ufffd\x7f\x1b.yaml"}
