"""One row of linked charts: a left gutter, the plot, a right gutter. Painted in device coordinates.

The plot is rendered into a pixmap when its data or range changes; a moving
crosshair only draws over it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt, QVariantAnimation
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPixmap, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.hatch import missing_brush, throttle_brush
from app.tokens import GUTTER_LEFT, GUTTER_RIGHT, PADDING
from app.widgets.chart_data import Stretch
from app.widgets.paint import LINE, spread, swatch, text_width, write
from app.widgets.time_axis import time_ticks
from app.widgets.time_view import TimeView
from app.widgets.y_range import YRange
from profiler.units import format_number

PLOT_TOP, PLOT_BOTTOM = 14, 10
LABELS_APART = 14  # between baselines of names at the right


@dataclass(frozen=True)
class Label:
    """A name with its newest value in the right gutter, wanted at height `y`."""

    y: float
    name: str
    text: str
    colour: str  # of the name
    stage: str = ""  # with a swatch of this stage
    value_first: bool = False


class ChartRow(QWidget):
    """What all charts have in common. A subclass draws its marks in `draw` and names them in `labels`."""

    def __init__(self, title: str, view: TimeView, height: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = title
        self.view = view
        self.range: YRange | None = None
        self._shown = (0.0, 1.0)  # what the axis spans just now, on its way to `range`
        self._move = QVariantAnimation(self)
        self._move.valueChanged.connect(self._on_move)
        self.recording = False
        self.marks: tuple[Stretch, ...] = ()
        self.names_marks = False
        self.renders = 0  # how often the plot was drawn anew
        self._written: list[QRectF] = []  # remarks in the plot
        self._pixmap: QPixmap | None = None
        self.setMinimumHeight(max(56, round(height * 0.72)))
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        policy.setVerticalStretch(height)
        self.setSizePolicy(policy)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(f"Chart {title}")
        view.changed.connect(self.invalidate)
        view.crosshair_changed.connect(self.update)
        theme.changed.connect(self.invalidate)

    # Given by subclasses.

    def set_data(self, data: Any, digits: bool) -> None:
        """Show `data`; the texts of values only with `digits`, so that they can be read."""
        raise NotImplementedError

    def draw(self, painter: QPainter, plot: QRectF) -> None:
        """Draw the marks, clipped to the plot."""
        raise NotImplementedError

    def labels(self, plot: QRectF) -> Sequence[Label]:
        return ()

    def notes(self) -> Sequence[str]:
        """Unit and remarks under the title."""
        return ()

    def gaps(self) -> Sequence[Stretch]:
        return ()

    def throttled(self) -> Sequence[Stretch]:
        return ()

    def dots(self, at: float) -> Sequence[tuple[float, str]]:
        """(value, colour) of each curve at the crosshair."""
        return ()

    def tick_text(self, value: float) -> str:
        return format_number(value, self.range.decimals() if self.range and value else 0)

    # Geometry.

    def plot_rect(self) -> QRectF:
        width = max(1, self.width() - GUTTER_LEFT - GUTTER_RIGHT)
        return QRectF(GUTTER_LEFT, PLOT_TOP, width, max(1, self.height() - PLOT_TOP - PLOT_BOTTOM))

    def to_x(self, seconds: float) -> float:
        plot = self.plot_rect()
        return plot.left() + (seconds - self.view.x0) / self.view.span * plot.width()

    def to_seconds(self, x: float) -> float:
        plot = self.plot_rect()
        return self.view.x0 + (x - plot.left()) / plot.width() * self.view.span

    def to_y(self, value: float) -> float:
        plot = self.plot_rect()
        low, high = self._shown
        return plot.bottom() - (value - low) / (high - low) * plot.height()

    def set_range(self, wanted: YRange) -> None:
        """Go there in a step of 160 ms; at once the first time."""
        if wanted == self.range:
            return
        first, self.range = self.range is None, wanted
        duration = theme.duration(160)
        self._move.stop()
        if first or not duration or not self.isVisible():
            self._shown = wanted.low, wanted.high
            return
        self._move.setStartValue(QPointF(*self._shown))
        self._move.setEndValue(QPointF(wanted.low, wanted.high))
        self._move.setDuration(duration)
        self._move.start()

    def _on_move(self, at: QPointF) -> None:
        self._shown = at.x(), at.y()
        self.invalidate()

    def plot_at(self, x: float) -> bool:
        """Whether `x` lies over the plot."""
        return GUTTER_LEFT <= x <= self.plot_rect().right()

    def intervals(self) -> int:
        """How many tick intervals the height allows."""
        return max(2, min(4, round(self.plot_rect().height() / 34)))

    # Painting.

    def invalidate(self) -> None:
        self._pixmap = None
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.invalidate()

    def paintEvent(self, event: QPaintEvent) -> None:
        dpr = self.devicePixelRatioF()
        if self._pixmap is None or self._pixmap.devicePixelRatio() != dpr:
            self._pixmap = self._render(dpr)
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._pixmap)
        self._draw_crosshair(painter)
        painter.end()

    def _render(self, dpr: float) -> QPixmap:
        self.renders += 1
        self._written = []
        pixmap = QPixmap(math.ceil(self.width() * dpr), math.ceil(self.height() * dpr))
        pixmap.setDevicePixelRatio(dpr)
        pixmap.fill(theme.colour("raised"))
        painter = QPainter(pixmap)
        plot = self.plot_rect()
        self._draw_grid(painter, plot)
        painter.save()
        drawn = plot.adjusted(0, -PLOT_TOP, 0, PLOT_BOTTOM - 1)
        if self.recording:  # the newest bin is wider than what has happened of it
            drawn.setRight(min(drawn.right(), max(drawn.left(), round(self.to_x(self.view.end)))))
        painter.setClipRect(drawn)
        self._draw_throttled(painter)
        self.draw(painter, plot)
        self._draw_gaps(painter, plot)
        self._draw_marks(painter, plot)
        painter.restore()
        self._draw_gutters(painter, plot)
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), theme.colour("line"))
        self._draw_now(painter, plot)
        painter.end()
        return pixmap

    def _draw_grid(self, painter: QPainter, plot: QRectF) -> None:
        grid = theme.colour("grid")
        for x in time_ticks(self.view.x0, self.view.x1, plot.width()):
            painter.fillRect(QRectF(round(self.to_x(x)), 0, 1, self.height()), grid)
        if self.range is None:
            return
        for value in self.range.ticks():
            y = round(self.to_y(value))
            line = theme.colour("line2") if value == self.range.low else grid
            painter.fillRect(QRectF(plot.left(), y, plot.width(), 1), line)
            box = QRectF(plot.left() - 68, y - LINE / 2, 60, LINE)
            write(painter, box, self.tick_text(value), "t3", align=Qt.AlignmentFlag.AlignRight)

    def _draw_throttled(self, painter: QPainter) -> None:
        tint = theme.colour("err")
        tint.setAlphaF(0.10)
        for stretch in self.throttled():
            left, right = self.to_x(stretch.x0), self.to_x(stretch.x1)
            painter.fillRect(QRectF(left, 0, max(1.0, right - left), self.height()), tint)

    def _draw_gaps(self, painter: QPainter, plot: QRectF) -> None:
        hatch = missing_brush(self.devicePixelRatioF())
        for stretch in self.gaps():
            left, right = self.to_x(stretch.x0), self.to_x(stretch.x1)
            if right - left >= 2:
                painter.fillRect(QRectF(left, plot.top(), right - left, plot.height()), hatch)
                y = self.free_height(right + 6, right + 6 + text_width(stretch.text, 11))
                self.write_beside(painter, left, right, y, stretch.text, "t3")

    def _draw_marks(self, painter: QPainter, plot: QRectF) -> None:
        for mark in self.marks:
            x = round(self.to_x(mark.x0))
            painter.fillRect(QRectF(x, 0, 1, self.height()), theme.colour("acc"))
            if self.names_marks:
                self.write_beside(painter, x - 2, x, plot.top() + 4, mark.text, "acc")

    def draw_throttle_hatch(self, painter: QPainter, plot: QRectF) -> None:
        """The hatch at the foot of the throttled bands, with the reasons."""
        hatch = throttle_brush(self.devicePixelRatioF())
        for stretch in self.throttled():
            left, right = self.to_x(stretch.x0), self.to_x(stretch.x1)
            painter.fillRect(QRectF(left, plot.bottom() - 3, max(1.0, right - left), 12), hatch)
            y = self.free_height(right + 6, right + 6 + text_width(stretch.text, 11))
            self.write_beside(painter, left, right, y, stretch.text, "err")

    def free_height(self, left: float, right: float) -> float:
        """Where a line of text between two x stands clear of the marks, as far as it can."""
        return self.plot_rect().top() + 6

    def write_beside(
        self, painter: QPainter, left: float, right: float, y: float, text: str, colour: str
    ) -> None:
        """A remark to the right of an interval, or to its left; none where there is no room for it."""
        plot = self.plot_rect()
        width = text_width(text, 11)
        edge = painter.clipBoundingRect().right() if painter.hasClipping() else plot.right()
        for x in (right + 6, left - 6 - width):
            box = QRectF(x, y - LINE / 2, width + 2, LINE)
            free = not any(box.intersects(other) for other in self._written)
            if text and free and x >= plot.left() and x + width <= edge:
                write(painter, box, text, colour)
                self._written.append(box)
                return

    def _draw_gutters(self, painter: QPainter, plot: QRectF) -> None:
        write(painter, QRectF(PADDING, 10, plot.left() - PADDING - 40, LINE), self.title, "t1", 12, 600)
        for i, note in enumerate(self.notes()):
            box = QRectF(PADDING, 28 + LINE * i, plot.left() - PADDING - 8, LINE)
            if box.bottom() <= self.height():
                write(painter, box, note, "t3")
        labels = sorted(self.labels(plot), key=lambda label: label.y)
        heights = spread([label.y for label in labels], LABELS_APART, 12, self.height() - 10)
        for label, y in zip(labels, heights, strict=True):
            self._draw_label(painter, label, plot.right() + 9, round(y))

    def _draw_label(self, painter: QPainter, label: Label, x: float, y: float) -> None:
        if label.stage:
            swatch(painter, QRectF(x, y - 5, 10, 10), label.stage, self.devicePixelRatioF())
            x += 15
        name = (label.name, label.colour, 400)
        value = (label.text, "t1", 600 if label.value_first else 400)
        for text, colour, weight in [value, name] if label.value_first else [name, value]:
            if text:
                write(painter, QRectF(x, y - LINE / 2, 200, LINE), text, colour, 11, weight)
                x += text_width(text, 11, weight) + 3

    def _draw_now(self, painter: QPainter, plot: QRectF) -> None:
        """The edge of what is known: red while more is being recorded."""
        painter.fillRect(QRectF(plot.right(), 0, 1, self.height()), theme.colour("line"))
        x = self.to_x(self.view.end)
        if self.recording and plot.left() <= x <= plot.right() + 1:
            painter.fillRect(QRectF(round(min(x, plot.right())), 0, 1, self.height()), theme.colour("err"))

    def _draw_crosshair(self, painter: QPainter) -> None:
        at = self.view.crosshair
        if at is None or not self.view.x0 <= at <= self.view.x1:
            return
        x = round(self.to_x(at)) + 0.5
        pen = QPen(theme.colour("t1"), 1, Qt.PenStyle.CustomDashLine)
        pen.setDashPattern([3, 3])
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.setPen(pen)
        painter.drawLine(QPointF(x, 0), QPointF(x, self.height()))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(theme.colour("raised"))
        for value, colour in self.dots(at):
            painter.setPen(QPen(theme.colour(colour), 1.5))
            painter.drawEllipse(QPointF(x, self.to_y(value)), 3, 3)
