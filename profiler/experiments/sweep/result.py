"""What a sweep found: each point with its noise band, the best, the Pareto front. Definitions, section 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from profiler.experiments.statistics import FEWEST, NO_DIFFERENCE, Ratio, outcome, ratio_of
from profiler.experiments.sweep import search
from profiler.experiments.sweep.journal import identity
from profiler.experiments.sweep.measure import Measured
from profiler.experiments.sweep.points import label
from profiler.experiments.sweep.subject import Point, Subject
from profiler.model import STAGES

BEST, MEASURED, OVER, FAILED, NOTHING = "best", "measured", "over the memory limit", "failed", "not measured"


@dataclass(frozen=True)
class Standing:
    """A point and its runs. `band`: of its score over the runs that count; None without any.

    `given_up`: why it was not run to the end, "" when it was.
    """

    point: Point
    runs: tuple[Measured, ...]
    band: Ratio | None
    given_up: str = ""
    over: bool = False

    @property
    def counted(self) -> list[Measured]:
        return [run for run in self.runs if run.counts]

    @property
    def memory(self) -> float | None:
        """Bytes at the peak, the largest of the runs."""
        return max((run.memory for run in self.runs if run.memory is not None), default=None)

    @property
    def energy(self) -> float | None:
        """J per sample, the median of the runs; None unless each tells it."""
        told = [run.energy for run in self.counted]
        return float(np.median([e for e in told if e is not None])) if told and None not in told else None

    @property
    def step_ms(self) -> float | None:
        told = [run.step_ms for run in self.counted if run.step_ms is not None]
        return float(np.median(told)) if told else None

    @property
    def state(self) -> str:
        if self.over:
            return OVER
        if self.band is not None:
            return MEASURED
        return FAILED if any(run.failure for run in self.runs) else NOTHING


def standing(point: Point, runs: Sequence[Measured], score: search.Score, given_up: str = "",
             most_memory: float | None = None) -> Standing:
    """A point with the noise band of its score."""
    values = [value for run in runs if run.counts and (value := score(run)) is not None]
    return Standing(point, tuple(runs), ratio_of(values), given_up, search.over(runs, most_memory))


def compared(mine: Standing, other: Standing, score: search.Score) -> Ratio | None:
    """The score of one point over another's, in pairs of the same round; None without a common round."""
    return ratio_of(search.paired(mine.runs, other.runs, score))


def verdict(mine: Standing, other: Standing, ratio: Ratio | None) -> str:
    """improvement, regression, no difference shown, unfinished: of `mine` against `other`.

    Where noise bands overlap no difference is shown, whatever the pairs say.
    """
    told = outcome(ratio)
    if mine.band and other.band and ratio and ratio.pairs >= FEWEST and _overlap(mine.band, other.band):
        return NO_DIFFERENCE
    return told


def _overlap(a: Ratio, b: Ratio) -> bool:
    return a.low <= b.high and b.low <= a.high


