# SPDX-License-Identifier: Apache-2.0
"""tests/run must not call a run good that was not: what it makes of TAP, crashes and pytest."""

import pytest


@pytest.fixture(scope="module")
def runner(load):
    return load("tests/run")


def numbers(tally):
    return tally.passed, tally.failed, tally.skipped


def test_each_cmocka_case_is_counted(runner):
    output = "1..4\nok 1 - a\nnot ok 2 - b\n# expected 1\nok 3 # SKIP c\nok 4 - d\n"
    tally, reasons = runner.judge("tap", output, 1, False)
    assert numbers(tally) == (2, 1, 1)
    assert reasons == ["case: b"]


def test_two_groups_in_one_program_add_up(runner):
    tally, reasons = runner.judge("tap", "1..1\nok 1 - a\n1..2\nok 1 - b\nok 2 - c\n", 0, False)
    assert numbers(tally) == (3, 0, 0)
    assert reasons == []


@pytest.mark.parametrize("output,status,hung", [
    ("1..3\nok 1 - a\n", 0, False),            # it stopped short of its plan
    ("1..1\nok 1 - a\n", -11, False),          # it crashed after its last case
    ("1..1\nok 1 - a\n", 1, False),            # a sanitizer spoke at exit
    ("1..1\nok 1 - a\n", -9, True),            # it hung
    ("", 0, False),                            # it tested nothing
])
def test_a_program_that_only_looks_good_has_failed(runner, output, status, hung):
    tally, reasons = runner.judge("tap", output, status, hung)
    assert tally.failed == 1
    assert reasons


@pytest.mark.parametrize("status,expected", [(0, (1, 0, 0)), (77, (0, 0, 1)), (1, (0, 1, 0)),
                                             (-6, (0, 1, 0))])
def test_a_program_that_speaks_by_its_exit_status(runner, status, expected):
    tally, _ = runner.judge("exitcode", "", status, False)
    assert numbers(tally) == expected


def test_a_hanging_program_is_ended_and_reported(runner, tmp_path):
    test = {"name": "core/hang", "cmd": ["/bin/sleep", "60"], "env": {}, "timeout": 1,
            "workdir": None, "protocol": "exitcode"}
    name, tally, reasons, _, seconds = runner.run_program(test, str(tmp_path))
    assert name == "core/hang"
    assert numbers(tally) == (0, 1, 0)
    assert reasons == ["it did not end in time"]
    assert seconds < 30


def test_each_program_has_a_directory_of_its_own(runner, tmp_path):
    test = {"name": "core/dir", "cmd": ["/bin/sh", "-c", 'echo "$TMPDIR"'], "env": {}, "timeout": 9,
            "workdir": None, "protocol": "exitcode"}
    first = runner.run_program(test, str(tmp_path))[3].strip()
    second = runner.run_program(test, str(tmp_path))[3].strip()
    assert first != second
    assert first.startswith(str(tmp_path))


def test_pytest_without_a_report_has_failed(runner, tmp_path):
    assert numbers(runner.read_junit(str(tmp_path / "none.xml"))) == (0, 1, 0)


def test_errors_of_pytest_count_as_failures(runner, tmp_path):
    report = tmp_path / "r.xml"
    report.write_text("<testsuites><testsuite><testcase/><testcase><error/></testcase>"
                      "<testcase><failure/></testcase><testcase><skipped/></testcase>"
                      "</testsuite></testsuites>", encoding="utf-8")
    assert numbers(runner.read_junit(str(report))) == (1, 2, 1)


@pytest.mark.parametrize("names,word,chosen", [
    ([], None, True), (["unit"], None, True), (["core"], None, True), (["core/record"], None, True),
    (["unit/core"], None, True), (["cor"], None, False), (["gateway"], None, False),
    ([], "record", True), ([], "lease", False), (["core"], "lease", False)])
def test_tests_are_chosen_by_folder_room_or_word(runner, names, word, chosen):
    test = {"name": "core/record", "cmd": ["/b/tests/unit/core/record"]}
    assert runner.c_test_matches(test, "/b", names, word) is chosen
