"""What waits for what: stream waits and synchronisations bound to the activities they wait for.

Synchronisation rows say it where the profiler recorded them. Elsewhere it is told from the
order of the calls; a binding that the measured times contradict is not made.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.replay.events import RECORD, SYNC, Events
from profiler.replay.run import Op
from profiler.trace.model import NONE, Flags, Ints, Kind
from profiler.trace.names import Copy

Row: TypeAlias = tuple[int, int, int, int]  # device, stream, stream waited for, correlation of the record

H2D = (int(Copy.H2D), int(Copy.H2D_PAGEABLE), int(Copy.H2D_PINNED))


@dataclass(frozen=True)
class Lanes:
    """Streams of all devices, numbered; and the activities of the events, in order of submission."""

    lane: list[int]       # of each activity
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
        return cls(lane.tolist(), [(int(d), int(s)) for d, s in keys], device.start[rows].tolist(),
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
        self.all: list[list[int]] = [[] for _ in range(n)]
        for act, lane in enumerate(lanes.lane):
            self.all[lane].append(act)
        self.sync = _sync_rows(j)
        self.before = _submissions(j, lanes)

    def restart(self, time: int) -> None:
        """Begin a step that is not replayed after the one before it: only measured ends are known of that."""
        for lane, (submitted, ends) in enumerate(self.before):
            at = int(np.searchsorted(submitted, time))
            self.ends[lane], self.acts[lane] = ([int(ends[at - 1])], [NONE]) if at else ([], [])
        self.last = [NONE] * len(self.last)
        self.fresh = [False] * len(self.last)
        self.newest = None

    def submit(self, act: int) -> None:
        lane = self.lanes.lane[act]
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


def _sync_rows(j: Joined) -> dict[int, Row]:
    """Synchronisation rows by correlation."""
    s = j.trace.syncs
    rows = zip(s.device.tolist(), s.stream.tolist(), s.wait_stream.tolist(), s.wait_record.tolist())
    return {c: row for c, row in zip(s.correlation.tolist(), rows) if c > 0}


def _submissions(j: Joined, lanes: Lanes) -> list[tuple[Ints, Ints]]:
    """Of every activity of the trace on each lane: when it was submitted (rising), and its measured end."""
    device = j.trace.device
    submitted = np.where(j.launch >= 0, j.trace.host.start[j.launch], device.start)
    result = []
    for number, stream in lanes.keys:
        rows = np.flatnonzero((device.device == number) & (device.stream == stream))
        rows = rows[np.argsort(submitted[rows], kind="stable")]
        result.append((submitted[rows], np.maximum.accumulate(device.end[rows])))
    return result


def bind(j: Joined, events: Events, lanes: Lanes, follows: Flags, closest: bool = False) -> Bound:
    """Waits and synchronisations, bound. `follows`: segments that come after their predecessor.

    `closest`: a wait with several possible causes is for the one that ended last.
    """
    n = len(events)
    bound = Bound(events.kind.tolist(), [NONE] * n, [NONE] * n, [NONE] * n)
    walk = _Walk(j, events, lanes)
    correlation = np.where(events.host >= 0, j.trace.host.correlation[events.host], NONE).tolist()
    names = [j.trace.names[c] if c >= 0 else "" for c in
             np.where(events.host >= 0, j.trace.host.name[events.host], NONE).tolist()]
    start, end, segment = events.start.tolist(), events.end.tolist(), events.segment.tolist()
    act = 0
    for i, kind in enumerate(bound.kind):
        if kind in (Op.LAUNCH, Op.FOLLOW):
            bound.lane[i] = lanes.lane[act]
            walk.submit(act)
            act += 1
        elif kind == Op.START and not follows[segment[i]]:
            walk.restart(start[i])
        elif kind == RECORD:
            walk.record(correlation[i])
        elif kind == Op.WAIT:
            _wait(walk, bound, i, correlation[i], act, closest)
        elif kind == SYNC:
            _sync(walk, bound, i, correlation[i], names[i], end[i])
        elif kind == Op.EVENT:  # a copy that blocks: for itself
            bound.other[i], bound.until[i] = act - 1, lanes.end[act - 1]
        elif kind == Op.DRAIN:
            _device(walk, bound, i, None, end[i])
    return bound


def _wait(walk: _Walk, bound: Bound, i: int, correlation: int, act: int, closest: bool) -> None:
    """A stream's wait: on which lane, and for which activities."""
    if act >= len(walk.lanes.lane):
        return _drop(bound, i)  # nothing comes after it
    row = walk.sync.get(correlation)
    lane, fresh = _waiting(walk, row, act)
    last, recent = walk.newest or (walk.last, walk.recent)
    if row and row[3] in walk.records:
        last, recent = walk.records[row[3]]
    elif row and row[2] >= 0:
        last, recent = walk.last, walk.recent
    sources = [fresh] if fresh != NONE else []
    if row and row[2] >= 0:
        sources = [k for k in reversed(recent) if walk.lanes.keys[k][1] == row[2] and k != lane][:1]
    elif not sources:
        others = [k for k in reversed(recent) if k != lane and _fits(walk, lane, last[k], act)]
        if len(others) > 1:
            bound.ambiguous.add(i)
        if closest:
            others.sort(key=lambda k: -walk.lanes.end[last[k]])
        sources = others[:1] if walk.newest or closest else others
    found = [(lane, last[k]) for k in sources if _fits(walk, lane, last[k], act)]
    for k in sources:
        walk.fresh[k] = False
    if not found:
        return _drop(bound, i)
    bound.lane[i], bound.other[i] = found[0]
    if found[1:]:
        bound.extra[i] = found[1:]
    return None


