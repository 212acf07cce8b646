"""Samples of a track out of blocks and journal, at the coarsest level that is fine enough."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from profiler.run.decode import Float64, Int64, Part, block, join, journal_row
from profiler.run.guard import everything, rising
from profiler.run.pyramid import FANOUT, TOP

MOST_KEPT = 1 << 20  # entries of blocks, of up to 32 bytes
MOST_LOADED = 1 << 24  # entries at once: two days at 100 Hz; a small file can claim any number
MOST_GAPS = 100  # that are shown exactly when a range is too long for its samples
ALWAYS = -(1 << 63), (1 << 63) - 1  # a range of time that holds everything

_BLOCKS = """SELECT id, first, n FROM block WHERE track = ? AND level = ? AND first + n > ?
             AND t1_ns >= ? AND t0_ns <= ? ORDER BY first"""
_JOURNALED = "SELECT (SELECT min(id) FROM journal), (SELECT max(id) FROM journal)"
_LAST_BLOCK = "SELECT id, first, n FROM block WHERE track = ? AND level = ? ORDER BY first DESC LIMIT 1"
_SIZES = """SELECT id, n, t0_ns, t1_ns FROM block WHERE track = ? AND level = 0 AND t1_ns >= ? AND t0_ns <= ?
            ORDER BY first"""


@dataclass(frozen=True, slots=True)
class Series:
    """A track over time, as columns of equal length.

    `t_ns` and `end_ns` are the first and the last time of an entry, `low` and `high` the smallest and the
    largest value in it. When `exact`, an entry is one sample: `end_ns` is `t_ns` and `high` is `low`.
    """

    t_ns: Int64
    low: Float64
    high: Float64
    exact: bool
    end_ns: Int64


class Kept:
    """What is kept between reads: the samples in the journal, by track, and blocks, which never change."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[int, Part] = OrderedDict()
        self._entries = 0
        self._range: tuple[int, int] | None = None
        self._parts: dict[int, list[Part]] = {}
        self.newest: int | None = None  # ns
        self.unpacked = 0  # entries of blocks, ever

    def follow(self, db: sqlite3.Connection) -> None:
        """Read what is new; everything anew when samples have gone into blocks."""
        first, last = db.execute(_JOURNALED).fetchone()
        if first is None:
            self._range, self._parts = None, {}
            return
        known = self._range[1] if self._range and self._range[0] == first else None
        if known is None:
            self._parts = {}
        after = first - 1 if known is None else known
        rows = rising(db.execute("SELECT id, n, data FROM journal WHERE id > ? ORDER BY id", (after,)), after)
        self._range = first, last
        if rows:
            self._add([journal_row(int(n), data) for _, n, data in rows])

    def part(self, track: int) -> Part:
        """The samples of a track, in order of time."""
        parts = self._parts.get(track, [])
        if len(parts) > 1:
            parts[:] = [join(parts)]
        return join(parts)

    def block(self, db: sqlite3.Connection, number: int, level: int, n: int) -> Part:
        """The entries of a block, by its id."""
        if (part := self._blocks.get(number)) is not None:
            self._blocks.move_to_end(number)
            return part
        (data,) = db.execute("SELECT data FROM block WHERE id = ?", (number,)).fetchone()
        part = self._blocks[number] = block(level, n, data)
        self.unpacked += len(part)
        self._entries += len(part)
        while self._entries > MOST_KEPT and len(self._blocks) > 1:
            self._entries -= len(self._blocks.popitem(last=False)[1])
        return part

    def tracks(self) -> list[int]:
        return list(self._parts)

    def _add(self, rows: list[tuple]) -> None:
        tracks, times, values = (np.concatenate(column) for column in zip(*rows, strict=True))
        if not len(tracks):
            return
        self.newest = max(int(times.max()), self.newest or ALWAYS[0])
        order = np.argsort(tracks, kind="stable")
        tracks, times, values = tracks[order], times[order], values[order]
        starts = np.flatnonzero(np.diff(tracks, prepend=tracks[0] ^ 1))
        for start, stop in zip(starts, [*starts[1:], len(tracks)], strict=True):
            part = Part(times[start:stop], times[start:stop], values[start:stop], values[start:stop])
            self._parts.setdefault(int(tracks[start]), []).append(part)


def load(db: sqlite3.Connection, kept: Kept, track: int, level: int, t0: int, t1: int) -> Part:
    """Entries of `level` that touch [t0, t1] in ns; where the level ends, those of the levels below."""
    parts, start, loaded = [], 0, 0
    for at in range(level, -1, -1):
        for number, first, n in everything(db.execute(_BLOCKS, (track, at, start, t0, t1))):
            part = kept.block(db, number, at, n)
            loaded += len(part)
            if loaded > MOST_LOADED:
                raise ValueError(f"a track of more than {MOST_LOADED} entries")
            parts.append(_inside(part.where(slice(max(start - int(first), 0), None)), t0, t1))
        last = db.execute(_LAST_BLOCK, (track, at)).fetchone()
        start = max(start, int(last[1]) + int(last[2]) if last else 0) * FANOUT
    parts.append(_inside(kept.part(track), t0, t1))
    parts = [part for part in parts if len(part)]
    return join(parts) if len(parts) != 1 else parts[0].copy()  # the caller may change what it is given


