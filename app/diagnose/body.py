"""Findings beside the chosen one; in a narrow window one of the two at a time."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from app.diagnose.detail import Detail
from app.diagnose.left import WIDTH, LeftPane
from app.tokens import PADDING, RAIL_WIDTH
from app.widgets.basic import Hairline, Surface, row
from app.widgets.button import Segments

NARROW = 1280 - RAIL_WIDTH  # below it the panes take turns


class DiagnoseBody(QWidget):
    """`left` and `detail`, with a choice between them where there is no room for both."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.detail = LeftPane(), Detail()
        self._narrow: bool | None = None
        self.choice = Segments([("left", "Findings"), ("detail", "Evidence")])
        self.choice.changed.connect(lambda _value: self._arrange())
        self._head = Surface("raised")
        self._head.box.addLayout(row(self.choice, None, margins=(PADDING, 4, PADDING, 4)))
        self._head.box.addWidget(Hairline())
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setHandleWidth(1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.left)
        self._splitter.addWidget(self.detail)
        self._splitter.setStretchFactor(1, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self._head)
        box.addWidget(self._splitter, 1)
        self._arrange()
        self.reset_layout()

    def reset_layout(self) -> None:
        self._splitter.setSizes([WIDTH, max(640, self.width() - WIDTH)])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        if narrow is not self._narrow:
            self._narrow = narrow
            self._arrange()
            self.reset_layout()

    def _arrange(self) -> None:
        narrow, chosen = bool(self._narrow), self.choice.value()
        self._head.setVisible(narrow)
        self.left.setVisible(not narrow or chosen == "left")
        self.detail.setVisible(not narrow or chosen == "detail")
