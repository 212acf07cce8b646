"""What waits for what: stream waits and synchronisations bound to the activities they wait for.

Synchronisation rows say it where the profiler recorded them. Elsewhere it is told from the
order of the calls; a binding that the measured times contradict is not made.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.replay.events import RECORD, SYNC, Events
from profiler.replay.run import Op
from profiler.trace.model import NONE, Ints, Kind
from profiler.trace.names import Copy

H2D = (int(Copy.H2D), int(Copy.H2D_PAGEABLE), int(Copy.H2D_PINNED))


@dataclass(frozen=True)
class Lanes:
    """Streams of all devices, numbered; and the activities of the events, in order of submission."""

    lane: Ints            # of each activity
    keys: list[tuple[int, int]]  # (device, stream) of each lane
    start: list[int]      # measured, ns
    end: list[int]
    copies: list[bool]    # lanes that hold copies to the device and nothing else

    @classmethod
    def of(cls, j: Joined, events: Events) -> Lanes:
        device = j.trace.device
        rows = events.device[events.submits]
        pairs = np.stack((device.device[rows].astype(np.int64), device.stream[rows]), axis=1)
        keys, lane = np.unique(pairs, axis=0, return_inverse=True)
        lane = lane.reshape(-1)
        only = np.isin(j.copy[rows], H2D) & (device.kind[rows] == Kind.MEMCPY)
        other = np.bincount(lane, ~only, len(keys))
        return cls(lane, [(int(d), int(s)) for d, s in keys], device.start[rows].tolist(),
                   device.end[rows].tolist(), (other == 0).tolist())

    @property
    def devices(self) -> dict[int, list[int]]:
        """Lanes of each device, in order of its first."""
        result: dict[int, list[int]] = {}
        for lane, (device, _) in enumerate(self.keys):
            result.setdefault(device, []).append(lane)
        return result

    def number(self, device: int, stream: int) -> int:
        """Lane of a stream; NONE when it holds no activity. Device NONE: any device's."""
        for lane, (d, s) in enumerate(self.keys):
            if s == stream and device in (d, NONE):
                return lane
        return NONE


@dataclass
class Bound:
    """For each event: what it became, the lane that waits or is waited for, and what it waits for."""

    kind: list[int]
    lane: list[int]
    other: list[int]
    until: list[int]        # measured end of what the host waited for; NONE
    extra: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # further (lane, other) of a wait
    ambiguous: set[int] = field(default_factory=set)  # waits with several possible sources


class _Walk:
    """State of one pass over the events."""

    def __init__(self, j: Joined, events: Events, lanes: Lanes) -> None:
        self.lanes = lanes
        n = len(lanes.keys)
        self.last = [NONE] * n            # newest activity on each lane
        self.recent: list[int] = []       # lanes, the one that was submitted to last at the end
        self.fresh = [False] * n          # copy lanes with copies that nothing has waited for yet
        self.records: dict[int, tuple[list[int], list[int]]] = {}  # by correlation: `last` and `recent` then
        self.newest: tuple[list[int], list[int]] | None = None
        self.ends: list[list[int]] = [[] for _ in range(n)]  # measured, in order of submission
        self.acts: list[list[int]] = [[] for _ in range(n)]
        by_lane = [np.flatnonzero(lanes.lane == k).tolist() for k in range(n)]
        self.all = by_lane
        self.sync = _sync_rows(j)

    def submit(self, act: int) -> None:
        lane = int(self.lanes.lane[act])
        self.last[lane] = act
        if not self.recent or self.recent[-1] != lane:
            if lane in self.recent:
                self.recent.remove(lane)
            self.recent.append(lane)
        self.fresh[lane] = self.lanes.copies[lane]
        self.ends[lane].append(self.lanes.end[act])
        self.acts[lane].append(act)

    def record(self, correlation: int) -> None:
        self.newest = (list(self.last), list(self.recent))
        self.records[correlation] = self.newest

    def next_start(self, lane: int, act: int) -> int | None:
        """Measured start of the next activity on a lane from activity number `act` on."""
        own = self.all[lane]
        at = bisect_left(own, act)
        return self.lanes.start[own[at]] if at < len(own) else None


def _sync_rows(j: Joined) -> dict[int, tuple[int, int, int, int]]:
    """By correlation: device, stream, stream waited for, correlation of the record."""
    s = j.trace.syncs
    rows = zip(s.device.tolist(), s.stream.tolist(), s.wait_stream.tolist(), s.wait_record.tolist())
    return {c: row for c, row in zip(s.correlation.tolist(), rows) if c > 0}


def bind(j: Joined, events: Events, lanes: Lanes) -> Bound:
    """Waits and synchronisations of the events, bound."""
    n = len(events)
    bound = Bound(events.kind.tolist(), [NONE] * n, [NONE] * n, [NONE] * n)
    walk = _Walk(j, events, lanes)
    correlation = np.where(events.host >= 0, j.trace.host.correlation[events.host], NONE).tolist()
    names = [j.trace.names[c] if c >= 0 else "" for c in
             np.where(events.host >= 0, j.trace.host.name[events.host], NONE).tolist()]
    start, end = events.start.tolist(), events.end.tolist()
    act = 0
    for i, kind in enumerate(bound.kind):
        if kind in (Op.LAUNCH, Op.FOLLOW):
            bound.lane[i] = int(lanes.lane[act])
            walk.submit(act)
            act += 1
        elif kind == RECORD:
            walk.record(correlation[i])
        elif kind == Op.WAIT:
            _wait(walk, bound, i, correlation[i], act)
        elif kind == SYNC:
            _sync(walk, bound, i, correlation[i], names[i], start[i], end[i])
        elif kind == Op.EVENT:  # a copy that blocks: for itself
            bound.other[i], bound.until[i] = act - 1, lanes.end[act - 1]
        elif kind == Op.DRAIN:
            _device(walk, bound, i, None, end[i])
    return bound


