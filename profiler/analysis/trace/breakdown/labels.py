"""What a host thread does at each instant, as classes of the partition. Definitions, section 3."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.breakdown import classes
from profiler.analysis.trace.joined import Joined, last_above
from profiler.analysis.trace.steps import Steps
from profiler.trace import names
from profiler.trace.model import NONE, Codes, Flags, Ints, Kind
from profiler.trace.names import Call

_LOWEST = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Track:
    """A function of time, constant from each edge to the next one. Before the first edge it is UNKNOWN."""

    edge: Ints   # rising, ns
    code: Ints   # classes, from each edge on; the last one is UNKNOWN

    def pieces(self, times: Ints) -> tuple[Ints, Ints, Ints]:
        """The function over disjoint sorted intervals (int64[n, 2]), as pieces that cover them.

        Row of the interval, code, and times int64[m, 2] of every piece, in order of time.
        """
        lowest = np.concatenate(([_LOWEST], self.edge))
        spans = np.stack((lowest, np.append(self.edge, np.iinfo(np.int64).max)), axis=1)
        row, span, pieces = intervals.meet(times, spans)
        return row, np.concatenate(([classes.UNKNOWN], self.code))[span], pieces


def track(layers: list[tuple[Ints, Ints | int]]) -> Track:
    """Sets of time (int64[n, 2]) with their code; where several cover an instant the first one wins."""
    edge = intervals.edges([times for times, _ in layers])
    code = np.full(len(edge), classes.UNKNOWN, np.int64)
    for times, value in reversed(layers):
        if not len(times):
            continue
        at = np.searchsorted(times[:, 0], edge, side="right") - 1
        inside = (at >= 0) & (edge < times[at, 1])
        code[inside] = value[at[inside]] if isinstance(value, np.ndarray) else value
    return Track(edge, code)


class Labels:
    """Tracks of the host threads of one trace, each worked out when it is asked for."""

    def __init__(self, j: Joined, steps: Steps) -> None:
        self.j = j
        self.loop = steps.thread
        self.thread = cache(self._thread)
        self.chain = cache(self._chain)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Name of every class code."""
        return classes.BASE + tuple(classes.other(self.j.trace.names[code]) for code in self._others)

    @cached_property
    def _others(self) -> list[int]:
        return sorted(np.unique(self.j.trace.host.name[self.named_work]).tolist(),
                      key=lambda code: self.j.trace.names[code])

    @cached_property
    def named_work(self) -> Flags:
        """Annotations that name their time: they hold no kernel launch, or their name says what they are."""
        host = self.j.trace.host
        rows = np.flatnonzero((host.kind == Kind.ANNOTATION) & (host.end > host.start) & ~self.j.fetch)
        launches = host.start[self.j.kernel_launch]
        silent = np.searchsorted(launches, host.start[rows]) == np.searchsorted(launches, host.end[rows])
        framework, named = (names.per_name(self.j.trace.names, host.name[rows], rule).astype(bool)
                            for rule in (names.is_framework, names.is_named_work))
        result = np.zeros(len(host), np.bool_)
        result[rows] = ~framework & (silent | named)
        return result

    @cached_property
    def autograd_threads(self) -> list[int]:
        """Threads other than the loop's that run nodes of the backward graph, in order of their first one."""
        host = self.j.trace.host
        rows = np.flatnonzero(self.j.backward & (host.thread != self.loop))
        threads, first = np.unique(host.thread[rows], return_index=True)
        return [int(t) for t in threads[np.argsort(first)]]

    def _thread(self, thread: int) -> Track:
        """What the thread itself does: HOST inside operators and calls, UNKNOWN where nothing is recorded."""
        host = self.j.trace.host
        own = host.thread == thread
        call = self.j.call

        def where(rows: Flags) -> Ints:
            return intervals.union(host.start[rows], host.end[rows])

        staging, drained = self._copies(own)
        busy = (host.kind != Kind.ANNOTATION) & (host.kind != Kind.PYTHON)
        blocked = np.concatenate((where(own & (call == Call.SYNC)), drained))
        work, name = self._innermost(np.flatnonzero(own & self.named_work))
        return track([
            (where(own & self.j.fetch), classes.INPUT_WAIT),
            (where(own & (call == Call.ALLOCATOR)), classes.ALLOCATOR),
            (staging, classes.TRANSFER_HOST),
            (intervals.union(blocked[:, 0], blocked[:, 1]), classes.SYNC),
            (work, name),
            (where(own & busy), classes.HOST)])

    def _copies(self, own: Flags) -> tuple[Ints, Ints]:
        """Within copy calls: the time before the device activity starts, and the time after it has ended.

        A call that is still there when its copy is done counts as blocking, whatever the host memory.
        """
        host, device = self.j.trace.host, self.j.trace.device
        rows = np.flatnonzero(own & (self.j.call == Call.MEMCPY))
        known = np.flatnonzero(self.j.launch >= 0)
        begun = np.full(len(host), np.iinfo(np.int64).max)
        ended = np.full(len(host), np.iinfo(np.int64).max)
        np.minimum.at(begun, self.j.launch[known], device.start[known])
        ended[self.j.launch[known]] = _LOWEST
        np.maximum.at(ended, self.j.launch[known], device.end[known])
        outer = self.j.outer_call[rows]
        start, end = host.start[rows], host.end[rows]
        return (intervals.union(start, np.minimum(end, begun[outer])),
                intervals.union(np.maximum(start, ended[outer]), end))

    def _innermost(self, rows: Ints) -> tuple[Ints, Ints]:
        """The innermost of these annotations at each instant: times int64[n, 2] and code, sorted."""
        host = self.j.trace.host
        start, end = host.start[rows], host.end[rows]
        edge = intervals.edges([start, end])
        if not len(edge):
            return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
        # Each edge asks for the nearest annotation before it that still goes on: it stands behind its equals.
        order = np.argsort(np.concatenate((start, edge)), kind="stable")
        ends = np.concatenate((end, np.full(len(edge), _LOWEST)))[order]
        times = np.concatenate((start, edge))[order]
        found = last_above(ends, times)[order >= len(rows)]
        inside = np.flatnonzero(found[:-1] >= 0)
        code = np.searchsorted(self._names, host.name[rows[order[found[inside]]]])
        return (np.stack((edge[inside], edge[inside + 1]), axis=1), classes.OTHER + self._rank[code])

    @cached_property
    def _names(self) -> Codes:
        return np.array(sorted(self._others), np.int32)

    @cached_property
    def _rank(self) -> Ints:
        place = {code: at for at, code in enumerate(self._others)}
        return np.array([place[code] for code in self._names.tolist()], np.int64)

    def _chain(self, thread: int) -> Track:
        """What the threads do that hand work to each other; `thread` is one of them and comes first.

        An autograd thread that waits shows what the loop's thread does, and where that waits for
        backward, what the autograd thread of another device does, whose gradients it waits for.
        The loop's, while it waits for backward, shows what the autograd threads do.
        """
        own = self.thread(thread)
        turns = [self.loop, *self.autograd_threads]
        partners = [one for one in turns if one != thread] if thread in turns else [self.loop]
        layers: list[tuple[Ints, Ints | int]] = []
        for one in [own, *(self.thread(p) for p in partners if p != NONE)]:
            times = np.stack((one.edge[:-1], one.edge[1:]), axis=1)
            known = one.code[:-1] != classes.UNKNOWN
            layers.append((times[known], one.code[:-1][known]))
        return track(layers)
