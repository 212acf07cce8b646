"""How long the ranks of one job wait for each other, from their own stages.

Ranks that average gradients make their steps together: one that comes late with its
gradients holds the others up, in their backward. So what a rank's backward takes above
the shortest one is its wait. It is a lower bound: a rank that is late because its
backward itself is longer shows less. That other programs had the late rank's core does not
count: on a CPU a rank that works more waits more for a core, but no more than in the ratio
of CPU times.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiler.analysis.summary import StepSummary

ALIKE = 0.1  # of the longest step: how far step times of ranks that wait for each other may differ


def waits(ranks: Sequence[StepSummary], on_device: bool,
          waiting: Sequence[float | None] = ()) -> list[float] | None:
    """ns a step that each rank waits for the latest one, 0 for that one.

    On a device by the device's own times: there the host goes on while a collective waits. `waiting`:
    share of the time in which each rank's thread has no core. None below two ranks, where their steps
    differ in length, or where a backward was not measured.
    """
    steps = [rank.step_ns for rank in ranks]
    if len(ranks) < 2 or max(steps) - min(steps) > ALIKE * max(steps):
        return None
    times = [(rank.device if on_device else rank.stages).get("backward", 0.0) for rank in ranks]
    if not all(times):
        return None
    late = times.index(min(times))
    crowded = [0.0] * len(ranks) if on_device or not waiting else [
        _by_others(ranks[late], waiting[late], rank, share)
        for rank, share in zip(ranks, waiting, strict=True)]
    return [max(0.0, time - times[late] - ns) for time, ns in zip(times, crowded, strict=True)]


def _by_others(late: StepSummary, late_waiting: float | None, rank: StepSummary,
               waiting: float | None) -> float:
    """ns that the late rank waits for a core longer than its work explains; 0 where that is not known."""
    if late_waiting is None or waiting is None or not late.thread_cpu or not rank.thread_cpu:
        return 0.0
    expected = waiting * rank.step_ns * late.thread_cpu / rank.thread_cpu
    return max(0.0, late_waiting * late.step_ns - expected)
