"""Samples on a time axis: gaps between them, and intervals in which something held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profiler.units import NBSP, format_number

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# NVML clocks-event reasons that take clocks away from a running kernel. Idle, the
# user's own clock settings and synchronised boost are left out: they are no trouble.
POWER_CAP = 0x04  # how a busy GPU lives: no trouble of its own
THROTTLE_REASONS = {
    POWER_CAP: "power cap (software)",
    0x08: "slowdown (hardware)",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake (hardware)",
}


@dataclass(frozen=True, slots=True)
class Throttle:
    """A time in which the device ran below its clocks. `mask` has the driver's bits.

    `held_ns`: how long it did inside this time, where short pauses are joined to it.
    """

    t0_ns: int
    t1_ns: int
    mask: int
    held_ns: int

    @property
    def took(self) -> str:
        """How long, in words: 3.2 s, or 1.5 of 3.2 s."""
        held, whole = (f"{format_number(ns / 1e9, 1)}" for ns in (self.held_ns, self.t1_ns - self.t0_ns))
        return f"{held}{NBSP}s" if held == whole else f"{held} of {whole}{NBSP}s"

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(text for bit, text in THROTTLE_REASONS.items() if self.mask & bit)


@dataclass(frozen=True, eq=False)
class Throttles:
    """Times of throttling in order, as arrays: a reason may come and go with every sample of a day.

    `times`: int64[k, 2] in ns; `masks` and `held_ns`: int64[k], see Throttle.
    """

    times: IntArray = field(default_factory=lambda: np.empty((0, 2), np.int64))
    masks: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    held_ns: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[Throttle]:
        columns = (self.times[:, 0], self.times[:, 1], self.masks, self.held_ns)
        return (Throttle(*row) for row in zip(*(column.tolist() for column in columns), strict=True))

    def of(self, mask: int) -> IntArray:
        """[k, 2]: the times in which a reason of `mask` held, those that touch as one."""
        return merged(self.times[self.masks & mask != 0])

    @property
    def by_reason(self) -> dict[str, IntArray]:
        """[k, 2] of each reason that held, whatever other reasons held with it."""
        return {text: self.of(bit) for bit, text in THROTTLE_REASONS.items() if (self.masks & bit).any()}

    def apart(self, pause_ns: int) -> list[Throttle]:
        """Those to read, in order: the power cap apart from other reasons, each joined over short pauses."""
        found: list[Throttle] = []
        for bits in (POWER_CAP, ~POWER_CAP):
            masks = self.masks & bits
            some = masks != 0
            found += Throttles(self.times[some], masks[some], self.held_ns[some]).joined(pause_ns)
        return sorted(found, key=lambda one: one.t0_ns)

    def joined(self, pause_ns: int) -> Throttles:
        """Fewer ones, for the eye: a reason that comes and goes with every sample makes one, not thousands.

        Those that follow each other within `pause_ns` become one, with the reasons of both, unless the
        reasons differ and both last longer than that.
        """
        if pause_ns <= 0 or not len(self):
            return self
        times = self.times
        short = times[:, 1] - times[:, 0] <= pause_ns
        near = times[1:, 0] - times[:-1, 1] <= pause_ns
        near &= (self.masks[1:] == self.masks[:-1]) | short[1:] | short[:-1]
        first = np.concatenate(([0], np.flatnonzero(~near) + 1))
        last = np.append(first[1:], len(times)) - 1
        return Throttles(np.stack([times[first, 0], times[last, 1]], axis=1),
                         np.bitwise_or.reduceat(self.masks, first), np.add.reduceat(self.held_ns, first))


def spacing(t_ns: IntArray) -> float:
    """The usual distance of samples in ns; NaN below two samples."""
    return float(np.median(np.diff(t_ns))) if len(t_ns) > 1 else float("nan")


def gaps(t_ns: IntArray, factor: float = 3.0) -> IntArray:
    """[k, 2]: last sample before and first after, where the distance is `factor` times the usual."""
    if len(t_ns) < 3:
        return np.empty((0, 2), np.int64)
    after = np.flatnonzero(np.diff(t_ns) > factor * spacing(t_ns))
    return np.stack([t_ns[after], t_ns[after + 1]], axis=1)


def intervals(t_ns: IntArray, holds: BoolArray, factor: float = 3.0) -> IntArray:
    """[k, 2]: from the first sample at which `holds` to the first after at which it does not.

    A gap in the samples ends an interval one usual spacing after its last sample:
    nothing is known about the time inside a gap.
    """
    if not len(t_ns) or not holds.any():
        return np.empty((0, 2), np.int64)
    usual = spacing(t_ns)
    step = int(usual) if usual == usual else 0
    split = np.zeros(len(t_ns), bool)
    split[1:] = np.diff(t_ns) > factor * usual
    starts = holds & (split | ~np.concatenate(([False], holds[:-1])))
    first = np.flatnonzero(starts)
    stops = holds & np.concatenate((split[1:] | ~holds[1:], [True]))
    last = np.flatnonzero(stops)
    following = np.minimum(last + 1, len(t_ns) - 1)
    cut = (last + 1 >= len(t_ns)) | split[following]
    end = np.where(cut, t_ns[last] + step, t_ns[following])
    return np.stack([t_ns[first], end], axis=1).astype(np.int64)


def throttles(t_ns: IntArray, masks: FloatArray, pause_ns: int = 0) -> Throttles:
    """Intervals of throttling, one per unchanged set of reasons. See `Throttles.joined`."""
    bits = masks.astype(np.int64) & sum(THROTTLE_REASONS)
    spans = [(mask, intervals(t_ns, bits == mask)) for mask in np.unique(bits[bits != 0])]
    if not spans:
        return Throttles()
    times = np.concatenate([found for _, found in spans])
    of = np.concatenate([np.full(len(found), mask) for mask, found in spans])
    order = np.argsort(times[:, 0], kind="stable")
    times = times[order]
    return Throttles(times, of[order], times[:, 1] - times[:, 0]).joined(pause_ns)


def overlaps(t0_ns: IntArray, t1_ns: IntArray, spans: IntArray) -> BoolArray:
    """Which of the times [t0, t1) share an instant with any of `spans` [k, 2], sorted and disjoint."""
    if not len(spans):
        return np.zeros(len(t0_ns), bool)
    begun = np.searchsorted(spans[:, 0], t1_ns, side="left")  # spans that start before t1
    ended = np.searchsorted(spans[:, 1], t0_ns, side="right")  # spans that end at or before t0
    return begun > ended


def merged(spans: IntArray) -> IntArray:
    """`spans` [k, 2] in order, with those that touch or overlap made one."""
    if not len(spans):
        return spans.reshape(0, 2)
    order = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(order[:, 1])
    fresh = np.concatenate(([True], order[1:, 0] > reach[:-1]))
    last = np.concatenate((np.flatnonzero(fresh)[1:] - 1, [len(order) - 1]))
    return np.stack([order[fresh, 0], reach[last]], axis=1)


def covered(spans: IntArray, t0_ns: int, t1_ns: int) -> int:
    """How many ns of [t0, t1) lie inside any of `spans`."""
    inside = merged(spans)
    if not len(inside):
        return 0
    return int(np.maximum(0, np.minimum(inside[:, 1], t1_ns) - np.maximum(inside[:, 0], t0_ns)).sum())
