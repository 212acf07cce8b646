"""The Live panel on runs that are known: what it draws, and how it follows, pauses and answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication

from app import theme
from app.live.header import chips
from app.widgets.chart_row import ChartRow
from app.widgets.folded_row import FoldedRow
from tests.app.desk import Desk
from tests.app.story import STAGES, Story, baseline, without_gpu


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


def test_keys_of_the_panel(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    view = desk.panel.view
    view.show_range(10, 20)
    view.set_crosshair(12.0, pinned=True)
    desk.qtbot.waitUntil(lambda: desk.panel.body.side.moment.t == 12.0)
    desk.panel.activateWindow()
    desk.qtbot.waitUntil(desk.panel.isActiveWindow)
    desk.panel.body.charts.setFocus()
    desk.qtbot.keyClick(desk.panel.body.charts, Qt.Key.Key_C)
    assert QGuiApplication.clipboard().text().startswith("at\t12.00 s\n")
    desk.qtbot.keyClick(desk.panel.body.charts, Qt.Key.Key_F)
    assert (view.x0, view.x1) == (0.0, pytest.approx(46.2))
    desk.qtbot.keyClick(desk.panel.body.charts, Qt.Key.Key_Escape)
    assert view.crosshair is None


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


def _move(row: ChartRow, x: float) -> QMouseEvent:
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


def test_values_at_a_resting_crosshair_come_with_the_run(desk: Desk, live: Story) -> None:
    desk.panel.view.set_crosshair(20.6, pinned=True)
    desk.settle()
    rows = {row.name: row for row in desk.panel.body.side.moment.rows}
    assert not rows["Step"].value
    live.advance(21.5)
    desk.qtbot.waitUntil(lambda: bool(desk.panel.body.side.moment.rows[0].value))
    assert desk.panel.body.side.moment.t == 20.6


def test_one_slow_step_does_not_flatten_the_others(desk: Desk, tmp_path: Path) -> None:
    story = Story(tmp_path / "r.stepscope")
    story.advance(8.0)
    story.stages = {**story.stages, "data": 1500.0}
    story.advance(9.7)
    story.stages = STAGES
    story.advance(20.0)
    story.finish(20.0)
    desk.open(story.path)
    row = desk.row("steps")
    assert row.range is not None and 60 <= row.range.high <= 120
    remark = row.data.remarks[0]
    slowest = int(np.argmax(row.data.slowest))
    assert "1 5" in remark.text.replace("\u00a0", " ")
    assert row.data.left[slowest] < remark.x < row.data.right[slowest]


def test_remarks_never_overlap(desk: Desk, tmp_path: Path) -> None:
    story = Story(tmp_path / "r.stepscope")
    story.advance(46.2)
    power = "gpu.throttle"
    for at in range(260, 300, 8):  # several throttled times, closer than their reasons are long
        for tenth in range(4):
            story.put(power, 10 + (at + tenth) / 100, 0x20, device=story.devices[0])
    story.finish(46.2)
    desk.open(story.path)
    desk.panel.resize(1000, 900)
    desk.settle()
    for key in ("steps", "clock", "power"):
        row = desk.row(key)
        row.grab()
        boxes = row._written
        assert not any(a.intersects(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert desk.row("clock")._written
