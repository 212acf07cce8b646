"""The Timeline screen by keys, menus, search and wheel, and its flame view."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QMenu

from app.actions import ENTRIES
from app.timeline.canvas import GUTTER
from app.timeline.layout import CLOSED
from tests.app.timeline_table import WAIT, Table, first, titles


def test_arrows_walk_from_span_to_span(table: Table, imported: Path) -> None:
    panel, canvas, qtbot = table.open(imported), table.panel.body.canvas, table.qtbot
    canvas.setFocus()
    panel.scene.select(first(panel, "Stream 7"))
    qtbot.keyClick(canvas, Qt.Key.Key_Left)
    assert panel.scene.selected == first(panel, "Stream 7")  # there is none before
    qtbot.keyClick(canvas, Qt.Key.Key_Right)
    assert panel.scene.selected == first(panel, "Stream 7") + 1
    qtbot.keyClick(canvas, Qt.Key.Key_Up)
    model = panel.scene.model
    assert model.lane(panel.scene.selected).title == "CPU main"
    assert "CPU main: " in canvas.accessibleDescription()
    qtbot.keyClick(canvas, Qt.Key.Key_Down)
    assert model.lane(panel.scene.selected).title == "Stream 7"
    table.settle()
    qtbot.keyClick(canvas, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: panel.body.side.pairs.hasFocus(), timeout=WAIT)


def test_keys_zoom_pan_fit_and_pin(table: Table, imported: Path) -> None:
    panel, canvas, qtbot = table.open(imported), table.panel.body.canvas, table.qtbot
    canvas.setFocus()
    whole = panel.view.span
    qtbot.keyClick(canvas, "w")
    qtbot.waitUntil(lambda: panel.view.span < whole, timeout=WAIT)
    before = panel.view.x0
    qtbot.keyClick(canvas, "d")
    qtbot.waitUntil(lambda: panel.view.x0 > before, timeout=WAIT)
    qtbot.keyClick(canvas, "a")
    qtbot.waitUntil(lambda: panel.view.x0 == pytest.approx(before), timeout=WAIT)
    qtbot.keyClick(canvas, "s")
    qtbot.keyClick(canvas, "f")
    qtbot.waitUntil(lambda: panel.view.span == pytest.approx(whole), timeout=WAIT)
    panel.scene.select(first(panel, "Stream 7"))
    qtbot.keyClick(canvas, "p")
    qtbot.waitUntil(lambda: titles(panel)[0] == "Stream 7", timeout=WAIT)
    qtbot.keyClick(canvas, ".")
    qtbot.waitUntil(lambda: panel.scene.region is not None, timeout=WAIT)
    qtbot.keyClick(canvas, "r")
    span, model = panel.scene.selected, panel.scene.model
    qtbot.waitUntil(lambda: panel.scene.region == (model.start[span], model.end[span]), timeout=WAIT)


def test_the_menu_of_a_lane_folds_pins_and_hides_it(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    panel.scene.select(first(panel, "Stream 7"))
    asked: list[tuple[object, QPoint]] = []
    panel.body.canvas.menu_wanted.connect(lambda placed, at: asked.append((placed, at)))
    canvas = panel.body.canvas
    at = QPoint(1, 1)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, at, canvas.mapToGlobal(at))
    QApplication.sendEvent(canvas, event)
    assert len(asked) == 1
    for text, wanted in (("Pin", lambda: titles(panel)[0] == "Stream 7"),
                         ("Fold", lambda: panel.scene.placed[0].state == CLOSED),
                         ("Hide", lambda: "Stream 7" not in titles(panel))):
        placed = next(p for p in panel.scene.placed if p.strip.title == "Stream 7")
        panel.show_menu(placed, QPoint(5, 5))
        menu = panel.findChildren(QMenu)[-1]
        next(action for action in menu.actions() if action.text() == text).trigger()
        menu.close()
        assert wanted(), text


def test_every_action_of_the_menu_is_one_of_the_panel(table: Table) -> None:
    names = [entry.name.partition(":")[2] for entry in ENTRIES if entry.name.startswith("timeline:")]
    assert names and all(callable(getattr(table.panel, name)) for name in names)


def test_the_wheel_zooms_at_the_cursor(table: Table, imported: Path) -> None:
    panel, canvas = table.open(imported), table.panel.body.canvas
    panel.view.show_range(1e6, 3e6)
    at = QPointF(GUTTER + 300, 60)
    t, span = canvas.make_frame().t(at.x()), panel.view.span
    wheel = QWheelEvent(at, canvas.mapToGlobal(at), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
                        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(canvas, wheel)
    assert panel.view.span < span
    assert canvas.make_frame().t(at.x()) == pytest.approx(t, abs=2 * canvas.make_frame().ns_per_px)


def test_a_search_counts_and_goes_to_its_hits(table: Table, imported: Path) -> None:
    panel, tools, qtbot = table.open(imported), table.panel.body.tools, table.qtbot
    panel.focus_search()
    qtbot.keyClicks(tools.field, "relu_kernel")
    assert tools.count.text() == "240 found" and len(panel.scene.found) == 240
    qtbot.keyClick(tools.field, Qt.Key.Key_Return)
    assert panel.scene.model.text(panel.scene.selected) == "relu_kernel"
    chosen, count = panel.scene.selected, tools.count.text()
    qtbot.keyClick(tools.field, Qt.Key.Key_Return)
    assert panel.scene.selected == chosen + 1 and tools.count.text() != count
    qtbot.keyClick(tools.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert panel.scene.selected == chosen and tools.count.text() == count
    assert panel.view.x0 <= panel.scene.model.start[chosen] <= panel.view.x1
    qtbot.keyClick(tools.field, Qt.Key.Key_Escape)
    assert not panel.scene.searching and tools.count.isHidden()


def test_lanes_are_hidden_and_found_again(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    span = first(panel, "Stream 7")
    key = next(p.strip.key for p in panel.scene.placed if p.strip.title == "Stream 7")
    panel.body.tools._show({key}, False)
    assert "Stream 7" not in titles(panel) and panel.body.tools.lanes.text() == "4 of 5 lanes"
    panel.body.tools._fill_menu()
    assert any(a.isCheckable() and not a.isChecked() for a in panel.body.tools.menu.actions())
    panel.show_span(span)  # as a hit of a search does
    assert "Stream 7" in titles(panel) and panel.body.tools.lanes.text() == "All lanes"


def test_marks_come_and_go(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    panel.body.canvas.pointer = None
    panel.mark()
    assert len(panel.scene.marks) == 1
    panel.mark()
    assert not panel.scene.marks


def test_the_flame_view_shows_the_region(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    panel.next_step()
    table.settle()
    found = panel.body.flame.rows.flame
    assert (found.x0, found.x1) == panel.scene.region and found.rows
    panel.body.flame.order.button("heavy").click()
    table.settle()
    heavy = panel.body.flame.rows.flame
    names = [panel.scene.model.names[int(code)] for code in heavy.names[0]]
    assert "aten::relu" in names and heavy.counts[0][names.index("aten::relu")] == 20
    panel.body.flame.order.button("modules").click()
    table.settle()
    assert not panel.body.flame.rows.flame.rows and "no modules" in panel.body.flame.rows.reason
