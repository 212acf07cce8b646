"""What each activity of a device waited for, and which activity released the host from each of its waits."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.device.launches import held_up
from profiler.analysis.trace.device.streams import first_in_idle_stream, previous_in_stream, told_to_wait
from profiler.analysis.trace.joined import Joined, take
from profiler.trace import names
from profiler.trace.model import NONE, Codes, Ints, Kind
from profiler.trace.names import Call, Copy

_STAGED = (int(Copy.H2D_PAGEABLE), int(Copy.H2D))
_BLOCKING = (*_STAGED, int(Copy.D2H_PAGEABLE), int(Copy.D2H_PINNED), int(Copy.D2H))
_ONE_STREAM = re.compile(r"^(stream|event) sync", re.I)
_FREE = re.compile(r"^(cuda|cu|hip)(Mem)?(Free|FreeHost)(_v\d)?$")  # wait until the device is idle
NEAR_GAPS, NEAR_NS = 3, 5_000  # a staged copy that begins so soon after the activity before it waited for it
SMALLEST_QUEUE = 512  # launch queues hold about 1,020 activities; a shallower one is not full
FULL = 0.9


@dataclass(frozen=True)
class Releases:
    """Ends of waits of host threads for the device, in order of time."""

    time: Ints      # end of the activity, ns
    row: Ints       # that activity: row of Trace.device
    thread: Codes   # who waited


def before(j: Joined) -> Ints:
    """For each activity the one that it waited for last, a row of Trace.device: int64[n].

    NONE where its launch call came later than that. What binds is what would have let it begin
    last: its launch plus the median latency, or the activity before it plus the median gap between
    queued ones. Before it is the one before on its stream, or, where that was told to wait, whichever
    ended last on any stream of any device.
    """
    table = j.trace.device
    result = np.full(len(table), NONE, np.int64)
    earlier = previous_in_stream(j)
    waited = np.flatnonzero(told_to_wait(j))
    by_end = np.argsort(table.end, kind="stable")
    at = np.searchsorted(table.end[by_end], table.start[waited], side="right") - 1
    other = np.where(at >= 0, by_end[at], NONE) if len(by_end) else at
    other = np.where(other < waited, other, NONE)  # of rows without length only earlier ones
    later = take(table.end, other) > take(table.end, earlier[waited])
    earlier[waited] = np.where((other >= 0) & ((earlier[waited] < 0) | later), other, earlier[waited])
    launch = j.launch
    call = take(j.trace.host.start, launch)
    ended = np.minimum(take(table.end, earlier), table.start)
    queued = (earlier >= 0) & (launch >= 0) & (call < take(table.start, earlier))
    gap = _median((table.start - ended)[queued])
    # Staging takes as long as the copy is large: no median tells when it would have been done. But it is
    # done when the call returns.
    near = table.start - ended <= max(NEAR_GAPS * gap, NEAR_NS)
    near |= take(j.trace.host.end, launch) <= ended
    late = np.where(np.isin(j.copy, _STAGED), near, ended + gap > call + _latency(j))
    bound = (earlier >= 0) & ((launch < 0) | late & (ended > call))
    result[bound] = earlier[bound]
    return result


def _latency(j: Joined) -> Ints:
    """Usual time from a launch call to an activity of this kind: int64[n], ns."""
    table = j.trace.device
    kind = np.where(table.kind == Kind.MEMCPY, 100 + j.copy, table.kind.astype(np.int64))
    known = first_in_idle_stream(j) & ~told_to_wait(j) & ~j.communication
    late = np.where(known, table.start - take(j.trace.host.start, j.launch), NONE)
    result = np.zeros(len(kind), np.int64)
    for one in np.unique(kind).tolist():
        result[kind == one] = _median(late[(kind == one) & (late >= 0)])
    return result


def _median(values: Ints) -> int:
    return round(float(np.median(values))) if len(values) else 0


def releases(j: Joined) -> Releases:
    """Waits of host threads that an activity ended.

    A synchronisation, and a call that frees memory, ends with the activity that ended last before it
    returned, on its stream where the file tells it; a blocking copy with its own activity; a launch on
    a full queue with the one whose end let the next one begin.
    """
    host, table = j.trace.host, j.trace.device
    named = j.host_names(lambda name: bool(_FREE.match(name))).astype(bool)
    calls = np.flatnonzero(((j.call == Call.SYNC) | (j.call == Call.ALLOCATOR) & named)
                           & (j.outer_call == np.arange(len(host))))
    stream = _stream(j, calls)
    full = _on_full_queue(j)
    calls, stream = np.append(calls, full), np.append(stream, np.full(len(full), NONE))
    found = _last_end(j, host.end[calls], stream)
    own = np.flatnonzero(np.isin(j.copy, _BLOCKING) & (j.launch >= 0))
    call = np.concatenate((calls, j.launch[own]))
    row = np.concatenate((found, own))
    ended = take(table.end, row)
    held = (row >= 0) & (ended > host.start[call]) & (ended <= host.end[call])
    order = np.flatnonzero(held)
    order = order[np.argsort(ended[order], kind="stable")]
    return Releases(ended[order], row[order], host.thread[call[order]])


def _on_full_queue(j: Joined) -> Ints:
    """Launch calls that were held up while the queue was as deep as it ever was: rows of Trace.host."""
    calls = held_up(j)
    if not len(calls):
        return calls
    known = np.flatnonzero(j.launch >= 0)
    host, begun = j.trace.host, np.sort(j.trace.device.start[known])
    submitted = np.sort(host.start[j.launch[known]])

    def depth(times: Ints) -> Ints:
        return np.searchsorted(submitted, times) - np.searchsorted(begun, times)

    deepest = int(depth(begun).max(initial=0))
    return calls[depth(host.end[calls]) >= FULL * deepest] if deepest >= SMALLEST_QUEUE else calls[:0]


def _lane(device: Codes, stream: Ints) -> Ints:
    """One number for a stream of a device."""
    return (device.astype(np.int64) << 32) + (stream & 0xFFFFFFFF)


def _stream(j: Joined, calls: Ints) -> Ints:
    """Lane of the stream that each call waits for: int64[calls]; NONE: any."""
    syncs = j.trace.syncs
    result = np.full(len(calls), NONE, np.int64)
    blocking = names.per_name(j.trace.names, syncs.name, lambda name: bool(_ONE_STREAM.search(name)))
    told = np.flatnonzero((blocking > 0) & (syncs.correlation > 0))
    if not len(told):
        return result
    told = told[np.argsort(syncs.correlation[told], kind="stable")]
    at = np.minimum(np.searchsorted(syncs.correlation[told], j.trace.host.correlation[calls]), len(told) - 1)
    row = told[at]
    same = syncs.correlation[row] == j.trace.host.correlation[calls]
    stream = np.where(syncs.wait_stream[row] >= 0, syncs.wait_stream[row], syncs.stream[row])
    return np.where(same & (stream >= 0) & (syncs.device[row] >= 0), _lane(syncs.device[row], stream), NONE)


def _last_end(j: Joined, times: Ints, lane: Ints) -> Ints:
    """The activity that ends last by each time, in its lane or in any (NONE): int64[times], NONE: none."""
    table = j.trace.device
    result = np.full(len(times), NONE, np.int64)
    own = _lane(table.device, table.stream)
    every = np.argsort(table.end, kind="stable")
    for one in np.unique(lane).tolist():
        asked = np.flatnonzero(lane == one)
        among = every if one == NONE else every[own[every] == one]
        at = np.searchsorted(table.end[among], times[asked], side="right") - 1
        if len(among):
            result[asked] = np.where(at >= 0, among[np.maximum(at, 0)], NONE)
    return result
