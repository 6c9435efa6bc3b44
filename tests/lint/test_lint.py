# SPDX-License-Identifier: Apache-2.0
"""Every rule of make lint is seen to fail on a bad sample and to leave a good one alone: a check that
cannot fail is a defect. Forbidden words are written in pieces, so that the rules do not find this file.
"""

import os
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
GOOD_C = SPDX + """
int add(int a, int b)
{
    return a + b;
}
"""


def function_of(lines, name="long_one"):
    body = "".join(f"    a += {n};\n" for n in range(lines - 3))
    return f"int {name}(int a)\n{{\n{body}}}\n"


def found(list_of_findings, path, line=None):
    return [f for f in list_of_findings if f.path == path and (line is None or f.line == line)]


def test_every_rule_is_listed_with_a_reason():
    listed = subprocess.run([os.path.join(ROOT, "scripts/lint"), "--list"], capture_output=True,
                            text=True, check=True).stdout
    for rule in ("licence-line", "blanks", "clang-format", "left-behind", "machine-text",
                 "file-length", "function-length", "banned-calls", "include-arrows",
                 "conditions-inside", "nginx-style", "cli-options", "policy-fields",
                 "generated-docs", "links", "docs-index", "readmes-equal", "commit-subjects"):
        assert f"\n{rule}: " in "\n" + listed


def test_every_rule_has_a_failing_sample_here():
    from lint_rules import all_rules
    with open(os.path.abspath(__file__), encoding="utf-8") as file:
        text = file.read()
    missing = [rule for rule in all_rules() if f'findings("{rule}"' not in text]
    assert missing == []


def test_a_bad_tree_makes_lint_fail(tmp_path):
    (tmp_path / "a.c").write_text("int a; \n", encoding="utf-8")
    lint = subprocess.run([os.path.join(ROOT, "scripts/lint"), "--root", str(tmp_path)],
                          capture_output=True, text=True, check=False)
    assert lint.returncode == 1
    assert "a.c:1: blanks at the end of the line" in lint.stdout


def test_a_source_without_its_licence(findings):
    result = findings("licence-line", {
        "src/core/bad.c": "int a;\n", "src/core/good.c": GOOD_C,
        "scripts/bad": "#!/bin/sh\necho\n",
        "scripts/good": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\necho\n",
        "meson.build": "project('x')\n", "README.md": "# No code\n"})
    assert sorted(f.path for f in result) == ["meson.build", "scripts/bad", "src/core/bad.c"]


@pytest.mark.parametrize("text", ["int a; \n", "int a;\n\tint b;\n", "int a;", "int a;\n\n"])
def test_blanks_that_nobody_sees(findings, text):
    assert found(findings("blanks", {"a.c": text}), "a.c")


def test_blanks_leaves_a_makefile_its_tabs(findings):
    assert findings("blanks", {"Makefile": "all:\n\t@true\n", "a.c": GOOD_C}) == []


@pytest.mark.skipif(shutil.which("clang-format") is None, reason="clang-format is not installed")
def test_a_file_that_clang_format_would_change(findings):
    with open(os.path.join(ROOT, ".clang-format"), encoding="utf-8") as file:
        style = file.read()
    ugly = SPDX + "int   a ( void ){return 1;}\n"
    result = findings("clang-format", {".clang-format": style, "src/core/good.c": GOOD_C,
                                       "src/core/bad.c": ugly, "src/gateway/own_dialect.c": ugly})
    assert [f.path for f in result] == ["src/core/bad.c"]


@pytest.mark.parametrize("word", ["TO" + "DO", "FIX" + "ME", "X" + "XX"])
def test_work_left_behind_in_a_comment(findings, word):
    result = findings("left-behind", {"a.c": SPDX + f"\n/* {word}: later */\n",
                                      "b.sh": SPDX + 'mktemp "$1.XXXXXX"\n'})
    assert [(f.path, f.line) for f in result] == [("a.c", 3)]


@pytest.mark.parametrize("text", ["/wo" + "rk/main/a", '"/ro' + 'ot/x"', "cd /wo" + "rk",
                                  "/ho" + "me/anna/src", "see https://py" + "pi.org/simple",
                                  "deb http://deb.deb" + "ian.org/debian"])
def test_text_that_belongs_to_one_machine(findings, text):
    assert len(findings("machine-text", {"docs/a.md": f"{text}\n"})) == 1


def test_machine_text_leaves_paths_of_a_service_alone(findings):
    assert findings("machine-text", {"a.md": "GET /api/wo" + "rk/1, docs/ro" + "ot/x\n"}) == []


def test_a_file_of_600_lines(findings):
    result = findings("file-length", {"a.c": "int a;\n" * 600, "b.c": "int a;\n" * 599,
                                      "c.py": "a = 1\n" * 600, "d.sh": ":\n" * 600})
    assert sorted(f.path for f in result) == ["a.c", "c.py", "d.sh"]


