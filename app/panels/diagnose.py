"""Diagnose: ranked findings, the evidence for and against each, and what a test of its remedy measured."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.diagnose.body import DiagnoseBody
from app.diagnose.data import Code, DiagnoseData, FindingData
from app.diagnose.editor import open_code
from app.diagnose.head import Progress, RunHead, VerdictLine
from app.diagnose.query import query
from app.diagnose.runner import Runner, Score
from app.document import Document
from app.live.header import chips
from app.live.state import Live
from app.selection import Place, Selection
from app.widgets.basic import label
from app.widgets.notice import Notice
from profiler.errors import ProfilerError

EVERY_S, SHARE = 3.0, 8.0  # between two looks at a growing run; in lengths of the question
UNSETTLED = ("waiting", "warming", "watching")
KEPT = 50  # results that could not be kept in the run


class DiagnosePanel(QWidget):
    """Asks the document, hands the answer to its parts, and has tested what the user asks for."""

    screen_wanted = Signal(str)
    report_wanted = Signal()
    trace_wanted = Signal()
    told = Signal(str, str)  # text, tone

    def __init__(self, document: Document, selection: Selection, editor: str = "") -> None:
        super().__init__()
        self.document, self.selection, self.editor = document, selection, editor
        self.data: DiagnoseData | None = None
        self.key = ""  # of the chosen finding
        self._live, self._measured = Live(), list[Mapping[str, Any]]()
        self._stale, self._next, self._asked_analysis = True, 0.0, False
        self.runner, self.score = Runner(document, self), Score(self)
        self.head, self.verdict, self.progress = RunHead(), VerdictLine(), Progress()
        self.body, self.notice = DiagnoseBody(), Notice()
        self.left, self.detail = self.body.left, self.body.detail
        self._timer = QTimer(self, interval=250)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for widget in (self.head, self.verdict, self.progress):
            box.addWidget(widget)
        self._reading = label("Reading the run", "hint")
        self._reading.setAlignment(Qt.AlignmentFlag.AlignCenter)
        box.addWidget(self._reading, 1)
        box.addWidget(self.body, 1)
        box.addWidget(self.notice)
        self._connect()
        self._on_opened()

    def _connect(self) -> None:
        self._timer.timeout.connect(self._tick)
        self.document.opened.connect(self._on_opened)
        self.document.grew.connect(self._on_grew)
        self.document.ended.connect(self._on_grew)
        self.runner.changed.connect(self._show_state)
        self.runner.measured.connect(self._on_measured)
        self.score.told.connect(self.left.show_score)
        self.selection.changed.connect(self._on_selected)
        self.left.cards.chosen.connect(self.choose)
        self.left.cards.opened.connect(self._open_finding)
        self.left.cards.verify_pressed.connect(lambda key: self.runner.verify([key]))
        self.head.verify_all_pressed.connect(self.verify_all)
        self.head.report_pressed.connect(self.report_wanted)
        self.progress.cancel_pressed.connect(self._end_or_close)
        heading = self.detail.heading
        heading.timeline_pressed.connect(self.show_in_timeline)
        heading.ceilings_pressed.connect(self.ceilings)
        heading.verify_pressed.connect(self.verify)
        self.detail.code.open_pressed.connect(self._open_code)
        self.detail.trace_wanted.connect(self.trace_wanted)
        self.detail.analysis_wanted.connect(self.runner.analyse)

    # What is shown.

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()
        self._tick()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def _on_opened(self, *_: object) -> None:
        """Another run: nothing is known of it."""
        self._live, self._measured = Live(), []
        self._said = ""
        self.data, self.key, self._next, self._asked_analysis = None, "", 0.0, False
        self.notice.hide()
        self._reading.setText("Reading the run")
        self.runner.trouble = ""
        self._show_body(False)
        self._on_grew()
        if self.isVisible():
            self._tick()

    def _show_body(self, shown: bool) -> None:
        """No frames without contents: until the first answer there is one line."""
        for widget in (self.verdict, self.body):
            widget.setVisible(shown)
        self._reading.setVisible(not shown)

    def _on_grew(self) -> None:
        self._stale = True
        if not self.document.recording:
            self._next = 0.0

    def _tick(self) -> None:
        info, now = self.document.info, time.monotonic()
        if info is None or not self._stale or now < self._next or self.document.busy("diagnose"):
            return
        self._stale, self._next = False, now + EVERY_S
        self.head.show_run(info.name, chips(info))
        asked = partial(query, live=self._live, measured=tuple(self._measured))

        def answered(data: DiagnoseData) -> None:
            self._next = time.monotonic() + max(EVERY_S, SHARE * (time.monotonic() - now))
            if self._agreed(data):
                self.show_data(data)

        self.document.query("diagnose", asked, answered, self._on_error)

    def _agreed(self, data: DiagnoseData) -> bool:
        """Another verdict of a growing run is shown when it is said for the second time, 3 s later."""
        shown, said_before, self._said = self.data, self._said, data.word
        free = shown is None or not data.recording or shown.word in UNSETTLED or data.word in UNSETTLED
        return free or data.word in (said_before, shown.word if shown is not None else "")

    def _on_error(self, error: Exception) -> None:
        text = str(error) if isinstance(error, ProfilerError) else f"{type(error).__name__}: {error}"
        self._reading.setText("")
        self.notice.show_text(f"The run cannot be diagnosed: {text}")

    def show_data(self, data: DiagnoseData) -> None:
        """Everything anew; the chosen finding stays where it is still there."""
        first = self.data is None
        self.data = data
        self.notice.hide()
        keys = [finding.key for finding in data.findings]
        if self.key not in keys:
            self.key = self._of_place(self.selection.place) or (keys[0] if keys else "")
        self.head.show_data(data)
        self.verdict.show_data(data)
        self.detail.show_data(data, self.finding)
        self._show_state()
        self._show_body(True)
        if first:
            self.score.ask(self.document.path)
        if data.unanalysed and not self._asked_analysis and not self.runner.running:
            self._asked_analysis = True
            self.runner.analyse()

    @property
    def finding(self) -> FindingData | None:
        """The chosen one."""
        found = self.data.findings if self.data is not None else ()
        return next((f for f in found if f.key == self.key), None)

    def _show_state(self) -> None:
        """What can be pressed, and how far it is."""
        runner, data = self.runner, self.data
        self.progress.show_state(runner.text(), runner.running, runner.share)
        if data is None:
            return
        states = dict.fromkeys(runner.waiting, "waiting")
        if runner.testing:
            states[runner.testing] = "testing"
        self.left.show_data(data, states, data.recording)
        self.left.cards.mark(self.key)
        kind = runner.experiment.kind if runner.running else ""
        self.detail.heading.show_state(data, self.finding, kind, self.key in states)
        self.detail.measure.setEnabled(self.detail.heading.ceilings.isEnabled() and not kind)
        self.head.verify_all.setText("Cancel all" if states else "Verify all")
        self.head.verify_all.setEnabled(bool(states or self._testable()))
        self.head.report.setEnabled(not data.recording)

    def _testable(self) -> list[str]:
        """Keys of the findings that can be tested; of two with one remedy the first."""
        if self.data is None or self.data.recording:
            return []
        return list({f.remedy: f.key for f in reversed(self.data.findings) if f.testable}.values())[::-1]

    # What the user does.

    def choose(self, key: str) -> None:
        """Show this finding; the other screens go to its place."""
        self.key = key
        if self.data is None or self.finding is None:
            return
        self.detail.show_data(self.data, self.finding)
        self._show_state()
        self.selection.choose(self.finding.place)

    def _of_place(self, place: Place) -> str:
        found = self.data.findings if self.data is not None else ()
        return next((f.key for f in found if f.rule == place.name), "")

    def _on_selected(self, place: Place) -> None:
        """Back and forward."""
        key = self._of_place(place)
        if key and (self.finding is None or self.finding.rule != place.name):
            self.choose(key)

    def _open_finding(self, key: str) -> None:
        self.choose(key)
        self.show_in_timeline()

    def show_in_timeline(self) -> None:
        if self.finding is not None:
            self.selection.choose(self.finding.place)
        self.screen_wanted.emit("timeline")

    def verify(self) -> None:
        """Test the chosen finding; where its test runs or waits, cancel it."""
        if self.runner.testing == self.key and self.key:
            self.runner.cancel()
        elif self.key in self.runner.waiting:
            self.runner.waiting.remove(self.key)
            self._show_state()
        elif self.finding is not None and self.finding.testable:
            self.runner.verify([self.key])

    def verify_all(self) -> None:
        if self.runner.testing or self.runner.waiting:
            self.runner.cancel()
        else:
            self.runner.verify(self._testable())

    def ceilings(self) -> None:
        if self.runner.running and self.runner.experiment.kind == "ceilings":
            self.runner.cancel()
        elif self.data is not None and self.data.repeatable and not self.data.recording:
            self.runner.ceilings()

    def _end_or_close(self) -> None:
        if self.runner.running:
            self.runner.cancel()
        else:
            self.runner.trouble = ""
            self._show_state()

    def _on_measured(self, kind: str, result: Mapping[str, Any]) -> None:
        if kind == "verify" and self.data is not None:
            self._measured = [*self._measured, result][-KEPT:]
            self.score.ask(self.document.path)
        self._stale, self._next = True, 0.0
        if self.isVisible():
            self._tick()

    def open_code(self) -> None:
        if self.finding is not None and self.finding.code is not None:
            self._open_code(self.finding.code)

    def _open_code(self, code: Code) -> None:
        """In the user's editor at the line; the path to the clipboard where that cannot be."""
        if not open_code(code, self.editor):
            QGuiApplication.clipboard().setText(code.site)
            self.told.emit(f"Copied: {code.site}", "info")

    def reset_layout(self) -> None:
        self.body.reset_layout()

    def shut_down(self) -> None:
        self._timer.stop()
        self.runner.shut_down()
        self.score.shut_down()
