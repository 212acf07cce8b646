"""How much to record: the capture level and the sampling rate."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.widgets.basic import Hairline, PaneHeader, label, row
from app.widgets.button import Segments
from profiler.units import format_bytes

RATES = ((10.0, "10 Hz"), (50.0, "50"), (100.0, "100"))


class _Level(QAbstractButton):
    """A capture level: a radio with two lines, and what it took the last time at the right."""

    def __init__(self, title: str, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(title)
        self._note = text
        self.size_text = ""
        self.setCheckable(True)
        self.setAccessibleName(title)
        self.setAccessibleDescription(text)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFixedHeight(57)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(320, 57)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        chosen = self.isChecked()
        if chosen or self.underMouse():
            painter.fillRect(self.rect(), theme.colour("sel" if chosen else "hover"))
        painter.fillRect(QRect(0, self.height() - 1, self.width(), 1), theme.colour("line"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = QPoint(24, 20)
        ring = theme.colour("accfill" if chosen else "ctl")
        painter.setPen(QPen(ring, 1))
        painter.setBrush(ring if chosen else theme.colour("inset"))
        painter.drawEllipse(centre, 7, 7)
        if chosen:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(Qt.GlobalColor.white)
            painter.drawEllipse(centre, 3, 3)
        painter.setFont(theme.font(13, 500))
        painter.setPen(theme.colour("t1"))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRect(44, 10, self.width() - 140, 20), middle, self.text())
        painter.setFont(theme.font(12))
        painter.setPen(theme.colour("t2" if chosen else "t3"))
        painter.drawText(QRect(44, 30, self.width() - 60, 18), middle, self._note)
        if self.size_text:
            painter.setFont(theme.font(12, 600))
            painter.setPen(theme.colour("t1"))
            right = QRect(self.width() - 136, 10, 120, 20)
            painter.drawText(right, middle | Qt.AlignmentFlag.AlignRight, self.size_text)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.colour("acc"), 2))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -2), 4, 4)
        painter.end()


class CapturePane(QWidget):
    """How much to record."""

    changed = Signal()

    def __init__(self, level: str = "trace", rate: float = 10.0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        self.header = PaneHeader("Capture")
        box.addWidget(Hairline())
        box.addWidget(self.header)
        self.levels = {
            "light": _Level("Light", "Stages, GPU and host signals"),
            "trace": _Level("Light and one trace", "adds the kernels of 8 steps"),
            "traces": _Level("Traces all along", "8 steps every 30 s"),
        }
        self._group = QButtonGroup(self)
        for button in self.levels.values():
            self._group.addButton(button)
            button.clicked.connect(self.changed)
            box.addWidget(button)
        self.levels.get(level, self.levels["trace"]).setChecked(True)
        self.rate = Segments(RATES, rate if rate in dict(RATES) else 10.0)
        self.rate.setAccessibleName("Sampling rate in Hz")
        self.rate.changed.connect(self.changed)
        box.addLayout(row(label("Sampling", "sub"), self.rate, None, margins=(16, 12, 16, 12)))

    def level(self) -> str:
        """light, trace or traces."""
        return next(name for name, button in self.levels.items() if button.isChecked())

    def rate_hz(self) -> float:
        return float(str(self.rate.value()))

    def set_signals_only(self, on: bool) -> None:
        """Without a target there is nothing to trace."""
        for button in self.levels.values():
            button.setVisible(not on)
        self.header.note.setText("watching has no steps to trace" if on else "")

    def show_sizes(self, sizes: dict[str, int]) -> None:
        """Bytes of the last run at each level, where there was one."""
        for name, button in self.levels.items():
            button.size_text = format_bytes(sizes[name]) if name in sizes else ""
            button.setToolTip("size of the last run like this" if name in sizes else "")
            button.update()
