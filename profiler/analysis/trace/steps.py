"""The steps of a bare trace, and the rule that found them. Definitions, section 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.code.owners import nearest
from profiler.analysis.trace.joined import Joined
from profiler.trace import names
from profiler.trace.model import NONE, Flags, Ints, Kind

PROFILER_STEP = "ProfilerStep"
OPTIMIZER = "optimizer"
LOADER = "loader"
WHOLE = "whole trace"
LEFT_AT_LEAST = 3  # the first step of a window is left out of medians when as many remain


@dataclass(frozen=True)
class Steps:
    """n steps in order of time, disjoint. Times are ns on the trace's clock."""

    rule: str             # PROFILER_STEP, OPTIMIZER, LOADER or WHOLE
    number: Ints          # N of ProfilerStep#N; from 0 under the other rules, NONE for the whole trace
    start: Ints
    end: Ints
    window: Ints          # profiler window of the step, from 0
    counted: Flags        # enters medians and means
    thread: int           # the loop's: index into Trace.threads; NONE when the trace has no host events
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.number)

    @property
    def per_step(self) -> bool:
        """Whether figures per step exist; not when the whole trace is one window."""
        return self.rule != WHOLE and len(self) > 0

    def at(self, times: Ints) -> Ints:
        """Step that each time lies in, NONE between steps: int64, as long as `times`."""
        if not len(self):
            return np.full(len(times), NONE, np.int64)
        step = np.searchsorted(self.start, times, side="right") - 1
        return np.where((step >= 0) & (times < self.end[step]), step, NONE)

    def follows(self) -> Flags:
        """Whether each step is the direct successor of the one before it."""
        return np.concatenate(([False], self.window[1:] == self.window[:-1]))[: len(self)]


def find(j: Joined) -> Steps:
    """Steps by the first rule that gives any."""
    return _by_annotation(j) or _by_optimizer(j) or _by_loader(j) or _whole(j)


def _by_annotation(j: Joined) -> Steps | None:
    host = j.trace.host
    number = j.host_names(names.step_number, NONE)
    rows = np.flatnonzero((number >= 0) & (host.end > host.start) & ~j.is_call & (host.kind != Kind.PYTHON))
    if not len(rows):
        return None
    own = _once(j, rows, number)
    notes = []
    if len(own) < len(rows):
        notes.append(f"{len(rows) - len(own)} step annotations of other threads are not counted")
    thread = _busiest(j, own)
    start, end, kept = disjoint(host.start[own], host.end[own])
    number = number[own][kept]
    cut = _without_work(j, start, end)
    if cut.any():
        numbers = ", ".join(f"#{n}" for n in number[cut].tolist())
        notes.append(f"no step, cut by the end of the trace: {numbers}")
        number, start, end = number[~cut], start[~cut], end[~cut]
    part = _parts(j, start)
    window = np.concatenate(([0], np.cumsum((np.diff(number) != 1) | (np.diff(part) > 0))))
    return Steps(PROFILER_STEP, number, start, end, window, _counted(window), thread, tuple(notes))


def _once(j: Joined, rows: Ints, number: Ints) -> Ints:
    """The rows without those that another thread's, which launches more, stand for: of the same number,
    or in the same time. A loop may go from one thread to another between its steps."""
    host = j.trace.host
    kept = rows[:0]
    while len(rows):
        own = rows[host.thread[rows] == _busiest(j, rows)]
        kept = np.concatenate((kept, own))
        beside = intervals.covered(intervals.union(host.start[own], host.end[own]),
                                   host.start[rows], host.end[rows])
        apart = 2 * beside < host.end[rows] - host.start[rows]
        rows = rows[apart & ~np.isin(number[rows], number[own])]
    return np.sort(kept)


def _by_optimizer(j: Joined) -> Steps | None:
    """From end to end of the calls of the optimizer that is called least often."""
    host = j.trace.host
    named = j.host_names(names.is_optimizer).astype(bool) & ~j.is_call & (host.kind != Kind.PYTHON)
    rows = np.flatnonzero(named)
    rows = rows[~in_autograd(j)[rows]]
    if not len(rows):
        return None
    thread = _busiest(j, rows)
    rows = rows[host.thread[rows] == thread]
    best: Ints | None = None
    for name in sorted(np.unique(host.name[rows]).tolist(), key=lambda code: j.trace.names[code]):
        own = rows[host.name[rows] == name]
        start, end, _ = disjoint(host.start[own], host.end[own])
        ends = end[np.concatenate((_work_between(j, end[:-1], start[1:]), [True]))]
        if len(ends) > 1 and (best is None or len(ends) < len(best)):
            best = ends
    return None if best is None else _between(j, OPTIMIZER, best, thread)


