"""A Live panel on a desk of its own, with the document and the recorder that it shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.document import Document
from app.panels.live import LivePanel
from app.recorder import Recorder
from app.widgets.chart_row import ChartRow
from app.widgets.curve import CurveRow
from app.widgets.folded_row import FoldedRow
from tests.app.story import Story


class Desk:
    """`open` a run; `settle` waits until everything is shown."""

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
        self.qtbot.waitUntil(lambda: "cores" in self.rows and bool(self.panel.strip.data))
        self.settle()

    def settle(self) -> None:
        """Until every question is answered and nothing is stale."""
        asker = self.panel.asker
        keys = ("charts", "side", "verdict", "output", "moment")
        self.qtbot.waitUntil(
            lambda: not asker._stale and not any(self.document.busy(key) for key in keys))

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


@contextmanager
def growing(desk: Desk, folder: Path) -> Iterator[Story]:
    """A run at 00:20 that is being recorded, open in the panel."""
    story = Story(folder / "r.stepscope")
    story.writer.set_meta("recorder_pid", os.getpid())
    story.advance(20.0)
    desk.open(story.path)
    yield story
    story.writer.close()
