"""Which steps are replayed, and which host threads are one serial chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steps import Steps
from profiler.trace.model import NONE, Flags, Ints
from profiler.trace.names import Call

MOST = 16       # steps that are replayed at most
BLOCK = 4       # steps that are drawn together
WARM = 4        # steps that are replayed at most before those that count
QUEUE = 1020    # activities that a device's launch queue holds, where blocked launches do not tell
TOGETHER = 0.02  # share of a thread's calls that may run beside the chain's for it to be part of the chain
USED = (Call.LAUNCH, Call.GRAPH, Call.MEMCPY, Call.MEMSET, Call.ALLOCATOR, Call.SYNC, Call.RECORD, Call.WAIT)


@dataclass(frozen=True)
class Segments:
    """Steps in the order in which they are replayed, m of them. Times are the trace's, ns."""

    step: Ints      # row of Steps, rising
    start: Ints
    end: Ints       # of the host window
    stop: Ints      # where the next step begins in the trace; `end` where none follows
    counted: Flags  # enters medians

    def __len__(self) -> int:
        return len(self.step)

    @property
    def follows(self) -> Flags:
        """Whether each step is replayed after the one that was before it in the trace."""
        stop = np.concatenate(([NONE], self.stop[:-1]))
        return self.start == stop


def select(j: Joined, steps: Steps, calls: Ints, budget: int) -> Segments:
    """All steps when there are few; else counted ones, drawn evenly.

    `calls` are rows of host calls of the chain. At least one step is drawn, however long.
    """
    step = steps.at(j.trace.host.start[calls])
    cost = np.bincount(step[step >= 0], minlength=len(steps)) + 2
    follows = np.concatenate((steps.follows()[1:], [False]))[: len(steps)]
    stop = np.where(follows, np.concatenate((steps.start[1:], steps.end[-1:]))[: len(steps)], steps.end)
    chosen = np.arange(len(steps))
    counted = steps.counted
    if counted.sum() > MOST or cost.sum() > budget:
        chosen, counted = _drawn(np.flatnonzero(steps.counted), steps.follows(), cost, budget)
    return Segments(chosen, steps.start[chosen], steps.end[chosen], stop[chosen], counted)


def _drawn(rows: Ints, follows: Flags, cost: Ints, budget: int) -> tuple[Ints, Flags]:
    """Blocks of successive steps, evenly spread over `rows`, as many as fit; and which of them are counted.

    Work and batches of one step reach into the next, so that each block begins with the step
    before it, not counted; the first one with several, until the launch queue could be full.
    """
    for n in range(min(MOST, len(rows)), 0, -1):
        blocks = -(-n // BLOCK)
        first = np.round(np.linspace(0, len(rows) - n // blocks, blocks)).astype(np.int64)
        at = np.unique(np.concatenate([np.arange(f, min(f + -(-n // blocks), len(rows))) for f in first]))
        drawn = rows[at[:n]]
        fill = min(int(np.ceil(QUEUE / max(cost[drawn].mean(), 1))), WARM)
        warm = [fill, *(np.diff(drawn) != 1).tolist()]
        chosen = np.unique(np.concatenate([_before(row, k, follows) for row, k in zip(drawn.tolist(), warm)]))
        if cost[chosen].sum() <= budget or n == 1:
            break
    return chosen, np.isin(chosen, drawn)


def _before(row: int, k: int, follows: Flags) -> Ints:
    """A step after the k before it, as far as they follow one another."""
    first = row
    while k and follows[first]:
        first, k = first - 1, k - 1
    return np.arange(first, row + 1)


@dataclass(frozen=True)
class Calls:
    """Rows of Trace.host that matter to the replay, in order."""

    chain: Ints          # of the threads of the serial chain
    threads: list[int]   # these threads; the loop's comes first
    beside: Ints         # of other threads that submit work: their time is not the loop's


def calls(j: Joined, thread: int) -> Calls:
    """The calls of a trace whose loop runs on `thread`.

    The loop's thread and the autograd thread wait for each other, so their calls follow one
    another. A thread whose calls run beside theirs is no part of the chain.
    """
    host = j.trace.host
    owns = np.zeros(len(host), np.bool_)
    owns[j.launch[j.launch >= 0]] = True
    rows = np.flatnonzero((np.isin(j.call, [int(c) for c in USED]) | owns)
                          & (j.outer_call == np.arange(len(host))))
    number = np.bincount(host.thread[rows], owns[rows] + 0.001, len(j.trace.threads))
    threads = [thread] if thread != NONE else []
    mine = rows[host.thread[rows] == thread]
    busy = intervals.union(host.start[mine], host.end[mine])
    for other in np.argsort(-number, kind="stable").tolist():
        own = rows[host.thread[rows] == other]
        if other == thread or not owns[own].any():
            continue
        beside = intervals.covered(busy, host.start[own], host.end[own]).sum()
        if beside <= TOGETHER * (host.end[own] - host.start[own]).sum():
            threads.append(other)
            busy = intervals.union(*np.concatenate((busy, np.stack((host.start[own], host.end[own]), 1))).T)
    chain = np.isin(host.thread[rows], threads)
    submits = owns[rows] | np.isin(j.call[rows], (int(Call.RECORD), int(Call.WAIT)))
    others = np.unique(host.thread[rows[owns[rows] & ~chain]])
    return Calls(rows[chain], threads, rows[~chain & submits & np.isin(host.thread[rows], others)])
