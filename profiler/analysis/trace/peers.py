"""Which activities wait for another device of the same process. Definitions, section 3.4."""

from __future__ import annotations

import numpy as np

from profiler.analysis.trace.joined import Joined, take
from profiler.trace.model import NONE, Flags, Ints
from profiler.trace.names import Call, Copy

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
    told = (j.copy[row[asked]] == Copy.P2P) | _told(j)[row[asked]]
    result[asked] = close & told
    return result


def _told(j: Joined) -> Flags:
    """Device rows whose stream was told to wait for an event since the launch before theirs on it.

    Which stream a wait is of is known from cuda_sync rows only; without them it is any.
    """
    table, host = j.trace.device, j.trace.host
    calls = np.flatnonzero(j.call == Call.WAIT)
    result = np.zeros(len(table), np.bool_)
    launched = np.flatnonzero(j.launch >= 0)
    if not len(calls) or not len(launched):
        return result
    start = host.start[j.launch[launched]]
    order = np.lexsort((start, table.stream[launched], table.device[launched]))
    launched, start = launched[order], start[order]
    same = (np.diff(table.stream[launched]) == 0) & (np.diff(table.device[launched]) == 0)
    before = np.concatenate(([np.iinfo(np.int64).min], np.where(same, start[:-1], np.iinfo(np.int64).min)))
    stream = _streams(j, host.correlation[calls])
    for one in np.unique(stream).tolist():
        times = host.start[calls[stream == one]]
        told = np.searchsorted(times, start) > np.searchsorted(times, before)
        result[launched] |= told & ((one == NONE) | (table.stream[launched] == one))
    return result


def _streams(j: Joined, correlation: Ints) -> Ints:
    """Stream of the cuda_sync row of each call, NONE without one."""
    syncs = j.trace.syncs
    if not len(syncs):
        return np.full(len(correlation), NONE, np.int64)
    order = np.argsort(syncs.correlation, kind="stable")
    at = np.minimum(np.searchsorted(syncs.correlation[order], correlation), len(order) - 1)
    found = np.where((syncs.correlation[order[at]] == correlation) & (correlation > 0), order[at], NONE)
    return take(syncs.stream, found)
