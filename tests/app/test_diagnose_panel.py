"""The Diagnose screen: what is drawn, what keys and buttons do, and how measurements come in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app import theme
from app.diagnose.data import CeilingsData, DiagnoseData, FindingData
from app.document import Document
from app.panels.diagnose import DiagnosePanel
from app.selection import Place, Selection
from profiler.cli._experiment import budget
from profiler.cli.ceilings import budget as ceilings_budget
from profiler.experiments.ceilings.plan import plan_of_run
from profiler.experiments.plan import make_plan
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from profiler.run.results import append_result
from tests.app.test_diagnose_data import CEILINGS, RESULT
from tests.app.windows import open_window
from tests.runs import STAGE_MS, make_run

WAIT = 30_000
STALLING = {**STAGE_MS, "other": lambda k: 400.0 if k % 20 == 19 else 0.4}  # has a second finding
NOTES = ("Testing num_workers 0 -> 2: about 30 s, 3 to 5 pairs of 6 s and 4 s, 60 steps each\n"
         "pair 1: 52.3 ms -> 28.4 ms per step, 1.84 x\n")


class Desk:
    """A panel on a run whose first finding can be tested. Nothing is started: a helper answers as told."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        (folder / "train.py").write_text("import torch\n\nfor batch in loader:\n    pass\n")
        meta = {"cwd": str(folder), "command": [sys.executable, "train.py"]}
        sites = {"loader": ["train.py:3"]}
        self.path = make_run(folder / "r.stepscope", meta=meta, data_cpu=4.0, sites=sites, stages=STALLING)
        self.qtbot, self.document, self.selection = qtbot, Document(), Selection()
        self.panel = DiagnosePanel(self.document, self.selection)
        qtbot.addWidget(self.panel)
        self.panel.resize(1536, 940)
        self.panel.show()

    def open(self) -> DiagnoseData:
        self.document.open(self.path)
        self.qtbot.waitUntil(lambda: self.panel.data is not None, timeout=WAIT)
        return self.shown

    @property
    def shown(self) -> DiagnoseData:
        assert self.panel.data is not None
        return self.panel.data

    @property
    def finding(self) -> FindingData:
        assert self.panel.finding is not None
        return self.panel.finding

    def settle(self) -> None:
        self.qtbot.waitUntil(
            lambda: not self.panel._stale and not self.document.busy("diagnose"), timeout=WAIT)

    def close(self) -> None:
        self.panel.shut_down()
        self.document.shutdown()


@pytest.fixture(autouse=True)
def no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.diagnose.runner.Score.ask", lambda self, run: None)


@pytest.fixture
def desk(qtbot: QtBot, dark: None, tmp_path: Path) -> Iterator[Desk]:
    result = Desk(qtbot, tmp_path)
    yield result
    result.close()


def helper(monkeypatch: pytest.MonkeyPatch, result: object, notes: str = NOTES,
           waits: bool = False) -> list[list[str]]:
    """The experiment is a script that says this; what it would have been started with is returned."""
    asked: list[list[str]] = []
    end = "signal.pause()" if waits else f"print({json.dumps(result)!r})"
    script = ("import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(130))\n"
              f"sys.stderr.write({notes!r}); sys.stderr.flush()\n{end}\n")

    def command(*args: str) -> list[str]:
        asked.append(list(args))
        return [sys.executable, "-S", "-c", script]

    monkeypatch.setattr("app.experiment.own_command", command)
    return asked


def texts(desk: Desk) -> str:
    return "\n".join(label.text() for label in desk.panel.findChildren(QLabel) if label.isVisible())


def test_the_screen_says_what_the_analysis_says(desk: Desk) -> None:
    told = desk.open()
    panel = desk.panel
    assert panel.verdict.word.text() == told.title == "Input-bound"
    assert told.reason in panel.verdict.reason.text() and told.confidence in panel.verdict.confidence.text()
    assert [card.data for card in panel.left.cards.cards] == list(told.findings)
    assert panel.left.cards.cards[0].chosen and panel.detail.heading.title.text() == desk.finding.heading
    assert panel.left.parts.model_.rows == told.parts
    assert panel.detail.evidence.model_.rows == desk.finding.evidence
    assert panel.detail.counter.model_.rows == desk.finding.counter
    assert panel.left.ruled_out.model_.rows == told.ruled_out
    assert "Remedy: workers 0" in panel.detail.heading.remedy.text()
    assert panel.detail.code.site.whole_text() == "train.py:3"
    assert "not measured" in texts(desk).lower() and panel.detail.measure.isVisible()


