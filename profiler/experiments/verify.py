"""Test a finding: pairs of recordings without and with its remedy, until their ratio is decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from profiler.errors import TargetError, UsageError
from profiler.experiments.arm import Arm, read_arm
from profiler.experiments.loss import Parity, compare
from profiler.experiments.plan import Plan
from profiler.experiments.statistics import (
    BOOTSTRAP_FROM,
    FEWEST,
    Ratio,
    outcome,
    ratio_of,
    score,
)
from profiler.model import STAGES

EXTRA_PAIRS = 2  # in the place of pairs that were left out
APART = 0.05  # mean and median tell different stories


@dataclass(frozen=True)
class Pair:
    """One recording of each. `order`: "ab" or "ba". It counts when neither is marked."""

    order: str
    a: Arm
    b: Arm

    @property
    def ratio(self) -> float:
        return self.a.step_ms / self.b.step_ms

    @property
    def counts(self) -> bool:
        return not self.a.marks and not self.b.marks

    def to_json(self) -> dict[str, Any]:
        return {"order": self.order, "ratio": self.ratio, "counts": self.counts,
                "a": self.a.to_json(), "b": self.b.to_json()}


@dataclass
class Listener:
    """Who is told while it runs: `tick(done in s, of so many, text)`, `pair(pair, its number)`."""

    tick: Callable[[float, float, str], None] = lambda done, total, text: None
    pair: Callable[[Pair, int], None] = lambda pair, number: None


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
        good = [pair for pair in self.pairs if pair.counts]
        object.__setattr__(self, "ratio", ratio_of([pair.ratio for pair in good]))
        object.__setattr__(self, "parity", compare([p.a.losses for p in good], [p.b.losses for p in good]))

    def to_json(self) -> dict[str, Any]:
        """The form that is stored and printed. Times in ms, speedups as ratios above 1 when faster."""
        finding, prediction, ratio = self.plan.finding, self.plan.prediction, self.ratio
        good = [pair for pair in self.pairs if pair.counts]
        return {
            "schema": 1, "kind": "verify", "finding": {"rule": finding.rule, "title": finding.title},
            "remedy": self.plan.remedy.to_json(),
            "prediction": {"scenario": prediction.scenario, "speedup": prediction.speedup,
                           "low": prediction.low, "high": prediction.high, "at_most": prediction.at_most}
            if prediction else None,
            "ratio": {"median": ratio.median, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs,
                      "coverage": ratio.coverage} if ratio else None,
            "pairs": [pair.to_json() for pair in self.pairs],
            "outcome": outcome(ratio), "score": score(prediction, ratio),
            "step_ms": _sides(good, lambda arm: arm.step_ms),
            "stages_ms": {side: {name: _mean([(p.a if side == "a" else p.b).stages_ms[name] for p in good])
                                 for name in STAGES} for side in "ab"} if good else None,
            "change_ms": _changes(good), "throughput": _sides(good, lambda arm: arm.throughput),
            "loss": asdict(self.parity),
            "left_out": [{"pair": k, "side": side, "why": list(arm.marks)}
                         for k, pair in enumerate(self.pairs, 1)
                         for side, arm in (("a", pair.a), ("b", pair.b)) if arm.marks],
            "expected_s": {"a": self.plan.expected_s("a"), "b": self.plan.expected_s("b"),
                           "least": self.plan.budget_s(FEWEST), "most": self.plan.budget_s(self.plan.pairs)},
            "steps": self.plan.steps, "wall_s": self.wall_s, "interrupted": self.interrupted,
            "notes": list(self._notes(good)),
        }

    def _notes(self, good: list[Pair]) -> list[str]:
        notes = list(self.plan.notes)
        if self.interrupted:
            notes.append("Interrupted: this is what was measured by then")
        if self.failure:
            notes.append(f"Ended early: {self.failure}")
        if self.ratio is not None and FEWEST <= self.ratio.pairs < BOOTSTRAP_FROM:
            notes.append(f"The interval of {self.ratio.pairs} pairs is their range, which holds the true "
                         f"ratio in {100 * self.ratio.coverage:.0f} of 100 cases, not 95")
        if self.plan.of_epochs:
            notes.append("Step times are means over all steps after the first, epoch starts included")
            return notes
        for side, name in (("a", "before"), ("b", "with the remedy")):
            arms = [pair.a if side == "a" else pair.b for pair in good]
            mean, median = _mean([arm.step_ms for arm in arms]), _mean([arm.median_ms for arm in arms])
            if mean and median and abs(mean - median) > APART * median:
                notes.append(f"Steps come in bursts {name}: median {median:.1f} ms, mean {mean:.1f} ms; "
                             "the ratio is of means")
        return notes


def verify(plan: Plan, folder: Path, listener: Listener) -> Result:
    """Run pairs, A B, B A, ..., into run files in `folder`.

    Ends when the interval is decided with at least three pairs, when all pairs are done,
    or by KeyboardInterrupt: then what was measured is the result. TargetError when the
    first pair fails, UsageError when the remedy has no effect on the loader.
    """
    begin = time.monotonic()
    pairs: list[Pair] = []
    interrupted, failure = False, ""
    try:
        while _goes_on(plan, pairs):
            pairs.append(_pair(plan, folder, len(pairs), listener, begin))
            listener.pair(pairs[-1], len(pairs))
    except KeyboardInterrupt:
        interrupted = True
    except TargetError as error:
        if not pairs:
            raise
        failure = error.message
    return Result(plan, tuple(pairs), time.monotonic() - begin, interrupted, failure)


def _goes_on(plan: Plan, pairs: list[Pair]) -> bool:
    ratio = ratio_of([pair.ratio for pair in pairs if pair.counts])
    count = ratio.pairs if ratio else 0
    if count >= plan.pairs or len(pairs) >= plan.pairs + EXTRA_PAIRS:
        return False
    return not (ratio and ratio.pairs >= FEWEST and ratio.decided)


def _pair(plan: Plan, folder: Path, number: int, listener: Listener, begin: float) -> Pair:
    order = "ba" if number % 2 else "ab"
    arms: dict[str, Arm] = {}
    for k, arm in enumerate(order):
        text = f"pair {number + 1} of at most {plan.pairs}, {'without' if arm == 'a' else 'with'} the remedy"
        done = plan.budget_s(number) + (plan.expected_s(order[0]) if k else 0.0)

        def tick(seconds: float, done: float = done, text: str = text, arm: str = arm) -> None:
            listener.tick(done + min(seconds, plan.expected_s(arm)), plan.budget_s(plan.pairs), text)

        arms[arm] = _record(plan, arm, folder / f"{number + 1}{arm}.stepscope", tick)
    return Pair(order, arms["a"], arms["b"])


def _record(plan: Plan, arm: str, output: Path, tick: Callable[[float], None]) -> Arm:
    plan.program.record(
        output, limit_s=max(60.0, 10 * plan.expected_s(arm)), steps=plan.steps,
        name=f"verify {arm.upper()}", intervene=plan.intervene(arm), tick=tick)
    measured = read_arm(output, plan.of_epochs)
    if arm == "b":
        check_applied(plan, measured.loader)
    return measured


def check_applied(plan: Plan, loader: Mapping[str, Any]) -> None:
    """UsageError unless the loader of a recording had the remedy's setting."""
    setting, wanted = plan.remedy.setting, plan.remedy.after
    if loader.get(setting) != wanted:
        raise UsageError(f"the loader did not take {setting}={wanted}, it had {loader.get(setting)}",
                         "The program sets it after making its loader: change it there, then record again")


def _sides(good: list[Pair], value: Callable[[Arm], float | None]) -> dict[str, float | None] | None:
    if not good:
        return None
    return {"a": _mean([value(pair.a) for pair in good]), "b": _mean([value(pair.b) for pair in good])}


def _changes(good: list[Pair]) -> dict[str, float | None] | None:
    """What the remedy adds to each stage and to the step, in ms: below 0 where it saves."""
    if not good:
        return None
    changes = {name: _mean([pair.b.stages_ms[name] - pair.a.stages_ms[name] for pair in good])
               for name in STAGES}
    return {**changes, "step": _mean([pair.b.step_ms - pair.a.step_ms for pair in good])}


def _mean(values: list[Any]) -> float | None:
    """Over pairs. A mean, so that stages sum to the step; the ratio is a median."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