def test_a_function_of_70_lines(findings):
    result = findings("function-length", {"a.c": function_of(70), "b.c": function_of(69)})
    assert [(f.path, f.line) for f in result] == [("a.c", 1)]


def test_a_function_in_nginx_style_counts_from_its_return_type(findings):
    split = function_of(69).replace("int long_one", "static int\nlong_one")
    assert len(findings("function-length", {"a.c": GOOD_C + split})) == 1


def test_braces_in_strings_and_comments_do_not_end_a_function(findings):
    tricky = function_of(70).replace("a += 3;", 'a += "}"[0]; /* } */').replace(
        "a += 4;", "a += '}'; // }")
    assert len(findings("function-length", {"a.c": tricky})) == 1


def test_a_table_is_no_function(findings):
    rows = "".join(f"    {{{n}, call({n})}},\n" for n in range(90))
    assert findings("function-length", {"a.c": f"static const struct row ROWS[] = {{\n{rows}}};\n",
                                        "b.c": f"enum a {{\n{'    A,' * 90}\n}};\n"}) == []


def test_a_python_function_of_70_lines(findings):
    body = "    a = 1\n" * 69
    assert len(findings("function-length", {"a.py": f"def f():\n{body}"})) == 1
    assert findings("function-length", {"a.py": f"def f():\n{body[10:]}"}) == []


@pytest.mark.parametrize("call", ["strcpy(a, b)", "strcat (a, b)", "sprintf(a, b)", "vsprintf(a, b, c)",
                                  "gets(a)", "atoi(a)", "atol(a)", "strtok(a, b)"])
def test_calls_that_invite_mistakes(findings, call):
    result = findings("banned-calls", {"src/cli/a.c": f"void f(void)\n{{\n    {call};\n}}\n"})
    assert [f.line for f in result] == [3]


@pytest.mark.parametrize("call", ["malloc(1)", "free(a)", 'printf("x")', "time(NULL)",
                                  "getrandom(a, 1, 0)"])
def test_the_core_takes_no_memory_no_output_no_time(findings, call):
    text = f"void f(void)\n{{\n    {call};\n}}\n"
    result = findings("banned-calls", {"src/core/a.c": text, "src/cli/a.c": text})
    assert [f.path for f in result] == ["src/core/a.c"]


def test_banned_names_in_words_and_members_are_no_calls(findings):
    text = '/* strcpy(a, b) */\nconst char *s = "gets(x)";\nint n = snprintf(a, b) + ops->free(x);\n'
    assert findings("banned-calls", {"src/core/a.c": text}) == []


@pytest.mark.parametrize("room,included", [
    ("src/core", "store/store.h"), ("src/fingerprint", "policy/policy.h"),
    ("src/policy", "engine/engine.h"), ("src/store", "fingerprint/digest.h"),
    ("src/engine", "policy/policy.h"), ("src/cli", "gateway/module.h"),
    ("src/gateway", "cli/command.h"), ("tests/unit/engine", "gateway/module.h"),
    ("examples/shop", "core/record.h")])
def test_an_include_against_the_arrows(findings, room, included):
    result = findings("include-arrows", {f"src/{included}": "", f"{room}/a.c":
                                         f'#include <stdio.h>\n#include "{included}"\n'})
    assert [(f.path, f.line) for f in result] == [(f"{room}/a.c", 2)]


@pytest.mark.parametrize("room,included", [
    ("src/core", "core/record.h"), ("src/policy", "fingerprint/fingerprint.h"),
    ("src/engine", "store/store.h"), ("src/cli", "policy/policy.h"),
    ("src/gateway", "engine/engine.h"), ("tests/unit/core", "core/record.h")])
def test_an_include_along_the_arrows(findings, room, included):
    assert findings("include-arrows", {f"src/{included}": "", f"{room}/a.c":
                                       f'#include "{included}"\n'}) == []


def test_an_example_includes_its_own_headers(findings):
    assert findings("include-arrows", {"examples/shop/a.c": '#include "reply.h"\n'}) == []


def test_a_new_room_needs_arrows_and_an_include_a_file(findings):
    result = findings("include-arrows", {"src/attic/a.c": "", "src/core/a.c":
                                         '#include "core/gone.h"\n#include "../core/b.h"\n'})
    assert sorted((f.path, f.line) for f in result) == [("src/attic/a.c", 0), ("src/core/a.c", 1),
                                                        ("src/core/a.c", 2)]


def test_a_condition_inside_of_a_function(findings):
    text = "#ifdef A\nint a;\n#endif\nint f(void)\n{\n#ifdef A\n    return 1;\n#endif\n}\n"
    assert [f.line for f in findings("conditions-inside", {"src/core/a.c": text})] == [6]


NGINX_GOOD = """#include <ngx_core.h>


static ngx_int_t ngx_http_counterfoil_init(ngx_conf_t *cf);


/* A comment of its own. */
static ngx_int_t
ngx_http_counterfoil_init(ngx_conf_t *cf)
{
    return NGX_OK;
}


static void
ngx_http_counterfoil_end(void)
{
}
"""


