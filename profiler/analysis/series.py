"""Samples on a time axis: gaps between them, and intervals in which something held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# NVML clocks-event reasons that take clocks away from a running kernel. Idle, the
# user's own clock settings and synchronised boost are left out: they are no trouble.
THROTTLE_REASONS = {
    0x04: "power cap (software)",
    0x08: "slowdown (hardware)",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake (hardware)",
}


@dataclass(frozen=True, slots=True)
class Throttle:
    """A time in which the device ran below its clocks. `mask` has the driver's bits."""

    t0_ns: int
    t1_ns: int
    mask: int

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(text for bit, text in THROTTLE_REASONS.items() if self.mask & bit)


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


def throttles(t_ns: IntArray, masks: FloatArray) -> list[Throttle]:
    """Intervals of throttling, one per unchanged set of reasons, in order of time."""
    known = sum(THROTTLE_REASONS)
    bits = masks.astype(np.int64) & known
    found = [Throttle(int(t0), int(t1), int(mask))
             for mask in np.unique(bits[bits != 0]) for t0, t1 in intervals(t_ns, bits == mask)]
    return sorted(found, key=lambda item: item.t0_ns)


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
