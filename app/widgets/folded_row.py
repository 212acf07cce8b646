"""A chart without values, folded to one line: its name and the reason."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import icons, theme
from app.tokens import PADDING
from app.widgets.basic import tip
from app.widgets.chart_data import Folded
from app.widgets.paint import LINE, font, write

HEIGHT, LOWEST = 56, 32
TEXT_LEFT = 148


class FoldedRow(QWidget):
    """The frame of the chart stays visible, so that nothing looks broken."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = title
        self.reason = ""
        self.setMinimumHeight(LOWEST)
        self.setMaximumHeight(HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        theme.changed.connect(self.update)

    def set_data(self, data: Folded, digits: bool = True) -> None:
        if data.reason != self.reason:
            self.reason = data.reason
            self.setToolTip(tip(data.reason))
            self.setAccessibleName(f"{self.title}: {data.reason}")
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("base"))
        y = (self.height() - LINE) / 2
        write(painter, QRectF(PADDING, y, TEXT_LEFT - PADDING, LINE), self.title, "t2", 12, 600)
        pixmap = icons.pixmap("info", "t2", 16, self.devicePixelRatioF())
        painter.drawPixmap(TEXT_LEFT - 1, int(y), pixmap)
        painter.setFont(font(12))
        room = self.width() - TEXT_LEFT - 24 - PADDING
        text = painter.fontMetrics().elidedText(self.reason, Qt.TextElideMode.ElideRight, room)
        write(painter, QRectF(TEXT_LEFT + 20, y, room, LINE), text, "t2", 12)
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), theme.colour("line"))
        painter.end()