def test_nginx_style_leaves_nginx_style_alone(findings):
    assert findings("nginx-style", {"src/gateway/a.c": NGINX_GOOD}) == []


@pytest.mark.parametrize("good,bad", [
    ("static void\nngx_http_counterfoil_end", "static void ngx_http_counterfoil_end"),
    ("}\n\n\nstatic void\n", "}\n\nstatic void\n"),
    ("ngx_http_counterfoil_end(void)\n{", "ngx_http_counterfoil_end(void) {"),
    ("return NGX_OK;", "return NGX_OK; /* " + "long " * 20 + "*/"),
    ("return NGX_OK;", "return " + "NGX_OK + " * 8 + "1;")])
def test_nginx_style_is_followed_in_the_gateway_only(findings, good, bad):
    assert good in NGINX_GOOD
    text = NGINX_GOOD.replace(good, bad)
    result = findings("nginx-style", {"src/gateway/a.c": text, "src/core/a.c": text})
    assert [f.path for f in result] == ["src/gateway/a.c"]


def test_an_option_that_is_not_documented(findings):
    text = 'static const char HELP[] = "  --listen A  where\\n  --new-one  secret\\n";\n'
    assert len(findings("cli-options", {"src/cli/serve.c": text})) == 1
    result = findings("cli-options", {"docs/reference/cli.md": "`--listen ADDR:PORT`, `--new`\n"})
    assert [f.text for f in result] == ["--new-one is missing from docs/reference/cli.md"]


def test_an_option_known_to_getopt_only(findings):
    text = 'static const struct option O[] = {{"hidden", no_argument, NULL, 1}};\n'
    result = findings("cli-options", {"src/cli/get.c": text, "docs/reference/cli.md": "nothing\n"})
    assert [(f.path, f.line) for f in result] == [("src/cli/get.c", 1)]


def test_a_policy_field_that_is_not_documented(findings):
    rows = ('CFOIL_FIELD(ROUTES, ROOT, "routes", MAPS)\nCFOIL_FIELD(KEY, ROUTES, "key", MAP)\n'
            'CFOIL_FIELD(KEY_HEADER, KEY, "header", ONE)\n')
    result = findings("policy-fields", {"src/policy/fields.def": rows, "docs/reference/policy.md":
                                        "`routes`: a list. `key`: a map of a `header`.\n"})
    assert [f.text for f in result] == ["key.header is missing from docs/reference/policy.md"]


def test_a_generated_page_that_was_changed_by_hand(findings, tmp_path):
    tables = {}
    for source in ("src/core/protocol.def", "src/policy/profiles.def"):
        with open(os.path.join(ROOT, source), encoding="utf-8") as file:
            tables[source] = file.read()
    assert findings("generated-docs", tables)
    subprocess.run([os.path.join(ROOT, "scripts/generate-docs"), "--root", str(tmp_path)], check=True)
    assert findings("generated-docs", {}) == []
    page = tmp_path / "docs/concepts/states.md"
    page.write_text(page.read_text(encoding="utf-8") + "by hand\n", encoding="utf-8")
    assert findings("generated-docs", {})


def test_a_link_to_nowhere(findings):
    text = ("[here](guide/start.md) [there](gone.md#x) [web](https://example.com) [in](#a)\n"
            "```\n[code](not-a-link)\n```\n")
    result = findings("links", {"docs/README.md": text, "docs/guide/start.md": "# Start\n"})
    assert [(f.line, f.text) for f in result] == [(1, "gone.md#x does not exist")]


def test_a_page_that_the_index_does_not_lead_to(findings):
    result = findings("docs-index", {"docs/README.md": "[a](guide/a.md)\n", "docs/guide/a.md": "",
                                     "docs/guide/b.md": "", "docs/decisions/0001-x.md": ""})
    assert [f.path for f in result] == ["docs/guide/b.md"]


README = "# A\n\n## B\n\n- one\n\n| x |\n| --- |\n\n```sh\nmake run  # starts\n```\n"


def test_the_readmes_may_differ_in_words_and_comments(findings):
    chinese = README.replace("# A", "# 甲").replace("# starts", "# 启动").replace("one", "一")
    assert findings("readmes-equal", {"README.md": README, "README.zh-CN.md": chinese}) == []


@pytest.mark.parametrize("part", ["## B\n", "- one\n", "| x |\n", "make run  # starts\n"])
def test_the_readmes_do_not_differ_in_content(findings, part):
    result = findings("readmes-equal", {"README.md": README,
                                        "README.zh-CN.md": README.replace(part, "")})
    assert len(result) == 1


def test_a_readme_alone(findings):
    assert findings("readmes-equal", {"README.md": README})


@pytest.mark.parametrize("subject,count", [("x" * 72, 0), ("x" * 73, 1), ("Says too much.", 1)])
def test_the_subject_of_a_commit(findings, tmp_path, subject, count):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject], check=True)
    assert len(findings("commit-subjects", {})) == count
