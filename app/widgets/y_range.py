"""Ranges of value axes: round, and moving in steps only."""

from __future__ import annotations

import math
from dataclasses import dataclass

STEPS = (1.0, 1.5, 2.0, 2.5, 4.0, 5.0)
HEADROOM = 1.15  # a range shrinks only where it could shrink with so much room left
LOWEST_SHARE = 0.85  # an axis that need not start at zero starts at most so high


@dataclass(frozen=True)
class YRange:
    """An axis from `low` to `high` with a tick every `step`."""

    low: float = 0.0
    high: float = 1.0
    step: float = 0.5

    def ticks(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [self.low + i * self.step for i in range(count + 1)]

    def decimals(self) -> int:
        """Decimals of the tick labels: the same for all."""
        first = max(0, -math.floor(math.log10(self.step)))
        exact = math.isclose(self.step * 10**first, round(self.step * 10**first), rel_tol=1e-6)
        return first if exact else first + 1


def fitting(low: float, high: float, intervals: int, zero: bool = True, top: float | None = None) -> YRange:
    """The narrowest round range around `low` to `high` with at most `intervals` ticks above the lowest.

    With `zero` it starts at zero. `top` bounds it where values cannot be higher.
    """
    low = 0.0 if zero else min(low, high * LOWEST_SHARE)
    if zero:
        high *= 1.02  # a curve does not lie on the edge
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        high = low + 1.0
    if top is not None:
        high = min(high, top)
    step = _step_from((high - low) / intervals)
    while True:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first <= intervals:
            break
        step = _step_from(step * 1.01)
    if top is not None and last * step > top:  # nothing is above the top, so no tick is either
        return YRange(0.0, top, top / max(k for k in (1, 2, 4, 5) if k <= intervals))
    if last - first == 1 and intervals > 1:  # one interval says little: halve it
        return YRange(first * step, last * step, step / 2)
    return YRange(first * step, last * step, step)


def following(current: YRange | None, low: float, high: float, intervals: int, zero: bool = True,
              top: float | None = None) -> YRange:
    """The range to show next: the current one as long as it fits and is not much too wide."""
    wanted = fitting(low, high, intervals, zero, top)
    if current is None:
        return wanted
    reached = high if top is None else min(high, top)
    outside = reached > current.high * 1.001 or (not zero and low < current.low)
    roomy = fitting(low, high * HEADROOM, intervals, zero, top)
    if outside or (roomy.high - roomy.low) < (current.high - current.low):
        return wanted
    return current


def _step_from(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    for step in STEPS:
        if step * power >= value * (1 - 1e-9):
            return step * power
    return 10 * power