@dataclass(frozen=True)
class Sweep:
    """A finished or interrupted sweep. `runs` and `given_up` go by the identity of a point.

    `skipped`: points that cannot be, with the reason.
    """

    subject: Subject
    runs: Mapping[str, Sequence[Measured]]
    points: tuple[Point, ...]
    skipped: tuple[tuple[Point, str], ...] = ()
    given_up: Mapping[str, str] = field(default_factory=dict)
    most_memory: float | None = None
    steps: int = 0
    repeats: int = 0
    wall_s: float = 0.0
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    @cached_property
    def every(self) -> list[Measured]:
        return [run for own in self.runs.values() for run in own]

    @cached_property
    def score(self) -> search.Score:
        return search.score_of(self.every)

    @property
    def unit(self) -> str:
        """Of the score: samples/s, tokens/s or steps/s."""
        if self.score is search.pace:
            return "steps/s"
        return f"{next((run.unit for run in self.every if run.counts), 'samples')}/s"

    @cached_property
    def standings(self) -> list[Standing]:
        """In the order of the points."""
        return [standing(point, self.runs.get(identity(point), ()), self.score,
                         self.given_up.get(identity(point), ""), self.most_memory) for point in self.points]

    @cached_property
    def best(self) -> Standing | None:
        """The highest median among points that came to an end and keep to the memory limit."""
        able = [s for s in self.standings if s.state == MEASURED and not search.failed(s.runs)]
        return max(able, key=lambda s: s.band.median if s.band else 0.0, default=None)

    @cached_property
    def front(self) -> set[str]:
        """Identities of the points on the Pareto front of score, memory and energy."""
        able = [s for s in self.standings if s.state == MEASURED and s.band]
        return search.front({
            identity(s.point): (s.band.median if s.band else None, None if s.memory is None else -s.memory,
                             None if s.energy is None else -s.energy) for s in able})

    def against_best(self, standing: Standing) -> tuple[Ratio | None, str]:
        """The ratio of a point's score to the best one's, and what it shows."""
        if self.best is None or standing is self.best or standing.band is None:
            return None, ""
        ratio = compared(standing, self.best, self.score)
        return ratio, verdict(standing, self.best, ratio)

    def as_good(self) -> list[Standing]:
        """Points of which no difference to the best was shown."""
        return [s for s in self.standings if s.state == MEASURED and self.against_best(s)[1] == NO_DIFFERENCE]

    def to_json(self) -> dict[str, Any]:
        """The form that is stored and printed. Rates in `unit`, times in ms and s, memory in bytes."""
        best = self.best
        return {
            "schema": 1, "kind": "sweep", "keys": list(self.subject.keys), "unit": self.unit,
            "points": [self._standing(s) for s in self.standings],
            "skipped": [{"point": dict(point), "label": label(point), "why": why}
                        for point, why in self.skipped],
            "best": {"point": dict(best.point), "label": label(best.point),
                     "as_good": [label(s.point) for s in self.as_good()],
                     "command": self.subject.command(best.point), "in_code": self.subject.in_code(best.point)}
            if best else None,
            "pareto": [label(s.point) for s in self.standings if identity(s.point) in self.front],
            "memory_of": next((run.memory_of for run in self.every if run.memory_of), ""),
            "max_memory": self.most_memory, "steps": self.steps, "repeats": self.repeats,
            "wall_s": self.wall_s, "interrupted": self.interrupted, "notes": self._notes(),
        }

    def _standing(self, s: Standing) -> dict[str, Any]:
        ratio, told = self.against_best(s)
        stages = [run.stages_ms for run in s.counted]
        return {
            "point": dict(s.point), "label": label(s.point),
            "state": BEST if s is self.best else s.state, "given_up": s.given_up, "rate": interval(s.band),
            "against_best": interval(ratio), "outcome": told, "step_ms": s.step_ms,
            "stages_ms": {name: float(np.mean([own[name] for own in stages])) for name in STAGES}
            if stages else None,
            "memory_bytes": s.memory, "energy_j": s.energy, "pareto": identity(s.point) in self.front,
            "runs": [run.to_json() for run in s.runs],
            "left_out": [{"run": k, "why": run.trouble} for k, run in enumerate(s.runs, 1) if not run.counts],
        }

    def _notes(self) -> list[str]:
        notes = list(self.notes)
        if self.interrupted:
            notes.append("Interrupted: this is what was measured by then")
        if self.score is search.pace and any(run.counts for run in self.every):
            notes.append("The samples of a step are not known: steps per second compare points of the same "
                         "batch only")
        if self.most_memory is not None and any(s.band and s.memory is None for s in self.standings):
            notes.append("Of some points no memory was measured: the limit could not be held against them")
        if self.best and self.best.band:
            band = self.best.band
            if band.pairs == 1:
                notes.append("The best point was run once: it has no noise band")
            elif band.coverage < 0.949:
                notes.append(f"A noise band of {band.pairs} runs holds the true median in "
                             f"{100 * band.coverage:.0f} of 100 cases, not 95")
        return notes


def interval(told: Ratio | None) -> dict[str, Any] | None:
    """The JSON form of a median with its interval."""
    return {"median": told.median, "low": told.low, "high": told.high, "runs": told.pairs,
            "coverage": told.coverage} if told else None
