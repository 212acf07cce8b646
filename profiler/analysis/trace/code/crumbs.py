"""Operators on the CPU so short that calling them costs more than what they do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.code.owners import Owners
from profiler.trace.model import Flags, Ints

SHORT_NS = 20_000  # of an outermost operator; what calls it takes as long or longer


@dataclass(frozen=True)
class Crumbs:
    """Outermost operators of one thread that take less than SHORT_NS.

    `span_ns`: their time with what follows each of them up to the next operator, where that begins
    within SHORT_NS too. `events` of all `every` operators, inner ones too, are theirs: a profiler's cost
    is shared out by that.
    """

    rows: Ints  # of Trace.host
    count: int
    of: int  # outermost operators in all
    median_ns: float
    time_ns: int
    span_ns: int
    events: int
    every: int


def crumbs(owners: Owners, thread: int, picked: Flags) -> Crumbs:
    """`picked`: host rows that count, such as those of counted steps."""
    host = owners.trace.host
    own = owners.is_operator & (host.thread == thread) & picked
    rows = np.flatnonzero(own & (owners.top == np.arange(len(host))))
    rows = rows[np.argsort(host.start[rows], kind="stable")]
    long = owners.host_time[rows]
    short = long < SHORT_NS
    gap = np.append(host.start[rows][1:] - host.end[rows][:-1], SHORT_NS)[:len(rows)]
    after = np.where((gap >= 0) & (gap < SHORT_NS), gap, 0)
    is_short = np.zeros(len(host), bool)
    is_short[rows[short]] = True
    tops = owners.top[own]
    return Crumbs(
        rows[short], int(short.sum()), len(rows), float(np.median(long[short])) if short.any() else 0.0,
        int(long[short].sum()), int((long + after)[short].sum()), int(is_short[tops].sum()), int(own.sum()))
