"""The pane at the right of the charts: stages, steady state, the moment at the crosshair, events."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from app.live.crosshair import MomentData
from app.live.no_gpu import NoGpuPane
from app.live.side import EventRow, FactRow, SideData, StageRow
from app.tokens import PADDING
from app.widgets.basic import Hairline, PaneHeader, Surface, label
from app.widgets.scroll import scrolled
from app.widgets.table import Column, Table
from app.widgets.time_axis import moment_text

WIDTH, MINIMUM = 448, 280
ICONS = {
    "mark": "mark", "trace": "camera", "throttle": "warning", "gap": "warning", "slow_step": "clock",
    "warmup_end": "check", "first_step": "check", "target_exit": "stop", "source_off": "info",
}
COLOURS = {"info": "t2", "warning": "warn", "error": "err"}
EVENT_ROWS = 12  # seen at once; the others are reached by scrolling


def _stage_columns(device: bool) -> list[Column[StageRow]]:
    columns = [
        Column[StageRow]("Stage", lambda r: r.name, mark="swatch", value=lambda r: r.stage, width=112),
        Column[StageRow]("ms/step", lambda r: r.host, right=True, width=54, weight=600),
        Column[StageRow]("Share of step", lambda r: "", mark="share", stage=lambda r: r.stage,
                         value=lambda r: r.share if r.stage else None),
        Column[StageRow]("", lambda r: "" if r.share is None else f"{100 * r.share:.0f}\u00a0%", right=True,
                         width=52 if device else 64, colour="t2"),
    ]
    if device:
        columns += [
            Column[StageRow]("device ms", lambda r: r.device, right=True, width=64, colour="t2"),
            Column[StageRow]("lag ms", lambda r: r.lag, right=True, width=56, colour="t2"),
        ]
    return columns


def _fact_columns() -> list[Column[FactRow]]:
    return [
        Column[FactRow]("", lambda r: r.name, width=128, colour="t2"),
        Column[FactRow]("", lambda r: r.value, right=True, width=118, weight=600),
        Column[FactRow]("", lambda r: r.note, right=True, colour="t3", tooltip=lambda r: r.whole or r.note),
    ]


def _event_columns() -> list[Column[EventRow]]:
    return [
        Column[EventRow]("", lambda r: r.time, width=76, colour="t3"),
        Column[EventRow]("", lambda r: "", width=24, mark="icon", value=_event_icon),
        Column[EventRow]("", lambda r: r.text, tooltip=lambda r: r.text),
    ]


def _event_icon(row: EventRow) -> tuple[str, str]:
    plain = {"info": "info", "warning": "warning", "error": "error"}.get(row.severity, "info")
    return ICONS.get(row.kind, plain), COLOURS.get(row.severity, "t2")


class _Section(QWidget):
    """A header with a table under it."""

    def __init__(self, title: str, note: str, table: Table) -> None:
        super().__init__()
        self.header = PaneHeader(title, note)
        self.table = table
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.header)
        box.addWidget(table)


class SidePane(QScrollArea):
    """Shows `SideData` and `MomentData`. `event_chosen` gives the time of an event, in s."""

    event_chosen = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMinimumWidth(MINIMUM)
        self.data = SideData()
        self.moment = MomentData()
        self._span = 30.0
        self._lit = ""
        self._device: bool | None = None
        self._ground = Surface("raised")
        scrolled(self._ground, self)
        self._stages: _Section | None = None
        self._lacks = label("", "sub", "t3")
        self._lacks.setWordWrap(True)
        self._lacks.setContentsMargins(PADDING, 10, PADDING, 10)
        self._facts = self._add_section("Steady state", "", _fact_columns())
        self._moment = self._add_section("Newest values", "", _fact_columns())
        self._copies = label("", "hint")
        self._moment.header.row.addWidget(self._copies)
        self._events = self._add_section("Events", "", _event_columns())
        self._events.table.clicked.connect(self._choose_event)
        self.no_gpu = NoGpuPane()
        self._ground.box.addWidget(self.no_gpu)
        self.no_gpu.hide()
        self._ground.box.addStretch(1)
        self._show_stages(False)

    def _add_section(self, title: str, note: str, columns: list[Column]) -> _Section:
        section = _Section(title, note, Table(columns, title, head=False, most=EVENT_ROWS))
        spacer = Surface("raised")
        spacer.setFixedHeight(8)
        self._ground.box.addWidget(section)
        section.layout().addWidget(spacer)  # type: ignore[union-attr]
        section.layout().addWidget(Hairline())  # type: ignore[union-attr]
        return section

    def _show_stages(self, device: bool) -> None:
        """The table of stages; its columns depend on what was measured."""
        if self._device is device:
            return
        self._device = device
        if self._stages is not None:
            self._lacks.setParent(None)
            self._stages.hide()
            self._stages.deleteLater()
        table = Table(_stage_columns(device), "Stages", sum_row=True,
                      highlight=lambda row: bool(row.stage) and row.stage == self._lit)
        self._stages = _Section("Stages", "host time, mean of steady steps", table)
        spacer = Surface("raised")
        spacer.setFixedHeight(8)
        box = self._stages.layout()
        assert box is not None
        for widget in (self._lacks, spacer, Hairline()):
            box.addWidget(widget)
        self._ground.box.insertWidget(0, self._stages)

    def show_data(self, data: SideData) -> None:
        self.data = data
        self._show_stages(data.on_device and any(row.device for row in data.stages))
        assert self._stages is not None
        self._stages.table.setVisible(bool(data.stages))
        self._stages.table.show_rows(data.stages)
        self._lacks.setVisible(not data.stages)
        self._lacks.setText(_sentence(data.lacks) or "No steps yet.")
        self._facts.setVisible(bool(data.facts))
        self._facts.table.show_rows(data.facts)
        self.no_gpu.setVisible(bool(data.gpu_absent))
        self.no_gpu.show_reason(data.gpu_absent)
        self._events.table.show_rows(data.events)
        self._events.header.note.setText(str(len(data.events)))

    def show_moment(self, data: MomentData, span: float) -> None:
        self.moment, self._span = data, span
        at = data.t is not None
        self._moment.header.title.setText("At the crosshair" if at else "Newest values")
        self._moment.header.note.setText(moment_text(data.t, span) if data.t is not None else "")
        self._copies.setText("C copies" if at else "")
        self._moment.table.show_rows(data.rows)

    def light_up(self, stage: str) -> None:
        """The stage that the verdict is about."""
        if stage != self._lit:
            self._lit = stage
            if self._stages is not None:
                self._stages.table.viewport().update()

    def copy_moment(self) -> str:
        """The values at the crosshair, or the newest, to the clipboard, tab-separated."""
        when = "newest" if self.moment.t is None else moment_text(self.moment.t, self._span)
        lines = [f"at\t{when}", *(f"{r.name}\t{r.value}\t{r.note}".rstrip() for r in self.moment.rows)]
        text = "\n".join(lines).replace("\u00a0", " ") + "\n"
        QGuiApplication.clipboard().setText(text)
        return text

    def _choose_event(self, index: object) -> None:
        row = self._events.table.model_.rows[index.row()]  # type: ignore[attr-defined]
        self.event_chosen.emit(row.t)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""
