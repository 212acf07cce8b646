"""Several ranks of one job: which collectives are the same, whose clock differs, who waits for whom.

Traces are aligned by the time bases that they state, and by nothing else. Collectives in which every rank
needs every other tell how far the clocks really differ: no rank can end one before all have begun. Where
they contradict the stated bases, waiting is read off durations instead, which need no clock: the last to
arrive spends the shortest time, and what others spend beyond that is waiting.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.ranks.collectives import EVERYBODY, Collective, Executions, executions
from profiler.analysis.trace.steps import PROFILER_STEP, Steps
from profiler.trace.model import NONE, Flags, Ints

CLOCKS = "clocks"
DURATIONS = "durations"
NOTHING = "nothing"
DRIFT = 1e-3  # clocks of hosts that are kept in step run apart by less than this share of the time


@dataclass(frozen=True)
class Process:
    """One rank's trace and what is known of it."""

    joined: Joined
    steps: Steps
    runs: Executions

    @staticmethod
    def of(joined: Joined, steps: Steps) -> Process:
        return Process(joined, steps, executions(joined))

    @property
    def rank(self) -> int | None:
        return self.joined.trace.rank

    @property
    def name(self) -> str:
        return f"rank {self.rank}" if self.rank is not None else self.joined.trace.source


@dataclass(frozen=True)
class Clock:
    """How far a process's clock, by its stated base, is ahead of the first one's; ns.

    The true difference lies in [low, high]; `offset` is the median difference of the ends of
    shared collectives. None: nothing shared tells. `agrees`: the stated bases may be right.
    """

    offset: int | None
    low: int | None
    high: int | None
    agrees: bool
    contradicts: bool = False  # more than drift can: what was matched are not the same collectives


@dataclass(frozen=True)
class Matched:
    """m collectives that at least two of r processes took part in, in order."""

    row: Ints            # int64[m, r]: row of the process's Executions, NONE where it took no part
    start: Ints          # int64[m, r], ns since the first process's zero, by the stated bases
    end: Ints
    kind: Ints           # int64[m], Collective
    bytes: Ints          # int64[m]: of the first that tells; NONE
    ranks: Ints          # int64[m]: size of the group; NONE
    step: Ints           # int64[m]: number of the step, NONE outside any
    counted: Flags       # bool[m]: in a step that enters means, of every process that took part

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def there(self) -> NDArray[np.bool_]:
        """bool[m, r]: who took part."""
        return self.row >= 0

    @property
    def compared(self) -> Flags:
        """bool[m]: in which every rank needs every other; of counted steps, where these have any."""
        every = np.isin(self.kind, EVERYBODY)
        return every & self.counted if (every & self.counted).any() else every


@dataclass(frozen=True)
class Ranks:
    """What several processes together tell. Arrays are [m, r] as in `matched`."""

    names: tuple[str, ...]
    matched: Matched
    clocks: tuple[Clock, ...]
    basis: str                       # CLOCKS, DURATIONS or NOTHING: what waiting is read off
    wait: Ints                       # ns that each process waited in each collective for the last to arrive
    notes: tuple[str, ...]


def ranks(processes: Sequence[Process]) -> Ranks | None:
    """Collectives matched over processes, clocks and waiting; None with fewer than two processes."""
    if len(processes) < 2:
        return None
    known = [p.rank for p in processes if p.rank is not None]
    twice = sorted(rank for rank, n in Counter(known).items() if n > 1)
    notes = []
    if twice:
        notes.append(f"Several traces are of rank {', '.join(map(str, twice))}: "
                     "they are compared as they are, and no waiting is told")
    matched, unmatched = match([] if twice else processes)
    if unmatched:
        notes.append(f"{unmatched} collectives have no counterpart in the other ranks' traces")
    absolute = all(p.joined.trace.absolute for p in processes)
    resolution = max(p.joined.trace.resolution_ns for p in processes)
    clocks = tuple(_clock(matched, r, resolution) for r in range(matched.row.shape[1]))
    notes += _clock_notes(processes, clocks, absolute)
    basis = CLOCKS if absolute and all(clock.agrees for clock in clocks) else DURATIONS
    if any(clock.contradicts for clock in clocks):
        basis = NOTHING
    largest = int(matched.ranks.max()) if len(matched) else 0
    if len(processes) < largest:
        notes.append(f"{len(processes)} of {largest} ranks are given: waiting is at least what they show")
    names = tuple(p.name for p in processes)
    return Ranks(names, matched, clocks, basis, _waits(matched, basis), tuple(notes))