def newest(db: sqlite3.Connection, kept: Kept, track: int) -> tuple[int, float] | None:
    """The newest sample: (t_ns, value)."""
    part = kept.part(track)
    if not len(part):
        last = db.execute(_LAST_BLOCK, (track, 0)).fetchone()
        if last is None:
            return None
        part = kept.block(db, last[0], 0, last[2])
    return int(part.t0[-1]), float(part.low[-1])


def count(db: sqlite3.Connection, kept: Kept, track: int, until: int) -> int:
    """How many samples lie before a time. At most one block of them is read."""
    total = 0
    for number, n, _, t1 in db.execute(_SIZES, (track, ALWAYS[0], until)):
        total += n if t1 < until else int(np.searchsorted(kept.block(db, number, 0, n).t0, until))
    return total + int(np.searchsorted(kept.part(track).t0, until))


def time_of(db: sqlite3.Connection, kept: Kept, track: int, place: int) -> int | None:
    """The time of a sample by its place from 0; None where there is none."""
    for number, n, _, _ in db.execute(_SIZES, (track, *ALWAYS)):
        if place < n:
            return int(kept.block(db, number, 0, n).t0[place])
        place -= n
    part = kept.part(track)
    return int(part.t0[place]) if place < len(part) else None


def decimated(db: sqlite3.Connection, kept: Kept, track: int, t0: int, t1: int, points: int) -> Series:
    """At most about 2 * points entries between t0 and t1."""
    level = 0
    count = _count(db, kept, track, t0, t1)
    while level < TOP and count >= points * FANOUT ** (level + 1):
        level += 1
    part = load(db, kept, track, level, t0, t1)
    if level:
        part = _split_at_gaps(db, kept, track, part)
    if len(part) <= 2 * points:
        return Series(part.t0, part.low, part.high, level == 0, part.t1)
    return _buckets(part, max(t0, int(part.t0[0])), min(t1, int(part.t1.max())), points)


def _split_at_gaps(db: sqlite3.Connection, kept: Kept, track: int, part: Part) -> Part:
    """Groups are of so many samples, whatever lies between those: one that spans a gap is cut there."""
    spans = part.t1 - part.t0
    usual = int(np.median(spans))
    long = np.flatnonzero(spans > 2 * usual)
    long = long[np.argsort(spans[long])][-MOST_GAPS:]
    if not usual or not len(long):
        return part
    whole = np.ones(len(part), bool)
    whole[long] = False
    most = kept.unpacked + MOST_LOADED  # times in a file may claim that every group spans everything
    parts: list[Part] = []
    for at in long:
        if kept.unpacked > most:
            whole[at] = True
            continue
        samples = load(db, kept, track, 0, int(part.t0[at]), int(part.t1[at]))
        starts = np.flatnonzero(np.diff(samples.t0, prepend=samples.t0[0] - usual - 1) > usual)
        ends = np.append(starts[1:], len(samples)) - 1
        parts.append(Part(samples.t0[starts], samples.t0[ends], np.minimum.reduceat(samples.low, starts),
                          np.maximum.reduceat(samples.high, starts)))
    return join([part.where(whole), *parts])


def _buckets(part: Part, t0: int, t1: int, points: int) -> Series:
    """One entry for each slice of time. Slices keep their place while a range of the same length moves on."""
    width = max(-(-(t1 - t0) // points), 1)
    slices = part.t0 // width
    starts = np.flatnonzero(np.diff(slices, prepend=slices[0] - 1))
    low, high = np.minimum.reduceat(part.low, starts), np.maximum.reduceat(part.high, starts)
    return Series(part.t0[starts], low, high, False, np.maximum.reduceat(part.t1, starts))


def _count(db: sqlite3.Connection, kept: Kept, track: int, t0: int, t1: int) -> float:
    """About how many samples lie in [t0, t1], without reading them."""
    total = 0.0
    for _, n, first, last in db.execute(_SIZES, (track, t0, t1)):
        inside = (min(last, t1) - max(first, t0) + 1) / max(last - first + 1, 1)
        total += n * inside
    return total + len(_inside(kept.part(track), t0, t1))


def _inside(part: Part, t0: int, t1: int) -> Part:
    if (t0, t1) == ALWAYS or not len(part):
        return part
    return part.where((part.t1 >= t0) & (part.t0 <= t1))
