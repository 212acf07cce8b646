"""A search by itself: coordinate descent over loader and batch settings, each change measured in pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from profiler.errors import TargetError
from profiler.experiments.statistics import IMPROVEMENT, REGRESSION, UNFINISHED, Ratio, outcome
from profiler.experiments.sweep import search
from profiler.experiments.sweep.journal import identity
from profiler.experiments.sweep.knobs import Knob, Seen, knobs, start
from profiler.experiments.sweep.points import Axes, label
from profiler.experiments.sweep.result import Standing, compared, interval, standing
from profiler.experiments.sweep.run import Bench, run_points
from profiler.experiments.sweep.subject import Point, Subject

MISSES = 2  # values in a row without improvement, until a direction is left
PASSES = 4
FAILS, IMPOSSIBLE, NO_FASTER = "fails", "cannot be", "no improvement shown"


@dataclass(frozen=True)
class Change:
    """One change that was tried. `ratio`: samples per second with it over without; None where one failed."""

    key: str
    before: Any
    after: Any
    ratio: Ratio | None
    outcome: str
    why: str = ""

    @property
    def kept(self) -> bool:
        return self.outcome == IMPROVEMENT

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key, "from": self.before, "to": self.after, "ratio": interval(self.ratio),
                "outcome": self.outcome, "kept": self.kept, "why": self.why}


@dataclass
class Search:
    """The state of a descent. `look(point, name)` records and diagnoses the program at a point, {} as it is.

    `of_epochs`: the bench for settings that change how epochs begin; its rates include epoch starts.
    """

    subject: Subject
    bench: Bench
    of_epochs: Bench
    look: Callable[[Point, str], Seen]
    axes: Axes = field(default_factory=dict)
    tell: Callable[[Change], None] = lambda change: None
    point: dict[str, Any] = field(default_factory=dict)
    begun: dict[str, Any] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    tried: dict[str, str] = field(default_factory=dict)  # outcomes by identity
    gain: Ratio | None = None  # of the end over the start; None while nothing was kept
    interrupted: bool = False
    failure: str = ""
    best: Standing | None = None

    def run(self) -> None:
        """Until no change improves by 2 %. KeyboardInterrupt ends it and keeps what was found.

        TargetError when the program fails as it is.
        """
        try:
            for number in range(PASSES):
                seen = self.look(self.point, f"diagnosis {number + 1}")
                self.seen.append(seen)
                if not number:
                    self.point = start(self.subject, seen, self.axes)
                    self.begun = dict(self.point)
                    self.tried[identity(self.subject.effective(self.point))] = ""
                turned = [self._turn(knob) for knob in knobs(self.subject, seen, self.point, self.axes)]
                if not any(turned):
                    break
        except KeyboardInterrupt:
            self.interrupted = True
        except TargetError as error:
            if not self.seen:
                raise
            self.failure = error.message
        if not self.interrupted:
            self._whole_gain()

    def _turn(self, knob: Knob) -> bool:
        """Try its values: the wanted one, then upwards, then downwards. Whether one was kept."""
        kept = knob.first is not None and self._try(knob, knob.first) == IMPROVEMENT
        kept = self._climb(knob, 1) or kept
        return kept or self._climb(knob, -1)

    def _climb(self, knob: Knob, direction: int) -> bool:
        """Values in one direction from the present one, as long as they may improve."""
        values = knob.values[::direction]
        now = self.point[knob.key]
        kept, misses = False, 0
        for value in values[values.index(now) + 1:] if now in values else values:
            told = self._try(knob, value)
            if told == IMPROVEMENT:
                kept, misses = True, 0
                continue
            misses += 1
            if told in (REGRESSION, FAILS) or misses >= MISSES:
                break
        return kept

    def _try(self, knob: Knob, value: Any) -> str:
        """Measure the present point with one value changed, and keep it when that is an improvement."""
        after = {**self.point, knob.key: value}
        name = identity(self.subject.effective(after))
        if name in self.tried:
            return self.tried[name]
        change = self._measure(knob, after)
        # what was kept and left since is no candidate, and says nothing about its neighbours
        self.tried[name] = "" if change.kept else change.outcome
        self.changes.append(change)
        self.tell(change)
        if change.kept:
            self.point = after
        return change.outcome

    def _measure(self, knob: Knob, after: Point) -> Change:
        before, value = self.point[knob.key], after[knob.key]
        if why := self.subject.unfit(after):
            return Change(knob.key, before, value, None, IMPOSSIBLE, why)
        bench = self.of_epochs if knob.key == "persistent_workers" else self.bench
        mine, other = self._pairs(bench, after, self.point, f"change {len(self.changes) + 1}")
        ratio = compared(mine, other, search.score_of([*mine.runs, *other.runs]))
        told = outcome(ratio)
        if mine.over or search.failed(mine.runs) or search.failed(other.runs):
            told = FAILS
        elif mine.given_up:  # after fewer pairs than an outcome needs
            told = REGRESSION
        elif told == UNFINISHED and ratio is not None:
            told = NO_FASTER
        self.best = mine if told == IMPROVEMENT else other
        return Change(knob.key, before, value, ratio, told, mine.given_up or other.given_up)

    def _pairs(self, bench: Bench, after: Point, before: Point, group: str) -> tuple[Standing, Standing]:
        """Both measured, in pairs that alternate."""
        out = run_points(bench, [before, after], group, against=before)
        runs = {identity(point): bench.journal.of(group, point) for point in (after, before)}
        score = search.score_of([run for own in runs.values() for run in own])
        mine, other = (standing(point, runs[identity(point)], score, out.get(identity(point), ""),
                                bench.most_memory) for point in (after, before))
        return mine, other

    def _whole_gain(self) -> None:
        """The end against the start, in pairs of their own where more than one change was kept."""
        kept = [change for change in self.changes if change.kept]
        if len(kept) == 1:
            self.gain = kept[0].ratio
        elif kept:
            try:
                self.best, other = self._pairs(self.bench, self.point, self.begun, "end against start")
            except KeyboardInterrupt:
                self.interrupted = True
                return
            self.gain = compared(self.best, other, search.score_of([*self.best.runs, *other.runs]))

    @property
    def used(self) -> dict[str, Any]:
        """What of the point has to be said to start it: all that differs from the start, and placeholders."""
        return {key: value for key, value in self.point.items()
                if value != self.begun.get(key) or self.subject.way(key) == "placeholder"}

    def to_json(self) -> dict[str, Any]:
        """The form that is stored and printed. Ratios are of samples per second, above 1 when faster."""
        best, score = self.best, search.score_of(self.best.runs) if self.best else search.speed
        units = [run.unit for run in best.runs if run.counts] if best else []
        return {
            "schema": 1, "kind": "auto", "start": dict(self.begun),
            "diagnoses": [{"verdict": seen.verdict, "also": list(seen.also), "reason": seen.reason}
                          for seen in self.seen],
            "changes": [change.to_json() for change in self.changes],
            "unit": "steps/s" if score is search.pace or not units else f"{units[0]}/s",
            "best": {"point": dict(self.point), "label": label(self.used) or "as it is",
                     "rate": interval(best.band if best else None),
                     "memory_bytes": best.memory if best else None,
                     "energy_j": best.energy if best else None, "gain": interval(self.gain),
                     "command": self.subject.command(self.used),
                     "in_code": self.subject.in_code(self.used)} if self.point else None,
            "interrupted": self.interrupted, "notes": self._notes(),
        }

    def _notes(self) -> list[str]:
        notes = ["Interrupted: this is what was found by then"] if self.interrupted else []
        if self.failure:
            notes.append(f"Ended early: {self.failure}")
        if any(change.kept and "batch" in change.key for change in self.changes):
            notes.append("Another batch size trains differently: the learning rate may have to follow, and "
                         "the loss is to be compared")
        if not self.changes and not self.interrupted:
            notes.append("Nothing was tried: what the diagnosis names is no setting of the loader or the "
                         "batch that can be changed here")
        if self.best and search.score_of(self.best.runs) is search.pace:
            notes.append("The samples of a step are not known: steps per second were compared, which say "
                         "nothing where the batch changes")
        return notes
