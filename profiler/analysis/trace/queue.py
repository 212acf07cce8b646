"""How many activities had been submitted and had not begun, over time. Definitions, section 3."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.trace.model import Ints


@dataclass(frozen=True, slots=True)
class Depth:
    """Of one stream, or of a device's streams together (stream None).

    An activity waits from the start of its launch call until it begins. One that begins
    before its call does, or has none in the file, never waits. `depth[i]` holds from
    `time[i]` to `time[i + 1]`; before the first time it is 0.
    """

    device: int
    stream: int | None
    mean: float | None      # weighted by time, over the window; None when that is empty
    max: int
    time: Ints              # int64[m], ns, rising
    depth: Ints             # int64[m]


def depths(j: Joined, window: tuple[int, int] | None = None) -> tuple[Depth, ...]:
    """For every device, first of all its streams together, then of each one.

    `window`: ns, by default from the first launch to the end of the last activity.
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
        t0, t1 = window or (int(begin[own].min(initial=first)), int(device.end[every].max()))
        together = _depth(one, None, begin[own], end[own], t0, t1)
        streams = np.unique(device.stream[every]).tolist()
        result.append(together)
        for stream in streams:
            rows = own & (device.stream[known] == stream)
            result.append(_depth(one, stream, begin[rows], end[rows], t0, t1) if len(streams) > 1
                          else replace(together, stream=stream))
    return tuple(result)


def _depth(device: int, stream: int | None, begin: Ints, end: Ints, t0: int, t1: int) -> Depth:
    begin, end = np.clip(begin, t0, t1), np.clip(end, t0, t1)
    begin, end = begin[end > begin], end[end > begin]
    begun, ended = np.sort(begin), np.sort(end)
    time = np.sort(np.concatenate((begun, ended)), kind="stable")  # two rising runs are merged
    time = time[np.append(True, time[1:] > time[:-1])] if len(time) else time
    depth = np.searchsorted(begun, time, side="right") - np.searchsorted(ended, time, side="right")
    mean = float((end - begin).sum() / (t1 - t0)) if t1 > t0 else None
    return Depth(device, stream, mean, int(depth.max(initial=0)), time, depth)
