"""Small helpers for widgets that paint by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter

from app import theme
from app.hatch import stage_brush

LINE = 16  # height of a line of text at 11 and 12


@lru_cache(maxsize=32)
def font(size: int, weight: int = 400, mono: bool = False) -> QFont:
    """`theme.font`, made once: charts ask for it at every repaint."""
    return theme.font(size, weight, mono)


@lru_cache(maxsize=4096)
def text_width(text: str, size: int, weight: int = 400) -> float:
    return QFontMetricsF(font(size, weight)).horizontalAdvance(text)


def write(
    painter: QPainter, box: QRectF, text: str, colour: str, size: int = 11, weight: int = 400,
    align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
) -> None:
    """One line of text, centred vertically in `box`."""
    painter.setFont(font(size, weight))
    painter.setPen(theme.colour(colour))
    painter.drawText(box, align | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextDontClip, text)


def outline(painter: QPainter, box: QRectF, colour: QColor) -> None:
    """One pixel inside a box."""
    painter.fillRect(QRectF(box.left(), box.top(), box.width(), 1), colour)
    painter.fillRect(QRectF(box.left(), box.bottom() - 1, box.width(), 1), colour)
    painter.fillRect(QRectF(box.left(), box.top(), 1, box.height()), colour)
    painter.fillRect(QRectF(box.right() - 1, box.top(), 1, box.height()), colour)


def swatch(painter: QPainter, box: QRectF, stage: str, dpr: float) -> None:
    """A piece of a stage: its fill and hatch, and in light its edge."""
    painter.fillRect(box, stage_brush(stage, dpr))
    tokens = theme.tokens()
    if not tokens.dark and box.width() >= 3:
        outline(painter, box, QColor(tokens.stages[stage].edge))


def spread(wanted: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Heights near the wanted ones (ascending), at least `apart` from each other, within `low` to `high`."""
    result: list[float] = []
    for y in wanted:
        result.append(max(y, result[-1] + apart if result else low))
    limit = high
    for i in range(len(result) - 1, -1, -1):
        result[i] = min(result[i], limit)
        limit = result[i] - apart
    return result
