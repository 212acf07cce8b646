"""The rail at the left: one item a screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QWidget

from app import icons, theme
from app.tokens import RAIL_ITEM, RAIL_WIDTH
from app.widgets.basic import Hairline, Surface, row, tip

if TYPE_CHECKING:
    from PySide6.QtGui import QEnterEvent, QPaintEvent


class RailItem(QAbstractButton):
    """Icon over a word; the chosen one has a bar at its left, a recording one a still dot."""

    def __init__(self, text: str, icon: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(text)
        self._icon = icon
        self.dot = False
        self.setAccessibleName(text)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(RAIL_WIDTH - 1, RAIL_ITEM)

    def set_dot(self, on: bool) -> None:
        """Whether something records."""
        self.dot = on
        self.setAccessibleDescription("recording" if on else "")
        self.update()

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()
        super().enterEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        chosen = self.isChecked()
        if self.isDown():
            painter.fillRect(self.rect(), theme.colour("sel"))
        elif chosen or self.underMouse():
            painter.fillRect(self.rect(), theme.colour("hover"))
        if chosen:
            painter.fillRect(QRect(0, 0, 2, self.height()), theme.colour("acc"))
        ink = "t1" if chosen or self.underMouse() else "t2"
        x = (self.width() - 20) // 2
        painter.drawPixmap(x, 9, icons.pixmap(self._icon, ink, 20, self.devicePixelRatioF()))
        painter.setFont(theme.font(11, 500 if chosen else 400))
        painter.setPen(theme.colour(ink))
        painter.drawText(QRect(0, 32, self.width(), 16), Qt.AlignmentFlag.AlignCenter, self.text())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.dot:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("err"))
            painter.drawEllipse(QPointF(x + 24, 12), 3, 3)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.colour("acc"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 3, 3)
        painter.end()


class Rail(Surface):
    """The screens, and the keys at its foot."""

    chosen = Signal(str)
    keys_wanted = Signal()

    def __init__(self, screens: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__("chrome", vertical=False, parent=parent)
        self.setFixedWidth(RAIL_WIDTH)
        column = Surface("chrome")
        column.box.setContentsMargins(0, 8, 0, 4)
        self.box.addWidget(column)
        self.box.addWidget(Hairline(vertical=True))
        self.items: dict[str, RailItem] = {}
        group = QButtonGroup(self)
        for i, (name, title) in enumerate(screens):
            item = RailItem(title, name)
            item.setCheckable(True)
            item.setToolTip(tip(f"{title} (Ctrl+{i + 1})"))
            item.clicked.connect(lambda _=False, name=name: self.chosen.emit(name))
            group.addButton(item)
            column.box.addLayout(row(item))
            self.items[name] = item
        column.box.addStretch(1)
        keys = RailItem("Keys", "keys")
        keys.setToolTip("Keyboard shortcuts (?)")
        keys.clicked.connect(self.keys_wanted)
        column.box.addLayout(row(keys))
        self.setAccessibleName("Screens")

    def choose(self, name: str) -> None:
        """Mark a screen as the one in view."""
        self.items[name].setChecked(True)