def _waiting(walk: _Walk, row: Row | None, act: int) -> tuple[int, int]:
    """Lane that waits, and a lane of copies that it must be for; NONE where it may be for others.

    Without a row it is the stream that is submitted to next. But copies that nothing has
    waited for yet have to be waited for before they are used, and a stream never waits for itself.
    """
    lanes = walk.lanes
    lane = lanes.lane[act]
    if row:
        known = [k for k, (_, stream) in enumerate(lanes.keys) if stream == row[1]]
        if known:  # several devices have a stream of that number
            return lane if lane in known else lanes.number(row[0], row[1]), NONE
    if lanes.copies[lane] and walk.fresh[lane]:
        users = [k for k in walk.recent if not lanes.copies[k]]
        if users:
            return users[-1], lane
    return lane, NONE


def _drop(bound: Bound, i: int) -> None:
    bound.kind[i] = int(Op.HOST)


def _fits(walk: _Walk, lane: int, source: int, act: int) -> bool:
    """Whether the next activity on the lane began after the source had ended, as it must."""
    if source == NONE:
        return False
    begun = walk.next_start(lane, act)
    return begun is None or walk.lanes.end[source] <= begun


def _sync(walk: _Walk, bound: Bound, i: int, correlation: int, name: str, end: int) -> None:
    """A call that blocks the host: for a stream, an event or the device."""
    row = walk.sync.get(correlation)
    text = name.lower()
    if "event" in text:
        return _event_sync(walk, bound, i, row, end)
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


def _device(walk: _Walk, bound: Bound, i: int, row: Row | None, end: int) -> None:
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
        bound.until[i] = max((e[-1] for e in walk.ends if e), default=NONE)
        return _drop(bound, i)
    bound.until[i], bound.lane[i] = best
    return None


def _event_sync(walk: _Walk, bound: Bound, i: int, row: Row | None, end: int) -> None:
    """A call that waits for an event: the one that its row names, else what was done last before its end."""
    source = lane = until = NONE
    if row and row[3] in walk.records:
        last, recent = walk.records[row[3]]
        lane = walk.lanes.number(row[0], row[2] if row[2] >= 0 else row[1])
        lane = recent[-1] if lane == NONE and recent else lane
        source = last[lane] if lane != NONE else NONE
        until = walk.lanes.end[source] if source != NONE else NONE
    else:
        for k, (ends, acts) in enumerate(zip(walk.ends, walk.acts)):
            at = bisect_right(ends, end) - 1  # ends of a lane rise
            if at >= 0 and ends[at] > until:
                until, source, lane = ends[at], acts[at], k
    if until == NONE:
        return _drop(bound, i)
    # of a step that is not replayed: what is on the stream before this one stands for it
    bound.kind[i], bound.until[i] = int(Op.EVENT), until
    bound.other[i] = source if source != NONE else -2 - lane
    return None