def _wait(walk: _Walk, bound: Bound, i: int, correlation: int, act: int) -> None:
    """A stream's wait: on which lane, and for which activities."""
    row = walk.sync.get(correlation)
    lanes = walk.lanes
    lane = lanes.number(row[0], row[1]) if row else NONE
    if lane == NONE:
        if act >= len(lanes.lane):
            return _drop(bound, i)
        lane = int(lanes.lane[act])
        if lanes.copies[lane] and walk.fresh[lane]:  # what it holds has to be waited for before it is used
            users = [k for k in walk.recent if not lanes.copies[k]]
            lane, sources = (users[-1], [lane]) if users else (lane, [])
        else:
            sources = []
    else:
        sources = []
    last, recent = walk.newest or (walk.last, walk.recent)
    sure = bool(sources)
    if row and row[3] in walk.records:
        last, recent = walk.records[row[3]]
        source = lanes.number(row[0], row[2]) if row[2] >= 0 else NONE
        sources, sure = ([source] if source != NONE else []), source != NONE
    elif row and row[2] >= 0:
        last, source = walk.last, lanes.number(row[0], row[2])
        sources, sure = ([source] if source != NONE else []), True
    if not sources and not sure:
        others = [k for k in reversed(recent) if k != lane and last[k] != NONE]
        sources = others[:1] if walk.newest else others
        fits = [k for k in others if _fits(walk, lane, last[k], act)]
        if sources and sources[0] not in fits:
            sources = fits[:1] if walk.newest else fits
        if len(fits) > 1:
            bound.ambiguous.add(i)
    found = [(lane, last[k]) for k in sources
             if k != lane and last[k] != NONE and _fits(walk, lane, last[k], act)]
    for k in sources:
        walk.fresh[k] = False
    if not found:
        return _drop(bound, i)
    bound.lane[i], bound.other[i] = found[0]
    if found[1:]:
        bound.extra[i] = found[1:]
    return None


def _drop(bound: Bound, i: int) -> None:
    bound.kind[i] = int(Op.HOST)


def _fits(walk: _Walk, lane: int, source: int, act: int) -> bool:
    """Whether the next activity on the lane began after the source had ended, as it must."""
    begun = walk.next_start(lane, act)
    return begun is None or walk.lanes.end[source] <= begun


def _sync(walk: _Walk, bound: Bound, i: int, correlation: int, name: str, start: int, end: int) -> None:
    """A call that blocks the host: for a stream, an event or the device."""
    row = walk.sync.get(correlation)
    text = name.lower()
    if "event" in text:
        return _event_sync(walk, bound, i, row, start, end)
    tails = [(e[-1], k) for k, e in enumerate(walk.ends) if e]
    if "stream" in text:
        lane = walk.lanes.number(row[0], row[1]) if row else NONE
        if row and lane == NONE:
            return _drop(bound, i)
        possible = [(t, k) for t, k in tails if (k == lane if row else t <= end)]
        if not possible:
            return _drop(bound, i)
        until, lane = max(possible)
        bound.kind[i], bound.lane[i], bound.until[i] = int(Op.STREAM), lane, until
        return None
    bound.kind[i] = int(Op.DEVICE)
    return _device(walk, bound, i, row, end)


def _device(walk: _Walk, bound: Bound, i: int, row: tuple[int, int, int, int] | None, end: int) -> None:
    """A call that waits for a device: the one that its row names, else the one that was done last before.

    None when work of every device went on beyond the end of the call.
    """
    best: tuple[int, int] | None = None
    for number, (device, lanes) in enumerate(walk.lanes.devices.items()):
        if row and row[0] not in (device, NONE):
            continue
        tails = [walk.ends[k][-1] for k in lanes if walk.ends[k]]
        if tails and max(tails) <= end and (best is None or max(tails) > best[0]):
            best = (max(tails), number)
    if best is None:
        return _drop(bound, i)
    bound.until[i], bound.lane[i] = best
    return None


def _event_sync(walk: _Walk, bound: Bound, i: int, row: tuple[int, int, int, int] | None, start: int,
                end: int) -> None:
    source = NONE
    if row and row[3] in walk.records:
        last, recent = walk.records[row[3]]
        lane = walk.lanes.number(row[0], row[2] if row[2] >= 0 else row[1])
        source = last[lane] if lane != NONE else last[recent[-1]] if recent else NONE
    else:
        best = NONE
        for ends, acts in zip(walk.ends, walk.acts):
            at = bisect_right(ends, end) - 1  # ends of a lane rise
            if at >= 0 and ends[at] > best:
                best, source = ends[at], acts[at]
    if source == NONE:
        return _drop(bound, i)
    bound.kind[i], bound.other[i], bound.until[i] = int(Op.EVENT), source, walk.lanes.end[source]
    return None
