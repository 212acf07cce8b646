"""The Live panel on runs that are known: what it draws, and how it follows, pauses and answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.document import Document
from app.live.header import chips, ending
from app.live.trial import Trial
from app.live.verify import outcome_parts
from app.panels.live import LivePanel
from app.recorder import Recorder
from app.widgets.chart_row import ChartRow
from app.widgets.curve import CurveRow
from app.widgets.folded_row import FoldedRow
from profiler.run.results import append_result
from tests.app.story import Story, baseline, without_gpu
from tests.runs import START_NS, make_run


class Desk:
    """A panel with the document and the recorder it shows."""

    def __init__(self, qtbot: QtBot) -> None:
        self.qtbot = qtbot
        self.document, self.recorder = Document(), Recorder()
        self.panel = LivePanel(self.document, self.recorder)
        qtbot.addWidget(self.panel)
        self.panel.resize(1536, 940)
        self.panel.show()

    def open(self, path: Path) -> None:
        with self.qtbot.waitSignal(self.document.opened):
            self.document.open(path)
        self.qtbot.waitUntil(lambda: "cores" in self.rows and bool(self.panel.strip.data), timeout=15_000)
        self.settle()

    def settle(self) -> None:
        """Until every question is answered and nothing is stale."""
        asker = self.panel.asker
        keys = ("charts", "side", "verdict", "output", "moment")
        self.qtbot.waitUntil(
            lambda: not asker._stale and not any(self.document.busy(key) for key in keys), timeout=15_000)

    @property
    def rows(self) -> dict[str, ChartRow | FoldedRow]:
        return self.panel.body.charts.rows

    def row(self, key: str) -> ChartRow:
        row = self.rows[key]
        assert isinstance(row, ChartRow)
        return row

    def curve(self, key: str) -> CurveRow:
        row = self.rows[key]
        assert isinstance(row, CurveRow)
        return row

    def close(self) -> None:
        self.panel.shut_down()
        self.recorder.shutdown()
        self.document.shutdown()


@pytest.fixture
def desk(qtbot: QtBot, dark: None) -> Iterator[Desk]:
    result = Desk(qtbot)
    yield result
    result.close()


@pytest.fixture
def live(desk: Desk, tmp_path: Path) -> Iterator[Story]:
    """A run at 00:20 that is being recorded, open in the panel."""
    story = Story(tmp_path / "r.stepscope")
    story.writer.set_meta("recorder_pid", os.getpid())
    story.advance(20.0)
    desk.open(story.path)
    yield story
    story.writer.close()


def wheel(row: ChartRow, x: float, notches: int) -> None:
    event = QWheelEvent(QPointF(x, 20), QPointF(row.mapToGlobal(QPoint(round(x), 20))), QPoint(0, 0),
                        QPoint(0, 120 * notches), Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
                        Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(row, event)


def test_a_finished_run_is_shown_whole_without_live_controls(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    bar, strip = desk.panel.bar, desk.panel.strip
    assert (desk.panel.view.x0, desk.panel.view.x1) == (0.0, pytest.approx(46.2))
    for button in (bar.following, bar.pause, bar.mark, bar.trace, bar.stop):
        assert not button.isVisible()
    assert bar.name.text() == "resnet50 baseline"
    assert bar.ending.text() == "finished"
    assert "step 809 of 2\u00a0000" in bar.progress.text()
    assert strip.data is not None and strip.data.word == "input_bound"
    assert "whole run" in strip._age.text()
    assert strip.verify.text() == "Verify" and strip.verify.isEnabled()
    assert desk.panel.body.side.data.stages[0].host == "36.3"


def test_a_growing_run_is_followed(desk: Desk, live: Story) -> None:
    view, bar = desk.panel.view, desk.panel.bar
    assert view.following and bar.following.isChecked()
    assert bar.pause.isVisible() and not bar.stop.isVisible()  # it is not ours to stop
    before = desk.panel.body.charts.renders()
    live.advance(35.0)
    desk.qtbot.waitUntil(lambda: view.x1 > 34.5 and desk.panel.body.charts.renders() > before)
    desk.qtbot.waitUntil(lambda: f"step {live.step} " in desk.panel.bar.progress.text())


def test_a_paused_view_stands_still_and_goes_on_at_the_live_end(desk: Desk, live: Story) -> None:
    view, bar = desk.panel.view, desk.panel.bar
    desk.panel.toggle_pause()
    assert bar.pause.text() == "Resume view"
    held = (view.x0, view.x1)
    step = bar.progress.text()
    live.advance(40.0)
    desk.qtbot.waitUntil(lambda: desk.document.info is not None and desk.document.info.seconds > 39)
    renders = desk.panel.body.charts.renders()
    for _ in range(5):
        desk.panel.asker.tick()
        QApplication.processEvents()
    assert (view.x0, view.x1) == held
    assert desk.panel.body.charts.renders() == renders
    assert bar.progress.text() == step
    desk.panel.toggle_pause()
    desk.qtbot.waitUntil(lambda: view.x1 > 39 and bar.progress.text() != step)
    assert view.following


def test_the_wheel_zooms_at_the_pointer_and_following_keeps_the_zoom(desk: Desk, live: Story) -> None:
    view, row = desk.panel.view, desk.row("power")
    x = row.plot_rect().left() + 200
    at = row.to_seconds(x)
    wheel(row, x, 3)
    assert not view.following
    assert row.to_seconds(x) == pytest.approx(at)
    span = view.span
    assert span == pytest.approx(30 / 1.25**3)
    assert desk.panel.bar.following.text() == "Go to live"
    desk.qtbot.mouseClick(desk.panel.bar.following, Qt.MouseButton.LeftButton)
    assert view.following and view.span == pytest.approx(span)
    wheel(row, 20, 1)  # over the gutter
    assert view.span == pytest.approx(span)


def test_a_drag_pans_and_a_click_pins_the_crosshair(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    view, row, bot = desk.panel.view, desk.row("power"), desk.qtbot
    left = round(row.plot_rect().left())
    view.show_range(10, 20)
    bot.mousePress(row, Qt.MouseButton.LeftButton, pos=QPoint(left + 300, 20))
    bot.mouseMove(row, QPoint(left + 200, 20))
    QApplication.sendEvent(row, _move(row, left + 200))
    bot.mouseRelease(row, Qt.MouseButton.LeftButton, pos=QPoint(left + 200, 20))
    assert view.x0 > 10.5
    assert view.crosshair is None or not view.pinned
    bot.mouseClick(row, Qt.MouseButton.LeftButton, pos=QPoint(left + 100, 20))
    assert view.pinned and view.crosshair == pytest.approx(row.to_seconds(left + 100))
    desk.qtbot.waitUntil(lambda: desk.panel.body.side.moment.t == view.crosshair)
    assert desk.panel.body.side._moment.header.title.text() == "At the crosshair"
    bot.mouseClick(row, Qt.MouseButton.LeftButton, pos=QPoint(left + 100, 20))
    assert not view.pinned


def _move(row: ChartRow, x: float) -> Any:
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QMouseEvent

    at = QPointF(x, 20)
    return QMouseEvent(QEvent.Type.MouseMove, at, QPointF(row.mapToGlobal(at)), Qt.MouseButton.NoButton,
                       Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)


def test_one_crosshair_crosses_all_charts_and_draws_nothing_anew(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    desk.panel.grab()
    renders = desk.panel.body.charts.renders()
    desk.panel.view.set_crosshair(25.0, pinned=True)
    images = {}
    for key, row in desk.rows.items():
        images[key] = row.grab().toImage()
        x = round(row.to_x(25.0)) if isinstance(row, ChartRow) else 0
        column = [images[key].pixelColor(x, y) for y in range(images[key].height())]
        assert sum(c == QColor(theme.tokens().t1) for c in column) > 0.3 * len(column), key
    assert desk.panel.body.charts.renders() == renders
    assert desk.curve("clock").dots(25.0) == [(1755.0, "m1")]
    desk.panel.body.side.show_moment(desk.panel.body.side.moment, 30)
    desk.qtbot.waitUntil(lambda: desk.panel.body.side.moment.t == 25.0)
    desk.panel.copy_moment()
    text = QGuiApplication.clipboard().text()
    assert text.startswith("at\t25.00 s\nStep\t")
    assert "1 755 MHz" in text


def test_a_gap_is_drawn_as_a_break(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    row = desk.curve("pcie")
    image = row.grab().toImage()
    m1 = QColor(theme.tokens().m1)
    plot = row.plot_rect()

    def drawn(seconds: float) -> bool:
        x = round(row.to_x(seconds))
        return any(image.pixelColor(x, y) == m1 for y in range(int(plot.top()), int(plot.bottom())))

    assert drawn(28.0) and drawn(31.0)
    assert not drawn(29.7)


def test_without_a_gpu_the_rows_are_folded_and_the_pane_says_what_works(desk: Desk, tmp_path: Path) -> None:
    story = without_gpu(tmp_path / "r.stepscope")
    story.finish(30.0)
    desk.open(story.path)
    folded = [row for row in desk.rows.values() if isinstance(row, FoldedRow)]
    assert [row.title for row in folded] == ["GPU activity", "GPU memory", "Power, SM clock", "PCIe"]
    assert "libnvidia-ml.so.1 not found" in folded[0].reason
    assert desk.panel.body.side.no_gpu.isVisibleTo(desk.panel)
    assert [c.text for c in chips(desk.document.info)][-1] == "CPU"  # type: ignore[arg-type]


def test_names_of_charts_stand_there_before_the_run(desk: Desk) -> None:
    assert list(desk.rows) == ["steps", "cores", "host"]
    assert desk.panel.strip.data is not None and desk.panel.strip.data.title == "Starting"


def test_nothing_is_drawn_while_nothing_changes(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    desk.panel.grab()
    renders = desk.panel.body.charts.renders()
    for _ in range(10):
        desk.panel.asker.tick()
        QApplication.processEvents()
    assert desk.panel.body.charts.renders() == renders


def test_a_hidden_panel_asks_nothing(desk: Desk, live: Story) -> None:
    desk.panel.hide()
    assert not desk.panel.asker._timer.isActive()
    desk.panel.show()
    assert desk.panel.asker._timer.isActive()


def test_both_themes_draw_the_stages_in_their_fills(desk: Desk, tmp_path: Path, qapp: QApplication) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    row = desk.row("steps")
    x, y = round(row.to_x(20.0)), round(row.to_y(15.0))
    for mode in ("light", "dark"):
        theme.apply(qapp, mode)
        image = row.grab().toImage()
        area = [image.pixelColor(x + i, y + j).name().upper() for i in range(8) for j in range(8)]
        assert theme.tokens().stages["data"].fill in area


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
    body._choice.set_value("side")
    body._choice.changed.emit("side")
    assert body.side.isVisible() and not body.charts.isVisible()
    desk.panel.resize(1536, 940)
    desk.qtbot.waitUntil(lambda: body.side.isVisible() and body.charts.isVisible())


RESULT = {
    "prediction": {"speedup": 1.85, "low": 1.7, "high": 2.0},
    "ratio": {"median": 1.84, "low": 1.79, "high": 1.9}, "outcome": "hit", "pairs": 5,
}


def test_a_stored_test_is_shown_beside_its_prediction(desk: Desk, tmp_path: Path) -> None:
    path = baseline(tmp_path / "r.stepscope", finish=True).path
    append_result(path, "experiment", RESULT)
    desk.open(path)
    strip = desk.panel.strip
    assert "measured 1.84\u00a0\u00d7\u00a0[1.79,\u00a01.90]" in strip._outcome.text()
    assert strip.badge.text() == "Hit" and strip.badge.isVisible()


@pytest.mark.parametrize(("low", "high", "colour"), [(1.79, 1.9, "ok"), (0.9, 1.1, "t2"), (0.8, 0.9, "err")])
def test_green_only_above_noise(low: float, high: float, colour: str) -> None:
    ratio = {"median": (low + high) / 2, "low": low, "high": high}
    parts, badge = outcome_parts({**RESULT, "ratio": ratio, "outcome": "miss"})
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
    trial._on_result(RESULT)
    assert strip.badge.text() == "Hit"
    assert strip.verify.text() == "Verify again"
