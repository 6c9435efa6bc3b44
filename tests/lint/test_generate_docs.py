# SPDX-License-Identifier: Apache-2.0
"""scripts/generate-docs reads rows as the C preprocessor would."""

import pytest


@pytest.fixture(scope="module")
def generator(load):
    return load("scripts/generate-docs")


def test_definitions_and_comments_are_no_rows(generator):
    text = ('/* CFOIL_STATE(OLD, 1, 1, "x") */\n#define CFOIL_STATE(name, stored, settled, text)\n'
            'CFOIL_STATE(NEW, 1, 0, "y")\n#undef CFOIL_STATE\n')
    assert generator.read_rows(text) == {"STATE": [["NEW", "1", "0", "y"]]}


def test_strings_may_hold_commas_and_parentheses_and_are_joined(generator):
    text = 'CFOIL_ANSWER(A, 409,\n    "one, (two)"\n    " three", "四")\n'
    assert generator.read_rows(text) == {"ANSWER": [["A", "409", "one, (two) three", "四"]]}


def test_moves_between_the_same_states_share_an_arrow(generator):
    diagram = generator.diagram({"MOVE": [["A", "X", "B"], ["A", "Y", "B"], ["ABSENT", "X", "A"]]})
    assert "    A --> B: X, Y\n" in diagram
    assert "    [*] --> A: X\n" in diagram


def test_a_bar_does_not_break_a_table(generator):
    assert generator.table(("h",), [("a|b",)]).splitlines()[2] == "| a\\|b |"


ANSWER = ["KEY_CONFLICT", "409", "422", "400", "4091", "0", "zh", "en"]
SAME = ["PENDING", "409", "409", "409", "4090", "1", "zh", "en"]


def test_the_profiles_table_shows_a_status_only_where_profiles_differ(generator):
    profiles = [["A", "a", "DEFAULT", "PROBLEM", "0", "ANY", "24", "0", "FAILED", "0"],
                ["B", "b", "STRIPE", "STRIPE", "1", "UUID", "72", "168", "IN_DOUBT", "1"]]
    text = generator.profiles_table({"ANSWER": [ANSWER, SAME], "PROFILE": profiles})
    lines = text.splitlines()
    assert lines[0] == "|  | `a` | `b` |"
    assert "| status of `IDEMPOTENCY_KEY_CONFLICT` | 409 | 400 |" in lines
    assert "PENDING" not in text
    assert "| `key.required` | false | true |" in lines
    assert "| `key.format` | any | uuid |" in lines
    assert "| `retention.ttl` | 24h | 72h |" in lines
    assert "| `retention.tombstone` | 0 | 7d |" in lines
    assert "| outcome of a 5xx that no other rule names | FAILED | IN_DOUBT |" in lines
    assert "| `archive` | false | true |" in lines
