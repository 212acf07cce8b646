"""The time axis under linked charts, with the crosshair's time in a pill."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.tokens import GUTTER_LEFT, GUTTER_RIGHT, PADDING
from app.widgets.time_view import TimeView
from profiler.units import NBSP, clock

HEIGHT = 24
TICK_PX = 100  # at least between two labels
_ROUND = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


def tick_step(span: float, width_px: float) -> float:
    """Seconds between two ticks."""
    least = span * TICK_PX / max(width_px, 1.0)
    if least > 1:
        return float(next((s for s in _ROUND if s >= least), 86400 * math.ceil(least / 86400)))
    power = 10.0 ** math.floor(math.log10(least))
    return next((f * power for f in (1, 2, 5) if f * power >= least * (1 - 1e-9)), 10 * power)


def time_ticks(x0: float, x1: float, width_px: float) -> list[float]:
    step = tick_step(x1 - x0, width_px)
    first, last = math.ceil(x0 / step - 1e-9), math.floor(x1 / step + 1e-9)
    return [i * step for i in range(first, last + 1) if i >= 0]


def tick_text(seconds: float, step: float) -> str:
    """20 s, 20.5 s; from two minutes on as a clock: 02:30."""
    if step >= 1 and seconds >= 120:
        return clock(seconds * 1e9)
    decimals = 0 if step >= 1 else -math.floor(math.log10(step) + 1e-9)
    return f"{seconds:.{decimals}f}{NBSP}s"


def moment_text(seconds: float, span: float) -> str:
    """A time at the crosshair, as exact as the view lets one point."""
    decimals = 2 if span > 2 else 3 if span > 0.2 else 4
    if seconds >= 3600:
        return clock(seconds * 1e9)
    if seconds >= 120:
        minutes, rest = divmod(seconds, 60)
        return f"{int(minutes):02d}:{rest:05.2f}"
    return f"{seconds:.{decimals}f}{NBSP}s"


class TimeAxis(QWidget):
    """Ticks of a `TimeView` between the gutters of its charts."""

    def __init__(self, view: TimeView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = view
        self._inset = 0
        self.setFixedHeight(HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Time axis")
        view.changed.connect(self.update)
        view.crosshair_changed.connect(self.update)
        theme.changed.connect(self.update)

    def set_inset(self, width: int) -> None:
        """What a scroll bar beside the charts takes of their width."""
        if width != self._inset:
            self._inset = width
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("raised"))
        width = max(1, self.width() - self._inset - GUTTER_LEFT - GUTTER_RIGHT)
        painter.fillRect(QRectF(0, 0, self.width(), 1), theme.colour("line2"))
        painter.setFont(theme.font(11))
        painter.setPen(theme.colour("t3"))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRectF(PADDING, 0, GUTTER_LEFT - PADDING, HEIGHT), middle, "time since start")
        pill = self._pill(painter, width)
        step = tick_step(self.view.span, width)
        for seconds in time_ticks(self.view.x0, self.view.x1, width):
            box = self._box(seconds, width, painter.fontMetrics().horizontalAdvance(tick_text(seconds, step)))
            if pill is None or not box.adjusted(-4, 0, 4, 0).intersects(pill[0]):
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, tick_text(seconds, step))
        if pill is not None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("t1"))
            painter.drawRoundedRect(pill[0], 4, 4)
            painter.setPen(theme.colour("base"))
            painter.setFont(theme.font(11, 500))
            painter.drawText(pill[0], Qt.AlignmentFlag.AlignCenter, pill[1])
        painter.end()

    def _box(self, seconds: float, width: float, text_width: float) -> QRectF:
        x = GUTTER_LEFT + (seconds - self.view.x0) / self.view.span * width
        return QRectF(x - text_width / 2 - 1, 0, text_width + 2, HEIGHT)

    def _pill(self, painter: QPainter, width: float) -> tuple[QRectF, str] | None:
        at = self.view.crosshair
        if at is None or not self.view.x0 <= at <= self.view.x1:
            return None
        text = moment_text(at, self.view.span)
        box = self._box(at, width, painter.fontMetrics().horizontalAdvance(text) + 26)
        return box.adjusted(0, 3, 0, -2), text
