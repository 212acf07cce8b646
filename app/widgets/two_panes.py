"""Two panes beside each other that take turns in a narrow window."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from app.tokens import PADDING, RAIL_WIDTH
from app.widgets.basic import Hairline, Surface, row
from app.widgets.button import Segments

NARROW = 1280 - RAIL_WIDTH  # px: below it the panes take turns


def splitter(first: QWidget, second: QWidget, wide: int = 0,
             way: Qt.Orientation = Qt.Orientation.Horizontal) -> QSplitter:
    """Both with a hairline between them that can be moved; `wide`: which of the two takes what is left."""
    result = QSplitter(way)
    result.setHandleWidth(1)
    result.setChildrenCollapsible(False)
    result.addWidget(first)
    result.addWidget(second)
    result.setStretchFactor(wide, 1)
    return result


class TwoPanes(QWidget):
    """A wide pane beside one of `width` px; a choice between the two where there is no room for both."""

    turned = Signal()  # between beside each other and one at a time

    def __init__(self, first: tuple[QWidget, str], second: tuple[QWidget, str], width: int, wide: int = 0,
                 least: int = 480, parent: QWidget | None = None) -> None:
        """Each with its title. `wide`: 0 or 1, which of them is the wide one, at first `least` px or more."""
        super().__init__(parent)
        self._width, self._wide, self._least = width, wide, least
        self._panes = (first[0], second[0])
        self._narrow: bool | None = None
        self.choice = Segments([first, second])
        self.choice.changed.connect(lambda _value: self._arrange())
        self._head = Surface("raised")
        self._head.box.addLayout(row(self.choice, None, margins=(PADDING, 4, PADDING, 4)))
        self._head.box.addWidget(Hairline())
        self._splitter = splitter(*self._panes, wide)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self._head)
        box.addWidget(self._splitter, 1)
        self._arrange()
        self.reset_layout()

    def reset_layout(self) -> None:
        sizes = [max(self._least, self.width() - self._width), self._width]
        self._splitter.setSizes(sizes[::-1] if self._wide else sizes)

    def show_pane(self, pane: QWidget) -> None:
        """Bring it to the front where the panes take turns."""
        if self._narrow:
            self.choice.set_value(pane)
            self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        if narrow is not self._narrow:
            self._narrow = narrow
            self._arrange()
            self.reset_layout()
            self.turned.emit()

    def _arrange(self) -> None:
        self._head.setVisible(bool(self._narrow))
        for pane in self._panes:
            pane.setVisible(not self._narrow or self.choice.value() is pane)
