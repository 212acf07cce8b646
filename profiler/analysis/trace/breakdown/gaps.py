"""Idle gaps of a device: what ended each, who launched that, and what the time before it went to.

Definitions, section 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from profiler.analysis.trace.breakdown import classes, peers
from profiler.analysis.trace.breakdown.labels import Labels
from profiler.analysis.trace.joined import Joined, take
from profiler.analysis.trace.steps import Steps
from profiler.trace.model import NONE, Codes, Ints
from profiler.trace.names import Call

_HIGHEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Gaps:
    """n idle gaps of one device in order of time, and the m pieces that each is made of."""

    device: int
    start: Ints
    end: Ints
    next: Codes          # row of Trace.device that ends the gap; NONE after the last activity
    launch: Codes        # row of Trace.host that launched it; NONE where the trace has none
    thread: Codes        # whose doings fill the gap up to the launch call
    piece_gap: Ints      # row of the gap
    piece_code: Ints     # class, as its place in `texts`
    pieces: Ints         # int64[m, 2], ns; the pieces of a gap cover it and do not overlap
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def cause(self) -> Ints:
        """The class that fills most of each gap, as its place in `texts`; of equal ones the first."""
        parts, at = np.unique(self.piece_gap * len(self.texts) + self.piece_code, return_inverse=True)
        ns = np.zeros(len(parts), np.int64)
        np.add.at(ns, at, self.pieces[:, 1] - self.pieces[:, 0])
        gap, code = np.divmod(parts, len(self.texts))
        order = np.lexsort((code, -ns, gap))
        return code[order][np.searchsorted(gap[order], np.arange(len(self)))]


def gaps(j: Joined, steps: Steps, device: int, t0: int, t1: int, labels: Labels | None = None) -> Gaps:
    """Idle gaps of `device` that lie in [t0, t1) or reach into it, ns.

    The first begins at t0 at the earliest; one that no activity ends is cut at t1.
    """
    labels = labels or Labels(j, steps)
    start, end, row = idle(j, device, t0, t1)
    launch = take(j.launch, row)
    known = launch >= 0
    latency = median_latency(j, end[known], launch[known])
    # Without a known launch the call is taken to have come that long before, without length.
    call_start = np.where(known, take(j.trace.host.start, launch), np.where(row < 0, end, end - latency))
    call_end = np.where(known, take(j.trace.host.end, launch), call_start)
    call_start = np.clip(call_start, start, end)
    call_end = np.clip(call_end, call_start, end)
    thread = np.where(known, take(j.trace.host.thread, launch), steps.thread)
    call = np.where(known & (take(j.call, launch) == Call.MEMCPY), classes.TRANSFER_HOST, classes.HOST)
    waits = peers.waiting(j, device, row, call_end, end, latency)
    at = np.arange(len(start))
    parts = (_host(labels, thread, start, call_start),
             (at, call, np.stack((call_start, call_end), axis=1)),
             (at, np.where(waits, classes.PEER, classes.QUEUED), np.stack((call_end, end), axis=1)))
    gap, code, pieces = (np.concatenate([part[k] for part in parts]) for k in range(3))
    keep = np.flatnonzero(pieces[:, 1] > pieces[:, 0])
    keep = keep[np.argsort(pieces[keep, 0], kind="stable")]
    return Gaps(device, start, end, row.astype(np.int32), launch.astype(np.int32), thread.astype(np.int32),
                gap[keep], code[keep], pieces[keep], labels.texts)


def idle(j: Joined, device: int, t0: int, t1: int) -> tuple[Ints, Ints, Ints]:
    """Where no activity of `device` runs within [t0, t1): start, end, and the row of what ends it.

    An activity without length (rounded away) ends a gap too. Of activities that start
    together the one whose launch came first ends it. The last row is NONE, and the gap
    before it ends at t1 at the latest.
    """
    table = j.trace.device
    rows = np.flatnonzero(table.device == device)
    launched = take(j.trace.host.start, j.launch[rows], _HIGHEST)
    rows = rows[np.lexsort((table.end[rows], launched, table.start[rows]))]
    reach = np.concatenate(([t0], np.maximum.accumulate(table.end[rows])))
    reach = np.maximum(reach, t0)
    begin = np.append(table.start[rows], max(t1, int(reach[-1])))
    row = np.append(rows, NONE)
    keep = (begin > reach) & (reach < t1)
    return reach[keep], begin[keep], row[keep]


def median_latency(j: Joined, begun: Ints, launch: Codes) -> int:
    """Median time from the start of a launch call to the activity that ends an idle gap, ns; 0 of nothing.

    Of activities that ended a gap: others waited for the one before them. Negative ones
    (clocks of host and device disagree) are left out.
    """
    latency = begun - j.trace.host.start[launch] if len(launch) else np.zeros(0, np.int64)
    latency = latency[latency >= 0]
    return round(float(np.median(latency))) if len(latency) else 0


def _host(labels: Labels, thread: Ints, start: Ints, end: Ints) -> tuple[Ints, ...]:
    """Pieces of [start, end) of every gap by what its thread did; what is not known is the host's."""
    found = []
    for one in np.unique(thread[end > start]).tolist():
        rows = np.flatnonzero((thread == one) & (end > start))
        row, code, pieces = labels.chain(one).pieces(np.stack((start[rows], end[rows]), axis=1))
        found.append((rows[row], np.where(code == classes.UNKNOWN, classes.HOST, code), pieces))
    if not found:
        none = np.zeros(0, np.int64)
        return none, none, none.reshape(0, 2)
    return tuple(np.concatenate([f[k] for f in found]) for k in range(3))
