"""The left pane of Diagnose: findings, where the step goes, what is ruled out, the running score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.diagnose.cards import Cards
from app.diagnose.data import DiagnoseData, Line, PartRow
from app.tokens import PADDING
from app.widgets.basic import ElidedLabel, Hairline, PaneHeader, Surface, label, row, tip
from app.widgets.scroll import scrolled
from app.widgets.sentence import Part, Sentence
from app.widgets.table import Column, Table
from profiler.units import format_share

WIDTH, MINIMUM = 384, 280


def _part_columns() -> list[Column[PartRow]]:
    return [
        Column[PartRow]("", lambda r: r.name, mark="swatch", value=lambda r: r.stage,
                        tooltip=lambda r: r.name),
        Column[PartRow]("", lambda r: r.ms, right=True, width=60, weight=600),
        Column[PartRow]("", lambda r: "", mark="share", stage=lambda r: r.stage, width=104,
                        value=lambda r: r.share),
        Column[PartRow]("", lambda r: r.percent, right=True, width=76, colour="t2"),
    ]


def _whole(line: Line) -> str:
    return f"{line.note or line.text}: {line.value}"


def _why_columns() -> list[Column[Line]]:
    return [
        Column[Line]("", lambda r: "", mark="icon", width=34, value=lambda r: ("minus", "t3")),
        Column[Line]("", lambda r: r.text, width=128, tooltip=_whole),
        Column[Line]("", lambda r: r.value, right=True, colour="t2", tooltip=_whole),
    ]


class _Section(QWidget):
    """A header with something under it; hidden where there is nothing."""

    def __init__(self, title: str, body: QWidget, foot: int = 8) -> None:
        super().__init__()
        self.header, self.body = PaneHeader(title), body
        self.note = ElidedLabel("", "hint")
        self.header.row.replaceWidget(self.header.note, self.note)
        self.header.row.setStretchFactor(self.note, 100)
        self.header.note.hide()
        spacer = Surface("raised")
        spacer.setFixedHeight(foot)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for widget in (self.header, body, spacer, *([Hairline()] if foot else [])):
            box.addWidget(widget)

    def show_title(self, title: str, note: str) -> None:
        self.header.title.setText(title)
        self.note.show_text(note)


class LeftPane(Surface):
    """Shows `DiagnoseData`; `cards` tells what is chosen."""

    def __init__(self) -> None:
        super().__init__("raised")
        self.setMinimumWidth(MINIMUM)
        self.cards = Cards()
        self.parts = Table(_part_columns(), "Partition of the step", head=False, sum_row=True)
        self.ruled_out = Table(_why_columns(), "Ruled out", head=False)
        self.lacks = Table(_why_columns(), "Could not be told", head=False)
        self._none = label("", "sub")
        self._none.setWordWrap(True)
        self._none.setContentsMargins(PADDING, 12, PADDING, 12)
        self._findings = _Section("Findings", self.cards, 0)
        self._parts = _Section("Partition of the step", self.parts)
        self._ruled = _Section("Ruled out", self.ruled_out)
        self._lacks = _Section("Could not be told", self.lacks)
        ground = Surface("raised")
        for widget in (self._findings, self._none, self._parts, self._ruled, self._lacks):
            ground.box.addWidget(widget)
        ground.box.addStretch(1)
        self.score = Sentence(12)
        self.error = Sentence(12)
        self._foot = Surface("raised")
        self._foot.box.addWidget(Hairline())
        self._foot.box.addLayout(row(self.score, None, self.error, margins=(PADDING, 12, PADDING, 12)))
        self._foot.hide()
        self.box.addWidget(scrolled(ground), 1)
        self.box.addWidget(self._foot)

    def show_data(self, data: DiagnoseData, states: dict[str, str], blocked: bool) -> None:
        self.cards.show_data(data.findings, states, blocked)
        ranked = "" if len(data.findings) < 2 else ", ranked by predicted gain"
        self._findings.show_title("Findings", f"{len(data.findings)}{ranked}" if data.findings else "")
        self._none.setVisible(not data.findings)
        self._none.setText(_nothing(data))
        self._parts.setVisible(bool(data.parts))
        self._parts.show_title(data.parts_title, data.parts_note)
        self._parts.header.setToolTip(tip(data.parts_of))
        self.parts.show_rows(data.parts)
        for section, table, rows in ((self._ruled, self.ruled_out, data.ruled_out),
                                     (self._lacks, self.lacks, data.lacks)):
            self._show_lines(section, table, rows)

    def _show_lines(self, section: _Section, table: Table, rows: Sequence[Line]) -> None:
        section.setVisible(bool(rows))
        section.note.show_text(str(len(rows)))
        table.show_rows(rows)

    def show_score(self, told: Mapping[str, Any]) -> None:
        """11 of 12 hit, 1 vague; the median error at the right."""
        try:
            hit, miss, vague = (int(told[name]) for name in ("hit", "miss", "vague"))
            error = told["median_error"]
        except (KeyError, TypeError, ValueError):
            return
        self._foot.setVisible(hit + miss + vague > 0)
        parts = [Part("Score  ", "t3")]
        parts += [Part(f"{hit} of {hit + miss} hit  ", "t1", 600)] if hit + miss else []
        self.score.show_parts([*parts, Part(f"{vague} vague", "t2")] if vague else parts)
        known = isinstance(error, int | float)
        self.error.show_parts([Part(f"median error {format_share(error)}", "t2")] if known else [])


def _nothing(data: DiagnoseData) -> str:
    if data.unanalysed:
        return "Findings come with the analysis of the trace."
    if data.recording:
        return "No finding yet."
    if not data.ruled_out:
        return "No finding: nothing could be told, for the reason below."
    return "No finding. What was looked at, and why it is no cause, stands below."
