"""The heading of a group that folds: an arrow, the title, and a quiet note of what is inside."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app import icons, theme
from app.tokens import ROW


class FoldHeading(QAbstractButton):
    """Shows and hides `body`. `toggled` with True when it opens."""

    def __init__(
        self, title: str, body: QWidget, left: int, opened: bool = False, parent: QWidget | None = None
    ) -> None:
        """`left`: where the title begins; the arrow stands before it."""
        super().__init__(parent)
        self._body, self._left, self._note, self._tone = body, left, "", "t3"
        self.setText(title)
        self.setCheckable(True)
        self.setFixedHeight(ROW)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.toggled.connect(self._fold)
        theme.changed.connect(self.update)
        self.setChecked(opened)
        self._fold(opened)

    def show_note(self, text: str, tone: str = "t3") -> None:
        """What stands beside the title."""
        self._note, self._tone = text, tone
        self._describe()
        self.update()

    def note(self) -> str:
        return self._note

    def _fold(self, opened: bool) -> None:
        self._body.setVisible(opened)
        self._describe()

    def _describe(self) -> None:
        self.setAccessibleName(f"{self.text()}, {'open' if self.isChecked() else 'folded'}")
        self.setAccessibleDescription(self._note)

    def sizeHint(self) -> QSize:
        return QSize(280, ROW)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, middle = QPainter(self), Qt.AlignmentFlag.AlignVCenter
        if self.underMouse():
            painter.fillRect(self.rect(), theme.colour("hover"))
        arrow = icons.pixmap("down" if self.isChecked() else "right", "t2", 14, self.devicePixelRatioF())
        painter.drawPixmap(self._left - 20, (ROW - 14) // 2, arrow)
        painter.setFont(theme.font(12, 600))
        painter.setPen(theme.colour("t2"))
        painter.drawText(QRect(self._left, 0, self.width(), ROW), middle, self.text())
        x = self._left + painter.fontMetrics().horizontalAdvance(self.text()) + 8
        painter.setFont(theme.font(12))
        painter.setPen(theme.colour(self._tone))
        room = max(0, self.width() - x - 16)
        note = painter.fontMetrics().elidedText(self._note, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRect(x, 0, room, ROW), middle, note)
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("acc"), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))
        painter.end()
