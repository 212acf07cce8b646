"""The changes of definitions, section 4, made to a program."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from profiler.analysis.trace import intervals
from profiler.replay.build import Columns, Model
from profiler.replay.overlap import (
    HOST_WAITS,
    activity,
    overlapped_communication,
    overlapped_transfer,
    pinned_rate,
    submits,
)
from profiler.replay.run import Op
from profiler.replay.work import Work, union
from profiler.trace.model import Flags, Ints, Kind

LEFT_OVER_NS = 25_000  # what launching still costs a step when it costs nothing


def no_input_wait(m: Model, w: Work, c: Columns) -> Columns:
    waited = m.loader.waited
    c = _without(m, c, intervals.union(m.loader.start[waited] + m.loader.own, m.loader.end[waited]))
    return _host(c, c.kind == Op.FETCH, keep_cost=True)


def no_transfer(m: Model, w: Work, c: Columns) -> Columns:
    c = _without(m, c, w.batch)
    own = w.batch_calls[c.event]
    kind = np.where(own & submits(c), int(Op.SKIP), c.kind)
    return _host(c.with_(kind=kind, cost=np.where(own, 0, c.cost)), own & np.isin(kind, HOST_WAITS))


def no_sync(m: Model, w: Work, c: Columns) -> Columns:
    waits = np.isin(c.kind, HOST_WAITS) & ~(w.batch_calls | w.saving)[c.event]
    return _host(c, waits, keep_cost=True)


def no_launch_overhead(m: Model, w: Work, c: Columns) -> Columns:
    return _left_over(m, w, _without(m, c, w.launch_work()))


def only_operators(m: Model, w: Work, c: Columns) -> Columns:
    """`no_launch_overhead`, read so that Python between operators stays."""
    return _left_over(m, w, _without(m, c, w.launch_work_in_operators()))


def with_python(m: Model, w: Work, c: Columns) -> Columns:
    """`no_host_work`, read so that Python between operators goes too."""
    python = intervals.subtract(w.launch_work(), w.operators)
    return _without(m, c, union(python, w.host_work()), calls=False)


def _left_over(m: Model, w: Work, c: Columns) -> Columns:
    """With what launching still costs, before the first launch of each step that has several."""
    ev = m.events
    firsts = np.flatnonzero((c.kind == Op.LAUNCH) & (ev.start[c.event] == w.first[ev.segment[c.event]]))
    _, at = np.unique(ev.segment[c.event[firsts]], return_index=True)
    before = c.before.copy()
    before[firsts[at]] += LEFT_OVER_NS
    return c.with_(before=before)


def no_host_work(m: Model, w: Work, c: Columns) -> Columns:
    return _without(m, c, w.host_work(), calls=False)


def no_allocator(m: Model, w: Work, c: Columns) -> Columns:
    return _host(c, m.events.kind[c.event] == Op.DRAIN)


def no_communication(m: Model, w: Work, c: Columns) -> Columns:
    return c.with_(length=np.where(activity(m, c, m.j.communication), 0, c.length))


def compute_half(m: Model, w: Work, c: Columns) -> Columns:
    return c.with_(length=np.where(activity(m, c, m.j.compute), c.length // 2, c.length))


def _host(c: Columns, rows: Flags, keep_cost: bool = False) -> Columns:
    """With operations that wait for nothing any more."""
    cost = c.cost if keep_cost else np.where(rows, 0, c.cost)
    return c.with_(kind=np.where(rows, int(Op.HOST), c.kind), cost=cost)


def _without(m: Model, c: Columns, removed: Ints, calls: bool = True) -> Columns:
    """Without host time that a set covers, between operations and in launch calls of kernels and memsets."""
    ev = m.events
    c = c.with_(before=c.between(m.host_time(removed)))
    if not calls:
        return c
    launches = activity(m, c, m.j.trace.device.kind != Kind.MEMCPY) & (c.kind == Op.LAUNCH)
    gone = launches & (intervals.covered(removed, ev.start, ev.end) > 0)[c.event]
    return c.with_(cost=np.where(gone, 0, c.cost))

Change = Callable[[Model, Work, Columns], Columns]
SCENARIOS: dict[str, Change] = {f.__name__: f for f in (
    no_input_wait, no_transfer, overlapped_transfer, no_sync, no_launch_overhead, no_host_work, no_allocator,
    no_communication, overlapped_communication, compute_half)}


def readings(name: str, m: Model, w: Work) -> list[tuple[str, Change]]:
    """Other ways to read a scenario, with what to call them."""
    if name == "no_launch_overhead":
        return [("Python between operators stays", only_operators)]
    if name == "no_host_work":
        return [("Python between operators goes too", with_python)]
    rate = pinned_rate(m) if name == "overlapped_transfer" else None
    if rate:
        return [("copies at the pinned rate measured", partial(overlapped_transfer, rate=rate))]
    return []
