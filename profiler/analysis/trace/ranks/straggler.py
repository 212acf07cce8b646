"""The rank that the others wait for, with the margin by which it is the one, or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.analysis.trace.ranks.collectives import EVERYBODY
from profiler.analysis.trace.ranks.ranks import CLOCKS, NOTHING, Ranks, arrivals
from profiler.trace.model import NONE

SHARE = 0.01   # of the step: a smaller margin names nobody
MOST = 2 / 3   # of the steps in which the same rank must hold the others up most


@dataclass(frozen=True)
class Waiting:
    """One process. Means over the steps looked at, ns; without steps over the whole trace."""

    name: str
    wait_ns: float       # spent in collectives until the last rank arrived
    held_up_ns: float    # by how much it was later than the second to last, where it was the last
    last: int            # collectives in which it was the last to arrive, of all steps
    collectives: int     # matched ones in which every rank needs every other, of all steps


@dataclass(frozen=True)
class Straggler:
    """`name` None: nobody. `margin_ns` and `share`: of the first over the second, a step."""

    name: str | None
    margin_ns: float
    share: float | None
    steps: int
    reason: str
    waiting: tuple[Waiting, ...]


def straggler(ranks: Ranks, step_ns: int | None) -> Straggler:
    """Who holds the others up. Only what it alone costs counts: its delay beyond the second to last.

    `step_ns`: steady step time of the slowest process; None without steps: then nobody is named.
    """
    m = ranks.matched
    keep, names = m.compared, ranks.names
    if ranks.basis == NOTHING or not keep.any():
        return Straggler(None, 0.0, None, 0, "no collective of several ranks could be compared", ())
    when = arrivals(m, ranks.basis)[keep]
    delay = _delays(when)
    number = m.step[keep]
    steps, part = np.unique(number, return_inverse=True)
    cost = np.zeros((len(steps), len(names)))
    np.add.at(cost, part, delay)
    wait = ranks.wait[keep].sum(axis=0) / len(steps)
    mean = cost.mean(axis=0)
    waiting = tuple(Waiting(name, float(wait[r]), float(mean[r]), int((delay[:, r] > 0).sum()),
                            int((when[:, r] > -np.inf).sum())) for r, name in enumerate(names))
    order = np.argsort(-mean, kind="stable")
    first, second = int(order[0]), int(order[1])
    margin = float(mean[first] - mean[second])
    share = margin / step_ns if step_ns else None
    often = float(((cost[:, first] > 0) & (cost[:, first] == cost.max(axis=1))).mean())
    times = waiting[first].last / len(steps)
    reason = _doubt(ranks, first, margin, share, often, times)
    named = None if reason else names[first]
    if named:
        reason = (f"{named} arrives last in {waiting[first].last} of {len(when)} collectives, and the others "
                  f"wait {mean[first] / 1e6:.2f} ms a step for it alone")
        if len(steps) == 1 and number[0] != NONE:
            reason += "; seen in one step only"
    return Straggler(named, margin, share, len(steps), reason, waiting)


def _delays(when: NDArray[np.float64]) -> NDArray[np.float64]:
    """For the last to arrive at each collective the time after the second to last, 0 for the others."""
    order = np.sort(when, axis=1)
    alone = ~np.isfinite(order[:, -2])
    gap = np.where(alone, 0.0, order[:, -1] - np.where(alone, 0.0, order[:, -2]))
    delay = np.zeros(when.shape)
    delay[np.arange(len(when)), when.argmax(axis=1)] = gap
    return delay


def _doubt(ranks: Ranks, first: int, margin: float, share: float | None, often: float, times: float) -> str:
    """Why nobody is named; empty when nothing speaks against it. `times` a step it came last."""
    name = ranks.names[first]
    if margin <= 0:
        return "no rank holds the others up more than another does"
    if share is None:
        return "without steps it cannot be told whether a delay matters"
    if share < SHARE:
        return f"{name} holds the others up most, by just {100 * share:.1f} % of a step more than the next"
    if often < MOST:
        return f"ranks take turns: {name} holds the others up most, in {100 * often:.0f} % of the steps"
    unsure = _uncertainty(ranks, first) * times
    if ranks.basis == CLOCKS and margin < unsure:
        return (f"{name} seems to hold the others up by {margin / 1e6:.2f} ms a step, which is within what "
                f"the clocks leave open ({unsure / 1e6:.2f} ms)")
    return ""


def _uncertainty(ranks: Ranks, r: int) -> float:
    """What clocks leave open: by how much the ends of shared collectives differ from the others'."""
    m = ranks.matched
    there = m.there[:, r] & np.isin(m.kind, EVERYBODY)
    ends = np.where(m.there, m.end.astype(np.float64), np.nan)[there]
    apart = np.abs(ends - ends[:, [r]])
    others = np.delete(apart, r, axis=1)
    return float(np.nanmedian(others)) if np.isfinite(others).any() else 0.0
