"""Over the lanes: the whole run in small with the part that is in view, and the ruler."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app import theme
from app.timeline import frame, layout, lod, overlay, raster
from app.timeline.canvas import BAR, GUTTER
from app.timeline.look import image_of, look
from app.timeline.scene import Scene
from app.timeline.view import View
from app.tokens import PADDING
from app.widgets.paint import text_width, write
from profiler.units import NBSP, format_count, format_number, format_time

MINI, RULER = 48, 24
HANDLE = 5  # px at the ends of the box that resize it
STRIPS = 3  # lanes that the small picture has room for
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


class MiniMap(QWidget):
    """The whole run. Its box is the view: drag it, or its ends; a press beside it brings the view there."""

    def __init__(self, scene: Scene, view: View, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scene, self.view = scene, view
        self.setFixedHeight(MINI)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("The whole run, with the part in view")
        self._held: tuple[str, float] | None = None  # what is dragged, and where it was taken, ns
        self._small: tuple[object, raster.Pixels] | None = None
        for signal in (view.changed, scene.region_changed, theme.changed, scene.lanes_changed):
            signal.connect(self.update)

    @property
    def plot(self) -> QRectF:
        return QRectF(GUTTER, 0, max(1, self.width() - GUTTER - BAR), MINI)

    def x_of(self, t: float) -> float:
        low, high = self.view.low, self.view.high
        return self.plot.left() + (t - low) / (high - low) * self.plot.width()

    def t_at(self, x: float) -> float:
        low, high = self.view.low, self.view.high
        return low + (x - self.plot.left()) / self.plot.width() * (high - low)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("raised"))
        plot = self.plot
        painter.fillRect(plot, theme.colour("base"))
        pixels = self._pixels()
        painter.setClipRect(plot)
        painter.drawImage(plot.topLeft(), image_of(pixels, self.devicePixelRatioF()))
        x0 = max(self.x_of(self.view.x0), plot.left())
        x1 = max(min(self.x_of(self.view.x1), plot.right()), x0 + 2)
        veil = theme.colour("raised")
        veil.setAlphaF(0.6)
        painter.fillRect(QRectF(plot.left(), 0, x0 - plot.left(), MINI), veil)
        painter.fillRect(QRectF(x1, 0, plot.right() - x1, MINI), veil)
        if self.scene.region is not None:
            band = theme.colour("acc")
            band.setAlphaF(0.25)
            left, right = (self.x_of(t) for t in self.scene.region)
            painter.fillRect(QRectF(left, 0, max(1.0, right - left), MINI), band)
        for t in self.scene.marks:
            painter.fillRect(QRectF(round(self.x_of(t)), 0, 1, MINI), theme.colour("warn"))
        acc = theme.colour("acc")
        painter.setPen(acc)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(QRectF(x0 + 0.5, 0.5, x1 - x0 - 1, MINI - 2))
        for x in (x0, x1):
            painter.fillRect(QRectF(x - 2, MINI / 2 - 9, 4, 18), acc)
        painter.setClipping(False)
        write(
            painter,
            QRectF(PADDING, 0, GUTTER, MINI - 14),
            "Run" if not self.scene.model.traced else "Trace",
            "t1",
            12,
            500,
        )
        write(painter, QRectF(PADDING, 17, GUTTER - PADDING - 4, 24), self._length(), "t3", 11)
        painter.fillRect(QRectF(0, MINI - 1, self.width(), 1), theme.colour("line"))
        painter.end()

    def _length(self) -> str:
        n = len(self.scene.steps()[0])
        long = format_time(self.view.high - self.view.low)
        return f"{format_count(n)}{NBSP}step{'' if n == 1 else 's'}, {long}" if n else long

    def _pixels(self) -> raster.Pixels:
        """The small picture, drawn once for a size, a theme and a model."""
        dpr = self.devicePixelRatioF()
        w, h = max(1, round(self.plot.width() * dpr)), round(MINI * dpr)
        key = (w, dpr, theme.tokens().dark, self.scene.model, self.view.low, self.view.high)
        if self._small is None or self._small[0] != key:
            pixels = np.zeros((h, w), np.uint32)
            edge = np.unique(np.linspace(self.view.low, self.view.high, w + 1).astype(np.int64))
            colours = look(dpr)
            if len(edge) == w + 1:
                for k, row in enumerate(self._rows()):
                    columns = lod.columns(self.scene.model.rows[row], edge, dpr)
                    y = round((6 + 13 * k) * dpr)
                    raster.draw(
                        pixels, y, y + round(10 * dpr), columns, raster.styles(columns, False), colours
                    )
            self._small = key, pixels
        return self._small[1]

    def _rows(self) -> list[int]:
        """Rows that tell most: the loop's thread or its stages, then streams."""
        kinds = [
            placed.strip
            for kind in ("stages", "host", "stream")
            for placed in self.scene.placed
            if placed.strip.kind == kind
        ]
        found: list[int] = []
        for strip in kinds:
            if strip.kind != "host" or not any(s.kind == "host" and s.first in found for s in kinds):
                found.append(strip.first)
        return found[:STRIPS]

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        if event.button() != Qt.MouseButton.LeftButton or at.x() < GUTTER:
            return
        x0, x1 = self.x_of(self.view.x0), self.x_of(self.view.x1)
        if abs(at.x() - x0) <= HANDLE:
            self._held = "x0", self.t_at(at.x())
        elif abs(at.x() - x1) <= HANDLE:
            self._held = "x1", self.t_at(at.x())
        else:
            if not x0 <= at.x() <= x1:
                middle = self.t_at(at.x())
                self.view.show_range(middle - self.view.span / 2, middle + self.view.span / 2)
            self._held = "both", self.t_at(at.x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        near = min(abs(at.x() - self.x_of(self.view.x0)), abs(at.x() - self.x_of(self.view.x1))) <= HANDLE
        self.setCursor(Qt.CursorShape.SizeHorCursor if near else Qt.CursorShape.ArrowCursor)
        if self._held is None:
            return
        what, before = self._held
        t = self.t_at(at.x())
        if what == "both":
            self.view.show_range(self.view.x0 + t - before, self.view.x1 + t - before)
            self._held = what, t
        elif what == "x0":
            self.view.show_range(min(t, self.view.x1 - 1), self.view.x1)
        else:
            self.view.show_range(self.view.x0, max(t, self.view.x0 + 1))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._held = None


class Ruler(QWidget):
    """Times since the run's start, and the region's length in a pill."""

    def __init__(self, scene: Scene, view: View, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scene, self.view = scene, view
        self.setFixedHeight(RULER)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Ruler")
        for signal in (view.changed, scene.region_changed, scene.drawn_changed, theme.changed):
            signal.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("raised"))
        plot = QRectF(GUTTER, 0, max(1, self.width() - GUTTER - BAR), RULER)
        drawn = frame.make(self.scene, plot, self.view.x0, self.view.x1, self.devicePixelRatioF(), 0)
        found, step = layout.ticks(drawn.t(plot.left()), drawn.t(plot.right()), plot.width())
        factor, unit = next((pair for pair in _UNITS if step >= pair[0] * 0.999), _UNITS[-1])
        write(painter, QRectF(PADDING, 0, GUTTER, RULER), f"{unit} since start", "t3", 11)
        painter.setClipRect(plot)
        pill = self._pill(drawn)
        for t in found:
            text = tick_text(t, step, factor)
            x = drawn.x(t)
            painter.fillRect(QRectF(round(x), RULER - 6, 1, 6), theme.colour("line2"))
            box = QRectF(x + 4, 0, text_width(text, 11), RULER - 2)
            if pill is None or not box.adjusted(-2, 0, 2, 0).intersects(pill[0]):
                write(painter, box, text, "t3", 11)
        for k, t in enumerate(self.scene.marks):
            x = drawn.x(t)
            painter.fillRect(QRectF(round(x), 0, 1, RULER), theme.colour("warn"))
            write(painter, QRectF(x + 3, 0, 40, RULER), f"M{k + 1}", "warn", 11, 500)
        if pill is not None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("accfill"))
            painter.drawRoundedRect(pill[0], 4, 4)
            write(painter, pill[0], pill[1], "#FFFFFF", 11, 500, Qt.AlignmentFlag.AlignHCenter)
        painter.setClipping(False)
        painter.fillRect(QRectF(0, RULER - 1, self.width(), 1), theme.colour("line"))
        painter.end()

    def _pill(self, drawn: frame.Frame) -> tuple[QRectF, str] | None:
        box, region = overlay.region_box(drawn), self.scene.region
        if box is None or region is None:
            return None
        text = format_time(region[1] - region[0])
        if self.scene.region_title:
            text = f"{text}, {self.scene.region_title}"
        wide = text_width(text, 11, 500) + 20
        left = min(max(box.center().x() - wide / 2, drawn.plot.left() + 2), drawn.plot.right() - wide - 2)
        return QRectF(QPointF(left, 3), QPointF(left + wide, RULER - 4)), text


def tick_text(t: float, step: float, factor: float) -> str:
    """A time in the unit of its axis, with as many decimals as its ticks need."""
    decimals, size = 0, step / factor
    while decimals < 3 and abs(size - round(size)) > 1e-6 * size:
        size *= 10
        decimals += 1
    return format_number(t / factor, decimals)
