"""What one card has used, from its readings: by its energy counter, or by its power over time.

Definitions, section 6. Time of which nothing is known stays unknown: it is never bridged, and never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from profiler.analysis.series import BoolArray, FloatArray, IntArray, spacing

COUNTER, POWER, BUFFER = "energy counter", "power over time", "the driver's samples of power over time"
AVERAGED_NS = 1_000_000_000  # what some drivers average a reading of power over
THINNED_NS = 2_000_000_000  # of long runs the recorder keeps one mean a second of the driver's samples
GAP = 3.0  # times the usual distance of readings
BOUND_W, LIMITS = 2000.0, 3.0  # no board takes more: of one whose limit is known, so many times that


@dataclass(frozen=True)
class Meter:
    """Readings of one card as energy. `t_ns`: int64[n] in order; `rise`: J between two readings,
    float64[n - 1], NaN where that is not known.

    `apart`: bool[n - 1], whether the two lie so far apart that a rise cannot be told to parts of the time
    between. `least_ns`: no claim is made of a shorter time. `excluded`: readings that cannot be, left out;
    `resets`: how often the counter fell.
    """

    method: str
    t_ns: IntArray
    rise: FloatArray
    apart: BoolArray
    least_ns: int
    excluded: int = 0
    resets: int = 0

    def used(self, t0_ns: IntArray, t1_ns: IntArray) -> FloatArray:
        """J in each of the times [t0, t1), float64[k]; NaN where not all of one is known.

        Between two readings energy is taken to rise evenly.
        """
        n = len(self.t_ns)
        first = np.searchsorted(self.t_ns, t0_ns, side="right") - 1
        last = np.searchsorted(self.t_ns, t1_ns, side="left")
        inside = (first >= 0) & (last < n)
        i, k = np.maximum(first, 0), np.minimum(last, n - 1)
        inside &= self._unknown[i] == self._unknown[k]
        begins_within = self.t_ns[i] < t0_ns
        ends_within = self.t_ns[k] > t1_ns
        far = np.append(self.apart, False)
        inside &= ~(begins_within & far[i]) & ~(ends_within & far[np.maximum(k - 1, 0)])
        joules = self._at(t1_ns, self._joules) - self._at(t0_ns, self._joules)
        return np.where(inside, np.maximum(joules, 0.0), np.nan)

    def known(self, t0_ns: int, t1_ns: int) -> tuple[float, int]:
        """(J in those parts of [t0, t1) that are known, how many ns these are)."""
        ends = np.array([t0_ns, max(t0_ns, t1_ns)], np.int64)
        joules, ns = (np.diff(self._at(ends, what))[0] for what in (self._joules, self._known_ns))
        return max(0.0, float(joules)), int(ns)

    def _at(self, when: IntArray, what: FloatArray) -> FloatArray:
        # relative times: those since 1970 are not exact as floats
        return np.interp(when - self.t_ns[0], self.t_ns - self.t_ns[0], what)

    @cached_property
    def _unknown(self) -> IntArray:
        return np.concatenate(([0], np.cumsum(np.isnan(self.rise))))

    @cached_property
    def _joules(self) -> FloatArray:
        return np.concatenate(([0.0], np.cumsum(np.nan_to_num(self.rise))))

    @cached_property
    def _known_ns(self) -> FloatArray:
        return np.concatenate(([0.0], np.cumsum(np.where(np.isnan(self.rise), 0, np.diff(self.t_ns)))))


def by_counter(t_ns: IntArray, joules: FloatArray, most_w: float = BOUND_W) -> Meter | None:
    """Of an energy counter (J). None where it never rises.

    A counter that falls was set back or has wrapped: what was used meanwhile is not known. A leap above
    `most_w` (W) cannot be. Readings between two updates of the counter say nothing and are passed over.
    """
    t, values = _ordered(t_ns, joules)
    moved = np.concatenate(([True], np.diff(values) != 0)) if len(values) else np.empty(0, bool)
    t, values = t[moved], values[moved]
    if len(t) < 2:
        return None
    usual = spacing(t)
    between, rise = np.diff(t), np.diff(values)
    falls = rise < 0
    leaps = rise > most_w * (between + usual) / 1e9  # an update may have come just after a reading
    if not (~falls & ~leaps).any():
        return None
    return Meter(COUNTER, t, np.where(falls | leaps, np.nan, rise), between > GAP * usual,
                 max(AVERAGED_NS, int(2 * usual)), int(leaps.sum()), int(falls.sum()))


def by_power(t_ns: IntArray, watts: FloatArray, most_w: float = BOUND_W, method: str = POWER) -> Meter | None:
    """Of readings of power (W), integrated over the real intervals between them but not over gaps.

    None below two readings. A board that is on is never at 0 W, and none is above `most_w`.
    """
    t, values = _ordered(t_ns, watts)
    fits = (values > 0) & (values <= most_w)
    t, values = t[fits], values[fits]
    if len(t) < 2:
        return None
    usual, between = spacing(t), np.diff(t)
    gap = between > max(GAP * usual, THINNED_NS if method == BUFFER else 0)
    rise = (values[1:] + values[:-1]) / 2 * between / 1e9
    return Meter(method, t, np.where(gap, np.nan, rise), gap, max(AVERAGED_NS, int(2 * usual)),
                 int((~fits).sum()))


def bound(limit_w: object) -> float:
    """W above which a reading of a card cannot be, from its power limit where that is known."""
    known = isinstance(limit_w, int | float) and not isinstance(limit_w, bool) and 0 < limit_w <= 1e4
    return LIMITS * float(limit_w) if known else BOUND_W  # type: ignore[arg-type]


def _ordered(t_ns: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Numbers alone, each later than all before it."""
    fine = np.isfinite(values)
    if len(t_ns):
        highest = np.maximum.accumulate(t_ns)
        fine &= np.concatenate(([True], t_ns[1:] > highest[:-1]))
    return t_ns[fine], values[fine]
