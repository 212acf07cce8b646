"""What happens in the replayed steps, in the order of the host: calls, activities, waits, fetches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.device.streams import by_stream, submitted_by
from profiler.analysis.trace.joined import Joined
from profiler.replay.run import Op
from profiler.replay.segments import QUEUE, Calls, Segments
from profiler.trace.model import NONE, Codes, Flags, Ints, Kind
from profiler.trace.names import Call, Copy

EARLIER = -2  # in a column of launches: submitted before the trace began
RECORD = 20  # an event is recorded: where a wait looks back to, no operation of the program
SYNC = 21    # a synchronisation, before it is known what it waits for
PAGEABLE = (int(Copy.H2D_PAGEABLE), int(Copy.H2D), int(Copy.D2H_PAGEABLE), int(Copy.D2H))
_KINDS = ((Call.SYNC, SYNC), (Call.WAIT, int(Op.WAIT)), (Call.RECORD, RECORD),
          (Call.ALLOCATOR, int(Op.DRAIN)))
# Of events that begin together, which comes first.
BEFORE = -1
_RANK = {int(Op.START): 0, int(Op.FETCH): 1, int(Op.FOLLOW): 3, int(Op.EVENT): 4, int(Op.END): 5,
         int(Op.HOST): 6}


@dataclass
class Events:
    """n events in order. Those of one call follow one another: its launch, more activities, its wait."""

    kind: Ints       # Op, RECORD or SYNC
    start: Ints      # on the host, ns; what takes no host time of its own has start = end
    end: Ints
    host: Ints       # row of the call; NONE
    device: Ints     # row of the activity; NONE
    segment: Ints
    ahead: Ints      # of what happened beside the chain, during an event of it: how long after its start
    beside: Flags    # on no thread of the chain
    prior: Ints      # end of all that came before on the host: what is between it and `start` is host time

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def submits(self) -> Flags:
        """Events that submit an activity; activities are numbered in this order."""
        return (self.kind == Op.LAUNCH) | (self.kind == Op.FOLLOW)


def median_latency(j: Joined) -> int:
    """From the start of a launch call to the start of its activity, where the stream was idle before; ns."""
    host, device = j.trace.host, j.trace.device
    order = np.lexsort((device.start, device.stream, device.device))
    rows = order[1:]
    before = order[:-1]
    same = (device.stream[rows] == device.stream[before]) & (device.device[rows] == device.device[before])
    launch = j.launch[rows]
    idle = same & (launch >= 0) & (device.end[before] < host.start[launch])
    latency = (device.start[rows] - host.start[launch])[idle]
    return round(float(np.median(latency[latency >= 0]))) if (latency >= 0).any() else 0


def gather(j: Joined, segments: Segments, calls: Calls, fetches: Ints) -> Events:
    """Events of the segments. `fetches`: rows of Trace.host that wait for loader workers."""
    latency = median_latency(j)
    origin = submitted_by(j)
    early = backlog(j, origin)
    used = np.zeros(len(j.trace.host) + 1, np.bool_)  # the last entry answers for NONE
    used[calls.chain] = used[calls.beside] = True
    origin = np.where(used[origin] & (origin >= 0), origin, NONE)
    origin[early] = EARLIER
    parts = [_segment(j, k, int(t0), int(t1), int(stop), calls, fetches, origin, latency)
             for k, (t0, t1, stop) in enumerate(zip(segments.start, segments.end, segments.stop))]
    if segments.step[0] == 0 and early.any():
        early &= j.trace.device.end > segments.start[0]
        parts[0] = _with_backlog(j, parts[0], np.flatnonzero(early))
    prior = np.concatenate([_prior(part[1], part[2]) for part in parts])
    kind, start, end, host, device, segment, ahead, beside = (np.concatenate(c) for c in zip(*parts))
    return Events(kind, start, end, host, device, segment, ahead, beside.astype(np.bool_), prior)


def backlog(j: Joined, origin: Codes) -> Flags:
    """Device rows submitted before the trace began: no launch, and before all with one on their stream.

    `origin`: what `submitted_by` says.
    """
    result = origin < 0
    if result.any():
        order, first = by_stream(j)
        number = np.cumsum(first) - 1
        some = np.bincount(number, j.launch[order] >= 0) > 0
        result[order] &= some[number]
    return result


def _with_backlog(j: Joined, part: tuple[Ints, ...], rows: Ints) -> tuple[Ints, ...]:
    """Events of the first step, after those that submit what was in the queue when it began."""
    rows = rows[np.argsort(j.trace.device.start[rows], kind="stable")]
    kind = np.full(len(rows), int(Op.LAUNCH))
    kind[:-QUEUE] = int(Op.FOLLOW)  # more than the queue holds had begun already
    at, none = np.full(len(rows), part[1][0]), np.full(len(rows), NONE)
    zero = np.zeros(len(rows), np.int64)
    new = (kind, at, at, none, rows, zero, zero, zero)
    return tuple(np.concatenate((old[:1], added, old[1:])) for old, added in zip(part, new))


def _prior(start: Ints, end: Ints) -> Ints:
    reach = np.maximum.accumulate(end)
    return np.minimum(np.concatenate((start[:1], reach[:-1])), start)


def _segment(j: Joined, k: int, t0: int, t1: int, stop: int, calls: Calls, fetches: Ints, origin: Codes,
             latency: int) -> tuple[Ints, ...]:
    """Columns of one step, in order: all of Events but `prior`."""
    host, device = j.trace.host, j.trace.device
    own, beside = (rows[(host.start[rows] >= t0) & (host.start[rows] < stop)]
                   for rows in (calls.chain, calls.beside))
    fetch = fetches[(host.start[fetches] >= t0) & (host.start[fetches] < stop)]
    mine = np.zeros(len(host) + 1, np.bool_)
    mine[own] = mine[beside] = True
    began = device.start - latency
    lone = (origin == NONE) & (began >= t0) & (began < stop)
    acts = np.flatnonzero(np.where(origin >= 0, mine[origin], lone))
    launch = origin[acts].astype(np.int64)
    order = np.lexsort((device.start[acts], launch))
    acts, launch = acts[order], launch[order]
    first = np.concatenate(([True], launch[1:] != launch[:-1]))[: len(acts)] | (launch < 0)
    at = np.where(launch >= 0, host.start[launch], began[acts])
    mine[own] = False
    other = mine[launch] | (launch < 0)  # not of the chain
    blocks = _blocks(j, acts, launch, first) & ~other
    plain = first & ~other & ~blocks
    pieces = [
        _piece([int(Op.START), int(Op.END), int(Op.HOST)], [t0, t1, stop]),
        _calls(j, own),
        _piece(np.where(first, int(Op.LAUNCH), int(Op.FOLLOW)), at, np.where(plain, host.end[launch], at),
               launch, acts, other),
        _piece(np.full(blocks.sum(), int(Op.EVENT)), at[blocks], host.end[launch[blocks]], launch[blocks],
               acts[blocks]),
        _piece(np.full(len(fetch), int(Op.FETCH)), host.start[fetch], host.end[fetch], fetch),
        _calls(j, beside, beside=True),
    ]
    return _ordered(j, k, *(np.concatenate(c) for c in zip(*pieces)))


def _ordered(j: Joined, k: int, kind: Ints, start: Ints, end: Ints, row: Ints, act: Ints,
             beside: Ints) -> tuple[Ints, ...]:
    """Events of a step in the order of the chain. What was beside it comes before what it was in."""
    rank = np.full(len(kind), 2)
    for value, place in _RANK.items():
        rank[kind == value] = place
    time, ahead = start, np.zeros(len(kind), np.int64)
    long = np.flatnonzero((beside == 0) & (end > start))
    if beside.any() and len(long):
        long = long[np.argsort(start[long], kind="stable")]
        during = long[np.maximum(np.searchsorted(start[long], start, side="right") - 1, 0)]
        inside = (beside > 0) & (start[during] <= start) & (start < end[during])
        ahead = np.where(inside, start - start[during], 0)
        rank = np.where(inside, BEFORE, rank)
        start, end = start - ahead, np.where(inside, start - ahead, end)
    begun = np.where(act >= 0, j.trace.device.start[act], time) if len(j.trace.device) else time
    order = np.lexsort((begun, rank, time, rank > BEFORE, start))
    columns = (kind, start, end, row, act, np.full(len(kind), k), ahead, beside)
    return tuple(column[order] for column in columns)


def _calls(j: Joined, rows: Ints, beside: bool = False) -> tuple[Ints, ...]:
    """Events of calls that submit nothing. Only waiting and allocating take time of their own."""
    kind = np.full(len(rows), int(Op.HOST))
    for call, value in _KINDS:
        kind[j.call[rows] == call] = value
    kept = kind != Op.HOST
    rows, kind = rows[kept], kind[kept]
    start, end = j.trace.host.start[rows], j.trace.host.end[rows]
    waits = np.isin(kind, (SYNC, int(Op.DRAIN)))
    return _piece(kind, start, np.where(waits, end, start), rows, beside=np.full(len(rows), beside))


def _piece(kind: Ints | list[int], start: Ints | list[int], end: Ints | None = None, host: Ints | None = None,
           device: Ints | None = None, beside: Flags | None = None) -> tuple[Ints, ...]:
    none = np.full(len(kind), NONE)
    start = np.asarray(start, np.int64)
    return (np.asarray(kind, np.int64), start, start if end is None else end,
            none if host is None else host, none if device is None else device,
            np.zeros(len(kind), np.int64) if beside is None else beside.astype(np.int64))


def _blocks(j: Joined, acts: Ints, launch: Ints, first: Flags) -> Flags:
    """Copies from or to pageable memory whose call ended after the copy had begun: the call waited for it."""
    device, host = j.trace.device, j.trace.host
    copies = np.isin(j.copy[acts], PAGEABLE) & (device.kind[acts] == Kind.MEMCPY)
    return copies & first & (launch >= 0) & (host.end[launch] > device.start[acts])
