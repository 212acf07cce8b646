"""Memory of the framework's allocators over time, and the calls to the driver behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.joined import Joined, take
from profiler.analysis.trace.memory.moments import innermost
from profiler.analysis.trace.ranks.communication import within
from profiler.trace.model import NONE, Ints
from profiler.trace.names import Call

CPU = 0
AT_ONCE_NS = 5_000  # no Python runs in so short a time, and no segment is given back
# Calls of no meaning to the order of allocations.
_BETWEEN = re.compile(r"IsCapturing|(Get|PeekAt)LastError|Event(Query|Destroy)|MemGetInfo|[SG]etDevice$")
# As c10 numbers them.
_TYPES = {CPU: "CPU", 1: "CUDA", 6: "HIP", 9: "XLA", 12: "XPU", 13: "MPS", 15: "HPU", 19: "MTIA"}


@dataclass(frozen=True)
class Timeline:
    """One device's memory, n events in order of time. Bytes.

    Without totals in the file (`known` False) `allocated` counts from the lowest point of the trace,
    which is at least what was there: a lower bound. `reserved` is NONE where not told.
    """

    device_type: int
    device: int
    known: bool
    rows: Ints           # of Trace.memory
    time: Ints
    allocated: Ints      # by tensors, after each event
    reserved: Ints       # by the allocator, from the device

    @property
    def name(self) -> str:
        kind = _TYPES.get(self.device_type, f"device type {self.device_type}")
        return kind if self.device_type == CPU or self.device < 0 else f"{kind} {self.device}"

    @property
    def peak(self) -> int:
        """Event after which most was allocated, the first of several."""
        return int(self.allocated.argmax())


@dataclass(frozen=True)
class Usage:
    """Allocations of one operator on one device, bytes."""

    device: str
    operator: str        # empty: outside any operator
    allocations: int
    allocated: int       # by it, those around it not counted
    freed: int


@dataclass(frozen=True)
class AllocatorCall:
    """Calls to the driver that allocate or free, of one name. Times in ns."""

    name: str
    count: int
    time_ns: int
    in_steps: int        # of them in the windows looked at
    in_steps_ns: int


@dataclass(frozen=True)
class AllocatorCalls:
    calls: tuple[AllocatorCall, ...]
    retries: int           # allocations that were repeated after memory was given back: the device was full
    retries_in_steps: int  # of them in the windows looked at


def timelines(j: Joined) -> tuple[Timeline, ...]:
    """One per device that the trace has allocator events of, accelerators first."""
    table = j.trace.memory
    found = []
    places = table.device_type.astype(np.int64) * (1 << 32) + table.device  # one number a device
    for place in np.unique(places).tolist():
        rows = np.flatnonzero(places == place)
        kind, device = int(table.device_type[rows[0]]), int(table.device[rows[0]])
        total = table.allocated[rows]
        known = bool((total >= 0).all() and (total > 0).any())
        if not known:
            total = np.cumsum(table.bytes[rows])
            total = total - min(0, int(total.min()))
        reserved = np.where(table.reserved[rows] > 0, table.reserved[rows], NONE)
        found.append(Timeline(kind, device, known, rows, table.time[rows], total, reserved))
    return tuple(sorted(found, key=lambda line: (line.device_type == CPU, line.device_type, line.device)))


def growth(line: Timeline, windows: Ints) -> float | None:
    """Bytes that allocated memory grows by from one step to the next, the median; None below three steps.

    `windows`: int64[n, 2] of successive steps. What is compared is the lowest point of each.
    """
    lows = []
    for t0, t1 in windows.tolist():
        a, b = np.searchsorted(line.time, (t0, t1))
        if b > a:
            lows.append(int(line.allocated[a:b].min()))
    return float(np.median(np.diff(lows))) if len(lows) >= 3 else None


def usage(j: Joined, owners: Owners) -> tuple[Usage, ...]:
    """What each operator allocated and freed itself, by device; the largest allocations first."""
    table = j.trace.memory
    operator = take(owners.operator, innermost(j, table.thread, table.time))
    name = take(j.trace.host.name, operator)
    found = []
    for line in timelines(j):
        codes = name[line.rows]
        size = table.bytes[line.rows]
        for code in np.unique(codes).tolist():
            own = size[codes == code]
            found.append(Usage(line.name, j.trace.names[code] if code >= 0 else "", int((own > 0).sum()),
                               int(own[own > 0].sum()), int(-own[own < 0].sum())))
    return tuple(sorted(found, key=lambda row: (-row.allocated, row.device, row.operator)))


def allocator_calls(j: Joined, owners: Owners, windows: Ints | None = None) -> AllocatorCalls:
    """cudaMalloc, cudaFree and kin by name; those that start in `windows` (int64[n, 2], sorted) apart."""
    host = j.trace.host
    rows = np.flatnonzero((j.call == Call.ALLOCATOR) & (j.outer_call == np.arange(len(host))))
    inside = within(windows, host.start[rows]) if windows is not None else np.ones(len(rows), np.bool_)
    took = host.end[rows] - host.start[rows]
    found = []
    for code in np.unique(host.name[rows]).tolist():
        own = host.name[rows] == code
        found.append(AllocatorCall(j.trace.names[code], int(own.sum()), int(took[own].sum()),
                                   int((own & inside).sum()), int(took[own & inside].sum())))
    again = host.start[_retries(j, owners)]
    looked_at = len(again) if windows is None else int(within(windows, again).sum())
    return AllocatorCalls(tuple(sorted(found, key=lambda call: -call.time_ns)), len(again), looked_at)


def _retries(j: Joined, owners: Owners) -> Ints:
    """Host rows of device allocations that were repeated after the first try had failed, in order.

    A caching allocator that gets no memory waits for the device, gives back every segment
    that it holds and asks again, with nothing else between. Seen as that are
    - an allocation, memory given back, and an allocation, all in one operator. Libraries that
      start give back and allocate too, and the search of cuDNN does, but not in that order;
    - memory given back outside operators and an allocation that follows at once. After
      `empty_cache()` Python runs first.
    An allocation that the allocator's own limit refuses leaves no call: these are a lower bound.
    """
    host = j.trace.host
    device = j.host_names(lambda name: "Host" not in name).astype(np.bool_) & (j.call == Call.ALLOCATOR)
    if not device.any():
        return np.zeros(0, np.int64)
    between = j.host_names(lambda name: _BETWEEN.search(name) is not None).astype(np.bool_)
    rows = np.flatnonzero(j.is_call & (j.outer_call == np.arange(len(host))) & (j.call != Call.SYNC)
                          & ~between)
    rows = rows[np.argsort(host.thread[rows], kind="stable")]
    back = j.host_names(_gives_back).astype(np.bool_)[rows] & device[rows]
    takes = device[rows] & ~back
    edge = np.diff(np.concatenate(([0], back, [0])).astype(np.int64))
    found = []
    for first, after in zip(np.flatnonzero(edge > 0).tolist(), np.flatnonzero(edge < 0).tolist(),
                            strict=True):
        given, again = rows[first:after], rows[after:after + 1]
        if not takes[after:after + 1].any() or host.thread[again[0]] != host.thread[given[0]]:
            continue
        if (host.end[given] - host.start[given]).sum() <= AT_ONCE_NS:
            continue  # nothing was given back: cudaFree(0) only starts the driver
        operator = owners.operator[given[0]]
        if operator >= 0:
            before = rows[first - 1] if first and takes[first - 1] else NONE
            same = before >= 0 and operator == owners.operator[before] == owners.operator[again[0]]
            same = same and host.thread[before] == host.thread[again[0]]
        else:
            same = host.start[again[0]] - host.end[given[-1]] <= AT_ONCE_NS
        if same:
            found.append(int(again[0]))
    return np.sort(np.array(found, np.int64))


def _gives_back(name: str) -> bool:
    return any(word in name for word in ("Free", "Unmap", "Release"))
