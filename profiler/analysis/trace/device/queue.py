"""How many activities had been submitted and had not begun, over time. Definitions, section 3."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import Ints


@dataclass(frozen=True, slots=True)
class Depth:
    """Of one stream, or of a device's streams together (stream None).

    An activity waits from the start of its launch call until it begins. One that begins
    before its call does, or has none in the file, never waits. `depth[i]` holds from
    `time[i]` to `time[i + 1]`; before the first time it is 0. The series goes on between
    the times that are looked at, `mean` and `max` are of these alone.
    """

    device: int
    stream: int | None
    mean: float | None      # weighted by time; None where no time is looked at
    max: int
    time: Ints              # int64[m], ns, rising
    depth: Ints             # int64[m]


def depths(j: Joined, windows: Ints | tuple[int, int] | None = None) -> tuple[Depth, ...]:
    """For every device, first of all its streams together, then of each one.

    `windows`: the times to look at, ns: one window or a set of them (int64[n, 2], sorted, disjoint);
    by default from the first launch to the end of the last activity. At least one, if empty.
    """
    trace = j.trace
    device = trace.device
    known = np.flatnonzero(j.launch >= 0)
    begin, end = trace.host.start[j.launch[known]], device.start[known]
    known, begin, end = (column[end > begin] for column in (known, begin, end))
    result = []
    for one in np.unique(device.device).tolist():
        every = device.device == one
        own = device.device[known] == one
        first = int(device.start[every].min())
        given = (int(begin[own].min(initial=first)), int(device.end[every].max())) if windows is None \
            else windows
        among = np.array(given, np.int64).reshape(-1, 2)
        together = _depth(one, None, begin[own], end[own], among)
        streams = np.unique(device.stream[every]).tolist()
        result.append(together)
        for stream in streams:
            rows = own & (device.stream[known] == stream)
            result.append(_depth(one, stream, begin[rows], end[rows], among) if len(streams) > 1
                          else replace(together, stream=stream))
    return tuple(result)


def _depth(device: int, stream: int | None, begin: Ints, end: Ints, windows: Ints) -> Depth:
    t0, t1 = windows[0, 0], windows[-1, 1]
    begin, end = np.clip(begin, t0, t1), np.clip(end, t0, t1)
    begin, end = begin[end > begin], end[end > begin]
    begun, ended = np.sort(begin), np.sort(end)
    time = np.sort(np.concatenate((begun, ended)), kind="stable")  # two rising runs are merged
    time = time[np.append(True, time[1:] > time[:-1])] if len(time) else time
    depth = np.searchsorted(begun, time, side="right") - np.searchsorted(ended, time, side="right")
    spent = intervals.covered(windows, time, np.append(time[1:], t1)[: len(time)])
    long = intervals.total(windows)
    return Depth(device, stream, float((depth * spent).sum() / long) if long else None,
                 int(depth[spent > 0].max(initial=0)), time, depth)
