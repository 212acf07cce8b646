"""Runs the points of a sweep in rounds, and keeps each finished run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np

from profiler.experiments.sweep import search
from profiler.experiments.sweep.journal import Journal, identity
from profiler.experiments.sweep.measure import Measured, Tick
from profiler.experiments.sweep.points import label
from profiler.experiments.sweep.subject import Point

FIRST_LIMIT_S, LEAST_LIMIT_S = 900.0, 120.0  # of a run whose usual time is not known; of any
LIMIT = 10.0  # times the longest run so far

Take = Callable[[Point, Path, float, Tick], Measured]


@dataclass
class Listener:
    """Who is told. `tick`: runs finished, of at most so many, seconds left if known, what is at work.

    `finished`: a run's point, its number among the point's runs, what it measured, and,
    after the very first one, how many seconds the others will take.
    `dropped`: a point that is not run again, and why.
    """

    tick: Callable[[float, int, float | None, str], None] = lambda done, most, left, text: None
    finished: Callable[[Point, int, Measured, float | None], None] = lambda point, number, run, left: None
    dropped: Callable[[Point, str], None] = lambda point, why: None


@dataclass(frozen=True)
class Bench:
    """How points are measured. `take` records one run; `limit_s` ends it, None for ten usual times.

    `folder`: where recordings go; they are deleted once read unless `keep`.
    `most_memory`: bytes that a point may need; None for any.
    """

    take: Take
    journal: Journal
    folder: Path
    repeats: int = 3
    seed: int = 0
    most_memory: float | None = None
    limit_s: float | None = None
    keep: bool = False
    listener: Listener = field(default_factory=Listener)

    def once(self, point: Point, group: str, begun: int, most: int) -> Measured:
        """One run of a point, kept in the journal. `begun` of at most `most` are finished."""
        own = self.journal.of(group, point)
        usual = expected_s(self.journal, group, point)
        text = f"{label(point)}, run {len(own) + 1}"
        output = self._output()

        def tick(seconds: float) -> None:
            share = min(seconds / usual, 1.0) if usual else 0.0
            left = (most - begun - share) * usual if usual else None
            self.listener.tick(begun + share, most, left, text)

        try:
            measured = self.take(point, output, self.limit(), tick)
        finally:
            if not self.keep:
                for leftover in self.folder.glob(f"{output.stem}.*"):
                    leftover.unlink(missing_ok=True)
        first = not self.journal.every()
        self.journal.add(group, point, measured)
        self.listener.finished(point, len(own), measured,
                               (most - begun - 1) * measured.wall_s if first else None)
        return measured

    def _output(self) -> Path:
        """A name that is free: one that was interrupted may have left its file."""
        names = (self.folder / f"{k:04d}.stepscope" for k in count(len(self.journal.every()) + 1))
        return next(path for path in names if not path.exists())

    def limit(self) -> float:
        """Seconds after which a run counts as stuck."""
        if self.limit_s is not None:
            return self.limit_s
        walls = [run.wall_s for run in self.journal.every() if not run.failure]
        return max(LEAST_LIMIT_S, LIMIT * max(walls)) if walls else FIRST_LIMIT_S


def expected_s(journal: Journal, group: str, point: Point) -> float | None:
    """How long a run of this point takes: as its own did, else as all did. None before the first."""
    own = [run.wall_s for run in journal.of(group, point)]
    walls = own or [run.wall_s for run in journal.every()]
    return float(np.mean(walls)) if walls else None


def run_points(bench: Bench, points: Sequence[Point], group: str = "",
               against: Point | None = None) -> dict[str, str]:
    """Measure all points, round by round; those with runs in the journal go on from there.

    Gives the points that were given up, identity -> reason. `against`: the one of two that
    the other is compared with; it ends as soon as one is given up, or it is settled
    whether the other is faster. KeyboardInterrupt passes through: finished runs are in
    the journal.
    """
    by_name = {identity(point): point for point in points}
    held = None if against is None else identity(against)
    told: set[str] = set()
    while True:
        runs = {name: list(bench.journal.of(group, point)) for name, point in by_name.items()}
        out = search.given_up(runs, bench.most_memory, bench.repeats, held)
        for name in [name for name in out if name not in told]:
            bench.listener.dropped(by_name[name], out[name])
        told |= out.keys()
        batch = search.due(runs, bench.repeats, out, f"{bench.seed} {group}")
        if not batch or (held is not None and (out or _settled(runs, held))):
            return out
        left = _left(runs, bench.repeats, out)
        finished = sum(map(len, runs.values()))
        for k, name in enumerate(batch):
            bench.once(by_name[name], group, finished + k, finished + max(left, len(batch)))


def _settled(runs: Mapping[str, Sequence[Measured]], held: str) -> bool:
    """After a whole round: whether more of them cannot change the answer."""
    (mine,) = (own for name, own in runs.items() if name != held)
    if len(mine) != len(runs[held]):
        return False
    return search.settled(search.paired(mine, runs[held], search.score_of([*mine, *runs[held]])))


def _left(runs: Mapping[str, Sequence[Measured]], repeats: int, out: Mapping[str, str]) -> int:
    """Runs still to come, if none is given up or left out."""
    return sum(max(0, repeats - len(own)) for name, own in runs.items() if name not in out)
