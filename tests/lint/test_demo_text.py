# SPDX-License-Identifier: Apache-2.0
"""The demo says the same in both languages, and in the one the environment asks for."""

import string

import pytest

from demo_text import TEXTS, texts


def fields(text):
    return sorted({name for _, name, _, _ in string.Formatter().parse(text) if name})


def test_both_languages_have_the_same_texts_with_the_same_facts():
    english, chinese = TEXTS["en"], TEXTS["zh"]
    assert sorted(english) == sorted(chinese)
    for name, text in english.items():
        assert fields(text) == fields(chinese[name]), name


@pytest.mark.parametrize("environment,language", [
    ({}, "en"), ({"LANG": "zh_CN.UTF-8"}, "zh"), ({"LANG": "de_DE.UTF-8"}, "en"),
    ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"), ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh")])
def test_the_environment_chooses_the_language(environment, language):
    assert texts(environment) is TEXTS[language]
