"""The stage that a verdict is about, as a flag of its colour and hatch."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app import theme
from app.hatch import stage_brush


class StageFlag(QWidget):
    """`width` px at the left of what it belongs to; grey where no stage is meant."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stage = ""
        self.setFixedWidth(width)
        theme.changed.connect(self.update)

    def show_stage(self, stage: str) -> None:
        self.stage = stage
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, area = QPainter(self), QRectF(0, 0, self.width(), self.height())
        ground = stage_brush(self.stage, self.devicePixelRatioF()) if self.stage else theme.colour("line2")
        painter.fillRect(area, ground)
        painter.end()
