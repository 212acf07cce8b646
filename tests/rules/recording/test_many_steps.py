"""S11: a run of very many steps. The diagnosis looks at the newest of them, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.analysis import steps as module
from profiler.analysis.facts import gather
from profiler.analysis.steps import training_process
from profiler.report.page import page
from profiler.rules.verdict import diagnose, training_processes
from profiler.run.reader import Run
from tests.runs import make_run

STEPS, MOST = 4000, 300


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Waits for data in the newest steps alone; the limit is low."""
    monkeypatch.setattr(module, "MOST_STEPS", MOST)
    path = make_run(tmp_path / "run.stepscope", steps=STEPS, extras={"data_cpu": 0.0},
                    stages={"data": lambda i: 30.0 if i >= STEPS - 2 * MOST else 0.1, "forward": 5.0,
                            "backward": 5.0, "optimizer": 1.0, "h2d": 0.1, "other": 0.1})
    return Run.open(path)


def test_s11_many_steps_are_not_all_read(run: Run) -> None:
    facts = gather(run, training_process(run))
    assert len(facts.steps) == MOST
    assert facts.steps.t1_ns[-1] == run.values(run.find("step.wall")[0].id)[0][-1], "the newest"
    assert facts.steady.warm_up_end_ns is not None
    assert facts.steady.warm_up_end_ns < facts.steps.t0_ns[0], "warm-up is at the start of the run"
    assert facts.summary is not None
    assert facts.summary.total == STEPS
    assert facts.summary.spread.median == pytest.approx(41.3e6, rel=0.02)


def test_s11_the_diagnosis_says_which_steps_it_looked_at(run: Run) -> None:
    found = diagnose(run)
    assert found.decision.verdict == "input_bound"
    assert any("very many steps" in note for note in found.notes)
    told = found.to_json()
    assert told["whole_run"]["wall_s"] == pytest.approx((run.end_ns - run.start_ns) / 1e9, rel=0.05)
    assert told["whole_run"]["throughput"] is None, "that of all steps was not looked at"
    assert page(run)["step_chart"]


def test_s11_a_time_within_many_steps(run: Run) -> None:
    """Of a time that was asked for its own steps are read."""
    ends = run.values(run.find("step.wall")[0].id)[0]
    facts = gather(run, training_process(run), int(ends[1000]), int(ends[1099]))
    assert len(facts.steps) == 100
    assert "earlier" not in facts.steady.left_out
    assert facts.summary is not None
    assert facts.summary.spread.median < 15e6
    longer = gather(run, training_process(run), int(ends[1000]), int(ends[2999]))
    assert len(longer.steps) == MOST
    assert longer.steps.t1_ns[-1] == ends[2999]
    assert longer.steady.left_out["earlier"] == 2000 - MOST


def test_s11_the_process_that_trains_is_known_without_reading_all(run: Run) -> None:
    assert training_processes(run) == [training_process(run)]
    assert module.how_many(run, training_process(run) or 0)[1] == STEPS