def test_arrows_walk_through_the_findings(desk: Desk) -> None:
    told = desk.open()
    cards = desk.panel.left.cards.cards
    assert len(cards) > 1
    cards[0].setFocus()
    desk.qtbot.keyClick(cards[0], Qt.Key.Key_Down)
    assert desk.panel.key == told.findings[1].key and cards[1].chosen and not cards[0].chosen
    assert desk.selection.place == told.findings[1].place
    desk.qtbot.keyClick(cards[1], Qt.Key.Key_Home)
    assert desk.panel.key == told.findings[0].key
    desk.selection.back()
    assert desk.panel.key == told.findings[1].key
    desk.qtbot.mouseClick(cards[0], Qt.MouseButton.LeftButton)
    assert desk.panel.key == told.findings[0].key


def test_a_finding_leads_to_its_place_in_the_timeline(desk: Desk) -> None:
    told = desk.open()
    with desk.qtbot.waitSignal(desk.panel.screen_wanted) as wanted:
        desk.qtbot.keyClick(desk.panel.left.cards.cards[0], Qt.Key.Key_Return)
    assert wanted.args == ["timeline"] and desk.selection.place == told.findings[0].place
    assert told.findings[0].place.range_ns is not None
    with desk.qtbot.waitSignal(desk.panel.screen_wanted):
        desk.panel.detail.heading.timeline.click()


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


def test_a_growing_run_keeps_the_chosen_finding(desk: Desk) -> None:
    told = desk.open()
    desk.panel.choose(told.findings[1].key)
    desk.panel.show_data(told)
    assert desk.panel.key == told.findings[1].key
    desk.panel.show_data(DiagnoseData("unknown", "Unknown", headline="Nothing", recording=True))
    assert desk.panel.finding is None and desk.panel.detail.heading.title.text() == "Nothing"
    assert not desk.panel.head.verify_all.isEnabled()


def test_another_run_shows_nothing_of_the_former(desk: Desk, tmp_path: Path) -> None:
    desk.open()
    other = make_run(tmp_path / "other.stepscope", stages={"forward": 30.0, "backward": 60.0}, workers=None)
    desk.panel.runner.trouble = "old"
    desk.document.open(other)
    desk.qtbot.waitUntil(
        lambda: desk.panel.data is not None and desk.shown.word != "input_bound", timeout=WAIT)
    assert not desk.panel.progress.isVisible() and "input" not in desk.panel.verdict.word.text().lower()


