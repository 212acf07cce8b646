"""Windows of torch.profiler: bounded, checked, never beside another profiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.probe.fakes import PROBE
from tests.probe.reading import PROFILED, Ran, run, together

assert PROBE.is_dir()


def windowed(tmp_path: Path, plan: dict[str, Any] | None, **script: int) -> Ran:
    env = {} if plan is None else {"STEPSCOPE_TRACE": json.dumps(plan)}
    ran = run(tmp_path, "windowed.py", json.dumps(script), env=env)
    assert ran.returncode == 0, ran.stderr
    if not script.get("own"):
        assert ran.stderr == ""
    return ran


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """The script's own profiler starts inside a window of ours, and before it; the run ends inside it."""
    path = tmp_path_factory.mktemp("own")
    return together(lambda: windowed(path / "inside", {"start_step": 2, "steps": 8}, steps=12, own=5),
                    lambda: windowed(path / "before", {"start_step": 5, "steps": 3}, steps=12, own=2),
                    lambda: windowed(path / "end", {"start_step": 3, "steps": 8}, steps=5))


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
    plan = {"start_step": 2, "steps": 2, "every_seconds": 0.01}
    asked, again = together(lambda: windowed(tmp_path / "asked", None, steps=10, ask=4),
                            lambda: windowed(tmp_path / "again", plan, steps=12, ask=8))
    ((*_, said),) = asked.only.of("trace")
    assert said["steps"] == [4, 5]
    windows = [t[3]["steps"] for t in again.only.of("trace")]  # a busy machine has time for more of them
    assert windows[0] == [2, 3] and len(windows) >= 2
    assert all(before[1] < after[0] for before, after in zip(windows, windows[1:], strict=False))


def test_run_that_ends_inside_its_window(beside: list[Ran]) -> None:
    inside = beside[2]
    ((_, _, name, said),) = inside.only.of("trace")
    assert said["note"] == "the run ended after 2 of 8 steps"
    assert said["valid"]
    json.loads((inside.spool / name).read_text())


def test_window_yields_to_the_scripts_own_profiler(beside: list[Ran]) -> None:
    ran = beside[0]
    ((_, _, name, said),) = ran.only.of("trace")
    assert said["valid"]
    assert said["note"] == "ended early: the script's own profiler started"
    assert len(ran.only.events("profiler_yielded")) == 1
    assert ran.said["own"] > 3  # theirs recorded
    json.loads((ran.spool / name).read_text())


def test_no_window_while_the_scripts_own_profiler_runs(beside: list[Ran]) -> None:
    ran = beside[1]
    assert not ran.only.of("trace")
    assert len(ran.only.events("trace_incomplete")) == 1
    assert ran.said["own"] > 3


@pytest.mark.slow
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
