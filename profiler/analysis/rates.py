"""Rates that were read now and then, each over the time since the reading before."""

from __future__ import annotations

import numpy as np

from profiler.analysis.series import FloatArray, IntArray, merged

INSIDE = 0.9  # share of the time between two readings that must lie in the spans


def mean_inside(t_ns: IntArray, rates: FloatArray, spans: IntArray) -> float | None:
    """Mean of `rates` over the readings whose time lies in `spans` [k, 2], ns, weighted by that time.

    Each rate is over the time since the reading before it, so that the first one is left out. Where no
    reading lies inside, because the spans are shorter than the time between readings, those between
    the spans' begin and end count. None without any.
    """
    if len(t_ns) < 2 or not len(spans):
        return None
    spans = merged(spans)
    begin, end = t_ns[:-1], t_ns[1:]
    inside = _before(end, spans) - _before(begin, spans) >= INSIDE * (end - begin)
    if not inside.any():
        inside = (begin >= spans[0, 0]) & (end <= spans[-1, 1])
    weights = (end - begin)[inside].astype(np.float64)
    return float(np.average(rates[1:][inside], weights=weights)) if weights.sum() > 0 else None


def _before(t_ns: IntArray, spans: IntArray) -> IntArray:
    """How many ns of disjoint, sorted spans lie before each time."""
    lengths = spans[:, 1] - spans[:, 0]
    whole = np.concatenate(([0], np.cumsum(lengths)))  # of all spans before the k-th
    k = np.maximum(np.searchsorted(spans[:, 0], t_ns, side="right") - 1, 0)
    return np.asarray(whole[k] + np.clip(t_ns - spans[k, 0], 0, lengths[k]), np.int64)
