"""Latencies, gaps, tails and own costs, taken apart from the measured times.

Of what holds an activity back, the term that bound it in the trace keeps its measured
value; the other one, which only shows when something changes, is the median.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.replay.binding import Bound, Lanes
from profiler.replay.events import Events
from profiler.replay.run import Op
from profiler.replay.segments import QUEUE
from profiler.trace.model import NONE, Flags, Ints
from profiler.trace.names import Call

# Bounds of definitions, section 4: medians, or ns.
LATENCIES, GAPS, GAP_NS, TAIL_NS, CALLS, CALL_NS = 2, 3, 5_000, 100_000, 6, 30_000
BLOCKED = 5       # long launch calls from which the queue's depth can be told
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


def fit(j: Joined, events: Events, bound: Bound, lanes: Lanes, bounded: bool) -> Fit:
    """Durations that make the replay meet the trace, or come as near as the bounds allow."""
    n = len(events)
    kind = np.array(bound.kind, np.int64)
    cost, delay, gap, length = (np.zeros(n, np.int64) for _ in range(4))
    cost[:] = events.end - events.start
    submits = np.flatnonzero(events.submits)
    launches = kind == Op.LAUNCH
    limit = _limit(cost[launches & (events.host >= 0) & (cost > 0)])
    begun = np.array(lanes.start, np.int64)
    depth, blocked = _depth(events.end[launches], cost[launches], begun[kind[submits] == Op.LAUNCH], limit)
    freed = np.zeros(n, np.int64)
    queue = begun[kind[submits] == Op.LAUNCH]
    at = np.flatnonzero(launches)
    freed[at[depth:]] = queue[:-depth] if len(queue) > depth else 0
    late = launches & (freed > events.start)
    cost[late] = np.maximum(events.end - np.maximum(events.start, freed), 0)[late]
    called = np.maximum(events.start, freed)
    if bounded:
        cost[launches] = np.minimum(cost[launches], limit)
    if len(submits):
        group = _groups(j, events, submits)
        delay[submits], gap[submits] = _activities(events, bound, lanes, submits, called, group, bounded)
        length[submits] = np.array(lanes.end) - begun
    _waits(j, events, bound, kind, cost, delay, limit, bounded)
    _drains(j, events, bound, kind, cost)
    return Fit(kind, cost, delay, gap, length, depth, blocked)


def _limit(costs: Ints) -> int:
    return max(round(CALLS * float(np.median(costs))), CALL_NS) if len(costs) else CALL_NS


def _depth(end: Ints, cost: Ints, begun: Ints, limit: int) -> tuple[int, bool]:
    """How many activities had been submitted and not begun when blocked launch calls came free."""
    long = np.flatnonzero(cost > limit)
    pending = np.array([int((begun[:i] > end[i]).sum()) for i in long[-200:].tolist()], np.int64)
    pending = pending[pending > QUEUE // 8]
    if len(pending) < BLOCKED:
        return QUEUE, False
    low, middle, high = np.percentile(pending, [25, 50, 75])
    return (round(middle), True) if high - low <= 0.05 * middle else (QUEUE, False)


def _groups(j: Joined, events: Events, submits: Ints) -> Ints:
    """Activities whose launch latencies are alike: by what they are and how they were launched."""
    rows, host = events.device[submits], events.host[submits]
    call = np.where(host >= 0, j.call[host], NONE)
    return j.trace.device.kind[rows].astype(np.int64) * 4 + 2 * j.communication[rows] + (call == Call.GRAPH)


def _ready(events: Events, bound: Bound, lanes: Lanes) -> tuple[Ints, Flags]:
    """When each activity's stream was ready for it (NONE: it was the first), and whether after a wait."""
    ready = [NONE] * len(lanes.keys)
    waited = [False] * len(lanes.keys)
    result: list[int] = []
    after: list[bool] = []
    end = lanes.end
    for i, (kind, lane, other) in enumerate(zip(bound.kind, bound.lane, bound.other)):
        if kind in (Op.LAUNCH, Op.FOLLOW):
            for lane2, other2 in bound.extra.get(i, ()):
                ready[lane2] = max(ready[lane2], end[other2])
            result.append(ready[lane])
            after.append(waited[lane])
            ready[lane], waited[lane] = end[len(result) - 1], False
        elif kind == Op.WAIT:
            for lane2, other2 in ((lane, other), *bound.extra.get(i, ())):
                ready[lane2], waited[lane2] = max(ready[lane2], end[other2]), True
    return np.array(result, np.int64), np.array(after, np.bool_)


