"""The stretch of time that linked charts share, and their crosshair."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

LIVE_SPAN = 30.0  # s in view when a recording starts
SHORTEST = 0.002  # s: the closest zoom
EDGE = 0.98  # a zoom at the newest end of the view keeps following


class TimeView(QObject):
    """Seconds `x0` to `x1` since the run's start.

    Following keeps the newest moment at the right edge. A zoom of the user's is kept
    when following starts again: only the end moves.
    """

    changed = Signal()  # the range
    crosshair_changed = Signal()
    following_changed = Signal(bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.x0, self.x1 = 0.0, LIVE_SPAN
        self.end = 0.0  # the newest moment of the run
        self.following = False
        self.crosshair: float | None = None
        self.pinned = False

    @property
    def span(self) -> float:
        return self.x1 - self.x0

    def reset(self, end: float, following: bool) -> None:
        """For another run: the live end, or the whole of a finished one."""
        self.end = end
        self.set_crosshair(None)
        self._set_following(following)
        if following:
            self._set(max(0.0, end - LIVE_SPAN), max(LIVE_SPAN, end))
        else:
            self.fit()

    def advance(self, end: float) -> None:
        """The run has grown."""
        if end <= self.end:
            return
        self.end = end
        if self.following and end > self.x1:
            self._set(end - self.span, end)
        elif self.x0 <= end <= self.x1:
            self.changed.emit()  # the edge of what is known moves on

    def finish(self, end: float) -> None:
        """Nothing more comes: a view that followed stays, or shows the whole of a short run."""
        self.end = end
        if self.following and end < self.span:
            self.fit()
        self._set_following(False)

    def follow(self) -> None:
        """Go to the live end and stay there, with the span as it is."""
        self._set_following(True)
        x1 = max(self.end, self.span)
        self._set(x1 - self.span, x1)

    def hold(self) -> None:
        """Stay where the view is."""
        self._set_following(False)

    def zoom(self, factor: float, at: float) -> None:
        """Make the span `factor` times as long around `at`, which stays where it is."""
        longest = max(self.end, LIVE_SPAN)
        span = min(max(self.span * factor, SHORTEST), longest)
        place = (at - self.x0) / self.span
        if self.following and place < EDGE:
            self._set_following(False)
        elif self.following:
            place = (self.end - self.x0) / self.span
            at = self.end
        self._set(at - place * span, at + (1 - place) * span)

    def pan(self, seconds: float) -> None:
        if seconds:
            self._set_following(False)
            self._set(self.x0 + seconds, self.x1 + seconds)

    def show_range(self, x0: float, x1: float) -> None:
        self._set_following(False)
        self._set(x0, x1)

    def fit(self) -> None:
        """The whole run."""
        self._set_following(False)
        self._set(0.0, max(self.end, 10 * SHORTEST))

    def set_crosshair(self, at: float | None, pinned: bool = False) -> None:
        if (at, pinned) != (self.crosshair, self.pinned):
            self.crosshair, self.pinned = at, pinned and at is not None
            self.crosshair_changed.emit()

    def _set(self, x0: float, x1: float) -> None:
        span = x1 - x0
        # Some of the run stays in view, so that nobody gets lost beside it.
        x0 = min(max(x0, -0.1 * span), max(self.end - 0.1 * span, 0.0))
        if (x0, x0 + span) != (self.x0, self.x1):
            self.x0, self.x1 = x0, x0 + span
            self.changed.emit()

    def _set_following(self, following: bool) -> None:
        if following is not self.following:
            self.following = following
            self.following_changed.emit(following)
