"""Which points are run next, and which are given up. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from profiler.experiments.statistics import FASTER, decided
from profiler.experiments.sweep.measure import FOR_GOOD, Measured

EXTRA = 1  # runs of a point in the place of those that were marked
# A point whose best run, times this, stays below the leader's worst is given up: after one run each only
# by FAR, later by CLEARLY, or by the widest distance between two runs of one point where that is more.
CLEARLY, FAR = 1.25, 2.0
CRASHES = 2  # a point that crashed so often is given up

T = TypeVar("T")
Runs = Mapping[T, Sequence[Measured]]
Score = Callable[[Measured], float | None]


def speed(run: Measured) -> float | None:
    """Samples per second."""
    return run.rate


def pace(run: Measured) -> float | None:
    """Steps per second, where samples are not known."""
    return 1e3 / run.step_ms if run.step_ms else None


def score_of(runs: Sequence[Measured]) -> Score:
    """Samples per second where every run that counts tells them, else steps per second."""
    return speed if all(run.rate is not None for run in runs if run.counts) else pace


def failed(runs: Sequence[Measured]) -> str:
    """Why a point is not run again after its failures; "" when it is."""
    for run in runs:
        if run.failure in FOR_GOOD:
            return run.trouble
    crashes = [run for run in runs if run.failure]
    return crashes[-1].trouble if len(crashes) >= CRASHES else ""


def over(runs: Sequence[Measured], most: float | None) -> bool:
    """Whether a run needed more memory than `most` bytes."""
    return most is not None and any(run.memory is not None and run.memory > most for run in runs)


def hopeless(scores: Mapping[T, Sequence[float]]) -> set[T]:
    """Points whose best so far is clearly below all that the leader reached.

    The leader is the one with the highest worst score. A point without any score is not judged.
    """
    known = {point: values for point, values in scores.items() if values}
    leader = max((min(values) for values in known.values()), default=0.0)
    noise = max((max(values) / min(values) for values in known.values() if min(values) > 0), default=1.0)
    return {point for point, values in known.items()
            if max(values) * (FAR if len(values) < 2 else max(CLEARLY, noise)) < leader}


def paired(mine: Sequence[Measured], other: Sequence[Measured], score: Score) -> list[float]:
    """Score of one point over another's for each round in which both count."""
    values = [(score(a), score(b)) for a, b in zip(mine, other, strict=False) if a.counts and b.counts]
    return [a / b for a, b in values if a and b]


def settled(ratios: Sequence[float]) -> bool:
    """Whether more pairs cannot change whether it is an improvement: it is decided, or one was no faster.

    The interval of fewer than eight pairs is their range, so that one that is not faster decides.
    """
    return decided(ratios) or any(ratio <= FASTER for ratio in ratios)


def given_up(runs: Mapping[T, Sequence[Measured]], most: float | None, repeats: int,
             held: T | None = None) -> dict[T, str]:
    """Points that are not run again, with the reason. Hopeless ones only between rounds.

    `held`: what the others are compared with; only failures end it.
    """
    out: dict[T, str] = {}
    for point, own in runs.items():
        if why := failed(own):
            out[point] = why
        elif point != held and over(own, most):
            out[point] = "needs more memory than allowed"
    rest = {point: own for point, own in runs.items() if point not in out}
    if rest and all(rest.values()):
        score = score_of([run for own in rest.values() for run in own])
        told = {point: [value for run in own if run.counts and (value := score(run)) is not None]
                for point, own in rest.items()}
        behind = [point for point in hopeless(told) if point != held and len(runs[point]) < repeats]
        out |= dict.fromkeys(behind, "clearly below the leader")
    return out


def due(runs: Mapping[T, Sequence[Measured]], repeats: int, out: Mapping[T, str], seed: str) -> list[T]:
    """The next round: points with the fewest runs that need more, in an order by chance.

    Two points alternate instead: A B, B A. Empty when all is done.
    """
    def wants(own: Sequence[Measured]) -> bool:
        counted = sum(run.counts for run in own)
        return len(own) < repeats or (counted < repeats and len(own) < repeats + EXTRA)

    wanting = [point for point, own in runs.items() if point not in out and wants(own)]
    fewest = min((len(runs[point]) for point in wanting), default=0)
    chosen = [point for point in wanting if len(runs[point]) == fewest]
    if len(runs) == 2:
        return chosen[::-1] if fewest % 2 else chosen
    random.Random(f"{seed} {fewest}").shuffle(chosen)
    return chosen


def front(costs: Mapping[T, Sequence[float | None]]) -> set[T]:
    """The Pareto front: points that no other beats in one figure without losing in another.

    Each figure is better when larger. One that any point lacks is left out of the comparison.
    """
    if not costs:
        return set()
    width = min(map(len, costs.values()))
    used = [k for k in range(width) if all(values[k] is not None for values in costs.values())]
    told = {point: tuple(float(values[k] or 0.0) for k in used) for point, values in costs.items()}

    def beaten(mine: tuple[float, ...]) -> bool:
        return any(all(a >= b for a, b in zip(other, mine)) and other != mine for other in told.values())

    return {point for point, mine in told.items() if not beaten(mine)}
