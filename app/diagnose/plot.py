"""What the charts of Diagnose share: an axis of round values, pieces of stages, text where it fits."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app import theme
from app.hatch import stage_brush
from app.tokens import GUTTER_LEFT
from app.widgets.basic import tip
from app.widgets.paint import LINE, outline, text_width, write
from profiler.report.svg import decimals_of, ticks
from profiler.units import format_number

EDGED, HATCHED = 3.0, 8.0  # px below which a piece has no edge, no hatch
PAD = 24


class Plot(QWidget):
    """A chart with names in a gutter at the left and an axis below. `height`: of the marks."""

    def __init__(self, name: str, left: float = GUTTER_LEFT, right: float = PAD) -> None:
        super().__init__()
        self._left, self._right = left, right
        self.low, self.high = 0.0, 1.0
        self.hints: list[tuple[QRectF, str]] = []  # what a tool tip says where
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def plot(self) -> QRectF:
        """Where the marks are."""
        return QRectF(self._left, 8, max(40.0, self.width() - self._left - self._right), self.height() - 34)

    def to_x(self, value: float) -> float:
        area = self.plot()
        return area.left() + area.width() * (value - self.low) / max(1e-12, self.high - self.low)

    def axis(self, painter: QPainter, unit: str, zero: float = 0.0) -> None:
        """Grid lines and labels; the unit once, at the first."""
        area = self.plot()
        values = ticks(self.low, self.high, max(3, int(area.width() / 70)))
        decimals = decimals_of(values)
        for k, value in enumerate(values):
            x = round(self.to_x(value))
            colour = "line2" if abs(value - zero) < 1e-9 else "grid"
            painter.fillRect(QRectF(x, area.top() - 8, 1, area.height() + 8), theme.colour(colour))
            text = format_number(value, decimals) + (f"\u00a0{unit}" if k == 0 or unit == "\u00d7" else "")
            box = QRectF(x - 40, area.bottom() + 4, 80, LINE)
            write(painter, box, text, "t3", align=Qt.AlignmentFlag.AlignHCenter)

    def dashed(self, painter: QPainter, value: float, colour: str) -> float:
        """A vertical reference line; its place."""
        area, x = self.plot(), round(self.to_x(value))
        y = area.top() - 8
        while y < area.bottom():
            painter.fillRect(QRectF(x, y, 1, min(5.0, area.bottom() - y)), theme.colour(colour))
            y += 8
        return x

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            at = QPointF(event.pos())
            text = next((text for box, text in self.hints if box.contains(at)), "")
            QToolTip.showText(event.globalPos(), tip(text), self)
            return True
        return super().event(event)


def piece(painter: QPainter, box: QRectF, stage: str, dpr: float) -> None:
    """A bar of a stage: hatch from 8 px on, edge from 3 px on; with no stage it is work of others, grey."""
    tokens = theme.tokens()
    if not stage:
        painter.fillRect(box, theme.colour("line2"))
        return
    look = tokens.stages[stage]
    painter.fillRect(box, stage_brush(stage, dpr) if box.width() >= HATCHED else QColor(look.fill))
    if not tokens.dark and box.width() >= EDGED:
        outline(painter, box, QColor(look.edge))


def write_on(painter: QPainter, box: QRectF, stage: str, texts: Sequence[str]) -> None:
    """The first of `texts` that fits, on a plate of the plain fill."""
    for text in texts:
        wide = text_width(text, 11, 500)
        if wide + 16 <= box.width():
            look = theme.tokens().stages[stage]
            plate = QRectF(box.left() + 4, box.center().y() - 7, wide + 8, 14)
            painter.fillRect(plate, QColor(look.fill))
            write(painter, plate.adjusted(4, 0, 4, 0), text, look.ink, 11, 500)
            return


def beside(painter: QPainter, area: QRectF, left: float, right: float, y: float,
           parts: Sequence[tuple[str, str, int, int]]) -> None:
    """Parts (text, colour, size, weight) after `right`; before `left`, or inside, where there is room."""
    wide = sum(text_width(text, size, weight) + 8 for text, _, size, weight in parts if text)
    x = right + 10
    if x + wide > area.right() + PAD:
        x = left - 10 - wide if left - 10 - wide > area.left() else max(left + 8, right - wide - 4)
    for text, colour, size, weight in parts:
        if text:
            write(painter, QRectF(x, y - LINE / 2, wide, LINE), text, colour, size, weight)
            x += text_width(text, size, weight) + 8
