"""The newest runs, on Launch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.recents import Recent, when
from app.tokens import ROW
from app.widgets.basic import Hairline, PaneHeader, tip
from profiler.units import format_ms


class _RecentRow(QAbstractButton):
    def __init__(self, recent: Recent, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._recent = recent
        self.setText(recent.name)
        self.setFixedHeight(ROW)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setToolTip(tip(str(recent.path)))
        self.setAccessibleName(f"Open {recent.name}")
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(280, ROW)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self.underMouse():
            painter.fillRect(self.rect(), theme.colour("hover"))
        painter.fillRect(QRect(0, self.height() - 1, self.width(), 1), theme.colour("grid"))
        middle, right = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignRight
        width = self.width() - 32
        dated = width >= 320
        names = width - (220 if dated else 100)
        painter.setFont(theme.font(12, 500))
        painter.setPen(theme.colour("t1"))
        name = painter.fontMetrics().elidedText(self._recent.name, Qt.TextElideMode.ElideRight, names)
        painter.drawText(QRect(16, 0, names, ROW), middle, name)
        painter.setFont(theme.font(12, 600))
        step = self._recent.step_ms
        if step is not None:
            painter.drawText(QRect(16 + names, 0, 100, ROW), middle | right, format_ms(step * 1e6))
        painter.setFont(theme.font(12))
        painter.setPen(theme.colour("t3"))
        text = "recording" if self._recent.recording else when(self._recent.when, datetime.now())
        if dated:
            painter.drawText(QRect(16 + width - 116, 0, 116, ROW), middle | right, text)
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("acc"), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -2))
        painter.end()


class RecentPane(QWidget):
    """The newest runs; one is opened by a click."""

    open_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        self.header = PaneHeader("Recent", "looking for runs")
        box.addWidget(Hairline())
        box.addWidget(self.header)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        box.addLayout(self._rows)

    def show_runs(self, runs: Sequence[Recent]) -> None:
        """These, newest first."""
        while (item := self._rows.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self.header.note.setText("" if runs else "no run yet; each one lands here")
        for recent in runs:
            button = _RecentRow(recent)
            button.clicked.connect(lambda _=False, path=str(recent.path): self.open_requested.emit(path))
            self._rows.addWidget(button)
