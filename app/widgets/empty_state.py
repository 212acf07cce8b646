"""What a screen shows before it has anything to show: what is missing, why, and the buttons that fill it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from app import theme
from app.icons import IconLabel
from app.tokens import GAP, PADDING, RUN_BAR
from app.widgets.basic import Hairline, Surface, label, row, strip
from app.widgets.button import Button


@dataclass(frozen=True)
class Way:
    """A way to fill the screen: a line, and the button that does it. Disabled when `do` is None."""

    icon: str
    title: str
    text: str
    button: str
    do: Callable[[], object] | None
    key: str = ""
    primary: bool = False


class _Frame(QWidget):
    """The names of the panes that will be here, without invented contents."""

    def __init__(self, names: Sequence[tuple[str, int]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._names = names
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("base"))
        painter.setFont(theme.font(12, 500))
        scale = min(1.0, self.height() / max(1, sum(height for _, height in self._names)))
        y = 0.0
        for name, height in self._names:
            painter.setPen(theme.colour("dis"))
            area = QRectF(PADDING, y + 8, self.width() - 2 * PADDING, 20)
            painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, name)
            y += round(height * scale)
            painter.fillRect(QRectF(0, y, self.width(), 1), theme.colour("line"))
        painter.end()


class EmptyState(QWidget):
    """A card of ways in the middle, over the frame of what will be here."""

    WIDTH = 688

    def __init__(
        self,
        title: str,
        why: str,
        ways: Sequence[Way],
        *,
        screen: str = "",
        note: str = "",
        frame: Sequence[tuple[str, int]] = (),
        command: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(0)
        top = 0
        if screen:
            self.bar_row = row(
                label(screen, "name"),
                label(note, "sub", "t2"),
                None,
                spacing=12,
                margins=(PADDING, 0, PADDING, 0),
            )
            grid.addWidget(strip(self.bar_row, RUN_BAR), 0, 0)
            top = 1
        grid.addWidget(_Frame(frame), top, 0)
        grid.setRowStretch(top, 1)
        place = QVBoxLayout()  # a little above the middle, where the eye looks first
        place.setContentsMargins(16, 16, 16, 16)
        place.addStretch(2)
        place.addLayout(row(None, self._card(title, why, ways, command), None))
        place.addStretch(3)
        grid.addLayout(place, top, 0)
        self.setAccessibleName(title)
        self.setAccessibleDescription(why)

    def _card(self, title: str, why: str, ways: Sequence[Way], command: str) -> Surface:
        card = Surface("popup")
        card.setFixedWidth(self.WIDTH)
        head = Surface("none")
        head.box.setContentsMargins(24, 20, 24, 20)
        head.box.setSpacing(4)
        head.box.addWidget(label(title, "heading"))
        reason = label(why, "label")
        reason.setWordWrap(True)
        head.box.addWidget(reason)
        card.box.addWidget(head)
        for way in ways:
            card.box.addWidget(Hairline())
            card.box.addWidget(self._way(way))
        if command:
            card.box.addWidget(Hairline())
            card.box.addLayout(self._terminal(command))
        return card

    def _way(self, way: Way) -> QWidget:
        part = Surface("none", vertical=False)
        part.box.setContentsMargins(24, 16, 24, 16)
        part.box.setSpacing(16)
        texts = Surface("none")
        texts.box.setSpacing(2)
        texts.box.addWidget(label(way.title, "strong"))
        text = label(way.text, "sub")
        text.setWordWrap(True)
        texts.box.addWidget(text)
        button = Button(way.button, key=way.key, kind="primary" if way.primary else "")
        button.setFixedWidth(176)
        button.setAccessibleDescription(way.text)
        if way.do is None:
            button.setEnabled(False)
        else:
            button.clicked.connect(lambda _=False, do=way.do: do())
        part.box.addWidget(IconLabel(way.icon, "acc" if way.primary else "t2", 20))
        part.box.addWidget(texts, 1)
        part.box.addSpacing(GAP)
        part.box.addWidget(button)
        return part

    def _terminal(self, command: str) -> QHBoxLayout:
        text = label(command, "cell")
        text.setProperty("mono", "true")
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        copy = Button("Copy", kind="flat", icon="copy")
        copy.setAccessibleName("Copy the command")
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(command))
        return row(label("From a terminal", "sub"), text, None, copy, spacing=16, margins=(24, 12, 16, 12))
