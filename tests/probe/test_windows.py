"""Windows of torch.profiler: bounded, checked, never beside another profiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.probe.fakes import PROBE
from tests.probe.reading import PROFILED, Ran, run

assert PROBE.is_dir()


def windowed(tmp_path: Path, plan: dict[str, Any] | None, **script: int) -> Ran:
    env = {} if plan is None else {"STEPSCOPE_TRACE": json.dumps(plan)}
    ran = run(tmp_path, "windowed.py", json.dumps(script), env=env)
    assert ran.returncode == 0, ran.stderr
    if not script.get("own"):
        assert ran.stderr == ""
    return ran


def test_window_of_the_steps_asked_for(tmp_path: Path) -> None:
    ran = windowed(tmp_path, {"start_step": 4, "steps": 3, "max_seconds": 60}, steps=12)
    ((t0, t1, name, said),) = ran.only.of("trace")
    assert t0 < t1
    assert said == {"steps": [4, 6], "size": (ran.spool / name).stat().st_size, "valid": True, "note": ""}
    trace = json.loads((ran.spool / name).read_text())
    names = [e["name"] for e in trace["traceEvents"] if e.get("cat") == "user_annotation"]
    assert sorted(n for n in names if "ProfilerStep" in n) == [f"ProfilerStep#{i}" for i in (4, 5, 6)]
    assert names.count("labelled") == 3
    assert sum(n.startswith("enumerate(DataLoader)") for n in names) == 3
    assert any("Input Dims" in e.get("args", {}) for e in trace["traceEvents"])
    assert [s["index"] for s in ran.only.steps if s["flags"] & PROFILED] == [4, 5, 6]
    assert len(ran.only.training) == 12
    # what the window costs at its ends belongs to no step
    ends = [s["t1"] for s in ran.only.steps]
    assert all(a <= s["t0"] for a, s in zip(ends, ran.only.steps[1:], strict=False))
    assert ran.only.steps[4]["t0"] > ends[3]


def test_windows_on_request_and_again_after_a_while(tmp_path: Path) -> None:
    asked = windowed(tmp_path / "asked", None, steps=10, ask=4)
    ((*_, said),) = asked.only.of("trace")
    assert said["steps"] == [4, 5]
    plan = {"start_step": 2, "steps": 2, "every_seconds": 0.01}
    again = windowed(tmp_path / "again", plan, steps=12, ask=8)
    assert [t[3]["steps"] for t in again.only.of("trace")] == [[2, 3], [8, 9]]


def test_run_that_ends_before_and_inside_its_window(tmp_path: Path) -> None:
    before = windowed(tmp_path / "before", {"start_step": 30, "steps": 8}, steps=5)
    (event,) = before.only.events("trace_incomplete")
    assert "run ended after 5 steps, 38 needed" in event["text"]
    inside = windowed(tmp_path / "inside", {"start_step": 3, "steps": 8}, steps=5)
    ((_, _, name, said),) = inside.only.of("trace")
    assert said["note"] == "the run ended after 2 of 8 steps"
    assert said["valid"]
    json.loads((inside.spool / name).read_text())


def test_window_yields_to_the_scripts_own_profiler(tmp_path: Path) -> None:
    ran = windowed(tmp_path, {"start_step": 2, "steps": 8}, steps=12, own=5)
    ((_, _, name, said),) = ran.only.of("trace")
    assert said["valid"]
    assert said["note"] == "ended early: the script's own profiler started"
    assert len(ran.only.events("profiler_yielded")) == 1
    assert ran.said["own"] > 3  # theirs recorded
    json.loads((ran.spool / name).read_text())


def test_no_window_while_the_scripts_own_profiler_runs(tmp_path: Path) -> None:
    ran = windowed(tmp_path, {"start_step": 5, "steps": 3}, steps=12, own=2)
    assert not ran.only.of("trace")
    assert len(ran.only.events("trace_incomplete")) == 1
    assert ran.said["own"] > 3


def test_window_that_takes_too_much_memory_is_given_up(tmp_path: Path) -> None:
    """Many small operations inside one step, where no boundary comes to look."""
    plan = {"start_step": 4, "steps": 3, "max_bytes": 30_000_000}
    ran = windowed(tmp_path, plan, steps=10, small=300_000)
    assert len(ran.only.events("trace_abandoned")) == 1
    assert not ran.only.of("trace")
    assert len(ran.only.training) == 10


@pytest.mark.slow
def test_window_is_bounded_in_time_inside_a_step(tmp_path: Path) -> None:
    ran = windowed(tmp_path, {"start_step": 4, "steps": 3, "max_seconds": 0.1}, steps=10, small=600_000)
    ((*_, said),) = ran.only.of("trace")
    assert said["note"].startswith("the window ended after")
    assert said["valid"]
    assert len(ran.only.training) == 10


@pytest.mark.slow
def test_script_under_a_memory_limit_lives_on(tmp_path: Path) -> None:
    ran = windowed(tmp_path, {"start_step": 4, "steps": 3}, steps=10, small=2_000_000, limit=600_000_000)
    assert len(ran.only.events("trace_abandoned")) == 1
    assert len(ran.only.training) == 10


def test_checking_a_trace(tmp_path: Path) -> None:
    from _stepscope_probe.window import check

    path = tmp_path / "trace.json"
    assert check(str(path)) == (0, False)
    for text, valid in ("", False), ('{"traceEvents": [', False), ('{"traceEvents": []}\n', True):
        path.write_text(text)
        assert check(str(path)) == (len(text), valid)
