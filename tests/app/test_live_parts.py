"""The parts of Live around the charts: devices, marks, output, how a run ended, the test of a suggestion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from app import theme
from app.live import side
from app.live.header import Chip, ending
from app.live.run_bar import RunBar
from app.live.trial import Trial
from app.live.verify import outcome_parts
from app.widgets.output_view import OPEN, OutputView
from profiler.experiments.plan import make_plan
from profiler.experiments.program import recorded_program
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from profiler.run.results import append_result
from tests.app.desk import Desk
from tests.app.story import Story, baseline
from tests.runs import START_NS, make_run


def test_a_choice_of_several_gpus(desk: Desk, tmp_path: Path) -> None:
    story = Story(tmp_path / "r.stepscope", gpus=2)
    story.advance(6)
    story.finish(6)
    desk.open(story.path)
    bar = desk.panel.bar
    assert bar.devices.isVisible() and bar.devices.currentText() == "GPU 0"
    bar.devices.setCurrentIndex(1)
    bar.devices.activated.emit(1)
    desk.settle()
    assert desk.panel.asker.device == story.devices[1]
    newest = desk.curve("power").data.lines[0].newest
    assert newest is not None and newest < 200


def test_a_mark_is_a_line_through_all_charts(desk: Desk, live: Story) -> None:
    live.event(10.0, "mark", "info", "Mark 1")
    live.writer.commit()
    desk.qtbot.waitUntil(lambda: bool(desk.row("power").marks))
    for key in ("steps", "power", "cores"):
        row = desk.row(key)
        image, x = row.grab().toImage(), round(row.to_x(10.0))
        assert image.pixelColor(x, image.height() // 2) == QColor(theme.tokens().acc), key


def test_the_ring_shows_a_focus_of_the_keyboard_only(desk: Desk) -> None:
    charts = desk.panel.body.charts
    desk.panel.activateWindow()
    desk.qtbot.waitUntil(desk.panel.isActiveWindow)
    charts.clearFocus()
    charts.setFocus(Qt.FocusReason.TabFocusReason)
    assert charts._ring.isVisible()
    span = desk.panel.view.span
    desk.qtbot.keyClick(charts, Qt.Key.Key_Up)
    assert desk.panel.view.span < span
    charts.clearFocus()
    assert not charts._ring.isVisible()


def test_an_error_is_told_once(desk: Desk, live: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    desk.document.failed.connect(told.append)
    monkeypatch.setattr(side, "query", lambda run, live: 1 // 0)
    live.advance(21.0)
    desk.qtbot.waitUntil(lambda: bool(told))
    desk.panel.asker._next.clear()
    live.advance(22.0)
    desk.qtbot.waitUntil(lambda: "side" in desk.panel.asker._next)
    assert told == ["ZeroDivisionError: integer division or modulo by zero"]


def test_the_output_unfolds_and_shows_what_was_printed(desk: Desk, live: Story) -> None:
    output = desk.panel.output
    desk.qtbot.waitUntil(lambda: f"step {live.step}/2000" in output.terminal.last)
    desk.panel.toggle_output()
    assert f"step {live.step}/2000" in output._text.toPlainText()
    live.writer.output(START_NS, b"\nlast words\n")
    live.writer.commit()
    desk.qtbot.waitUntil(lambda: "last words" in output._text.toPlainText())
    desk.panel.toggle_output()
    assert not output.open


@pytest.mark.parametrize(("end", "state", "said", "kind"), [
    ({"code": 0, "signal": None, "reason": "ended"}, "finished", "finished", "plain"),
    ({"code": 3, "signal": None, "reason": "ended"}, "partial", "exit code 3", "err"),
    ({"code": -9, "signal": "SIGKILL", "reason": "ended"}, "partial", "killed by SIGKILL", "err"),
    ({"code": 130, "signal": None, "reason": "stopped"}, "finished", "stopped", "plain"),
    (None, "partial", "partial", "warn"),
])
def test_how_the_run_ended_stands_in_the_bar(
    desk: Desk, tmp_path: Path, end: dict[str, Any] | None, state: str, said: str, kind: str
) -> None:
    desk.open(make_run(tmp_path / "r.stepscope", steps=30, meta={"exit": end}, state=state,
                       host={"host.core": 0.5}))
    info = desk.document.info
    assert info is not None
    chip = ending(info)
    assert chip is not None and (chip.text, chip.kind) == (said, kind)
    assert desk.panel.bar.ending.text() == said


def test_a_bad_end_brings_the_output_up(desk: Desk, live: Story) -> None:
    live.writer.output(START_NS, b"\nTraceback: boom\n")
    live.writer.set_meta("exit", {"code": 1, "signal": None, "reason": "ended"})
    with desk.qtbot.waitSignal(desk.document.ended):
        live.writer.finish("partial", START_NS + 20_500_000_000)
    assert desk.panel.output.open
    desk.qtbot.waitUntil(lambda: "Traceback: boom" in desk.panel.output._text.toPlainText())
    assert not desk.panel.view.following


def test_a_narrow_window_shows_one_pane_at_a_time(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    body = desk.panel.body
    assert body.charts.isVisible() and body.side.isVisible()
    desk.panel.resize(1000, 700)
    desk.qtbot.waitUntil(lambda: not body.side.isVisible())
    assert body.charts.isVisible()
    body.choice.set_value(body.side)
    body.choice.changed.emit(body.side)
    assert body.side.isVisible() and not body.charts.isVisible()
    desk.panel.resize(1536, 940)
    desk.qtbot.waitUntil(lambda: body.side.isVisible() and body.charts.isVisible())


RESULT = {
    "prediction": {"speedup": 1.85, "low": 1.7, "high": 2.0},
    "ratio": {"median": 1.84, "low": 1.79, "high": 1.9}, "outcome": "improvement", "score": "hit",
}


def test_a_stored_test_is_shown_beside_its_prediction(desk: Desk, tmp_path: Path) -> None:
    path = baseline(tmp_path / "r.stepscope", finish=True).path
    with Run.open(path) as run:
        suggested = make_plan(run, diagnose(run), program=recorded_program(run.meta)).remedy.to_json()
    append_result(path, "experiment", {**RESULT, "remedy": suggested})
    desk.open(path)
    strip = desk.panel.strip
    assert "measured 1.84\u00a0\u00d7\u00a0[1.79,\u00a01.90]" in strip._outcome.text()
    assert strip.badge.text() == "Hit" and strip.badge.isVisible()
    assert strip._try.text().startswith("Tried workers 0 \u2192 ")


@pytest.mark.parametrize(("outcome", "colour"), [
    ("improvement", "ok"), ("no difference shown", "t2"), ("unfinished", "t2"), ("regression", "err")])
def test_green_only_above_noise(outcome: str, colour: str) -> None:
    parts, badge = outcome_parts({**RESULT, "outcome": outcome, "score": "miss"})
    assert parts[1].colour == colour
    assert badge == ("Miss", "err")


def test_verify_waits_for_the_end_of_the_recording(
    desk: Desk, live: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial: Trial = desk.panel.trial
    asked: list[Path] = []
    monkeypatch.setattr(trial.verify, "start", asked.append)
    strip = desk.panel.strip
    desk.qtbot.waitUntil(strip.verify.isEnabled)
    desk.qtbot.mouseClick(strip.verify, Qt.MouseButton.LeftButton)
    assert trial.wanted and strip.verify.text() == "Will verify after stop"
    assert not asked
    with desk.qtbot.waitSignal(desk.document.ended):
        live.finish(20.5)
    assert asked == [live.path]
    trial.verify.run = live.path  # as its start would have told
    trial._on_result(RESULT)
    assert strip.badge.text() == "Hit"
    assert strip.verify.text() == "Verify again"


def test_chips_are_shown_where_there_is_room(qtbot: QtBot, dark: None) -> None:
    bar = RunBar()
    qtbot.addWidget(bar)
    bar.resize(1536, 48)
    bar.show()
    for count in (1, 4, 2, 6):  # more than before: the row gets wider while it is filled
        bar.chips.show_chips([Chip(f"chip {i}") for i in range(count)])
        qtbot.waitUntil(lambda: all(chip.isVisible() for chip in bar.chips._widgets))
    bar.resize(500, 48)
    qtbot.waitUntil(lambda: not bar.chips._widgets[-1].isVisible())


def test_the_end_of_the_output_stays_in_view(qtbot: QtBot, dark: None) -> None:
    view = OutputView()
    qtbot.addWidget(view)
    view.resize(800, 400)
    view.show()
    view.set_input(True)
    view.toggle()
    qtbot.waitUntil(lambda: view._body.height() == OPEN)
    view.feed(b"".join(b"line %d\r\n" % i for i in range(60)))
    view.refresh()
    bar = view._text.verticalScrollBar()
    for height in (300, 380):
        view.resize(800, height)
        assert bar.value() == bar.maximum()
