"""What every question to a trace needs and is worked out once: who launched what, what lies in what."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from profiler.trace import names
from profiler.trace.model import NONE, Codes, Flags, Ints, Kind, Trace

CALLS = (int(Kind.RUNTIME), int(Kind.DRIVER))


class Joined:
    """A trace with its joins. Every column is as long as the table it stands beside."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def host_names(self, rule: Callable[[str], int], none: int = 0) -> Ints:
        """`rule` of the name of every host row."""
        return names.per_name(self.trace.names, self.trace.host.name, rule, none)

    def device_names(self, rule: Callable[[str], int], none: int = 0) -> Ints:
        return names.per_name(self.trace.names, self.trace.device.name, rule, none)

    @cached_property
    def call(self) -> Ints:
        """names.Call of every host row; OTHER where it is no runtime or driver call."""
        return names.calls(self.trace.names, self.trace.host.name, self.trace.host.kind, CALLS)

    @cached_property
    def communication(self) -> Flags:
        """Device rows that are kernels of a communication library."""
        return (self.trace.device.kind == Kind.KERNEL) & self.device_names(names.is_communication).astype(bool)

    @cached_property
    def copy(self) -> Ints:
        """names.Copy of every device row; OTHER where it is no copy."""
        return np.where(self.trace.device.kind == Kind.MEMCPY, self.device_names(names.copy), 0)

    @cached_property
    def parent(self) -> Codes:
        """Host row that encloses each host row most closely on its thread; NONE at the top."""
        host = self.trace.host
        return parents(host.start, host.end, host.thread)

    @cached_property
    def launch(self) -> Codes:
        """Host row of the call that launched each device row, by correlation; NONE where the file has none.

        A driver call inside a runtime call is part of it: the outermost call is the launch.
        """
        host, device = self.trace.host, self.trace.device
        rows = np.flatnonzero(np.isin(host.kind, CALLS) & (host.correlation > 0))
        if not len(rows) or not len(device):
            return np.full(len(device), NONE, np.int32)
        order = rows[np.argsort(host.correlation[rows], kind="stable")]  # of equal ones the first, the outer
        at = np.searchsorted(host.correlation[order], device.correlation)
        found = order[np.minimum(at, len(order) - 1)]
        launch = np.where(host.correlation[found] == device.correlation, found, NONE)
        outer = self.outer_call
        return np.where(launch >= 0, outer[launch], NONE).astype(np.int32)

    @cached_property
    def outer_call(self) -> Codes:
        """For each host row the outermost runtime or driver call that holds it; the row itself without one."""
        kind, parent = self.trace.host.kind, self.parent
        outer = np.arange(len(kind), dtype=np.int32)
        for _ in range(8):  # calls nest two or three deep
            up = parent[outer]
            inside = (up >= 0) & np.isin(kind[np.maximum(up, 0)], CALLS)
            if not inside.any():
                break
            outer = np.where(inside, up, outer).astype(np.int32)
        return outer


def parents(start: Ints, end: Ints, lane: Codes) -> Codes:
    """Row that encloses each row most closely in its lane, NONE at the top: int32[n].

    Rows are sorted by start, then by falling end. An event that reaches beyond the one
    it starts in (clocks are not perfect) still counts as inside it.
    """
    result = np.full(len(start), NONE, np.int32)
    for one in np.unique(lane).tolist():
        rows = np.flatnonzero(lane == one)
        stack: list[int] = []
        ends: list[int] = []
        for row, t0, t1 in zip(rows.tolist(), start[rows].tolist(), end[rows].tolist(), strict=True):
            while ends and ends[-1] <= t0:
                ends.pop()
                stack.pop()
            if stack:
                result[row] = stack[-1]
            stack.append(row)
            ends.append(t1)
    return result
