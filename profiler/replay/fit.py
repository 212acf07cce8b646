"""Latencies, gaps, tails and own costs, taken apart from the measured times.

Of what holds an activity back, the term that bound it in the trace keeps its measured
value; the other one, which only shows when something changes, is the median.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.device.streams import previous_in_stream
from profiler.analysis.trace.joined import Joined, take
from profiler.replay import queue
from profiler.replay.binding import Bound
from profiler.replay.events import Events
from profiler.replay.lanes import Lanes
from profiler.replay.queue import Queue
from profiler.replay.run import Op
from profiler.trace.model import NONE, Flags, Ints, Kind
from profiler.trace.names import Call

# Bounds of definitions, section 4: medians, or ns.
LATENCIES, GAPS, GAP_NS, TAIL_NS, CALLS, CALL_NS = 2, 3, 5_000, 100_000, 6, 30_000
UNSEEN_NS = 1_000  # gap of a stream that was never queued on, where the trace does not show a smaller one
NEVER = np.iinfo(np.int64).max
EXPLAINED = 0.25  # spread that is left of calls' lengths when what they waited for is taken off
SMALLEST = 5      # gaps that tell how small a gap can be
ROUNDS = 3        # of fitting: which term binds depends on the medians, and they on that
_WAITS = (int(Op.STREAM), int(Op.EVENT), int(Op.DEVICE))


@dataclass(frozen=True)
class Fit:
    """Durations of events, n each, ns. Bounded or not."""

    kind: Ints
    cost: Ints
    delay: Ints
    gap: Ints
    length: Ints
    depth: int
    blocked: bool      # whether the depth is the trace's own
    unseen: bool       # whether the trace shows too few queued activities to tell the usual gap


@dataclass(frozen=True)
class Measured:
    """What both fits of a trace start from."""

    j: Joined
    events: Events
    bound: Bound
    lanes: Lanes
    queues: list[Queue]
    ready: Ints       # of each activity: when its stream was ready for it, ns; NONE for the first
    waited: Flags     # of each activity: it came after a wait of its stream

    @classmethod
    def of(cls, j: Joined, events: Events, bound: Bound, lanes: Lanes, follows: Flags) -> Measured:
        """`follows`: segments that are replayed after their predecessor."""
        ready, waited = _ready(j, events, bound, lanes, follows)
        return cls(j, events, bound, lanes, queue.queues(j), ready, waited)


def fit(m: Measured, bounded: bool) -> Fit:
    """Durations that make the replay meet the trace, or come as near as the bounds allow."""
    j, events, bound, lanes = m.j, m.events, m.bound, m.lanes
    n = len(events)
    kind = np.array(bound.kind, np.int64)
    cost, delay, gap, length = (np.zeros(n, np.int64) for _ in range(4))
    cost[:] = events.end - events.start
    launches = np.flatnonzero(kind == Op.LAUNCH)
    limit = _limits(j, events, launches, cost[launches])
    depth, blocked = queue.depth(j, m.queues, events.host[launches][cost[launches] > limit])
    called = events.start + events.ahead
    called[launches] = np.maximum(called[launches], queue.freed(m.queues, events.host[launches], depth))
    cost[launches] = np.maximum(events.end - called, 0)[launches]
    if bounded:
        cost[launches] = np.minimum(cost[launches], limit)
    submits = np.flatnonzero(events.submits)
    middle, unseen = _Middle(j.trace.resolution_ns), False
    if len(submits):
        group = _groups(j, events, submits)
        unlaunched = j.launch[events.device[submits]] < 0
        terms = _activities(events, lanes, m.ready, m.waited, called[submits], group, unlaunched, middle,
                            bounded)
        delay[submits], gap[submits], unseen = terms
        delay[submits] += events.ahead[submits]
        length[submits] = np.array(lanes.end) - np.array(lanes.start)
    usual = launches[(cost[launches] > 0) & (cost[launches] <= limit)]
    copies = usual[j.trace.device.kind[events.device[usual]] == Kind.MEMCPY]
    least = middle(cost[usual]), middle(cost[copies if len(copies) else usual])
    _waits(j, events, bound, kind, cost, delay, least, middle, bounded)
    _drains(j, events, bound, kind, cost)
    return Fit(kind, cost, delay, gap, length, depth, blocked, unseen)


class _Middle:
    """The middle of many measured values, whole ns; 0 of none.

    The median; in a file of coarse times the mean of what is near it: rounding has no bias in
    the mean, and moves the median by up to half a unit.
    """

    def __init__(self, resolution: int) -> None:
        self.near = resolution if resolution > 1 else 0

    def __call__(self, values: Ints) -> int:
        if not len(values):
            return 0
        middle = float(np.median(values))
        near = values[np.abs(values - middle) <= max(self.near, middle / 2)] if self.near else values[:0]
        return round(float(near.mean()) if len(near) else middle)


def _limits(j: Joined, events: Events, launches: Ints, cost: Ints) -> Ints:
    """Longest that each launch call may take by itself, from the median of calls of its kind."""
    host = events.host[launches]
    call = np.where(host >= 0, j.call[host], NONE) if len(j.call) else host
    limit = np.full(len(launches), CALL_NS)
    for one in np.unique(call).tolist():
        own = cost[(call == one) & (cost > 0)]
        if len(own):
            limit[call == one] = max(round(CALLS * float(np.median(own))), CALL_NS)
    return limit


def _groups(j: Joined, events: Events, submits: Ints) -> Ints:
    """Activities whose launch latencies are alike: by what they are and how they were launched."""
    rows, host = events.device[submits], events.host[submits]
    call = np.where(host >= 0, j.call[host], NONE) if len(j.call) else host
    return j.trace.device.kind[rows].astype(np.int64) * 2 + (call == Call.GRAPH)


def _ready(j: Joined, events: Events, bound: Bound, lanes: Lanes, follows: Flags) -> tuple[Ints, Flags]:
    """When each activity's stream was ready for it (NONE: it was the first), and whether after a wait.

    What was before it on its stream in the trace counts, also when that is not replayed.
    """
    ready = [NONE] * len(lanes.keys)
    waited = [False] * len(lanes.keys)
    rows = events.device[events.submits]
    previous = take(j.trace.device.end, previous_in_stream(j)[rows]).tolist()
    new = set(np.flatnonzero((events.kind == Op.START) & ~follows[events.segment]).tolist())
    result: list[int] = []
    after: list[bool] = []
    end = lanes.end
    for i, (kind, lane, other) in enumerate(zip(bound.kind, bound.lane, bound.other)):
        if kind in (Op.LAUNCH, Op.FOLLOW):
            for lane2, other2 in bound.extra.get(i, ()):
                ready[lane2] = max(ready[lane2], end[other2])
            result.append(previous[len(result)] if ready[lane] == NONE else ready[lane])
            after.append(waited[lane])
            ready[lane], waited[lane] = end[len(result) - 1], False
        elif i in new:
            ready = [NONE] * len(ready)
        elif kind == Op.WAIT:
            for lane2, other2 in ((lane, other), *bound.extra.get(i, ())):
                ready[lane2], waited[lane2] = max(ready[lane2], end[other2]), True
    return np.array(result, np.int64), np.array(after, np.bool_)


def _activities(events: Events, lanes: Lanes, ready: Ints, waited: Flags, called: Ints, group: Ints,
                unlaunched: Flags, middle: _Middle, bounded: bool) -> tuple[Ints, Ints, bool]:
    """Latency and gap of every activity, and Fit.unseen. `unlaunched`: without a launch in the trace."""
    submits = np.flatnonzero(events.submits)
    begun = np.array(lanes.start, np.int64)
    latency, gap = begun - called, begun - ready
    first = (events.kind[submits] == Op.LAUNCH) & (events.host[submits] >= 0)
    usual = first & ~waited & (latency >= 0)
    host_bound = usual & (ready < called)
    low = _medians(latency, group, host_bound, usual, middle)
    between = 0
    spaced = (ready != NONE) & (gap >= 0) & ~waited & ~unlaunched
    for _ in range(ROUNDS):
        queued = spaced & (called + low < ready)
        between = _between(gap, queued, spaced,
                           UNSEEN_NS if bounded else NEVER, middle)
        host_bound = usual & (called + low >= ready + between)
        low = _medians(latency, group, host_bound, usual, middle)
    by_host = ((called + low >= ready + between) & first) | (ready == NONE)
    delay = np.where(by_host, latency, np.minimum(low, latency))
    follows = events.kind[submits] == Op.FOLLOW
    lost = follows & (unlaunched | (ready == NONE))
    delay[follows] = 0
    rest = np.where(by_host, np.minimum(between, gap), gap)
    rest[ready == NONE] = 0
    rest[lost] = np.minimum(between, gap)[lost]  # before it the host may have been late, not the device
    if bounded:
        delay = np.minimum(delay, LATENCIES * low)
        rest = np.minimum(rest, max(GAPS * between, GAP_NS))
    return delay, rest, int(queued.sum()) < SMALLEST


def _between(gap: Ints, queued: Flags, usual: Flags, unseen: int, middle: _Middle) -> int:
    """Usual gap of queued activities; where none was queued, of the smallest gaps, but `unseen` at most.

    Gaps add up along a stream, so it is the mean, of those that are no outliers.
    """
    values = gap[queued] if queued.any() else np.minimum(np.sort(gap[usual])[:SMALLEST], unseen)
    values = values[values <= GAPS * middle(values)]
    return round(float(values.mean())) if len(values) else 0


def _medians(values: Ints, group: Ints, wanted: Flags, otherwise: Flags, middle: _Middle) -> Ints:
    """Middle of the wanted values of its group, for every row; of all groups where a group has none."""
    result = np.full(len(values), middle(values[wanted] if wanted.any() else values[otherwise]))
    for one in np.unique(group).tolist():
        own = values[wanted & (group == one)]
        if len(own):
            result[group == one] = middle(own)
    return result


def _waits(j: Joined, events: Events, bound: Bound, kind: Ints, cost: Ints, delay: Ints,
           least: tuple[int, int], middle: _Middle, bounded: bool) -> None:
    """Own cost and tail of every call that the host waited in.

    One of a name that waited every time costs as much as calls that do not block, and no more than its
    shortest; `least`: of launches, of copies.
    """
    rows = np.flatnonzero(np.isin(kind, _WAITS))
    if not len(rows):
        return
    until = np.array(bound.until, np.int64)[rows]
    start, end = events.start[rows], events.end[rows]
    name = j.trace.host.name[events.host[rows]]
    waited = until > start
    tail = end - until
    own = np.where(events.device[rows] >= 0, least[1], least[0])
    usual = np.zeros(len(rows), np.int64)
    for one in np.unique(name).tolist():
        same = name == one
        if (same & ~waited).any():
            own[same] = middle((end - start)[same & ~waited])
        else:
            own[same] = np.minimum(own, (end - start)[same].min())[same]
        if (same & waited).any():
            usual[same] = middle(tail[same & waited])
    cost[rows] = np.where(waited, np.minimum(own, end - start), end - start)
    delay[rows] = np.where(waited, tail, np.minimum(usual, tail))
    if bounded:
        delay[rows] = np.minimum(delay[rows], TAIL_NS)


def _drains(j: Joined, events: Events, bound: Bound, kind: Ints, cost: Ints) -> None:
    """Allocator calls: which of them wait for the device, and what they cost beside that."""
    rows = np.flatnonzero(events.kind == Op.DRAIN)
    until = np.array(bound.until, np.int64)[rows]
    start, end = events.start[rows], events.end[rows]
    name = np.where(events.host[rows] >= 0, j.trace.host.name[events.host[rows]], NONE)
    for one in np.unique(name).tolist():
        same = name == one
        text = j.trace.names[one].lower()
        busy = same & (until > start)
        free = "free" in text and "async" not in text
        if (busy & (until > end)).any() or not (free or _explained((end - start)[busy], (end - until)[busy])):
            kind[rows[same]] = int(Op.HOST)
        else:
            cost[rows[same]] = (end - np.maximum(start, until))[same]


def _explained(whole: Ints, rest: Ints) -> bool:
    """Whether waiting is why calls differ in length: without it they are much more alike."""
    if len(whole) < queue.BLOCKED:
        return False
    before, after = (np.subtract(*np.percentile(values, [75, 25])) for values in (whole, rest))
    return bool(after < EXPLAINED * before)
