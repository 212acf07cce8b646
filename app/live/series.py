"""From the series of a run to the arrays of a curve. `to_curve` is the only place where NaN comes in."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from app.widgets.chart_data import EMPTY, Floats, Stretch
from profiler.model import Track
from profiler.run.reader import Run, Series

GAP = 3.0  # a distance above so many usual intervals is missing data
FIRST = 64  # samples from which the usual interval is read
LATE_NS = 2e9  # how much later than the host's a sample of a GPU may come
RARE_NS = 1e9  # the interval of a series of which little is known


def seconds(t_ns: NDArray[np.int64], start_ns: int) -> Floats:
    """Seconds since the run's start: small numbers, which keep their microseconds as float64."""
    return (t_ns - start_ns) / 1e9


class Intervals:
    """The usual interval of each track in ns, remembered once there are enough samples. On the worker."""

    def __init__(self) -> None:
        self._known: dict[int, float] = {}

    def usual(self, run: Run, track: int) -> float | None:
        if track in self._known:
            return self._known[track]
        times, _ = run.values(track, None, run.time_of(track, FIRST - 1))  # of a long run not all
        if len(times) < 4:
            return None
        interval = float(np.median(np.diff(times[:FIRST])))
        if len(times) >= FIRST:
            self._known[track] = interval
        return interval


def newest(run: Run, intervals: Intervals, track: Track) -> float | None:
    """The newest value of a track; of a GPU that is not read any more, while the host still is, None."""
    latest = run.latest(track.id)
    return None if latest is None or silence(run, intervals, track) is not None else latest[1]


def silence(run: Run, intervals: Intervals, track: Track) -> tuple[int, int] | None:
    """(its last sample, the newest of the host) in ns, of a GPU that is not read any more; else None."""
    latest = run.latest(track.id) if track.metric.startswith("gpu.") else None
    host = [sample[0] for one in run.find("host.cpu") if (sample := run.latest(one.id))]
    if latest is None or not host:
        return None
    reach = GAP * (intervals.usual(run, track.id) or RARE_NS) + LATE_NS
    return (latest[0], max(host)) if max(host) - latest[0] > reach else None


def to_curve(
    series: Series, start_ns: int, usual_ns: float | None, scale: float = 1.0
) -> tuple[Floats, Floats]:
    """x in s since the start and y times `scale`, with NaN where the distance exceeds three usual intervals.

    A decimated series gives its low and its high at the same time, so that a spike of one sample stays.
    """
    t, low, high = series.t_ns, series.low, series.high
    if not len(t):
        return EMPTY, EMPTY
    x = seconds(t, start_ns)
    if series.exact:
        y = low * scale
        at = _breaks(series, usual_ns) + 1
    else:
        x = np.repeat(x, 2)
        y = np.empty(2 * len(t))
        # Up and down in turn: the line goes on from where the last pair ended.
        y[0::4], y[1::4] = low[0::2] * scale, high[0::2] * scale
        y[2::4], y[3::4] = high[1::2] * scale, low[1::2] * scale
        at = 2 * (_breaks(series, usual_ns) + 1)
    if not len(at):
        return x, y
    before = np.minimum(at - 1, len(x) - 1)
    return np.insert(x, at, x[before]), np.insert(y, at, np.nan)


def to_band(
    series: Series, start_ns: int, usual_ns: float | None, scale: float = 1.0, samples: int = 11
) -> tuple[Floats, Floats, Floats]:
    """x, lower and upper edge of what a series covers over `samples` successive samples."""
    if not len(series.t_ns):
        return EMPTY, EMPTY, EMPTY
    low, high = series.low, series.high
    if series.exact and len(low) > 1:
        width = min(samples, len(low))
        pad = (width // 2, width - 1 - width // 2)
        low = np.lib.stride_tricks.sliding_window_view(np.pad(low, pad, mode="edge"), width).min(axis=1)
        high = np.lib.stride_tricks.sliding_window_view(np.pad(high, pad, mode="edge"), width).max(axis=1)
    edges = (replace(series, low=edge, high=edge, exact=True) for edge in (low, high))
    (x, lower), (_, upper) = (to_curve(edge, start_ns, usual_ns, scale) for edge in edges)
    return x, lower, upper


def find_gaps(series: Series, start_ns: int, usual_ns: float | None) -> list[Stretch]:
    """The stretches without values, named by their length only."""
    result = []
    for i in _breaks(series, usual_ns):
        x0, x1 = (int(series.end_ns[i]) - start_ns) / 1e9, (int(series.t_ns[i + 1]) - start_ns) / 1e9
        result.append(Stretch(x0, x1, f"gap {x1 - x0:.1f}\u00a0s"))
    return result


def _breaks(series: Series, usual_ns: float | None) -> NDArray[np.intp]:
    """Indices after which something is missing."""
    if usual_ns is None or len(series.t_ns) < 2:
        return np.empty(0, np.intp)
    return np.flatnonzero(series.t_ns[1:] - series.end_ns[:-1] > GAP * usual_ns)


@lru_cache(maxsize=64)
def nice(value: float) -> float:
    """The smallest of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten that is at least `value`."""
    power = 10.0 ** np.floor(np.log10(value))
    for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10):
        if factor * power >= value * (1 - 1e-9):
            return float(factor * power)
    return float(10 * power)
