"""Which activities wait for another device of the same process. Definitions, section 3.4."""

from __future__ import annotations

import numpy as np

from profiler.analysis.trace.device.streams import told_to_wait
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import Flags, Ints
from profiler.trace.names import Copy

LEAST_TAIL = 5_000  # ns from the end of what was waited for to the start, at least; else the median latency


def waiting(j: Joined, device: int, row: Ints, submitted: Ints, begun: Ints, latency: int) -> Flags:
    """Whether each device row, submitted and not begun in [submitted, begun), waits for another device.

    It does when it copies between devices, or its stream was told to wait since its
    activity before; and another device was busy meanwhile and ended just before it began.
    """
    table = j.trace.device
    result = np.zeros(len(row), np.bool_)
    others = table.device != device
    asked = np.flatnonzero((row >= 0) & (begun > submitted))
    if not len(asked) or not others.any():
        return result
    ends = np.sort(table.end[others])
    at = np.searchsorted(ends, begun[asked], side="right") - 1
    ended = np.where(at >= 0, ends[at], np.iinfo(np.int64).min)
    tail = max(latency, LEAST_TAIL)
    close = (ended > submitted[asked]) & (begun[asked] - ended <= tail)
    told = (j.copy[row[asked]] == Copy.P2P) | told_to_wait(j)[row[asked]]
    result[asked] = close & told
    return result
