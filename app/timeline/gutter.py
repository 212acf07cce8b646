"""The names of the lanes at their left, and the hairlines between them."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from app import icons, theme
from app.timeline.frame import Frame
from app.timeline.layout import CLOSED, Placed
from app.tokens import PADDING
from app.widgets.paint import font, write
from profiler.units import format_number

TITLE_X = PADDING + 14  # after the fold mark


def draw(painter: QPainter, frame: Frame, width: float, whole: float) -> None:
    """Names in `width` px, hairlines over all of `whole`."""
    scene = frame.scene
    painter.fillRect(QRectF(0, 0, width, frame.plot.height()), theme.colour("raised"))
    for pinned in (False, True):
        if pinned and scene.top:
            painter.fillRect(QRectF(0, 0, width, scene.top), theme.colour("raised"))
        for placed in scene.placed:
            if placed.pinned is pinned and frame.seen(placed):
                _name(painter, frame, placed, width)
                y = frame.y(placed) + placed.height
                if pinned or y > scene.top:
                    last = pinned and y == scene.top
                    colour = theme.colour("line2" if last else "line")
                    painter.fillRect(QRectF(0, y - 1, whole, 1), colour)
    painter.fillRect(QRectF(width - 1, 0, 1, frame.plot.height()), theme.colour("line"))


def _name(painter: QPainter, frame: Frame, placed: Placed, width: float) -> None:
    y, height = frame.y(placed), placed.height
    painter.save()
    if not placed.pinned:
        painter.setClipRect(QRectF(0, frame.scene.top, width, frame.plot.height()))
    dpr = frame.dpr
    mark = "right" if placed.state == CLOSED else "down"
    low = height < 34 or placed.state == CLOSED
    middle = y + height / 2 if low else y + 13
    painter.drawPixmap(PADDING - 4, round(middle) - 6, icons.pixmap(mark, "t3", 12, dpr))
    right = width - 34 if placed.strip.kind == "counter" else width - 8
    _text(painter, QRectF(TITLE_X, middle - 8, right - TITLE_X, 16), placed.strip.title, "t1", 12, 500)
    if not low and placed.strip.note:
        _text(painter, QRectF(TITLE_X, middle + 5, right - TITLE_X, 16), placed.strip.note, "t3", 11, 400)
    if placed.pinned:
        painter.drawPixmap(round(width) - 18, round(middle) - 6, icons.pixmap("follow", "acc", 12, dpr))
    elif placed.can_unfold and placed.state != CLOSED:
        text = f"+{placed.strip.rows - len(placed.heights)}"
        box = QRectF(0, y + height - 18, width - 8, 16)
        if height >= 56:
            write(painter, box, text, "t3", 11, align=Qt.AlignmentFlag.AlignRight)
    if placed.strip.kind == "counter" and placed.state != CLOSED and placed.strip.key in frame.tops:
        top = frame.tops[placed.strip.key]
        highest = format_number(top, _decimals(top))
        for text, at in ((highest, y + 3), ("0", y + height - 19)):
            write(painter, QRectF(0, at, width - 8, 16), text, "t3", 11, align=Qt.AlignmentFlag.AlignRight)
    painter.restore()


def _text(painter: QPainter, box: QRectF, text: str, colour: str, size: int, weight: int) -> None:
    """Shortened where it does not fit."""
    painter.setFont(font(size, weight))
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(box.width()))
    write(painter, box, shown, colour, size, weight)


def _decimals(top: float) -> int:
    """Of the highest value of an axis, which is round."""
    return next((n for n in range(6) if abs(top * 10**n - round(top * 10**n)) < 1e-6), 6)
