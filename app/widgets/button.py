"""Buttons: with an icon and the key that does the same, and segments of which one is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from app import icons, theme
from app.widgets.basic import restyle

_GAP = 8
_INK = {"primary": "#FFFFFF", "danger": "err", "flat": "t2", "palette": "t3"}


class Button(QPushButton):
    """A button: icon, text, and the key beside it in a smaller, quieter hand.

    `kind`: "", primary, flat, danger, link or palette.
    """

    def __init__(
        self,
        text: str,
        *,
        kind: str = "",
        icon: str = "",
        key: str = "",
        big: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, parent)
        self._icon, self._key, self._kind = icon, key, kind
        self.setProperty("own", "true")
        if kind:
            self.setProperty("kind", kind)
        if big:
            self.setProperty("big", "true")
        if kind == "link":
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        wide = QSizePolicy.Policy.Expanding if big else QSizePolicy.Policy.Maximum
        self.setSizePolicy(wide, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(text)

    def set_icon(self, name: str) -> None:
        """Another icon from assets/icons."""
        self._icon = name
        self.updateGeometry()
        self.update()

    def _extra(self) -> int:
        width = 16 + _GAP if self._icon else 0
        if self._key:
            width += _GAP + QFontMetrics(theme.font(11)).horizontalAdvance(self._key)
        return width

    def event(self, event: QEvent) -> bool:
        """Space presses a button that has the focus, also where it is the key of an action."""
        override = event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if override and event.key() == Qt.Key.Key_Space:  # type: ignore[attr-defined]
            event.accept()
            return True
        return super().event(event)

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(hint.width() + self._extra(), hint.height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _colours(self) -> tuple[str, str]:
        if not self.isEnabled():
            return ("t3", "t3") if self._kind == "primary" else ("dis", "dis")
        ink = _INK.get(self._kind, "acc" if self._kind == "link" else "t1")
        return ink, {"primary": "#E4E6FB", "danger": "err"}.get(self._kind, "t3")

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)  # the frame; the style sheet makes its text invisible
        painter, text = QPainter(self), self.text()
        ink, quiet = self._colours()
        metrics = self.fontMetrics()
        flags = Qt.TextFlag.TextShowMnemonic if "&" in text else Qt.TextFlag.TextSingleLine
        text_width = metrics.size(flags, text).width()
        left_aligned = self._kind == "palette"
        x = 8 if left_aligned else (self.width() - text_width - self._extra()) // 2
        if self._icon:
            pixmap = icons.pixmap(self._icon, ink, 16, self.devicePixelRatioF())
            painter.drawPixmap(QPoint(x, (self.height() - 16) // 2), pixmap)
            x += 16 + _GAP
        painter.setFont(self.font())
        painter.setPen(theme.colour(ink))
        area = QRect(x, 0, text_width + 2, self.height())
        painter.drawText(area, flags | Qt.AlignmentFlag.AlignVCenter, text)
        if self._key:
            painter.setFont(theme.font(11))
            wide = painter.fontMetrics().horizontalAdvance(self._key)
            x = self.width() - 12 - wide if left_aligned else x + text_width + _GAP
            if left_aligned:
                painter.setPen(theme.colour("line2"))
                painter.drawRoundedRect(QRectF(x - 4.5, 3.5, wide + 10, self.height() - 8), 3, 3)
            painter.setPen(theme.colour(quiet))
            area = QRect(x, 0 if left_aligned else 1, wide + 2, self.height())
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, self._key)
        painter.end()


class Segments(QWidget):
    """A row of joined buttons of which one is chosen."""

    changed = Signal(object)

    def __init__(
        self,
        entries: Sequence[tuple[object, str]],
        value: object = None,
        parent: QWidget | None = None,
        stretch: bool = False,
    ) -> None:
        super().__init__(parent)
        box = QHBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        self._values = [entry for entry, _ in entries]
        for i, (_entry, text) in enumerate(entries):
            button = QPushButton(text, self)
            button.setCheckable(True)
            button.setProperty("kind", "segment")
            place = "first" if i == 0 else "last" if i == len(entries) - 1 else "middle"
            button.setProperty("place", place)
            wide = QSizePolicy.Policy.Expanding if stretch else QSizePolicy.Policy.Fixed
            button.setSizePolicy(wide, QSizePolicy.Policy.Fixed)
            self._group.addButton(button, i)
            box.addWidget(button)
        self._group.idClicked.connect(lambda i: self.changed.emit(self._values[i]))
        self.set_value(value if value is not None else self._values[0])

    def value(self) -> object:
        """The chosen entry, or None."""
        chosen = self._group.checkedId()
        return self._values[chosen] if chosen >= 0 else None

    def set_value(self, value: object) -> None:
        """Choose an entry without telling; an unknown one chooses none."""
        if value in self._values:
            self._group.button(self._values.index(value)).setChecked(True)
        elif (button := self._group.checkedButton()) is not None:
            self._group.setExclusive(False)
            button.setChecked(False)
            self._group.setExclusive(True)

    def button(self, value: object) -> QPushButton:
        """The button of an entry, for tooltips and for disabling it."""
        found = self._group.button(self._values.index(value))
        assert isinstance(found, QPushButton)
        return found

    def set_state(self, state: str) -> None:
        """Mark as wrong or doubtful, as fields are."""
        for button in self._group.buttons():
            restyle(button, state=state)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right choose, as in a group of radio buttons."""
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        at = (self._group.checkedId() + step) % len(self._values)
        button = self._group.button(at)
        if button.isEnabled():
            button.setFocus()
            button.click()