def _by_loader(j: Joined) -> Steps | None:
    """From start to start of the loader's fetches; fetches with no work between them count once."""
    host = j.trace.host
    rows = np.flatnonzero(j.fetch)
    if not len(rows):
        return None
    thread = _busiest(j, rows)
    rows = rows[host.thread[rows] == thread]
    start, end, _ = disjoint(host.start[rows], host.end[rows])
    starts = start[np.concatenate(([True], _work_between(j, end[:-1], start[1:])))]
    return _between(j, LOADER, starts, thread) if len(starts) > 1 else None


def _whole(j: Joined) -> Steps:
    tables = [t for t in (j.trace.host, j.trace.device) if len(t)]
    thread = NONE
    if len(j.trace.host):
        rows = np.flatnonzero(j.kernel_launch & ~in_autograd(j))
        thread = _busiest(j, rows if len(rows) else np.arange(len(j.trace.host)))
    start = np.array([min(int(t.start.min()) for t in tables)] if tables else [], np.int64)
    end = np.array([max(int(t.end.max()) for t in tables)] if tables else [], np.int64)
    return Steps(WHOLE, np.full(len(start), NONE), start, end, np.zeros(len(start), np.int64),
                 np.ones(len(start), np.bool_), thread,
                 ("the trace has no steps: it is one window, and figures per step are absent",))


def in_autograd(j: Joined) -> Flags:
    """Host rows that are nodes of a backward graph or lie in one."""
    return nearest(j.parent, j.backward) >= 0


def _between(j: Joined, rule: str, boundary: Ints, thread: int) -> Steps | None:
    """From boundary to boundary; none reaches from one profiler window into the next."""
    part = _parts(j, boundary)
    kept = np.flatnonzero(part[1:] == part[:-1])
    if not len(kept):
        return None
    window = part[kept]
    return Steps(rule, np.arange(len(kept)), boundary[kept], boundary[kept + 1], window, _counted(window),
                 thread,
                 ("the trace has no step annotations: steps go from "
                  + ("one optimizer call to the next" if rule == OPTIMIZER else "one fetch to the next"),))


def _parts(j: Joined, times: Ints) -> Ints:
    """The profiler window that each time lies in, from 0, of a trace that holds several."""
    return np.searchsorted(np.array(j.trace.cuts, np.int64), times, side="right")


def _counted(window: Ints) -> Flags:
    first = np.concatenate(([True], window[1:] != window[:-1]))[: len(window)]
    return ~first if (~first).sum() >= LEFT_AT_LEAST else np.ones(len(window), np.bool_)


def _busiest(j: Joined, rows: Ints) -> int:
    """Of the threads of these host rows the one that launches most device time, then has most operators."""
    host, device = j.trace.host, j.trace.device
    n = len(j.trace.threads)
    known = j.launch >= 0
    work = np.bincount(host.thread[j.launch[known]], (device.end - device.start)[known], n)
    operators = np.bincount(host.thread[host.kind == Kind.OPERATOR], minlength=n)
    threads, first = np.unique(host.thread[rows], return_index=True)
    order = np.lexsort((rows[first], -operators[threads], -work[threads]))
    return int(threads[order[0]])


def disjoint(start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Intervals in order of start without those that lie for the most part in an earlier one.

    Starts, ends and rows of those that are kept. An end that reaches a little into the
    next one (times were rounded) is taken back to its start.
    """
    kept: list[int] = []
    reach = None
    for row, (t0, t1) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        if reach is None or t0 >= reach or (t1 > reach and 2 * (reach - t0) <= t1 - t0):
            kept.append(row)
            reach = t1
    rows = np.array(kept, np.int64)
    start, end = start[rows], end[rows].copy()
    end[:-1] = np.minimum(end[:-1], start[1:])
    return start, end, rows


def _work_between(j: Joined, start: Ints, end: Ints, *, copies: bool = False) -> Flags:
    """Whether kernels (with `copies` any activity) are launched in each [start, end).

    In a trace without launches, whether operators begin.
    """
    rows = j.kernel_launch
    if copies:
        rows = rows.copy()
        rows[j.launch[j.launch >= 0]] = True
    times = j.trace.host.start[rows if rows.any() else j.trace.host.kind == Kind.OPERATOR]
    return np.searchsorted(times, end) > np.searchsorted(times, start)


def _without_work(j: Joined, start: Ints, end: Ints) -> Flags:
    """First and last steps of files when nothing is launched in them, and something in all others."""
    idle = ~_work_between(j, start, end, copies=True)
    change = np.flatnonzero(np.diff(_parts(j, start)))
    inner = idle.copy()
    inner[np.concatenate(([0, -1], change, change + 1))] = False
    return idle if len(idle) > idle.sum() and not inner.any() else np.zeros(len(idle), np.bool_)
