"""What a replay says."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.trace.model import NONE


@dataclass(frozen=True)
class Scenario:
    """What one cost is worth. `low` and `high` bound the speedup; `also` holds other readings of it."""

    name: str
    step_ns: int                  # steady step time without that cost
    speedup: float                # unchanged replay over this one
    low: float
    high: float
    note: str = ""                # what the prediction depends on and the trace does not show
    also: tuple[tuple[str, float], ...] = ()  # (reading, speedup)


@dataclass(frozen=True)
class Replay:
    """The unchanged replay and the scenarios; none of them where `withheld` says why."""

    step_ns: int                     # unchanged and bounded, after scaling; NONE when nothing was replayed
    measured_ns: int                 # steady step time of the same steps in the trace
    error: float | None              # of the bounded unchanged replay: |replayed / measured - 1|
    unbounded_error: float | None    # the same with latencies as they were: checks the code, not the edges
    steps: int = 0                   # steps replayed
    withheld: str = ""               # why there are no scenarios
    scenarios: tuple[Scenario, ...] = ()
    scale: float = 1.0               # by which host costs were multiplied to meet `scale_to_ns`
    notes: tuple[str, ...] = ()

    def speedups(self) -> dict[str, float]:
        """Speedup by scenario."""
        return {s.name: s.speedup for s in self.scenarios}

    @classmethod
    def none(cls, why: str, measured_ns: int = NONE) -> Replay:
        """A replay that could not be made."""
        return cls(NONE, measured_ns, None, None, withheld=why)
