"""The bar at the foot: device, machine, sampling rate, dropped records, cost; the run file at the right."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QWidget

from app.icons import IconLabel
from app.tokens import STATUS_BAR
from app.widgets.basic import Hairline, Surface, label, row

FIELDS = ("device", "machine", "rate", "dropped", "overhead", "state")


class StatusBar(Surface):
    """Facts in a row, divided by hairlines; an empty one takes no room."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("chrome", parent=parent)
        self.setFixedHeight(STATUS_BAR)
        self.box.addWidget(Hairline())
        self._device_icon = IconLabel("gpu", "t3", 14)
        self._fields: dict[str, tuple[QLabel, QWidget]] = {}
        line = row(self._device_icon, 8, spacing=0, margins=(12, 0, 16, 0))
        for name in FIELDS:
            text = label("", "caption", "t2")
            divider = Hairline(vertical=True, colour="line2")
            divider.setFixedHeight(14)
            field = QWidget()
            field.setLayout(row(text, divider, spacing=12, margins=(0, 0, 12, 0)))
            line.addWidget(field)
            self._fields[name] = (text, field)
        line.addStretch(1)
        self._file = label("no run file", "caption", "t2")
        line.addWidget(IconLabel("database", "t3", 14))
        line.addSpacing(6)
        line.addWidget(self._file)
        inner = QWidget()
        inner.setLayout(line)
        self.box.addWidget(inner, 1)
        self.show_facts(**dict.fromkeys(FIELDS, ""))
        self.show_facts(machine="This machine", rate="not sampling", state="idle")

    def show_facts(self, *, device_icon: str = "", run_file: str | None = None, **facts: str) -> None:
        """Show facts by field: device, machine, rate, dropped, state; others stay as they are."""
        if device_icon:
            self._device_icon.show_icon(device_icon, "t3")
        if run_file is not None:
            self._file.setText(run_file)
        if "device" in facts:
            self._device_icon.setVisible(bool(facts["device"]))
        for name, value in facts.items():
            text, field = self._fields[name]
            text.setText(value)
            field.setVisible(bool(value))

    def fact(self, name: str) -> str:
        """What a field says."""
        return self._fields[name][0].text()
