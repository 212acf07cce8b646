"""The Timeline screen on an imported run: what is shown equals the analysis; mouse, theme, size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app import theme
from app.panels.timeline import TimelinePanel
from app.selection import Place
from app.timeline.canvas import GUTTER
from profiler.analysis.trace.breakdown.partition import partition
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.words import class_title
from tests.app.timeline_table import WAIT, Table, click, first, line, middle, titles


def test_lanes_of_an_imported_trace(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    assert titles(panel) == ["Steps", "CPU main", "Stream 7", "Allocated", "Device lag"]
    start, end = panel.scene.steps()
    trace = line().trace()
    facts = TraceFacts(trace, what_if=False)
    assert np.array_equal(end - start, facts.found.end - facts.found.start)
    stream = next(placed.strip for placed in panel.scene.placed if placed.strip.kind == "stream")
    kernels = panel.scene.model.rows[stream.first]
    assert np.array_equal(kernels.end - kernels.start, trace.device.end - trace.device.start)
    assert panel.view.x0 <= start[0] and panel.view.x1 >= end[-1]  # it is fitted
    assert "12" in panel.body.mini._length() and not panel.body.notice()


def test_a_step_is_answered_with_the_partition_of_the_analysis(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    for _ in range(4):
        panel.next_step()
    table.settle()
    told = panel.body.side.region
    assert told is not None and told.title == "step #13" and told.verdict == "Input-bound"
    facts = TraceFacts(line().trace(), what_if=False)
    part = partition(facts.joined, facts.found)
    row = facts.found.number.tolist().index(13)
    wanted = {class_title(name): int(ns) for name, ns in zip(part.classes, part.ns[row]) if ns > 0}
    assert facts.steady.kind == "host"  # else its windows are others
    assert {p.name: p.ns for p in told.parts} == wanted
    assert sum(p.ns for p in told.parts) == told.window
    texts = [label.text() for label in panel.body.side.findChildren(QLabel)]
    assert "Input-bound" in texts and any("without compute: data wait" in text for text in texts)
    shown = panel.body.side.parts.model_
    assert shown.rows[-1].name == "window" and shown.columns[2].text(shown.rows[-1]) == "100.0\u00a0%"
    assert panel.scene.region_title == "step #13"
    panel.previous_step()
    table.settle()
    assert panel.body.side.region.title == "step #12"


def test_a_drag_selects_a_region_and_escape_clears_it(table: Table, imported: Path) -> None:
    panel, canvas = table.open(imported), table.panel.body.canvas
    left, right = QPoint(GUTTER + 200, 60), QPoint(GUTTER + 700, 60)
    table.qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=left)
    table.qtbot.mouseMove(canvas, QPoint(GUTTER + 400, 60))
    table.qtbot.mouseMove(canvas, right)
    table.qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=right)
    drawn = canvas.make_frame()
    assert panel.scene.region == (round(drawn.t(left.x())), round(drawn.t(right.x())))
    table.settle()
    assert panel.body.side.region is not None and panel.body.side.region.parts
    info = table.document.info
    assert info is not None
    wanted = tuple(info.start_ns + t for t in panel.scene.region)
    table.qtbot.waitUntil(lambda: table.selection.place.range_ns == wanted, timeout=WAIT)
    canvas.setFocus()
    table.qtbot.keyClick(canvas, Qt.Key.Key_Escape)
    table.settle()
    assert panel.scene.region is None and panel.body.side.region is None
    table.qtbot.waitUntil(lambda: table.selection.place.range_ns is None, timeout=WAIT)
    table.selection.back()  # what is chosen elsewhere is shown here
    assert panel.scene.region == tuple(t - info.start_ns for t in wanted)


def test_what_another_screen_chose_is_shown(table: Table, imported: Path, qtbot: QtBot) -> None:
    panel = table.open(imported)
    start, end = panel.scene.steps()
    info = table.document.info
    assert info is not None
    place = Place((info.start_ns + int(start[2]), info.start_ns + int(end[2])))
    table.selection.choose(place)
    table.settle()
    assert panel.scene.region == (start[2], end[2])
    assert panel.body.side.region is not None and panel.body.side.region.title == "step #12"
    late = TimelinePanel(table.document, table.selection)  # made after it was chosen
    qtbot.addWidget(late)
    late.show()
    qtbot.waitUntil(lambda: late.scene.region == (start[2], end[2]), timeout=WAIT)
    qtbot.waitUntil(lambda: not late._tell.isActive(), timeout=WAIT)
    assert table.selection.place == place
    late.shut_down()


def test_a_kernel_tells_what_launched_it(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    panel.next_step()
    panel.fit()
    span = first(panel, "Stream 7") + 3
    click(table, middle(panel, span))
    assert panel.scene.selected == span
    told = panel.body.side.details
    assert told is not None and told.title == "relu_kernel" and told.kind == "kernel"
    pairs = dict(told.pairs)
    trace = line().trace()
    facts = TraceFacts(trace, what_if=False)
    launch = int(facts.joined.launch[3])
    delay = int(trace.device.start[3] - trace.host.start[launch])
    assert pairs["Duration"] == "20.0\u00a0us" and pairs["Launch to start"] == f"{delay / 1000:.1f}\u00a0us"
    assert pairs["Operator"] == "aten::relu" and pairs["Grid, block"] == "132, 256"
    assert len(panel.scene.links) == 1
    cause, effect = panel.scene.links[0]
    model = panel.scene.model
    assert effect == span and model.text(cause) == "cudaLaunchKernel"
    assert model.start[span] - model.start[cause] == delay
    assert panel.body.side.span_head.title.text() == "Selected kernel"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_it_is_drawn_in_both_themes_and_any_size(table: Table, imported: Path, qapp: QApplication,
                                                 mode: str) -> None:
    panel = table.open(imported)
    theme.apply(qapp, mode)
    panel.next_step()
    panel.scene.select(first(panel, "Stream 7"))
    table.settle()
    for size in ((1536, 940), (1036, 620), (2400, 1200)):
        panel.resize(*size)
        image = panel.body.canvas.grab().toImage()
        look = theme.tokens()
        seen = {image.pixelColor(x, y).name().upper() for x in range(GUTTER, image.width() - 12, 3)
                for y in range(0, image.height(), 3)}
        assert look.stages["data"].fill in seen and look.stages["forward"].fill in seen
    panel.resize(1036, 620)
    assert not panel.body.side.isVisible()  # lanes and side pane take turns
    panel.body.canvas.details_wanted.emit()
    assert panel.body.side.isVisible() and not panel.body.canvas.isVisible()
