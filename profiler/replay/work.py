"""Which host time and which operations a scenario is about: launching, named work, copies of the batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.breakdown.labels import Labels
from profiler.analysis.trace.joined import Joined
from profiler.replay.build import Model
from profiler.replay.run import Op
from profiler.trace.model import NONE, Flags, Ints, Kind
from profiler.trace.names import Call, Copy, is_saving

H2D = (int(Copy.H2D), int(Copy.H2D_PAGEABLE), int(Copy.H2D_PINNED))
D2H = (int(Copy.D2H), int(Copy.D2H_PAGEABLE), int(Copy.D2H_PINNED))


@dataclass(frozen=True)
class Work:
    """Sets of host time, ns on the trace's clock, and rows of Trace.host."""

    launching: Ints       # from the first to the last kernel launch of each step
    first: Ints           # start of the first kernel launch of each segment; NONE where there are not several
    steps: Ints           # host windows
    fetching: Ints        # the loader's
    named: Ints           # other:<name>
    operators: Ints       # inside any operator or call
    copying: Ints         # operators of copies between host and device that do nothing else
    batch: Ints           # those of the batch's copies
    batch_calls: Flags    # events that are copies of the batch, or wait for one
    saving: Flags         # events inside an annotation that saves a checkpoint

    def launch_work(self) -> Ints:
        """What `no_launch_overhead` removes."""
        kept = union(self.named, self.fetching, self.copying)
        return intervals.subtract(self.launching, kept)

    def launch_work_in_operators(self) -> Ints:
        """The part of it inside operators and calls: Python between operators stays."""
        return intervals.intersect(self.launch_work(), self.operators)

    def host_work(self) -> Ints:
        """What `no_host_work` removes."""
        kept = union(self.launching, self.fetching, self.copying)
        return union(intervals.subtract(self.steps, kept), self.named)


def union(*sets: Ints) -> Ints:
    both = np.concatenate(sets)
    return intervals.union(both[:, 0], both[:, 1])


def find(m: Model) -> Work:
    """The work of a model's segments."""
    host, ev = m.j.trace.host, m.events
    launching, first = _launching(m)
    chain = np.isin(host.thread, m.threads)
    rows = Labels(m.j, m.steps).named_work & chain
    named = intervals.union(host.start[rows], host.end[rows])
    fetching = intervals.union(m.loader.start, m.loader.end)
    steps = intervals.union(m.segments.start, m.segments.end)
    kind = np.append(m.j.copy, 0)[ev.device]  # the last answers for NONE
    copies = np.flatnonzero(ev.submits & ~ev.beside & (ev.host >= 0) & np.isin(kind, (*H2D, *D2H)))
    start, end = copy_operators(m.j, ev.host[copies])
    t0 = ev.start
    t1 = np.maximum(ev.end, ev.start + 1)
    batch = np.isin(kind[copies], H2D) & ~(intervals.covered(named, t0, t1) > 0)[copies]
    sets = intervals.union(start[batch], end[batch])
    of_batch = (intervals.covered(sets, t0, t1) == t1 - t0) & (ev.host >= 0) & ~ev.beside
    of_batch |= ev.submits & (ev.beside | (ev.host < 0)) & np.isin(kind, H2D)  # by another thread, or before
    saves = rows & m.j.host_names(is_saving).astype(bool)
    saving = intervals.covered(intervals.union(host.start[saves], host.end[saves]), t0, t1) > 0
    ops = ((host.kind == Kind.OPERATOR) | m.j.is_call) & chain
    return Work(launching, first, steps, fetching, named, intervals.union(host.start[ops], host.end[ops]),
                intervals.union(start, end), sets, of_batch, saving)


def _launching(m: Model) -> tuple[Ints, Ints]:
    """From the first to the last kernel launch of each segment, the operators around these two included."""
    ev, host = m.events, m.j.trace.host
    rows = np.flatnonzero((ev.kind == Op.LAUNCH) & (ev.host >= 0) & m.j.kernel_launch[ev.host])
    segment = ev.segment[rows]
    kept, first = np.unique(segment, return_index=True)
    last = np.concatenate((first[1:], [len(rows)]))[: len(first)] - 1
    ends = np.stack((ev.host[rows[first]], ev.host[rows[last]]))
    around = _outermost(m.j, ends.ravel()).reshape(ends.shape)
    start = np.maximum(host.start[around[0]], m.segments.start[kept])
    end = np.minimum(host.end[around[1]], m.segments.stop[kept])
    begun = np.full(len(m.segments), NONE)
    several = last > first  # what launches once has nothing between its launches
    begun[kept[several]] = ev.start[rows[first[several]]]
    return intervals.union(start[several], end[several]), begun


def _outermost(j: Joined, rows: Ints) -> Ints:
    """The outermost operator around each row; the row itself without one."""
    best, up = rows.copy(), j.parent[rows].astype(np.int64)
    while (up >= 0).any():
        best = np.where((up >= 0) & (j.trace.host.kind[up] == Kind.OPERATOR), up, best)
        up = np.where(up >= 0, j.parent[up], NONE)
    return best


def copy_operators(j: Joined, calls: Ints) -> tuple[Ints, Ints]:
    """Start and end of the outermost operator around each copy call that does nothing but copy.

    The call itself where the closest operator launches other work too.
    """
    host = j.trace.host
    at = calls.copy()
    others = j.kernel_launch | (j.call == Call.MEMSET)
    start = host.start[others]
    thread = host.thread[others]
    starts = {int(t): start[thread == t] for t in np.unique(host.thread[calls])}
    for row in range(len(at)):
        up = int(j.parent[at[row]])
        while up >= 0 and host.kind[up] == Kind.OPERATOR:
            own = starts[int(host.thread[up])]
            if np.searchsorted(own, host.start[up]) != np.searchsorted(own, host.end[up]):
                break
            at[row] = up
            up = int(j.parent[up])
    return host.start[at], host.end[at]
