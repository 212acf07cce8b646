"""The confusion matrix: when a diagnosis is right, and the tables of many."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.experiments.matrix.cases import NEEDS_GPU, TRACE, Case
from profiler.experiments.matrix.judge import above_the_line, warnings, wrong
from profiler.experiments.matrix.others import Accounts, accounts, others
from profiler.experiments.matrix.run import Result
from profiler.experiments.matrix.table import parts, share, table, wilson
from profiler.experiments.matrix.words import line_text, markdown
from tests.experiments.matrix_lines import CONTROL_CASE, fault_case, line


def told(verdict: str, *findings: tuple[str, str, float, float | None], step: float = 100.0,
         ) -> dict[str, Any]:
    """A diagnosis with findings (rule, severity, ms per step, predicted speedup)."""
    found = [{"rule": rule, "severity": severity, "cost_ms": cost, "prediction": gain and {"speedup": gain}}
             for rule, severity, cost, gain in findings]
    return {"verdict": verdict, "also": [], "step_ms": {"usual": step}, "findings": found}


@pytest.mark.parametrize(("hits", "count", "low", "high"), [
    (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (8, 10, 0.4902, 0.9433), (1, 2, 0.0945, 0.9055),
    (81, 263, 0.2553, 0.3662)])  # the last one of Newcombe (1998), table I
def test_wilson_of_known_answers(hits: int, count: int, low: float, high: float) -> None:
    assert wilson(hits, count) == pytest.approx((low, high), abs=6e-5)


@given(count=st.integers(1, 2000), data=st.data())
def test_wilson_bounds_hold_the_share(count: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, count))
    low, high = wilson(hits, count)
    assert 0 <= low <= hits / count <= high <= 1
    mirrored = wilson(count - hits, count)
    assert low == pytest.approx(1 - mirrored[1]) and high == pytest.approx(1 - mirrored[0])


def test_nothing_has_no_share() -> None:
    assert share(0, 0) == {"hits": 0, "count": 0, "value": None, "low": 0.0, "high": 1.0}


def test_a_fault_is_right_when_verdict_and_rule_are_named_first_or_second() -> None:
    case = fault_case("gc_pauses", "host_bound", "stalls")
    good = told("host_bound", ("host_bound", "error", 30, 1.2), ("stalls", "warning", 20, None))
    assert wrong(case, good) == "" and warnings(good) == ["host_bound", "stalls"]
    assert "verdict input_bound, not host_bound" in wrong(case, {**good, "verdict": "input_bound"})
    third = told("host_bound", *((name, "error", 30.0, None) for name in ("host_bound", "threads", "stalls")))
    assert "stalls is not among the first 2" in wrong(case, third)
    only_noted = told("host_bound", ("stalls", "info", 0, None))
    assert "no findings" in wrong(case, only_noted)
    noted_before = told("host_bound", ("compute_bound", "info", 90, None), ("prefetch", "info", 0, None),
                        ("host_bound", "error", 30, 1.2), ("stalls", "warning", 20, None))
    assert wrong(case, noted_before) == ""


@pytest.mark.parametrize(("finding", "blamed"), [
    (("compute_bound", "info", 95.0, None), False), (("stalls", "info", 4.9, None), False),
    (("input_bound", "info", 3.0, 1.05), False), (("input_bound", "info", 3.0, 1.051), True),
    (("stalls", "info", 5.1, None), True), (("threads", "warning", 0.0, None), True)])
def test_a_control_blames_nothing_above_five_percent(finding: Any, blamed: bool) -> None:
    of_it = told("compute_bound", finding)
    assert above_the_line(of_it) == ([finding[0]] if blamed else [])
    assert wrong(CONTROL_CASE, of_it) == (f"blames {finding[0]}" if blamed else "")


def test_a_diagnosis_without_steps_is_wrong_and_no_error() -> None:
    nothing = {**told("unknown"), "step_ms": None}
    assert "unknown" in wrong(CONTROL_CASE, nothing)
    assert above_the_line({**told("unknown", ("x", "info", 9, None)), "step_ms": None}) == []


def test_a_trace_is_right_with_any_verdict_that_its_truth_accepts() -> None:
    case = Case(TRACE, "a.json.gz", ("sync_bound", "input_bound"))
    assert wrong(case, told("input_bound", ("sync_bound", "error", 30, 1.5))) == ""
    assert "sync_bound or input_bound" in wrong(case, told("compute_bound"))


def test_precision_recall_and_confusion() -> None:
    slow, pauses = fault_case(), fault_case("gc_pauses", "host_bound", "stalls")
    found = table([
        line(slow, "input_bound", ("input_bound",)), line(slow, "input_bound", ("stalls", "input_bound")),
        line(slow, "compute_bound", right=False), line(slow, right=False, state="crashed"),
        line(pauses, "host_bound", ("host_bound", "stalls")),
        line(CONTROL_CASE, "compute_bound"),
        line(CONTROL_CASE, "input_bound", ("input_bound",), right=False),
    ])
    assert found["right"]["hits"] == 4 and found["right"]["count"] == 7
    assert (found["crashed"], found["stuck"]) == (1, 0)
    verdicts = {row["name"]: row for row in found["verdicts"]}
    assert set(verdicts) == {"input_bound", "compute_bound", "host_bound"}  # a crash is no verdict
    assert verdicts["input_bound"]["precision"] == share(2, 3)
    assert verdicts["input_bound"]["recall"] == share(2, 4)
    rules = {row["name"]: row for row in found["rules"]}
    assert (rules["input_bound"]["recall"], rules["input_bound"]["precision"]) == (share(2, 4), share(2, 3))
    assert rules["stalls"]["precision"] == share(1, 2)  # beside few_workers nobody asked for it
    assert rules["host_bound"]["precision"] == share(1, 1)  # the verdict's own rule is no false alarm
    assert rules["host_bound"]["recall"]["value"] is None
    cells = {(item["expected"], item["found"]): item["runs"] for item in found["confusion"]}
    assert cells == {("input_bound", "input_bound"): 2, ("input_bound", "compute_bound"): 1,
                     ("input_bound", "crashed"): 1, ("host_bound", "host_bound"): 1,
                     ("compute_bound", "compute_bound"): 1, ("compute_bound", "input_bound"): 1}
    assert found["cases"][0]["wrong"] == ["another", "another"]


def test_a_false_alarm_beside_the_right_answer_is_told() -> None:
    slow = fault_case()
    lines = [line(slow, "input_bound", ("input_bound",)),
             line(slow, "input_bound", ("input_bound", "stalls")),
             line(slow, "input_bound", ("input_bound", "noisy_machine"), others=0.9),
             line(CONTROL_CASE, "compute_bound"), line(slow, "compute_bound", right=False)]
    found = table(lines)
    assert (found["right"], found["right_only"]) == (share(4, 5), share(3, 5))
    assert "In 3 of them no rule gives a false alarm beside." in markdown(Result(lines, 1).to_json())


def test_traces_are_counted_apart() -> None:
    trace = Case(TRACE, "a.json.gz", ("sync_bound", "input_bound"))
    runs, traces = parts([line(CONTROL_CASE, "compute_bound"), line(trace, "input_bound", ("input_bound",))])
    assert runs and traces
    assert runs["right"]["count"] == traces["right"]["count"] == 1
    assert not traces["rules"]  # the truth tells no costs
    assert traces["confusion"] == [{"expected": "input_bound", "found": "input_bound", "runs": 1}]
    assert parts([]) == (None, None)


def test_warnings_of_a_trace_are_held_against_what_costs_in_truth() -> None:
    truth = {"input_bound": 1.06, "sync_bound": 1.04, "launch_bound": 1.0, "host_bound": 1.2}
    trace = Case(TRACE, "a", ("host_bound",), speedups=truth)
    warned = ("host_bound", "launch_bound", "sync_bound", "tensor_cores")
    rules = {row["name"]: row for row in table([line(trace, "host_bound", warned)])["rules"]}
    assert set(rules) == {"host_bound", "input_bound", "launch_bound", "sync_bound"}
    assert rules["host_bound"]["recall"] == rules["host_bound"]["precision"] == share(1, 1)
    assert rules["input_bound"]["recall"] == share(0, 1)
    assert rules["launch_bound"] == {"name": "launch_bound", "recall": share(0, 0), "precision": share(0, 1)}
    assert rules["sync_bound"] == {"name": "sync_bound", "recall": share(0, 0), "precision": share(1, 1)}


def test_runs_that_others_disturbed_are_told_apart() -> None:
    good, bad = line(fault_case(), "input_bound"), line(fault_case(), right=False, state="stuck", others=0.9)
    found = table([good, good, bad])
    assert found["right"] == share(2, 3) and found["right_alone"] == share(2, 2)
    text = markdown(Result([good, good, bad], 1).to_json()).replace("\u00a0", " ")
    assert "During 1 of 3 other programs kept more than 0.25 cores busy; of the rest 2 of 2" in text
    assert "other programs" not in markdown(Result([good], 1).to_json())
    assert line_text(bad).endswith("9.0 s, 0.9 cores busy with others")


def test_that_the_machine_is_noisy_is_held_against_what_others_took() -> None:
    noisy = [line(CONTROL_CASE, "compute_bound", ("noisy_machine",), right=False, others=busy)
             for busy in (0.1, 0.6, 1.4)]
    [rule] = table(noisy)["rules"]
    assert rule == {"name": "noisy_machine", "recall": share(0, 0), "precision": share(2, 3)}


def test_what_others_took_is_everybodys_less_ours() -> None:
    before = Accounts(100.0, 1000.0, 50.0)
    assert others(before, Accounts(110.0, 1012.0, 57.0)) == pytest.approx(0.5)
    assert others(before, Accounts(110.0, 1005.0, 56.0)) == 0.0  # clocks of different grain
    assert others(before, before) == 0.0


def test_accounts_of_this_machine_add_up() -> None:
    before = accounts()
    until = before.clock + 0.2
    while (after := accounts()).clock < until:
        pass
    assert 0 < after.ours - before.ours <= 1.1 * (after.clock - before.clock)
    assert after.everybody > before.everybody and others(before, after) <= os.cpu_count() + 0.2


def test_tables_say_what_was_counted() -> None:
    slow = fault_case()
    lines = [line(slow, "input_bound", ("input_bound",)), line(slow, right=False, state="stuck"),
             line(CONTROL_CASE, "compute_bound")]
    text = markdown(Result(lines, 2, {"large_copies": NEEDS_GPU}).to_json()).replace("\u00a0", " ")
    assert "2 of 3 runs of faults and controls bring what they must: 67 % (21 to 94)**; 1 got stuck." in text
    assert "Left out: `large_copies` (needs a GPU" in text and "Interrupted" not in text
    rows = [[cell.strip() for cell in row.strip("|").split("|")]
            for row in text.splitlines() if row.startswith("|")]
    assert ["`few_workers`", "`input_bound` by `input_bound`", "1 of 2"] in rows
    assert ["control: threads=1", "`compute_bound`, blames nothing", "1 of 1"] in rows
    assert ["expected, found", "`compute_bound`", "`input_bound`", "`stuck`"] in rows
    assert "Interrupted" in markdown(Result(lines, 2, interrupted=True).to_json())
    assert "No verdict was taken for another." in markdown(Result(lines[:1], 1).to_json())
    assert "hostname" not in Result(lines, 2).to_json()["machine"]
    assert line_text(lines[1]) == "fault few_workers 1: WRONG (another), stuck, 9.0 s"
