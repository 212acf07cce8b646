"""The top of Diagnose: which run, its verdict with the reason, and what runs beside it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app import theme
from app.diagnose.data import DiagnoseData, FindingData
from app.live.header import Chip
from app.live.run_bar import Chips
from app.tokens import PADDING, RUN_BAR, SCREEN_HEADING
from app.widgets.basic import Hairline, Surface, label, row, strip, tip
from app.widgets.button import Button
from app.widgets.sentence import Part, Sentence
from app.widgets.stage_flag import StageFlag

VERDICT_LINE, FLAG = 36, 10
NARROW = 900  # px: below it the buttons of the heading stand under it


class RunHead(Surface):
    """The run's name, its settings, how much of it there is; and what is done with all of it."""

    verify_all_pressed = Signal()
    report_pressed = Signal()

    def __init__(self) -> None:
        super().__init__("raised")
        self.name = Sentence(15, 24)
        self.chips = Chips()
        self.facts = Sentence(12)
        self.verify_all = Button("Verify all")
        self.report = Button("Report", icon="reports")
        self.verify_all.clicked.connect(self.verify_all_pressed)
        self.report.clicked.connect(self.report_pressed)
        line = row(self.name, spacing=12, margins=(PADDING, 0, PADDING, 0))
        line.addWidget(self.chips, 100)
        line.addWidget(self.facts)
        line.addStretch(1)
        line.addWidget(self.verify_all)
        line.addWidget(self.report)
        self.box.addWidget(strip(line, RUN_BAR))

    def show_run(self, name: str, chips: Sequence[Chip]) -> None:
        self.name.show_parts([Part(name, "t1", 600)])
        self.chips.show_chips(chips)

    def show_data(self, data: DiagnoseData) -> None:
        self.facts.show_parts([Part(data.facts, "t2")])


class VerdictLine(Surface):
    """Input-bound, also host-bound, confidence medium: the reason. The same as Live and the terminal say."""

    def __init__(self) -> None:
        super().__init__("raised")
        self._flag = StageFlag(FLAG)
        self.word = label("", "name")
        self.confidence = Sentence(12, firm=True)
        self.reason = Sentence(12)
        line = row(self._flag, PADDING - 8, self.word, self.confidence, 8, self.reason, None,
                   margins=(0, 0, PADDING, 0))
        self.box.addWidget(strip(line, VERDICT_LINE))

    def show_data(self, data: DiagnoseData) -> None:
        self._flag.show_stage(data.stage)
        self.word.setText(data.title)
        also = f"also {data.also}, " if data.also else ""
        claim = f"confidence {data.confidence}" if data.confidence else ""
        claim = "no claim is made" if data.word == "unknown" else claim
        self.confidence.show_parts([Part(f"{also}{claim}")])
        self.reason.show_parts([Part(f"{data.reason}." if data.reason else "", "t2")])


class Heading(Surface):
    """The sentence of the chosen finding, its remedy, and what can be done about it."""

    timeline_pressed = Signal()
    ceilings_pressed = Signal()
    verify_pressed = Signal()

    def __init__(self) -> None:
        super().__init__("raised")
        self.title = label("", "heading")
        self.title.setWordWrap(True)
        self.remedy = label("", "sub")
        self.remedy.setWordWrap(True)
        self.timeline = Button("Show in timeline", icon="timeline")
        self.ceilings = Button("Ceilings", icon="wave")
        self.verify = Button("Verify", kind="primary", icon="check", key="Ctrl+R")
        for button, signal in ((self.timeline, self.timeline_pressed), (self.verify, self.verify_pressed),
                               (self.ceilings, self.ceilings_pressed)):
            button.clicked.connect(signal)
        words = Surface("none")
        words.box.setSpacing(2)
        words.box.addStretch(1)
        words.box.addWidget(self.title)
        words.box.addWidget(self.remedy)
        words.box.addStretch(1)
        self._buttons = row(self.timeline, self.ceilings, self.verify)
        self._line = row(margins=(24, 12, 24, 12), spacing=16)
        self._line.addWidget(words, 1)
        self._line.addLayout(self._buttons)
        self.box.addLayout(self._line)
        self.box.addWidget(Hairline())
        self.setMinimumHeight(SCREEN_HEADING)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        wanted = self._line.Direction.TopToBottom if narrow else self._line.Direction.LeftToRight
        if self._line.direction() != wanted:
            self._line.setDirection(wanted)

    def show_finding(self, data: DiagnoseData, finding: FindingData | None) -> None:
        if finding is None:
            self.title.setText(data.headline)
            quiet = data.unanalysed or data.recording
            self.remedy.setText("" if quiet else "No finding names anything to change.")
        else:
            self.title.setText(finding.heading)
            said = [f"Remedy: {finding.remedy}." if finding.remedy else "", finding.advice]
            if finding.heading != finding.title:
                said.insert(0, f"{finding.title}." if not finding.remedy else "")
            self.remedy.setText(" ".join(filter(None, said)))
        self.remedy.setVisible(bool(self.remedy.text()))

    def show_state(self, data: DiagnoseData, finding: FindingData | None, kind: str, mine: bool) -> None:
        """`kind`: what runs; "" nothing. `mine`: it is the test of this finding."""
        after = "after the recording" if data.recording else ""
        self.verify.setText("Cancel" if mine else "Verify again" if finding and finding.tested else "Verify")
        can = finding is not None and finding.testable and not data.recording and (mine or kind != "diagnose")
        self.verify.setEnabled(can)
        why = f"Starts again: {data.program}" if can else finding.why_not if finding else ""
        self.verify.setToolTip(tip(why))
        self.ceilings.setText("Cancel ceilings" if kind == "ceilings" else "Ceilings")
        ready = data.repeatable and not data.recording and kind in ("", "ceilings")
        self.ceilings.setEnabled(ready)
        self.ceilings.setToolTip(tip(
            "Each part of the program alone: how fast the loader, and the rest, can be" if ready else
            after or ("Another measurement runs" if data.repeatable else
                      "There is no program to start again")))
        self.timeline.setEnabled(finding is not None or data.has_trace)


class Progress(Surface):
    """What runs, in one line with Cancel, over a bar of 2 px; or what went wrong."""

    cancel_pressed = Signal()

    def __init__(self) -> None:
        super().__init__("raised")
        self._bar = _Bar()
        self.text = Sentence(12)
        self.cancel = Button("Cancel", kind="flat", icon="close")
        self.cancel.clicked.connect(self.cancel_pressed)
        self.box.addWidget(self._bar)
        self.box.addLayout(row(self.text, None, self.cancel, margins=(24, 2, 16, 2)))
        self.box.addWidget(Hairline())
        self.hide()

    def show_state(self, text: str, running: bool, share: float | None) -> None:
        self.setVisible(bool(text))
        quiet = running or "cancelled" in text
        self.text.show_parts([Part(text, "acc" if running else "t2" if quiet else "err")])
        self.cancel.setText("Cancel" if running else "Close")
        self._bar.show_share(share if running else 0.0)


class _Bar(QWidget):
    """Without a share nothing tells how much is left: the bar stays a faint line."""

    def __init__(self) -> None:
        super().__init__()
        self._share: float | None = None
        self.setFixedHeight(2)
        theme.changed.connect(self.update)

    def show_share(self, share: float | None) -> None:
        self._share = share
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("line" if self._share is not None else "acctint"))
        if self._share:
            painter.fillRect(QRectF(0, 0, self.width() * self._share, 2), theme.colour("acc"))
        painter.end()
