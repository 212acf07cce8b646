"""What is asked of a growing run, and what is kept between two questions. On the worker; free of Qt."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.live.series import Intervals
from app.live.steps import LiveSteps
from profiler.model import Event
from profiler.run.reader import Run


@dataclass(frozen=True)
class Where:
    """A view: seconds since the start, the plot's width in pixels, and a device (None: the target's)."""

    x0: float
    x1: float
    width: float
    device: int | None = None


@dataclass
class Live:
    """What is kept between two questions, on the worker: steps, intervals and events read so far."""

    steps: LiveSteps = field(default_factory=LiveSteps)
    intervals: Intervals = field(default_factory=Intervals)
    events: list[Event] = field(default_factory=list)
    step_ms: float | None = None  # median of the steady steps, from the side pane's last answer
    chosen: int | None = None  # the target's device

    def refresh(self, run: Run) -> None:
        self.steps.update(run)
        self.events += run.events(self.events[-1].id if self.events else 0)
