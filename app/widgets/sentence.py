"""One line of text in several weights and colours, shortened where it does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.widgets.basic import tip
from app.widgets.paint import font, text_width, write


@dataclass(frozen=True)
class Part:
    text: str
    colour: str = "t2"
    weight: int = 400


class Sentence(QWidget):
    """Parts beside each other in one size. Its width is what they need, unless there is less."""

    def __init__(
        self, size: int = 12, height: int = 16, firm: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._firm = firm  # never shortened
        self._size = size
        self.parts: tuple[Part, ...] = ()
        self.setFixedHeight(height)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_parts(self, parts: Sequence[Part]) -> None:
        parts = tuple(part for part in parts if part.text)
        if parts == self.parts:
            return
        wide = self._needed()
        self.parts = parts
        self.setAccessibleName(self.text())
        if self._needed() != wide:
            self.updateGeometry()
        self.update()

    def text(self) -> str:
        return "".join(part.text for part in self.parts)

    def _needed(self) -> int:
        return round(sum(text_width(p.text, self._size, p.weight) for p in self.parts) + 0.5) + 1

    def sizeHint(self) -> QSize:
        return QSize(self._needed(), self.height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint() if self._firm else QSize(0, self.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        x, right = 0.0, float(self.width())
        for part in self.parts:
            width = text_width(part.text, self._size, part.weight)
            text = part.text
            if x + width > right + 1:
                painter.setFont(font(self._size, part.weight))
                text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(right - x))
            write(painter, QRectF(x, 0, width + 4, self.height()), text, part.colour, self._size, part.weight)
            x += width
            if x > right:
                break
        painter.end()
        self.setToolTip(tip(self.text()) if self._needed() > self.width() + 1 else "")
