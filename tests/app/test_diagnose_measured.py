"""The Diagnose screen: verify, verify all, ceilings and the analysis of a trace, from start to shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.diagnose.data import DiagnoseData
from profiler.cli._experiment import budget
from profiler.cli.ceilings import budget as ceilings_budget
from profiler.experiments.ceilings.plan import plan_of_run
from profiler.experiments.plan import make_plan
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from profiler.run.results import append_result
from tests.app import diagnosing
from tests.app.diagnosing import CEILINGS, RESULT, WAIT, Desk, helper, texts
from tests.runs import make_run

desk, no_score = diagnosing.desk, diagnosing.no_score  # fixtures


def test_verify_shows_what_it_measured(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open()
    tested = {**RESULT, "remedy": {"setting": "num_workers", "from": 0, "to": 8}}
    with Run.open(desk.path) as run:
        remedy = diagnose(run).findings[0].remedy
        assert remedy is not None
        tested["remedy"] = remedy.to_json()
    asked = helper(monkeypatch, tested)
    with desk.qtbot.waitSignal(desk.panel.runner.measured, timeout=WAIT):
        desk.panel.detail.heading.verify.click()
    assert asked == [["verify", str(desk.path), desk.finding.key, "--json"]]
    desk.qtbot.waitUntil(lambda: desk.finding.tested, timeout=WAIT)  # although the run does not keep it
    assert desk.panel.detail.badge.text() == "Hit"
    assert desk.panel.detail.heading.verify.text() == "Verify again"
    assert desk.panel.left.cards.cards[0].badge.text() == "1.84\u00a0\u00d7 hit"


def test_progress_is_told_and_can_be_cancelled(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open()
    panel = desk.panel
    helper(monkeypatch, None, waits=True)
    panel.left.cards.cards[0].verify.click()
    desk.qtbot.waitUntil(lambda: panel.runner.share == pytest.approx(0.2), timeout=WAIT)
    assert panel.progress.isVisible() and "1 of at most 5" in panel.progress.text.text()
    assert panel.left.cards.cards[0].badge.text() == "testing"
    assert panel.detail.heading.verify.text() == "Cancel" and not panel.detail.heading.ceilings.isEnabled()
    with desk.qtbot.waitSignal(panel.runner.experiment.failed, timeout=WAIT):
        panel.progress.cancel.click()
    assert "cancelled" in panel.progress.text.text() and not panel.runner.running
    panel.progress.cancel.click()
    assert not panel.progress.isVisible()


def test_all_are_tested_in_turn(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    told = desk.open()
    panel = desk.panel
    keys = ["input_bound", "prefetch", "threads"]
    monkeypatch.setattr(panel, "_testable", lambda: keys)
    asked = helper(monkeypatch, RESULT)
    panel.head.verify_all.click()
    desk.qtbot.waitUntil(lambda: len(asked) == 3 and not panel.runner.running, timeout=WAIT)
    assert [args[2] for args in asked] == keys and told.findings
    helper(monkeypatch, None, waits=True)
    panel.head.verify_all.click()
    desk.qtbot.waitUntil(lambda: panel.runner.share is not None, timeout=WAIT)
    assert "2 more to test" in panel.runner.text() and panel.head.verify_all.text() == "Cancel all"
    with desk.qtbot.waitSignal(panel.runner.experiment.failed, timeout=WAIT):
        panel.head.verify_all.click()
    assert not panel.runner.waiting and not panel.runner.running


def test_a_test_that_fails_leaves_the_others(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open()
    asked = helper(monkeypatch, "no object", notes="stepscope: the program is gone\n")
    desk.panel.runner.verify(["input_bound", "prefetch"])
    desk.qtbot.waitUntil(lambda: len(asked) == 2 and not desk.panel.runner.running, timeout=WAIT)
    assert desk.panel.progress.text.text() == "the program is gone"


def test_ceilings_come_with_progress_and_are_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open()
    notes = "9 recordings of 60 steps, about 2 min 0 s: ...\nround 1, loader alone: 36.2 ms per step\n"
    asked = helper(monkeypatch, CEILINGS, notes)
    shares: list[float | None] = []
    desk.panel.runner.changed.connect(lambda: shares.append(desk.panel.runner.share))
    append_result(desk.path, "ceilings", CEILINGS)  # as the command does
    with desk.qtbot.waitSignal(desk.panel.runner.measured, timeout=WAIT):
        desk.panel.detail.measure.click()
    desk.qtbot.waitUntil(lambda: desk.shown.ceilings is not None, timeout=WAIT)
    assert asked == [["ceilings", str(desk.path), "--json"]] and 1 / 9 in shares
    assert desk.panel.detail.ceilings.isVisible() and not desk.panel.detail.measure.isVisible()
    assert "The run leans on the loader." in texts(desk)


def test_the_commands_say_how_much_there_is_to_do(desk: Desk) -> None:
    """What the progress is read from is what they print."""
    with Run.open(desk.path) as run:
        test, ceilings = make_plan(run, diagnose(run)), plan_of_run(run, 3, None)
    experiment = desk.panel.runner.experiment
    for kind, said, total in (("verify", budget(test), test.pairs),
                              ("ceilings", ceilings_budget(ceilings), ceilings.recordings())):
        experiment.kind, experiment._told = kind, said
        assert experiment.counts == (0, total)


def test_a_trace_is_analysed_by_itself_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open()
    asked = helper(monkeypatch, {}, notes="")
    lacking = DiagnoseData("unknown", "Unknown", has_trace=True, unanalysed=True, what_if_lacks="Not yet.")
    desk.panel.show_data(lacking)
    desk.panel.show_data(lacking)
    desk.qtbot.waitUntil(lambda: not desk.panel.runner.running, timeout=WAIT)
    assert asked == [["diagnose", str(desk.path), "--json"]]
    desk.settle()
    desk.panel.show_data(lacking)
    assert desk.panel.detail.fill.text() == "Analyse the trace" and len(asked) == 1
    desk.panel.detail.fill.click()
    assert len(asked) == 2




def test_what_is_cancelled_with_its_run_says_nothing_of_the_next(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    desk.open()
    helper(monkeypatch, None, waits=True)
    desk.panel.runner.verify(["input_bound", "prefetch"])
    desk.qtbot.waitUntil(lambda: desk.panel.runner.share is not None, timeout=WAIT)
    other = make_run(tmp_path / "other.stepscope", stages={"forward": 30.0, "backward": 60.0}, workers=None)
    with desk.qtbot.waitSignal(desk.panel.runner.experiment.failed, timeout=WAIT):
        desk.document.open(other)
    desk.qtbot.waitUntil(lambda: desk.panel.data is not None, timeout=WAIT)
    assert not desk.panel.runner.waiting and not desk.panel.runner.trouble
    assert not desk.panel.progress.isVisible()
