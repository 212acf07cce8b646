"""Whose work a device activity is: the operator around its launch, the outermost one, the module."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from profiler.analysis.trace.code.grouping import summed
from profiler.analysis.trace.device import tensor_cores
from profiler.analysis.trace.joined import Joined, last_of_chain, take
from profiler.trace.model import NONE, Codes, Flags, Ints, Kind

MODULE = "nn.Module: "
_LONGEST_PATH = 2000  # characters
_DEEP = 200  # depths that are always gone through one by one
_FEW = 32    # rows of a depth below which it does not pay


@dataclass(frozen=True, slots=True)
class Paths:
    """Where in the tree of modules a call is: "Net_0/Block_3/Linear_7"."""

    texts: tuple[str, ...]
    code: Codes     # index into `texts` beside Trace.host; NONE where the row is no module
    parent: Codes   # for each path that of the module around it; NONE at the top


@dataclass(frozen=True, slots=True)
class Levels:
    """A tree in order of depth, so that one pass from the top reaches every row once."""

    order: Codes             # rows, the outermost first
    parent: Codes            # for each of them the place of its parent in `order`
    edges: list[int]         # where each depth begins, and the end

    @property
    def deep(self) -> bool:
        """Whether it has so many depths for its rows that going through them one by one does not pay."""
        return len(self.edges) > max(_DEEP, len(self.order) // _FEW)


_known: dict[int, Levels] = {}  # of arrays that are still in use, by their id


def levels(parent: Codes) -> Levels:
    """Worked out once for an array of parents."""
    found = _known.get(id(parent))
    if found is None:
        found = _known[id(parent)] = _by_depth(parent)
        weakref.finalize(parent, _known.pop, id(parent), None).atexit = False
    return found


def _by_depth(parent: Codes) -> Levels:
    below = parent >= 0
    depth = below.astype(np.int32)
    inner = np.zeros(len(parent), np.bool_)
    inner[parent[below]] = True
    up, rows = parent.copy(), np.flatnonzero(inner & below)
    while len(rows):  # each round doubles the reach
        at = up[rows]
        depth[rows] += depth[at]
        up[rows] = up[at]
        rows = rows[up[rows] >= 0]
    leaves = np.flatnonzero(below & ~inner)
    depth[leaves] += depth[parent[leaves]]
    deepest = int(depth.max(initial=0))
    small = depth.astype(np.uint16) if deepest < 2**16 else depth  # these are sorted without comparing
    order = np.argsort(small, kind="stable").astype(np.int32)
    place = np.empty(len(parent), np.int32)
    place[order] = np.arange(len(parent), dtype=np.int32)
    counts = np.bincount(depth, minlength=deepest + 1)
    return Levels(order, take(place, parent[order]), [0, *np.cumsum(counts).tolist()])


def nearest(parent: Codes, wanted: Flags) -> Codes:
    """For each row the closest of itself and its ancestors that is `wanted`: int32[n], NONE without one."""
    if not wanted.any():
        return np.full(len(parent), NONE, np.int32)
    tree = levels(parent)
    if tree.deep:
        rows = np.arange(len(parent), dtype=np.int32)
        onwards = ~wanted & (parent >= 0)
        last = last_of_chain(np.where(onwards, parent, rows), rows[onwards])
        return np.where(wanted[last], last, np.int32(NONE))
    own = wanted[tree.order]
    found = np.where(own, tree.order, np.int32(NONE))
    for low, high in pairwise(tree.edges[1:]):
        above_it = found[tree.parent[low:high]]
        found[low:high] = np.where(own[low:high], found[low:high], above_it)
    result = np.empty_like(found)
    result[tree.order] = found
    return result


def above(parent: Codes, wanted: Flags) -> Codes:
    """For each row the closest ancestor, not itself, that is `wanted`: int32[n], NONE without one."""
    return take(nearest(parent, wanted), parent)


def outermost(parent: Codes, wanted: Flags) -> Codes:
    """For each row the farthest of itself and its ancestors that is `wanted`: int32[n], NONE without one."""
    tree = levels(parent)
    if tree.deep:
        rows, outer = np.arange(len(parent), dtype=np.int32), above(parent, wanted)
        last = last_of_chain(np.where(outer >= 0, outer, rows), rows[outer >= 0])
        return np.where(wanted[last], last, np.int32(NONE))
    found = np.where(wanted[tree.order], tree.order, np.int32(NONE))
    for low, high in pairwise(tree.edges[1:]):
        above_it = found[tree.parent[low:high]]
        found[low:high] = np.where(above_it >= 0, above_it, found[low:high])
    result = np.empty_like(found)
    result[tree.order] = found
    return result


class Owners:
    """Operators and modules around host rows and behind device rows, as rows of Trace.host; NONE: unknown."""

    def __init__(self, joined: Joined) -> None:
        self.joined = joined
        self.trace = joined.trace

    @cached_property
    def host_time(self) -> Ints:
        """Length of every host row, ns."""
        return durations(self.trace.host.start, self.trace.host.end)

    @cached_property
    def device_time(self) -> Ints:
        """Length of every device row, ns."""
        return durations(self.trace.device.start, self.trace.device.end)

    @cached_property
    def self_time(self) -> Ints:
        """Time of each host row that no operator or call inside it takes, ns; never negative."""
        host = self.trace.host
        inner = np.flatnonzero((self.enclosing >= 0) & (self.is_operator | self.joined.is_call))
        at = self.enclosing[inner]
        within = durations(host.start[inner], np.minimum(host.end[inner], host.end[at]))
        return np.maximum(self.host_time - summed(at, within, len(host)), 0)

    @cached_property
    def matrix_units(self) -> Flags:
        """Device rows that are kernels on matrix units, as far as names and operators tell."""
        return tensor_cores.used(self)

    @cached_property
    def is_operator(self) -> Flags:
        """Host rows that are operators."""
        return self.trace.host.kind == Kind.OPERATOR

    @cached_property
    def enclosing(self) -> Codes:
        """The operator or call closest around each host row, never the row itself.

        Frames of Python and annotations are looked through, so that times of operators are the same
        whether or not a trace was recorded with stacks.
        """
        return above(self.joined.parent, self.is_operator | self.joined.is_call)

    @cached_property
    def operator(self) -> Codes:
        """The operator closest around each host row, the row itself when it is one."""
        return nearest(self.joined.parent, self.is_operator)

    @cached_property
    def top(self) -> Codes:
        """The outermost operator around each host row, the row itself among them."""
        return outermost(self.joined.parent, self.is_operator)

    @cached_property
    def is_module(self) -> Flags:
        """Calls of nn.Modules."""
        named = np.array([name.startswith(MODULE) for name in self.trace.names] or [False])
        return (self.trace.host.kind == Kind.PYTHON) & named[self.trace.host.name]

    @cached_property
    def _around(self) -> Codes:
        """The module closest around each host row by time alone, the row itself when it is one."""
        return nearest(self.joined.parent, self.is_module)

    @cached_property
    def paths(self) -> Paths:
        """The places of all modules; those around a module come before it."""
        host, names = self.trace.host, self.trace.names
        code = np.full(len(host), NONE, np.int32)
        rows = np.flatnonzero(self.is_module)
        around = take(self._around, self.joined.parent[rows])
        numbers: dict[tuple[int, int], int] = {}
        for row, outer, name in zip(rows.tolist(), around.tolist(), host.name[rows].tolist(), strict=True):
            key = (int(code[outer]) if outer >= 0 else NONE, name)
            code[row] = numbers.setdefault(key, len(numbers))
        texts: list[str] = []
        for outer, name in numbers:
            before = "" if outer < 0 else texts[outer] + "/" if len(texts[outer]) < _LONGEST_PATH else ".../"
            texts.append(before + names[name].removeprefix(MODULE))
        return Paths(tuple(texts), code, np.array([outer for outer, _ in numbers], np.int32))

    @cached_property
    def module(self) -> Codes:
        """The row "nn.Module: ..." closest around each host row.

        A backward node belongs to the module of the forward operator with its sequence number; of
        several with one number the latest made the node.
        """
        if not self.is_module.any():
            return np.full(len(self.is_module), NONE, np.int32)
        around = self._around
        forward = take(self.forward, self.node)
        return np.where(around >= 0, around, take(around, forward)).astype(np.int32)

    @cached_property
    def backward(self) -> Flags:
        """Operators that run a node of the backward pass."""
        host = self.trace.host
        return self.is_operator & (host.sequence >= 0) & (host.forward_thread > 0)

    @cached_property
    def node(self) -> Codes:
        """The backward node closest around each host row, the row itself when it is one."""
        return nearest(self.joined.parent, self.backward)

    @cached_property
    def forward(self) -> Codes:
        """For each backward node the forward operator that made it, by sequence number."""
        host = self.trace.host
        result = np.full(len(host), NONE, np.int32)
        made = np.flatnonzero(self.is_operator & (host.sequence >= 0) & (host.forward_thread <= 0))
        nodes = np.flatnonzero(self.backward)
        if not len(made) or not len(nodes):
            return result
        order = made[np.argsort(host.sequence[made], kind="stable")]  # of equal ones the latest comes last
        at = np.searchsorted(host.sequence[order], host.sequence[nodes], side="right") - 1
        found = order[np.maximum(at, 0)]
        result[nodes] = np.where(host.sequence[found] == host.sequence[nodes], found, NONE)
        return result

    @cached_property
    def device_operator(self) -> Codes:
        """The operator closest around the launch of each device row.

        Where the file has no launch, or none inside an operator: the operator with the activity's
        "External id", which older files fill with the correlation instead.
        """
        trace = self.trace
        found = take(self.operator, self.joined.launch)
        lost = np.flatnonzero((found < 0) & (trace.device.external > 0)
                              & (trace.device.external != trace.device.correlation))
        rows = np.flatnonzero(self.is_operator & (trace.host.external > 0))
        if len(lost) and len(rows):
            order = rows[np.argsort(trace.host.external[rows], kind="stable")]
            ids = trace.host.external[order]
            at = np.minimum(np.searchsorted(ids, trace.device.external[lost]), len(order) - 1)
            found[lost] = np.where(ids[at] == trace.device.external[lost], order[at], NONE)
        return found

    @cached_property
    def device_top(self) -> Codes:
        """The outermost operator around the launch of each device row."""
        return take(self.top, self.device_operator)

    @cached_property
    def device_backward(self) -> Flags:
        """Device rows launched inside a node of the backward pass."""
        return take(self.node, self.device_operator) >= 0

    @cached_property
    def device_module(self) -> Codes:
        """The module row behind each device row, that of the forward operator for backward work."""
        launch = take(self.module, self.joined.launch)
        return np.where(launch >= 0, launch, take(self.module, self.device_operator)).astype(np.int32)


def durations(start: Ints, end: Ints) -> Ints:
    """Lengths, ns; never negative."""
    return np.maximum(end - start, 0)
