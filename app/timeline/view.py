"""The stretch of time in view. In ns, as exact as a trace."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

SHORTEST = 2000.0  # ns: the closest zoom, about a ns a pixel
BESIDE = 0.05  # of the view may lie beyond the run


class View(QObject):
    """`x0` to `x1` of a run that reaches from `low` to `high`; all ns since its start."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.low, self.high = 0.0, 1e9
        self.x0, self.x1 = 0.0, 1e9

    @property
    def span(self) -> float:
        return self.x1 - self.x0

    def set_limits(self, low: float, high: float) -> None:
        self.low, self.high = low, max(high, low + SHORTEST)
        self.show_range(self.x0, self.x1)

    def show_range(self, x0: float, x1: float) -> None:
        """Show this stretch, or the part of it that there is."""
        whole = (self.high - self.low) * (1 + 2 * BESIDE)
        span = min(max(x1 - x0, SHORTEST), whole)
        middle = (x0 + x1) / 2
        x0 = middle - span / 2
        x0 = min(max(x0, self.low - BESIDE * span), self.high + BESIDE * span - span)
        x0 = max(x0, self.low - BESIDE * span) if span < whole else self.low - BESIDE * (self.high - self.low)
        if (x0, x0 + span) != (self.x0, self.x1):
            self.x0, self.x1 = x0, x0 + span
            self.changed.emit()

    def fit(self, x0: float | None = None, x1: float | None = None) -> None:
        """The whole run, or a stretch with a little room beside it."""
        x0, x1 = self.low if x0 is None else x0, self.high if x1 is None else x1
        room = BESIDE / 2 * (x1 - x0)
        self.show_range(x0 - room, x1 + room)

    def zoom(self, factor: float, at: float) -> None:
        """Make the span `factor` times as long; what is at `at` stays where it is."""
        whole = (self.high - self.low) * (1 + 2 * BESIDE)
        span = min(max(self.span * factor, SHORTEST), whole)
        place = (at - self.x0) / self.span
        self.show_range(at - place * span, at + (1 - place) * span)

    def pan(self, share: float) -> None:
        """Move by a share of what is in view."""
        self.show_range(self.x0 + share * self.span, self.x1 + share * self.span)

    def reveal(self, t0: float, t1: float) -> None:
        """Bring a stretch into view with as little change as that takes."""
        if t1 - t0 > 0.9 * self.span:
            room = 0.1 * (t1 - t0)
            self.show_range(t0 - room, t1 + room)
        elif t0 < self.x0 or t1 > self.x1:
            middle = (t0 + t1) / 2
            self.show_range(middle - self.span / 2, middle + self.span / 2)
