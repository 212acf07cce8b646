"""The Timeline screen on an imported run, a recorded one with and without a trace, and a growing one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app import theme
from app.document import Document
from app.panels.timeline import TimelinePanel
from app.selection import Place, Selection
from app.timeline import frame
from app.timeline.canvas import GUTTER
from profiler.analysis.trace.breakdown.partition import partition
from profiler.cli import main
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.words import class_title
from tests.app.story import Story
from tests.cli.test_diagnose_trace import GPU, with_trace
from tests.rules.trace.loops import loop
from tests.runs import START_NS, make_run
from tests.traces import Timeline

WAIT = 60_000  # ms


def line() -> Timeline:
    return loop(12, wait_us=400).memory(1000, 512, allocated=2048, reserved=4096)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timeline")
    assert main(["import", str(line().save(folder / "t.json.gz")), "-o", str(folder / "t.stepscope")]) == 0
    return folder / "t.stepscope"


class Table:
    """A panel of its own with the document that it shows."""

    def __init__(self, qtbot: QtBot) -> None:
        self.qtbot, self.document, self.selection = qtbot, Document(), Selection()
        self.panel = TimelinePanel(self.document, self.selection)
        qtbot.addWidget(self.panel)
        self.panel.resize(1536, 940)
        self.panel.show()

    def open(self, path: Path, trace: bool = True) -> TimelinePanel:
        with self.qtbot.waitSignal(self.document.opened, timeout=WAIT):
            self.document.open(path)
        panel = self.panel
        self.qtbot.waitUntil(lambda: bool(panel.scene.model.traced) if trace else bool(panel.scene.placed),
                             timeout=WAIT)
        self.settle()
        return panel

    def settle(self) -> None:
        keys = ("timeline", "timeline-counters", "timeline-flame", "timeline-region")
        self.qtbot.waitUntil(
            lambda: not self.panel._wait.isActive() and not any(map(self.document.busy, keys))
            and not any(map(self.panel.helper.busy, ("region", "span"))), timeout=WAIT)

    def close(self) -> None:
        self.panel.shut_down()
        self.document.shutdown()


@pytest.fixture
def table(qtbot: QtBot, dark: None) -> Iterator[Table]:
    result = Table(qtbot)
    yield result
    result.close()


def titles(panel: TimelinePanel) -> list[str]:
    return [placed.strip.title for placed in panel.scene.placed]


def first(panel: TimelinePanel, title: str, row: int = 0) -> int:
    """The first span of a row of a lane."""
    lane = next(lane for lane in panel.scene.model.lanes if lane.title == title)
    return int(panel.scene.model.edges[lane.first + row])


def middle(panel: TimelinePanel, span: int) -> QPoint:
    box = frame.box_of(panel.body.canvas.make_frame(), span)
    assert box is not None
    return box.center().toPoint()


def click(table: Table, at: QPoint) -> None:
    table.qtbot.mouseClick(table.panel.body.canvas, Qt.MouseButton.LeftButton, pos=at)
    table.settle()


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


def test_what_another_screen_chose_is_shown_when_the_run_opens(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    start, end = panel.scene.steps()
    info = table.document.info
    assert info is not None
    table.selection.choose(Place((info.start_ns + int(start[2]), info.start_ns + int(end[2]))))
    table.settle()
    assert panel.scene.region == (start[2], end[2])
    assert panel.body.side.region is not None and panel.body.side.region.title == "step #12"


def test_a_kernel_tells_what_launched_it(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    panel.next_step()
    panel.fit()
    span = first(panel, "Stream 7") + 3
    click(table, middle(panel, span))
    assert panel.scene.selected == span
    told = panel.body.side.details
    assert told is not None and told.title == "relu_kernel" and told.kind == "kernel"
    pairs = {label: value for label, value, _ in told.pairs}
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
    assert model.lanes[model.lane_of(model.row_of(panel.scene.selected))].title == "CPU main"
    assert "CPU main: " in canvas.accessibleDescription()
    qtbot.keyClick(canvas, Qt.Key.Key_Down)
    assert model.lanes[model.lane_of(model.row_of(panel.scene.selected))].title == "Stream 7"
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


def test_a_run_without_a_trace_shows_the_stages_of_the_probe(table: Table, tmp_path: Path) -> None:
    run = make_run(tmp_path / "r.stepscope", steps=40, gpu={"gpu.util": 0.3, "gpu.power": 210.0})
    panel = table.open(run, trace=False)
    table.qtbot.waitUntil(lambda: "Power" in titles(panel), timeout=WAIT)
    assert titles(panel)[:2] == ["Steps", "Stages"] and "Utilization" in titles(panel)
    assert panel.body.notice().startswith("No trace in this run")
    panel.next_step()
    table.settle()
    told = panel.body.side.region
    assert told is not None and not told.verdict  # stages make no verdict of a region
    assert {p.name: p.ns / 1e6 for p in told.parts}["data wait"] == pytest.approx(36.2)
    assert sum(p.ns for p in told.parts) == told.window
    start, end = panel.scene.steps()
    panel.scene.choose_region((int(start[3]), int(end[7])))
    table.settle()
    assert panel.body.side.region.title == "5 steps"
    panel.scene.choose_region((int(start[3]) + 10, int(end[3]) - 10))
    table.settle()
    assert panel.body.side.region.title == "no whole step"


def test_traces_and_the_probe_share_a_clock(table: Table, tmp_path: Path) -> None:
    path = with_trace(tmp_path / "a.stepscope", loop(6, wait_us=400), **GPU)
    panel = table.open(path)
    assert titles(panel)[:4] == ["Steps", "Stages", "Steps, trace", "CPU main"]
    shift = int(panel.scene.model.start[first(panel, "Steps, trace")])
    trace = loop(6, wait_us=400).trace()
    assert shift == trace.base_ns + TraceFacts(trace, what_if=False).found.start[0] - START_NS
    second = first(panel, "Steps, trace") + 1
    start, end = int(panel.scene.model.start[second]), int(panel.scene.model.end[second])
    panel.scene.choose_region((start, end))
    table.settle()
    told = panel.body.side.region
    assert (told.t0, told.t1, told.title) == (start, end, "step #11") and told.verdict == "Input-bound"


def test_a_growing_run_grows_and_keeps_what_is_chosen(table: Table, tmp_path: Path) -> None:
    story = Story(tmp_path / "g.stepscope", cpu_only=True)
    story.writer.set_meta("recorder_pid", os.getpid())
    story.advance(8.0)
    panel = table.open(story.path, trace=False)
    table.qtbot.waitUntil(lambda: len(panel.scene.model) > 0, timeout=WAIT)
    panel.next_step()
    panel.scene.select(first(panel, "Stages") + 2)
    before, text = len(panel.scene.model), panel.scene.model.text(panel.scene.selected)
    start, region = int(panel.scene.model.start[panel.scene.selected]), panel.scene.region
    story.advance(12.0)
    table.qtbot.waitUntil(lambda: len(panel.scene.model) > before, timeout=WAIT)
    model = panel.scene.model
    assert panel.scene.region == region
    assert model.text(panel.scene.selected) == text and model.start[panel.scene.selected] == start
    story.finish(12.0)
    story.writer.close()


def test_a_trace_that_cannot_be_read_is_told(table: Table, tmp_path: Path) -> None:
    path = with_trace(tmp_path / "b.stepscope", loop(), valid=False, **GPU)
    panel = table.open(path, trace=False)
    table.qtbot.waitUntil(lambda: "0.trace.json" in panel.body.notice(), timeout=WAIT)
    assert titles(panel)[:2] == ["Steps", "Stages"]  # the rest is there


def test_an_empty_run_says_what_is_missing(table: Table, tmp_path: Path) -> None:
    path = make_run(tmp_path / "e.stepscope", steps=0)
    with table.qtbot.waitSignal(table.document.opened, timeout=WAIT):
        table.document.open(path)
    table.qtbot.waitUntil(lambda: "neither a trace nor steps" in table.panel.body.notice(), timeout=WAIT)
    for do in (table.panel.next_step, table.panel.fit, table.panel.pin, table.panel.mark):
        do()
    table.panel.body.canvas.walk(1, 0)
    table.panel.grab()


def test_a_reader_that_dies_is_told_and_the_rest_works(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    assert panel.helper._process is not None
    panel.helper._process.kill()
    table.qtbot.waitUntil(lambda: panel.body.notice().startswith("The trace cannot be shown"), timeout=WAIT)
    panel.next_step()
    table.settle()
    assert panel.body.side.region is not None
