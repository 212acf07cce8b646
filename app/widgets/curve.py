"""A chart of one to three curves on one axis, with gaps and throttled bands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyqtgraph import functions
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QWidget

from app import theme
from app.widgets.chart_data import CurveData, Floats, Line, Stretch
from app.widgets.chart_row import ChartRow, Label
from app.widgets.time_view import TimeView
from app.widgets.y_range import following


class CurveRow(ChartRow):
    """Lines of width 1, not antialiased: they may be drawn anew twenty times a second."""

    def __init__(self, title: str, view: TimeView, height: int, parent: QWidget | None = None) -> None:
        super().__init__(title, view, height, parent)
        self.data = CurveData()
        self._texts: dict[str, str] = {}
        self.throttle_hatch = False  # whether this chart names the reasons of throttling

    def set_data(self, data: CurveData, digits: bool) -> None:
        self.data = data
        names = [line.name for line in data.lines]
        if digits or any(name not in self._texts for name in names):
            self._texts = {line.name: line.text for line in data.lines}
        self._fit()
        self.invalidate()

    def _fit(self) -> None:
        """The range of what is in view: a spike outside of it does not count."""
        lows, highs = [], []
        for line in self.data.lines:
            first, last = _visible(line.x, self.view.x0, self.view.x1)
            for values in (line.y, line.upper):
                part = values[first:last] if values is not None else np.empty(0)
                part = part[np.isfinite(part)]
                if len(part):
                    lows.append(float(part.min()))
                    highs.append(float(part.max()))
        data, intervals = self.data, self.intervals()
        if highs:
            self.set_range(following(self.range, min(lows), max(highs), intervals, data.zero, data.top))
        elif self.range is None:
            self.set_range(following(None, 0.0, data.top or 1.0, intervals, True, data.top))

    def notes(self) -> Sequence[str]:
        return self.data.notes

    def gaps(self) -> Sequence[Stretch]:
        return self.data.gaps

    def throttled(self) -> Sequence[Stretch]:
        return self.data.throttled

    def labels(self, plot: QRectF) -> Sequence[Label]:
        return [
            Label(self.to_y(line.newest), line.name, self._texts.get(line.name, ""), line.colour)
            for line in self.data.lines
            if line.newest is not None
        ]

    def dots(self, at: float) -> Sequence[tuple[float, str]]:
        found = ((value_at(line.x, line.y, at), line) for line in self.data.lines if line.upper is None)
        return [(value, line.colour) for value, line in found if value is not None]

    def draw(self, painter: QPainter, plot: QRectF) -> None:
        for line in self.data.lines:
            if not len(line.x):
                continue
            path = self._path(line.x, line.y)
            if line.upper is not None:
                self._draw_band(painter, line)
                path.addPath(self._path(line.x, line.upper))
            painter.setPen(self._pen(line))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(path)
        if self.throttle_hatch:
            self.draw_throttle_hatch(painter, plot)

    def free_height(self, left: float, right: float) -> float:
        plot = self.plot_rect()
        taken = []
        for line in self.data.lines:
            first, last = _visible(line.x, self.to_seconds(left), self.to_seconds(right))
            _, y = self._points(line.x[first:last], line.y[first:last])
            taken.append(y[np.isfinite(y)])
        y = np.concatenate([*taken, np.array([-1000.0])])
        wanted = np.linspace(plot.top() + 6, plot.bottom() - 8, 5)
        return float(max(wanted, key=lambda at: min(np.abs(y - at).min(), 12.0)))

    def _pen(self, line: Line) -> QPen:
        pen = QPen(theme.colour(line.colour), 1)
        pen.setCosmetic(True)
        if line.dashed:
            pen.setDashPattern([4, 2])
        return pen

    def _points(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        plot = self.plot_rect()
        low, high = self._shown
        # Half a pixel down: then a value at a tick lies on the tick's line.
        return (plot.left() + (x - self.view.x0) * (plot.width() / self.view.span),
                plot.bottom() + 0.5 - (y - low) * (plot.height() / (high - low)))

    def _path(self, x: Floats, y: Floats) -> QPainterPath:
        px, py = self._points(x, y)
        return functions.arrayToQPath(px, py, connect="finite")

    def _draw_band(self, painter: QPainter, line: Line) -> None:
        assert line.upper is not None
        tint = theme.colour(line.colour)
        tint.setAlphaF(0.20)
        finite = np.isfinite(line.y)
        for part in np.split(np.arange(len(line.x)), np.flatnonzero(~finite)):
            part = part[finite[part]]
            if len(part) < 2:
                continue
            x = np.r_[line.x[part], line.x[part][::-1]]
            y = np.r_[line.y[part], line.upper[part][::-1]]
            painter.fillPath(self._path(x, y), tint)


def _visible(x: Floats, x0: float, x1: float) -> tuple[int, int]:
    """The part of `x` in view, with one point more at each end: the line goes on to it."""
    first, last = np.searchsorted(x, [x0, x1])
    return max(0, int(first) - 1), int(last) + 1


def value_at(x: Floats, y: Floats, at: float) -> float | None:
    """The value of the sample nearest to `at`; None in a gap and outside of the samples."""
    if not len(x) or at < x[0] or at > x[-1]:
        return None
    right = min(int(np.searchsorted(x, at)), len(x) - 1)
    left = max(0, right - 1)
    if np.isnan(y[left]) or np.isnan(y[right]):
        nearest = right if x[right] == at else left
    else:
        nearest = right if x[right] - at < at - x[left] else left
    value = float(y[nearest])
    return None if np.isnan(value) else value
