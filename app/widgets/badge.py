"""A word on how a test came out, as a chip with the icon of its kind."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.icons import IconLabel
from app.widgets.basic import restyle

ICONS = {"ok": "check", "warn": "warning", "err": "close"}
BESIDE, ICON = 7, 16  # px beside the text; more of it for an icon


class Badge(QLabel):
    """Hidden while there is nothing to say."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("chip", "ok")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._icon = IconLabel("check", "ok", 12, self)
        self._icon.move(BESIDE, 4)
        self.hide()

    def show_badge(self, badge: tuple[str, str] | None) -> None:
        """`badge`: (word, kind of chip); None for none."""
        self.setVisible(badge is not None)
        if badge is None:
            return
        word, kind = badge
        icon = ICONS.get(kind)
        self.setText(word)
        restyle(self, chip=kind)
        self.ensurePolished()  # which adds to margins that are there before
        self.setContentsMargins(BESIDE + ICON if icon else BESIDE, 0, BESIDE, 0)
        self._icon.setVisible(icon is not None)
        if icon:
            self._icon.show_icon(icon, kind)