def _activities(events: Events, bound: Bound, lanes: Lanes, submits: Ints, called: Ints, group: Ints,
                bounded: bool) -> tuple[Ints, Ints]:
    """Latency and gap of every activity."""
    ready, waited = _ready(events, bound, lanes)
    begun = np.array(lanes.start, np.int64)
    latency, gap = begun - called[submits], begun - ready
    first = (events.kind[submits] == Op.LAUNCH) & (events.host[submits] >= 0)
    usual = first & ~waited & (latency >= 0)
    host_bound = usual & (ready < called[submits])
    low = _medians(latency, group, host_bound, usual)
    between = 0
    for _ in range(ROUNDS):
        queued = (ready != NONE) & (gap >= 0) & (called[submits] + low < ready) & ~waited
        between = _between(gap, queued, (ready != NONE) & (gap >= 0) & ~waited)
        host_bound = usual & (called[submits] + low >= ready + between)
        low = _medians(latency, group, host_bound, usual)
    by_host = ((called[submits] + low >= ready + between) & first) | (ready == NONE)
    delay = np.where(by_host, latency, np.minimum(low, latency))
    delay[events.kind[submits] == Op.FOLLOW] = 0
    rest = np.where(by_host, np.minimum(between, gap), gap)
    rest[ready == NONE] = 0
    if bounded:
        delay = np.minimum(delay, LATENCIES * low)
        rest = np.minimum(rest, max(GAPS * between, GAP_NS))
    return delay, rest


def _between(gap: Ints, queued: Flags, usual: Flags) -> int:
    """Median gap between queued activities; where none was queued, of the smallest gaps: none is smaller."""
    if queued.any():
        return round(float(np.median(gap[queued])))
    return round(float(np.median(np.sort(gap[usual])[:SMALLEST]))) if usual.any() else 0


def _medians(values: Ints, group: Ints, wanted: Flags, otherwise: Flags) -> Ints:
    """Median of the wanted values of its group, for every row; of all groups where a group has none."""
    whole = values[wanted] if wanted.any() else values[otherwise]
    result = np.full(len(values), round(float(np.median(whole))) if len(whole) else 0)
    for one in np.unique(group).tolist():
        own = values[wanted & (group == one)]
        if len(own):
            result[group == one] = round(float(np.median(own)))
    return result


def _waits(j: Joined, events: Events, bound: Bound, kind: Ints, cost: Ints, delay: Ints, limit: int,
           bounded: bool) -> None:
    """Own cost and tail of every call that the host waited in."""
    rows = np.flatnonzero(np.isin(kind, _WAITS))
    if not len(rows):
        return
    until = np.array(bound.until, np.int64)[rows]
    start, end = events.start[rows], events.end[rows]
    name = j.trace.host.name[events.host[rows]]
    waited = until > start
    tail = end - until
    launch = cost[(kind == Op.LAUNCH) & (cost > 0) & (cost <= limit)]
    own = np.full(len(rows), round(float(np.median(launch))) if len(launch) else 0)
    usual = np.zeros(len(rows), np.int64)
    for one in np.unique(name).tolist():
        same = name == one
        if (same & ~waited).any():
            own[same] = round(float(np.median((end - start)[same & ~waited])))
        if (same & waited).any():
            usual[same] = round(float(np.median(tail[same & waited])))
    cost[rows] = np.where(waited, np.minimum(own, end - start), end - start)
    delay[rows] = np.where(waited, tail, np.minimum(usual, tail))
    if bounded:
        delay[rows] = np.minimum(delay[rows], TAIL_NS)


def _drains(j: Joined, events: Events, bound: Bound, kind: Ints, cost: Ints) -> None:
    """Allocator calls: which of them wait for the device, and what they cost beside that."""
    rows = np.flatnonzero(kind == Op.DRAIN)
    until = np.array(bound.until, np.int64)[rows]
    start, end = events.start[rows], events.end[rows]
    name = np.where(events.host[rows] >= 0, j.trace.host.name[events.host[rows]], NONE)
    for one in np.unique(name).tolist():
        same = name == one
        text = j.trace.names[one].lower()
        busy = same & (until > start)
        against = busy & (until > end)
        free = "free" in text and "async" not in text and "host" not in text
        if against.any() or not (free or busy.sum() >= BLOCKED):
            kind[rows[same]] = int(Op.HOST)
        else:
            cost[rows[same]] = (end - np.maximum(start, until))[same]
