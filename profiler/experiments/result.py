"""What the pairs of an experiment measured, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from profiler.experiments.arm import Arm
from profiler.experiments.loss import Parity, compare
from profiler.experiments.plan import Plan
from profiler.experiments.statistics import ENOUGH, FAILS, FEWEST, Ratio, outcome, ratio_of, score
from profiler.model import STAGES
from profiler.units import format_ms

APART = 0.05  # mean and median tell different stories
OTHER_SIZE = 0.02  # from which on steps of A and B hold different amounts of work
CROWDED = 0.2  # share of the cores that others keep busy, worth telling
OTHER_WORK = Parity("not compared", why="steps differ in size, and the same step is of different work")
SIDES = {"a": "before", "b": "with the remedy"}


@dataclass(frozen=True)
class Pair:
    """One recording of each. `order`: "ab" or "ba". It counts when neither failed or is marked.

    A side that failed is None, with its reason in `failure`; so is the one that was not
    recorded because the first of the two had failed.
    """

    order: str
    a: Arm | None
    b: Arm | None
    failure: str = ""
    failed: str = ""  # the side: a or b

    @property
    def unit(self) -> str:
        """What a ratio is of: request where requests are answered, sample where steps differ in size."""
        if self.a is None or self.b is None:
            return "step"
        if self.a.latency_ms and self.b.latency_ms:
            return "request"
        if self.a.batch and self.b.batch and abs(self.a.batch / self.b.batch - 1) > OTHER_SIZE:
            return "sample"
        return "step"

    @property
    def ratio(self) -> float | None:
        """Time of A over time of B, for a step, request or sample. None without both."""
        if self.a is None or self.b is None:
            return None
        before, after = self.a.step_ms, self.b.step_ms
        if self.a.latency_ms and self.b.latency_ms:
            before, after = self.a.latency_ms, self.b.latency_ms
        elif self.unit == "sample" and self.a.batch and self.b.batch:
            before, after = before / self.a.batch, after / self.b.batch
        return before / after

    @property
    def counts(self) -> bool:
        return self.both is not None and not any(arm.marks for arm in self.both)

    @property
    def both(self) -> tuple[Arm, Arm] | None:
        return (self.a, self.b) if self.a is not None and self.b is not None else None

    def marks(self, side: str) -> list[str]:
        """Why this side keeps the pair from counting."""
        if self.failed == side:
            return [self.failure]
        arm = self.a if side == "a" else self.b
        return list(arm.marks) if arm is not None else []

    def to_json(self) -> dict[str, Any]:
        return {"order": self.order, "ratio": self.ratio, "counts": self.counts,
                **{side: arm.to_json() if arm is not None else {"step_ms": None, "marks": self.marks(side)}
                   for side, arm in (("a", self.a), ("b", self.b))}}


@dataclass(frozen=True)
class Result:
    """What was measured. With `interrupted` or a `failure` it is what there was by then."""

    plan: Plan
    pairs: tuple[Pair, ...]
    wall_s: float
    interrupted: bool = False
    failure: str = ""
    ratio: Ratio | None = field(init=False)
    parity: Parity = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", ratio_of(ratios(self.pairs)))
        good = self.good
        parity = compare([a.losses for a, _ in good], [b.losses for _, b in good],
                         good[0][0].told if good else "loss")
        object.__setattr__(self, "parity", OTHER_WORK if self.unit == "sample" else parity)

    @property
    def good(self) -> list[tuple[Arm, Arm]]:
        """The arms of the pairs that count."""
        return [pair.both for pair in self.pairs if pair.counts and pair.both is not None]

    @property
    def unit(self) -> str:
        """step, request or sample: what the ratio is of."""
        return next((pair.unit for pair in self.pairs if pair.counts), "step")

    @property
    def outcome(self) -> str:
        """As of the ratio; where B failed each time that it was tried, and A did not, that it fails."""
        worked = any(pair.b is not None for pair in self.pairs)
        failed = sum(pair.failed == "b" for pair in self.pairs)
        if failed > 1 and not worked and any(pair.a is not None for pair in self.pairs):
            return FAILS
        return outcome(self.ratio)

    @property
    def score(self) -> str:
        """Of the prediction, which is about steps: a latency says nothing of it."""
        return "not scored" if self.unit == "request" else score(self.plan.prediction, self.ratio)

    def to_json(self) -> dict[str, Any]:
        """The form that is stored and printed. Times in ms, speedups as ratios above 1 when faster."""
        finding, prediction, ratio, good = self.plan.finding, self.plan.prediction, self.ratio, self.good
        return {
            "schema": 1, "kind": "verify",
            "finding": {"rule": finding.rule, "title": finding.title} if finding else None,
            "remedy": self.plan.remedy.to_json(),
            "prediction": {"scenario": prediction.scenario, "speedup": prediction.speedup,
                           "low": prediction.low, "high": prediction.high, "at_most": prediction.at_most}
            if prediction else None,
            "ratio": {"median": ratio.median, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs,
                      "coverage": ratio.coverage} if ratio else None,
            "unit": self.unit, "pairs": [pair.to_json() for pair in self.pairs],
            "outcome": self.outcome, "score": self.score, "reason": self._reason(),
            "step_ms": _sides(good, lambda arm: arm.step_ms),
            "stages_ms": {side: {name: _mean([arms[k].stages_ms[name] for arms in good]) for name in STAGES}
                          for k, side in enumerate("ab")} if good else None,
            "change_ms": _changes(good), "throughput": _rates(good),
            "batch": _sides(good, lambda arm: arm.batch),
            "latency_ms": _sides(good, lambda arm: arm.latency_ms), "loss": asdict(self.parity),
            "left_out": [{"pair": k, "side": side, "why": why} for k, pair in enumerate(self.pairs, 1)
                         for side in "ab" if (why := pair.marks(side))],
            "expected_s": {"a": self.plan.expected_s("a"), "b": self.plan.expected_s("b"),
                           "least": self.plan.budget_s(FEWEST), "most": self.plan.budget_s(self.plan.pairs)},
            "steps": self.plan.steps, "wall_s": self.wall_s, "interrupted": self.interrupted,
            "notes": list(self._notes()),
        }

    def _reason(self) -> str:
        """Why there is no ratio; "" with one."""
        if self.ratio is not None:
            return ""
        why = next((pair.failure for pair in reversed(self.pairs) if pair.failed == "b"), "")
        if self.outcome == FAILS:
            return f"with the remedy {why}"
        return "no pair counts"

    def _notes(self) -> list[str]:
        notes = list(self.plan.notes)
        if self.interrupted:
            notes.append("Interrupted: this is what was measured by then")
        if self.failure:
            notes.append(f"Ended early: {self.failure}")
        if self.ratio is not None and FEWEST <= self.ratio.pairs < ENOUGH:
            notes.append(f"The interval of {self.ratio.pairs} pairs is their range, which holds the true "
                         f"ratio in {100 * self.ratio.coverage:.0f} of 100 cases, not 95")
        others = _mean([arm.others for pair in self.good for arm in pair])
        if others is not None and others > CROWDED:
            notes.append(f"Other programs kept {100 * others:.0f} % of the cores busy: "
                         "pairs differ less on a quiet machine")
        if self.unit == "request":
            return [*notes, "The ratio is of the latency of the median request, which no prediction is about"]
        if self.unit == "sample":
            notes.append("Steps differ in size: the ratio is of the time for a sample")
        if self.plan.of_epochs:
            return [*notes, "Step times are means over all steps after the first, epoch starts included"]
        return [*notes, *self._bursts()]

    def _bursts(self) -> list[str]:
        found = []
        for k, side in enumerate("ab"):
            arms = [arms[k] for arms in self.good]
            mean, median = _mean([arm.step_ms for arm in arms]), _mean([arm.median_ms for arm in arms])
            if mean and median and abs(mean - median) > APART * median:
                found.append(f"Steps come in bursts {SIDES[side]}: median {format_ms(1e6 * median)}, "
                             f"mean {format_ms(1e6 * mean)}; the ratio is of means")
        return found


def ratios(pairs: tuple[Pair, ...] | list[Pair]) -> list[float]:
    """Of the pairs that count."""
    return [pair.ratio for pair in pairs if pair.counts and pair.ratio is not None]


Good = list[tuple[Arm, Arm]]


def _sides(good: Good, value: Callable[[Arm], float | None]) -> dict[str, float | None] | None:
    if not good:
        return None
    return {"a": _mean([value(a) for a, _ in good]), "b": _mean([value(b) for _, b in good])}


def _rates(good: Good) -> dict[str, Any] | None:
    """All work over all time, where recordings have as many steps: the mean is of the time for a sample."""
    times = _sides(good, lambda arm: 1 / arm.throughput if arm.throughput else None)
    return {**{side: 1 / time if time else None for side, time in times.items()},
            "unit": f"{good[0][0].work}/s"} if times else None


def _changes(good: Good) -> dict[str, float | None] | None:
    """What the remedy adds to each stage and to the step, in ms: below 0 where it saves."""
    if not good:
        return None
    changes = {name: _mean([b.stages_ms[name] - a.stages_ms[name] for a, b in good]) for name in STAGES}
    return {**changes, "step": _mean([b.step_ms - a.step_ms for a, b in good])}


def _mean(values: list[Any]) -> float | None:
    """Over pairs. A mean, so that stages sum to the step; the ratio is a median."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
