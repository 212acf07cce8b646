"""Many shares over time as rows of a heat strip: the cores of a machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QWidget

from app import theme
from app.widgets.chart_data import HeatData
from app.widgets.chart_row import ChartRow
from app.widgets.paint import LINE, text_width, write
from app.widgets.time_view import TimeView

FAINTEST = 0.02  # shares below are left blank: an idle core is never quite idle


class HeatStrip(ChartRow):
    """Each cell is `m1` at an opacity equal to its share, on the surface of empty tracks."""

    def __init__(self, title: str, view: TimeView, height: int, parent: QWidget | None = None) -> None:
        super().__init__(title, view, height, parent)
        self.data = HeatData()
        self._labels: tuple[tuple[str, str, str], ...] = ()

    def set_data(self, data: HeatData, digits: bool) -> None:
        self.data = data
        if digits or len(self._labels) != len(data.labels):
            self._labels = data.labels
        self.invalidate()

    def notes(self) -> Sequence[str]:
        return self.data.notes

    def draw(self, painter: QPainter, plot: QRectF) -> None:
        painter.fillRect(plot, theme.colour("base"))
        rows, bins = self.data.shares.shape
        if not rows or not bins:
            return
        image = self._image()
        left, right = self.to_x(self.data.edges[0]), self.to_x(self.data.edges[-1])
        # One pixel of the image is one cell: stretched without smoothing its edges stay sharp.
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(QRectF(left, plot.top(), right - left, plot.height()), image)

    def _image(self) -> QImage:
        colour = theme.colour("m1")
        shares = np.nan_to_num(self.data.shares)
        alpha = np.where(shares < FAINTEST, 0.0, np.clip(shares, 0.0, 1.0))
        pixels = np.empty((*alpha.shape, 4), np.uint8)
        pixels[..., 0], pixels[..., 1], pixels[..., 2] = colour.blue(), colour.green(), colour.red()
        pixels[..., 3] = np.round(alpha * 255)
        height, width = alpha.shape
        image = QImage(pixels.tobytes(), width, height, 4 * width, QImage.Format.Format_ARGB32)
        return image.copy()  # the bytes go with this call

    def _draw_gutters(self, painter: QPainter, plot: QRectF) -> None:
        super()._draw_gutters(painter, plot)
        right = Qt.AlignmentFlag.AlignRight
        for text, y in ((self.data.first, plot.top()), (self.data.last, plot.bottom() - LINE + 2)):
            write(painter, QRectF(plot.left() - 68, y - 1, 60, LINE), text, "t3", align=right)
        y = plot.top() + 18
        for label in self._labels:
            x = plot.right() + 9
            for text, colour in zip(label, ("t3", "t1", "t3"), strict=True):
                if text and y + LINE <= self.height():
                    write(painter, QRectF(x, y, 200, LINE), text, colour)
                    x += text_width(text, 11) + 3
            y += LINE + 2
