"""Scenarios that move work beside compute: copies one batch ahead, communication during backward."""

from __future__ import annotations

import numpy as np

from profiler.analysis.trace.steps import in_autograd
from profiler.replay.build import Columns, Model
from profiler.replay.run import Op
from profiler.replay.work import Work
from profiler.trace.model import Flags, Ints
from profiler.trace.names import Copy

LARGE_BYTES = 1 << 20  # copies from which on a rate is the link's
BUCKETS = 6  # that one all-reduce after backward counts as

HOST_WAITS = (int(Op.STREAM), int(Op.EVENT), int(Op.DEVICE))


def overlapped_transfer(m: Model, w: Work, c: Columns, rate: float | None = None) -> Columns:
    """The batch's copies on a stream of their own, for the next step. `rate`: bytes a ns."""
    own = w.batch_calls[c.event]
    copies = np.flatnonzero(own & submits(c))
    if not len(copies) or _prefetched(m, c, copies):
        return c
    number = np.cumsum(submits(c)) - 1
    lane = len(m.lanes.keys)
    length = c.length.copy()
    if rate:
        size = m.j.trace.device.bytes[m.events.device[c.event[copies]]]
        length[copies] = np.minimum(length[copies], size / rate)
    lanes = c.lane.copy()
    lanes[copies] = lane
    waits = own & np.isin(c.kind, HOST_WAITS)
    kept = np.where(waits & (c.kind == Op.EVENT) & (m.events.device[c.event] >= 0), c.cost, 0)
    old = (c.kind == Op.WAIT) & np.isin(c.other, number[copies])
    kind = np.where(waits | old, int(Op.HOST), c.kind)
    segment = m.events.segment[c.event]
    kernels = np.flatnonzero((c.kind == Op.LAUNCH) & activity(m, c, m.j.compute))
    rows = []
    for k in range(1, len(m.segments)):
        before = copies[segment[copies] == k - 1]
        users = kernels[segment[kernels] == k]
        if len(before) and len(users):
            rows.append((int(users[0]), {"kind": int(Op.WAIT), "lane": int(c.lane[users[0]]),
                                         "other": int(number[before[-1]])}))
    cost = np.where(waits, kept, c.cost)
    return c.with_(kind=kind, lane=lanes, length=length, cost=cost).insert(rows)


def pinned_rate(m: Model) -> float | None:
    """Bytes a ns of large pinned copies to the device, where there are pageable ones too; else None."""
    device, copy = m.j.trace.device, m.j.copy
    pinned = (copy == Copy.H2D_PINNED) & (device.bytes >= LARGE_BYTES)
    if not pinned.any() or not (copy == Copy.H2D_PAGEABLE).any():
        return None
    return float(device.bytes[pinned].sum() / max(int((device.end - device.start)[pinned].sum()), 1))


def _prefetched(m: Model, c: Columns, copies: Ints) -> bool:
    """Whether the copies run ahead already: on streams of their own, waited for by a later step."""
    number = np.cumsum(submits(c)) - 1
    segment = m.events.segment[c.event]
    if not all(m.lanes.copies[k] for k in np.unique(c.lane[copies]).tolist()):
        return False
    waits = np.flatnonzero(((c.kind == Op.WAIT) | (c.kind == Op.EVENT)) & np.isin(c.other, number[copies]))
    of = np.searchsorted(number, c.other[waits])  # the operation that submits what is waited for
    return bool((segment[waits] > segment[of]).all())


def overlapped_communication(m: Model, w: Work, c: Columns) -> Columns:
    """Communication of gradients starts when they are ready; only what follows backward waits for it."""
    comm = np.flatnonzero(activity(m, c, m.j.communication))
    host = m.events.host[c.event]
    other = submits(c) & ~activity(m, c, m.j.communication)
    backward = np.flatnonzero(other & (host >= 0) & in_autograd(m.j)[host])
    segment = m.events.segment[c.event]
    rows: list[tuple[int, dict[str, int]]] = []
    kind, lane = c.kind.copy(), c.lane.copy()
    free = len(m.lanes.keys)
    number = np.cumsum(submits(c)) - 1
    for k in range(len(m.segments)):
        back = backward[segment[backward] == k]
        own = comm[segment[comm] == k]
        if not len(back):
            continue
        own = own[own > back[0]]
        if len(own) and own[0] > back[-1]:
            rows += _buckets(c, own, back, free)
            kind[own] = int(Op.SKIP)
        elif len(own):
            mixed = own[np.isin(lane[own], c.lane[back])]
            lane[mixed] = free
            early = np.flatnonzero((kind == Op.WAIT) & (segment == k) & np.isin(c.other, number[own])
                                   & ~np.isin(c.lane, lane[own]))
            kind[early[early < back[-1]]] = int(Op.HOST)
            rows += _joined(m, c, int(back[-1]), k, np.unique(lane[own]).tolist())
    return c.with_(kind=kind, lane=lane).insert(sorted(rows, key=lambda r: r[0]))


def _buckets(c: Columns, own: Ints, back: Ints, free: int) -> list[tuple[int, dict[str, int]]]:
    """Communication after backward, as buckets during it; the old operations wait for theirs."""
    lengths = c.length[own].tolist()
    if len(own) < BUCKETS:
        lengths = [sum(lengths) // BUCKETS] * BUCKETS
    rows = []
    for i, length in enumerate(lengths, 1):
        last = back[min(-(-i * len(back) // len(lengths)), len(back)) - 1]
        at = int(last) + 1
        rows.append((at, {"kind": int(Op.WAIT), "lane": free, "other": -2 - int(c.lane[last])}))
        rows.append((at, {"kind": int(Op.BESIDE), "lane": free, "length": int(length),
                          "delay": int(c.delay[own[0]])}))
    return rows + [(op, {"kind": int(Op.WAIT), "lane": int(c.lane[op]), "other": -2 - free})
                   for op in own.tolist()]


def _joined(m: Model, c: Columns, last: int, k: int, lanes: list[int]) -> list[tuple[int, dict[str, int]]]:
    """A wait for these lanes before the first kernel after backward."""
    kernels = (c.kind == Op.LAUNCH) & activity(m, c, m.j.compute)
    after = np.flatnonzero((m.events.segment[c.event] == k) & kernels)
    after = after[after > last]
    if not len(after):
        return []
    return [(int(after[0]), {"kind": int(Op.WAIT), "lane": int(c.lane[after[0]]), "other": -2 - lane})
            for lane in lanes if lane != c.lane[after[0]]]


def submits(c: Columns) -> Flags:
    """Operations by which activities are numbered: those that submit one, or leave one out."""
    return np.isin(c.kind, (int(Op.LAUNCH), int(Op.FOLLOW), int(Op.SKIP)))


def activity(m: Model, c: Columns, rows: Flags) -> Flags:
    """Operations that submit one of these device rows."""
    device = m.events.device[c.event]
    return submits(c) & np.append(rows, False)[device]  # the last answers for NONE
