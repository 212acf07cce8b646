"""S11: a run of very many steps in the window: it holds the newest, not gigabytes of all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.live import steps as live
from profiler.analysis import steps as analysis
from profiler.run.reader import Run
from tests.runs import START_NS, make_run

STEPS, MOST = 3000, 200


def test_s11_live_steps_are_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (live, analysis):
        monkeypatch.setattr(module, "MOST_STEPS", MOST)
    with Run.open(make_run(tmp_path / "run.stepscope", steps=STEPS)) as run:
        shown = live.LiveSteps()
        shown.update(run)
        ends = run.values(run.find("step.wall")[0].id)[0]
        assert shown.t1_ns.tolist() == ends[-MOST:].tolist()
        assert shown.stages.shape[1] == len(shown.samples) == len(shown.index) == MOST
        assert shown.at(int(ends[-1])) == MOST - 1
        assert shown.at(START_NS) is None


def test_s11_live_steps_forget_the_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it records they come a few at a time."""
    with Run.open(make_run(tmp_path / "run.stepscope", steps=STEPS)) as run:
        whole = analysis.load_steps(run)
        monkeypatch.setattr(live, "MOST_STEPS", MOST)
        process = analysis.training_process(run)
        shown, most = live.LiveSteps(), 0
        for until in range(0, STEPS, 90):
            part = slice(until, min(until + 90, STEPS))
            monkeypatch.setattr(live, "load_steps",
                                lambda *_, part=part: whole.select(np.r_[part]))
            shown.update(run)
            most = max(most, len(shown))
        assert shown.process == process
        assert most <= 2 * MOST
        assert shown.index[-1] == whole.index[-1]
        assert len(shown) >= MOST
        assert shown.t1_ns.tolist() == whole.t1_ns[-len(shown):].tolist()
