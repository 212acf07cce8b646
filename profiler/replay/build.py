"""From a trace to the program of its replay."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steps import Steps
from profiler.replay import binding, events, segments
from profiler.replay.binding import Bound
from profiler.replay.events import RECORD, SYNC, Events
from profiler.replay.fit import Fit, Measured
from profiler.replay.lanes import Lanes
from profiler.replay.loader import Loader
from profiler.replay.run import Op, Program
from profiler.replay.segments import Segments
from profiler.trace.model import NONE, Ints

_COLUMNS = ("kind", "before", "cost", "delay", "gap", "length", "lane", "other")


@dataclass(frozen=True)
class Model:
    """What the replays of one trace have in common."""

    j: Joined
    steps: Steps
    threads: list[int]   # of the serial chain
    segments: Segments
    events: Events
    bound: Bound
    lanes: Lanes
    loader: Loader
    lists: dict[int, tuple[Ints, list[int]]] = field(default_factory=dict)  # columns as lists, by array

    def measured(self) -> Measured:
        """What the fits start from."""
        return Measured.of(self.j, self.events, self.bound, self.lanes, self.segments.follows)

    def closest(self) -> Model:
        """With waits of several possible causes bound to what ended last before they were over."""
        bound = binding.bind(self.j, self.events, self.lanes, self.segments.follows, closest=True)
        return replace(self, bound=bound, lists={})

    def host_time(self, removed: Ints | None = None) -> Ints:
        """Host time right before every event, without what a set of times covers; ns."""
        ev = self.events
        time = ev.start - ev.prior
        return time if removed is None else time - intervals.covered(removed, ev.prior, ev.start)


@dataclass(frozen=True)
class Columns:
    """A program as arrays, n operations each. `event`: the event that each comes from."""

    event: Ints
    kind: Ints
    before: Ints
    cost: Ints
    delay: Ints
    gap: Ints
    length: Ints
    lane: Ints
    other: Ints
    scale: float = 1.0  # of the host's own time

    def scaled(self, scale: float) -> Columns:
        """With the host's own time multiplied."""
        return self.with_(before=_times(self.before, scale), cost=_times(self.cost, scale), scale=scale)

    def with_(self, **columns: Any) -> Columns:
        return replace(self, **columns)

    def same(self, other: Columns) -> bool:
        """Whether the other program does the same."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in _COLUMNS)
        return all(one is two or np.array_equal(one, two) for one, two in pairs)

    def insert(self, rows: list[tuple[int, dict[str, int]]]) -> Columns:
        """With further operations, each before the operation of that number; what is not given is 0."""
        if not rows:
            return self
        at = [row for row, _ in rows]
        new: dict[str, Any] = {"event": self.event[at]}
        for name in _COLUMNS:
            new[name] = np.array([values.get(name, 0) for _, values in rows], np.int64)
        return self.with_(**{name: np.insert(getattr(self, name), at, new[name]) for name in new})

    def between(self, host_time: Ints) -> Ints:
        """Host time before every operation, from that before every event."""
        total = np.cumsum(host_time)[self.event]
        return _times(np.diff(np.concatenate(([0], total))), self.scale)


def _times(values: Ints, scale: float) -> Ints:
    return values if scale == 1.0 else np.round(values * scale).astype(np.int64)


def model(j: Joined, steps: Steps, budget: int) -> Model:
    """Steps chosen, their events gathered and bound."""
    calls = segments.calls(j, steps.thread)
    chosen = segments.select(j, steps, calls.chain, budget)
    loader = Loader.of(j, steps, calls.threads)
    found = events.gather(j, chosen, calls, loader.waits)
    lanes = Lanes.of(j, found)
    bound = binding.bind(j, found, lanes, chosen.follows)
    return Model(j, steps, calls.threads, chosen, found, bound, lanes, loader)


def columns(m: Model, f: Fit) -> Columns:
    """The program: events that are operations, with the further waits that some of them bring."""
    event = np.flatnonzero(~np.isin(f.kind, (RECORD, SYNC)))
    extra = [(i, lane, other) for i, pairs in sorted(m.bound.extra.items()) for lane, other in pairs]
    lane, other = (np.array(column, np.int64)[event] for column in (m.bound.lane, m.bound.other))
    cost, delay = f.cost.copy(), f.delay.copy()
    fetch = np.flatnonzero(f.kind == Op.FETCH)
    ev = m.events
    cost[fetch], delay[fetch], anew = m.loader.costs(ev.host[fetch], ev.segment[fetch], m.segments)
    other[np.searchsorted(event, fetch)] = anew
    result: dict[str, Any] = {
        "event": event, "kind": f.kind[event], "cost": cost[event], "delay": delay[event],
        "gap": f.gap[event], "length": f.length[event], "lane": lane, "other": other}
    if extra:
        rows = np.array(extra, np.int64)
        at = np.searchsorted(event, rows[:, 0])
        none = np.zeros(len(rows), np.int64)
        new = {"event": rows[:, 0], "kind": none + int(Op.WAIT), "lane": rows[:, 1], "other": rows[:, 2]}
        result = {name: np.insert(column, at, new.get(name, none)) for name, column in result.items()}
    c = Columns(before=result["event"], **result)
    return c.with_(before=c.between(m.host_time()))


def program(m: Model, c: Columns, depth: int, keep: bool = False) -> Program:
    """As lists, for the loop. `keep`: programs of scenarios will share most of these columns."""
    devices = [list(lanes) for lanes in m.lanes.devices.values()]
    main = list(m.lanes.devices).index(m.j.main_device) if m.j.main_device in m.lanes.devices else NONE
    if devices:  # streams that a scenario adds
        devices[main].append(len(m.lanes.keys))
    columns = []
    for name in _COLUMNS:
        column = getattr(c, name)
        kept = m.lists.get(id(column))
        values = kept[1] if kept and kept[0] is column else column.tolist()
        if keep:
            m.lists[id(column)] = column, values
        columns.append(values)
    kind, before, cost, delay, gap, length, lane, other = columns
    return Program(kind, before, cost, delay, gap, length, lane, other, devices, main, depth)
