"""Step times as stacked bars: one surface for each stage, in its fill and hatch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QWidget

from app import theme
from app.hatch import stage_brush
from app.widgets.chart_data import Floats, StepBars
from app.widgets.chart_row import ChartRow, Label
from app.widgets.paint import LINE
from app.widgets.time_view import TimeView
from app.widgets.y_range import following

HATCHED = 4  # px: a surface less high or wide than this is plain
BARS_APART = 8  # px: from here on a gap stands between steps
LABEL_SPACE = 30  # px under the sum, before the stages' names
REACH = 1.8  # times a usual bar: what is higher is cut, so that one step does not flatten all others
FEW = 8  # bars: with less of them nothing is usual


class StepStrip(ChartRow):
    """Bars on the grid of time; their edges touch where several steps share a bar."""

    def __init__(self, title: str, view: TimeView, height: int, parent: QWidget | None = None) -> None:
        super().__init__(title, view, height, parent)
        self.data = StepBars()
        self._texts: tuple[str, ...] = ()
        self._median = ""

    def set_data(self, data: StepBars, digits: bool) -> None:
        self.data = data
        if digits or len(self._texts) != len(data.stage_texts):
            self._texts, self._median = data.stage_texts, data.median
        highest = self._highest()
        if highest > 0:
            self.set_range(following(self.range, 0.0, highest, self.intervals()))
        elif self.range is None:
            self.set_range(following(None, 0.0, 100.0, self.intervals()))
        self.invalidate()

    def _highest(self) -> float:
        """What the axis has to reach, in ms."""
        data = self.data
        seen = (data.right > self.view.x0) & (data.left < self.view.x1)
        if not seen.any():
            return 0.0
        slowest = float(data.slowest[seen].max())
        if seen.sum() < FEW:
            return slowest
        usual = max(float(np.percentile(data.heights[:, seen].sum(axis=0), 95)),
                    float(np.median(data.slowest[seen])))
        return min(slowest, REACH * usual)

    def notes(self) -> Sequence[str]:
        return self.data.notes

    def draw(self, painter: QPainter, plot: QRectF) -> None:
        data = self.data
        if not data.heights.size:
            return
        scale = plot.width() / self.view.span
        left = np.round(plot.left() + (data.left - self.view.x0) * scale)
        right = np.round(plot.left() + (data.right - self.view.x0) * scale)
        if data.bin_seconds == 0 and float(np.median(right - left)) >= BARS_APART:
            right = right - 1
        edges = np.vstack([np.zeros(data.heights.shape[1]), np.cumsum(data.heights, axis=0)])
        scale_y = plot.height() / self._shown[1]
        y = np.round(plot.bottom() - edges * scale_y)
        for i, stage in enumerate(data.stages):
            self._draw_stage(painter, stage, left, right, y[i + 1], y[i])
        middle = (left + right) / 2
        self._draw_whiskers(painter, middle, y[-1], data.slowest * scale_y, plot)
        self._draw_cuts(painter, middle[data.slowest > self._shown[1] * 1.05])
        self._draw_remarks(painter, plot)

    def _draw_stage(
        self, painter: QPainter, stage: str, left: Floats, right: Floats, top: Floats, bottom: Floats
    ) -> None:
        look, dark = theme.tokens().stages[stage], theme.tokens().dark
        plain, hatched = QColor(look.fill), stage_brush(stage, self.devicePixelRatioF())
        edge = QColor(8, 10, 13, 150) if dark else QColor(look.edge)
        # The hatch is fixed to the screen, so that bars of a stage read as one surface.
        painter.setBrushOrigin(0, 0)
        previous = None
        for x0, x1, y0, y1 in zip(left.tolist(), right.tolist(), top.tolist(), bottom.tolist(), strict=True):
            width, height = max(1.0, x1 - x0), y1 - y0
            if height <= 0:
                previous = None
                continue
            box = QRectF(x0, y0, width, height)
            painter.fillRect(box, hatched if height >= HATCHED and width >= HATCHED else plain)
            if height >= 3:
                painter.fillRect(QRectF(x0, y0, width, 1), edge)
                # Where neighbours differ in height the edge goes on down the side.
                if previous is not None and previous[0] == x0 and abs(previous[1] - y0) > 1:
                    x = x0 if y0 < previous[1] else x0 - 1
                    painter.fillRect(QRectF(x, min(previous[1], y0), 1, abs(previous[1] - y0)), edge)
            previous = (x1, y0)

    def _draw_whiskers(
        self, painter: QPainter, x: Floats, top: Floats, slowest: Floats, plot: QRectF
    ) -> None:
        if self.data.bin_seconds == 0:
            return
        colour = theme.colour("t3")
        for at, y0, y1 in zip(x.tolist(), (plot.bottom() - slowest).tolist(), top.tolist(), strict=True):
            if y1 - y0 >= 2:
                painter.fillRect(QRectF(round(at) - 0.5, max(y0, 0.0), 1.4, y1 - max(y0, 0.0) - 1), colour)

    def _draw_cuts(self, painter: QPainter, x: Floats) -> None:
        """An arrow where a bar or a whisker goes on above the chart."""
        colour = theme.colour("t1")
        for at in np.round(x).tolist():
            for row in range(4):
                painter.fillRect(QRectF(at - row, row, 2 * row + 1, 1), colour)

    def _draw_remarks(self, painter: QPainter, plot: QRectF) -> None:
        for remark in self.data.remarks:
            x = self.to_x(remark.x)
            if plot.left() <= x <= plot.right():
                y = max(plot.top() + 8, self.to_y(remark.y))
                self.write_beside(painter, x - 6, x + 8, y, remark.text, "t2")

    def labels(self, plot: QRectF) -> Sequence[Label]:
        """The sum above, then each stage at the middle of its newest surface."""
        data = self.data
        if not data.heights.shape[1]:
            return ()
        newest = np.median(data.heights[:, -8:], axis=1)
        middle = np.cumsum(newest) - newest / 2
        result = []
        for i, stage in enumerate(data.stages):
            text = self._texts[i] if i < len(self._texts) else ""
            # A stage too small to see is in the table; here it would push the others away.
            if text and stage != "other" and newest[i] >= 0.005 * newest.sum():
                y = max(self.to_y(float(middle[i])), plot.top() + LABEL_SPACE)
                result.append(Label(y, stage, text, "t2", stage))
        return result

    def _draw_gutters(self, painter: QPainter, plot: QRectF) -> None:
        super()._draw_gutters(painter, plot)
        if self._median:
            label = Label(0.0, "median", self._median, "t3", value_first=True)
            self._draw_label(painter, label, plot.right() + 9, plot.top() + LINE / 2)
