"""What every question to a trace needs and is worked out once: who launched what, what lies in what."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.analysis.trace import intervals
from profiler.trace import names
from profiler.trace.model import NONE, Codes, Flags, Ints, Kind, Trace

CALLS = (int(Kind.RUNTIME), int(Kind.DRIVER))


class Joined:
    """A trace with its joins. Every column is as long as the table it stands beside."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._computing: dict[int, Ints] = {}

    def host_names(self, rule: Callable[[str], int], none: int = 0) -> Ints:
        """`rule` of the name of every host row."""
        column = self.trace.host.name
        return names.answers(self.trace.names, self._host_codes, rule, none)[column]

    def device_names(self, rule: Callable[[str], int], none: int = 0) -> Ints:
        """`rule` of the name of every device row."""
        column = self.trace.device.name
        return names.answers(self.trace.names, self._device_codes, rule, none)[column]

    @cached_property
    def _host_codes(self) -> Codes:
        return names.codes(self.trace.names, self.trace.host.name)

    @cached_property
    def _device_codes(self) -> Codes:
        return names.codes(self.trace.names, self.trace.device.name)

    @cached_property
    def call(self) -> Ints:
        """names.Call of every host row; OTHER where it is no runtime or driver call."""
        return names.calls(self.trace.names, self.trace.host.name, self.trace.host.kind, CALLS)

    @cached_property
    def communication(self) -> Flags:
        """Device rows that are kernels of a communication library."""
        named = self.device_names(names.is_communication).astype(bool)
        return (self.trace.device.kind == Kind.KERNEL) & named

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
        rows = np.flatnonzero(self.is_call & (host.correlation > 0))
        if not len(rows) or not len(device):
            return np.full(len(device), NONE, np.int32)
        order = rows[np.argsort(host.correlation[rows], kind="stable")]  # of equal ones the first, the outer
        at = np.searchsorted(host.correlation[order], device.correlation)
        found = order[np.minimum(at, len(order) - 1)]
        launch = np.where(host.correlation[found] == device.correlation, found, NONE)
        outer = self.outer_call
        return np.where(launch >= 0, outer[launch], NONE).astype(np.int32)

    @cached_property
    def is_call(self) -> Flags:
        """Host rows that are runtime or driver calls."""
        kind = self.trace.host.kind
        return (kind == Kind.RUNTIME) | (kind == Kind.DRIVER)

    @cached_property
    def fetch(self) -> Flags:
        """Host rows that are fetches from the loader, as torch marks them."""
        named = self.host_names(names.is_loader).astype(bool)
        return named & ~self.is_call & (self.trace.host.kind != Kind.PYTHON)

    @cached_property
    def backward(self) -> Flags:
        """Host rows that are nodes of a backward graph, or the engine's frames around them."""
        return (self.trace.host.kind == Kind.OPERATOR) & self.host_names(names.is_autograd).astype(bool)

    @cached_property
    def kernel_launch(self) -> Flags:
        """Host rows that launch kernels or graphs: outermost calls, by name or by the kernels they own."""
        rows = np.isin(self.call, (int(names.Call.LAUNCH), int(names.Call.GRAPH)))
        result = np.zeros(len(rows), np.bool_)
        result[self.outer_call[rows]] = True
        kernels = self.launch[self.trace.device.kind == Kind.KERNEL]
        result[kernels[kernels >= 0]] = True
        return result

    @cached_property
    def compute(self) -> Flags:
        """Device rows that compute: neither communication nor copy nor memset."""
        kind = self.trace.device.kind
        return (kind != Kind.MEMCPY) & (kind != Kind.MEMSET) & ~self.communication

    def computing(self, device: int) -> Ints:
        """The set of instants at which a device computes: int64[n, 2], ns."""
        if device not in self._computing:
            table = self.trace.device
            rows = self.compute & (table.device == device)
            self._computing[device] = intervals.union(table.start[rows], table.end[rows])
        return self._computing[device]

    @cached_property
    def main_device(self) -> int:
        """The device with most compute (of equal ones the lowest number); NONE without an accelerator."""
        device = self.trace.device
        if not len(device):
            return NONE
        ids, at = np.unique(device.device, return_inverse=True)
        work = np.bincount(at, np.where(self.compute, device.end - device.start, 0), len(ids))
        return int(ids[np.argmax(work)])

    @cached_property
    def outer_call(self) -> Codes:
        """For each host row the outermost runtime or driver call that holds it; itself without one."""
        parent = self.parent
        up = np.arange(len(parent), dtype=np.int32)
        rows = np.flatnonzero(self.is_call & (parent >= 0))
        rows = rows[self.is_call[parent[rows]]]
        up[rows] = parent[rows]
        return last_of_chain(up, rows)


def take(column: NDArray[Any], rows: Codes | Ints, none: int = NONE) -> NDArray[Any]:
    """`column[rows]`, `none` where the row is NONE."""
    if not len(column):
        return np.full(len(rows), none, column.dtype)
    return np.where(rows >= 0, column[rows], column.dtype.type(none))


def last_of_chain(up: Codes, rows: Codes | Ints) -> Codes:
    """Where the chain that begins at each row ends. `up`: the next row of each, the row itself at an end.

    `rows`: those that are no end. `up` is used up. Each round doubles the reach, so that no depth is slow.
    """
    while len(rows):
        one = up[rows]
        two = up[one]
        up[rows] = two
        rows = rows[two != one]
    return up


def parents(start: Ints, end: Ints, lane: Codes) -> Codes:
    """Row that encloses each row most closely in its lane, NONE at the top: int32[n].

    Rows are sorted by start, then by falling end. An event that reaches beyond the one
    it starts in (clocks are not perfect) still counts as inside it.
    """
    if not len(start):
        return np.zeros(0, np.int32)
    order = np.argsort(lane, kind="stable")
    found = last_above(end[order], start[order])
    same = (found >= 0) & (lane[order[found]] == lane[order])  # the nearest of another lane: none in its own
    result = np.full(len(start), NONE, np.int32)
    result[order] = np.where(same, order[found], NONE)
    return result


def last_above(values: Ints, floor: Ints) -> Ints:
    """For each i the largest j < i with values[j] > floor[i]; NONE without one: int64[n].

    A tree of maxima is climbed and descended for all rows at once, so that no order of
    the values makes it slow.
    """
    n = len(values)
    result = np.full(n, NONE, np.int64)
    levels = [values]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = np.maximum(below[: len(below) // 2 * 2: 2], below[1::2])
        levels.append(np.concatenate((pairs, below[len(pairs) * 2:])))
    near = np.flatnonzero(values[:-1] > floor[1:])  # the one before, as for most rows that are nested
    result[near + 1] = near
    at = query = np.flatnonzero(result == NONE)
    found: list[tuple[Ints, Ints]] = []  # by level: queries, and the block that holds their answer
    for level in levels:
        hit = (at & 1).astype(np.bool_)
        hit[hit] = level[at[hit] - 1] > floor[query[hit]]
        found.append((query[hit], at[hit] - 1))
        stay = ~hit & (at > 1)
        query, at = query[stay], at[stay] >> 1
    query = block = np.zeros(0, np.int64)
    for k in range(len(levels) - 1, -1, -1):
        query, block = np.concatenate((query, found[k][0])), np.concatenate((block, found[k][1]))
        if k:
            right = block * 2 + 1
            last = len(levels[k - 1]) - 1
            inside = (right <= last) & (levels[k - 1][np.minimum(right, last)] > floor[query])
            block = np.where(inside, right, block * 2)
    result[query] = block
    return result
