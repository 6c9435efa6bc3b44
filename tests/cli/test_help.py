# SPDX-License-Identifier: Apache-2.0
"""Help, version, and what becomes of a mistyped command or option."""

import json
import re
import subprocess

import pytest

NOW = ["serve", "check", "fingerprint", "get", "list", "resolve", "release", "forget", "sweep", "help",
       "version", "completion"]
LATER = ["contract", "archive", "export", "schema", "migrate", "relay", "verify"]


def test_help_lists_every_command_of_the_design(run):
    shown = run("help")
    assert shown.returncode == 0
    for name in NOW + LATER:
        assert f"\n  {name} " in shown.stdout, name


def test_no_command_is_an_error_that_helps(run):
    shown = run()
    assert shown.returncode == 2
    assert shown.stdout == run("help").stdout


@pytest.mark.parametrize("name", NOW)
def test_every_command_has_a_page_with_an_example_and_its_exit_statuses(run, name):
    shown = run(name, "--help")
    assert shown.returncode == 0
    assert f"usage: counterfoil {name}" in shown.stdout
    assert "Exit status: " in shown.stdout
    example = shown.stdout.partition("\nExample:\n")[2]
    assert "counterfoil " in example
    assert run("help", name).stdout == shown.stdout
    assert run(name, "-h").stdout == shown.stdout


def test_the_page_of_serve_names_what_moves_the_state_directory(run):
    assert "${XDG_STATE_HOME:-~/.local/state}/counterfoil" in run("serve", "--help").stdout


@pytest.mark.parametrize("name", LATER)
def test_a_command_of_later_versions_is_refused_as_such(run, name):
    shown = run(name)
    assert shown.returncode == 2
    assert name in shown.stderr and "not available in this version" in shown.stderr
    assert run("help", name).returncode == 2


@pytest.mark.parametrize("arguments", [["--version"], ["version"], ["-V"]])
def test_version(run, arguments):
    shown = run(*arguments)
    assert shown.returncode == 0
    name, number = shown.stdout.split()
    assert name == "counterfoil" and number.count(".") == 2
    assert json.loads(run("version", "--json").stdout) == {"version": number}


@pytest.mark.parametrize("arguments,words", [
    (["serv"], ["no command `serv`", "did you mean serve"]),
    (["zzzzzz"], ["no command `zzzzzz`"]),
    (["get", "--kye", "k"], ["no option --kye", "did you mean --key"]),
    (["get", "-k", "k"], ["no option -k"]),
    (["get", "--key"], ["--key needs a value", "--key K"]),
    (["get", "--key", "a", "--key", "b"], ["--key is given twice"]),
    (["get", "--json=yes", "--key", "k"], ["--json takes no value"]),
    (["get", "one", "two"], ["`two`", "usage: counterfoil get"]),
    (["check"], ["more arguments", "usage: counterfoil check POLICY"]),
    (["list", "word"], ["`word`"]),
    (["help", "nothing"], ["no help for `nothing`"]),
    (["completion", "fish"], ["bash", "`fish`"]),
])
def test_wrong_arguments_say_what_and_how(run, arguments, words):
    shown = run(*arguments)
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert shown.stderr.startswith("counterfoil: ") and shown.stderr.count("\n") == 1
    for word in words:
        assert word in shown.stderr


def test_a_complaint_is_one_line_and_repeats_nothing_a_terminal_would_obey(run):
    """A script may have its argument from a client."""
    shown = run("list", "--state", "\x1b[31m\n\x9bX\x7f")
    assert shown.returncode == 2
    assert re.match(r"counterfoil: --state \?\[31m\?+X\? is not a state", shown.stderr)
    assert shown.stderr.count("\n") == 1


def test_two_dashes_end_the_options(run):
    shown = run("check", "--", "--json")
    assert shown.returncode == 2
    assert "--json: the file cannot be read" in shown.stdout


def test_the_completion_is_a_script_that_knows_commands_and_options(run):
    shown = run("completion", "bash")
    assert shown.returncode == 0
    probe = ("COMP_WORDS=(counterfoil res); COMP_CWORD=1; _counterfoil; echo ${COMPREPLY[@]}\n"
             "COMP_WORDS=(counterfoil release --f); COMP_CWORD=2; _counterfoil; echo ${COMPREPLY[@]}\n")
    done = subprocess.run(["bash", "-c", shown.stdout + probe], capture_output=True, text=True,
                          timeout=10, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["resolve", "--force"]


def test_an_output_that_cannot_be_written_is_not_success(program):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([program, "help"], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=10, check=False)
    assert done.returncode == 3
    assert "standard output" in done.stderr
