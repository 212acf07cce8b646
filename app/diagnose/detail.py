"""The right side of Diagnose: the chosen finding, one step, ceilings, what if; under each other, scrolled."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QScrollArea, QWidget

from app.diagnose.charts import CeilingsChart, RatioChart, StepChart
from app.diagnose.code_view import CodeView
from app.diagnose.data import CeilingsData, DiagnoseData, FindingData, Line, Ratios, WhatIfRow
from app.diagnose.head import Heading
from app.tokens import PADDING
from app.widgets.badge import Badge
from app.widgets.basic import Hairline, PaneHeader, Surface, label, row, tip
from app.widgets.button import Button
from app.widgets.paint import text_width
from app.widgets.scroll import scrolled
from app.widgets.table import Column, Table

NARROW = 860  # px: below it what stands side by side stands under each other
WIDEST = 150  # px of a column of values or sources


def _line_columns() -> list[Column[Line]]:
    return [
        Column[Line]("", lambda r: r.text, colour="t2", tooltip=lambda r: r.text),
        Column[Line]("", lambda r: r.value, right=True, width=80, weight=600, tooltip=lambda r: r.value),
        Column[Line]("", lambda r: r.note, right=True, width=80, colour="t3", tooltip=lambda r: r.note),
    ]


def _what_if_columns() -> list[Column[WhatIfRow]]:
    return [
        Column[WhatIfRow]("Without this cost", lambda r: r.title, tooltip=lambda r: r.note or r.title),
        Column[WhatIfRow]("ms/step", lambda r: r.ms, right=True, width=68),
        Column[WhatIfRow]("at most", lambda r: r.speedup, right=True, width=72, weight=600),
        Column[WhatIfRow]("interval", lambda r: r.interval, right=True, width=104, colour="t3",
                          tooltip=lambda r: r.note),
    ]


class LineTable(Table):
    """Rows of evidence; the columns of values and sources are as wide as what is in them."""

    def __init__(self, name: str) -> None:
        super().__init__(_line_columns(), name, head=False)

    def show_rows(self, rows: Sequence[Line]) -> None:
        super().show_rows(rows)
        for column, texts, weight in ((1, [r.value for r in rows], 600), (2, [r.note for r in rows], 400)):
            wide = max((text_width(text, 12, weight) for text in texts), default=0.0)
            self.setColumnWidth(column, min(WIDEST, round(wide) + (12 if column == 1 else 24)))


class _Pair(QWidget):
    """Two panes side by side with a hairline between, under each other where there is no room."""

    def __init__(self, left: QWidget, right: QWidget, stretch: tuple[int, int]) -> None:
        super().__init__()
        self._box = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(0)
        self._line = Hairline(vertical=True)
        self._box.addWidget(left, stretch[0])
        self._box.addWidget(self._line)
        self._box.addWidget(right, stretch[1])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        ways = QBoxLayout.Direction
        self._box.setDirection(ways.TopToBottom if narrow else ways.LeftToRight)
        self._line.setVisible(not narrow)


def _pane(header: PaneHeader, *widgets: QWidget) -> Surface:
    pane = Surface("raised")
    for widget in (header, *widgets):
        pane.box.addWidget(widget)
    pane.box.addStretch(1)
    return pane


def _text(role: str = "sub", margins: tuple[int, int, int, int] = (24, 8, 24, 8)) -> QLabel:
    result = label("", role)
    result.setWordWrap(True)
    result.setContentsMargins(*margins)
    result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return result


class Detail(QScrollArea):
    """Shows one finding of `DiagnoseData`. The buttons only tell; the panel acts."""

    trace_wanted = Signal()  # a recording with a trace
    analysis_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.heading = Heading()
        self.ratio, self.step, self.ceilings = RatioChart(), StepChart(), CeilingsChart()
        self.evidence, self.counter = LineTable("Evidence"), LineTable("Counter-evidence")
        self.what_if = Table(_what_if_columns(), "What if")
        self.code = CodeView()
        ground = Surface("raised")
        for part in (self.heading, self._ratio_pane(), self._evidence_panes(), self._step_pane(),
                     self._last_panes(), self._notes_pane()):
            ground.box.addWidget(part)
        ground.box.addStretch(1)
        scrolled(ground, self)

    def _ratio_pane(self) -> QWidget:
        self._ratio_head = PaneHeader("Prediction and measurement", "speedup of the steady step time")
        self._ratio_head.row.setContentsMargins(24, 0, 24, 0)
        self.badge = Badge()
        self.rates = label("", "sub")
        self._ratio_head.row.addWidget(self.badge)
        self._ratio_head.row.addWidget(self.rates)
        self._ratio_notes = _text("hint", (24, 0, 24, 8))
        self._ratio_pane_ = Surface("raised")
        for widget in (self._ratio_head, self.ratio, self._ratio_notes, Hairline()):
            self._ratio_pane_.box.addWidget(widget)
        return self._ratio_pane_

    def _evidence_panes(self) -> QWidget:
        first, second = PaneHeader("Evidence"), PaneHeader("Counter-evidence")
        first.row.setContentsMargins(24, 0, PADDING, 0)
        self._no_counter = _text("hint", (PADDING, 8, PADDING, 8))
        self._no_counter.setText("Nothing that was measured speaks against it.")
        right = _pane(second, self.counter, self._no_counter, self.code)
        self._evidence = Surface("raised")
        inset = QWidget()
        inset.setLayout(row(self.evidence, margins=(8, 0, 0, 0)))  # in line with the headings
        self._evidence.box.addWidget(_Pair(_pane(first, inset), right, (1, 1)))
        self._evidence.box.addWidget(Hairline())
        return self._evidence

    def _step_pane(self) -> QWidget:
        self._step_head = PaneHeader("One step")
        self._step_head.row.setContentsMargins(24, 0, 24, 0)
        self._replay = label("", "hint")
        self._step_head.row.addWidget(self._replay)
        self._no_step = _text("hint")
        pane = Surface("raised")
        for widget in (self._step_head, self.step, self._no_step, Hairline()):
            pane.box.addWidget(widget)
        return pane

    def _last_panes(self) -> QWidget:
        self._ceilings_head, what_if = PaneHeader("Ceilings"), PaneHeader("What if", "steps replayed")
        self._ceilings_head.row.setContentsMargins(24, 0, PADDING, 0)
        self._leaning = _text()
        self.measure = Button("Measure ceilings", icon="wave")
        self.measure.clicked.connect(self.heading.ceilings.click)
        self._measure_row = QWidget()
        self._measure_row.setLayout(row(self.measure, None, margins=(24, 4, 24, 12)))
        left = _pane(self._ceilings_head, self.ceilings, self._leaning, self._measure_row)
        self._what_if_lacks = _text(margins=(PADDING, 8, PADDING, 8))
        self.fill = Button("Record with a trace", icon="camera")
        self.fill.clicked.connect(self._fill)
        self._fill_row = QWidget()
        self._fill_row.setLayout(row(self.fill, None, margins=(PADDING, 4, PADDING, 12)))
        self._unanalysed = False
        right = _pane(what_if, self.what_if, self._what_if_lacks, self._fill_row)
        return _Pair(left, right, (3, 2))

    def _notes_pane(self) -> QWidget:
        self._notes = _text()
        self._notes_pane_ = Surface("raised")
        head = PaneHeader("Notes")
        head.row.setContentsMargins(24, 0, 24, 0)
        for widget in (Hairline(), head, self._notes):
            self._notes_pane_.box.addWidget(widget)
        return self._notes_pane_

    def _fill(self) -> None:
        (self.analysis_wanted if self._unanalysed else self.trace_wanted).emit()

    def show_data(self, data: DiagnoseData, finding: FindingData | None) -> None:
        self.heading.show_finding(data, finding)
        ratios = finding.ratios if finding is not None else Ratios()
        self._show_ratios(ratios)
        self._evidence.setVisible(finding is not None)
        if finding is not None:
            self.evidence.show_rows(finding.evidence)
            self.counter.show_rows(finding.counter)
            self._no_counter.setVisible(not finding.counter)
            self.code.show_code(finding.code, finding.cost.partition(",")[0])
        self.step.setVisible(bool(data.step.lanes))
        self.step.show_data(data.step)
        self._step_head.note.setText(data.step.note)
        self._replay.setText(data.replay)
        self._no_step.setVisible(not data.step.lanes)
        self._no_step.setText("No step was recorded.")
        self._show_ceilings(data)
        self._show_what_if(data)
        self._notes_pane_.setVisible(bool(data.notes))
        self._notes.setText("\n".join(f"{note}." for note in data.notes))

    def _show_ratios(self, ratios: Ratios) -> None:
        self._ratio_pane_.setVisible(bool(ratios.predicted or ratios.measured or ratios.outcome))
        self.ratio.show_data(ratios)
        self.badge.show_badge(ratios.badge)
        self.badge.setToolTip(tip(ratios.meaning.capitalize()))
        self.rates.setText(ratios.rates)
        meaning = f"{ratios.badge[0]}: {ratios.meaning}." if ratios.badge and ratios.meaning else ""
        said = ". ".join(note.rstrip(".") for note in ratios.notes)
        self._ratio_notes.setText(" ".join(filter(None, (meaning, f"{said}." if said else ""))))
        self._ratio_notes.setVisible(bool(meaning or said))

    def _show_ceilings(self, data: DiagnoseData) -> None:
        found = data.ceilings or CeilingsData()
        self.ceilings.setVisible(bool(found.rows))
        self.ceilings.show_data(found)
        self._ceilings_head.note.setText(found.note or "each part of the program alone")
        text = " ".join([found.leaning, *(f"{line.rstrip('.')}." for line in found.more)])
        if not found.rows and not data.repeatable:
            text = "Not measured: this run has no program that could be started again."
        elif not found.rows:
            text = ("Not measured. The loader alone and the rest alone say how far a step can fall, and make "
                    "predictions for the loader sharper.")
        self._leaning.setText(text)
        self._measure_row.setVisible(not found.rows and data.repeatable)

    def _show_what_if(self, data: DiagnoseData) -> None:
        self.what_if.setVisible(bool(data.what_if))
        self.what_if.show_rows(data.what_if)
        self._what_if_lacks.setVisible(bool(data.what_if_lacks))
        self._what_if_lacks.setText(data.what_if_lacks)
        self._unanalysed = data.unanalysed
        self.fill.setText("Analyse the trace" if data.unanalysed else "Record with a trace")
        needed = data.unanalysed or (not data.has_trace and not data.recording)
        self._fill_row.setVisible(needed and not data.what_if)
