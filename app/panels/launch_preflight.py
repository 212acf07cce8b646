"""What works on this machine, on Launch: the doctor's rows."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.icons import IconLabel
from app.preflight import Check, Preflight
from app.tokens import ROW
from app.widgets.basic import ElidedLabel, Hairline, PaneHeader, Surface, label, row, tip
from app.widgets.button import Button

_ICONS = {
    "ok": ("check", "ok"),
    "warning": ("warning", "warn"),
    "error": ("error", "err"),
    "absent": ("minus", "t3"),
}
ROWS = 9  # more of them, all fine, are folded
HERE = ("Window", "Display")  # it is open, so both are there


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
        line.setToolTip(tip("\n".join(filter(None, (check.text, check.hint)))))
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
