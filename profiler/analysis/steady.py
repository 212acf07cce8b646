"""Which steps speak for the run: after the warm-up, and none with a known reason to differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from profiler.analysis.series import BoolArray, IntArray, overlaps
from profiler.analysis.steps import Steps
from profiler.model import STEP_EPOCH_FIRST, STEP_EVALUATION, STEP_PARTIAL, STEP_PROFILED

WINDOW = 10  # steps of the running median
CHANGE = 0.05  # between one window and the next
LATEST = 50  # step at which warm-up ends in any case
FEWEST = 3  # steady steps that carry a claim


@dataclass(frozen=True)
class Steady:
    """`mask` picks the steady steps of `kind` (training, or evaluation where the run has nothing else).

    `warm_up` steps lie before `warm_up_end_ns`; `settled` is false when the step time
    had not settled by the end of the run. `left_out` counts the others by reason.
    """

    kind: str
    mask: BoolArray
    warm_up: int
    warm_up_end_ns: int | None
    settled: bool
    left_out: Mapping[str, int]


def warm_up(wall: IntArray) -> tuple[int, bool]:
    """How many steps the warm-up takes, and whether the step time settled.

    It ends at the first step k from which the medians of two windows in a row, of ten
    steps each, differ by less than 5 %; at step 50 at the latest. Where fewer steps
    follow, windows shrink down to three steps. A run that ends before it has settled
    counts its second half.
    """
    n = len(wall)
    for k in range(min(n, LATEST)):
        width = min(WINDOW, (n - k) // 2)
        if width < FEWEST:
            break
        first = float(np.median(wall[k:k + width]))
        following = float(np.median(wall[k + width:k + 2 * width]))
        if abs(following - first) < CHANGE * first:
            # The median passes over the slow first steps of its own window.
            while k < min(n, LATEST) and wall[k] > 1.25 * first:
                k += 1
            return k, True
    return (LATEST, True) if n > LATEST + FEWEST else (n // 2, False)


def cpu_with_and_without(steps: Steps, found: Steady) -> tuple[float, float] | None:
    """Median ns that the loop's thread runs in a step inside a profiler window, and in a steady step.

    Other programs do not stretch it, as they do a step's length. None where either was not measured.
    """
    cpu = steps.extras["thread_cpu"]
    profiled = cpu[(steps.flags & STEP_PROFILED != 0) & steps.training]
    known = [values[~np.isnan(values)] for values in (profiled, cpu[found.mask])]
    if not all(len(values) for values in known):
        return None
    inside, beside = (float(np.median(values)) for values in known)
    return inside, beside


def steady(steps: Steps, throttled: IntArray | None = None, since_ns: int | None = None) -> Steady:
    """The steady steps. `throttled` [k, 2]: times whose steps are left out, if enough others remain.

    `since_ns`: the end of the warm-up where it is known, for a window that does not
    hold the start of the run.
    """
    kind = "training" if steps.training.any() else "evaluation"
    loop = steps.training if kind == "training" else steps.flags & STEP_PARTIAL == 0
    special = steps.flags & (STEP_EPOCH_FIRST | STEP_PROFILED) != 0
    regular = np.flatnonzero(loop & ~special)
    settled = True
    if since_ns is None:
        taken, settled = warm_up(steps.wall[regular])
        since_ns = int(steps.t0_ns[regular[taken]]) if taken < len(regular) else None
    warm = steps.t0_ns < since_ns if since_ns is not None else np.ones(len(steps), bool)
    mask = loop & ~special & ~warm
    slow = mask & overlaps(steps.t0_ns, steps.t1_ns, throttled) if throttled is not None else mask & False
    if (mask & ~slow).sum() < max(WINDOW, mask.sum() // 2):
        slow = mask & False  # throttled most of the time: that is how this run was
    reasons = {
        "warm-up": loop & warm,
        "first of an epoch": loop & ~warm & (steps.flags & STEP_EPOCH_FIRST != 0),
        "profiled": loop & ~warm & (steps.flags & (STEP_PROFILED | STEP_EPOCH_FIRST) == STEP_PROFILED),
        "throttled": slow,
        "evaluation": (steps.flags & STEP_EVALUATION != 0) & ~loop & (steps.flags & STEP_PARTIAL == 0),
        "incomplete": steps.flags & STEP_PARTIAL != 0,
    }
    return Steady(kind, mask & ~slow, int((loop & warm).sum()), since_ns, settled,
                  {reason: int(which.sum()) for reason, which in reasons.items() if which.any()})
