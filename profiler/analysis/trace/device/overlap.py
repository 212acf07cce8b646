"""How long devices and streams work, as sums and as unions, and what runs beside what.

Definitions, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import Flags, Ints, Kind


@dataclass(frozen=True, slots=True)
class StreamTime:
    """Of one stream, ns. Sum and union of kernels differ when they overlap."""

    stream: int
    activities: int
    kernels: int
    kernel_sum_ns: int
    kernel_union_ns: int
    busy_ns: int           # any activity


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """Of one device, ns. All but `kernel_sum_ns` are lengths of unions over streams."""

    device: int
    kernel_sum_ns: int
    kernel_union_ns: int
    compute_ns: int
    communication_ns: int
    copy_ns: int
    memset_ns: int
    busy_ns: int
    copy_under_compute_ns: int
    communication_under_compute_ns: int
    copy_under_communication_ns: int
    streams: tuple[StreamTime, ...]   # longest busy first


def devices(j: Joined, windows: Ints | None = None) -> tuple[DeviceTime, ...]:
    """Every device, by number. `windows`: a set of times to look at (int64[n, 2], sorted, disjoint)."""
    return tuple(_device(j, one, windows) for one in np.unique(j.trace.device.device).tolist())


def _device(j: Joined, one: int, windows: Ints | None) -> DeviceTime:
    table = j.trace.device
    here = table.device == one
    kernels = table.kind == Kind.KERNEL

    def inside(times: Ints) -> Ints:
        return times if windows is None else intervals.intersect(times, windows)

    def times(rows: Flags) -> Ints:
        return inside(intervals.union(table.start[rows], table.end[rows]))

    def long(rows: Flags) -> int:
        return intervals.total(times(rows))

    def added(rows: Flags) -> int:
        if windows is None:
            return int((table.end[rows] - table.start[rows]).sum())
        return int(intervals.covered(windows, table.start[rows], table.end[rows]).sum())

    compute, communication = inside(j.computing(one)), times(here & j.communication)
    copy = times(here & (table.kind == Kind.MEMCPY))
    streams = []
    for stream in np.unique(table.stream[here]).tolist():
        rows = here & (table.stream == stream)
        streams.append(StreamTime(stream, int(rows.sum()), int((rows & kernels).sum()), added(rows & kernels),
                                  long(rows & kernels), long(rows)))
    return DeviceTime(
        one, added(here & kernels), long(here & kernels), intervals.total(compute),
        intervals.total(communication), intervals.total(copy), long(here & (table.kind == Kind.MEMSET)),
        long(here), intervals.total(intervals.intersect(copy, compute)),
        intervals.total(intervals.intersect(communication, compute)),
        intervals.total(intervals.intersect(copy, communication)),
        tuple(sorted(streams, key=lambda s: (-s.busy_ns, s.stream))))
