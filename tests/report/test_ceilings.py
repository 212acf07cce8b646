"""Stored ceilings and experiments of every kind in the report."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from profiler.experiments.arm import Arm
from profiler.experiments.ceilings.plan import Kind, Plan
from profiler.experiments.ceilings.result import Result, Taken
from profiler.experiments.program import Program
from profiler.model import STAGES
from profiler.report.ceilings import ceilings
from profiler.run.results import append_result
from tests.report.test_html import EVIL, experiment, page
from tests.runs import make_run

MS = {"real": (41.0, 43.0), "loader": (40.0, 41.0), "cached": (15.0, 15.2), "forward": (5.0, 5.5)}


def told(repeats: int = 2, **absent: str) -> dict[str, Any]:
    """A result of ceilings, made as they are."""
    plan = Plan(Program(Path(), command=("x",)), 60, repeats)
    taken = [Taken(stage, k + 1, _arm(ms[k]), "", 1.0) for stage, ms in MS.items() for k in range(repeats)]
    return Result(plan, Kind(False, True, 2), taken, absent, 9.0).to_json()


def _arm(ms: float) -> Arm:
    parts = dict.fromkeys(STAGES, 0.0) | {"forward": ms}
    return Arm(ms, ms, 50, parts, 16e3 / ms, (), {"num_workers": 2}, batch=16.0)


def test_ceilings_are_shown_beside_the_run(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope")
    append_result(path, "ceilings", told(1))
    append_result(path, "ceilings", told(device="on the CPU there are no copies to a device"))
    result = told()
    text, seen = page(path)
    assert result["leaning"]["text"] in seen.words
    for words in ("Ceilings", "median of 2, and range", "loader alone (2 workers)", "40.0 to 41.0",
                  "forward alone", "Not measured: no input, no copies (kept on the device): on the CPU"):
        assert words in seen.words, words
    assert seen.words.count("loader alone (2 workers)") == 3  # bar, its title, table: of the newest one only
    assert text.count('class="level"') == 1


def test_one_recording_each_has_no_range() -> None:
    shown = ceilings(told(1))
    assert shown["note"] == "one recording each"
    assert all(row[2] == "" and row[4] == "" for row in shown["rows"])
    ElementTree.fromstring(shown["picture"])
    assert "reach" not in shown["picture"]


def test_nothing_measured_gives_no_picture() -> None:
    plan = Plan(Program(Path(), command=("x",)), 60, 2)
    shown = ceilings(Result(plan).to_json())
    assert shown["picture"] == "" and shown["rows"] == [] and "nothing can be compared" in shown["text"]


def test_texts_are_escaped(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope")
    result = told()
    result["leaning"]["text"] = result["unit"] = EVIL
    result["notes"] = [EVIL]
    for stage in result["stages"]:
        stage["title"] = EVIL
    append_result(path, "ceilings", result)
    text, seen = page(path)
    assert "<script" not in text and seen.words.count("<script>alert('x')</script>") >= 10


@pytest.mark.parametrize(("kind", "damaged"), [
    ("ceilings", {}), ("ceilings", {"stages": 3}), ("ceilings", {**told(), "stages": [{"name": 1}]}),
    ("ceilings", {**told(), "leaning": None}), ("experiment", {}), ("experiment", experiment(pairs=[{}])),
    ("experiment", experiment(ratio={"median": "x"})), ("experiment", experiment(remedy={"setting": 1}))])
def test_a_damaged_result_is_told_and_costs_no_other(tmp_path: Path, kind: str, damaged: Any) -> None:
    path = make_run(tmp_path / "run.stepscope")
    append_result(path, "experiment", experiment())
    append_result(path, kind, damaged)
    _, seen = page(path)
    assert "cannot be read" in seen.words and "Findings" in seen.words and "1.79" in seen.words


def test_a_tried_setting_has_no_score(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope")
    append_result(path, "experiment", experiment(
        finding=None, prediction=None, score="not scored", outcome="no difference shown",
        remedy={"setting": "OMP_NUM_THREADS", "from": None, "to": "1"}))
    _, seen = page(path)
    assert "Measured 1.87\u00a0\u00d7" in seen.words and "Predicted" not in seen.words
    assert "OMP_NUM_THREADS unset \u2192 1" in seen.words and "no difference shown" in seen.words
    assert "not scored" not in seen.words


def test_a_latency_is_given_for_requests(tmp_path: Path) -> None:
    def arm(ms: float, latency: float) -> dict[str, Any]:
        return {"step_ms": ms, "latency_ms": latency, "marks": []}

    path = make_run(tmp_path / "run.stepscope")
    append_result(path, "experiment", experiment(
        unit="request", score="not scored",
        pairs=[{"order": "ab", "ratio": 2.0, "counts": True, "a": arm(9.0, 7.5), "b": arm(8.0, 3.5)}],
        latency_ms={"a": 7.5, "b": 3.5}, step_ms={"a": 9.0, "b": 8.0},
        throughput={"a": 100.0, "b": 200.0, "unit": "requests/s"},
        notes=["The ratio is of the latency of the median request, which no prediction is about"]))
    _, seen = page(path)
    for words in ("before, ms a request", "7.5 \u2192 3.5\u00a0ms for the median request",
                  "100 \u2192 200\u00a0requests/s", "which no prediction is about"):
        assert words in seen.words, words


def test_a_remedy_that_fails_says_why(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope")
    failed = {"step_ms": None, "marks": ["it ended with status 1"]}
    append_result(path, "experiment", experiment(
        outcome="fails with the remedy", ratio=None, score="not scored",
        reason="with the remedy it ended with status 1",
        pairs=[{"order": "ab", "ratio": None, "counts": False, "a": {"step_ms": 5.0, "marks": []},
                "b": failed}]))
    _, seen = page(path)
    assert "Nothing was measured: with the remedy it ended with status 1." in seen.words
    assert "left out: B it ended with status 1" in seen.words
