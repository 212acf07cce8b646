"""What works on a machine without a GPU, and why the rest does not."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.tokens import PADDING
from app.widgets.basic import Hairline, PaneHeader, Surface, label, row, tip
from app.widgets.button import Button
from app.widgets.table import Column, Table


@dataclass(frozen=True)
class Ability:
    works: bool
    name: str
    why: str


ABILITIES = (
    Ability(True, "Steps, stages, throughput", "probe in the target"),
    Ability(True, "Verdict and prediction", "the CPU is the device"),
    Ability(True, "Verify", "on the CPU"),
    Ability(True, "CPU, memory, disk, workers", "host"),
    Ability(True, "Open runs of other machines", "any GPU"),
    Ability(False, "GPU signals", "need an NVIDIA or AMD GPU"),
    Ability(False, "Device time and lag per stage", "need CUDA or HIP events"),
)


class NoGpuPane(Surface):
    """A list, and the button that names the fix."""

    doctor_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("raised", parent=parent)
        self.box.addWidget(PaneHeader("No GPU on this machine", "what works, and why"))
        table = Table(
            [
                Column[Ability]("", lambda a: "works" if a.works else "does not", width=38, mark="icon",
                                value=lambda a: ("check", "ok") if a.works else ("minus", "t3")),
                Column[Ability]("", lambda a: a.name, width=200),
                Column[Ability]("", lambda a: a.why, right=True, colour="t3"),
            ],
            "What works without a GPU", head=False,
        )
        table.show_rows(ABILITIES)
        self.box.addWidget(table)
        text = label("A GPU is here but not shown? The driver's library is looked for when the "
                     "recorder starts. The doctor names the fix.", "sub")
        text.setWordWrap(True)
        self._text = text
        doctor = Button("Run doctor")
        doctor.clicked.connect(self.doctor_wanted)
        foot = Surface("raised")
        foot.box.setContentsMargins(PADDING, 12, PADDING, 16)
        foot.box.setSpacing(12)
        foot.box.addWidget(text)
        foot.box.addLayout(row(doctor, None))
        self.box.addWidget(foot)
        self.box.addWidget(Hairline())

    def show_reason(self, reason: str) -> None:
        self.setToolTip(tip(reason))