def arrivals(matched: Matched, basis: str) -> NDArray[np.float64]:
    """When each process arrived at each collective: float64[m, r], -inf where it took no part.

    By durations an arrival is minus the duration: only differences within a collective mean anything.
    """
    when = matched.start if basis == CLOCKS else matched.start - matched.end
    return np.where(matched.there, when.astype(np.float64), -np.inf)


def _waits(matched: Matched, basis: str) -> Ints:
    """Last arrival less own arrival, at most the time spent; 0 where not every rank needs every other."""
    if not len(matched) or basis == NOTHING:
        return np.zeros(matched.row.shape, np.int64)
    when = matched.start if basis == CLOCKS else matched.start - matched.end
    there = matched.there & np.isin(matched.kind, EVERYBODY)[:, None]
    last = np.where(there, when, np.iinfo(np.int64).min).max(axis=1)[:, None]
    return np.where(there, np.minimum(last - when, matched.end - matched.start), 0)


def match(processes: Sequence[Process]) -> tuple[Matched, int]:
    """The same collectives of several processes, and how many executions found no counterpart.

    Within a group they are told by their sequence numbers; where there are none by their place in the
    step of the same number, if the kinds and sizes of that step agree.
    """
    keys: dict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    candidates = 0
    tables = [_keys(process) for process in processes]
    for group in dict.fromkeys(group for table in tables for group in table):
        members = {r: table[group] for r, table in enumerate(tables) if group in table}
        candidates += sum(map(len, members.values()))
        if all(_numbered(rows) for rows in members.values()):
            for r, rows in members.items():
                for row, sequence, _, kind, _ in rows:
                    keys[(group, kind, sequence)][r] = row
        else:
            for place, found in _by_place(members):
                keys[(group, *place)] = found
    several = [found for found in keys.values() if len(found) > 1]
    table = np.full((len(several), len(processes)), NONE, np.int64)
    for m, found in enumerate(several):
        table[m, list(found)] = list(found.values())
    return _matched(processes, table), candidates - int((table >= 0).sum())


_Entry = tuple[int, int, int, int, int]  # row, sequence, step number, kind, size


def _numbered(rows: list[_Entry]) -> bool:
    """Whether sequence numbers tell the collectives of a group apart."""
    sequence = [row[1] for row in rows]
    return min(sequence) >= 0 and len(set(sequence)) == len(sequence)


def _keys(process: Process) -> dict[tuple[str, str], list[_Entry]]:
    """By group: what identifies each collective. Sends and receives have different counterparts: left out."""
    runs, names, steps = process.runs, process.joined.trace.names, process.steps
    step = steps.at(runs.launched)
    # Numbers that we gave ourselves do not tell the same step in another trace.
    number = np.full(len(runs), NONE, np.int64)
    if steps.rule == PROFILER_STEP:
        number[step >= 0] = steps.number[step[step >= 0]]
    result: dict[tuple[str, str], list[_Entry]] = defaultdict(list)
    for row, (kind, group, members) in enumerate(zip(runs.kind.tolist(), runs.group.tolist(),
                                                     runs.members.tolist(), strict=True)):
        if kind in EVERYBODY or kind in (Collective.BROADCAST, Collective.REDUCE, Collective.GATHER,
                                         Collective.SCATTER):
            key = (names[group] if group >= 0 else "", names[members] if members >= 0 else "")
            size = int(runs.bytes[row]) if kind == Collective.ALL_REDUCE else NONE  # others may be uneven
            result[key].append((row, int(runs.sequence[row]), int(number[row]), kind, size))
    return result


