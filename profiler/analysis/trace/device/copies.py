"""Copies and memsets by direction and host memory: how many, how much, how fast, how much of it hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.code.grouping import coded, extremes, summed
from profiler.analysis.trace.code.owners import durations
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import Flags, Ints, Kind
from profiler.trace.names import Copy

MEMSET = "memset"


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of one kind on one device. Rates are in GB/s (1e9 bytes); None where bytes are not told.

    `rate` is all bytes over all time, so that small copies do not count like large ones;
    `median_rate` is that of a copy, the zero-length ones left out.
    """

    device: int
    kind: str                 # as `kinds` has them
    count: int
    bytes: int | None
    total_ns: int
    mean_ns: float
    min_ns: int
    max_ns: int
    overlapped_ns: int        # of it while a kernel computes on the device
    rate: float | None
    median_rate: float | None


def kinds(j: Joined) -> tuple[tuple[str, ...], Ints]:
    """Kind of every device row: its texts ("h2d_pinned", "d2d", "memset", ...), and an index into them.

    int64[n], -1 for rows that are neither copy nor memset.
    """
    texts = ("copy", *(copy.name.lower() for copy in Copy if copy), MEMSET)
    kind = j.trace.device.kind
    return texts, np.where(kind == Kind.MEMCPY, j.copy, np.where(kind == Kind.MEMSET, len(texts) - 1, -1))


def copies(j: Joined, rows: Flags | None = None) -> tuple[Copies, ...]:
    """By device and kind, longest in all first. `rows`: device rows to look at, bool[n]."""
    device = j.trace.device
    texts, kind = kinds(j)
    chosen = np.flatnonzero(kind >= 0 if rows is None else (kind >= 0) & rows)
    first, code = coded([device.device[chosen], kind[chosen]])
    n = len(first)
    time = durations(device.start, device.end)[chosen]
    size = device.bytes[chosen]
    told = size >= 0
    count, total = np.bincount(code, minlength=n).tolist(), summed(code, time, n).tolist()
    low, high = (column.tolist() for column in extremes(code, time, n))
    timed = summed(code[told], time[told], n).tolist()
    amount = summed(code[told], size[told], n).tolist()
    sized = np.bincount(code[told], minlength=n).tolist()
    hidden = summed(code, _under_compute(j, chosen), n).tolist()
    result = []
    for i, row in enumerate(chosen[first].tolist()):
        one = told & (code == i) & (time > 0)
        result.append(Copies(
            int(device.device[row]), texts[kind[row]], count[i], amount[i] if sized[i] else None, total[i],
            total[i] / count[i], low[i], high[i], hidden[i], amount[i] / timed[i] if timed[i] else None,
            float(np.median(size[one] / time[one])) if one.any() else None))
    return tuple(sorted(result, key=lambda c: (-c.total_ns, c.device, c.kind)))


def _under_compute(j: Joined, rows: Ints) -> Ints:
    """How long compute ran beside each of these device rows, ns: int64[len(rows)]."""
    device, result = j.trace.device, np.zeros(len(rows), np.int64)
    for one in np.unique(device.device[rows]).tolist():
        own = device.device[rows] == one
        result[own] = intervals.covered(j.computing(one), device.start[rows[own]], device.end[rows[own]])
    return result