def test_a_run_that_cannot_be_diagnosed_is_told_on_the_screen(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a broken run")

    monkeypatch.setattr("app.panels.diagnose.query", broken)
    desk.document.open(desk.path)
    desk.qtbot.waitUntil(lambda: "a broken run" in desk.panel.notice.text(), timeout=WAIT)
    assert desk.panel.notice.isVisible() and not desk.panel.body.isVisible()


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


def test_the_line_of_code_opens_in_the_editor_or_is_copied(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.open()
    opened: list[tuple[str, list[str]]] = []
    monkeypatch.setenv("STEPSCOPE_EDITOR", "ed1tor {file}:{line}")
    monkeypatch.setattr("app.diagnose.editor.QProcess.startDetached",
                        lambda name, args: (opened.append((name, args)), (True, 1))[1])
    desk.panel.detail.code.open.click()
    assert opened == [("ed1tor", [f"{desk.path.parent / 'train.py'}:3"])]
    (desk.path.parent / "train.py").unlink()
    with desk.qtbot.waitSignal(desk.panel.told) as told:
        desk.panel.open_code()
    assert QGuiApplication.clipboard().text() == "train.py:3" and told.args == ["Copied: train.py:3", "info"]
    assert len(opened) == 1


def test_a_narrow_window_shows_one_pane_at_a_time(desk: Desk) -> None:
    desk.open()
    body = desk.panel.body
    assert body.left.isVisible() and body.detail.isVisible() and not body.choice.isVisible()
    desk.panel.resize(1036, 640)
    desk.qtbot.waitUntil(lambda: body.choice.isVisible(), timeout=WAIT)
    assert body.left.isVisible() and not body.detail.isVisible()
    desk.qtbot.mouseClick(body.choice.button("detail"), Qt.MouseButton.LeftButton)
    assert body.detail.isVisible() and not body.left.isVisible()
    desk.panel.resize(1536, 940)
    desk.qtbot.waitUntil(lambda: body.left.isVisible(), timeout=WAIT)
    assert body.left.width() == pytest.approx(384, abs=40)


@pytest.mark.parametrize("mode", ["dark", "light"])
def test_the_charts_are_drawn_in_both_themes(desk: Desk, qapp: QApplication, mode: str) -> None:
    with Run.open(desk.path) as run:
        remedy = diagnose(run).findings[0].remedy
        assert remedy is not None
    append_result(desk.path, "experiment", RESULT | {"remedy": remedy.to_json()})
    append_result(desk.path, "ceilings", CEILINGS)
    desk.open()
    theme.apply(qapp, mode)
    detail, tokens = desk.panel.detail, theme.tokens()
    assert tokens.dark is (mode == "dark")

    def colours(widget: Any) -> set[str]:
        image: QImage = widget.grab().toImage()
        return {image.pixelColor(QPoint(x, y)).name() for x in range(0, image.width(), 2)
                for y in range(0, image.height(), 2)}

    assert tokens.ok.lower() in colours(detail.ratio) and tokens.acc.lower() in colours(detail.ratio)
    assert tokens.stages["forward"].fill.lower() in colours(detail.step)
    fills = {tokens.stages[stage].fill.lower() for stage in ("data", "other")}
    assert fills <= colours(detail.ceilings)
    assert tokens.stages["data"].fill.lower() in colours(desk.panel.left.cards.cards[0])


def test_bars_end_where_their_values_are(desk: Desk) -> None:
    desk.open()
    chart = desk.panel.detail.ceilings
    assert chart.data == CeilingsData()
    step = desk.panel.detail.step
    desk.panel.detail.step.grab()
    first = step.hints[0][0]
    told = desk.shown.step.lanes[0].spans[0]
    assert first.width() == pytest.approx(step.to_x(told.t1) - step.to_x(told.t0), abs=1)
    ratio = desk.panel.detail.ratio
    assert ratio.low < 1.0 < ratio.high and ratio.to_x(ratio.low) == ratio.plot().left()


def test_the_window_knows_the_actions_of_the_screen(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, settings_file: Path, tmp_path: Path
) -> None:
    window = open_window(qtbot, monkeypatch, settings_file)
    window.show_screen("diagnose")
    actions = window.actions_by_name
    screen: Any = window.screens["diagnose"]
    assert screen.currentWidget() is screen._empty and not actions["verify_all"].isEnabled()
    path = make_run(tmp_path / "r.stepscope", data_cpu=4.0)
    window.open_path(str(path))
    window.show_screen("diagnose")
    qtbot.waitUntil(lambda: screen.panel is not None and screen.panel.data is not None, timeout=WAIT)
    for name in ("verify", "verify_all", "ceilings", "open_code", "show_in_timeline"):
        assert actions[name].isEnabled()
        window.perform(name)  # nothing can be started again: nothing happens
    assert window.current == "timeline" and isinstance(window.selection.place, Place)
    assert window.selection.place.range_ns is not None
    window.close_run()
    assert window.selection.place.range_ns is None and screen.currentWidget() is screen._empty


def test_another_verdict_of_a_growing_run_must_be_said_twice(desk: Desk) -> None:
    desk.open()
    panel = desk.panel

    def said(word: str) -> DiagnoseData:
        return DiagnoseData(word, word, recording=True)

    panel.show_data(said("warming"))
    assert panel._agreed(said("input_bound"))  # what leads up to a verdict is none
    panel.show_data(said("input_bound"))
    assert panel._agreed(said("input_bound")) and not panel._agreed(said("host_bound"))
    assert panel._agreed(said("host_bound")) and panel._agreed(said("input_bound"))
    assert not panel._agreed(said("sync_bound")) and not panel._agreed(said("host_bound"))
