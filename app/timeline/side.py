"""Beside the lanes: what the region is made of, and what is known of the selected span."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QScrollArea, QVBoxLayout, QWidget

from app import theme
from app.hatch import stage_brush
from app.timeline.details import Details
from app.timeline.region import Part, Region
from app.tokens import PADDING
from app.widgets.basic import Hairline, PaneHeader, Surface, label, row
from app.widgets.button import Button
from app.widgets.paint import swatch
from app.widgets.table import Column, Table
from profiler.units import format_ms, format_share, format_time, ms_decimals

WIDTH, LEAST = 320, 280
MOST_NAME = 2000  # characters that are shown of a span's name
HINT = "Drag across the lanes, press a step, or use the keys . and , : what the time went to is told here."
HINT_SPAN = "Press a span, or walk with the arrow keys. Enter brings the keyboard here."


class _Bar(QWidget):
    """The parts of a region as one bar, scaled to the whole."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: tuple[Part, ...] = ()
        self.setFixedHeight(20)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("base"))
        total = sum(part.ns for part in self.parts) or 1
        x, dpr = 0.0, self.devicePixelRatioF()
        for part in self.parts:
            wide = part.ns / total * self.width()
            left, right = round(x), round(x + wide)
            if right > left:
                swatch(painter, QRectF(left, 0, right - left, self.height()), part.stage, dpr)
                if right - left > 2:
                    painter.fillRect(QRectF(right - 1, 0, 1, self.height()), theme.colour("raised"))
            x += wide
        painter.end()


class _Flag(QWidget):
    """The hatch of the verdict's stage at the pane's edge."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = ""
        self.setFixedWidth(8)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self.stage:
            painter.fillRect(self.rect(), stage_brush(self.stage, self.devicePixelRatioF()))
        painter.end()


def _pairs(name: str, wide: int) -> Table:
    return Table(
        [
            Column[tuple[str, str]](
                "", lambda pair: pair[0], width=wide, colour="t2", tooltip=lambda pair: pair[0]
            ),
            Column[tuple[str, str]](
                "", lambda pair: pair[1], right=True, weight=500, tooltip=lambda pair: pair[1]
            ),
        ],
        name,
        head=False,
    )


class SidePane(QScrollArea):
    """`show_region` and `show_span`; both say what to do where there is nothing."""

    cleared = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.region: Region | None = None
        self.details: Details | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setMinimumWidth(LEAST)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Region and span")
        body = Surface("raised")
        self._region_parts(body.box)
        self._span_parts(body.box)
        body.box.addStretch(1)
        self.setWidget(body)
        self.show_region(None)
        self.show_span(None, "")

    def _region_parts(self, box: QBoxLayout) -> None:
        self.head = PaneHeader("Region")
        self.clear_button = Button("", kind="flat", icon="close")
        self.clear_button.setFixedWidth(28)
        self.clear_button.setAccessibleName("Clear the region")
        self.clear_button.setToolTip("Clear the region (Esc)")
        self.clear_button.clicked.connect(self.cleared)
        self.head.row.addWidget(self.clear_button)
        self.flag, self.verdict, self.sentence = _Flag(), label("", "name"), label("", "sub")
        self.sentence.setWordWrap(True)
        self.bar = _Bar()
        self.parts = Table(
            [
                Column[Part](
                    "Partition", lambda part: part.name, mark="swatch", value=lambda part: part.stage
                ),
                Column[Part]("ms", self._ms, right=True, width=60, weight=600),
                Column[Part]("share", self._share, right=True, width=78, colour="t2"),
            ],
            "Partition",
            sum_row=True,
        )
        self.figures_head = PaneHeader("Statistics")
        self.figures = _pairs("Statistics", 200)
        texts = QVBoxLayout()
        texts.setContentsMargins(8, 12, PADDING, 12)
        texts.setSpacing(6)
        for part in (self.verdict, self.sentence, self.bar):
            texts.addWidget(part)
        told = row(self.flag, spacing=0)
        told.addLayout(texts, 1)
        box.addWidget(self.head)
        box.addLayout(told)
        for widget in (self.parts, self.figures_head, self.figures):
            box.addWidget(widget)

    def _span_parts(self, box: QBoxLayout) -> None:
        self.span_head = PaneHeader("Selected span")
        self.name = label("", "cell")
        self.name.setProperty("mono", "true")
        self.name.setWordWrap(True)
        self.name.setContentsMargins(PADDING, 8, PADDING, 8)
        self.name.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.hint = label(HINT_SPAN, "sub")
        self.hint.setWordWrap(True)
        self.hint.setContentsMargins(PADDING, 8, PADDING, 8)
        self.pairs = _pairs("Selected span", 116)
        self._line = Hairline()
        for widget in (self._line, self.span_head, self.hint, self.name, self.pairs):
            box.addWidget(widget)

    def _ms(self, part: Part) -> str:
        window = self.region.window if self.region is not None else 0
        return format_ms(part.ns, ms_decimals(window), unit=False)

    def _share(self, part: Part) -> str:
        total = sum(p.ns for p in self.region.parts) if self.region is not None else 0
        return format_share(part.ns / total, 1) if total else ""

    def show_region(self, region: Region | None) -> None:
        """What a stretch of time is made of; None: nothing is chosen."""
        self.region = region
        self.head.note.setText("" if region is None else region.title or format_time(region.window))
        self.clear_button.setVisible(region is not None)
        shown = region if region is not None else Region(0, 0, sentence=HINT)
        self.flag.stage = shown.flag
        self.flag.update()
        self.verdict.setText(shown.verdict)
        self.verdict.setVisible(bool(shown.verdict))
        self.sentence.setText(shown.sentence)
        self.bar.parts = shown.parts
        self.bar.setVisible(bool(shown.parts))
        self.bar.setAccessibleName(", ".join(f"{part.name} {format_ms(part.ns)}" for part in shown.parts))
        self.bar.update()
        total = sum(part.ns for part in shown.parts)
        model = self.parts.model_
        model.columns = (replace(model.columns[0], title=shown.head or "Partition"), *model.columns[1:])
        name = "window" if total == shown.window else "sum"
        self.parts.show_rows([*shown.parts, Part(name, total, "")] if shown.parts else [])
        self.parts.setVisible(bool(shown.parts))
        self.figures_head.setVisible(bool(shown.figures))
        self.figures.setVisible(bool(shown.figures))
        self.figures.show_rows(shown.figures)

    def show_span(self, details: Details | None, name: str, pairs: tuple[tuple[str, str], ...] = ()) -> None:
        """A span by its name, and more of it as soon as that is known."""
        self.details = details
        there = details is not None or bool(name)
        title = details.title if details is not None else name
        self.span_head.title.setText(f"Selected {details.kind}" if details is not None else "Selected span")
        self.name.setText(_breakable(title))
        self.name.setVisible(there)
        self.hint.setVisible(not there)
        told = details.pairs if details is not None else pairs
        self.pairs.show_rows(told)
        self.pairs.setVisible(bool(told))

    def take_focus(self) -> None:
        """Bring the keyboard to the details, where they can be read and copied."""
        (self.pairs if self.pairs.isVisible() else self.parts).setFocus()
        QTimer.singleShot(0, lambda: self.ensureWidgetVisible(self.pairs))  # once it is laid out


def _breakable(name: str) -> str:
    """With places at which a line may end, of a kernel's name that has no blanks."""
    name = name if len(name) <= MOST_NAME else f"{name[:MOST_NAME]}…"
    for mark in ("::", ", ", "<", "_"):
        name = name.replace(mark, f"{mark}\u200b")
    return name
