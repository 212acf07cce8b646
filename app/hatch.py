"""Brushes with the patterns of the stages, so that colour is never the only cue.

A pattern is fixed to the screen: spans drawn in device coordinates with these
brushes read as one surface and do not flicker while panning. Under a view
transform set `brush.setTransform(painter.worldTransform().inverted()[0])` first.
"""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QLineF, QPointF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QPixmap, QTransform

from app import theme
from app.tokens import DARK, LIGHT

TILE = 8  # logical pixels


def stage_brush(stage: str, dpr: float = 1.0) -> QBrush:
    """The fill of a stage with its hatch, for a screen of `dpr` device pixels per logical one."""
    return QBrush(_stage(stage, theme.tokens().dark, dpr))


def missing_brush(dpr: float = 1.0) -> QBrush:
    """The grey diagonals over a gap in the data; the ground stays open."""
    return QBrush(_missing(theme.tokens().dark, dpr))


def throttle_brush(dpr: float = 1.0) -> QBrush:
    """The horizontal hatch over a throttled interval; the ground stays open."""
    return QBrush(_throttle(theme.tokens().dark, dpr))


def _tile(size: int, dpr: float) -> tuple[QPixmap, QPainter]:
    device = max(1, round(size * dpr))
    pixmap = QPixmap(device, device)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(device / size, device / size)
    return pixmap, painter


def _brush(pixmap: QPixmap, size: int) -> QBrush:
    brush = QBrush(pixmap)
    scale = size / pixmap.width()
    brush.setTransform(QTransform.fromScale(scale, scale))
    return brush


def _lines(hatch: str) -> list[QLineF]:
    """The lines of a tile; diagonals reach over its corners, so that they join."""
    slash = [QLineF(-2, 10, 10, -2), QLineF(-2, 2, 2, -2), QLineF(6, 10, 10, 6)]
    backslash = [QLineF(-2, -2, 10, 10), QLineF(6, -2, 10, 2), QLineF(-2, 6, 2, 10)]
    return {
        "slash": slash,
        "backslash": backslash,
        "cross": slash + backslash,
        "vertical": [QLineF(2, 0, 2, 8), QLineF(6, 0, 6, 8)],
        "horizontal": [QLineF(0, 2, 8, 2), QLineF(0, 6, 8, 6)],
    }.get(hatch, [])


@lru_cache(maxsize=128)
def _stage(stage: str, dark: bool, dpr: float) -> QBrush:
    look = (DARK if dark else LIGHT).stages[stage]
    pixmap, painter = _tile(TILE, dpr)
    painter.fillRect(0, 0, TILE, TILE, QColor(look.fill))
    ink = QColor(0, 0, 0) if dark else QColor(look.edge)
    ink.setAlphaF(0.38 if dark else 0.62)
    painter.setPen(QPen(ink, 0.9 if look.hatch == "cross" else 1.4))
    painter.drawLines(_lines(look.hatch))
    if look.hatch == "dots":
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        for centre in (QPointF(2, 2), QPointF(6, 6)):
            painter.drawEllipse(centre, 1.2, 1.2)
    painter.end()
    return _brush(pixmap, TILE)


@lru_cache(maxsize=16)
def _missing(dark: bool, dpr: float) -> QBrush:
    lines = [QLineF(-1, 7, 7, -1), QLineF(-1, 1, 1, -1), QLineF(5, 7, 7, 5)]
    return _ruled(6, (DARK if dark else LIGHT).t3, 0.45, lines, dpr)


@lru_cache(maxsize=16)
def _throttle(dark: bool, dpr: float) -> QBrush:
    return _ruled(4, (DARK if dark else LIGHT).err, 0.35, [QLineF(0, 1.5, 4, 1.5)], dpr)


def _ruled(size: int, colour: str, alpha: float, lines: list[QLineF], dpr: float) -> QBrush:
    """Lines of 1 px on nothing."""
    ink = QColor(colour)
    ink.setAlphaF(alpha)
    pixmap, painter = _tile(size, dpr)
    painter.setPen(QPen(ink, 1))
    painter.drawLines(lines)
    painter.end()
    return _brush(pixmap, size)
