"""What the steady steps cost: times, stages, throughput, and the whole run beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from profiler.analysis.series import BoolArray, FloatArray, IntArray
from profiler.analysis.stalls import find_stalls
from profiler.analysis.steady import WINDOW, Steady
from profiler.analysis.steps import Steps
from profiler.model import STAGES, STEP_EPOCH_FIRST


@dataclass(frozen=True)
class Spread:
    """Step times in ns. No percentiles below 10 steps: the range instead."""

    median: float
    mean: float
    p5: float | None
    p95: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Epochs:
    """First steps of epochs. `later`: those after the run's own first step. Times are of their data wait."""

    later: int
    first_wait_ns: float | None  # of the run's first step
    later_wait_ns: float  # mean of the later ones
    excess_ns: float  # above the usual wait, sum over the later ones


@dataclass(frozen=True)
class StepSummary:
    """Times in ns. `None` where nothing was measured.

    `step_ns` is the mean of the steady steps without rare stalls, `stages` are the
    means of the same steps and sum to it. It is what shares and predictions refer to:
    where batches come in bursts the median step shows no wait at all.
    `device` and `lag` are means of the same steps, `exposed` is the mean of
    max(0, data wait - lag at its start).
    """

    steady: int
    total: int  # steps that the loop made, the last one too
    spread: Spread
    step_ns: float
    stages: Mapping[str, float]
    device: Mapping[str, float]
    lag: Mapping[str, float]
    exposed: float | None
    data_cpu: float | None
    thread_cpu: float | None
    syncs: float | None
    sync: float | None
    waits: FloatArray  # data wait of the typical steps
    unit: str  # samples or tokens
    throughput: float | None  # of them per second over the steady steps
    batch: float | None  # of them per step
    whole_throughput: float | None
    whole_ns: float  # from the first training step's start to the last one's end
    stalls: BoolArray  # [steady] which steps are rare stalls
    stall_ns: float  # what they take above the median, in sum
    recurring: BoolArray  # [steady] which steps are stalls that recur: they count in all means
    recurring_ns: Mapping[str, float]  # what those add to the mean step, by stage, above other steps
    every: float | None  # steps from one of those to the next
    epochs: Epochs
    earlier_ns: float = 0.0  # the time of earlier steps that are counted in `total` and not looked at


def spread(wall: FloatArray | IntArray) -> Spread:
    """Of at least one step."""
    enough = len(wall) >= WINDOW
    p5, p95 = np.percentile(wall, (5, 95)) if enough else (None, None)
    return Spread(float(np.median(wall)), float(wall.mean()), None if p5 is None else float(p5),
                  None if p95 is None else float(p95), float(wall.min()), float(wall.max()))


def summarise(steps: Steps, steady: Steady, on_device: bool) -> StepSummary | None:
    """None when no step is steady. `on_device`: the loop's work runs on an accelerator."""
    picked = steps.select(steady.mask)
    if not len(picked):
        return None
    wall = picked.wall.astype(np.float64)
    found = find_stalls(wall, picked.index)
    stalls = found.left_out
    usual = picked.select(~stalls)
    loop = steps.select(steps.training if steady.kind == "training" else np.ones(len(steps), bool))
    stages = {stage: float(usual.stages[stage].mean()) for stage in STAGES}
    lag = _means(usual.lag)
    waits = usual.stages["data"].astype(np.float64)
    samples = picked.extras["samples"]
    whole_ns = float(loop.t1_ns[-1] - loop.t0_ns[0])
    return StepSummary(
        steady=len(picked), total=int(steps.counted.sum()) or len(loop),
        spread=spread(wall), step_ns=float(usual.wall.mean()),
        stages=stages, device=_means(usual.device), lag=lag, exposed=_exposed(usual, on_device),
        data_cpu=_mean(usual.extras["data_cpu"]), thread_cpu=_mean(usual.extras["thread_cpu"]),
        syncs=_mean(usual.extras["syncs"]), sync=_mean(usual.extras["sync"]), waits=waits,
        unit=picked.unit, throughput=rate(samples, float(wall.sum())), batch=_mean(samples),
        whole_throughput=rate(loop.extras["samples"], whole_ns), whole_ns=whole_ns, stalls=stalls,
        stall_ns=float((wall[stalls] - np.median(wall)).sum()),
        recurring=found.recurring, recurring_ns=_excess(picked, found.recurring), every=found.every,
        epochs=_epochs(loop, float(np.median(waits))),
    )


def _excess(steps: Steps, stalls: BoolArray) -> dict[str, float]:
    if not stalls.any():
        return dict.fromkeys(STAGES, 0.0)
    return {stage: float((ns[stalls].mean() - ns[~stalls].mean()) * stalls.mean())
            for stage, ns in steps.stages.items()}


def rate(samples: FloatArray, wall_ns: float) -> float | None:
    """Total work over total time, per second. None when a step's work is not known."""
    if not len(samples) or wall_ns <= 0 or np.isnan(samples).any():
        return None
    total = float(samples.sum())
    return total / (wall_ns / 1e9) if total > 0 else None


def _exposed(steps: Steps, on_device: bool) -> float | None:
    wait = steps.stages["data"].astype(np.float64)
    if not on_device:
        return float(wait.mean())
    known = ~np.isnan(steps.lag["data"])
    if not known.any():
        return None
    return float(np.maximum(0.0, wait[known] - steps.lag["data"][known]).mean())


def _epochs(loop: Steps, usual_wait: float) -> Epochs:
    first = np.flatnonzero(loop.flags & STEP_EPOCH_FIRST)
    waits = loop.stages["data"][first].astype(np.float64)
    own = len(first) > 0 and first[0] == 0
    later = waits[1:] if own else waits
    return Epochs(len(later), float(waits[0]) if own else None,
                  float(later.mean()) if len(later) else 0.0,
                  float(np.maximum(0.0, later - usual_wait).sum()))


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _means(group: Mapping[str, FloatArray]) -> dict[str, float]:
    return {name: mean for name, values in group.items() if (mean := _mean(values)) is not None}