def _by_place(members: dict[int, list[_Entry]]) -> list[tuple[tuple[int, int], dict[int, int]]]:
    """Matches within steps: ((step, place), process -> row), of the processes that agree with most others."""
    steps: dict[int, dict[int, list[_Entry]]] = defaultdict(lambda: defaultdict(list))
    for r, rows in members.items():
        for entry in rows:
            steps[entry[2]][r].append(entry)
    result = []
    for number, here in steps.items():
        looks = {r: tuple((kind, size) for _, _, _, kind, size in rows) for r, rows in here.items()}
        common, _ = Counter(looks.values()).most_common(1)[0]
        agreeing = [r for r, look in looks.items() if look == common]
        for place in range(len(common)):
            result.append(((number, place), {r: here[r][place][0] for r in agreeing}))
    return result


def _matched(processes: Sequence[Process], table: Ints) -> Matched:
    shape = table.shape
    start, end = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    kind, size, group = (np.full(shape[0], NONE, np.int64) for _ in range(3))
    step, counted = np.full(shape[0], NONE, np.int64), np.ones(shape[0], np.bool_)
    for r, process in enumerate(processes):
        runs, steps = process.runs, process.steps
        has = table[:, r] >= 0
        rows = table[has, r]
        shift = process.joined.trace.base_ns - processes[0].joined.trace.base_ns
        start[has, r], end[has, r] = runs.start[rows] + shift, runs.end[rows] + shift
        for own, column in ((kind, runs.kind), (size, runs.bytes), (group, runs.ranks)):
            own[has] = np.where(own[has] < 0, column[rows], own[has])
        at = steps.at(runs.launched[rows])
        inside = at >= 0
        if len(steps):
            step[has] = np.where((step[has] < 0) & inside, steps.number[np.maximum(at, 0)], step[has])
            counted[has] &= inside & steps.counted[np.maximum(at, 0)]
        else:
            counted[has] = False
    first = np.where(table >= 0, start, np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
    order = np.argsort(first, kind="stable")
    return Matched(table[order], start[order], end[order], kind[order], size[order], group[order],
                   step[order], counted[order])


def _clock(matched: Matched, r: int, resolution: int) -> Clock:
    """Against process 0. Times that were rounded may be off by `resolution`."""
    if r == 0:
        return Clock(0, 0, 0, True)
    shared = matched.there[:, 0] & matched.there[:, r] & np.isin(matched.kind, EVERYBODY)
    if not shared.any():
        return Clock(None, None, None, True)
    start, end = matched.start[shared], matched.end[shared]
    low = int((start[:, r] - end[:, 0]).max()) - resolution
    high = int((end[:, r] - start[:, 0]).min()) + resolution
    offset = int(np.median(end[:, r] - end[:, 0]))
    span = int(end[:, 0].max() - start[:, 0].min())
    return Clock(offset, low, high, low <= 0 <= high, low - high > DRIFT * span)


def _clock_notes(processes: Sequence[Process], clocks: tuple[Clock, ...], absolute: bool) -> list[str]:
    notes = []
    if not absolute:
        notes.append("Not every trace states its time base: the ranks' clocks cannot be aligned, and "
                     "waiting is read off durations")
    for process, clock in zip(processes, clocks, strict=False):
        if clock.contradicts:
            notes.append(f"What {process.name} and {processes[0].name} communicate cannot be the same "
                         "collectives: their traces show other parts of the job, and no waiting is told")
        elif absolute and not clock.agrees and clock.offset is not None:
            notes.append(f"The clock of {process.name} is {clock.offset / 1e6:.3f} ms off that of "
                         f"{processes[0].name} by the ends of shared collectives (between "
                         f"{(clock.low or 0) / 1e6:.3f} and {(clock.high or 0) / 1e6:.3f} ms): "
                         "waiting is read off durations")
    return notes
