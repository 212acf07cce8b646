"""The keys of the window, in a dialog."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QVBoxLayout, QWidget

from app.widgets.basic import Hairline, chip, label, row
from app.widgets.button import Button

COLUMNS = 2


class KeysDialog(QDialog):
    """Every action that has a key, by menu."""

    def __init__(self, actions: Iterable[QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keyboard shortcuts")
        groups: dict[str, list[QAction]] = {}
        for action in actions:
            if action.data().key:
                groups.setdefault(action.data().menu, []).append(action)
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 20, 24, 16)
        box.setSpacing(16)
        box.addWidget(label("Keyboard shortcuts", "heading"))
        columns = row(spacing=48)
        sides = [QVBoxLayout() for _ in range(COLUMNS)]
        for side in sides:
            side.setSpacing(16)
            columns.addLayout(side)
        heights = [0] * COLUMNS
        for name, members in sorted(groups.items(), key=lambda group: -len(group[1])):
            shortest = heights.index(min(heights))
            sides[shortest].addLayout(self._group(name, members))
            heights[shortest] += len(members) + 2
        for side in sides:
            side.addStretch(1)
        box.addLayout(columns)
        box.addWidget(Hairline())
        close = Button("Close", key="Esc")
        close.clicked.connect(self.accept)
        note = label("Arrow keys move between the screens of the rail, segments and lists.", "hint")
        box.addLayout(row(note, None, close))

    def _group(self, name: str, actions: list[QAction]) -> QGridLayout:
        grid = QGridLayout()
        grid.setVerticalSpacing(6)
        grid.setHorizontalSpacing(32)
        grid.addWidget(label(name, "group"), 0, 0)
        grid.setColumnStretch(0, 1)
        grid.setColumnMinimumWidth(0, 200)
        for i, action in enumerate(actions, 1):
            entry = action.data()
            key = QKeySequence(entry.key).toString(QKeySequence.SequenceFormat.NativeText)
            grid.addWidget(label(entry.text.rstrip("…"), "sub", "t1"), i, 0)
            grid.addWidget(chip(key, "key"), i, 1, Qt.AlignmentFlag.AlignRight)
        return grid
