"""A Timeline panel on a table of its own, with the document that it shows, and the run most tests show."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app.document import Document
from app.panels.timeline import TimelinePanel
from app.selection import Selection
from app.timeline import frame
from profiler.cli import main
from tests.rules.trace.loops import loop
from tests.traces import Timeline

WAIT = 60_000  # ms


def line() -> Timeline:
    """Twelve steps that wait for data, numbered from 10, with twenty kernels each."""
    return loop(12, wait_us=400).memory(1000, 512, allocated=2048, reserved=4096)


def import_line(folder: Path) -> Path:
    """A run made from it."""
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
