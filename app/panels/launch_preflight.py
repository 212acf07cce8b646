"""The right pane of Launch: what works here, how much to capture, and the newest runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from time import monotonic

from PySide6.QtCore import QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QVBoxLayout, QWidget

from app import theme
from app.icons import IconLabel
from app.preflight import Check, Preflight
from app.recents import Recent, when
from app.tokens import ROW
from app.widgets.basic import ElidedLabel, Hairline, PaneHeader, Surface, label, row
from app.widgets.button import Button, Segments
from profiler.units import format_bytes, format_ms

_ICONS = {
    "ok": ("check", "ok"),
    "warning": ("warning", "warn"),
    "error": ("error", "err"),
    "absent": ("minus", "t3"),
}
ROWS = 9  # more of them, all fine, are folded
HERE = ("Window", "Display")  # it is open, so both are there
RATES = ((10.0, "10 Hz"), (50.0, "50"), (100.0, "100"))


class PreflightPane(QWidget):
    """The doctor's rows. Ticks are quiet; only warnings and errors colour a line."""

    def __init__(self, preflight: Preflight, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preflight = preflight
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        self.header = PaneHeader("Preflight")
        again = Button("Check again", kind="link")
        again.clicked.connect(preflight.ask)
        self.header.row.addWidget(again)
        box.addWidget(self.header)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        box.addLayout(self._rows)
        self._whole, self._folded = False, 0
        self._more = Button("", kind="link")
        self._more.clicked.connect(self._toggle)
        box.addLayout(row(self._more, None, margins=(34, 4, 16, 0)))
        box.addSpacing(8)
        preflight.changed.connect(self.refresh)
        self._age = QTimer(self)
        self._age.setInterval(5000)
        self._age.timeout.connect(self._show_age)
        self._age.start()
        self.refresh()

    def refresh(self) -> None:
        """The rows as they are known now; old ones stay while a check runs."""
        while (item := self._rows.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for check in self._shown():
            self._rows.addWidget(self._row(check))
        self._more.setVisible(bool(self._folded))
        self._more.setText("Show fewer" if self._whole else f"{self._folded} more, nothing wrong")
        self._show_age()

    def _shown(self) -> Sequence[Check]:
        """What needs attention, and as many others as there is room for, in the doctor's order."""
        self._folded = 0
        if self._preflight.error:
            return [Check("Check", "error", self._preflight.error, "stepscope doctor says more")]
        checks = [check for check in self._preflight.checks if check.name not in HERE]
        loud = [check for check in checks if check.state in ("warning", "error")]
        quiet = [check for check in checks if check not in loud]
        kept = [*loud, *quiet[: max(0, ROWS - len(loud))]]
        self._folded = len(checks) - len(kept)
        return checks if self._whole else [check for check in checks if check in kept]

    def _toggle(self) -> None:
        self._whole = not self._whole
        self.refresh()

    def _row(self, check: Check) -> QWidget:
        icon, tone = _ICONS.get(check.state, _ICONS["error"])
        line = Surface("none")
        line.setFixedHeight(ROW)
        name = label(check.name, "cell")
        name.setFixedWidth(112)
        text = ElidedLabel(check.text, "sub")
        if check.state in ("warning", "error"):
            text.setProperty("tone", tone)
        inner = QWidget()
        inner.setLayout(row(IconLabel(icon, tone, 14), name, text, margins=(16, 0, 16, 0)))
        line.box.addWidget(inner, 1)
        line.box.addWidget(Hairline(colour="grid"))
        line.setToolTip("\n".join(filter(None, (check.text, check.hint))))
        line.setAccessibleName(f"{check.name}: {check.state}, {check.text}")
        line.setAccessibleDescription(check.hint)
        return line

    def _show_age(self) -> None:
        if self._preflight.busy:
            self.header.note.setText("checking")
        elif self._preflight.asked_at is None:
            self.header.note.setText("not checked yet")
        else:
            seconds = int(monotonic() - self._preflight.asked_at)
            age = (
                "just now"
                if seconds < 5
                else f"{seconds} s ago"
                if seconds < 60
                else f"{seconds // 60} min ago"
            )
            self.header.note.setText(age)


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
            "trace": _Level("Light and one trace", "adds the operators and kernels of 8 steps"),
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
        for name in ("trace", "traces"):
            self.levels[name].setVisible(not on)
        self.header.note.setText("watching has no steps to trace" if on else "")

    def show_sizes(self, sizes: dict[str, int]) -> None:
        """Bytes of the last run at each level, where there was one."""
        for name, button in self.levels.items():
            button.size_text = format_bytes(sizes[name]) if name in sizes else ""
            button.setToolTip("size of the last run like this" if name in sizes else "")
            button.update()


class _RecentRow(QAbstractButton):
    def __init__(self, recent: Recent, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._recent = recent
        self.setText(recent.name)
        self.setFixedHeight(ROW)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setToolTip(str(recent.path))
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
