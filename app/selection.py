"""What is looked at, shared by the screens: a range of time, a device, a name; with back and forward."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

MOST = 100  # places that are remembered


@dataclass(frozen=True)
class Place:
    """`range_ns`: start and end in the run's own time (`t_ns`); None is the whole run.

    `device`: a device's id in the run; None is all. `name`: of a span, a stage, a kernel
    or a rule; "" is none.
    """

    range_ns: tuple[int, int] | None = None
    device: int | None = None
    name: str = ""


NOWHERE = Place()


class Selection(QObject):
    """The one selection of the window. Whoever shows it listens to `changed` and reads `place`."""

    changed = Signal(object)  # Place

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._places: list[Place] = [NOWHERE]
        self._at = 0

    @property
    def place(self) -> Place:
        return self._places[self._at]

    @property
    def can_go_back(self) -> bool:
        return self._at > 0

    @property
    def can_go_forward(self) -> bool:
        return self._at < len(self._places) - 1

    def choose(self, place: Place) -> None:
        """Go to a place; what was ahead is forgotten. The present one again changes nothing."""
        if place == self.place:
            return
        self._places = [*self._places[: self._at + 1], place][-MOST:]
        self._at = len(self._places) - 1
        self.changed.emit(place)

    def back(self) -> None:
        self._go(-1)

    def forward(self) -> None:
        self._go(1)

    def clear(self) -> None:
        """Another run: nothing is selected, and there is no way back."""
        moved = self.place != NOWHERE
        self._places, self._at = [NOWHERE], 0
        if moved:
            self.changed.emit(NOWHERE)

    def _go(self, step: int) -> None:
        if 0 <= self._at + step < len(self._places):
            self._at += step
            self.changed.emit(self.place)
