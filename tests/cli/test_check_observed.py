# SPDX-License-Identifier: Apache-2.0
"""counterfoil check --observed: how late repeats really come, against how long answers are kept."""

import json

POLICY = """version: 1
tenant: none
routes:
  - {name: order.create, match: POST /orders, retention: {ttl: 1h}}
  - {name: coupon, match: POST /coupons, semantics: window, window: 20m}
"""
BOUNDS = ["1s", "5s", "30s", "2m", "10m", "1h", "6h", "24h", "2d", "3d", "7d", "later"]


def line(route, **counts):
    told = " ".join(f"{bound}={counts.get('b' + bound, 0)}" for bound in BOUNDS)
    return (f'2026/12/01 12:24:36 [notice] 83#83: counterfoil: repeats route="{route}" {told}\n')


def check(run, write, log, *options):
    write("policy.yaml", POLICY)
    write("error.log", log)
    return run("check", "policy.yaml", "--observed", "error.log", *options)


def test_lines_add_up_and_are_said_in_words(run, write):
    log = (line("order.create", b1s=60, b5s=10) + "2026/12/01 [notice] 1#1: something else\n"
           + line("order.create", b1s=29, b10m=1))
    shown = check(run, write, log)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[1:] == [
        "policy.yaml: observed: order.create: 100 repeats, half of them within 1s, 99% within 5s, "
        "all within 10m; answers are kept for 1h"]


def test_repeats_in_the_second_half_of_what_is_kept_are_a_note(run, write):
    """1h is kept: the counts below 6h came after 1h, those below 1h perhaps in its first half."""
    shown = check(run, write, line("order.create", b1s=5, b1h=3, b6h=2, blater=1))
    note, = [text for text in shown.stdout.splitlines() if ": note: " in text]
    assert "order.create: 3 of 11 repeats" in note and "1h" in note and "keep them longer" in note
    assert "all later than 7d" in shown.stdout
    assert shown.returncode == 0


def test_a_window_is_what_counts_where_a_route_has_one(run, write):
    shown = check(run, write, line("coupon", b10m=1))
    assert "answers are kept for 20m" in shown.stdout and ": note: " not in shown.stdout
    shown = check(run, write, line("coupon", b1h=1))
    assert "coupon: 1 of 1 repeats" in shown.stdout, "all of them came after 10m, which is half"


def test_a_route_the_policy_has_not_is_said(run, write):
    shown = check(run, write, line("gone", b1s=1))
    assert "gone: 1 repeat, half" in shown.stdout
    assert "a route gone, which this policy does not have" in shown.stdout


def test_for_machines(run, write):
    log = line("order.create", b1s=2, b6h=1)
    answer = json.loads(check(run, write, log, "--json").stdout)
    told, = answer["observed"]
    assert told["route"] == "order.create"
    assert told["repeats"] == {bound: {"1s": 2, "6h": 1}.get(bound, 0) for bound in BOUNDS}
    assert len(answer["advice"]) == 1 and "1 of 3 repeats" in answer["advice"][0]


def test_a_log_without_repeats_is_refused(run, write):
    shown = check(run, write, "2026/12/01 [notice] 1#1: start worker processes\n")
    assert shown.returncode == 2 and "tells of no repeats" in shown.stderr
    shown = run("check", "policy.yaml", "--observed", "no-such-file")
    assert shown.returncode == 2 and "no-such-file" in shown.stderr
    assert "No such file" in shown.stderr


def test_what_is_cut_off_or_strange_is_skipped(run, write):
    log = ('counterfoil: repeats route="order.create\n' + line("order.create", b1s=1)[:-1]
           + ' 30d=4 x y=\n\0counterfoil\n')
    shown = check(run, write, log)
    assert "order.create: 1 repeat, half" in shown.stdout
