"""What waits for what: stream waits and synchronisations bound to the activities they wait for.

Synchronisation rows say it where the profiler recorded them. Elsewhere it is told from the
order of the calls; a binding that the measured times contradict is not made.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.replay.events import RECORD, SYNC, Events
from profiler.replay.lanes import Lanes, Row, Walk
from profiler.replay.run import Op
from profiler.trace.model import NONE, Flags


@dataclass
class Bound:
    """For each event: what it became, the lane that waits or is waited for, and what it waits for."""

    kind: list[int]
    lane: list[int]
    other: list[int]
    until: list[int]        # measured end of what the host waited for; NONE
    extra: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # further (lane, other) of a wait
    ambiguous: set[int] = field(default_factory=set)  # waits with several possible sources


def bind(j: Joined, events: Events, lanes: Lanes, follows: Flags, closest: bool = False) -> Bound:
    """Waits and synchronisations, bound. `follows`: segments that come after their predecessor.

    `closest`: a wait with several possible causes is for the one that ended last.
    """
    n = len(events)
    bound = Bound(events.kind.tolist(), [NONE] * n, [NONE] * n, [NONE] * n)
    walk = Walk(j, events, lanes)
    correlation = np.where(events.host >= 0, j.trace.host.correlation[events.host], NONE).tolist()
    names = [j.trace.names[c] if c >= 0 else "" for c in
             np.where(events.host >= 0, j.trace.host.name[events.host], NONE).tolist()]
    start, end, segment = events.start.tolist(), events.end.tolist(), events.segment.tolist()
    device, after = events.device.tolist(), _next_of_thread(j, events)
    number: dict[int, int] = {}  # of activities, by device row
    act = first = 0
    for i, kind in enumerate(bound.kind):
        if kind in (Op.LAUNCH, Op.FOLLOW):
            bound.lane[i] = lanes.lane[act]
            if kind == Op.LAUNCH:
                first = act
            elif lanes.lane[act] != lanes.lane[act - 1]:
                _inside(walk, bound, i, act, first)
            number[device[i]] = act
            walk.submit(act)
            act += 1
        elif kind == Op.START and not follows[segment[i]]:
            walk.restart(start[i])
        elif kind == RECORD:
            walk.record(correlation[i])
        elif kind == Op.WAIT:
            _wait(walk, bound, i, correlation[i], after[i], closest)
        elif kind == SYNC:
            _sync(walk, bound, i, correlation[i], names[i], end[i])
        elif kind == Op.EVENT:  # a copy that blocks: for itself
            bound.other[i] = number[device[i]]
            bound.until[i] = lanes.end[bound.other[i]]
        elif kind == Op.DRAIN:
            _device(walk, bound, i, None, end[i])
    return bound


def _next_of_thread(j: Joined, events: Events) -> list[int]:
    """For each event the number of the activity that its thread submits next; the chain is one thread."""
    threads = np.append(j.trace.host.thread, NONE)[events.host]  # the last answers for NONE
    thread = np.where(events.beside, threads, NONE - 1).tolist()
    submits = events.submits.tolist()
    result = [0] * len(submits)
    act = sum(submits)
    following: dict[int, int] = {}
    for i in range(len(submits) - 1, -1, -1):
        if submits[i]:
            act -= 1
            following[thread[i]] = act
        result[i] = following.get(thread[i], len(submits))
    return result


def _inside(walk: Walk, bound: Bound, i: int, act: int, first: int) -> None:
    """A later activity of a graph on another stream than the one before: it waits for what ended last."""
    begun, lane = walk.lanes.start[act], walk.lanes.lane[act]
    until = source = NONE
    for ends, acts in zip(walk.ends, walk.acts):
        at = bisect_right(ends, begun) - 1
        if at >= 0 and acts[at] >= first and ends[at] > until:
            until, source = ends[at], acts[at]
    if source != NONE and walk.lanes.lane[source] != lane:
        bound.extra[i] = [(lane, source)]


def _wait(walk: Walk, bound: Bound, i: int, correlation: int, act: int, closest: bool) -> None:
    """A stream's wait: on which lane, and for which activities."""
    if act >= len(walk.lanes.lane):
        return _drop(bound, i)  # nothing comes after it
    row = walk.sync.get(correlation)
    lane, fresh = _waiting(walk, row, act)
    last, recent = walk.state()
    if row and row[3] in walk.records:
        last, recent = walk.records[row[3]]
    sources = [fresh] if fresh != NONE else []
    if row and row[2] >= 0:
        sources = [k for k in reversed(recent) if walk.lanes.keys[k][1] == row[2] and k != lane][:1]
    elif not sources:
        last, sources = _causes(walk, bound, i, lane, act, closest)
    elif walk.history:
        last = walk.history[-1][0]
    found = [(lane, last[k]) for k in sources if _fits(walk, lane, last[k], act)]
    for k in sources:
        walk.fresh[k] = False
    if not found:
        return _drop(bound, i)
    bound.lane[i], bound.other[i] = found[0]
    if found[1:]:
        bound.extra[i] = found[1:]
    return None


def _causes(walk: Walk, bound: Bound, i: int, lane: int, act: int,
            closest: bool) -> tuple[list[int], list[int]]:
    """Of a wait that no row tells about: newest activities then, and lanes that it may have been for.

    The stream used last before the newest event record that the measured times allow; without
    records all other streams, as far as they allow it.
    """
    for last, recent in [*reversed(walk.history)] or [walk.state()]:
        others = [k for k in reversed(recent) if k != lane and _fits(walk, lane, last[k], act)]
        if not others:
            continue
        if len(others) > 1:
            bound.ambiguous.add(i)
        if closest:
            others.sort(key=lambda k: -walk.lanes.end[last[k]])
        return last, others[:1] if walk.history or closest else others
    return walk.last, []


def _waiting(walk: Walk, row: Row | None, act: int) -> tuple[int, int]:
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


def _fits(walk: Walk, lane: int, source: int, act: int) -> bool:
    """Whether the next activity on the lane began after the source had ended, as it must."""
    if source == NONE:
        return False
    begun = walk.next_start(lane, act)
    return begun is None or walk.lanes.end[source] <= begun


def _sync(walk: Walk, bound: Bound, i: int, correlation: int, name: str, end: int) -> None:
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


def _device(walk: Walk, bound: Bound, i: int, row: Row | None, end: int) -> None:
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


def _event_sync(walk: Walk, bound: Bound, i: int, row: Row | None, end: int) -> None:
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
